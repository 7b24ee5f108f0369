/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layer lists its messages as X(number, handler). Of that are made its numbers, the declarations
 * of its handlers, and, with the endpoint `e`, their registration.
 */
#ifndef TERN_CORE_MESSAGES_H
#define TERN_CORE_MESSAGES_H

#include "core/layer.h"

#define LAYER_NUMBER(id, fn) id,
#define LAYER_HANDLER(id, fn) tern_handler fn;
#define LAYER_ON(id, fn) layer_on(e, id, fn);

#endif
