#!/usr/bin/env bash
# volta_plans.sh FETCHED: builds plan_layouts.cpp and plan_matrix.cpp against CUDA 12 and cuDNN 9.10.2, the last line that
# knows sm_70, which it fetches into FETCHED (0.8 GB), and plans the convolutions of every model for a V100. Exit codes:
# those of cuda_plan_matrix, 69 what it wants could not be fetched.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
root=$(cd "$(dirname "$0")/../.." && pwd)
fetched=$1
wheels=(
  "nvidia-cudnn-frontend==1.32.0 c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0"
  "nvidia-cuda-runtime-cu12==12.9.79 25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3"
  "nvidia-cuda-nvrtc-cu12==12.9.86 210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4"
  "nvidia-cudnn-cu12==9.10.2.21 949452be657fa16687d0930933f032835951ef0892b37d2d53824d1a84dc97a8"
)
"$root/launch/fetch_wheels.sh" "$fetched/cudnn_volta" "include lib" "${wheels[@]}"

build=$root/build/volta_plans
cmake --preset programs -S "$root" -B "$build" -D PLUMB_CUDA=OFF --log-level=WARNING >/dev/null
cmake --build "$build" --target plumb_kernels plumb_cuda_stub >/dev/null

sources=("$root"/kernels/cuda/{conv,conv_cudnn,conv_cudnn_nvrtc,runtime,device_stub}.cpp
  "$root"/bench/plan/largest_fit.cpp
  "$root"/tests/cuda_plans/{absent_gpu,fused_patterns,problems}.cpp)
compiled() { echo "$build/volta_$(basename "$1" .cpp).o"; }
compile() {
  g++ -std=c++20 -O1 -ffunction-sections -D CUDNN_FRONTEND_SKIP_JSON_LIB -I "$root" -isystem "$fetched/cudnn_volta/include" \
    -isystem "$fetched/cuda12/include" -c "$1" -o "$(compiled "$1")"
}
objects=()
for source in "${sources[@]}"; do
  compile "$source"
  objects+=("$(compiled "$source")")
done
libraries=$fetched/cudnn_volta/lib
g++ -shared -fPIC -O1 "$root/tests/cuda_plans/absent_cublaslt.cpp" -o "$build/libcublasLt.so.12"
for program in plan_layouts plan_matrix; do
  compile "$root/tests/cuda_plans/$program.cpp"
  g++ -Wl,--gc-sections "$(compiled $program.cpp)" "${objects[@]}" \
    "$build"/{kernels/libplumb_kernels,models/libplumb_models,base/libplumb_base}.a -fopenmp -ldnnl -lfmt -lpthread -ldl \
    -L "$libraries" -l:libcudnn.so.9 -l:libcudart.so.12 -Wl,-rpath,"$libraries" -o "$build/cuda_$program"
  LD_LIBRARY_PATH=$libraries:$build "$build/cuda_$program" sm_70
done
