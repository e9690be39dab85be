# SPDX-License-Identifier: BSD-3-Clause
# Short names for the common commands of Meson and of tools/. `make help` lists them.

prefix  ?= /usr/local
PREFIX  ?= $(prefix)
DESTDIR ?=
# The reference is Debian 12. If a newer compiler has new warnings: make WERROR=false
WERROR  ?= true
FUZZ_SECONDS ?= 60
# Meson uses ccache if it is there: so that another clone finds what this one has compiled, too.
export CCACHE_NOHASHDIR = 1

SETUP = meson setup --prefix=$(PREFIX) -Dwerror=$(WERROR)

all: build-all ## build the program: build/weir
	@echo "build/weir is ready; build/weir --help, or make demo"

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | while IFS='|' read -r l r; do \
		printf '%-18s %s\n' "$$l" "$$r"; done

deps: ## install missing packages (Debian 12; uses sudo if needed)
	@tools/deps

build/build.ninja: | deps
	$(SETUP) -Dunit_tests=false build
build-clang/build.ninja: | deps
	CC=clang $(SETUP) -Doptimization=0 build-clang
# With the sanitizers gcc has false warnings; build has the warnings that count.
build-asan/build.ninja: | deps
	$(SETUP) -Dwerror=false -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false \
		-Ddebug_checks=true -Dc_args=-fno-sanitize-recover=all build-asan
build-fuzz/build.ninja: | deps
	CC=clang $(SETUP) -Dfuzz=true -Doptimization=1 -Db_sanitize=address,undefined -Ddebug_checks=true \
		-Db_lundef=false -Dc_args=-fno-sanitize-recover=all build-fuzz

build-all build-clang-all build-asan-all build-fuzz-all: %-all: %/build.ninja deps
	@ninja -C $*

demo: build-all ## the noisy neighbour, and its end
	build/weir demo --out out/demo

test: deps ## every test, in three builds, as in CI
	@tools/run-tests

soak: deps ## the long form of test: three seeds, many kills, fuzzing
	@tools/run-tests --soak

lint: build-clang-all ## clang-tidy
	@tools/lint

bench: build-all ## the benchmarks, as tables
	@set -e; for what in gate sim alloc pshift gateway hosts cluster net; do \
		echo "weir bench $$what"; build/weir bench $$what; done

results: build-all ## docs/results.md and docs/pictures, from a run of every experiment
	build/weir experiment run all --out out/results
	build/weir demo --out out/demo >out/demo.txt
	cp out/results/results.md docs/results.md
	cp out/results/pictures/*.svg docs/pictures/
	cp out/demo/latency.svg docs/pictures/demo.svg

SEEDS ?= 10
reproduce: build-all ## every table and figure with ten seeds (SEEDS=N): out/reproduce/index.html
	build/weir experiment run all --seeds $(SEEDS) --out out/reproduce

house: build-all ## docs/pictures/house.svg, the graph of the source folders
	tools/house --svg docs/pictures/house.svg

fuzz: build-fuzz-all ## every fuzz target for a minute
	@for corpus in fuzz/corpus/*; do \
		$(MAKE) --no-print-directory fuzz-$${corpus##*/} || exit 1; done

# The dictionary of a target nbd_hello is fuzz/nbd.dict; targets without a dictionary use that for YAML.
fuzz-%: build-fuzz-all
	@mkdir -p build-fuzz/corpus/$*
	build-fuzz/fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
		-dict=$(firstword $(wildcard fuzz/$(firstword $(subst _, ,$*)).dict) fuzz/yaml.dict) \
		-rss_limit_mb=1024 -artifact_prefix=build-fuzz/$*- build-fuzz/corpus/$* fuzz/corpus/$*

format: deps ## clang-format every C file
	@tools/sources | xargs clang-format -i

format-check: deps ## list the C files that are not formatted
	@tools/sources | xargs clang-format --dry-run -Werror

install: build-all ## into DESTDIR and prefix (/usr/local)
	@meson configure build -Dprefix=$(PREFIX)
	@meson install -C build --quiet
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo "installed into $(DESTDIR)$(PREFIX)"

deb: deps ## Debian packages of the last commit, in out/deb
	@tools/deb

deb-test: deps ## check these packages: lintian, and a minimal Debian made from this machine's mirrors (as root)
	@tools/deb-test

clean: ## remove the builds
	rm -rf build build-clang build-asan build-fuzz out

.PHONY: all help deps demo test soak lint bench results reproduce house fuzz deb deb-test format format-check install clean \
	build-all build-clang-all build-asan-all build-fuzz-all
