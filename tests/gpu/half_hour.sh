#!/usr/bin/env bash
# Checks and measures a GPU in three parts, each one command of less than ten minutes, on a machine where nothing needs to be
# installed: from an unpacked bundle (launch/bundle) or from the sources. After every run all results so far are packed into
# OUT/check_PART.tgz, so that whatever stops a part costs one run.
#
#   half_hour.sh PART OUT [--rehearse] [--programs FOLDER]     PART: first, second or third
#   half_hour.sh --list PART                                   its runs in their order, with the time that each should take
#   half_hour.sh --report FOLDER [--programs FOLDER]           results/measured/GPU and README's tables from all
#                                                              check_*.tgz in FOLDER; in the sources
#
#   first    ceilings, fp32 and fp16 against the CPU, fused norms against plain ones, a tuning, fp16 batch 256 with profiles,
#            PyTorch in turn, counters of our own kernels, fp32
#   second   every step against the CPU: ResNet-50, r50, r100, y1; graph against eager, NCCL; ArcFace with profiles; heads;
#            compute-sanitizer
#   third    VARIANTS in turn; batches 128 and 512, bf16, TF32; a minute at full load; r50 beside PyTorch; the largest batch
#
#   --rehearse  no GPU: hands every command line to a dry run, then runs it in small
#   --programs  the folder of bench_resnet50 and bench_arcface; default: bin beside this script, else build/release/bin
#   BUDGET_S=N  seconds that the part may take (570); runs that don't fit into what is left are left out and named
#   ONLY=REGEX  only the runs and comparisons with these names
#   EARLIER=FOLDER  where check_*.tgz of earlier parts lie, whose tuned engines are taken over; default: OUT
#   VARIANTS='OPTIONS; OPTIONS'  third: sets of options, each run ROUNDS (3) times, alternating; r50 and others by --backbone
#
# Exit codes: 0 all that ran passed; 1 a run or a comparison failed; 64 usage; 65 no usable results to report; 69 no GPU, no
# programs, no usable CUDA libraries; 73 OUT can't be made, or holds the part already; 74 OUT can't be written; 128 + n ended by signal n.
# shellcheck disable=SC2034 # the parts that are sourced below read its variables
set -Euo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

give_up() {
  echo "half_hour.sh: $2" >&2
  exit "$1"
}

part='' out='' action=run rehearse=no listing=no programs='' words=()
while [ $# -gt 0 ]; do
  case $1 in
    --rehearse) rehearse=yes ;;
    --list) action=list listing=yes ;;
    --report) action=report ;;
    --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    --programs)
      [ $# -gt 1 ] || give_up 64 "--programs wants a folder"
      programs=$2
      shift
      ;;
    -*) give_up 64 "'$1' is not an option; there are --rehearse, --programs, --list, --report and --help" ;;
    *) words+=("$1") ;;
  esac
  shift
done
expected='a part and a folder for its results, as in: half_hour.sh first results'
[ $action != list ] || expected='a part, as in: half_hour.sh --list first'
[ $action != report ] || expected='the folder with check_*.tgz, as in: half_hour.sh --report results'
[ ${#words[@]} -eq "$([ $action = run ] && echo 2 || echo 1)" ] || give_up 64 "wants $expected"

# in_order PATTERN: paths in the order check_first, check_first_2, check_second.
in_order() { compgen -G "$1" | sort -V || true; }

budget=${BUDGET_S:-570} only=${ONLY:-} rounds=${ROUNDS:-3} reserve=15
[[ $budget =~ ^[1-9][0-9]{0,4}$ ]] || give_up 64 "BUDGET_S: '$budget' is no whole number of seconds; the default is 570"
[[ $rounds =~ ^[1-9][0-9]?$ ]] || give_up 64 "ROUNDS: '$rounds' is no whole number from 1 to 99; the default is 3"
code=0
[[ '' =~ $only ]] 2>/dev/null || code=$?
[ $code -ne 2 ] || give_up 64 "ONLY: '$only' is no regular expression"

if [ -z "$programs" ]; then
  programs=$here/bin
  [ -d "$programs" ] || programs=$here/../../build/release/bin
fi
work='' keep_work=no
trap '[ -z "$work" ] || [ $keep_work = yes ] || rm -rf "$work"' EXIT

if [ $action = report ]; then
  # shellcheck source=tests/gpu/check_report.sh
  source "$here/check_report.sh"
  report "${words[0]}"
  exit
fi

part=${words[0]}
case $part in
  first | second | third) ;;
  *) give_up 64 "'$part' is not one of the parts first, second and third" ;;
esac
# shellcheck source=tests/gpu/check_runs.sh
source "$here/check_runs.sh"
# shellcheck source=tests/gpu/check_rehearsal.sh
source "$here/check_rehearsal.sh"
# shellcheck source=tests/gpu/check_parts.sh
source "$here/check_parts.sh"

if [ $listing = yes ]; then
  # shellcheck disable=SC2034 # check_runs.sh reads them
  results=/results scratch=/scratch deadline=0
  "$part"
  exit
fi

for name in bench_resnet50 bench_arcface; do
  [ -x "$programs/$name" ] || give_up 69 "there is no $name in $programs; name its folder with --programs"
done
programs=$(cd "$programs" && pwd)
out=${words[1]}
mkdir -p "$out" 2>/dev/null || give_up 73 "folder '$out' can't be made; give another OUT"
out=$(cd "$out" && pwd)
earlier=$(cd "${EARLIER:-$out}" 2>/dev/null && pwd) || give_up 64 "EARLIER: '${EARLIER:-$out}' is not a folder"
[ ! -e "$out/check_$part.tgz" ] || give_up 73 "$out/check_$part.tgz exists; move it, or give another OUT"
: 2>/dev/null >"$out/check_$part.tgz.part" || give_up 73 "folder '$out' can't be written to; give another OUT"

worst=0 started=$SECONDS
deadline=$((started + budget - reserve))
work=$(mktemp -d "${TMPDIR:-/tmp}/half_hour.XXXXXX") || give_up 74 "no folder can be made in ${TMPDIR:-/tmp}; set TMPDIR"
results=$work/check_$part scratch=$work/scratch
mkdir -p "$results" "$scratch/like" && cd "$results" || give_up 74 "$work can't be written to; set TMPDIR"
export XDG_CACHE_HOME=$results/cache TORCHINDUCTOR_CACHE_DIR=$scratch/inductor
ulimit -c 0

# stop SIGNAL: ends the run, so that the rest of the part is named as left out.
stop() {
  stopped="ended by signal $1"
  worst=$((128 + $1))
  [ -z "$running" ] || kill "$running" 2>/dev/null || true
}
for signal in 1 2 15; do
  # shellcheck disable=SC2064 # the number of now
  trap "stop $signal" $signal
done

echo "part $part, at most $budget s, results in $out/check_$part.tgz"
describe_machine >machine.txt 2>&1
"$part"
pack
echo
print_summary
exit $worst
