#!/usr/bin/env bash
# cublaslt_test.sh BENCH_RESNET50: a run on a CPU doesn't load cuBLASLt; --version does, as it tells its version.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
LD_DEBUG=files LD_DEBUG_OUTPUT=loaded "$1" --device cpu --threads 1 --bs 1 --image-size 32 --iters 1 --warmup 0 --quiet >run
grep -q "calling init:.*libdnnl" loaded.*
! grep -q "calling init:.*libcublasLt" loaded.* || {
  echo "FAILED: a run on a CPU has loaded cuBLASLt"
  exit 1
}
"$1" --version >version
grep -qE '^cuBLASLt: [0-9]+\.' version || {
  echo "FAILED: --version names no cuBLASLt: $(cat version)"
  exit 1
}
