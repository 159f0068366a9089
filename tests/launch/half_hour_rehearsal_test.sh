#!/usr/bin/env bash
# half_hour_rehearsal_test.sh PART SOURCE_DIR BUILD_DIR: every command line of a part of tests/gpu/half_hour.sh, by dry run and
# then in small, on the emulated GPU where the build has it.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
part=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_WAIT_POLICY=passive TMPDIR=$scratch VARIANTS='--fp16 --bs 256; --fp16 --bs 256 --fusion off' ROUNDS=2

fail() {
  echo "FAILED: $*"
  exit 1
}

"$2/tests/gpu/half_hour.sh" "$part" "$scratch/out" --rehearse --programs "$3/bin" >"$scratch/said" 2>&1 ||
  fail "exit code $?: $(cat "$scratch/said")"
tar -C "$scratch" -xzf "$scratch/out/check_$part.tgz"
results=$scratch/check_$part
case $part in
  first) expected='first_run fp32_as_on_cpu fused_as_plain tuning_fp16 fp16_bs256_unfused ncu fp32_bs128' ;;
  second)
    expected='one_tf32_as_on_cpu nccl_as_without many_fp16_as_on_cpu y1_one_as_on_cpu r100_one_as_on_cpu y1_pfc_as_on_cpu'
    expected+=' r100_mp_graph_as_eager fp16_r100 racecheck'
    ;;
  third) expected='variants bf16_bs256 sustained_fp16 ours_r50 largest_fp16' ;;
esac
command -v python3 >/dev/null || expected='first_run'
for name in $expected; do
  grep -q "^$name"$'\tok\t' "$results/runs.tsv" || fail "no $name: $(cat "$scratch/said")"
done
# What needs a GPU keeps its options on the emulated one.
if [ -x "$3/bin/bench_resnet50_emulated" ]; then
  case $part in
    second) grep -q -e '_emulated .*--comm nccl .*--cuda-graph on' "$results/graph_fp16_nccl.command" || fail "no NCCL, no graph" ;;
    third) grep -q -e '_emulated .*--find-max-bs' "$results/largest_fp16.command" || fail "no largest batch" ;;
  esac
fi
# Left out is only what this machine lacks.
left_out=$(sed -n '/^left out:/,$s/^  [a-z0-9_]*: //p' "$results/summary.txt" | sort -u)
case $left_out in
  '' | 'python3 has no torch' | 'python3 is not there, which compares'*) ;;
  *) fail "left out: $left_out" ;;
esac
