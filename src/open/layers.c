/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of layers. An endpoint gets it when it is opened, so the core knows none of them. */
#include "open/layers.h"

#include "async/async.h"
#include "chan/chan.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "protocols/sequence/sequence.h"
#include "spawn/spawn.h"
#include "typed/typed.h"

const struct layer *const layer_table[LAYERS] = {
	[LAYER_MEM] = &mem_layer,           [LAYER_MSG] = &msg_layer,
	[LAYER_TYPED] = &typed_layer,       [LAYER_CHAN] = &chan_layer,
	[LAYER_ASYNC] = &async_layer,       [LAYER_SPAWN] = &spawn_layer,
	[LAYER_SEQUENCE] = &sequence_layer,
};
