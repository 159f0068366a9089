#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are scripts
# gpu_check_test.sh BEHAVIOUR SOURCE_DIR: tests/gpu/gpu_check.sh in a bundle whose programs only pretend.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
behavior=$1
sources=$2
mounted=no
trap '[ $mounted = no ] || umount "$scratch/small"; rm -rf "$scratch"' EXIT
bundle=$scratch/bundle out=$scratch/out tools=$scratch/tools/bin
mkdir -p "$bundle/bin" "$tools" "$scratch/temporary"
cp "$sources"/tests/gpu/* "$bundle"
echo 123456789abc >"$bundle/commit"
export TMPDIR=$scratch/temporary CUDA_HOME=$scratch/tools ACT=$scratch/act CALLS=$scratch/calls COMMIT=123456789abc GPU=H100
export PATH=$tools:$PATH
touch "$ACT" "$CALLS"

# fake FILE: a program that notes its call, does what $ACT says, and prints a result.
fake() {
  cat >"$1" <<'END'
#!/bin/bash
[ "$1" != --version ] || { printf 'bench 0.2.0 (commit %s, Release)\ncuDNN: 9.19.0\ncuBLASLt: 13.1.0\n' "$COMMIT" && exit 0; }
echo "${0##*/} $*" >>"$CALLS"
script=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status)
source "$ACT"
printf '{"device_name": "%s (sm_90), driver for CUDA 13.0",\n"loss": [7.0, 6.5], "images_per_second": {\n"mean": 100.0\n}}\n' "$GPU"
END
  chmod +x "$1"
}
for name in bench_resnet50 bench_arcface; do fake "$bundle/bin/$name"; done

# check [VARIABLE=VALUE…]: a call of gpu_check.sh.
check() {
  rm -f "$out/gpu_check.tgz"
  : >"$CALLS"
  try env "$@" "$bundle/gpu_check.sh" "$out"
}
expect_call() { grep -qF -e "$1" "$CALLS" || fail "no call with '$1': $(cat "$CALLS")"; }
# expect_packed FILE WORD: in the archive.
expect_packed() {
  local text
  text=$(tar -xzOf "$out/gpu_check.tgz" "gpu_check/$1") || fail "no $1 in the archive: $output"
  [[ $text == *"$2"* ]] || fail "'$2' is missing in $1: $text"
}

case $behavior in
  without_a_gpu)
    for why in '--device cuda: no CUDA GPU answers; install the driver' 'libcublasLt.so.13 was not found; install it'; do
      echo "echo 'bench_resnet50: $why' >&2; exit 69" >"$ACT"
      check
      expect_code 69
      expect_word "nothing was checked, as the first run could not start: bench_resnet50: $why"
      expect_word "  fp16_bs256: "
      [ "$(wc -l <"$CALLS")" -eq 1 ] || fail "more was tried: $(cat "$CALLS")"
      expect_packed summary.txt "1 done"
    done
    ;;
  a_gpu_that_vanishes_ends_it)
    printf '#!/bin/bash\n[ ! -e "$GONE" ] || { echo "Unable to determine the device handle" >&2; exit 9; }\n' >"$tools/nvidia-smi"
    chmod +x "$tools/nvidia-smi"
    echo '[[ $* != *tf32* ]] || { echo "bench_resnet50: cudaErrorUnknown" >&2; touch "$GONE"; exit 70; }' >"$ACT"
    export GONE=$scratch/gone
    check ONLY='precisions|faces'
    expect_code 69
    expect_word "the GPU stopped answering in tf32_bs128, so nothing more is started: bench_resnet50: cudaErrorUnknown"
    expect_word "fp16_r50: the GPU stopped answering in tf32_bs128"
    expect_packed runs.tsv $'bf16_bs256\tok'
    [[ $(tail -n 1 "$CALLS") == *tf32* ]] || fail "more was tried: $(cat "$CALLS")"
    ;;
  programs_of_other_sources_are_refused)
    check COMMIT=123456789abc-dirty
    expect_code 65
    expect_word "built from sources that differ from commit 123456789abc; commit and build again, or pass --dirty"
    check COMMIT=cba987654321
    expect_code 65
    expect_word "built from commit cba987654321, but this is 123456789abc; build again, or pass --dirty"
    try env COMMIT=cba987654321-dirty ONLY=none "$bundle/gpu_check.sh" "$out" --dirty
    expect_code 0
    # How programs know it.
    command -v git >/dev/null && command -v cmake >/dev/null || exit 0
    git init -q "$scratch/tree" && cd "$scratch/tree"
    touch source && git add source
    git -c user.name=a -c user.email=a commit -qm one
    for state in '' -dirty; do
      cmake -D SOURCE="$PWD" -D IN="$sources/base/build_info.h.in" -D OUT="$scratch/info.h" -D VERSION=1 \
        -D BUILD_TYPE=Release -D COMPILER=gcc -P "$sources/cmake/commit.cmake"
      grep -q "kCommit = \"$(git rev-parse --short=12 HEAD)$state\"" "$scratch/info.h" || fail "not '$state': $(cat "$scratch/info.h")"
      echo changed >source
    done
    ;;
  time_decides_what_runs)
    check BUDGET_S=18
    expect_code 64
    expect_word "BUDGET_S 18: too short for the first step, which takes 4 s, and for packing, 15 s; give 440"
    try "$bundle/gpu_check.sh" --list
    expect_code 0
    [[ $output =~ "s, "([0-9]+)" s in all: peers:" && ${BASH_REMATCH[1]} -le 440 ]] || fail "peers don't fit into the first call"
    [[ ! $output =~ \ (9[1-9]|[1-9][0-9][0-9])\ s: ]] || fail "a run should take longer than 90 s: $output"
    check BUDGET_S=30 ONLY='cpu|fp32_bs128'
    expect_code 0
    expect_word "fp32_bs128: takes about 30 s, "
    expect_packed summary.txt "2 done, 0 of them failed"
    echo '[[ $* != *"--fusion off"* ]] || sleep 100' >"$ACT"
    check BUDGET_S=31 ONLY=fp16_bs256_unfused
    expect_code 1
    expect_word "stopped after"
    ;;
  a_failed_comparison_says_what_it_found)
    needs python3 python3
    echo '[[ $* != *--fp32* ]] || { echo "{\"loss\": [7.0, 9.75]}"; exit 0; }' >"$ACT"
    check ONLY='cpu|gpu_fp32|fp32_as_on_cpu'
    expect_code 1
    expect_packed runs.tsv $'fp32_as_on_cpu\tfailed\t'
    expect_word "first loss 0.0e+00 away, worst 5.0e-01"
    check ONLY=fp32_as_on_cpu
    expect_packed runs.tsv $'fp32_as_on_cpu\tleft out\t'
    ! tar -tzf "$out/gpu_check.tgz" | grep fp32_as_on_cpu || fail "a comparison that was left out has files"
    ;;
  what_stops_it_costs_one_run)
    echo '[[ $* != *--bf16* ]] || kill -9 $script' >"$ACT"
    check ONLY='headline|precisions'
    expect_code 137
    expect_packed runs.tsv $'first_run\tok'
    rm -r "${out:?}"
    echo '[[ $* != *--tf32* ]] || { kill -TERM $script; sleep 100; }' >"$ACT"
    check ONLY='precisions|faces'
    expect_code 143
    expect_word "fp16_y1: ended by signal 15"
    expect_packed runs.tsv $'bf16_bs256\tok'
    [ "$(ls -A "$out")" = gpu_check.tgz ] || fail "more than the archive: $(ls -A "$out")"
    ;;
  a_full_disk)
    mkdir "$scratch/small"
    mount -t tmpfs -o size=64k tmpfs "$scratch/small" 2>/dev/null || skip "this user may not mount a small disk"
    mounted=yes
    out=$scratch/small
    echo '[[ $* != *"--bf16"* ]] || head -c 200000 /dev/urandom' >"$ACT"
    check ONLY=precisions
    expect_code 74
    expect_word "gpu_check.tgz can't be written (gzip: stdout: No space left on device); free space"
    expect_word "what was done lies in $TMPDIR/"
    expect_word "fp32_bs128: $out/gpu_check.tgz can't be written"
    expect_packed runs.tsv $'first_run\tok'
    rm "$scratch"/small/*
    out=$scratch/out
    check ONLY=precisions TMPDIR="$scratch/small"
    expect_code 74
    expect_word "fp32_bs128: $scratch/small/gpu_check."
    expect_packed runs.tsv $'first_run\tok'
    ;;
  a_second_call_goes_on)
    # The first call tunes, passes one step, and fails in another.
    echo 'mkdir -p "$XDG_CACHE_HOME/plumbline/tuning" && echo tuned >"$XDG_CACHE_HOME/plumbline/tuning/1.json"
      [[ $* != *--bf16* ]] || exit 1' >"$ACT"
    check ONLY='batches|precisions'
    expect_code 1
    mkdir "$scratch/first" "$scratch/cached" && mv "$out/gpu_check.tgz" "$scratch/first/gpu_check_1.tgz"
    echo compiled >"$scratch/cached/kernel" && tar -C "$scratch/cached" -czf "$scratch/first/gpu_check_caches.tgz" .
    echo '[[ $* != *--bf16* ]] || cat "$XDG_CACHE_HOME/plumbline/tuning/1.json" >>"$CALLS"' >"$ACT"
    check ONLY='batches|precisions' EARLIER="$scratch/first"
    expect_code 0
    expect_word "tuned engines of gpu_check_1.tgz"
    expect_word "batches: passed in gpu_check_1.tgz"
    grep -qx tuned "$CALLS" || fail "the tuned engines aren't there: $(cat "$CALLS")"
    [ -s "$TMPDIR/plumbline_peer_caches/kernel" ] || fail "compiled code isn't there"
    expect_packed passed.txt batches
    # Elsewhere, and of other sources, nothing has passed.
    check ONLY='batches|precisions' EARLIER="$scratch/first" GPU=A100
    expect_word "gpu_check_1.tgz: of H100, cuDNN 9.19.0, cuBLASLt 13.1.0, not of A100, cuDNN 9.19.0, cuBLASLt 13.1.0; its steps run"
    expect_packed runs.tsv $'fp16_bs512\tok'
    echo cba987654321 >"$bundle/commit"
    check ONLY='batches|precisions' EARLIER="$scratch/first" COMMIT=cba987654321
    expect_word "gpu_check_1.tgz: of commit 123456789abc, not of cba987654321; its steps run again"
    expect_packed runs.tsv $'fp16_bs512\tok'
    ;;
  peers_run_in_turn)
    needs python3 python3
    for name in torch torchvision; do echo >"$scratch/$name.py"; done
    for name in ceilings pytorch_resnet50; do
      printf 'import os, sys\nopen(os.environ["CALLS"], "a").write("%s " + " ".join(sys.argv[1:]) + "\\n")\nprint("{}")\n' $name \
        >"$bundle/$name.py"
    done
    echo 'open(os.environ["TORCHINDUCTOR_CACHE_DIR"] + "_kernel", "w").write("compiled")' >>"$bundle/pytorch_resnet50.py"
    check PYTHONPATH="$scratch" ONLY='peers|peers_at_their_best'
    expect_code 0
    order=$(sed -n '2,$ { s/^bench_.*/p/p; s/.*--compile reduce.*/r/p; s/^pytorch.*--compile .*/c/p; s/^pytorch.*/e/p }' \
      "$CALLS" | tr -d '\n')
    [ "$order" = pecpecrpc ] || fail "runs were in the order $order"
    expect_call "pytorch_resnet50 --fp16 --bs 256 --compile --log-dir $TMPDIR/"
    tar -xzOf "$out/gpu_check_caches.tgz" ./inductor_kernel >/dev/null || fail "compiled code isn't packed"
    # Compilers in the background: what an earlier call has compiled isn't among it.
    check PYTHONPATH="$scratch" ONLY='compile_ahead|compilers_end'
    expect_word "compilers ended after another "
    [ "$(grep -c 'pytorch_resnet50 .*--bs 256 --iters 1' "$CALLS")" -eq 2 ] || fail "not two modes: $(cat "$CALLS")"
    rm -r "$TMPDIR/plumbline_peer_caches" "$out/gpu_check_caches.tgz"
    check PYTHONPATH="$scratch" ONLY='compile_ahead|compilers_end'
    expect_call "pytorch_resnet50 --fp16 --compile --bs 256 --iters 1"
    check PYTHONPATH=/nowhere ONLY='peers|parity'
    expect_code 0
    python3 -c 'import torch' 2>/dev/null || expect_word "eager_1: python3 has no torch"
    python3 -c 'import torchvision' 2>/dev/null || expect_word "resnet50_fp32: there is no resnet50_start.safetensors to start from"
    ;;
  *) fail "unknown behavior $behavior" ;;
esac
