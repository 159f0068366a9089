# Read by the scripts of scenarios, SUBJECT.sh SCENARIO PROGRAMS, which run a scenario on a cluster of its own
# (cluster.sh); PROGRAMS is the folder of the built programs. 77 where this machine can't make a cluster. How busy the
# machine is decides nothing.
# shellcheck shell=bash disable=SC2034,SC2154,SC2164 # variables of the scripts, which end where cd fails
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

# train NAME PROGRAM MPIRUN_ARGUMENTS…: a short run; what it writes is in the folder NAME, its table in NAME.out and its
# messages in NAME.txt.
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
    --log-dir "$PWD/$name/logs" --output "$PWD/$name/runs" >"$name.out" 2>"$name.txt" ||
    { cat "$name.out" "$name.txt" && fail "$name failed"; }
}

# on_first COMMAND…: on n1, with a cluster's settings where mpirun finds them.
on_first() {
  OMPI_MCA_plm_rsh_agent="$CLUSTER ssh" OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_mpi_yield_when_idle=1 \
    "$CLUSTER" on n1 "$@"
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

# start_endless [LAUNCHER…]: in the background, by mpirun if nothing else is given, until ended by what happens to it;
# returns once it trains. $! is the launcher.
start_endless() {
  [ $# -gt 0 ] || set -- "$CLUSTER" mpirun -np 2 -H n1,n2
  "$@" "$programs/bench_arcface" --backbone y1 --head dp --classes 100 --bs 2 --threads 1 \
    --warmup 1 --lr 0.001 --iters 100000 --timeout-s 5 --log-dir "$PWD/logs" --output "$PWD/runs" >run.txt 2>&1 &
  started=$!
  for _ in $(seq 1500); do
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
