#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Index gather.
. apps/test.sh

sentence "every word comes back, whether or not the ranks divide the table"
for ranks in 1 2 3 8; do
	shared gather 4 $ranks --table 1000 --words 1001 --ahead 64
done
shared gather 8 5 --table 3,31 --words 200

sentence "so it does over UDP with faults, and on simulated machines"
faults gather 4 3 --table 500 --words 300 --ahead 100
simulated gather 4 7 --table 500 --words 60 --ahead 30

sentence "wrong sizes are refused in one sentence"
refused gather 2 "--words is '-1'; it must be" --words -1
too_large gather 2 --words 4294967296
finish
