# Which of CUDA's libraries programs want. Sourced by launch/bundle, and by `cmake --install` of a CUDA build.
# shellcheck shell=bash

# The driver's, and what NVIDIA's packages bring.
cuda='^lib(cuda|cudart|cudnn.*|cublas.*|nccl|nvrtc.*|nvJitLink|nvidia-ml)\.so'

is_cuda_library() { [[ $1 =~ $cuda ]]; }

# list_cuda_libraries PROGRAM…: lines "PROGRAM LIBRARY", as start_program.sh reads them; programs link all but cuBLASLt,
# which they load (kernels/cuda/vendors/dense_cublaslt.cpp).
list_cuda_libraries() {
  local program
  for program in "$@"; do
    {
      readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E "$cuda"
      grep -aoE 'libcublasLt\.so\.[0-9]+' "$program" | sort -u
    } | sed "s/^/${program##*/} /" || true
  done
}

# find_cuda_library PROGRAM LIBRARY: its path, from where the program in a build folder takes it.
find_cuda_library() {
  local path folder
  path=$(ldd "$1" | awk -v name="$2" '$1 == name { print $3 }')
  for folder in $(readelf -d "$1" | sed -n 's/.*RUNPATH.*\[\(.*\)\]/\1/p' | tr : ' '); do
    [ -n "$path" ] || [ ! -e "$folder/$2" ] || path=$folder/$2
  done
  echo "$path"
}
