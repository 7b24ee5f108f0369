#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Breadth-first search.
. apps/test.sh

sentence "depths are those of a serial search, and parents are one less deep"
for ranks in 1 2 3 8; do
	shared bfs 3 $ranks --scale 7
done
shared bfs 6 5 --scale 1,6 --factor 1
shared bfs 6 3 --scale 6 --root 0,1000000

sentence "so they are over UDP with faults, and on simulated machines"
faults bfs 3 3 --scale 6 --factor 8
simulated bfs 3 7 --scale 5 --factor 4

sentence "TERN_DELIVERY does not change how a program is served"
TERN_DELIVERY=thread shared bfs 3 2 --scale 6

sentence "wrong sizes are refused in one sentence"
refused bfs 2 "--scale is '40'; it must be" --scale 40
finish
