/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers that stand on the core; here, so that the core knows none of them. */
#include "async/async.h"
#include "chan/chan.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "sequence/sequence.h"
#include "spawn/spawn.h"
#include "typed/typed.h"

const struct layer *const layer_table[LAYERS] = {
	[LAYER_MEM] = &mem_layer,           [LAYER_MSG] = &msg_layer,     [LAYER_TYPED] = &typed_layer,
	[LAYER_CHAN] = &chan_layer,         [LAYER_ASYNC] = &async_layer, [LAYER_SPAWN] = &spawn_layer,
	[LAYER_SEQUENCE] = &sequence_layer,
};
