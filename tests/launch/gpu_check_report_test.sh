#!/usr/bin/env bash
# gpu_check_report_test.sh SOURCE_DIR PLUMBLINE: tests/gpu/gpu_check.sh --report, in a copy of what it needs of the
# sources, on runs that nobody ran.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
sources=$1
plumbline=$2
needs python3 python3
tree=$scratch/tree
back=$scratch/back # what came back
kept=$tree/results/measured/nvidia_h100_80gb_hbm3
mkdir -p "$tree/launch" "$tree/tests" "$tree/results" "$back" "$scratch/temporary"
export TMPDIR=$scratch/temporary
cp "$sources"/launch/{keep_runs,prelude}.sh "$tree/launch"
cp -r "$sources/tests/gpu" "$tree/tests"

# made_call NAME RUN…: NAME.tgz of a call with these runs, as of an H100, and what lies in its folder already.
made_call() {
  local name=$1 run folder=$scratch/made/$1/gpu_check
  shift
  for run in "$@"; do
    mkdir -p "$folder/measured/$run"
    cp -r "$scratch/runs/$run" "$folder/measured/$run/$run"
    sed -i 's/"device_name": "[^"]*"/"device_name": "NVIDIA H100 80GB HBM3 (sm_90), driver for CUDA 13.0"/' \
      "$folder/measured/$run/$run/result.json"
    echo '{"loss": []}' >"$folder/$run.json"
  done
  echo "runs and comparisons: 1 done" >"$folder/summary.txt"
  tar -C "$scratch/made/$name" -czf "$back/$name.tgz" gpu_check
}

# logs_of FOLDER FRAMEWORK SECONDS: three logs of runs in that folder of a call.
logs_of() {
  python3 -B - "$sources/results/peers" "$scratch/made/$1" "$2" "$3" <<'END'
import datetime, sys
sys.path.append(sys.argv[1])
from peer_result import LogFile
case = {"model": "resnet50", "batch_per_device": 256, "precision": "fp16", "image_size": 224, "data": "synthetic",
        "framework": sys.argv[3]}
for run in range(3):
    log = LogFile(sys.argv[2], 1, 1, case, None)
    log.write([float(sys.argv[4]) * (1 + run / 1000)] * 120, [2.5] * 120, 0.1, datetime.datetime(2026, 1, 2))
END
}

report() { try "$tree/tests/gpu/gpu_check.sh" --report "$back" --programs "$(dirname "$plumbline")"; }
holds() { grep -q -e "$2" "$1" || fail "'$2' is missing in $1: $(cat "$1")"; }

"$sources/tests/results/browser/made_runs.py" "$scratch/runs" 2

first=$scratch/made/gpu_check/gpu_check second=$scratch/made/gpu_check_2/gpu_check
logs_of gpu_check/gpu_check/logs/fp16_bs256/plumbline Plumbline 0.1
logs_of gpu_check/gpu_check/logs/fp16_bs256/pytorch_compiled "PyTorch compiled" 0.2
logs_of gpu_check/gpu_check/logs/fp16_bs256/pytorch_reduce-overhead "PyTorch reduce-overhead" 0.15
logs_of gpu_check_2/gpu_check/logs/fp16_r50/plumbline Plumbline 0.1
logs_of gpu_check_2/gpu_check/logs/fp16_r50/pytorch_eager PyTorch 0.2
for call in first second; do
  echo "the machine of the $call call" >"${!call}/machine.txt"
done
printf '==PROF== connected\n"ID","Kernel Name","device__x","gpu__time_duration.sum"\n"0","norm, 1","7","12"\n' >"$first/ncu.csv"
echo '{"summary": "copies 4 TB/s"}' >"$first/ceilings.json"
echo '{"within": true}' >"$first/nccl_fp32_ranks.json"
echo '{"framework": "PyTorch", "step_seconds": [1]}' >"$first/eager_1.json"
echo '[  PASSED  ]' >"$second/conformance.txt"
: >"$second/failed.json"
made_call gpu_check_2 resnet50_1n1g_2
made_call gpu_check resnet50_1n1g_1
echo "convolution,eng0,0,0.1,1" >"$first/measured/resnet50_1n1g_1/resnet50_1n1g_1/tuning.csv"
made_call gpu_check
echo "not a result" | gzip >"$back/gpu_check_caches.tgz"
report
expect_code 0
expect_word "2 runs, ceilings.json check.txt check_2.txt checks machine.txt ncu.csv ops.md peers pytorch.txt"
[ "$(cd "$kept" && echo checks/* peers/*)" = "checks/conformance.txt checks/nccl_fp32_ranks.json peers/eager_1.json" ] ||
  fail "not what was compared: $(ls "$kept/checks" "$kept/peers")"
holds "$kept/machine.txt" "of the second call"
[ "$(cat "$kept/ncu.csv")" = $'ID,Kernel Name,gpu__time_duration.sum\n0,"norm, 1",12' ] || fail "not its counters: $(cat "$kept/ncu.csv")"
holds "$kept/resnet50_1n1g_1/tuning.csv" eng0
cmp "$first/measured/resnet50_1n1g_1/resnet50_1n1g_1/result.json" "$kept/resnet50_1n1g_1/result.json"
holds "$kept/ops.md" '^| layer0.conv.backward_data | - | [0-9.]* | [0-9.]* | 1.43 | [0-9.]* | compute |$'
[ "$(grep -c '^## check' "$kept/ops.md")" -eq 2 ] || fail "not both profiles: $(grep '^## ' "$kept/ops.md")"
for framework in 'PyTorch' 'PyTorch compiled' 'PyTorch reduce-overhead'; do
  holds "$kept/pytorch.txt" "$framework  *3 "
done
[ -z "$(ls "$TMPDIR")" ] || fail "left in the temporary folder: $(ls "$TMPDIR")"
report
expect_code 73
expect_word "resnet50_1n1g_1' exists; remove it to replace it"
# A damaged archive is named, and nothing of it is kept.
rm -r "$kept"
truncate -s -4000 "$back/gpu_check.tgz"
report
expect_code 65
expect_word "gpu_check.tgz is damaged ("
expect_word "so nothing of it is reported"
[ -e "$kept/resnet50_1n1g_2/result.json" ] || fail "the good call isn't kept: $output"
[ ! -e "$kept/resnet50_1n1g_1" ] || fail "of the damaged call something is kept"
