#!/usr/bin/env bash
# bundle_test.sh SOURCE_DIR BUILD_DIR: packs the programs of a build and runs them where nothing but glibc and a shell is
# there. 77 if this user may not chroot.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
sources=$1
build=$2
. "$sources/launch/cuda_libraries.sh"

chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot) || skip "chroot is missing"
"$chroot" / true 2>/dev/null || skip "only root may chroot"
jail=$(mktemp -d "$build/bundle_test.XXXX")
trap 'rm -rf "$jail" "$scratch"' EXIT

# into FILE…: the file under its own name in the jail; a link where it can be one.
into() {
  local file target
  for file in "$@"; do
    target=$jail$file
    mkdir -p "${target%/*}"
    ln -L "$file" "$target" 2>/dev/null || cp -L "$file" "$target"
  done
}

make_jail() {
  local loader
  mkdir -p "$jail/tmp" "$jail/dev" "$jail/proc" "$jail/bin"
  cp -L "$(command -v sh)" "$jail/bin/sh"
  cp /proc/meminfo /proc/cpuinfo "$jail/proc/"
  loader=$(ldd /bin/sh | grep -o '/[^ ]*ld-linux[^ ]*')
  into "$loader"
  for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1; do
    into "$(ldconfig -p | awk -v name="$name" '$1 == name && !found++ { print $NF }')"
  done
}

# inside COMMAND: in the jail, with an environment of its own; exit code in `code`, all output in `output`.
inside() {
  code=0
  output=$(cd / && env -i "$chroot" "$jail" /bin/sh -c "cd /tmp; $1" 2>&1) || code=$?
}

# What a machine with a toolkit has, without the 1 GB that cuDNN loads only to work on a GPU.
bring_cuda_libraries() {
  local program library
  while read -r program library; do
    local path
    path=$(find_cuda_library "$build/bin/$program" "$library")
    mkdir -p "$jail/usr/local/cuda/lib64"
    ln -L "$path" "$jail/usr/local/cuda/lib64/$library" 2>/dev/null ||
      cp -L "$path" "$jail/usr/local/cuda/lib64/$library"
  done < <(sort -u -k 2 "$jail/plumbline/lib/cuda_libraries.txt")
}

launch_bundle() {
  "$sources/launch/bundle" --from "$build" --out "$jail/plumbline.tar.gz"
  local kib
  kib=$(du -k "$jail/plumbline.tar.gz" | cut -f1)
  [ "$kib" -le 61440 ] || fail "the bundle has $kib KiB, more than 60 MiB"
  tar -C "$jail" -xzf "$jail/plumbline.tar.gz"
}

make_jail
launch_bundle
bring_cuda_libraries

inside "/plumbline/bin/bench_resnet50 --version"
expect_code 0
expect_word "bench_resnet50"
expect_word "Open MPI"

inside "/plumbline/bin/bench_arcface --version"
expect_code 0
expect_word "bench_arcface"

inside "/plumbline/bin/mpirun --allow-run-as-root --oversubscribe -np 2 /plumbline/bin/bench_allreduce --device cpu -b 1K -e 1K"
expect_code 0
expect_word "busbw"

"$jail/plumbline/launch/run" --print -H n1,n2 bench_resnet50 >/dev/null || fail "launch/run of the bundle"

# The check of a GPU, as far as it goes without one, from the bundle.
ONLY='cpu|gpu_fp32' "$jail/plumbline/gpu_check.sh" "$jail/checked" --rehearse --dirty || fail "gpu_check.sh of the bundle"
[ -s "$jail/checked/gpu_check.tgz" ] || fail "gpu_check.sh of the bundle left nothing"
for script in pytorch_resnet50 make_arcface; do
  [ -x "$jail/plumbline/$script.py" ] || fail "the bundle has no $script.py"
done

run="--device cpu --threads 1 --bs 1 --iters 3 --warmup 1 --image-size 32 --log-dir logs --output runs"
inside "/plumbline/bin/bench_resnet50 $run"
expect_code 0
expect_word "images/s"

# The bundle's own mpirun.
inside "/plumbline/bin/mpirun --allow-run-as-root --oversubscribe -np 2 /plumbline/bin/bench_resnet50 $run"
expect_code 0
expect_word "1n2g"
expect_word "replicas_identical: yes"

inside "/plumbline/bin/plumbline analyze logs --warmup 1 --iters 3"
expect_code 0
for case in 1n1g 1n2g; do expect_word "$case"; done

echo "plumbline libcublasLt.so.99" >>"$jail/plumbline/lib/cuda_libraries.txt"
inside "/plumbline/bin/plumbline --version"
expect_code 69
expect_word "libcublasLt.so.99 was not found"
mkdir "$jail/elsewhere"
touch "$jail/elsewhere/libcublasLt.so.99"
inside "PLUMB_CUDA_LIBRARIES=/nowhere:/elsewhere /plumbline/bin/plumbline --version"
expect_code 0
