#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 60
# A library built from other sources has another stamp, so that it shares no job (base/stamp.h).
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{include/tern,src/job,src/tools/run}
script=$PWD/cmake/Stamp.cmake
failed=0
fail() {
	echo "    $1"
	failed=1
}
stamp() { # prints it
	cmake -DROOT="$folder" -DTO="$folder/stamp.c" -P "$script" && grep -o '0x[0-9a-f]*' "$folder/stamp.c"
}
for file in include/tern/fast.h src/job/job.h src/job/job.c src/job/job_test.c \
	src/tools/run/run.c; do
	echo "a line of $file" >"$folder/$file"
done
first=$(stamp)
[[ $first == 0x???????? ]] || fail "the stamp is '$first'"

echo "every source and header of the library counts, whether new or changed"
for file in include/tern/fast.h src/job/job.h src/job/job.c src/job/seat.c; do
	before=$(stamp)
	echo "another line" >>"$folder/$file"
	[[ $(stamp) != "$before" ]] || fail "$file has changed and the stamp has not"
done

echo "tests and the command do not"
before=$(stamp)
echo "another line" >>"$folder/src/job/job_test.c"
echo "another line" >>"$folder/src/tools/run/run.c"
[[ $(stamp) == "$before" ]] || fail "the stamp has changed"
exit $failed
