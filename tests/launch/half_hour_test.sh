#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are scripts
# half_hour_test.sh BEHAVIOUR SOURCE_DIR: tests/gpu/half_hour.sh in a bundle whose programs only pretend.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
behaviour=$1
sources=$2
scratch=$(mktemp -d)
mounted=no
trap '[ $mounted = no ] || umount "$scratch/small"; rm -rf "$scratch"' EXIT
bundle=$scratch/bundle
out=$scratch/out
mkdir -p "$bundle/bin" "$scratch/tools/bin" "$scratch/temporary"
cp "$sources"/tests/gpu/* "$bundle"
export TMPDIR=$scratch/temporary CUDA_HOME=$scratch/tools ACT=$scratch/act CALLS=$scratch/calls
touch "$ACT" "$CALLS"

fail() {
  echo "FAILED: $*"
  exit 1
}

# fake FILE: a program that notes its call, does what $ACT says, and prints a result.
fake() {
  cat >"$1" <<'END'
#!/bin/bash
[ "$1" != --version ] || { printf 'cuDNN: 9.19.0\ncuBLASLt: 13.1.0\n' && exit 0; }
echo "${0##*/} $*" >>"$CALLS"
script=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status)
source "$ACT"
printf '{"device_name": "H100 (sm_90), driver for CUDA 13.0",\n"loss": [7.0, 6.5], "images_per_second": {\n"mean": 100.0\n}}\n'
END
  chmod +x "$1"
}
for name in bench_resnet50 bench_arcface; do fake "$bundle/bin/$name"; done

# part PART [VARIABLE=VALUE…]: leaves the exit code in `code`, all output in `output`.
part() {
  code=0
  output=$(env "${@:2}" "$bundle/half_hour.sh" "$1" "$out" 2>&1) || code=$?
}
# try COMMAND…: the same of any command.
try() {
  code=0
  output=$("$@" 2>&1) || code=$?
}
expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $output"; }
expect_word() { [[ $output == *"$1"* ]] || fail "'$1' is missing in: $output"; }
expect_call() { grep -qF -e "$1" "$CALLS" || fail "no call with '$1': $(cat "$CALLS")"; }
# expect_packed PART FILE WORD: in the archive of the part.
expect_packed() {
  local text
  text=$(tar -xzOf "$out/check_$1.tgz" "check_$1/$2") || fail "no $2 in the archive: $output"
  [[ $text == *"$3"* ]] || fail "'$3' is missing in $2: $text"
}

# tuned_by ENVIRONMENT PROBLEM: the archive of a first part that tuned this, and nothing else in $out.
tuned_by() {
  rm -rf "$out"
  mkdir -p "$out" "$scratch/old/check_first/cache/plumbline"
  printf '{\n "environments": {\n  "%s": {\n   "%s": [\n   ]\n  }\n },\n "format": "plumbline.tuning/2"\n}\n' "$@" \
    >"$scratch/old/check_first/cache/plumbline/tuning.json"
  tar -C "$scratch/old" -czf "$out/check_first.tgz" check_first
}

case $behaviour in
  without_a_gpu)
    echo 'echo "bench_resnet50: option --device: no CUDA GPU answers; install the driver" >&2; exit 69' >"$ACT"
    part first
    expect_code 69
    expect_word "nothing was checked, as the first run found no GPU: bench_resnet50: option --device: no CUDA GPU answers"
    expect_word "compiled_3: no GPU"
    [ "$(wc -l <"$CALLS")" -eq 1 ] || fail "more was tried: $(cat "$CALLS")"
    expect_packed first summary.txt "1 done"
    ;;
  without_a_library)
    echo 'echo "bench_resnet50: libcublasLt.so.13 was not found in PLUMB_CUDA_LIBRARIES; install it" >&2; exit 69' >"$ACT"
    part first
    expect_code 69
    expect_word "nothing was checked, as the first run could not start: bench_resnet50: libcublasLt.so.13 was not found"
    expect_word "compiled_3: bench_resnet50: libcublasLt.so.13 was not found"
    [[ $output != *"no GPU"* ]] || fail "it looks like a missing GPU: $output"
    [ "$(wc -l <"$CALLS")" -eq 1 ] || fail "more was tried: $(cat "$CALLS")"
    ;;
  without_fused_steps)
    echo 'while [ $# -gt 0 ]; do
        case $1 in
          --out) mkdir -p "$2/run" && echo "{\"steps\": [{\"kind\": \"${KIND}\"}]}" >"$2/run/program.json" ;;
          --save-weights) echo >"$2" ;;
        esac
        shift
      done' >"$ACT"
    part first ONLY='fused|plain|fused_as_plain' KIND=norm_statistics
    expect_code 0
    expect_word "fused_as_plain: nothing was fused, so there is nothing to compare"
    rm -r "$out"
    part first ONLY='fused|plain|fused_as_plain' KIND=norm_finalize
    [[ $output != *"nothing was fused"* ]] || fail "it was fused: $output"
    ;;
  a_failed_comparison_says_what_it_found)
    command -v python3 >/dev/null || { echo "skipped: python3 isn't on this machine"; exit 77; }
    echo '[[ $* != *--fp32* ]] || { echo "{\"loss\": [7.0, 9.75]}"; exit 0; }' >"$ACT"
    part first ONLY='on_cpu|fp32|fp32_as_on_cpu'
    expect_code 1
    expect_packed first runs.tsv $'fp32_as_on_cpu\tfailed\t'
    expect_word "first loss 0.0e+00 away, worst 5.0e-01"
    ;;
  every_part_fits)
    for part in first second third; do
      try "$bundle/half_hour.sh" --list $part
      expect_code 0
      seconds=$(awk '{ sum += $2 } END { print sum }' <<<"$output")
      [ "$seconds" -le 570 ] || fail "the runs of $part take $seconds s"
      [[ ! $output =~ "at most "(9[1-9]|[1-9][0-9][0-9]) ]] || fail "a run may take more than 90 s: $output"
    done
    ;;
  little_time_left)
    try env BUDGET_S=150 "$bundle/half_hour.sh" --list first
    expect_code 0
    [[ $output =~ fp16_bs256_unfused[^$'\n']*--profile\ --device\ cuda$'\n' ]] || fail "not in 150 s: $output"
    [[ $output =~ fp32_bs128[^$'\n']*"(only if others are faster)" ]] || fail "in 150 s: $output"
    part first BUDGET_S=25 ONLY='fp32|tuning_fp16|fp32_bs128'
    expect_code 0
    expect_word "tuning_fp16: takes about 12 s, "
    expect_word "fp32_bs128: takes about 30 s, "
    expect_packed first summary.txt "2 done, 0 of them failed"
    ;;
  a_hanging_run_costs_its_limit)
    echo '[[ $* != *"--fusion off"* ]] || sleep 100' >"$ACT"
    part first BUDGET_S=31 ONLY=plain
    expect_code 1
    expect_word "stopped after"
    expect_packed first runs.tsv $'plain\ttimeout'
    ;;
  what_stops_it_costs_one_run)
    echo '[[ $* != *--fp32* ]] || kill -9 $script' >"$ACT"
    part first
    expect_code 137
    expect_packed first runs.tsv $'first_run\tok'
    expect_packed first on_cpu.json '"loss"'
    rm "$out/check_first.tgz"
    echo '[[ $* != *--fp32* ]] || { kill -TERM $script; sleep 100; }' >"$ACT"
    part first
    expect_code 143
    expect_word "ours_3: ended by signal 15"
    expect_packed first runs.tsv $'on_cpu\tok'
    [ "$(ls -A "$out")" = check_first.tgz ] || fail "more than the archive: $(ls -A "$out")"
    ;;
  a_full_disk)
    mkdir "$scratch/small"
    mount -t tmpfs -o size=64k tmpfs "$scratch/small" 2>/dev/null || {
      echo "skipped: this user may not mount a small disk"
      exit 77
    }
    mounted=yes
    out=$scratch/small
    echo '[[ $* != *"--device cpu"* ]] || head -c 200000 /dev/urandom' >"$ACT"
    part first ONLY='on_cpu|fp32|fp16'
    expect_code 74
    expect_word "check_first.tgz can't be written (gzip: stdout: No space left on device); free space"
    expect_word "what was done lies in $TMPDIR/"
    expect_word "fp16: $out/check_first.tgz can't be written"
    expect_packed first runs.tsv $'first_run\tok'
    last=$(echo "$TMPDIR"/half_hour.*/check_first/on_cpu.json)
    [ -s "$last" ] || fail "the last run is lost"
    rm "$scratch"/small/*
    out=$scratch/out
    part first ONLY='on_cpu|fp32|fp16' TMPDIR="$scratch/small"
    expect_code 74
    expect_word "half_hour.sh: $scratch/small/half_hour."
    expect_word "fp16: $scratch/small/half_hour."
    expect_packed first runs.tsv $'first_run\tok'
    ;;
  bad_options_are_refused)
    part lunch
    expect_code 64
    expect_word "'lunch' is not one of the parts first, second and third"
    try "$bundle/half_hour.sh" first
    expect_code 64
    try "$bundle/half_hour.sh" first "$out" --fast
    expect_code 64
    part first BUDGET_S=soon
    expect_code 64
    part first 'ONLY=('
    expect_code 64
    part second EARLIER=/nowhere
    expect_code 64
    touch "$scratch/file"
    try "$bundle/half_hour.sh" first "$scratch/file/out"
    expect_code 73
    expect_word "'$scratch/file/out' can't be made"
    touch "$out/check_first.tgz"
    part first
    expect_code 73
    expect_word "check_first.tgz exists"
    try "$bundle/half_hour.sh" first "$out" --programs /nowhere
    expect_code 69
    expect_word "no bench_resnet50 in /nowhere"
    ;;
  variants_alternate)
    part third ROUNDS=2 ONLY='variant.*' 'VARIANTS=--fp16;; --backbone r50 --fp16'
    expect_code 0
    runs=$(sed -n 's/^\(bench_[a-z0-9]*\) \(--fp16\|--backbone r50 --fp16\) --device cuda .*/\1/p' "$CALLS" | tr '\n' ' ')
    [ "$runs" = "bench_resnet50 bench_arcface bench_resnet50 bench_arcface " ] || fail "they ran as $runs"
    ! command -v python3 >/dev/null || expect_word "--backbone r50 --fp16: 100.0 images/s, 1.000"
    ;;
  tuned_engines_are_taken_over)
    tuned_by 'H100, cuDNN 9.19.0, cuBLASLt 13.1.0' 'conv_forward 256x224x224x8 to 112x112x64, f16'
    echo '[[ $* != *tf32* ]] || cat "$XDG_CACHE_HOME/plumbline/tuning.json" >>"$CALLS"' >"$ACT"
    part second ONLY=one_tf32
    expect_code 0
    expect_word "tuned engines of check_first.tgz"
    expect_call "conv_forward 256x224"
    expect_packed second cache/plumbline/tuning.json "H100, cuDNN 9.19.0"
    part third ONLY=tuning_fp16
    expect_code 0
    expect_word "tuned engines of check_second.tgz" # the last one has the most
    expect_packed third runs.tsv $'tuning_fp16\tok' # goes on where a part was stopped
    ;;
  engines_tuned_elsewhere_are_refused)
    for environment in 'A100, cuDNN 9.19.0, cuBLASLt 13.1.0' 'H100, cuDNN 9.10.2, cuBLASLt 13.1.0' \
      'H100, cuDNN 9.19.0, cuBLASLt 12.9.1'; do
      tuned_by "$environment" 'conv_forward 256x224x224x8 to 112x112x64, f16'
      part third ONLY=tuning_fp16
      expect_code 0
      expect_word "$out/check_first.tgz: its tuning.json is of $environment and not of H100, cuDNN 9.19.0, cuBLASLt 13.1.0; engines"
      expect_word "are timed anew unless EARLIER names"
      expect_packed third runs.tsv $'tuning_fp16\tok'
    done
    for problem in '128x224x224x8 to 112x112x64, f16' '256x224x224x8 to 112x112x64, f32'; do
      tuned_by 'H100, cuDNN 9.19.0, cuBLASLt 13.1.0' "conv_forward $problem"
      part third ONLY=tuning_fp16
      expect_word "$out/check_first.tgz: its tuning.json has no engines of fp16 batch 256; engines"
      expect_packed third runs.tsv $'tuning_fp16\tok'
    done
    ;;
  tuning_that_fails_goes_on)
    echo '[[ $* != *"--bs 256 --iters 5"* ]] || exit 70' >"$ACT"
    part first ONLY='tuning_fp16.*|fp16_bs256'
    expect_code 1
    [ "$(grep -c 'bs 256 --iters 5' "$CALLS")" -eq 3 ] || fail "not three tries: $(cat "$CALLS")"
    expect_call "bench_resnet50 --fp16 --bs 256 --profile --no-autotune --device cuda"
    rm -r "$out" "$CALLS"
    echo '[[ $* != *--fp32* ]] || [ "$(grep -c -e --fp32 "$CALLS")" -gt 1 ] || exit 70' >"$ACT"
    part first ONLY='fp32_bs128.*'
    expect_packed first runs.tsv $'fp32_bs128_again\tok'
    ;;
  what_a_gpu_lacks_is_left_out)
    echo '[[ $* != *--bf16* ]] || { echo "bench_resnet50: option --bf16: this GPU can'"'"'t do it" >&2; exit 64; }' >"$ACT"
    part third ONLY='bf16.*|tf32.*'
    expect_code 0
    expect_word "bf16_bs256: bench_resnet50: option --bf16"
    expect_packed third runs.tsv $'tf32_bs128\tok'
    ;;
  nvidias_tools_get_the_programs)
    for tool in ncu compute-sanitizer; do fake "$scratch/tools/bin/$tool"; done
    part first ONLY=ncu
    expect_code 0
    expect_call "--clock-control none --target-processes all --kernel-name-base demangled --kernel-name regex:.*plumb.*"
    expect_call "registers_per_thread $bundle/bin/bench_resnet50 --fp16 --bs 256"
    part second ONLY='memcheck|racecheck'
    expect_code 0
    expect_call "compute-sanitizer --tool racecheck --kernel-name kernel_substring=plumb"
    grep -q 'tool racecheck .* --fp32 ' "$CALLS" || fail "cuDNN's engines for tensor cores run under racecheck: $(cat "$CALLS")"
    grep -q 'tool memcheck .* --fp16 ' "$CALLS" || fail "memcheck leaves out half precision: $(cat "$CALLS")"
    rm -r "$scratch/tools/bin" "$out"
    part second ONLY='memcheck|racecheck' PATH=/usr/bin:/bin
    expect_code 0
    expect_word "racecheck: compute-sanitizer is neither on PATH nor in the CUDA toolkit"
    ;;
  pytorch_runs_in_turn)
    command -v python3 >/dev/null || { echo "skipped: python3 isn't on this machine"; exit 77; }
    echo >"$scratch/torch.py"
    for name in ceilings pytorch_resnet50; do
      printf 'import os, sys\nopen(os.environ["CALLS"], "a").write("%s " + " ".join(sys.argv[1:]) + "\\n")\nprint("{}")\n' $name \
        >"$bundle/$name.py"
    done
    part first PYTHONPATH="$scratch" ONLY='fp16_bs256|ours_.*|eager_.*|compiled_.*'
    expect_code 0
    order=$(sed -n '2,$ { s/^bench_.*/p/p; s/.*--compile .*/c/p; s/^pytorch_resnet50.*/e/p }' "$CALLS" | tr -d '\n')
    [ "$order" = pecpecpec ] || fail "runs were in the order $order"
    expect_call "pytorch_resnet50 --fp16 --bs 256 --compile --log-dir $TMPDIR/"
    expect_word "part first, runs and comparisons: 10 done, 0 of them failed"
    rm -r "$out"
    part first PYTHONPATH=/nowhere ONLY=eager_1
    python3 -c 'import torch' 2>/dev/null || expect_word "eager_1: python3 has no torch"
    ;;
  *) fail "unknown behaviour $behaviour" ;;
esac
