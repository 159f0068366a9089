#!/usr/bin/env bash
# links.sh SCENARIO PROGRAMS: what links and the messages over them do.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

# expect_sent WHAT MPIRUN_ARGUMENTS…: four ranks on hosts n1 to N ($hosts) sum 20 MB twice; a host sends and receives
# 2 (n - 1) / n of that.
expect_sent() {
  what=$1
  shift
  for host in $hosts; do "$CLUSTER" sent "$host" >"$host.before"; done
  "$CLUSTER" mpirun "$@" "$programs/cluster_allreduce" 20000000 1 || fail "the allreduce over $what failed"
  for host in $hosts; do
    sent=$(($("$CLUSTER" sent "$host") - $(cat "$host.before")))
    expect_near "what $host sent over $what" $sent 60000000 63000000
  done
}

case $scenario in
  slow_links_lower_throughput)
    on_cluster 2 none
    model='--backbone y1 --head dp --classes 100 --iters 3'
    train fast bench_arcface -np 2 -H n1,n2
    "$CLUSTER" rate n2 25mbit
    train slow bench_arcface -np 2 -H n1,n2
    # No machine is faster than its link, and 25 Mbit/s take seconds for a step.
    bound=$(number slow gradients | awk '{ print 2 * 2 / ($1 / 3.125e6) }')
    expect_near "images/s at 25 Mbit/s" "$(number slow mean)" 0 "$(echo "$bound" | awk '{ print $1 * 1.1 }')"
    expect_near "images/s without limit" "$(number fast max)" "$(number slow mean | awk '{ print $1 * 1.2 }')" 1e9
    ;;
  steps_take_as_long_as_predicted)
    on_cluster 4 none
    model="--backbone y1 --head dp --classes 100 --iters 8 --bucket-mb 1"
    model="$model --comm mpi --profile" train recorded bench_arcface -np 1 -H n1
    "$CLUSTER" rate all 60mbit
    "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" -b 256K -e 4M -f 4 -n 3 -w 1 --quiet \
      --output links.json >sizes.txt 2>&1 || { cat sizes.txt && fail "no links"; }
    "$programs/plumbline" scaling recorded/runs --links links.json --force >scaling.txt 2>&1 ||
      { cat scaling.txt && fail "no prediction"; }
    predicted=$(awk '$1 == "4n1g" { print $8; exit }' scaling.txt)
    train trained bench_arcface -np 4 -H n1,n2,n3,n4
    # Gross errors only: four ranks compute on the cores of one machine, which others may use.
    trained=$(number trained median | awk '{ print 4 * 2 / $1 * 1000 }')
    expect_near "trained over predicted" "$(echo "$trained $predicted" | awk '{ print $1 / $2 }')" 0.6 1.7
    ;;
  allreduce_sends_the_least)
    on_cluster 4 none
    hosts='n1 n2 n3 n4'
    expect_sent "four hosts" -np 4 -H n1,n2,n3,n4
    hosts='n1 n2'
    expect_sent "two hosts, dealt out by host" -np 4 --map-by node -H n1:2,n2:2
    ;;
  collectives_hold_however_ranks_are_dealt_out)
    on_cluster 2 none
    for order in slot node; do
      "$CLUSTER" mpirun -np 4 --map-by $order -H n1:2,n2:2 "$programs/comm_mpi_tests" \
        --gtest_filter='*CollectiveKinds*:MpiCommunicator*' >tests.txt 2>&1 || { cat tests.txt && exit 1; }
    done
    ;;
  a_slow_host_is_named)
    on_cluster 4 1gbit
    "$CLUSTER" rate n3 100mbit
    "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_arcface" --backbone y1 --head dp --classes 100 --bs 2 --threads 1 \
      --iters 3 --warmup 1 >run.txt 2>&1 || { cat run.txt && fail "no run"; }
    [ "$(grep -c '^host n3 reaches' run.txt)" = 1 ] || { cat run.txt && fail "it is named more than once"; }
    grep -q 'note  *host n3 reaches' run.txt || { cat run.txt && fail "the table does not name it"; }
    sed '/^\[n1:/d' run.txt | sed -n 1,2p >first.txt # mpirun's own warnings left out
    grep -q 'host n3 reaches' first.txt || { cat run.txt && fail "it isn't named at once"; }
    "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" --pairs >pairs.txt
    grep '^host n3 reaches' pairs.txt || { cat pairs.txt && fail "--pairs doesn't name n3"; }
    # A message's latency is the busy machine's.
    ! grep '^host n[124] reaches' pairs.txt || fail "--pairs names another host"
    "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" -b 2M -e 4M -f 2 -n 3 -w 0 --output links.json \
      >sizes.txt 2>&1 || { cat sizes.txt && fail "no sizes"; }
    for pattern in 'host n3 reaches' '2 sizes will take about' 'a ring of single messages reached 0.01. before'; do
      grep -q "$pattern" sizes.txt || { cat sizes.txt && fail "no word of: $pattern"; }
    done
    [ "$(grep -c '"first": ' links.json) $(grep -c '"hosts": 4' links.json)" = "6 2" ] || fail "links.json has not pairs and sizes"
    ;;
  equal_hosts_are_not_called_slow)
    on_cluster 4 1gbit
    model='--backbone y1 --head dp --classes 100 --iters 3'
    for i in 1 2 3; do
      train "equal$i" bench_arcface -np 4 -H n1,n2,n3,n4
      ! grep -E 'every step waits|same address' "equal$i.txt" || fail "a false alarm"
    done
    [ "$(grep -c '"first": ' equal1/runs/*/result.json)" = 6 ] || fail "result.json has not 6 links"
    model="$model --no-probe"
    train unprobed bench_arcface -np 2 -H n1,n2
    ! grep '"links"' unprobed/runs/*/result.json || fail "--no-probe measured links"
    ;;
  shared_addresses_are_named)
    on_cluster 2 none
    for host in n1 n2; do "$CLUSTER" address $host docker0 172.17.0.1/16; done
    # Open MPI, which hangs by interfaces that lead nowhere, leaves them out by a file of settings. The programs read the
    # environment alone.
    echo 'btl_tcp_if_exclude = docker0,lo' >settings
    undecided='-np 2 -H n1,n2 --mca mca_base_param_files /run/scratch/settings'
    # shellcheck disable=SC2086 # a list of words
    expect_says 'same address: 172.17.0.1 (docker0 on n1 and n2)' run \
      "$CLUSTER" mpirun $undecided "$programs/bench_arcface" --backbone y1 --head dp --classes 100 --bs 2 --threads 1
    model='--backbone y1 --head dp --classes 100 --iters 3'
    train remedied bench_arcface -np 2 -H n1,n2 --mca btl_tcp_if_include 10.77.0.0/16
    ! grep 'same address' remedied.txt || fail "the remedy doesn't end the warnings"
    ;;
  *) fail "no scenario $scenario" ;;
esac
