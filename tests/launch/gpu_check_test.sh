#!/usr/bin/env bash
# gpu_check_test.sh BEHAVIOUR SOURCE_DIR BUILD_DIR: what tests/gpu/check.sh does where there is no GPU.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
behaviour=$1
checks=$2/tests/gpu
programs=$3/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

# Leaves the exit code in `code`, all output in `output`.
try() {
  code=0
  output=$("$@" 2>&1) || code=$?
}
expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $output"; }
expect_word() { [[ $output == *"$1"* ]] || fail "'$1' is missing in: $output"; }
check() { try "$checks/check.sh" --programs "$programs" --out "$scratch/results" "$@"; }

# A safetensors file of two parameters, four numbers each; the second is filled with NUMBER.
parameters() {
  python3 - "$1" "$2" <<'END'
import array, json, struct, sys
values = array.array("f", [1, 2, 3, 4] + [float(sys.argv[2])] * 4).tobytes()
header = json.dumps({"a.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
                     "b.weight": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(header)) + header + values)
END
}

case $behaviour in
  rehearsal)
    check --rehearse
    expect_code 0
    for stage in smoke headline arcface precisions steps pytorch limits sanitizer; do
      [ -s "$scratch/results/$stage.json" ] || fail "no $stage.json: $output"
      ! command -v python3 >/dev/null || python3 -m json.tool "$scratch/results/$stage.json" >/dev/null
    done
    expect_word "fp16_bs256_profile"
    expect_word "r100_of_roofline"
    ;;
  one_stage_alone)
    check --rehearse --only limits
    expect_code 0
    [ -s "$scratch/results/limits.json" ] || fail "no limits.json"
    [ ! -e "$scratch/results/smoke.json" ] || fail "another stage ran"
    ;;
  a_failing_run_fails_its_stage)
    for program in bench_resnet50 bench_arcface; do
      printf '#!/bin/sh\n[ "$1" != --version ] || exit 0\necho "%s: no such luck" >&2\nexit 70\n' $program \
        >"$scratch/$program"
      chmod +x "$scratch/$program"
    done
    programs=$scratch
    check --rehearse --only limits
    expect_code 1
    expect_word "no such luck"
    grep -q '"status": "failed"' "$scratch/results/limits.json" || fail "the stage's JSON doesn't say so"
    ;;
  bad_options_are_refused)
    check --only lunch
    expect_code 64
    expect_word "'lunch' is not one of the stages"
    check --fast
    expect_code 64
    programs=/nowhere
    check
    expect_code 69
    expect_word "/nowhere"
    ;;
  differences_are_noticed)
    command -v python3 >/dev/null || exit 77
    cd "$scratch"
    echo '{"loss": [7.0, 6.5]}' >a.json
    echo '{"loss": [7.0, 6.6]}' >b.json
    try python3 "$checks/compare_runs.py" losses --first 0.001 --rest 0.05 a.json b.json
    expect_code 0
    try python3 "$checks/compare_runs.py" losses --first 0 --rest 0 a.json b.json
    expect_code 1
    echo '{"loss": [NaN, 6.5]}' >nan.json
    try python3 "$checks/compare_runs.py" losses --first 0.1 --rest 0.1 nan.json a.json
    expect_code 1
    echo '{"images_per_second": {"mean": 900}, "batch_per_device": 100, "world_size": 1}' >run.json
    echo '{"roofline_seconds": 0.1}' >limit.json
    try python3 -B "$checks/compare_runs.py" share --aim 0.7 run.json limit.json
    expect_code 0
    expect_word "90.0 % of 1000 images/s, aim of 70 % reached"
    try python3 -B "$checks/compare_runs.py" share --aim 0.95 run.json limit.json
    expect_code 0
    expect_word "aim of 95 % missed"
    parameters start 0
    parameters run 1.001
    parameters reference 1
    try python3 "$checks/compare_runs.py" weights --precision fp32 start run reference
    expect_code 0
    parameters wrong 0.9
    try python3 "$checks/compare_runs.py" weights --precision fp32 start wrong reference
    expect_code 1
    expect_word "worst b.weight"
    ;;
  *) fail "unknown behaviour $behaviour" ;;
esac
