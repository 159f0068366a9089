#!/bin/sh
# plumbline compare and plumbline published as users call them: exit codes, stdout, stderr.
plumbline=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "$*"
  failures=$((failures + 1))
}

# expect CODE WORD ARGUMENTS…: the exit code, and a word somewhere in the output, its line ends as blanks.
expect() {
  code=$1
  word=$2
  shift 2
  "$plumbline" "$@" >"$work/out" 2>"$work/err"
  got=$?
  cat "$work/out" "$work/err" | tr -s ' \n' ' ' >"$work/one_line"
  if [ $got -ne "$code" ] || ! grep -q -e "$word" "$work/one_line"; then
    echo "plumbline $*: exit $got (wanted $code), '$word' wanted in:"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}

# run FOLDER IMAGES_PER_SECOND BATCH MORE_CONFIG: what a bench leaves behind.
run() {
  mkdir -p "$1"
  cat >"$1/result.json" <<END
{"schema": "${schema:-plumbline.result/1}", "status": "ok", "failure": "", "model": "resnet50",
 "precision": "fp32", "device": "cpu", "device_name": "some CPU, 1 thread, oneDNN 2.6.3",
 "batch_per_device": $3, "world_size": 1, "nodes": 1, "devices_per_node": 1, "iterations": 2, "warmup": 1,
 "step_seconds": [0.1, 0.1], "loss": [7, 7],
 "images_per_second": {"mean": $2, "median": $2, "min": $2, "max": $2}, "rank_window_seconds": [0.1],
 "exposed_communication_seconds": 0, "data_wait_seconds": 0, "parameters": 1, "macs_per_image": 1,
 "memory_bytes": {}, "checks": {}, "log_files": [], "energy_joules_per_image": null,
 "config": {"data": "synthetic", "batch": "", "image_size": 224, "optimizer": "sgd"$4}}
END
}

for i in 1 2 3 4 5 6 7; do
  run "$work/a/$i" "100.$i" 8 ""
  run "$work/b/$i" "110.$i" 8 ""
  run "$work/c/$i" "100.0$i" 8 ', "deterministic": true'
  run "$work/other/$i" "200.$i" 16 ""
done
run "$work/few/1" 90 8 ""
run "$work/few/2" 91 8 ""

cd "$work" || exit 1
expect 0 'B against A: 10.0 % faster (95 % interval' compare a b
[ -s "$work/err" ] && fail "stderr is not empty"
expect 0 'A Plumbline 7 100.40 100.10 to 100.70 (98.4 %) 1 B Plumbline 7 110.40' compare a b c
expect 0 'C against A: no difference above 1 % shown' compare a b c
expect 0 'run with deterministic as usual against true' compare a c
expect 0 'no difference above 20 % shown' compare a b --min-effect 20%
expect 0 '2 runs are too few to say' compare a few
expect 65 "batch per device 8 against 16; name runs of one configuration, or give --force" compare a other
expect 0 'FORCED, the configurations differ: batch per device 8 against 16' compare a other --force
expect 0 'No result of resnet50 is published for this kind of device' compare a
expect 0 'device some CPU, 1 thread against V100-SXM2-16GB, data synthetic against ImageNet' compare a --published all
expect 0 'OneFlow 0.2.0: 3' compare a b --published oneflow,1n1g
expect 0 '"verdict": "faster"' compare a b --json
"$plumbline" compare a b c other --force --published all | awk 'length > 100 { print; bad = 1 } END { exit bad }' ||
  fail "lines above 100 columns"

# A framework's logs beside runs, and what can't be used.
expect 0 'Plumbline 2 5891.72' compare "$data/tree"
expect 64 "option --published: no published number has all words of 'nonsense'" compare a --published nonsense
expect 64 'write it as 2% or 0.02' compare a b --min-effect 2
expect 64 'PATH' compare
expect 65 'be found' compare a none
mkdir empty
expect 65 'holds neither run folders' compare empty
head -c 4096 /dev/urandom >junk
expect 65 'no result.json' compare junk a
schema=plumbline.result/99 run newer/1 50 8 ""
expect 65 'newer than plumbline.result/1.*update plumbline' compare newer a
cp -r newer/1 a/newer
expect 0 'left out: a/newer' compare a b
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line on stderr"

# Published numbers.
expect 0 'Usage' published --help
expect 0 'OneFlow r50 mp face_emore FP32 128 4n8g 12320.24 29.01' published --model r50
expect 0 'pure fp16 in a column headed AMP' published --framework 'ngc mxnet' --precision amp --case 4n8g
expect 0 'framework,framework_version' published --format csv
[ "$(grep -c '^' "$work/out")" -eq 1129 ] || fail "the CSV has not 1128 rows and a header"
expect 0 'speedup source H200 (Hopper) NGC PyTorch resnet50 synthetic AMP 2560 1n1g 3078.60' published --gpu h200
expect 0 'images/s speedup source A100-SXM4-80GB (Ampere)' published --gpu 'NVIDIA A100-SXM4-80GB' --precision tf32
expect 0 'notes,inconsistency,gpu,classes.*,T4,' published --gpu t4 --format csv
expect 0 '"device": "H200"' published --gpu h200 --case 1n8g --bs 400 --json
expect 64 "option --gpu: no published number is of 'h300'; plumbline published without options" published --gpu h300
expect 64 'no published number matches all' published --gpu h200 --model r100
expect 0 '"schema": "plumbline.published/1"' published --framework oneflow --json
"$plumbline" published | awk 'length > 100 { print; bad = 1 } END { exit bad }' || fail "published: lines above 100 columns"
expect 64 "option --framework: no published number is of 'caffe'" published --framework caffe
expect 64 'no published number matches all' published --framework mindspore --model r100
expect 64 'table' published --format xml

exit $((failures > 0))
