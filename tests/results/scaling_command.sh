#!/bin/sh
# scaling_command.sh PLUMBLINE: plumbline scaling as users call it, on a run folder of two layers and their gradients.
plumbline=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE WORD ARGUMENTS…: the exit code, and a word somewhere in the output.
expect() {
  code=$1
  word=$2
  shift 2
  "$plumbline" scaling "$@" >"$work/out" 2>"$work/err"
  got=$?
  if [ $got -ne "$code" ] || ! grep -q -e "$word" "$work/out" "$work/err"; then
    echo "plumbline scaling $*: exit $got (wanted $code), '$word' wanted in:"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}

# refuse CODE WORD ARGUMENTS…: likewise, and one sentence only.
refuse() {
  expect "$@"
  [ "$(wc -l <"$work/err")" -eq 1 ] || { echo "more than a sentence: $(cat "$work/err")" && failures=$((failures + 1)); }
}

# run FOLDER HOST: one device, 8 images per step of 1 s.
run() {
  mkdir -p "$1"
  cat >"$1/result.json" <<JSON
{"schema": "plumbline.result/1", "status": "ok", "failure": "", "model": "resnet50", "precision": "fp32",
 "device": "cpu", "device_name": "some CPU", "batch_per_device": 8, "world_size": 1, "nodes": 1,
 "devices_per_node": 1, "iterations": 3, "warmup": 1, "step_seconds": [1, 1, 1], "loss": [7, 7, 7],
 "images_per_second": {"mean": 8, "median": 8, "min": 8, "max": 8}, "rank_window_seconds": [2],
 "exposed_communication_seconds": 0, "data_wait_seconds": 0, "parameters": 1, "macs_per_image": 1,
 "memory_bytes": {}, "checks": {}, "config": {"bucket_mb": 25.0}, "log_files": [],
 "energy_joules_per_image": null, "ranks": [{"host": "$2", "exposed_communication_seconds": 0}]}
JSON
  cat >"$1/program.json" <<'JSON'
{"format": "plumbline.program/1", "arena_bytes": 0,
 "buffers": [{"name": "a", "role": "gradient", "dtype": "f32", "dims": [262144], "bytes": 1048576},
             {"name": "b", "role": "gradient", "dtype": "f32", "dims": [2097152], "bytes": 8388608}],
 "steps": [{"name": "b.backward", "kind": "k", "phase": "backward", "lane": "compute",
            "uses": [{"operand": "x", "buffer": 1, "access": "w"}]},
           {"name": "a.backward", "kind": "k", "phase": "backward", "lane": "compute",
            "uses": [{"operand": "x", "buffer": 0, "access": "w"}]},
           {"name": "update", "kind": "k", "phase": "update", "lane": "compute",
            "uses": [{"operand": "x", "buffer": 0, "access": "r"}, {"operand": "y", "buffer": 1, "access": "r"}]}]}
JSON
  cat >"$1/profile.json" <<'JSON'
{"format": "plumbline.profile/1", "peak_bytes_per_second": 1e10, "roofline_seconds": 0.1,
 "steps": [{"name": "b.backward", "seconds": 0.5}, {"name": "a.backward", "seconds": 0.4},
           {"name": "update", "seconds": 0.1}]}
JSON
}

run "$work/run" n1
links=$work/links.json
cat >"$links" <<'JSON'
{"schema": "plumbline.links/1", "comm": "mpi", "hosts": [{"name": "n1", "devices": 2}, {"name": "n2", "devices": 2}],
 "within_host": {"latency_seconds": 2e-6, "bytes_per_second": 1e9},
 "between_hosts": {"latency_seconds": 5e-5, "bytes_per_second": 1e7}}
JSON

expect 0 'bucket1.allreduce' "$work/run" --links "$links"
grep -q '^2n2g  *4 ' "$work/out" || { echo "no case 2n2g" && failures=$((failures + 1)); }
expect 0 '^64n2g' "$work/run" --links "$links" --to 128
expect 0 'what if: 1 GB/s between hosts, 5 µs a hop' "$work/run" --links "$links" --bandwidth 1 --latency 5
expect 0 'buckets of 0.5 MiB, gradients sent as fp16' "$work/run" --links "$links" --bucket-mb 0.5 --reduce-dtype fp16
expect 0 '^512n2g' "$work/run" --links "$links" --devices 8..1024
if grep -q '^1n1g' "$work/out"; then echo "1n1g is below 8 devices" && failures=$((failures + 1)); fi
expect 0 '"schema": "plumbline.scaling/1"' "$work/run" --links "$links" --json
expect 0 'naive: twice the throughput of 16' --published

refuse 64 'RUN is missing' --links "$links"
refuse 64 '--links is missing' "$work/run"
refuse 64 "'x'" "$work/run" --links "$links" --devices 8..x
refuse 64 'goes down' "$work/run" --links "$links" --devices 64..8
refuse 64 'multiple of 2' "$work/run" --links "$links" --devices 3
refuse 64 '--bandwidth' "$work/run" --links "$links" --bandwidth 0
refuse 64 'both choose' "$work/run" --links "$links" --devices 8 --to 8
refuse 64 'leave them out' "$work/run" --published
refuse 64 'leave them out' --published --to 64
refuse 65 'nowhere' "$work/nowhere" --links "$links"
refuse 65 'name a links.json' "$work/run" --links "$work"
refuse 65 'none.json' "$work/run" --links "$work/none.json"
refuse 65 'no JSON object' "$work/run" --links "$0"
sed '/between_hosts/d; s/1e9},/1e9}}/' "$links" >"$work/one_host.json"
refuse 65 'knows no link' "$work/run" --links "$work/one_host.json" --devices 8..64
expect 0 'left out, as links.json has no link between hosts: 2n2g' "$work/run" --links "$work/one_host.json"
run "$work/elsewhere" n9
refuse 65 'is of hosts n1, n2' "$work/elsewhere" --links "$links"
expect 0 '^2n2g' "$work/elsewhere" --links "$links" --force
cp -r "$work/run" "$work/shared"
sed -i 's/"role": "gradient"/"role": "gradient", "sharded": true/' "$work/shared/program.json"
refuse 65 'shares class centres out' "$work/shared" --links "$links"
sed -i 's/"a.backward", "seconds"/"c.backward", "seconds"/' "$work/elsewhere/profile.json"
refuse 65 'is of another program' "$work/elsewhere" --links "$links" --force
rm "$work/elsewhere/profile.json"
refuse 65 '--profile' "$work/elsewhere" --links "$links" --force
exit $failures
