#!/bin/sh
# faults.sh SCENARIO PROGRAMS: hosts, ranks and processes that are lost.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
. "${0%/*}/scenario.sh"

case $scenario in
  a_lost_host_is_named_and_leaves_no_process)
    on_cluster 2 none
    start_endless
    "$CLUSTER" link n2 down
    expect_ended '75 137' 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  a_stopped_rank_of_another_host_is_named)
    on_cluster 2 none
    start_endless
    stop_rank_1
    expect_ended 75 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  a_killed_daemon_ends_the_job)
    on_cluster 2 none
    start_endless
    pkill -KILL -x orted
    # mpirun may have its word first.
    expect_ended '1 75 137 143 205' 'rank 1 on n2\|lost communication\|daemon'
    ;;
  ends_with_its_process)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    code=0
    "$make_cluster" 1 none sh -c 'exit 3' >"$folder/said" || code=$?
    [ $code != 77 ] || { cat "$folder/said" && exit 77; }
    [ $code = 3 ] || fail "the command's exit code 3 became $code"
    mkfifo "$folder/pipe"
    for signal in TERM KILL; do
      # shellcheck disable=SC2016 # the cluster's variable
      "$make_cluster" 2 none sh -c '"$CLUSTER" on n2 sleep 1000 & echo up; sleep 1000' >"$folder/pipe" &
      exec 3<"$folder/pipe"
      read -r up <&3
      [ "$up" = up ] || fail "the cluster said $up"
      kill -$signal $!
      cat <&3  # returns once every process of the cluster is gone
      exec 3<&-
    done
    ;;
  *) fail "no scenario $scenario" ;;
esac
