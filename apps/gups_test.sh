#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Random updates, and a histogram.
. apps/test.sh

sentence "every update is made once, whether or not the ranks divide the table"
for ranks in 1 2 3 8; do
	shared gups 4 $ranks --table 1000 --updates 2001 --ahead 64
done
shared gups 16 5 --table 3,31 --updates 200 --bell 0,6

sentence "so it is over UDP with faults, and on simulated machines"
faults gups 4 3 --table 500 --updates 300 --ahead 100
simulated gups 4 7 --table 500 --updates 60 --ahead 30

sentence "wrong sizes are refused in one sentence"
refused gups 2 "--table is '0'; it must be" --table 0
too_large gups 2 --table 4294967296 --updates 1 --ahead 1048576
finish
