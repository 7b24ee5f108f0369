/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: protection control */
/* The rules of the model, checked where they are broken. tern(7) has the table. */
#include <errno.h>

#include "base/error.h"
#include "core/door.h"

/* The message that lies just before the cursor: a whole line, or the last piece of one. */
const tern_msg *rules_handled(const struct endpoint *e)
{
	char *end = e->inlet->cursor;
	const tern_msg *line = (const tern_msg *)(const void *)(end - TERN_LINE);
	bool aligned = (uintptr_t)end % TERN_LINE == 0;
	if (aligned && !(atomic_load_explicit(&line->head, memory_order_relaxed) & TERN_HEAD_PIECE))
		return line;
	return (const tern_msg *)(const void *)(end - TERN_PIECE);
}

unsigned rules_handler(const struct endpoint *e)
{
	uint64_t head = atomic_load_explicit(&rules_handled(e)->head, memory_order_relaxed);
	return (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
}

static int rules_broken(struct endpoint *e, const char *what)
{
	bool request = e->inlet->kind == TERN_REQUEST;
	return error_set(
		-EPERM,
		"%s was called in handler %u of a %s from rank %u: a %s handler may %s; use tern_defer()",
		what, rules_handler(e), request ? "request" : "reply", e->inlet->peer,
		request ? "request" : "reply",
		request ? "reply once and poll for replies, and nothing else" : "send nothing and not poll");
}

static int rules_message(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len)
{
	if (n > TERN_WORDS_MAX)
		return error_set(
			-E2BIG,
			"a message to handler %u of rank %u was given %u words; it carries at most %d", id,
			dst, n, TERN_WORDS_MAX);
	if (len > TERN_PAYLOAD_MAX)
		return error_set(-EMSGSIZE,
				 "a message to handler %u of rank %u was given %zu bytes of payload; "
				 "it carries at most %d",
				 id, dst, len, TERN_PAYLOAD_MAX);
	if (id >= TERN_HANDLER_MAX)
		return error_set(-ERANGE, "handler %u of rank %u was named; handlers are numbered 0 to %d",
				 id, dst, TERN_HANDLER_MAX - 1);
	if (!e->t->known[id])
		return error_set(-ENXIO,
				 "handler %u of rank %u was named, but none is registered under that number: "
				 "every rank registers the same ones with tern_on()",
				 id, dst);
	return 0;
}

int rules_destination(struct endpoint *e, uint32_t dst)
{
	if (dst < e->t->size)
		return 0;
	return error_set(-ERANGE, "rank %u was named; this job has ranks 0 to %u", dst, e->t->size - 1);
}

int rules_send(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len)
{
	int rc = rules_program(e, "a request");
	if (!rc && dst >= e->t->size)
		rc = error_set(-ERANGE,
			       "a request to handler %u of rank %u was asked for; this job has ranks 0 to %u",
			       id, dst, e->t->size - 1);
	return rc ? rc : rules_message(e, dst, id, n, len);
}

int rules_reply(struct endpoint *e, const tern_msg *m, unsigned id, unsigned n, size_t len)
{
	if (!in_handler(e))
		return error_set(-EPERM,
				 "rank %u asked for a reply to handler %u outside a handler: "
				 "only the handler of a request replies, and before it returns",
				 e->t->rank, id);
	if (e->inlet->kind == TERN_REPLY)
		return rules_broken(e, "a reply");
	if (m != rules_handled(e))
		return error_set(-EPERM,
				 "handler %u, for a request from rank %u, replied to another message: "
				 "a handler replies to its own request",
				 rules_handler(e), e->inlet->peer);
	if (m != e->t->current)
		return error_set(-EALREADY,
				 "handler %u has answered its request from rank %u already: "
				 "a handler replies at most once",
				 rules_handler(e), e->inlet->peer);
	return rules_message(e, e->inlet->peer, id, n, len);
}

int rules_handling(struct endpoint *e, const tern_msg *m, const char *what)
{
	if (in_handler(e) && m == rules_handled(e))
		return 0;
	return error_set(-EPERM, "%s is for the handler of that very message, before it returns", what);
}

int rules_program(struct endpoint *e, const char *what)
{
	if (!attach_is_mine(e))
		attach_first(e); /* before anything else is read: another thread may be borrowing it */
	if (TERN_UNLIKELY(e->checked && !attach_is_mine(e)))
		return error_set(
			-EPERM,
			"%s was called by a thread that does not have rank %u: give it the endpoint with "
			"tern_attach(), or share the endpoint (tern_options.shared, TERN_SHARED)",
			what, e->t->rank);
	return in_handler(e) ? rules_broken(e, what) : 0;
}

int rules_wait(struct endpoint *e, const char *what)
{
	int rc = rules_program(e, what);
	if (!rc && e->turn)
		return error_set(
			-EDEADLK,
			"%s was called in a turn, where nothing waits: return, and try again in the next",
			what);
	if (!rc && held(e))
		rc = door_mend(e);
	if (!rc && held(e))
		return error_set(-EDEADLK,
				 "%s was called under a hold, where nothing is handled: release it first",
				 what);
	return rc;
}
