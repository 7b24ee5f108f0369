#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/need.sh demo|test|aarch64|format|compare: installs the packages that the goal lacks.
# A package is there when its probe is, a command or a file, wherever it came from. What a goal only
# wants is installed where that is allowed; otherwise the build leaves something out, and says so.
set -euo pipefail

demo="
	gcc              gcc
	cmake            cmake
	make             make
	libc6-dev        /usr/include/stdio.h"
demo_wants="
	libsodium-dev    /usr/include/sodium.h
	libdw-dev        /usr/include/elfutils/libdwfl.h
	libcapstone-dev  /usr/include/capstone/capstone.h"
compare="$demo"
compare_wants="
	openmpi-bin     mpirun.openmpi
	libopenmpi-dev  /usr/lib/*/openmpi/include/mpi.h
	mpich           mpirun.mpich
	libmpich-dev    /usr/include/*/mpich/mpi.h
	libucx-dev      /usr/include/ucp/api/ucp.h
	libfabric-dev   /usr/include/rdma/fabric.h
	valgrind        valgrind"
format="
	clang-format  clang-format"
aarch64="$demo
	gcc-aarch64-linux-gnu  aarch64-linux-gnu-gcc
	libc6-dev-arm64-cross  /usr/aarch64-linux-gnu/include/stdio.h
	qemu-user              qemu-aarch64"
test="$aarch64 $format $demo_wants $compare_wants
	clang               clang
	g++                 g++
	python3             python3
	libclang-rt-14-dev  /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-*.a
	spin                spin
	gdb                 gdb
	mandoc              mandoc
	man-db              man
	bsdextrautils       col
	tmux                tmux
	chromium            chromium
	pkgconf             pkg-config
	libpmix-dev         /usr/lib/*/pmix2/include/pmix.h
	munge               /usr/sbin/munged
	slurmctld           /usr/sbin/slurmctld
	slurmd              /usr/sbin/slurmd
	slurm-client        srun
	libpmi0             /usr/lib/*/libpmi.so.0
	openssh-client      ssh
	openssh-server      /usr/sbin/sshd"

has() { # PROBE
	if [[ $1 == /* ]]; then
		compgen -G "$1" >/dev/null
	else
		command -v "$1" >/dev/null
	fi
}

lacking() { # LIST: the packages of it that are missing
	while read -r package probe; do
		[[ -z $package ]] || has "$probe" || echo "$package"
	done <<<"$1"
}

goal=$1 wants=$1_wants
mapfile -t needed < <(lacking "${!goal}")
mapfile -t missing < <(lacking "${!goal}"; lacking "${!wants-}")
((${#missing[@]})) || exit 0

command=(apt-get install -y --no-install-recommends "${missing[@]}")
as_root=()
if ((EUID)); then
	as_root=(sudo)
fi
if ! has apt-get || { ((EUID)) && ! { has sudo && { [[ -t 0 ]] ||
	sudo -n true 2>/dev/null; }; }; }; then
	((${#needed[@]})) || exit 0
	echo "Packages are missing, and there is no right to install them here. As root, run:" >&2
	echo "    apt-get update && ${command[*]}" >&2
	exit 1
fi
echo "Installing what is missing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${command[@]}" -qq >/dev/null
