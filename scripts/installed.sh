#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/installed.sh FOLDER: after `make install` of the build in FOLDER, how to compile and run
# with what is installed.
set -euo pipefail

[[ -z ${DESTDIR:-} ]] || exit 0 # a package is being made
. "$1/install-paths" # prefix bin pkgconfig include lib doc

echo
echo "Installed below $prefix; $1/install_manifest.txt has the list. To compile and run an example:"
echo
[[ :$PATH: == *:$bin:* ]] || echo "    export PATH=$bin:\$PATH"
if command -v pkg-config >/dev/null; then
	[[ :$(pkg-config --variable pc_path pkg-config):${PKG_CONFIG_PATH:-}: == *:$pkgconfig:* ]] \
		||
		echo "    export PKG_CONFIG_PATH=$pkgconfig"
	flags="\$(pkg-config --cflags --libs tern)"
else
	flags="-I$include -L$lib -Wl,-rpath,$lib -ltern"
fi
echo "    cc $doc/examples/hello.c -o hello $flags"
echo "    tern run -n 4 ./hello"
