/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed messages into buffers that their receiver has set aside.
 *
 * A rank gives the library buffers for a type; a message of that type lands in one of
 * them, with one copy, and tern_buf_recv() gives a pointer to it. The program gives the
 * buffer back with tern_buf_free(). A send is accepted whole or not at all.
 *
 * Within a type a short message may overtake a long one that was sent before it by the same
 * rank, unless the type asks for order. Conventions are those of <tern/tern.h>.
 */
#ifndef TERN_BUF_H
#define TERN_BUF_H

#include <tern/op.h>
#include <tern/tern.h>

TERN_BEGIN_

enum {
	TERN_BUF_TYPES_MAX = 256,
	TERN_BUFS_MAX = 4096,   /* of one call of tern_buf_alloc() */
	TERN_BUF_MORE_MAX = 61, /* further calls for types that there are, of all types together */
};

/*
 * What happens to a message when all buffers of its type are in use: the send waits; it is
 * refused (-ENOBUFS); or the message goes to the spill, memory of the receiver for all
 * types together (TERN_SPILL bytes), and takes a buffer when one is free; the send waits when
 * that is full too, or the message is longer than 64 KiB. The other flags may be added.
 */
enum tern_buf_flags {
	TERN_BUF_WAIT = 0, /* of tern_buf_alloc() */
	TERN_BUF_REFUSE = 1,
	TERN_BUF_SPILL = 2,
	TERN_BUF_ORDER = 4, /* messages of this type from one rank are received in the order sent */
	TERN_BUF_NOWAIT = 16, /* of tern_buf_send_start() and tern_buf_recv() */
};

/*
 * Sets aside `count` buffers of `bytes` for messages of `type`, in this rank's heap. For a type
 * that there is, it adds buffers, of this or another length, TERN_BUF_MORE_MAX times; with other
 * flags than the type has: -EEXIST. With TERN_BUF_SPILL `count` may be 0: messages of at most
 * `bytes` go to the spill. -EINVAL for a type of TERN_BUF_TYPES_MAX or more, no buffers or too
 * many, or unknown flags; -ENOMEM when the heap or the job's memory is spent.
 */
int tern_buf_alloc(tern *t, unsigned type, size_t bytes, unsigned count, unsigned flags);

/*
 * Ends a type: messages not received are dropped, and sends of it fail once their rank can know of
 * it. -EBUSY while the program has one of its buffers, or a message is just landing; -ENXIO if
 * there is no such type.
 */
int tern_buf_close(tern *t, unsigned type);

/*
 * Sends `len` bytes as a message of `type` to `dst` and returns when `data` is free again. Waits
 * while there is no buffer. A failure repeats itself until the receiver does something about it, if
 * it can: -ENXIO, the rank has given no buffers for that type; -EMSGSIZE, they are shorter than
 * that; -ENOBUFS, none is free and the type's policy is to refuse; -ERANGE; -EOWNERDEAD,
 * -ESHUTDOWN; -EBADMSG, with TERN_CHECK, `data` was changed under way. In a handler: -EPERM. Where
 * it would have to wait under a hold: -EDEADLK. To a rank whose memory cannot be mapped it takes a
 * round trip; tern_typed(7) says what else shows of that.
 */
int tern_buf_send(tern *t, uint32_t dst, unsigned type, const void *data, size_t len);

enum { TERN_BUF_SENDS_MAX = 256 };

/*
 * The same in two steps. 0: accepted; `data` belongs to the message until `op` says that it has
 * landed at its receiver. With TERN_BUF_NOWAIT the call does not wait to be accepted: -EAGAIN,
 * retry, when there is no buffer, or TERN_BUF_SENDS_MAX sends are under way. Without `op` it waits
 * until `data` is free. To a rank whose memory cannot be mapped a send with `op` is accepted before
 * it has a buffer, and `op` says if it is refused.
 */
int tern_buf_send_start(tern *t, uint32_t dst, unsigned type, const void *data, size_t len,
			unsigned flags, tern_op *op);

/*
 * The next message of `type`: a pointer to its bytes, its length and sender; no copy is made. Waits
 * for one, or with TERN_BUF_NOWAIT returns -EAGAIN. -ENXIO: there is no such type here; -EDEADLK,
 * -EPERM where waiting is not allowed; -EOWNERDEAD as tern_wait().
 */
typedef struct tern_buf {
	void *data;
	size_t len;
	uint32_t src;
} tern_buf;
int tern_buf_recv(tern *t, unsigned type, unsigned flags, tern_buf *buf);

/*
 * Gives a buffer back to its type, or to the spill. -EINVAL if it is not a buffer that
 * tern_buf_recv() gave.
 */
int tern_buf_free(tern *t, void *buffer);

TERN_END_

#endif
