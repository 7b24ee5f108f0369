/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers: registering them, and the one that stands where none is registered. */
#include "core/handler.h"

#include <errno.h>

#include "base/error.h"
#include "core/label.h"
#include "core/trace.h"
#include "core/watchdog.h"

void handler_unknown(tern *t, const tern_msg *m)
{
	struct endpoint *e = t->own;
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	char label[LABEL_ROOM];
	label_of(e, (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS, label);
	poll_trouble(
		e,
		error_set(
			-ENXIO,
			"rank %u got a message from rank %u for %s, which is not registered here; "
			"it was dropped",
			t->rank, tern_msg_src(m), label));
	error_warn("%s", tern_strerror(e->trouble));
}

int tern_on_named(tern *t, unsigned id, tern_handler *fn, const char *name)
{
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	if (id >= TERN_HANDLER_MAX)
		return error_set(-ERANGE,
				 "handler %u was registered; handlers are numbered 0 to %d", id,
				 TERN_HANDLER_MAX - 1);
	if (!fn)
		return error_set(-EINVAL, "handler %u was registered without a function", id);
	if (t->own->used)
		return error_set(-EBUSY,
				 "handler %u was registered after the first message of rank %u: "
				 "register every handler first",
				 id, t->rank);
	t->handler[id] = trace_handler(t->own, id, watchdog_handler(t->own, id, fn));
	t->known[id] = 1;
	label_set(t->own, id, name);
	return 0;
}

#undef tern_on

int tern_on(tern *t, unsigned id, tern_handler *fn)
{
	return tern_on_named(t, id, fn, NULL);
}

uint32_t tern_rank(const tern *t)
{
	return t->rank;
}

uint32_t tern_size(const tern *t)
{
	return t->size;
}
