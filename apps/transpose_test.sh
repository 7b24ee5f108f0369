#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Matrix transpose in messages of words, rows and blocks.
. apps/test.sh

sentence "every element arrives, whether or not the ranks divide rows and columns"
for ranks in 1 2 3 8; do
	shared transpose 7 $ranks --rows 24 --columns 10
done
shared transpose 7 5 --rows 3 --columns 7
shared transpose 7 4 --rows 1 --columns 1
shared transpose 14 2 --rows 1,300 --columns 200

sentence "so it does over UDP with faults, and on simulated machines"
faults transpose 7 3 --rows 17 --columns 13
simulated transpose 7 7 --rows 17 --columns 13

sentence "wrong sizes are refused in one sentence"
refused transpose 2 "--columns is '0'; it must be" --columns 0
too_large transpose 2 --rows 65536 --columns 65536
finish
