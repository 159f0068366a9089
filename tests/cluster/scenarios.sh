#!/bin/sh
# scenarios.sh SCENARIO PROGRAMS: runs a scenario on a cluster of its own (cluster.sh); PROGRAMS is the folder of the
# built programs. 77 where this machine can't make a cluster. How busy the machine is decides nothing.
set -eu
self=$(readlink -f "$0") scenario=$1 programs=$2
root=${self%/tests/*}
make_cluster=${self%/*}/cluster.sh

on_cluster() {
  [ -n "${CLUSTER:-}" ] || exec "$make_cluster" "$1" "$2" "$self" "$scenario" "$programs"
  mkdir -p /run/scratch  # of the cluster: goes with it
  cd /run/scratch
}

# on_slurm: on two hosts, with a Slurm of their own.
on_slurm() {
  for tool in slurmctld slurmd srun sbatch munged; do
    command -v "$tool" >/dev/null || {
      echo "skipped: $tool is missing (Debian: slurmctld, slurmd, slurm-client, munge)"
      exit 77
    }
  done
  on_cluster 2 none
  . "${self%/*}/slurm.sh"
  start_slurm n1 n2
}

fail() {
  echo "$*"
  exit 1
}

# train NAME PROGRAM MPIRUN_ARGUMENTS…: a short run; what it writes is in the folder NAME.
train() {
  name=$1 program=$2
  shift 2
  train_by "$name" "$program" "$CLUSTER" mpirun "$@"
}

# train_by NAME PROGRAM LAUNCHER…: the same through another launcher.
train_by() {
  name=$1 program=$programs/$2
  shift 2
  "$@" "$program" $model --bs 2 --warmup 1 --lr 0.001 --threads 1 \
    --log-dir "$PWD/$name/logs" --out "$PWD/$name/runs" >"$name.txt" 2>&1 || { cat "$name.txt" && fail "$name failed"; }
}

# on_first COMMAND…: on n1, with a cluster's settings where mpirun finds them.
on_first() {
  OMPI_MCA_plm_rsh_agent="$CLUSTER ssh" OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_mpi_yield_when_idle=1 \
    "$CLUSTER" on n1 "$@"
}
launch_run() {
  on_first "$root/launch/run" "$@"
}

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

# expect_says WORDS NAME COMMAND…: the command prints WORDS, whereupon it is ended. What it says is in NAME.txt.
expect_says() {
  words=$1 said=$2.txt
  shift 2
  "$@" >"$said" 2>&1 &
  for _ in $(seq 300); do
    ! grep -q "$words" "$said" || break
    kill -0 $! 2>/dev/null || break
    sleep 0.2
  done
  kill $! 2>/dev/null || true
  wait $! || true
  grep -q "$words" "$said" || { cat "$said" && fail "nothing says '$words'"; }
}

# list NAME KEY, number NAME KEY: of the run's result.json.
list() {
  sed -n "/^ \"$2\": \[/,/\]/p" "$1"/runs/*/result.json
}
number() {
  sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*$/\1/p" "$1"/runs/*/result.json
}

expect_same_losses() {
  [ -n "$(list "$1" loss)" ] || fail "result.json has no losses"
  [ "$(list "$1" loss)" = "$(list "$2" loss)" ] || fail "losses differ: $(list "$1" loss) and $(list "$2" loss)"
}

# expect_near WHAT VALUE LEAST MOST
expect_near() {
  awk -v value="$2" -v least="$3" -v most="$4" 'BEGIN { exit !(value >= least && value <= most) }' ||
    fail "$1 is $2, not between $3 and $4"
}

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

# record_step BUCKET_MB: into a folder of this name.
record_step() {
  model="--backbone y1 --head dp --classes 100 --iters 6 --comm mpi --bucket-mb $1 --profile"
  train "$1" bench_arcface -np 1 -H n1
}

# predict_and_replay RATE BUCKET_MB: sets $predicted and $replayed, a recorded step's milliseconds on four hosts with
# links of RATE, by the simulator and with real messages between sleeps. Prints both.
predict_and_replay() {
  rate=$1 recorded=$2
  "$CLUSTER" rate all "$rate"
  "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" -b 256K -e 4M -f 4 -n 3 -w 1 --quiet \
    --out links.json --overwrite >sizes.txt 2>&1 || { cat sizes.txt && fail "no links at $rate"; }
  "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" --replay y1 -n 5 -w 1 --quiet \
    --compute "$recorded"/runs/*/program.json >replay.txt 2>&1 || { cat replay.txt && fail "no replay at $rate"; }
  "$programs/plumbline" scaling "$recorded/runs" --links links.json --force >scaling.txt 2>&1 ||
    { cat scaling.txt && fail "no prediction at $rate"; }
  predicted=$(awk '$1 == "4n1g" { print $8; exit }' scaling.txt)
  replayed=$(awk '/^  the step / { print $3 }' replay.txt)
  printf '%8s  %5s MiB  predicted %8.1f ms  replayed %8.1f ms\n' "$rate" "$recorded" "$predicted" "$replayed"
}

# start_endless [LAUNCHER…]: in the background, by mpirun if nothing else is given, until ended by what happens to it;
# returns once it trains. $! is the launcher.
start_endless() {
  [ $# -gt 0 ] || set -- "$CLUSTER" mpirun -np 2 -H n1,n2
  "$@" "$programs/bench_arcface" --backbone y1 --head dp --classes 100 --bs 2 --threads 1 \
    --warmup 1 --lr 0.001 --iters 100000 --timeout-s 5 --log-dir "$PWD/logs" --out "$PWD/runs" >run.txt 2>&1 &
  started=$!
  for _ in $(seq 600); do
    [ "$(cat logs/*/*.part 2>/dev/null | wc -l)" -lt 3 ] || return 0
    kill -0 $started 2>/dev/null || break
    sleep 0.1
  done
  cat run.txt
  fail "it doesn't train"
}

# signal_rank RANK SIGNAL: fails if it doesn't run.
signal_rank() {
  for pid in $(pgrep -f bench_arcface); do
    ! grep -qzx "PMIX_RANK=$1" "/proc/$pid/environ" 2>/dev/null || { kill "-$2" "$pid" && return; }
  done
  return 1
}

# expect_ended CODES WORDS: the run ends with one of CODES, says WORDS, and no process of it is left on any host.
expect_ended() {
  for _ in $(seq 450); do
    kill -0 $started 2>/dev/null || break
    sleep 0.1
  done
  ! kill -0 $started 2>/dev/null || { cat run.txt && ps -ef && fail "it goes on after 45 s"; }
  code=0
  wait $started || code=$?
  cat run.txt
  case " $1 " in *" $code "*) ;; *) fail "exit code $code" ;; esac
  grep -q "$2" run.txt || fail "nothing says '$2'"
  for _ in $(seq 450); do
    left=$(ps -e -o stat=,comm= | grep -E '^[^Z].*(bench_arcface|exe|orted|mpirun|srun)' || true)
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  fail "left behind: $left"
}

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
    train idle bench_arcface -np 1 -H n1,n2
    [ -d shared/logs/2n2g ] || fail "no folder 2n2g, but $(ls shared/logs)"
    [ -d separate/logs/2n1g ] || fail "no folder 2n1g, but $(ls separate/logs)"
    grep -q 'mpirun was given 2 hosts but starts 1 rank: ' idle.txt || fail "no idle host is named: $(cat idle.txt)"
    [ -z "$("$CLUSTER" on n2 ls "$PWD/separate")" ] || fail "a host without rank 0 wrote files"
    ;;
  slow_links_lower_throughput)
    on_cluster 2 none
    model='--backbone y1 --head dp --classes 100 --iters 3'
    train fast bench_arcface -np 2 -H n1,n2
    "$CLUSTER" rate n2 25mbit
    train slow bench_arcface -np 2 -H n1,n2
    # No machine is faster than its link, and 25 Mbit/s take seconds for a step.
    bound=$(number slow gradients | awk '{ print 2 * 2 / ($1 / 3.125e6) }')
    expect_near "images/s at 25 Mbit/s" "$(number slow mean)" 0 "$(echo "$bound" | awk '{ print $1 * 1.1 }')"
    expect_near "images/s without limit" "$(number fast mean)" "$(number slow mean | awk '{ print $1 * 1.2 }')" 1e9
    ;;
  steps_take_as_long_as_predicted)
    on_cluster 4 none
    record_step 1
    predict_and_replay 60mbit 1
    model="--backbone y1 --head dp --classes 100 --iters 4 --bucket-mb 1"
    train trained bench_arcface -np 4 -H n1,n2,n3,n4
    # Gross errors only: four ranks compute on the cores of one machine, which others may use.
    expect_near "replayed over predicted" "$(echo "$replayed $predicted" | awk '{ print $1 / $2 }')" 0.6 1.7
    trained=$(number trained mean | awk '{ print 4 * 2 / $1 * 1000 }')
    expect_near "trained over predicted" "$(echo "$trained $predicted" | awk '{ print $1 / $2 }')" 0.6 1.7
    ;;
  a_slow_rank_is_named)
    on_cluster 2 none
    model='--image-size 32 --iters 6'
    train slow damaged_training -x PLUMB_DAMAGE=slow -np 2 -H n1,n2
    tr -s ' \n' ' ' <slow.txt >line.txt
    grep -q 'rank 1 on n2 computes [0-9.]* m*s a step where the median is' line.txt ||
      fail "the table names no slow host: $(cat slow.txt)"
    grep -q '"rank 1 on n2 computes ' slow/runs/*/result.json || fail "result.json names no slow host"
    "$programs/plumbline" report slow/runs -o slow.html || fail "there is no report"
    grep -q 'rank 1 on n2 computes ' slow.html || fail "the report names no slow host"
    ;;
  a_lost_host_is_named_and_leaves_no_process)
    on_cluster 2 none
    start_endless
    "$CLUSTER" link n2 down
    expect_ended '75 137' 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  a_stopped_rank_of_another_host_is_named)
    on_cluster 2 none
    start_endless
    signal_rank 1 STOP
    expect_ended 75 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
    ;;
  a_killed_daemon_ends_the_job)
    on_cluster 2 none
    start_endless
    pkill -KILL -x orted
    # mpirun may have its word first.
    expect_ended '1 75 137 143 205' 'rank 1 on n2\|lost communication\|daemon'
    ;;
  allreduce_sends_the_least)
    on_cluster 4 none
    hosts='n1 n2 n3 n4'
    expect_sent "four hosts" -np 4 -H n1,n2,n3,n4
    hosts='n1 n2'
    expect_sent "two hosts, dealt out by host" -np 4 --map-by node -H n1:2,n2:2
    ;;
  a_slow_host_is_named)
    on_cluster 4 1gbit
    "$CLUSTER" rate n3 100mbit
    expect_says 'host n3 reaches [0-9]* Mbit/s where others reach [0-9]* Mbit/s' run \
      "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_resnet50" --image-size 32 --bs 2 --threads 1
    [ "$(grep -c 'reaches' run.txt)" = 1 ] || { cat run.txt && fail "it is named more than once"; }
    sed -n 1,2p run.txt >first.txt
    grep -q 'host n3 reaches' first.txt || { cat run.txt && fail "it isn't named at once"; }
    "$CLUSTER" mpirun -np 4 -H n1,n2,n3,n4 "$programs/bench_allreduce" --pairs >pairs.txt
    grep '^n3 is slow: its best link reaches' pairs.txt || { cat pairs.txt && fail "--pairs doesn't name n3"; }
    # A message's latency is the busy machine's.
    ! grep '^n[124] is slow: its best link reaches' pairs.txt || fail "--pairs names another host"
    ;;
  equal_hosts_are_not_called_slow)
    on_cluster 4 1gbit
    model='--backbone y1 --head dp --classes 100 --iters 3 --verbose'
    for i in 1 2 3; do
      train "equal$i" bench_arcface -np 4 -H n1,n2,n3,n4
      ! grep -E 'every step waits|same address|share . networks' "equal$i.txt" || fail "a false alarm"
      grep -q 'probe: 6 pairs of hosts over MPI' "equal$i.txt" || { cat "equal$i.txt" && fail "no probe is told"; }
    done
    [ "$(grep -c '"first": ' equal1/runs/*/result.json)" = 6 ] || fail "result.json has not 6 links"
    model="$model --no-probe"
    train unprobed bench_arcface -np 2 -H n1,n2
    ! grep '"links"' unprobed/runs/*/result.json || fail "--no-probe measured links"
    ;;
  shared_addresses_and_networks_are_named)
    on_cluster 2 none
    for host in n1 n2; do "$CLUSTER" address $host docker0 172.17.0.1/16; done
    # Whether this run hangs is up to Open MPI.
    expect_says 'same address: 172.17.0.1 (docker0 on n1 and n2)' run \
      "$CLUSTER" mpirun -np 2 -H n1,n2 "$programs/bench_resnet50" --image-size 32 --bs 2 --threads 1
    for host in n1 n2; do "$CLUSTER" address $host eth1 "10.78.0.${host#n}/16"; done
    expect_says 'n1 and n2 share 2 networks, 10.77.0.0/16 (eth0) and 10.78.0.0/16 (eth1)' run \
      "$CLUSTER" mpirun -np 2 -H n1,n2 "$programs/bench_allreduce" --pairs
    model='--backbone y1 --head dp --classes 100 --iters 3'
    train remedied bench_arcface -np 2 -H n1,n2 --mca btl_tcp_if_include 10.77.0.0/16
    ! grep -E 'same address|networks' remedied.txt || fail "the remedy doesn't end the warnings"
    ;;
  collectives_hold_however_ranks_are_dealt_out)
    on_cluster 2 none
    for order in slot node; do
      "$CLUSTER" mpirun -np 4 --map-by $order -H n1:2,n2:2 "$programs/comm_mpi_tests" \
        --gtest_filter='*CollectiveKinds*:MpiCommunicator*' >tests.txt 2>&1 || { cat tests.txt && exit 1; }
    done
    ;;
  launch_run_gives_mpiruns_result)
    on_cluster 2 none
    model='--image-size 32 --iters 2'
    train plain bench_resnet50 -np 2 -H n1,n2
    train_by launched bench_resnet50 launch_run -H 'n[1-2]'
    expect_same_losses plain launched
    [ -d launched/logs/2n1g ] || fail "no folder 2n1g, but $(ls launched/logs)"
    grep -q '^mpirun -np 2 -H n1:1,n2:1 ' launched.txt || fail "the command line isn't shown: $(cat launched.txt)"
    code=0
    launch_run -H 'n[1-3]' touch started 2>refused.txt || code=$?
    [ $code = 69 ] && [ ! -e started ] || fail "exit code $code for a host that isn't there: $(cat refused.txt)"
    grep -q 'host n3 has no address' refused.txt || fail "it says: $(cat refused.txt)"
    ;;
  launch_run_gives_mpiruns_result_under_slurm)
    on_slurm
    model='--image-size 32 --iters 2 --device cpu'
    train plain bench_resnet50 -np 2 -H n1,n2
    train_by stepped bench_resnet50 launch_run --via srun -H 'n[1-2]'
    expect_same_losses plain stepped
    "$CLUSTER" on n1 "$programs/plumbline" doctor --ssh srun -H 'n[1-2],n9' >doctor.txt 2>&1 || true
    grep -q '^error *n9: .*Invalid node name.*: name hosts as sinfo shows them' doctor.txt || fail "srun's refusal isn't told: $(cat doctor.txt)"
    grep -q '^3 hosts, 2 answered' doctor.txt || fail "srun doesn't reach the hosts: $(cat doctor.txt)"
    here=$PWD
    train_in_job() { # as sbatch's options wait for the end, and the job's folder holds launch/
      (cd "$root" && "$CLUSTER" on n1 sbatch --wait --quiet --nodes=2 --ntasks-per-node=1 --gpus-per-node=0 \
        --output="$here/job.txt" launch/slurm/run.sbatch "$@") || { cat job.txt && return 1; }
    }
    train_by batched bench_resnet50 train_in_job
    expect_same_losses plain batched
    ;;
  lost_ranks_end_under_srun)
    on_slurm
    # Without --kill-on-bad-exit srun waits for a stopped rank.
    for kills in 0 1; do
      start_endless "$CLUSTER" on n1 srun --kill-on-bad-exit=$kills --mpi=pmix --nodes=2 --ntasks=2
      signal_rank 1 STOP
      expect_ended '75 137 143' 'rank 1 on n2 (pid [0-9]*) has sent nothing for'
      rm -r logs
    done
    # Killed before MPI knows it, where srun waits for the others.
    "$CLUSTER" on n1 env "LD_PRELOAD=$programs/../tests/faults/liblost_at_start.so" \
      PLUMB_LOST="3 MPI_Init_thread 1 19" srun --mpi=pmix --nodes=2 --ntasks=4 "$programs/bench_arcface" \
      --backbone y1 --head dp --classes 100 --bs 2 --threads 1 --startup-timeout-s 10 >run.txt 2>&1 &
    started=$!
    while [ -z "$(ps -e -o stat=,args= | grep '^T.*bench_arcface')" ]; do
      kill -0 $started || { cat run.txt && fail "no rank stops"; }
      sleep 0.1
    done
    sleep 3 # its neighbour sees it
    signal_rank 3 KILL
    expect_ended '75 137 143' 'rank 3 on n2 (pid [0-9]*) is gone\|of 4 ranks this host runs'
    ;;
  a_sweep_over_hosts_says_whether_it_scales)
    on_cluster 4 1gbit
    cat >sweep.toml <<TOML
[sweep]
repetitions = 1
[launcher]
hosts = "n[1-4]"
programs = "$programs"
[[case]]
model = "resnet50"
nodes = [1, 2, 4]
devices_per_node = [1]
batch_sizes = [2]
precisions = ["fp32"]
iterations = 3
warmup = 1
options = { device = "cpu", image-size = 32, threads = 1, lr = 0.001, comm = "mpi", profile = true }
TOML
    on_first "$programs/plumbline" sweep sweep.toml --dry-run >plan.txt
    grep -q "/launch/run -H 'n\[1-4\]' --nodes 4 --devices 1 $programs/bench_resnet50 " plan.txt || fail "the plan is $(cat plan.txt)"
    on_first "$programs/plumbline" sweep sweep.toml --out swept >sweep.txt 2>&1 ||
      { cat sweep.txt swept/output/* && fail "the sweep failed"; }
    for name in 1n1g 2n1g 4n1g; do
      grep -q "^$name " sweep.txt || fail "no row of $name in $(cat sweep.txt)"
    done
    "$programs/plumbline" report swept --format markdown -o report.md || fail "there is no report"
    head -n 1 report.md >answer.txt
    grep -qE "^ResNet-50 v1\.5 fp32 (scales as it should|doesn't scale as it should|is held back by its links|can't be judged).*[24]n1g" answer.txt ||
      fail "the report begins with: $(cat answer.txt)"
    grep -q ' predicted |$' report.md || fail "nothing is predicted by the links that the runs probed: $(cat report.md)"
    "$programs/plumbline" report swept -o report.html || fail "there is no page"
    grep -q 'Does it scale as it should?' report.html || fail "the page has no answer"
    sed -i 's/nodes = .*/nodes = [1, 8]/' sweep.toml
    code=0
    on_first "$programs/plumbline" sweep sweep.toml --out more 2>refused.txt || code=$?
    [ $code = 65 ] || fail "exit code $code for more hosts than there are"
    grep -q '8 is more than the 4 hosts that are named' refused.txt || fail "it says: $(cat refused.txt)"
    ;;
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
    # n3 computes a sixth of the time only, however busy the machine is.
    cat >package/bench_resnet50 <<PROGRAM
#!/bin/sh
[ "\$(hostname)" = n3 ] || exec "$programs/bench_resnet50" "\$@"
"$programs/bench_resnet50" "\$@" &
program=\$!
while kill -STOP \$program 2>/dev/null; do sleep 0.5; kill -CONT \$program; sleep 0.1; done &
wait \$program
PROGRAM
    chmod +x package/bench_resnet50
    code=0
    "$CLUSTER" on n1 package/plumbline screen --ssh "$CLUSTER ssh" -H 'n[1-4]' --seconds 3 -- --image-size 32 --bs 2 \
      --iters 5 --warmup 2 --threads 1 >screen.txt 2>&1 || code=$?
    cat screen.txt
    [ $code = 1 ] || fail "exit code $code"
    grep -q '^n3 is slow: ' screen.txt || fail "n3 isn't named"
    grep -q 'mpirun -H n1,n2,n4$' screen.txt || fail "no list for mpirun"
    grep -q -- '--exclude=n3$' screen.txt || fail "no list for Slurm"
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
