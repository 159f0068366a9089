#!/usr/bin/env bash
# gpu_check_rehearsal_test.sh SOURCE_DIR BUILD_DIR: every command line of tests/gpu/gpu_check.sh, by dry run and then in small,
# on the emulated GPU where the build has it.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
export OMP_WAIT_POLICY=passive TMPDIR=$scratch VARIANTS='--fp16 --bs 256; --fp16 --bs 256 --fusion off' ROUNDS=2 BUDGET_S=5000

"$1/tests/gpu/gpu_check.sh" "$scratch/out" --rehearse --dirty --programs "$2/bin" >"$scratch/said" 2>&1 ||
  fail "exit code $?: $(cat "$scratch/said")"
tar -C "$scratch" -xzf "$scratch/out/gpu_check.tgz"
results=$scratch/gpu_check
expected='first_run'
! command -v python3 >/dev/null ||
  expected+=' variants fp16_bs256_profile nccl_fp16_ranks nccl_y1_pfc_as_mpi nccl_broadcast sustained_fp16 repeated
    tuned_as_fp32 fused_as_plain bf16_bs256 fp16_r100 fp16_y1_pfc_million y1_fp16_as_on_cpu memcheck'
for name in $expected; do
  grep -q "^$name"$'\tok\t' "$results/runs.tsv" || fail "no $name: $(cat "$scratch/said")"
done
# What needs a GPU keeps its options on the emulated one.
[ ! -x "$2/bin/bench_resnet50_emulated" ] ||
  grep -q -e '-np 4 .*_emulated .*--comm nccl .*--share-gpu --cuda-graph on' "$results/nccl_fp32_4_on.command" ||
  fail "no NCCL: $(cat "$results/nccl_fp32_4_on.command")"
# Left out is only what this machine lacks.
left_out=$(sed -n '/^left out:/,$s/^  [a-z0-9_]*: //p' "$results/summary.txt" |
  grep -vE '^python3 (has no (torch|torchvision|flax)|is not there.*)$|^(mpirun|conformance_cuda|racecheck_kernels) is not |_start.safetensors to start|gave no result$' ||
  true)
[ -z "$left_out" ] || fail "left out: $left_out"
