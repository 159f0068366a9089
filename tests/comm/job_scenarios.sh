#!/bin/sh
# job_scenarios.sh SCENARIO PROGRAM MPIRUN [OPTION…]: starts PROGRAM so that the scenario happens; fails unless code and
# words are those that README.md promises.
set -u
scenario=$1 program=$2
shift 2
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# expect CODE LINES_WITH_PATTERN PATTERN COMMAND…
expect() {
  code=$1 times=$2 pattern=$3
  shift 3
  "$@" >"$output" 2>&1
  got=$?
  found=$(grep -c "$pattern" "$output")
  if [ "$got" -ne "$code" ] || [ "$found" -ne "$times" ]; then
    echo "exit code $got (wanted $code), '$pattern' in $found lines (wanted $times):"
    cat "$output"
    exit 1
  fi
}

# Takes from a command what MPI would join its job by; the launcher's OMPI_COMM_WORLD_SIZE stays.
outside() {
  cat <<'EOF'
for name in $(env | sed -n 's/^\(PMIX_[A-Za-z0-9_]*\|PMI_FD\|OMPI_MCA_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
exec "$@"
EOF
}

case $scenario in
  rank_outside_its_job)
    said="the launcher started 2 processes"
    "$1" --version >"$output" 2>&1
    if grep -q HYDRA "$output"; then # MPICH's waits for ever for a process that never joins the others
      expect 64 2 "$said" "$@" -np 2 sh -c "$(outside)" sh "$program"
    else
      expect 64 1 "$said" "$@" -np 1 "$program" : -np 1 sh -c "$(outside)" sh "$program"
    fi
    ;;
  abort_ends_all_ranks)
    expect 75 0 "^rank" "$@" -np 3 "$program" abort
    ;;
  error_on_one_rank)
    expect 65 1 "^--data holds no class folder" "$@" -np 3 "$program" error
    ;;
  start_without_ssh)
    expect 0 1 "^rank 0 of 1$" env PATH=/nonexistent "$program"
    ;;
  *)
    echo "no scenario $scenario"
    exit 1
    ;;
esac
