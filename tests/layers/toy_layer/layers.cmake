# SPDX-License-Identifier: BSD-3-Clause
# A layer outside of the tree of layers, for tests/layers/layer_alone_test.sh.
tern_layer(toy HANDLERS 1)
