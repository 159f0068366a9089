#!/bin/sh
# peer_log.sh PLUMBLINE SOURCE_DIR: the logs that the scripts of results/peers write are read whole by plumbline analyze.
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/write.py" <<'END'
import datetime
import sys

sys.path.append(sys.argv[1])
from log_file import LogFile

start = datetime.datetime(2025, 1, 2, 23, 59, 50, 999000)
for loss, nodes, devices in ((2.5, 1, 1), (2.25, 1, 1), (2.5, 2, 8)):
    log = LogFile(sys.argv[2], nodes, devices, "resnet50", 32, "fp16", None)
    log.write([9.0] * 20 + [0.25] * 100, [loss] * 120, 0.1, start)
LogFile(sys.argv[2], 1, 1, "resnet50", 32, "fp16", None).discard()  # of a run that failed
try:
    LogFile(sys.argv[2], 1, 1, "resnet50", 32, "fp16", 2)
    sys.exit("a log was written over")
except FileExistsError:
    pass
END
python3 -B "$work/write.py" "$2/results/peers" "$work/logs" || exit 1
"$1" analyze "$work/logs" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
for word in '1n1g  *2  *128.00' '2n8g  *1  *2048.00'; do
  grep -q "$word" "$work/out" || { echo "'$word' is missing:"; cat "$work/out"; exit 1; }
done
[ "$(ls "$work/logs/1n1g")" = 'resnet50_b32_fp16_1.log
resnet50_b32_fp16_2.log' ] || { ls "$work/logs/1n1g"; exit 1; }
