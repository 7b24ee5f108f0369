/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric, loaded when it is first needed: programs that do not use this network do not wait for
 * it, and run where it is not installed. Only these few functions are looked up; the others are
 * reached through its objects.
 */
#ifndef TERN_NET_OFI_LIBRARY_H
#define TERN_NET_OFI_LIBRARY_H

#include <stdbool.h>

#include <rdma/fabric.h>

struct library {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info); /* of NULL: an empty one */
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int code); /* of a positive one */
};

/* NULL with a sentence if it cannot be loaded. */
const struct library *library_open(void);

/*
 * Providers put functions of their own behind signals; these undo that around a call that may do
 * so. Whoever uses Tern has not asked for it.
 */
enum { LIBRARY_SIGNALS = 32 };
struct library_signals;
struct library_signals *
library_signals_keep(void); /* NULL without memory: then nothing is undone */
void library_signals_restore(struct library_signals *s);

#endif
