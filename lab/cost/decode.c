/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes instructions, with Capstone: their text, and what memory they touch. */
#include "lab/cost/decode.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 15, WORD = 8 };

struct decoder {
	csh handle;
	cs_insn *insn;
};

struct decoder *decoder_open(void)
{
	struct decoder *d = calloc(1, sizeof *d);
	if (!d || cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) != CS_ERR_OK) {
		free(d);
		return NULL;
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	d->insn = cs_malloc(d->handle);
	return d;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

/* The process stepped through is a fork of this one: its code lies here as well. */
static const cs_insn *decode(struct decoder *d, uintptr_t at)
{
	const uint8_t *code = (const uint8_t *)at;
	size_t left = LONGEST;
	uint64_t address = at;
	return cs_disasm_iter(d->handle, &code, &left, &address, d->insn) ? d->insn : NULL;
}

/* -- What is touched ------------------------------------------------------------------ */

static const struct {
	x86_reg reg;
	size_t offset;
	uint64_t mask;
} registers[] = {
#define REG(wide, narrow, member)                                                                 \
	{ X86_REG_##wide, offsetof(struct user_regs_struct, member), ~UINT64_C(0) },              \
	{                                                                                         \
		X86_REG_##narrow, offsetof(struct user_regs_struct, member), UINT64_C(0xffffffff) \
	}
	REG(RAX, EAX, rax),  REG(RBX, EBX, rbx),  REG(RCX, ECX, rcx),  REG(RDX, EDX, rdx),
	REG(RSI, ESI, rsi),  REG(RDI, EDI, rdi),  REG(RBP, EBP, rbp),  REG(RSP, ESP, rsp),
	REG(R8, R8D, r8),    REG(R9, R9D, r9),    REG(R10, R10D, r10), REG(R11, R11D, r11),
	REG(R12, R12D, r12), REG(R13, R13D, r13), REG(R14, R14D, r14), REG(R15, R15D, r15),
	REG(RIP, EIP, rip),
#undef REG
};

static uint64_t register_value(const struct user_regs_struct *regs, x86_reg reg)
{
	for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
		if (registers[i].reg == reg) {
			uint64_t value;
			memcpy(&value, (const char *)regs + registers[i].offset, sizeof value);
			return value & registers[i].mask;
		}
	return 0;
}

static uint64_t operand_address(const x86_op_mem *m, const struct user_regs_struct *regs,
				size_t length)
{
	uint64_t at = (uint64_t)m->disp + register_value(regs, m->base) +
		      register_value(regs, m->index) * (uint64_t)m->scale;
	if (m->base == X86_REG_RIP)
		at += length; /* counted from the instruction behind it */
	if (m->segment == X86_REG_FS)
		at += regs->fs_base;
	if (m->segment == X86_REG_GS)
		at += regs->gs_base;
	return at;
}

static bool shared_has(const struct cost_shared *shared, uint64_t at)
{
	return at >= shared->from && at < shared->to;
}

/* Instructions with a memory operand that they only compute with, or do nothing with. */
static bool insn_only_names(const cs_insn *i)
{
	return i->id == X86_INS_LEA || i->id == X86_INS_NOP;
}

/* Those that use the stack without an operand that says so: they move its pointer. */
static bool insn_uses_stack(const cs_insn *i)
{
	for (int k = 0; k < i->detail->regs_write_count; k++)
		if (i->detail->regs_write[k] == X86_REG_RSP)
			return true;
	return false;
}

enum cost_kind decoder_kind(struct decoder *d, const struct user_regs_struct *regs,
			    const struct cost_shared *shared)
{
	const cs_insn *i = decode(d, regs->rip);
	if (!i)
		return COST_REGISTER;
	if (i->id == X86_INS_SYSCALL)
		return COST_DEVICE;
	enum cost_kind kind = insn_uses_stack(i) ? COST_MEMORY : COST_REGISTER;
	if (insn_only_names(i))
		return kind;
	for (int o = 0; o < i->detail->x86.op_count; o++) {
		const cs_x86_op *op = &i->detail->x86.operands[o];
		if (op->type != X86_OP_MEM)
			continue;
		if (shared_has(shared, operand_address(&op->mem, regs, i->size)))
			return COST_DEVICE;
		kind = COST_MEMORY;
	}
	return kind;
}

void decoder_text(struct decoder *d, uintptr_t at, char text[DECODED_TEXT])
{
	const cs_insn *i = decode(d, at);
	if (i)
		snprintf(text, DECODED_TEXT, "%s %s", i->mnemonic, i->op_str);
	else
		snprintf(text, DECODED_TEXT, "(not decoded)");
}
