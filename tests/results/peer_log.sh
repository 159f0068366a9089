#!/bin/sh
# peer_log.sh PLUMBLINE SOURCE_DIR: the logs that the scripts of results/peers write are read whole by plumbline analyze.
command -v python3 >/dev/null || { echo 'skipped: python3 is missing'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/write.py" <<'END'
import datetime
import sys

sys.path.append(sys.argv[1])
from peer_result import LogFile, require_finite, speed

start = datetime.datetime(2025, 1, 2, 23, 59, 50, 999000)
case = {"model": "resnet50", "batch_per_device": 32, "precision": "fp16", "image_size": 224, "data": "synthetic",
        "framework": "PyTorch"}
for loss, nodes, devices in ((2.5, 1, 1), (2.25, 1, 1), (2.5, 2, 8)):
    log = LogFile(sys.argv[2], nodes, devices, case, None)
    log.write([9.0] * 20 + [0.25] * 100, [loss] * 120, 0.1, start)
with LogFile(sys.argv[2], 1, 1, case, None):
    pass  # a run that failed
for another, run in ((case, 2), (case | {"image_size": 64}, 3), (case | {"framework": "PyTorch compiled"}, 3)):
    try:
        LogFile(sys.argv[2], 1, 1, another, run)
        sys.exit("a log was written over, or into the folder of another configuration")
    except FileExistsError:
        pass
found = speed([9.0, 2.0, 1.0, 1.0, 4.0], [2.5] * 5, 2, 8)
if found["startup_seconds"] != 9 or found["images_per_second"] != {"mean": 4, "median": 8}:
    sys.exit(f"the speed is {found}")
try:
    require_finite([2.5, float("nan")])
    sys.exit("a run whose loss is not finite counts")
except SystemExit as end:
    if end.code != 76:
        raise
END
python3 -B "$work/write.py" "$2/results/peers" "$work/logs" || exit 1
"$1" analyze "$work/logs" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
for word in '1n1g  *2  *128.00' '2n8g  *1  *2048.00'; do
  grep -q "$word" "$work/out" || { echo "'$word' is missing:"; cat "$work/out"; exit 1; }
done
"$1" compare "$work/logs" "$work/logs" >"$work/out" 2>&1
grep -q 'PyTorch  *2 ' "$work/out" && grep -q '1n1g, synthetic' "$work/out" || { cat "$work/out"; exit 1; }
[ "$(ls "$work/logs/1n1g")" = 'resnet50_b32_fp16_1.log
resnet50_b32_fp16_2.log' ] || { ls "$work/logs/1n1g"; exit 1; }
