#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The bounce test.
. apps/test.sh

sentence "the number comes back as it should, in each way"
shared bounce 4 2 --bounces 300 --variant receive,probe,message,channel
shared bounce 5 5 --bounces 5
shared bounce 1 2 --bounces 20 --variant interrupt
shared bounce 2 2 --bounces 1,2 --variant receive

sentence "so it does over UDP with faults, and on simulated machines"
faults bounce 4 3 --bounces 50 --variant receive,probe,message,channel
simulated bounce 4 4 --bounces 50

sentence "one rank is refused"
refused bounce 1 "between two ranks, and there is one"
finish
