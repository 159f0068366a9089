#!/usr/bin/env bash
# faults.sh SCENARIO PROGRAMS: hosts, ranks and processes that are lost.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

case $scenario in
  a_lost_host_is_named_and_leaves_no_process)
    on_cluster 2 none
    start_endless
    "$CLUSTER" link n2 down
    expect_ended '75 137' 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  the_first_host_is_lost_and_leaves_no_process)
    on_cluster 3 none
    start_endless "$CLUSTER" mpirun -np 6 -H n1:2,n2:2,n3:2
    ip -n n1 link del eth0
    # Its own ranks used that link, too.
    expect_ended '75 137' 'rank [1-5] on n[1-3] (pid [0-9]*) has sent nothing for'
    ;;
  steps_longer_than_the_timeout_are_no_alarm)
    on_cluster 2 10mbit
    model='--backbone y1 --head dp --classes 100 --iters 3 --timeout-s 2'
    train slow bench_arcface -np 2 -H n1,n2
    expect_near "the median of images/s at 10 Mbit/s" "$(number slow median)" 0 2 # of 4 images a step
    ;;
  a_stopped_rank_of_another_host_is_named)
    on_cluster 2 none
    start_endless
    signal_rank 1 STOP
    expect_ended '75 137' 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  a_killed_daemon_ends_the_job)
    on_cluster 2 none
    start_endless
    pkill -KILL -x orted
    # mpirun may have its word first.
    expect_ended '1 75 137 143 205' 'rank 1 on n2\|lost communication\|daemon'
    ;;
  a_killed_mpirun_ends_ranks_on_every_host)
    on_cluster 2 none
    "$CLUSTER" own n2 "$PWD/runs"
    start_endless
    pkill -KILL -x "mpirun|mpiexec"
    # What ranks say goes through mpirun.
    expect_ended 137 training
    # n2 has no folder of the run, so it keeps rank 1's words.
    # shellcheck disable=SC2016 # that host's variable
    for words in "$(cat runs/*/rank_0.json)" "$("$CLUSTER" on n2 sh -c 'cat "$TMPDIR"/plumbline_*_rank_1.json')"; do
      grep -q '"failure": "\(the launcher that started rank\|rank [01] on n[12]\)' <<<"$words" ||
        fail "these are no last words: $words"
    done
    ;;
  lost_ranks_end_under_srun)
    on_slurm
    for signal in STOP KILL; do
      start_endless "$CLUSTER" on n1 srun --kill-on-bad-exit=1 --mpi=pmix --nodes=2 --ntasks=2
      signal_rank 1 $signal
      # srun may be the first to end rank 0.
      expect_ended '75 137 143' 'rank 1 on n2 (pid [0-9]*) \(has sent nothing for\|is gone\)\|task 1: Killed'
      rm -r logs
    done
    # Lost before MPI knows it, where srun waits for the others.
    "$CLUSTER" on n1 env "LD_PRELOAD=$programs/../tests/faults/liblost_at_start.so" \
      PLUMB_LOST="3 MPI_Init_thread 1 9" srun --overcommit --mpi=pmix --nodes=2 --ntasks=4 "$programs/bench_arcface" \
      --backbone y1 --head dp --classes 100 --bs 2 --threads 1 --startup-timeout-s 5 >run.txt 2>&1 &
    started=$!
    expect_ended '75 137 143' 'rank 0 on n1 (pid [0-9]*) has been in start-up\|task 0: Killed'
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
