#!/usr/bin/env bash
# cublaslt_test.sh BENCH_RESNET50: a run on a CPU doesn't load cuBLASLt; --version does, as it tells its version.
. "${BASH_SOURCE[0]%/*}/../../prelude.sh"
cd "$scratch"
LD_DEBUG=files LD_DEBUG_OUTPUT=loaded "$1" --device cpu --threads 1 --bs 1 --image-size 32 --iters 1 --warmup 0 --quiet >run
grep -q "calling init:.*libdnnl" loaded.*
! grep -q "calling init:.*libcublasLt" loaded.* || fail "a run on a CPU has loaded cuBLASLt"
"$1" --version >version
grep -qE '^cuBLASLt: [0-9]+\.' version || fail "--version does not name cuBLASLt: $(cat version)"
