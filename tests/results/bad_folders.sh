#!/bin/sh
# plumbline analyze on folders that are not what they should be: one exit code, one sentence each, nothing left behind.
plumbline=$1
data=$2
sanitizers=$3
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
failures=0
run=

fail() {
  echo "$*"
  cat "$work/out" "$work/err"
  failures=$((failures + 1))
}

# expect CODE LINES WORDS ARGUMENTS…: the exit code, how many lines stderr has, and words in one of them.
expect() {
  code=$1
  lines=$2
  words=$3
  shift 3
  $run "$plumbline" "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ $got -eq "$code" ] || fail "plumbline $*: exit $got, wanted $code"
  [ "$(wc -l <"$work/err")" -eq "$lines" ] || fail "plumbline $*: stderr has not $lines lines"
  [ "$lines" -eq 0 ] || grep -q -e "$words" "$work/err" || fail "plumbline $*: '$words' is not in stderr"
}
# in_table WORDS: of the last command's table.
in_table() {
  grep -q -e "$1" "$work/out" || fail "'$1' is not in the table"
}

mkdir "$work/empty"
expect 65 1 'no usable log' analyze "$work/empty"
mkdir "$work/hollow" "$work/hollow/1n1g"
expect 65 1 'no usable log' analyze "$work/hollow"
: >"$work/file"
expect 65 1 'is no folder' analyze "$work/file"

expect 65 1 'no line of dialect plsc' analyze "$data/tree" --dialect plsc
expect 65 1 'no line of dialect paddle_speed' analyze "$data/mxnet_arcface" --dialect paddle_speed

cp -r "$data/tree" "$work/models"
for run_number in 1 2; do
  cp "$data/tree/1n1g/rn50_b128_fp32_$run_number.log" "$work/models/1n1g/vgg16_b128_fp32_$run_number.log"
  echo "another model's" >>"$work/models/1n1g/vgg16_b128_fp32_$run_number.log"
done
expect 0 0 '' analyze "$work/models"
in_table '^rn50, batch 128'
in_table '^vgg16, batch 128'

cp -r "$data/tree" "$work/lengths"
head -n 100 "$data/tree/1n1g/rn50_b128_fp32_1.log" >"$work/lengths/1n1g/rn50_b128_fp32_1.log"
expect 0 1 'rn50_b128_fp32_1.log (truncated): it has 100 of the 120' analyze "$work/lengths"
in_table '^1n1g     1 '

cp -r "$data/tree" "$work/alone"
rm -r "$work/alone/1n1g"
expect 0 1 'no speedup for rn50_b128_fp32: there is no usable 1n1g run' analyze "$work/alone"
in_table '^2n8g .* n/a$'

cp -r "$data/tree" "$work/junk"
head -c 300000 "$plumbline" >"$work/junk/1n1g/rn50_b128_fp32_3.log"
expect 0 1 'rn50_b128_fp32_3.log (empty): it has no line of dialect' analyze "$work/junk"
mkdir "$work/only_junk" "$work/only_junk/1n1g"
head -c 3000000 /dev/urandom >"$work/only_junk/1n1g/rn50_b128_fp32_1.log"
expect 65 1 'no usable log (1 ' analyze "$work/only_junk"
head -c 3000000 /dev/zero >"$work/only_junk/1n1g/rn50_b128_fp32_1.log"
expect 65 1 'longer than 1 MiB' analyze "$work/only_junk"

mkdir "$work/newer"
echo '{"schema": "plumbline.result/2", "status": "ok"}' >"$work/newer/result.json"
expect 65 1 'newer than plumbline.result/1' compare "$work/newer" "$work/newer"

# Permissions don't bind root, so root becomes nobody.
if [ "$(id -u)" -eq 0 ]; then
  run="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
cp -r "$data/tree" "$work/closed"
chmod 000 "$work/closed/1n1g/rn50_b128_fp32_1.log"
expect 0 1 'rn50_b128_fp32_1.log (unreadable): can.t be opened: Permission denied' analyze "$work/closed"
chmod 000 "$work/closed/1n1g"
expect 0 2 '1n1g (unreadable): can.t be listed: Permission denied' analyze "$work/closed"
chmod 000 "$work/closed"
expect 65 1 'Permission denied' analyze "$work/closed"
mkdir -m 555 "$work/read_only"
expect 73 1 'cannot create the file: Permission denied' analyze "$data/tree" --json "$work/read_only/new.json"
run=
echo kept >"$work/there.json"
expect 73 1 'exists' analyze "$data/tree" --json "$work/there.json"
[ "$(cat "$work/there.json")" = kept ] || fail 'a file that existed was changed'

# A log of 170 MB goes through in less memory than it has bytes. Sanitizers reserve more than any limit.
if [ -z "$sanitizers" ]; then
  mkdir "$work/long" "$work/long/1n1g"
  awk 'BEGIN { for (i = 0; i < 1100000; ++i) printf "2025-01-02 10:00:00,000-INFO: [Pass 0, train batch %d] \tloss " \
    "7.00000, acc1 0.00000, acc5 0.00000, lr 0.10000, elapse 0.320000 sec Epoch[0] Batch[%d]\tSpeed: 400.00 " \
    "samples/sec%s", i, i + 1, i % 3 ? "\n" : "\r\n" }' >"$work/long/1n1g/rn50_b128_fp32_1.log"
  [ "$(wc -c <"$work/long/1n1g/rn50_b128_fp32_1.log")" -gt 160000000 ] || fail 'the long log is not long'
  run="prlimit --as=160000000"
  expect 0 1 'of which 21 to 120 count' analyze "$work/long"
  in_table '^1n1g     1   400.00'
fi

exit $((failures > 0))
