#!/usr/bin/env bash
# hosts.sh SCENARIO PROGRAMS: plumbline doctor and screen.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

# doctor ARGUMENTS…: plumbline doctor on n1, out of the folder package. Its way to other hosts fails as ssh's does where
# the network doesn't lead there: by Linux's own message.
doctor() {
  cat >reach <<'REACH'
#!/bin/bash
said=$({ : <"/dev/tcp/$1/22"; } 2>&1 | sed -n 1p)
[[ $said == *refused* ]] || { echo "ssh: connect to host $1 port 22: ${said##*: }" >&2 && exit 255; }
exec "$CLUSTER" ssh "$@"
REACH
  chmod +x reach
  "$CLUSTER" on n1 package/plumbline doctor --ssh ./reach "$@"
}

case $scenario in
  doctor_names_hosts_that_differ)
    on_cluster 4 none
    # n2 has the program of another build under the same path, n4's cable is out.
    mkdir -p package "$PWD/package"
    cp "$programs/plumbline" "$programs/bench_resnet50" package/
    "$CLUSTER" own n2 "$PWD/package"
    # shellcheck disable=SC2016 # the inner shell's variables
    "$CLUSTER" on n2 sh -c 'cp "$1/plumbline" package/ && cp "$1/bench_allreduce" package/bench_resnet50' sh "$programs"
    "$CLUSTER" link n4 down
    code=0
    doctor -H 'n[1-4]' --timeout-s 15 >doctor.txt 2>&1 || code=$?
    cat doctor.txt
    [ $code = 69 ] || fail "exit code $code"
    grep -q '^error *n2: build ' doctor.txt || fail "the other build isn't named"
    grep -q "^error *n4: can't be reached (ssh: connect to host n4 port 22: No route to host): " doctor.txt || fail "n4 isn't named"
    grep -q '^4 hosts, 3 answered' doctor.txt || fail "other hosts aren't judged"
    ! grep -E '^error *n[13]' doctor.txt || fail "a host without an error is named"
    ! grep -E '^[a-z]* *[^:]*: (clock|resolves|its name)' doctor.txt || fail "equal clocks and names are found fault with"
    "$CLUSTER" on n2 rm package/bench_resnet50
    code=0
    doctor -H 'n[1-2],n5' >doctor.txt 2>&1 || code=$?
    cat doctor.txt
    [ $code = 69 ] || fail "exit code $code"
    grep -q "^error *n2: $PWD/package/bench_resnet50 doesn't start" doctor.txt || fail "the missing program isn't named"
    grep -q '^error *n5: ' doctor.txt || fail "the host that isn't there isn't named"
    ;;
  screen_names_a_slow_host)
    on_cluster 4 none
    mkdir package
    cp "$programs/plumbline" package/
    # n3 computes a quarter of the time only, however busy the machine is.
    cat >package/bench_resnet50 <<PROGRAM
#!/bin/sh
[ "\$(hostname)" = n3 ] || exec "$programs/small_resnet" "\$@"
"$programs/small_resnet" "\$@" &
program=\$!
while kill -STOP \$program 2>/dev/null; do sleep 0.3; kill -CONT \$program; sleep 0.1; done &
wait \$program
PROGRAM
    chmod +x package/bench_resnet50
    code=0
    "$CLUSTER" on n1 package/plumbline screen --ssh "$CLUSTER ssh" -H 'n[1-4]' --seconds 1 -- --image-size 32 --bs 2 \
      --iters 5 --warmup 2 --threads 1 >screen.txt 2>&1 || code=$?
    cat screen.txt
    [ $code = 1 ] || fail "exit code $code"
    grep -q '^FAIL *device alone *n3 ' screen.txt || fail "n3 isn't named"
    grep -q -- '--exclude=n3 | mpirun -H n1,n2,n4$' screen.txt || fail "no lists for Slurm and mpirun"
    ;;
  screen_names_a_device_of_odd_bits)
    on_cluster 3 none
    mkdir package
    cp "$programs/plumbline" package/
    export PLUMBLINE_NVML_LIBRARY=$programs/../tests/bench/libfake_nvml.so
    # GPUs where they are emulated: verdict.sh has CPUs.
    trained=small_resnet precision=(--fp32)
    [ ! -x "$programs/small_resnet_emulated" ] || trained=small_resnet_emulated precision=(--fp16 --loss-scale 128)
    cat >package/bench_resnet50 <<PROGRAM
#!/bin/sh
[ "\$(hostname)" != n2 ] || export LD_PRELOAD=$programs/../tests/cluster/libodd_bits.so
exec "$programs/$trained" "\$@"
PROGRAM
    chmod +x package/bench_resnet50
    code=0
    "$CLUSTER" on n1 package/plumbline screen --ssh "$CLUSTER ssh" -H 'n[1-3]' --seconds 0.1 -- --image-size 32 --bs 4 \
      --iters 2 --warmup 1 --lr 0.001 "${precision[@]}" >screen.txt 2>&1 || code=$?
    cat screen.txt
    [ $code = 1 ] || fail "exit code $code"
    grep -q "n2.*: computes other bits than most devices of its kind: " <<<"$(tr -s ' \n' ' ' <screen.txt)" ||
      fail "n2's bits aren't named"
    ;;
  *) fail "no scenario $scenario" ;;
esac
