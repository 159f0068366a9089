#!/usr/bin/env bash
# kernels.sh [--table] [BUILD]: proves on the object files of a build (build/release) that no kernel for sm_80 and sm_90
# keeps registers in local memory and that hot ones move 128 bits at a time; wanted.cpp has the table. --table prints how
# they fill an H100 or H200 instead, as in docs/gpu.md. Wants cuobjdump and nvdisasm, of the CUDA toolkit or, fetched once
# (5.5 MB) into build/fetched/cuda_sass or $PLUMB_FETCHED/cuda_sass, of PyPI.
#
# Exit codes: 0 proved, 1 a kernel isn't as wanted, 77 skipped: no CUDA in the build, or no disassembler.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
root=$(cd "$(dirname "$0")/../.." && pwd)
fetched=${PLUMB_FETCHED:-$root/build/fetched}/cuda_sass
task=check
if [ "${1:-}" = --table ]; then
  task=table
  shift
fi
build=${1:-$root/build/release}

tool_wheels=(
  "nvidia-cuda-cuobjdump==13.5.37 38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58"
  "nvidia-cuda-nvdisasm==13.5.37 d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca"
)

skip() {
  echo "skipped: $*"
  exit 77
}

objects=("$build"/kernels/cuda/CMakeFiles/plumb_cuda{,_warpgroups}.dir/*.cu.o)
[ -e "${objects[0]}" ] || skip "$build has no kernels: CUDA is not part of this build"
PATH=$PATH:/usr/local/cuda/bin
if ! command -v cuobjdump >/dev/null || ! command -v nvdisasm >/dev/null; then
  [ "$(uname -m)" = x86_64 ] || skip "cuobjdump and nvdisasm are fetched for x86_64 only, this is $(uname -m)"
  "$root/launch/fetch_wheels.sh" "$fetched" bin "${tool_wheels[@]}" ||
    skip "the toolkit has no cuobjdump and nvdisasm, and they could not be fetched (why stands above)"
  PATH=$fetched/bin:$PATH
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for object in "${objects[@]}"; do
  for architecture in sm_80 sm_90; do
    cuobjdump --dump-resource-usage --dump-sass --gpu-architecture "$architecture" "$object"
  done >"$scratch/$(basename "$object")" 2>&1
done
"$build/bin/check_kernels" "$task" "$scratch"/*
