#!/usr/bin/env bash
# verdict.sh SCENARIO PROGRAMS: plumbline accept and check.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

# accept NAME OPTION…: on n1 over all hosts; exit code in $code, files in the folder NAME.
accept() {
  local name=$1
  shift
  code=0
  on_first "$programs/plumbline" accept --ssh "$CLUSTER ssh" --output "$name" --budget 0.2 "$@" \
    --program "${program:-$programs/bench_arcface}" -- --backbone y1 --head dp --classes 100 --bs 2 --threads 1 >"$name.txt" 2>&1 || code=$?
  cat "$name.txt"
}

# expect_bad NAME HOST…: these hosts and no others are to be left out.
expect_bad() {
  [ "$code" = 1 ] || fail "exit code $code"
  [ "$(tr '\n' ' ' <"$1/exclude.txt")" = "${*:2} " ] || fail "exclude.txt names $(tr '\n' ' ' <"$1/exclude.txt")"
  [[ $(grep -v ^plumbline: "$1.txt") == "FAIL  "*" bad: "* ]] || fail "the first line isn't the verdict"
  [ "$(sed -n '/^FAIL/,$p' "$1.txt" | wc -l)" -le 30 ] || fail "more than 30 lines"
}

# lose_rank HOST FILES: once the FILES are there, ends the host's training process.
lose_rank() {
  until compgen -G "$2" >/dev/null; do sleep 0.1; done
  while sleep 0.5; do
    for process in $(ip netns pids "$1"); do
      ! grep -qs ^bench "/proc/$process/comm" || { kill -KILL "$process" && return; }
    done
  done
}

case $scenario in
  accept_passes_good_hosts)
    on_cluster 3 1gbit
    accept good -H 'n[1-3]' --link 1Gbit/s --save-expect expect.json
    # A busy machine may leave it at "can't tell", never at a failure.
    [ $code = 0 ] || [ $code = 2 ] || fail "exit code $code"
    [ ! -s good/exclude.txt ] || fail "exclude.txt isn't empty"
    for file in accept.json accept.txt junit.xml plumbline.prom links.json expect.json scaling/runs; do
      [ -s good/$file ] || fail "$file is missing"
    done
    accept again -H 'n[1-3]' --against good
    [ $code = 0 ] || [ $code = 2 ] || fail "exit code $code against an equal measurement"
    grep -q 'against 3n1g .* runs of good' again/accept.txt || fail "no case is compared with good/"
    # What was saved is what check expects: half of the speed that devices had together passes on one alone.
    sed -E -i 's/("images_per_second": ).*,/\11.0,/' expect.json
    "$CLUSTER" on n1 "$programs/plumbline" check --budget 4 --expect expect.json --program "$programs/bench_arcface" >check.txt
    grep -q '^n1 PASS ' check.txt || fail "check: $(cat check.txt)"
    sed -E -i 's/("images_per_second": ).*,/\11e6,/' expect.json
    code=0
    "$CLUSTER" on n1 "$programs/plumbline" check --budget 4 --expect expect.json --program "$programs/bench_arcface" >check.txt || code=$?
    [ $code = 1 ] && grep -q '^n1 FAIL device alone: ' check.txt || fail "check, code $code: $(cat check.txt)"
    ;;
  accept_names_two_faults_at_once)
    on_cluster 4 1gbit
    "$CLUSTER" rate n3 100mbit
    "$CLUSTER" link n4 down
    accept two -H 'n[1-4]'
    expect_bad two n3 n4
    grep -q '^FAIL *link *n3 - all ' two.txt || fail "n3's link isn't named"
    grep -q "^n4: other hosts don't reach it" two.txt || fail "n4's network isn't named"
    ;;
  accept_names_another_build_and_odd_bits)
    on_cluster 4 1gbit
    mkdir package
    cp "$programs/bench_allreduce" package/
    cat >package/bench_arcface <<PROGRAM
#!/bin/sh
case \$(hostname):\$* in
  n2:"--version --json") "$programs/bench_arcface" "\$@" | sed -E 's/("build_id": *")..../\1dead/' && exit ;;
  n3:*) export LD_PRELOAD=$programs/../tests/cluster/libodd_bits.so ;;
esac
exec "$programs/bench_arcface" "\$@"
PROGRAM
    chmod +x package/bench_arcface
    program=$PWD/package/bench_arcface
    accept odd -H 'n[1-4]'
    expect_bad odd n2 n3
    grep -q "^n2: build " odd.txt || fail "n2's build isn't named"
    grep -q "n3: computes other bits than most devices of its kind: " <<<"$(tr -s ' \n' ' ' <odd.txt)" ||
      fail "n3's tensor isn't named"
    ;;
  accept_knows_what_links_should_reach)
    on_cluster 2 100mbit
    accept slow -H n1,n2 --link 1Gbit/s
    expect_bad slow n1 n2
    ;;
  accept_names_a_slow_host_and_a_lost_rank)
    on_cluster 4 1gbit
    # n3 computes a quarter of the time only, and n2 loses its rank in the scaling series.
    while sleep 0.1; do
      for process in $(ip netns pids n3); do kill -STOP "$process" 2>/dev/null || true; done
      sleep 0.3
      for process in $(ip netns pids n3); do kill -CONT "$process" 2>/dev/null || true; done
    done &
    lose_rank n2 'lost/scaling/output/*2n1g*' &
    accept lost -H 'n[1-4]'
    expect_bad lost n2 n3
    grep -q '^FAIL .*n3 ' lost.txt || fail "n3 isn't named"
    grep -qE '^n2: (rank 1 on n2 .* is gone|mpirun noticed that process rank 1 )' lost.txt || fail "n2's rank isn't named"
    ;;
  accept_needs_no_hosts_in_a_slurm_job)
    on_slurm
    code=0
    "$CLUSTER" on n1 salloc --quiet -N 2 "$programs/plumbline" accept --output job --budget 0.1 --program "$programs/bench_arcface" \
      -- --backbone y1 --head dp --classes 100 --bs 2 --threads 1 >job.txt 2>&1 || code=$?
    cat job.txt
    # Two hosts have nothing to be compared with.
    [ $code = 2 ] || fail "exit code $code"
    [ -s job/links.json ] || fail "no links: $(cat job/output/*)"
    grep -q 'scaling 2n1g' job.txt || fail "no scaling over both hosts"
    ;;
  check_drains_a_node_in_slurms_prolog)
    SLURM_MORE=$'Prolog=/run/scratch/prolog\nPrologFlags=Alloc'
    on_slurm
    cpu=$("$programs/plumbline" doctor --here | sed -n 's/.*"cpu":"\([^"]*\)".*/\1/p')
    for host in n1 n2; do
      speed=1
      [ $host = n1 ] || speed=1e6
      echo '{"schema": "plumbline.expect/1", "source": "this test", "options": ["--backbone", "y1", "--head", "dp", "--classes", "100",' \
        '"--bs", "2"], "devices_per_host": 0, "devices": [{"name": "'"$cpu"'", "images_per_second": '"$speed"', "images_per_second_together": null, "runs": 1}],' \
        '"link_bytes_per_second": null, "within_host_bytes_per_second": null}' >expect.$host.json
    done
    cat >prolog <<PROLOG
#!/bin/sh
export SLURM_CONF=$SLURM_CONF PATH=$programs:/usr/bin:/bin
export PLUMBLINE_CHECK="--budget 4 --program $programs/bench_arcface --expect $PWD/expect.\$SLURMD_NODENAME.json"
exec $root/launch/slurm/prolog.sh
PROLOG
    chmod +x prolog
    [ "$("$CLUSTER" on n1 srun -w n1 hostname)" = n1 ] || fail "a good node doesn't run the job"
    timeout 60 "$CLUSTER" on n1 srun -w n2 hostname >srun.txt 2>&1 &
    for attempt in $(seq 100); do
      state=$("$CLUSTER" on n1 sinfo -h -n n2 -o '%T %E')
      [[ $state != drain*' n2 FAIL device alone: '* ]] || break
      [ "$attempt" -lt 100 ] || fail "n2 is $state"
      sleep 0.5
    done
    kill $! 2>/dev/null || true
    [ "$("$CLUSTER" on n1 sinfo -h -n n1 -o %T)" = idle ] || fail "n1 isn't idle"
    ;;
  *) fail "no scenario $scenario" ;;
esac
