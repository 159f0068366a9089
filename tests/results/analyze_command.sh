#!/bin/sh
# plumbline analyze as users call it: exit codes, what goes to stdout and what to stderr.
plumbline=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE WORD ARGUMENTS…: the exit code, and a word somewhere in the output.
expect() {
  code=$1
  word=$2
  shift 2
  "$plumbline" "$@" >"$work/out" 2>"$work/err"
  got=$?
  if [ $got -ne "$code" ] || ! grep -q -e "$word" "$work/out" "$work/err"; then
    echo "plumbline $*: exit $got (wanted $code), '$word' wanted in:"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}

expect 0 '2n8g     2  5891.72  5891.72    15.25' analyze "$data/tree"
[ -s "$work/err" ] && echo "stderr is not empty" && failures=$((failures + 1))
expect 0 '| 2n8g | 2 |' analyze "$data/tree" --markdown
expect 0 'Usage' --help
expect 0 'as-published' analyze --help
for dialect in paddle_speed paddle_time mxnet_rn50v1b; do
  expect 0 rn50 analyze "$data/tree" --dialect $dialect --json "$work/$dialect.json"
  cmp "$work/$dialect.json" "$data/expected_$dialect.json" || failures=$((failures + 1))
done

# Without --warmup and --iters each dialect has its script's own window.
for dialect in mindspore mxnet_arcface mxnet_partial_fc oneflow_cnn oneflow_face plsc pytorch; do
  expect 0 "read as $dialect" analyze "$data/$dialect" --as-published --json "$work/$dialect.json"
  cmp "$work/$dialect.json" "$data/expected_$dialect.json" || failures=$((failures + 1))
done
expect 0 'slice \[5:15\] takes lines of batches 0 to 10' analyze "$data/plsc" --json "$work/plsc_correct.json"
cmp "$work/plsc_correct.json" "$data/expected_plsc_correct.json" || failures=$((failures + 1))
for dialect in ngc_mxnet_speed ngc_mxnet_time ngc_tf_speed ngc_tf_time tf2_speed tf2_time ngc_pytorch_time; do
  expect 0 "read as $dialect" analyze "$data/${dialect%_*}" --dialect $dialect --json "$work/$dialect.json"
  cmp "$work/$dialect.json" "$data/expected_$dialect.json" || failures=$((failures + 1))
done
expect 0 'lines 21 to 120 are of iterations 11 to 35' analyze "$data/pytorch_ranks"
expect 64 'whose lines begin after as many' analyze "$data/ngc_tf" --warmup 10
expect 64 'no multiple of 20' analyze "$data/mxnet_arcface" --warmup 50 --iters 150

expect 73 exists analyze "$data/tree" --json "$work/paddle_time.json"
expect 0 rn50 analyze "$data/tree" --dialect paddle_time --json "$work/paddle_time.json" --overwrite
cmp "$work/paddle_time.json" "$data/expected_paddle_time.json" || failures=$((failures + 1))
for stdout in --json '--json -'; do
  # shellcheck disable=SC2086  # two words
  "$plumbline" analyze "$data/tree" --dialect paddle_time $stdout >"$work/stdout.json" 2>/dev/null
  cmp "$work/stdout.json" "$data/expected_paddle_time.json" || failures=$((failures + 1))
done
expect 73 'create it or pass another --json' analyze "$data/tree" --json "$work/none/new.json"
expect 65 none analyze "$work/none"
mkdir "$work/empty"
expect 65 'no usable log' analyze "$work/empty" --json "$work/nothing.json"
[ -e "$work/nothing.json" ] && echo "a failed analysis left a file" && failures=$((failures + 1))
expect 64 'LOG_DIR' analyze
expect 64 'did you mean --markdown' analyze "$data/tree" --markdwn
expect 64 'paddle_time' analyze "$data/tree" --dialect tensorflow
expect 64 'warmup' analyze "$data/tree" --warmup 120
expect 64 'did you mean analyze' analyse "$data/tree"
expect 64 'command is missing'

# Ten bad files: at most four lines off a terminal, every file with --verbose.
cp -r "$data/tree" "$work/bad"
for run in 11 12 13 14 15; do
  head -n $run "$data/tree/1n1g/rn50_b128_fp32_1.log" >"$work/bad/1n1g/rn50_b128_fp32_$run.log"
  : >"$work/bad/1n1g/rn50_b128_fp32_$run.log.part"
done
expect 0 '10 files left out (5 unfinished, 5 truncated)' analyze "$work/bad"
[ "$(wc -l <"$work/err")" -le 4 ] || { echo "more than four lines on stderr"; failures=$((failures + 1)); }
cp "$work/out" "$work/with_bad"
expect 0 'rn50_b128_fp32_15.log (truncated): it has 15 of the 120' analyze "$work/bad" --verbose
"$plumbline" analyze "$data/tree" >"$work/without_bad"
cmp "$work/without_bad" "$work/with_bad" || failures=$((failures + 1))

exit $((failures > 0))
