#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: RUN_SERIAL TIMEOUT 300 LABELS slow once
# `tern report --quick` as a whole: every program of every figure runs, here and simulated, and the
# values of each are right. Never how fast anything was.
command=report patience=800
. tests/lib/frame.sh

sentence "all runs of a quick report succeed, and no figure lacks its data"
run --data "$folder/data" --output "$folder/page.html" --quick -n 1,2
check_status 0
grep failed: "$out"
check_out "^$folder/page.html: [1-9][0-9]+ runs, 0 failed\$"
finish
