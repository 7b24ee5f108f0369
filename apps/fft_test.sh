#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The fast Fourier transform, remapped in several orders.
. apps/test.sh

sentence "every schedule gives the serial transform"
for ranks in 1 2 4 8; do
	shared fft 6 $ranks --points 512
done
shared fft 18 4 --points 16,64,4096
shared fft 12 1 --points 1,2

sentence "so it does over UDP with faults, and on simulated machines"
faults fft 6 4 --points 256
simulated fft 6 8 --points 256

sentence "sizes that the algorithm forbids are refused in one sentence"
refused fft 2 "--points 24 is no power of 2" --points 24
refused fft 3 "for 1, 2, 4, 8, ... ranks, not 3" --points 64
refused fft 8 "--points 32 is less than the square of 8 ranks" --points 32
finish
