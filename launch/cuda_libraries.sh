# Which of CUDA's libraries programs want. Sourced by launch/bundle, and by `cmake --install` of a CUDA build.
# shellcheck shell=bash

# The driver's, and what NVIDIA's packages bring.
cuda='^lib(cuda|cudart|cudnn.*|cublas.*|nccl|nvrtc.*|nvJitLink|nvidia-ml)\.so'

is_cuda_library() { [[ $1 =~ $cuda ]]; }

# list_cuda_libraries PROGRAM…: lines "PROGRAM LIBRARY", as start_program.sh reads them.
list_cuda_libraries() {
  local program
  for program in "$@"; do
    readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E "$cuda" | sed "s/^/${program##*/} /" || true
  done
}
