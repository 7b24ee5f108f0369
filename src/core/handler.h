/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of an endpoint. */
#ifndef TERN_CORE_HANDLER_H
#define TERN_CORE_HANDLER_H

#include "core/endpoint.h"

/*
 * Stands for every handler that is not registered: the message is dropped, and the next poll
 * returns -ENXIO.
 */
void handler_unknown(tern *t, const tern_msg *m);

#endif
