#!/usr/bin/env bash
# Checks and measures a GPU on a machine where nothing can be installed, from an unpacked bundle (launch/bundle) or from the
# sources: the steps of check_steps.sh in their order, the most valuable first, until BUDGET_S is spent. After every run all
# results so far are packed into OUT/gpu_check.tgz, so whatever stops the check costs one run.
#
#   gpu_check.sh OUT [--rehearse] [--dirty] [--programs FOLDER]
#   gpu_check.sh --list                     the steps and their runs, with the seconds that they should take
#   gpu_check.sh --report FOLDER [--programs FOLDER]   results/measured/GPU and README's tables from all gpu_check*.tgz in
#                                           FOLDER; in the sources
#
#   --rehearse  no GPU: hands every command line to a dry run, then runs it in small
#   --dirty     accept programs that were built from changed sources
#   --programs  the folder of the programs; default: bin beside this script, else build/release/bin
#   BUDGET_S=N  seconds that the call may take (440); runs that don't fit into what is left are left out and named
#   ONLY=REGEX  only the steps, or runs and comparisons, with these names
#   EARLIER=FOLDER  where gpu_check*.tgz of earlier calls lie; default: OUT. Steps that passed there with the same commit on the
#               same GPU are not repeated; tuned engines and the compilers' caches are taken over
#   VARIANTS='OPTIONS; OPTIONS'  sets of options to run ROUNDS (3) times in turn, first of all; with --backbone it is
#               bench_arcface; a set that begins with @FOLDER runs the programs of that folder
#
# Exit codes: 0 all that ran passed; 1 a run or a comparison failed; 64 usage; 65 programs of another commit or of changed
# sources, or nothing to report; 69 no GPU, no programs, no usable CUDA libraries; 73 OUT can't be made, or holds results
# already; 74 OUT can't be written; 128 + n ended by signal n.
# shellcheck disable=SC2034,SC2154 # the files that are sourced below read its variables, and it theirs
set -Euo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

give_up() {
  echo "gpu_check.sh: $2" >&2
  exit "$1"
}

action=run rehearse=no dirty=no programs='' folder=''
while [ $# -gt 0 ]; do
  case $1 in
    --rehearse) rehearse=yes ;;
    --dirty) dirty=yes ;;
    --list) action=list ;;
    --report) action=report ;;
    --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    --programs)
      [ $# -gt 1 ] || give_up 64 "--programs needs a folder"
      programs=$2
      shift
      ;;
    -*) give_up 64 "$1 is not an option; pass --rehearse, --dirty, --programs, --list, --report or --help" ;;
    *)
      [ -z "$folder" ] || give_up 64 "$1: expected one folder; $folder is given already"
      folder=$1
      ;;
  esac
  shift
done
[ -n "$folder" ] || [ $action = list ] || give_up 64 "expected a folder for the results, as in: gpu_check.sh results"

budget=${BUDGET_S:-440} only=${ONLY:-} rounds=${ROUNDS:-3} reserve=15
[[ $budget =~ ^[1-9][0-9]{0,4}$ ]] || give_up 64 "BUDGET_S $budget: expected a whole number of seconds; the default is 440"
[[ $rounds =~ ^[1-9][0-9]?$ ]] || give_up 64 "ROUNDS $rounds: expected a whole number from 1 to 99; the default is 3"
code=0
[[ '' =~ $only ]] 2>/dev/null || code=$?
[ $code -ne 2 ] || give_up 64 "ONLY $only: not a regular expression; pass names, as in ONLY='ncu|fp32.*'"

if [ -z "$programs" ]; then
  programs=$here/bin
  [ -d "$programs" ] || programs=$here/../../build/release/bin
fi
work='' keep_work=no
trap '[ -z "$work" ] || [ $keep_work = yes ] || rm -rf "$work"' EXIT
# archives FOLDER: paths in the order gpu_check.tgz, gpu_check_2.tgz.
archives() { compgen -G "$1/gpu_check*.tgz" | grep -v '/gpu_check_caches.tgz$' | sort -V || true; }

if [ $action = report ]; then
  # shellcheck source=tests/gpu/check_report.sh
  source "$here/check_report.sh"
  report "$folder"
  exit
fi
for name in runs rehearsal steps; do
  # shellcheck disable=SC1090
  source "$here/check_$name.sh"
done
if [ $action = list ]; then
  results=/results scratch=/scratch deadline=0
  all_steps
  exit
fi
action=list only='' results=/ scratch=/ deadline=0 first_run
[ "$((planned + reserve))" -le "$budget" ] ||
  give_up 64 "BUDGET_S $budget: too short for the first step, which takes $planned s, and for packing, $reserve s; give 440"

for name in bench_resnet50 bench_arcface; do
  [ -x "$programs/$name" ] || give_up 69 "there is no $name in $programs; name its folder with --programs"
done
programs=$(cd "$programs" && pwd)
commit=$(timeout 60 "$programs/bench_resnet50" --version 2>/dev/null | sed -n 's/.*(commit \([^,]*\),.*/\1/p')
[ $dirty = yes ] || [[ $commit != *-dirty ]] ||
  give_up 65 "$programs: built from sources that differ from commit ${commit%-dirty}; commit and build again, or pass --dirty"
own_commit=$(cat "$here/commit" 2>/dev/null || git -C "$here" rev-parse --short=12 HEAD 2>/dev/null) || own_commit=$commit
[ $dirty = yes ] || [[ $own_commit == "${commit%-dirty}"* ]] ||
  give_up 65 "$programs: built from commit $commit, but this is $own_commit; build again, or pass --dirty"
mkdir -p "$folder" 2>/dev/null || give_up 73 "$folder: cannot be created; give another OUT"
out=$(cd "$folder" && pwd)
earlier=$(cd "${EARLIER:-$out}" 2>/dev/null && pwd) || give_up 64 "EARLIER ${EARLIER:-}: not a folder"
[ ! -e "$out/gpu_check.tgz" ] || give_up 73 "$out/gpu_check.tgz: exists already; move it, or give another OUT"
: 2>/dev/null >"$out/gpu_check.tgz.part" || give_up 73 "$out: cannot be written; give another OUT"

started=$SECONDS
deadline=$((started + budget - reserve))
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu_check.XXXXXX") || give_up 74 "${TMPDIR:-/tmp}: no folder can be made there; set TMPDIR"
results=$work/gpu_check scratch=$work/scratch caches=${TMPDIR:-/tmp}/plumbline_peer_caches
mkdir -p "$results" "$scratch/like" "$caches" && cd "$results" || give_up 74 "$work: cannot be written; set TMPDIR"
export XDG_CACHE_HOME=$results/cache
# Of the same name in every call: compiled code may name it.
export TORCHINDUCTOR_CACHE_DIR=$caches/inductor
ulimit -c 0

# stop SIGNAL: ends the run, so that all runs after it are named as left out.
stop() {
  stopped="ended by signal $1"
  worst=$((128 + $1))
  # shellcheck disable=SC2086 # one, two or none
  kill $running $compiling 2>/dev/null || true
}
for signal in 1 2 15; do
  # shellcheck disable=SC2064 # the number of now
  trap "stop $signal" $signal
done

echo "at most $budget s, commit ${commit:-unknown}, results in $out/gpu_check.tgz"
describe_machine >machine.txt 2>&1
all_steps
pack
echo
print_summary
exit $worst
