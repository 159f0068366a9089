#!/usr/bin/env bash
# volta_lane.sh: proves without CUDA 12's nvcc and without a GPU that the CUDA device can be built for V100: every kernel
# becomes sm_70 code through clang and CUDA 12's ptxas, every host source that wants nothing but the CUDA runtime is checked
# against CUDA 12's headers. Fetches those (45 MB) once into build/fetched/cuda12, or $PLUMB_FETCHED/cuda12.
#
# Exit codes: 0 proved, 1 something doesn't compile, 77 skipped: no network or no clang.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
root=$(cd "$(dirname "$0")/.." && pwd)
fetched=${PLUMB_FETCHED:-$root/build/fetched}
cuda12=$fetched/cuda12

compiler_wheels=(
  "nvidia-cuda-nvcc-cu12==12.9.86 5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0"
  "nvidia-cuda-runtime-cu12==12.9.79 25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3"
  "nvidia-cuda-cccl-cu12==12.9.27 37869e17ce2e1ecec6eddf1927cca0f8c34e64fd848d40453df559091e2d7117"
)

skip() {
  echo "skipped: $*"
  exit 77
}

# Sets `clang` to the first of the versions that know CUDA 12's headers and, as C++20, <source_location>.
find_clang() {
  local name
  for name in clang++-19 clang++-18 clang++-17 clang++-16; do
    if command -v "$name" >/dev/null; then
      clang=$name
      return 0
    fi
  done
  return 1
}

# compile WHAT SOURCE OPTION…: one compilation; what the compiler says only if it fails.
compile() {
  local what=$1 source=$2 report
  shift 2
  if report=$("$clang" -std=c++20 -I "$root" -Wno-unknown-cuda-version "$@" "$source" 2>&1); then
    echo "$what"
  else
    printf '%s\nFAILED: %s\n' "$report" "$what"
    return 1
  fi
}

# A cubin says its architecture in the lowest byte of its ELF flags.
is_sm_70() { [ "$(od -An -tu1 -j48 -N1 "$1" | tr -d ' ')" = 70 ]; }

# check_kernels KERNEL…: all at once, so that headers are read once.
check_kernels() {
  local cuda=(-x cuda --cuda-path="$cuda12" --cuda-gpu-arch=sm_70 -isystem "$root/kernels/cuda/native")
  printf '#include "%s"\n' "$@" >"$scratch/kernels.cu"
  compile "sm_70 code of $# kernel sources, as one" "$scratch/kernels.cu" "${cuda[@]}" --cuda-device-only -O0 \
    -Xcuda-ptxas -O0 -c -o "$scratch/kernels.cubin"
  is_sm_70 "$scratch/kernels.cubin" || { echo "FAILED: they became code for another GPU than sm_70"; return 1; }
  compile "their host sides" "$scratch/kernels.cu" "${cuda[@]}" --cuda-host-only -fsyntax-only
}

# check_hosts SOURCE…: all at once, so that headers are read once.
check_hosts() {
  printf '#include "%s"\n' "$@" >"$scratch/hosts.cpp"
  compile "$# host sources, as one" "$scratch/hosts.cpp" -x c++ -isystem "$cuda12/include" -isystem "$root/kernels/cuda/native" \
    -D PLUMB_BUILT_ARCHITECTURES='"70"' -fsyntax-only
}

check_compiles() {
  local kernels=("$root"/kernels/cuda/own/*.cu) hosts
  # But for the stub and those that want headers of cuDNN and cuBLAS.
  mapfile -t hosts < <(printf '%s\n' "$root"/kernels/cuda/{,runtime/,vendors/}*.cpp | grep -vE '(_cudnn|cublaslt|_stub)\.cpp$')
  [ -e "${kernels[0]}" ] || { echo "FAILED: no kernels in kernels/cuda/own"; return 1; }
  check_kernels "${kernels[@]}"
  check_hosts "${hosts[@]}"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ "$(uname -m)" = x86_64 ] || skip "CUDA 12's ptxas is fetched for x86_64 only, this is $(uname -m)"
"$root/launch/fetch_wheels.sh" "$cuda12" "include bin nvvm/libdevice" "${compiler_wheels[@]}" ||
  skip "CUDA 12's headers and ptxas could not be fetched (why stands above)"
mkdir -p "$cuda12/lib64" # clang takes no folder without one for CUDA's
find_clang || skip "no clang++ from 16 to 19 is installed, which CUDA 12's headers need (Debian: clang-16)"
check_compiles
