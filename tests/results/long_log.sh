#!/bin/sh
# long_log.sh PLUMBLINE: a log of 170 MB goes through in less memory than it has bytes.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/1n1g/rn50_b128_fp32_1.log
mkdir "$work/1n1g"
awk 'BEGIN { for (i = 0; i < 1100000; ++i) printf "2025-01-02 10:00:00,000-INFO: [Pass 0, train batch %d] \tloss " \
  "7.00000, acc1 0.00000, acc5 0.00000, lr 0.10000, elapse 0.320000 sec Epoch[0] Batch[%d]\tSpeed: 400.00 " \
  "samples/sec%s", i, i + 1, i % 3 ? "\n" : "\r\n" }' >"$log"
[ "$(wc -c <"$log")" -gt 160000000 ] && prlimit --as=160000000 "$1" analyze "$work" >"$work/out" 2>"$work/err" &&
  grep -q '^1n1g     1   400.00' "$work/out" ||
  { cat "$work/out" "$work/err" && exit 1; }
