#!/usr/bin/env bash
# run.sh PROGRAMS TRANSCRIPT…: runs the commands of transcripts, with the programs of that folder, and compares what they
# print with what the transcripts hold. A transcript has commands, "$ COMMAND", each followed by its standard output, its
# standard error behind "! ", and its exit code as "[CODE]" unless that is 0; "> " continues a command. Bash runs a
# transcript's commands in one empty folder. What varies from machine to machine is replaced by varies.sed.
# 77 without Python, which reads JSON. JSON is checked by its JSON Schema, where Python has jsonschema. With PLUMB_UPDATE=1 the transcripts are rewritten instead: update.sh.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
command -v python3 >/dev/null || { echo 'skipped: python3 is missing (Debian: python3)' && exit 77; }
programs=$(realpath "$1")
golden=$(realpath "$(dirname "$0")")
root=$(realpath "$golden/../..")
shift
# shellcheck source=tests/golden/made_inputs.sh
source "$golden/made_inputs.sh"

# Prints a command and what comes of it. Variables of this script begin with "run_", as commands share them.
transcribe() {
  local run_code=0 run_command=$1
  eval "$run_command" >"$scratch/out" 2>"$scratch/err" </dev/null || run_code=$?
  sed 's/^/> /; 1s/^>/$/' <<<"$run_command"
  { cat "$scratch/out"; sed 's/^/! /' "$scratch/err"; } |
    sed -E "s#$programs/##g; s#$root#ROOT#g; s#$scratch#SCRATCH#g; s/^[\$>] / &/" | sed -E -f "$golden/varies.sed"
  [ -z "$(tail -c 1 "$scratch/out")" ] || echo
  [ $run_code -eq 0 ] || echo "[$run_code]"
}

# Prints a transcript with what its commands print now.
retrace() {
  local run_line run_next='' run_before=''
  while IFS= read -r run_line; do
    case $run_line in
      '$ '*) [ -z "$run_next" ] || transcribe "$run_next"; run_next=${run_line:2} ;;
      '> '*) case $run_before in '$ '* | '> '*) run_next+=$'\n'${run_line:2} ;; esac ;;
    esac
    run_before=$run_line
  done
  transcribe "$run_next"
}

export PATH=$programs:$PATH LC_ALL=C.UTF-8 TZ=UTC OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OMPI_ALLOW_RUN_AS_ROOT=1
export SCHEMAS=$programs/.. OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
unset COLUMNS OMPI_MCA_plm_rsh_agent
scratch=$(mktemp -d)
chmod 755 "$scratch"
trap 'chmod -R u+rwx "$scratch"; rm -rf "$scratch"' EXIT
failures=0
for transcript in "$@"; do
  transcript=$(realpath "$transcript")
  (
    mkdir "$scratch/folder"
    cd "$scratch/folder"
    retrace <"$transcript" >"$scratch/new"
  )
  chmod -R u+rwx "$scratch/folder" # some take rights away
  rm -rf "$scratch/folder"
  if [ "${PLUMB_UPDATE:-}" = 1 ]; then
    cp "$scratch/new" "$transcript"
  elif ! diff -u --label "${transcript##*/}" --label now "$transcript" "$scratch/new"; then
    failures=$((failures + 1))
  fi
done
[ $failures -eq 0 ] || { echo "where this is meant: tests/golden/update.sh $programs" && exit 1; }
