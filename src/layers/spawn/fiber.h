/* SPDX-License-Identifier: BSD-3-Clause */
/* What sanitizers must be told of a switch, in builds that have them; nothing in others. */
#ifndef TERN_SPAWN_FIBER_H
#define TERN_SPAWN_FIBER_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ADDRESS 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_THREAD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(FIBER_ADDRESS)
#define FIBER_ADDRESS 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(FIBER_THREAD)
#define FIBER_THREAD 1
#endif

struct fiber {
#if defined(FIBER_ADDRESS)
	void *fake;         /* address sanitizer's own stack for this one */
	const void *bottom; /* of a kernel thread's stack: known when it has first been left */
	size_t size;
#elif defined(FIBER_THREAD)
	void *self;
#else
	char none;
#endif
};

#if defined(FIBER_ADDRESS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(FIBER_THREAD)
#include <sanitizer/tsan_interface.h>
#endif

static inline void fiber_make(struct fiber *f, const void *bottom, size_t size)
{
#if defined(FIBER_ADDRESS)
	*f = (struct fiber){ .bottom = bottom, .size = size };
#elif defined(FIBER_THREAD)
	f->self = __tsan_create_fiber(0);
#endif
	(void)f, (void)bottom, (void)size;
}

/* Before its stack is unmapped. */
static inline void fiber_free(struct fiber *f)
{
#if defined(FIBER_ADDRESS)
	__asan_unpoison_memory_region(f->bottom, f->size); /* for whatever is mapped there next */
#elif defined(FIBER_THREAD)
	__tsan_destroy_fiber(f->self);
#endif
	(void)f;
}

/* Just before a switch. */
static inline void fiber_leave(struct fiber *from, struct fiber *to)
{
#if defined(FIBER_ADDRESS)
	__sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
#elif defined(FIBER_THREAD)
	if (!from->self)
		from->self = __tsan_get_current_fiber(); /* a kernel thread's own */
	__tsan_switch_to_fiber(to->self, 0);
#endif
	(void)from, (void)to;
}

/* Just after it, by whoever was switched to: `self`, from `from`. */
static inline void fiber_arrive(struct fiber *self, struct fiber *from)
{
#if defined(FIBER_ADDRESS)
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(self->fake, &bottom, &size);
	from->bottom = bottom;
	from->size = size;
#endif
	(void)self, (void)from;
}

#endif
