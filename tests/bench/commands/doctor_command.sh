#!/usr/bin/env bash
# doctor_command.sh BEHAVIOUR PLUMBLINE: plumbline doctor with a transport that the test makes up instead of
# ssh: hosts that answer with this host's facts under their own names, and some that don't. Real hosts: tests/cluster.
. "${BASH_SOURCE[0]%/*}/../../prelude.sh"
behavior=$1
plumbline=$2
cd "$scratch"
unset OMPI_MCA_plm_rsh_agent

# transport: a command that takes a host and a command line, from standard input.
transport() {
  { echo '#!/bin/bash'; echo 'host=$1; shift'; cat; } >transport # the command line is in $@
  chmod +x transport
}

# doctor ARGUMENTS…: leaves the exit code in `code`, standard output in `output`, and standard error in `message`.
doctor() {
  code=0
  output=$("$plumbline" doctor --program "$plumbline" --ssh ./transport "$@" 2>message) || code=$?
  message=$(<message)
}

# A stub's last lines: facts under the host's name.
answer_with_facts='echo "${facts/\"host\":\"/\"host\":\"$host.}"'

# This host's facts, at rest and with enough of everything.
well_facts() {
  "$plumbline" doctor --here --program "$plumbline" |
    sed -E 's/"load":[^,]*/"load":0.0/; s/"free_bytes":[^,]*/"free_bytes":1e12/; s/"shared_memory_free_bytes":[^,}]*/"shared_memory_free_bytes":1e12/
      s/"daemon":"[^"]*"/"daemon":"orted"/; s/("mpirun":"[^"]*","version":)"[^"]*"/\1""/; s/"open files":[^,}]*/"open files":65536/' >facts
}

case $behavior in
  a_thousand_hosts_are_asked)
    well_facts
    transport <<'STUB'
facts=$(<facts)
case $host in
  10.77.0.7) echo "ssh: connect to host $host port 22: No route to host" >&2 && exit 255 ;;
  10.77.0.8) echo "sh: 1: $1: not found" >&2 && exit 127 ;;
  10.77.0.9) exec sleep 1000 ;;
  10.77.0.10) facts=${facts/'"build_id":"'/'"build_id":"0000'} ;;
esac
echo "Welcome to $host"
STUB
    echo "$answer_with_facts" >>transport
    start=$SECONDS
    doctor -H '10.77.[0-3].[1-250]' --timeout-s 15 # addresses, so that no name server is asked
    echo "1,000 hosts in $((SECONDS - start)) s"
    expect_code 69
    expect_word "10.77.0.7: can't be reached (ssh: connect to host 10.77.0.7 port 22: No route to host): check that it is up"
    expect_word "10.77.0.8: $plumbline can't be started there (sh: 1: "
    expect_word "10.77.0.9: doesn't answer within 15 s: "
    expect_word "10.77.0.10: build 0000"
    expect_word "1000 hosts, 997 answered in "
    [ "$(wc -l <<<"$output")" -le 15 ] || fail "more than a line for each finding: $output"
    ;;
  findings_are_named)
    well_facts
    transport <<<"facts=\$(<facts); $answer_with_facts"
    doctor -H 'n[1-3].invalid' --json
    [ "$(grep -c '"answered": true' <<<"$output")" = 3 ] || fail "not all answered: $output"
    # This host alone needs no transport.
    rm transport
    code=0
    output=$("$plumbline" doctor --program "$plumbline" --json) || code=$?
    [[ $code = 0 || $code = 1 ]] && grep -q "\"host\": \"$(uname -n)\"" <<<"$output" || fail "$code: $output"
    code=0
    output=$("$plumbline" doctor --program "$scratch/nothing") || code=$?
    expect_code 69
    expect_word "$scratch/nothing doesn't start ($scratch/nothing: No such file or directory)"
    ;;
  *) fail "unknown behavior $behavior" ;;
esac
