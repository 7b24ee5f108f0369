/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests: the calls that hand something out, as expressions. NULL with errno if they fail.
 */
#ifndef TERN_HANDED_H
#define TERN_HANDED_H

#include <errno.h>
#include <sys/mman.h>
#include <tern/buf.h>
#include <tern/mem.h>
#include <unistd.h>

static inline void *handed(int rc, void *p)
{
	if (rc)
		errno = -rc;
	return rc ? NULL : p;
}

static inline void *handed_alloc(tern *t, size_t bytes)
{
	void *p = NULL;
	int rc = tern_alloc(t, bytes, &p);
	return handed(rc, p);
}

static inline void *handed_alloc_all(tern *t, size_t bytes)
{
	void *p = NULL;
	int rc = tern_alloc_all(t, bytes, &p);
	return handed(rc, p);
}

/* TERN_ADDR_NONE with errno if it fails. */
static inline tern_addr handed_addr(tern *t, const void *p)
{
	tern_addr a = TERN_ADDR_NONE;
	int rc = tern_addr_of(t, p, &a);
	if (rc)
		errno = -rc;
	return a;
}

/* The same place of another rank's memory, whether there is memory or not. */
static inline tern_addr handed_at(tern_addr a, uint32_t rank)
{
	return (a & ((UINT64_C(1) << 48) - 1)) | (uint64_t)rank << 48;
}

static inline void *handed_local(tern *t, tern_addr a, size_t len)
{
	void *p = NULL;
	int rc = tern_addr_local(t, a, len, &p);
	return handed(rc, p);
}

/* Memory of a file that this process makes, `skip` bytes into it, and its descriptor. */
static inline void *handed_file(size_t skip, size_t bytes, int *fd)
{
	*fd = memfd_create("tern-test", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)(skip + bytes)))
		return NULL;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, (off_t)skip);
	return p == MAP_FAILED ? NULL : p;
}

static inline void *handed_claim(tern *t, uint32_t dst, size_t len)
{
	void *p = NULL;
	int rc = tern_claim(t, dst, len, &p);
	return handed(rc, p);
}

static inline void *handed_reply_claim(tern *t, const tern_msg *m, size_t len)
{
	void *p = NULL;
	int rc = tern_reply_claim(t, m, len, TERN_CLAIM_ANY, &p);
	return handed(rc, p);
}

static inline const tern_msg *handed_keep(tern *t, const tern_msg *m)
{
	const tern_msg *kept = NULL;
	int rc = tern_msg_keep(t, m, &kept);
	if (rc)
		errno = -rc;
	return rc ? NULL : kept;
}

/* `src` and `len` may be NULL. */
static inline void *handed_buf(tern *t, unsigned type, unsigned flags, uint32_t *src, size_t *len)
{
	tern_buf b = { 0 };
	int rc = tern_buf_recv(t, type, flags, &b);
	if (!rc && src)
		*src = b.src;
	if (!rc && len)
		*len = b.len;
	return handed(rc, b.data);
}

#endif
