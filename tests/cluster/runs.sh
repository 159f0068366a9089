#!/usr/bin/env bash
# runs.sh SCENARIO PROGRAMS: training over hosts.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

case $scenario in
  losses_are_those_of_one_host)
    on_cluster 4 none
    model='--image-size 32 --iters 2'
    train one bench_resnet50 -np 4 -H n1:4
    train four bench_resnet50 -np 4 -H n1,n2,n3,n4
    expect_same_losses one four
    [ -d four/logs/4n1g ] || fail "no folder 4n1g, but $(ls four/logs)"
    ;;
  cases_are_named_by_hosts)
    on_cluster 2 none
    model='--backbone y1 --head dp --classes 100 --iters 3'
    "$CLUSTER" own n2 "$PWD/separate"
    train shared bench_arcface -np 4 -H n1:2,n2:2
    train separate bench_arcface -np 2 -H n1,n2
    [ -d shared/logs/2n2g ] || fail "no folder 2n2g, but $(ls shared/logs)"
    [ -d separate/logs/2n1g ] || fail "no folder 2n1g, but $(ls separate/logs)"
    [ -z "$("$CLUSTER" on n2 ls "$PWD/separate")" ] || fail "a host without rank 0 wrote files"
    code=0
    "$CLUSTER" mpirun -np 3 -H n1:2,n2:1 "$programs/bench_arcface" $model --warmup 1 --threads 1 >uneven.txt 2>&1 || code=$?
    [ $code = 64 ] || fail "exit code $code of ranks that are placed unevenly: $(cat uneven.txt)"
    grep -q 'placed 3 ranks unevenly on 2 hosts, 2 on the fullest; .* mpirun -np 4 -H n[12]:2,' uneven.txt ||
      fail "no remedy for ranks that are placed unevenly: $(cat uneven.txt)"
    ;;
  a_slow_rank_is_named)
    on_cluster 2 none
    model='--backbone y1 --head dp --classes 100 --iters 6'
    train slow damaged_training -x PLUMB_DAMAGE=slow -np 2 -H n1,n2
    tr -s ' \n' ' ' <slow.out >line.txt
    grep -q 'rank 1 on n2 computes [0-9.]* m*s a step where the median is' line.txt ||
      fail "the table names no slow host: $(cat slow.out)"
    grep -q '"rank 1 on n2 computes ' slow/runs/*/result.json || fail "result.json names no slow host"
    "$programs/plumbline" report slow/runs -o slow.html || fail "there is no report"
    grep -q 'rank 1 on n2 computes ' slow.html || fail "the report names no slow host"
    ;;
  *) fail "no scenario $scenario" ;;
esac
