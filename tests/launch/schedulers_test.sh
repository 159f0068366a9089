#!/usr/bin/env bash
# schedulers_test.sh PLUMBLINE: what launch/ has for schedulers, with a plumbline that fails, passes or can't tell.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
launch=$(cd "${0%/*}/../../launch" && pwd) real=$1
. "${0%/*}/../prelude.sh"
needs python3 python3
python3 -c 'import yaml' 2>/dev/null || skip "python3's yaml is missing (Debian: python3-yaml)"
cd "$scratch"
mkdir bin
printf '#!/bin/sh\necho "$@" >>asked\necho "n3 FAIL device alone: 17.2 images/s"\nexit $(cat code)\n' >bin/plumbline
printf '#!/bin/sh\nfor word in "$@"; do echo "$word"; done >>drained\n' >bin/scontrol
chmod +x bin/*
export PATH=$scratch/bin:$PATH SLURMD_NODENAME=n3

# Slurm's prolog, epilog and health check: only a failure drains.
for script in prolog epilog health_check; do
  echo 0 >code
  "$launch/slurm/$script.sh" || fail "$script fails a good node"
  [ ! -e drained ] || fail "$script drains a good node"
  echo 1 >code
  ! "$launch/slurm/$script.sh" || fail "$script passes a bad node"
  [ "$(cat drained)" = "$(printf '%s\n' update nodename=n3 state=drain 'reason=n3 FAIL device alone: 17.2 images/s')" ] || fail "$script: $(cat drained)"
  rm drained
done
PLUMBLINE_CHECK='--budget 9' "$launch/slurm/prolog.sh" || true
[ "$(tail -n 1 asked)" = 'check --exit-codes slurm --budget 9' ] || fail "plumbline was called with $(tail -n 1 asked)"

# Node Health Check: die gets the line.
die() { echo "$2" >died; }
. "$launch/nhc/plumbline.nhc"
! check_plumbline || fail "NHC passes a bad node"
[ "$(cat died)" = 'check_plumbline: n3 FAIL device alone: 17.2 images/s' ] || fail "NHC is told $(cat died)"
echo 0 >code
check_plumbline --budget 5
[ "$(tail -n 1 asked)" = 'check --exit-codes slurm --budget 5' ] || fail "plumbline was called with $(tail -n 1 asked)"

# Kubernetes: the commands are ones that plumbline has.
python3 - "$launch/kubernetes" >commands <<'PYTHON'
import json, sys, yaml
config = json.load(open(sys.argv[1] + "/npd.json"))
rule = config["rules"][0]
assert rule["condition"] == config["conditions"][0]["type"] and config["pluginConfig"]["max_output_length"] == 80
pod = yaml.safe_load(open(sys.argv[1] + "/preflight.yaml"))
environment, job = yaml.safe_load_all(open(sys.argv[1] + "/mpijob.yaml"))
parts = job["spec"]["mpiReplicaSpecs"]
command = parts["Launcher"]["template"]["spec"]["containers"][0]["command"]
assert command[3] == str(parts["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]), command
assert set(environment["data"]) == {command[i + 1] for i, word in enumerate(command) if word == "-x"}, command
for part in parts.values():
    worker = part["template"]["spec"]
    mounts = {mount["name"] for mount in worker["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in worker["volumes"]}, worker
print(*rule["args"])
print(*pod["spec"]["initContainers"][0]["command"][1:])
PYTHON
while read -r words; do
  # shellcheck disable=SC2086 # words of a command
  "$real" $words --help >/dev/null
done <commands
