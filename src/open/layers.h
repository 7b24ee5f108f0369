/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers of this build. */
#ifndef TERN_OPEN_LAYERS_H
#define TERN_OPEN_LAYERS_H

#include "core/layer.h"

/* By enum layer_index. Adding one is a folder, an index there, and a line in layers.c. */
extern const struct layer *const layer_table[LAYERS];

#endif
