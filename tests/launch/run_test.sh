#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are arguments and scripts
# run_test.sh BEHAVIOUR SOURCE_DIR: what tests/golden/launch_run.txt can't show of launch/run, with launchers and look-ups
# that the test makes up; 77 where a tool of the test is missing. Real jobs: tests/cluster.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
behavior=$1
sources=$2
unset "${!SLURM_@}" "${!NCCL_@}" "${!UCX_@}" "${!FI_@}" "${!OMP_@}" "${!PLUMB_CUDA_@}"

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
expect_output() { [ "$output" = "$1" ] || fail "'$output' instead of '$1' $message"; }

# refused CODE WORDS ARGUMENTS…: one sentence that has WORDS, and nothing is printed.
refused() {
  launch "${@:3}"
  expect_code "$1"
  [[ $message == *"$2"* ]] || fail "'$2' is missing in: $message"
  [[ $message == 'launch/run: '* && $message != *$'\n'* && -z $output ]] || fail "not one sentence: $message $output"
}

case $behavior in
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
  what_is_missing_starts_nothing)
    echo "touch $scratch/started" | fake mpirun
    printf 'for host in "${@:2}"; do [ "$host" != n2 ] || exit 2; done\n' | fake getent
    refused 69 'host n2 has no address' -H 'n[1-3]' true
    refused 69 "cannot find the program './nothing'" -H n1 ./nothing
    refused 69 "cannot find the program 'refuse'" -H n1 refuse
    mkdir "$scratch/few"
    for tool in bash env dirname readlink uname; do ln -s "$(command -v $tool)" "$scratch/few/"; done
    for launcher in mpirun srun; do
      refused_here=0
      PATH=$scratch/few "$sources/launch/run" --via $launcher -H n1 true 2>"$scratch/message" || refused_here=$?
      [ $refused_here = 69 ] && grep -q "$launcher: it is not installed" "$scratch/message" || fail "$(cat "$scratch/message")"
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
    python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml (Debian: python3-yaml)"
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
  *) fail "unknown behavior $behavior" ;;
esac
