# SPDX-License-Identifier: BSD-3-Clause
# A thin front; CMakeLists.txt has the build, scripts/ the rest.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CMAKE ?= cmake

.PHONY: all build apps demo test test-all test-fast test-aarch64 soak mutate compare install figures format clean help
.NOTPARALLEL:

all: build ## build the library, the command and the examples into build/
	@scripts/left_out.sh build "make"

build:
	@$(CMAKE) --preset dev -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@MAKEFLAGS=--no-print-directory $(CMAKE) --build build -j $(JOBS)

apps: build ## build the papers' programs into build/bin/apps
	@MAKEFLAGS=--no-print-directory $(CMAKE) --build build -j $(JOBS) --target apps

demo: ## build, run an example on 4 ranks, measure this machine
	@scripts/need.sh demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh
	@scripts/left_out.sh build "make demo"

test: ## all tests but the slow ones; the last line counts them
	@scripts/need.sh test
	@scripts/test.sh dev

test-all: ## the slow tests, then the tests of every other build: sanitizers, clang, aarch64
	@scripts/need.sh test
	@scripts/test.sh slow sanitize tsan clang noinline lean aarch64

test-fast: ## the inner loop: the quick tests of the dev build
	@scripts/test.sh fast

test-aarch64: ## the unit tests on aarch64, under qemu
	@scripts/need.sh aarch64
	@scripts/test.sh aarch64

soak: ## the tests that run for long
	@scripts/test.sh soak matrix fuzz-soak

mutate: ## change the library at random places, list what no test notices; SEED, COUNT, FOLDER, LIMIT
	@scripts/mutate.py $(foreach o,SEED COUNT FOLDER LIMIT,$(if $($(o)),--$(shell echo $(o) | \
		tr A-Z a-z) $($(o)))) --jobs $(JOBS) $(OPTIONS)

compare: build apps ## measure Tern beside MPI, UCX, libfabric, ...; OPTIONS=--quick: a minute or two
	@scripts/need.sh compare
	@lab/compare/run.sh $(OPTIONS)

install: build ## install into PREFIX (/usr/local), below DESTDIR if given
	@$(CMAKE) --install build >/dev/null
	@scripts/installed.sh build
	@scripts/left_out.sh build "make install$(if $(filter command% environment%,$(origin PREFIX)), PREFIX=$(PREFIX))"

figures: build ## write the figures of docs/ anew; ONLY=--exact: those without a clock
	@$(CMAKE) --build build -j $(JOBS) \
		--target cost_budget_test count_test step_test switch_count_test apps >/dev/null
	@scripts/figures.sh $(ONLY)

format: ## lay out every C file with clang-format
	@scripts/need.sh format
	@scripts/format.sh -i

clean: ## remove every build
	@rm -rf build build-*

help: ## this list
	@awk -F':.*## ' 'NF == 2 && /^[a-z]/ { printf "make %-13s %s\n", $$1, $$2 }' Makefile
