# SPDX-License-Identifier: BSD-3-Clause
# A line for each layer; cmake/Layers.cmake says what is in it. Numbers follow the order of the lines.
tern_layer(mem HANDLERS 24 HEADERS mem lock)
tern_layer(msg HANDLERS 9 USES mem HEADERS send)
tern_layer(typed HANDLERS 5 USES mem HEADERS buf)
tern_layer(chan HANDLERS 6 USES mem)
tern_layer(async HANDLERS 4 USES mem chan)
tern_layer(spawn HANDLERS 2 HEADERS thread)
tern_layer(sequence HANDLERS 18)
tern_layer(coll HANDLERS 7 USES mem)
tern_layer(post HANDLERS 3 USES mem LANE 16)
