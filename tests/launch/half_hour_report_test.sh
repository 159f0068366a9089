#!/usr/bin/env bash
# half_hour_report_test.sh BEHAVIOUR SOURCE_DIR PLUMBLINE: tests/gpu/half_hour.sh --report, in a copy of what it needs of the
# sources, on runs that nobody ran.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
behaviour=$1
sources=$2
plumbline=$3
command -v python3 >/dev/null || { echo "skipped: python3 makes the runs, and isn't on this machine"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
back=$scratch/back # what came back
kept=$tree/results/measured/nvidia_h100_80gb_hbm3
mkdir -p "$tree/launch" "$tree/tests" "$tree/results" "$back" "$scratch/temporary"
export TMPDIR=$scratch/temporary
cp "$sources"/launch/{keep_runs,update_readme}.sh "$tree/launch"
cp -r "$sources/tests/gpu" "$tree/tests"

fail() {
  echo "FAILED: $*"
  exit 1
}

# made_part PART RUN…: check_PART.tgz with these runs, as of an H100, and those of earlier calls.
made_part() {
  local part=$1 run folder=$scratch/made/check_$1
  shift
  for run in "$@"; do
    mkdir -p "$folder/measured/$run"
    cp -r "$scratch/runs/$run" "$folder/measured/$run/$run"
    sed -i 's/"device_name": "[^"]*"/"device_name": "NVIDIA H100 80GB HBM3 (sm_90), driver for CUDA 13.0"/' \
      "$folder/measured/$run/$run/result.json"
  done
  echo "part $part, runs and comparisons: 1 done" >"$folder/summary.txt"
  tar -C "$scratch/made" -czf "$back/check_$part.tgz" "check_$part"
}

# logs_of FOLDER FRAMEWORK SECONDS: three logs of runs in that folder of a part.
logs_of() {
  python3 -B - "$sources/results/peers" "$scratch/made/$1" "$2" "$3" <<'END'
import datetime, sys
sys.path.append(sys.argv[1])
from log_file import LogFile
case = {"model": "resnet50", "batch_per_device": 256, "precision": "fp16", "image_size": 224, "data": "synthetic",
        "framework": sys.argv[3]}
for run in range(3):
    log = LogFile(sys.argv[2], 1, 1, case, None)
    log.write([float(sys.argv[4]) * (1 + run / 1000)] * 120, [2.5] * 120, 0.1, datetime.datetime(2026, 1, 2))
END
}

report() {
  code=0
  output=$("$tree/tests/gpu/half_hour.sh" --report "$back" --programs "$(dirname "$plumbline")" "$@" 2>&1) || code=$?
}
expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $output"; }
expect_word() { [[ $output == *"$1"* ]] || fail "'$1' is missing in: $output"; }
holds() { grep -q -e "$2" "$1" || fail "'$2' is missing in $1: $(cat "$1")"; }

"$sources/tests/results/browser/made_runs.py" "$scratch/runs" 2

case $behaviour in
  everything_is_kept)
    for logs in check_first/logs/fp16_bs256 check_third/logs/fp16_r50; do
      logs_of $logs/plumbline Plumbline 0.1
      logs_of $logs/pytorch_eager PyTorch 0.2
    done
    made_part third resnet50_1n1g_2
    made_part first resnet50_1n1g_1
    mkdir -p "$scratch"/made/check_{first,third}/cache/plumbline
    echo "of the first part" >"$scratch/made/check_first/cache/plumbline/tuning.json"
    echo "of the last part" >"$scratch/made/check_third/cache/plumbline/tuning.json"
    made_part third
    echo "convolution,eng0,0,0.1,1" >"$scratch/made/check_first/measured/resnet50_1n1g_1/resnet50_1n1g_1/tuning.csv"
    made_part first
    report
    expect_code 0
    expect_word "check_second.tgz is not there: nothing of the part second is reported"
    expect_word "2 runs, first.txt pytorch.txt steps.md third.txt"
    holds "$kept/resnet50_1n1g_1/tuning.csv" eng0
    holds "$kept/tuning.json" "of the last part"
    cmp "$scratch/made/check_first/measured/resnet50_1n1g_1/resnet50_1n1g_1/result.json" "$kept/resnet50_1n1g_1/result.json"
    holds "$kept/steps.md" '^| layer0.conv.backward_data | - | [0-9.]* | [0-9.]* | 1.43 | [0-9.]* | compute |$'
    [ "$(grep -c 'PyTorch  *3 ' "$kept/pytorch.txt")" -eq 2 ] || fail "not both comparisons: $(cat "$kept/pytorch.txt")"
    holds "$tree/results/measured/README.md" '^| 1n1g | 2 | '
    [ -z "$(ls "$TMPDIR")" ] || fail "left in the temporary folder: $(ls "$TMPDIR")"
    report
    expect_code 73
    expect_word "resnet50_1n1g_1' exists; remove it to replace it"
    ;;
  a_part_that_ran_twice_is_kept_twice)
    made_part first resnet50_1n1g_1
    echo "one,two" >"$scratch/made/check_first/ncu.csv"
    echo "the first machine" >"$scratch/made/check_first/machine.txt"
    made_part first
    mv "$back/check_first.tgz" "$scratch"
    rm -r "$scratch/made"
    made_part first resnet50_1n1g_2
    echo "the second machine" >"$scratch/made/check_first/machine.txt"
    made_part first
    mv "$back/check_first.tgz" "$back/check_first_2.tgz"
    mv "$scratch/check_first.tgz" "$back"
    report
    expect_code 0
    expect_word "2 runs, first.txt first_2.txt machine.txt ncu.csv steps.md"
    holds "$kept/machine.txt" "the second machine"
    holds "$kept/ncu.csv" "one,two"
    for run in 1 2; do
      [ -e "$kept/resnet50_1n1g_$run/result.json" ] || fail "run $run isn't kept: $output"
    done
    [ "$(grep -c '^\*\*resnet50 fp16' "$kept/steps.md")" -eq 2 ] || fail "not both profiles: $(grep '^\*\*' "$kept/steps.md")"
    [[ $output != *"nothing of the part first"* ]] || fail "it looks for check_first.tgz only: $output"
    ;;
  what_is_damaged_is_named)
    made_part first resnet50_1n1g_1
    made_part second resnet50_1n1g_2
    truncate -s 20000 "$back/check_first.tgz"
    report
    expect_code 65
    expect_word "check_first.tgz is damaged ("
    expect_word "so nothing of it is reported"
    [ -e "$kept/resnet50_1n1g_2/result.json" ] || fail "the good part isn't kept: $output"
    [ ! -e "$kept/resnet50_1n1g_1" ] || fail "of the damaged part something is kept"
    ;;
  without_results_says_so)
    report
    expect_code 65
    expect_word "holds no usable check_first.tgz, check_second.tgz or check_third.tgz"
    back=/nowhere report
    expect_code 65
    expect_word "'/nowhere' is not a folder"
    report --programs /nowhere
    expect_code 69
    expect_word "no plumbline in /nowhere"
    made_part first resnet50_1n1g_1
    rm -r "$tree/launch"
    report
    expect_code 69
    expect_word "in the project's sources"
    [ ! -e "$tree/results/measured" ] || fail "something was kept"
    ;;
  *) fail "unknown behaviour $behaviour" ;;
esac
