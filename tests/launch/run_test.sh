#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are arguments and scripts
# run_test.sh BEHAVIOUR SOURCE_DIR: one behaviour of launch/run, with launchers and look-ups that the test makes up; 77
# where a tool of the test is missing. Real jobs: tests/cluster.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
behaviour=$1
sources=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset "${!SLURM_@}" "${!NCCL_@}" "${!UCX_@}" "${!FI_@}" "${!OMP_@}" "${!PLUMB_CUDA_@}"

fail() {
  echo "FAILED: $*"
  exit 1
}

# fake NAME: a tool whose text comes from standard input, in front of the machine's.
fake() {
  mkdir -p "$scratch/tools"
  { echo '#!/bin/bash'; cat; } >"$scratch/tools/$1"
  chmod +x "$scratch/tools/$1"
}

# launch ARGUMENTS…: leaves the exit code in `code`, standard output in `output`, and standard error in `message`.
launch() {
  code=0
  output=$(PATH=$scratch/tools:$PATH "$sources/launch/run" "$@" 2>"$scratch/message") || code=$?
  message=$(<"$scratch/message")
}
expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $output $message"; }
expect_output() { [ "$output" = "$1" ] || fail "'$output' instead of '$1' $message"; }

# hosts LIST HOST…: the hosts that mpirun gets.
hosts() {
  launch --print -H "$1" program
  expect_code 0
  expect_output "mpirun -np $(($# - 1)) -H $(IFS=, && echo "${*:2}") --map-by ppr:1:node --bind-to none program"
}

# refused CODE WORDS ARGUMENTS…: one sentence that has WORDS, and nothing is printed.
refused() {
  launch "${@:3}"
  expect_code "$1"
  [[ $message == *"$2"* ]] || fail "'$2' is missing in: $message"
  [[ $message == 'launch/run: '* && $message != *$'\n'* && -z $output ]] || fail "not one sentence: $message $output"
}

case $behaviour in
  host_lists)
    hosts n1,n2 n1:1 n2:1
    hosts 'node[1-3]' node1:1 node2:1 node3:1
    hosts 'node[01-03,7]' node01:1 node02:1 node03:1 node7:1
    hosts 'node[08-10]' node08:1 node09:1 node10:1
    hosts 'a[1,3],b,c[2]' a1:1 a3:1 b:1 c2:1
    hosts 'rack[1-2]n[1-2].lan' rack1n1.lan:1 rack1n2.lan:1 rack2n1.lan:1 rack2n2.lan:1
    hosts node1..3 node1:1 node2:1 node3:1
    hosts gpu-09..10.lan,x gpu-09.lan:1 gpu-10.lan:1 x:1
    hosts 10.0.0.1..2 10.0.0.1:1 10.0.0.2:1
    ;;
  bad_host_lists_are_refused)
    while IFS='|' read -r list words; do
      refused 64 "$words" --print -H "$list" program
    done <<'LISTS'
node[4-1]|range 4-1 runs backwards; write 1-4
node4..1|range 4-1 runs backwards; write 1-4
n1,n2,n1|host n1 is named twice
n[1-3],n2|host n2 is named twice
n1;reboot|'n1;reboot' is no host name
$(reboot)|is no host name
n1 n2|'n1 n2' is no host name
-x|'-x' is no host name
n1:8|ranks per host as --devices
n1,|'' is no host name
n1..n4|'n1..n4' is no host name
n[1-2|lacks a closing bracket
n1]|'n1]' is no host name
n[]|'' is no number or range
n[1,]|'' is no number or range
n[a-b]|'a-b' is no number or range
n[1-99999]|has more than 10000 hosts
n[1-999999999999]|is no number or range
|names no host
LISTS
    refused 64 'is no host name' --print -H $'n1\nn2' program
    ;;
  ranks_are_shared_evenly)
    launch --print -H 'n[1-4]' --nodes 2 --devices 8 program
    expect_output 'mpirun -np 16 -H n1:8,n2:8 --map-by ppr:8:node --bind-to none program'
    launch --print -H 'n[1-2]' -np 6 program
    expect_output 'mpirun -np 6 -H n1:3,n2:3 --map-by ppr:3:node --bind-to none program'
    launch --print -H 'n[1-2]' --devices 8 -np 4 program
    expect_output 'mpirun -np 4 -H n1:2,n2:2 --map-by ppr:2:node --bind-to none program'
    printf '# two\nn1 slots=4\n\nn[2-3]  slots=4 max_slots=8 # more\nn4 slots=2' >"$scratch/hosts"
    launch --print --hostfile "$scratch/hosts" --nodes 3 program
    expect_output 'mpirun -np 12 -H n1:4,n2:4,n3:4 --map-by ppr:4:node --bind-to none program'
    refused 64 'host n4 has 2 slots, fewer than 4; give --devices 2' --print --hostfile "$scratch/hosts" program
    refused 64 'host n1 has 4 slots, fewer than 16' --print --hostfile "$scratch/hosts" --nodes 1 --devices 16 program
    refused 64 '17 is more than the 16 slots of the hosts (8 each)' --print -H n1,n2 --devices 8 -np 17 program
    refused 64 "1 can't be shared evenly by 2 hosts" --print -H n1,n2 -np 1 program
    refused 64 '3 is more than the 2 hosts' --print -H n1,n2 --nodes 3 program
    ;;
  bad_host_files_are_refused)
    refused 65 "can't be read" --print --hostfile "$scratch/none" program
    for line in 'n1 slot=4' 'n1 slots=0' 'n1 slots=4;x' 'n[2-1]' "n1
n1" ''; do
      echo "$line" >"$scratch/hosts"
      refused 65 "$scratch/hosts" --print --hostfile "$scratch/hosts" program
    done
    ;;
  usage_is_refused)
    refused 64 'PROGRAM is missing' -H n1
    refused 64 'PROGRAM is missing' -H n1 -- --bs
    refused 64 "'ssh' is no launcher; give mpirun, srun or kubernetes" -H n1 --via ssh program
    refused 64 "'--bs' is not an option" -H n1 --bs 8 program
    refused 64 'option --devices wants a value' -H n1 --devices
    refused 64 "'08' is no whole number" -H n1 --devices 08 program
    refused 64 "'0' is no whole number" -H n1 -np 0 program
    refused 64 'both name hosts' -H n1 --hostfile hosts program
    refused 64 'no hosts are named' program
    refused 64 "argument ':'" -H n1 program : other
    launch --help
    expect_code 0
    [[ $output == *--hostfile* && $output != *shellcheck* ]] || fail "no help: $output"
    ;;
  cores_are_shared_where_they_are_known)
    echo 'echo n2.lan' | fake uname
    printf 'echo "# core,socket"\nfor core in {0..7} {0..7}; do echo $core,0; done\n' | fake lscpu
    echo 'echo 16' | fake nproc
    launch --print -H n1,n2 --devices 2 program
    expect_output 'mpirun -np 4 -H n1:2,n2:2 --map-by ppr:2:node:PE=4 --bind-to core program'
    launch --print -H n1,n2 program
    expect_output 'mpirun -np 2 -H n1:1,n2:1 --map-by ppr:1:node --bind-to none program'
    launch --print -H n1,n3 --devices 2 program
    expect_output 'mpirun -np 4 -H n1:2,n3:2 --map-by ppr:2:node --bind-to none program'
    launch --print -H n1,n3 --devices 2 --cores 3 program
    expect_output 'mpirun -np 4 -H n1:2,n3:2 --map-by ppr:2:node:PE=3 --bind-to core program'
    echo 'echo 6' | fake nproc # a container may use fewer
    launch --print -H n1,n2 --devices 2 program
    expect_output 'mpirun -np 4 -H n1:2,n2:2 --map-by ppr:2:node:PE=3 --bind-to core program'
    ;;
  slurm_jobs_name_hosts)
    export SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[1-2]' SLURM_NTASKS_PER_NODE=2 SLURM_CPUS_ON_NODE=8
    common='--distribution=block:block --kill-on-bad-exit=1'
    launch --print program
    expect_output "env SLURM_PMIX_FENCE=ring srun --mpi=pmix --nodes=2 --nodelist=n1,n2 --ntasks=4 --ntasks-per-node=2 $common --cpus-per-task=4 --cpu-bind=cores program"
    export SLURM_GPUS_ON_NODE=2
    launch --print --nodes 1 --devices 1 program
    expect_output "env SLURM_PMIX_FENCE=ring srun --mpi=pmix --nodes=1 --nodelist=n1 --ntasks=1 --ntasks-per-node=1 $common --cpu-bind=none --gpus-per-node=1 program"
    launch --print --nodes 1 --devices 1 program --device cpu
    [[ $output != *--gpus* ]] || fail "asks for GPUs: $output"
    refused 64 'host n1 has 2 slots, fewer than 4' --print --devices 4 program
    launch --print --via mpirun program
    [[ $output == 'mpirun -np 4 -H n1:2,n2:2 '* ]] || fail "not mpirun: $output"
    unset "${!SLURM_@}"
    launch --print --via srun -H n1,n2 --devices 8 program
    expect_output "env SLURM_PMIX_FENCE=ring srun --mpi=pmix --nodes=2 --nodelist=n1,n2 --ntasks=16 --ntasks-per-node=8 $common --exclusive --cpu-bind=none --gpus-per-node=8 program"
    ;;
  arguments_arrive_as_they_are)
    printf 'printf "<%%s>" "$@"\n' | fake mpirun
    echo true | fake getent
    export NCCL_DEBUG=INFO
    launch -H n1 --with --mca --with pml --with=ob1 -- true 'a b' '$(reboot)' "it's" '*' '' --print
    expect_code 0
    expect_output "<-np><1><-H><n1:1><--map-by><ppr:1:node><--bind-to><none><-x><NCCL_DEBUG><--mca><pml><ob1><true><a b><\$(reboot)><it's><*><><--print>"
    # The line that is shown is the one that was started.
    [ "$(PATH=$scratch/tools:$PATH bash -c "$message")" = "$output" ] || fail "the line does something else: $message"
    ;;
  more_ranks_than_gpus_are_refused)
    echo 'echo n2.lan' | fake uname
    printf 'for gpu in {0..7}; do echo "GPU $gpu: H200"; done\n' | fake nvidia-smi
    refused 64 '16 is more than the 8 GPUs' --print -H n1,n2 --devices 16 ./bench_resnet50
    for fits in '-H n1,n2 --devices 8 bench_resnet50' '-H n1,n3 --devices 16 bench_resnet50' \
      '-H n1,n2 --devices 16 bench_resnet50 --device cpu' '-H n1,n2 --devices 16 bench_resnet50 --share-gpu' \
      '-H n1,n2 --devices 16 program'; do
      # shellcheck disable=SC2086 # words
      launch --print $fits
      expect_code 0
    done
    ;;
  what_is_missing_starts_nothing)
    echo "touch $scratch/started" | fake mpirun
    printf 'for host in "${@:2}"; do [ "$host" != n2 ] || exit 2; done\n' | fake getent
    refused 69 'host n2 has no address' -H 'n[1-3]' true
    refused 69 "there is no program './nothing'" -H n1 ./nothing
    refused 69 "there is no program 'refuse'" -H n1 refuse
    mkdir "$scratch/few"
    for tool in bash env dirname readlink uname; do ln -s "$(command -v $tool)" "$scratch/few/"; done
    for launcher in mpirun srun; do
      refused_here=0
      PATH=$scratch/few "$sources/launch/run" --via $launcher -H n1 true 2>"$scratch/message" || refused_here=$?
      [ $refused_here = 69 ] && grep -q "$launcher is not installed" "$scratch/message" || fail "$(cat "$scratch/message")"
    done
    [ ! -e "$scratch/started" ] || fail "mpirun was started"
    ;;
  an_mpijob_follows_the_operators_rules)
    export NCCL_SOCKET_IFNAME='eth0"'
    launch --via kubernetes -H 'n[1-4]' --devices 8 --image reg.lan/plumbline:0.1 bench_resnet50 '$(x) "\' $'a\tb' @IMAGE@
    expect_code 0
    echo "$output" >"$scratch/job.yaml"
    grep -q '"a\\tb", "@IMAGE@"\]$' "$scratch/job.yaml" || fail "no arguments: $output"
    [ "$(grep -c '@[A-Z]*@' "$scratch/job.yaml")" = 1 ] || fail "not filled in: $output"
    refused 64 'control characters' --via kubernetes -H n1 program $'\e'
    python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3 has no yaml (Debian: python3-yaml)" && exit 77; }
    python3 "${BASH_SOURCE[0]%/*}/check_mpijob.py" "$scratch/job.yaml"
    launch --via kubernetes --nodes 2 --cores 4 program --device cpu
    expect_code 0
    [[ $output == *'limits: {cpu: 4}'* && $output == *'nodeAffinity: {}'* ]] || fail "GPUs, or hosts: $output"
    ;;
  dlperfs_cases_run_in_turn)
    mkdir "$scratch/launch"
    cat >"$scratch/launch/run" <<'RUN'
#!/bin/sh
echo "$*" >>calls
case $* in *"--nodes 4"*) exit 75 ;; *--usage*) exit 64 ;; esac
RUN
    chmod +x "$scratch/launch/run"
    cd "$scratch"
    code=0
    REPETITIONS=2 CASES='1n1g 4n8g' sh "$sources/launch/slurm/dlperf.sbatch" program 'a b' 2>message || code=$?
    [ $code = 1 ] && [ "$(<message)" = 'failed: 4n8g/1 (exit code 75) 4n8g/2 (exit code 75)' ] || fail "$code: $(<message)"
    alternating=$'--nodes 1 --devices 1 program a b\n--nodes 4 --devices 8 program a b'
    [ "$(<calls)" = "$alternating"$'\n'"$alternating" ] || fail "it ran $(<calls)"
    code=0
    sh "$sources/launch/slurm/dlperf.sbatch" --usage || code=$?
    [ $code = 64 ] && [ "$(wc -l <calls)" = 5 ] || fail "goes on after a usage error: $(<calls)"
    ;;
  *) fail "unknown behaviour $behaviour" ;;
esac
