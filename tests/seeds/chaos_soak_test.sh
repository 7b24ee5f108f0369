#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS soak TIMEOUT 36000 RUN_SERIAL
# The jobs of chaos_test.c, from a seed of its own, for CHAOS_SECONDS (7200). It stops at the first
# that breaks a promise.
set -uo pipefail

CHAOS_SECONDS=${CHAOS_SECONDS:-7200} CHAOS_JOBS=${CHAOS_JOBS:-1000000} exec "$TERN_BIN/chaos_test"
