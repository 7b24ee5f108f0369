/* SPDX-License-Identifier: BSD-3-Clause */
/* TERN_PROTECT, read; apart from guard.c, because a build without libsodium understands it, too. */
#ifndef TERN_NET_GUARD_MODE_H
#define TERN_NET_GUARD_MODE_H

enum guard_mode { GUARD_NONE, GUARD_AUTH, GUARD_ENCRYPT };

/* What TERN_PROTECT says, into *mode, which stays as it is for auto; -EINVAL with a sentence. */
int guard_mode_read(enum guard_mode *mode);

#endif
