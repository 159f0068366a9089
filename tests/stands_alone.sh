#!/usr/bin/env bash
# stands_alone.sh ROOT PLUMBLINE CXX: plumbline links none of the engine's libraries, and configures where none is.
. "${BASH_SOURCE[0]%/*}/prelude.sh"
root=$1 plumbline=$2 cxx=$3
ldd "$plumbline" >"$scratch/libraries"
grep -q 'libstdc++' "$scratch/libraries" || { echo "ldd names no libraries: $(cat "$scratch/libraries")" && exit 1; }
if grep -E 'lib(mpi|dnnl|gomp|cu|nccl|jpeg)' "$scratch/libraries"; then
  echo "plumbline needs these, which belong to the programs that train"
  exit 1
fi
disabled=()
for library in MPI dnnl JPEG OpenMP CUDAToolkit GTest; do
  disabled+=("-DCMAKE_DISABLE_FIND_PACKAGE_$library=ON")
done
cmake -S "$root" -B "$scratch/build" -DPLUMB_ENGINE=OFF -DCMAKE_CXX_COMPILER="$cxx" "${disabled[@]}" >"$scratch/said" 2>&1 ||
  { cat "$scratch/said" && exit 1; }
cmake --build "$scratch/build" --target help >"$scratch/targets"
grep -q plumbline "$scratch/targets"
if grep bench_resnet50 "$scratch/targets"; then
  echo 'the programs that train are built without the engine'
  exit 1
fi
