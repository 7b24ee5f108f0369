/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch in assembly, for the processors that it is written for. */
#include "spawn/machine.h"

#include <stdint.h>

#if defined(__x86_64__)

/*
 * rdi: from, rsi: to. What `ret` finds is where the other one called, or machine_start. The frame
 * looks the same on both stacks, so what the directives tell a debugger is true before and after.
 */
__asm__(".macro save register\n"
	"	pushq \\register\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset \\register, 0\n"
	".endm\n"
	".macro restore register\n"
	"	popq \\register\n"
	"	.cfi_adjust_cfa_offset -8\n"
	".endm\n"
	".text\n"
	".p2align 4\n"
	".globl machine_switch, machine_start\n"
	".type machine_switch, @function\n"
	"machine_switch:\n"
	"	.cfi_startproc\n"
	"	save %rbp\n"
	"	save %rbx\n"
	"	save %r12\n"
	"	save %r13\n"
	"	save %r14\n"
	"	save %r15\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq (%rsi), %rsp\n"
	"	fldcw 4(%rsp)\n"
	"	ldmxcsr (%rsp)\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	restore %r15\n"
	"	restore %r14\n"
	"	restore %r13\n"
	"	restore %r12\n"
	"	restore %rbx\n"
	"	restore %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size machine_switch, . - machine_switch\n"
	/* A new machine's first instructions; see machine_make(). Backtraces end here. */
	".type machine_start, @function\n"
	"machine_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined %rip\n"
	"	movq %r12, %rdi\n"
	"	callq *%rbx\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size machine_start, . - machine_start\n");

extern char machine_start[] __attribute__((visibility("hidden")));

/* What machine_switch() leaves on a stack, from the stack pointer up. */
struct frame {
	uint32_t mxcsr;
	uint16_t control, unused;
	uint64_t r15, r14, r13, r12, rbx, rbp;
	const void *back;
};

void machine_make(struct machine *m, void *stack, size_t size, machine_entry *entry, void *arg)
{
	uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
	struct frame *f =
		(struct frame *)top - 1; /* so a call finds the stack as aligned as it must be */
	*f = (struct frame){ .r12 = (uint64_t)(uintptr_t)arg,
			     .rbx = (uint64_t)(uintptr_t)entry,
			     .back = machine_start };
	__asm__("stmxcsr %0" : "=m"(f->mxcsr)); /* as its creator has them */
	__asm__("fnstcw %0" : "=m"(f->control));
	m->sp = f;
}

#elif defined(__aarch64__)

/* x0: from, x1: to. FPCR is global state to this ABI, not a register that a callee preserves. */
__asm__(".macro preserved op\n"
	"	\\op x19, x20, [sp]\n"
	"	\\op x21, x22, [sp, #16]\n"
	"	\\op x23, x24, [sp, #32]\n"
	"	\\op x25, x26, [sp, #48]\n"
	"	\\op x27, x28, [sp, #64]\n"
	"	\\op x29, x30, [sp, #80]\n"
	"	\\op d8, d9, [sp, #96]\n"
	"	\\op d10, d11, [sp, #112]\n"
	"	\\op d12, d13, [sp, #128]\n"
	"	\\op d14, d15, [sp, #144]\n"
	".endm\n"
	".text\n"
	".p2align 4\n"
	".globl machine_switch, machine_start\n"
	".type machine_switch, %function\n"
	"machine_switch:\n"
	"	.cfi_startproc\n"
	"	sub sp, sp, #160\n"
	"	.cfi_adjust_cfa_offset 160\n"
	"	preserved stp\n"
	"	.cfi_rel_offset x29, 80\n"
	"	.cfi_rel_offset x30, 88\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	ldr x9, [x1]\n"
	"	mov sp, x9\n"
	"	preserved ldp\n"
	"	add sp, sp, #160\n"
	"	.cfi_adjust_cfa_offset -160\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size machine_switch, . - machine_switch\n"
	/* A new machine's first instructions; see machine_make(). Backtraces end here. */
	".type machine_start, %function\n"
	"machine_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov x0, x20\n"
	"	blr x19\n"
	"	brk #0\n"
	"	.cfi_endproc\n"
	".size machine_start, . - machine_start\n");

extern char machine_start[] __attribute__((visibility("hidden")));

/* What machine_switch() leaves on a stack, from the stack pointer up. */
struct frame {
	uint64_t x19, x20, others[8], x29;
	const void *x30;
	uint64_t d8_to_d15[8];
};

void machine_make(struct machine *m, void *stack, size_t size, machine_entry *entry, void *arg)
{
	uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
	struct frame *f = (struct frame *)top - 1;
	*f = (struct frame){ .x19 = (uint64_t)(uintptr_t)entry,
			     .x20 = (uint64_t)(uintptr_t)arg,
			     .x30 = machine_start };
	m->sp = f;
}

#else
#error "no switch of threads is written for this processor: leave the layer spawn out (TERN_LAYERS)"
#endif
