#!/usr/bin/env bash
# How long an analysis takes and how much memory: a log of 1 GB, a folder of 10,000 logs, and the 20 logs of a sweep of
# four cases, these beside DLPerf's own script where it is given. Nothing is asserted: times depend on the machine.
#
#   analysis_speed.sh PLUMBLINE WORK_DIR [PYTHON DLPERF_SCRIPT]
#   e.g. analysis_speed.sh build/release/bin/plumbline /tmp/speed venv/bin/python \
#        DLPerf/PaddlePaddle/resnet50v1.5/extract_paddle_logs.py
#
# WORK_DIR keeps the logs (1.6 GB) for the next time. PYTHON needs NumPy.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
plumbline=$1
work=$2
python=${3:-}
script=${4:-}

# write_log FIRST_SECONDS LINES: Plumbline's own layout, to standard output.
write_log() {
  awk -v first="$1" -v lines="$2" 'BEGIN {
    for (i = 0; i < lines; ++i) {
      seconds = first + i % 97 * 1e-5
      printf "2025-01-02 %02d:%02d:%02d,%03d-INFO: [Pass 0, train batch %d] \tloss %.5f, acc1 0.00000, acc5 0.00000, " \
        "lr 0.10000, elapse %.6f sec Epoch[0] Batch[%d]\tSpeed: %.2f samples/sec\n",
        i / 1000000, i / 20000 % 60, i / 400 % 60, i % 1000, i, 7 - i * 1e-7, seconds, i + 1, 128 / seconds
    }
  }'
}

# measure NAME COMMAND…: five times.
measure() {
  name=$1
  shift
  for _ in 1 2 3 4 5; do
    /usr/bin/time -f "$name: %e s, CPU %U + %S s, %M KB" "$@" >/dev/null 2>"$work/time"
    tail -n 1 "$work/time"
  done
}

if [ ! -e "$work/sweep" ]; then
  mkdir -p "$work/gigabyte/1n1g" "$work/files"
  write_log 0.32 5600000 | awk '(bytes += length + 1) <= 1000000000' >"$work/gigabyte/1n1g/rn50_b128_fp32_1.log"
  for nodes in 1 2 3 4 5 6 7 8 9 10; do
    mkdir -p "$work/files/${nodes}n1g"
    write_log "0.3${nodes}5" 125000 | awk -v prefix="$work/files/${nodes}n1g/rn50_b128_fp32_" '
      { file = prefix int((NR - 1) / 125) + 1 ".log"
        sub(/batch [0-9]+\]/, "batch " (NR - 1) % 125 "]"); sub(/Speed: .*/, "")
        print > file; if (NR % 125 == 0) close(file) }'
  done
  for nodes in 1 2 3 4; do
    mkdir -p "$work/sweep/${nodes}n1g"
    for run in 1 2 3 4 5; do
      write_log "0.3$run" 120 | sed "s/Speed: .*//" >"$work/sweep/${nodes}n1g/rn50_b128_fp32_$run.log"
    done
  done
fi

measure '1 GB' "$plumbline" analyze "$work/gigabyte"
measure '10,000 files' "$plumbline" analyze "$work/files"
measure '20 files' "$plumbline" analyze "$work/sweep"
[ -z "$python" ] || measure '20 files, DLPerf' "$python" "$script" --log_dir "$work/sweep" --output_dir "$work/published"
