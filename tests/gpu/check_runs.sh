# How gpu_check.sh goes through its steps, starts one run, keeps what it printed, and packs all results again. Sourced by
# gpu_check.sh, whose variables action, out, work, results, scratch, caches, programs, here, rehearse and deadline it uses.
# shellcheck shell=bash disable=SC2154,SC2034

under=()    # a tool that the next program runs under; not in a rehearsal
launcher=() # mpirun and its options, for more than one rank
program=bench_resnet50
tuned=()    # --no-autotune once tuning has failed
runs=checks # the folder of a run's --out: checks, or measured for what a report shows
other_programs=''  # folder of another build's programs
listed=()  # lines of the runs of a step, for a list
logs=''     # the folder of its --log-dir, where the log comes back
running=''  # process id of the run
compiling='' # process id of compilers in the background
stopped=''  # why no further run is started
code=0      # exit code of the last run
planned=0   # seconds that all runs so far should take, for a list
worst=0    # exit code so far
summary=()
declare -A outcome=() # of a run, by name: ok, failed, timeout, left out
step=''               # the current one
complete=yes          # whether all of its runs have passed, or can't run on this machine
declare -A passed_earlier=() # steps that need not run again

python_there() { command -v python3 >/dev/null; }
# python_has MODULE
python_has() { python_there && python3 -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$1'))"; }

# tool_path NAME: of a tool of the CUDA toolkit; nothing if it isn't there.
tool_path() {
  local path
  for path in "$(command -v "$1" || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/$1" /opt/nvidia/nsight-compute/*/"$1"; do
    if [ -x "$path" ]; then
      echo "$path"
      return
    fi
  done
}

describe_machine() {
  date
  uname -a
  nproc
  timeout 60 "$programs/bench_resnet50" --version
  if command -v nvidia-smi >/dev/null; then
    timeout 20 nvidia-smi
    timeout 20 nvidia-smi --query-gpu=name,uuid,driver_version,clocks.max.sm,clocks.max.mem,power.limit,compute_cap --format=csv
  else
    echo "nvidia-smi is not there"
  fi
}

# all_steps: of `steps`, those that didn't pass in an earlier call.
all_steps() {
  local line
  for line in "${steps[@]}"; do
    step=${line%%:*} complete=yes
    if [ $action = list ]; then
      list_step "$line"
    elif [ -n "${passed_earlier[$step]:-}" ]; then
      echo "  $step: passed in ${passed_earlier[$step]}"
      echo "$step" >>"$results/passed.txt"
    else
      $step
      [ $complete = no ] || echo "$step" >>"$results/passed.txt"
    fi
  done
}

# list_step LINE: "25 s, 33 s in all: headline …", then its runs.
list_step() {
  local before=$planned
  listed=()
  "$step"
  [ ${#listed[@]} -eq 0 ] || printf '%s\n' "$((planned - before)) s, $planned s in all: $1" "${listed[@]}"
}

# --- what is kept -------------------------------------------------------------------------------------------------------

# pack: everything into the one file that comes back, whole or not at all. Files above 4 MiB are named and left out: a
# file that grew that large is a tool's endless output, and the machine may send back no more than some MiB.
pack() {
  local aside=$out/gpu_check.tgz.part why
  [ "$worst" != 74 ] || return 0 # the archive of the run before stays
  (cd "$work" && find gpu_check -size +4M) >"$scratch/too_large" 2>"$scratch/pack.err" &&
    cp "$scratch/too_large" "$results/left_out.txt" 2>"$scratch/pack.err" &&
    tar -I 'gzip -1' -C "$work" -X "$scratch/too_large" -cf "$aside" gpu_check 2>"$scratch/pack.err" &&
    mv "$aside" "$out/gpu_check.tgz" 2>"$scratch/pack.err" && return
  why=$(sed -n '/./{p;q}' "$scratch/pack.err" 2>/dev/null)
  rm -f "$aside"
  disk_full "$out/gpu_check.tgz" "${why:-no space}"
}

# pack_caches: of Inductor, for the next machine of this kind.
pack_caches() {
  [ $action = run ] && [ -n "$(ls -A "$caches")" ] || return 0
  tar -I 'gzip -1' -C "$caches" -cf "$out/gpu_check_caches.tgz.part" . 2>/dev/null &&
    mv "$out/gpu_check_caches.tgz.part" "$out/gpu_check_caches.tgz" && return
  rm -f "$out/gpu_check_caches.tgz.part"
  echo "  $out/gpu_check_caches.tgz cannot be written; peers compile again the next time"
}

# disk_full FILE WHY: nothing more is started.
disk_full() {
  worst=74 keep_work=yes
  [ -z "$stopped" ] || return 0
  stopped="$1 can't be written"
  echo "gpu_check.sh: $1 can't be written ($2); free space, or give another OUT or TMPDIR: what was done lies in $results, and" \
    "gpu_check.tgz, if it is there, holds all but the last run" >&2
}

# record NAME STATUS SECONDS NOTE: one line of the summary.
record() {
  local line text
  outcome[$1]=$2
  printf -v line '%s\t%s\t%s\t%s' "$@"
  summary+=("$line")
  printf '  %-24s %-8s %4s s  %s\n' "$1" "$2" "$3" "$4"
  case $2 in
    failed | timeout) complete=no worst=$((worst ? worst : 1)) ;;
    "left out") rm -f "$results/$1".{command,err,json,limit,txt} ;;
  esac
  text=$(print_summary)
  { echo "$text" >"$results/summary.txt" && printf '%s\n' "${summary[@]}" >"$results/runs.tsv"; } 2>/dev/null ||
    disk_full "$results/summary.txt" "no space"
}

leave_out() { record "$1" "left out" 0 "$2"; }

# gpu_is_gone NOTE: after a run that failed with this message.
gpu_is_gone() {
  [[ $rehearse = no && -z $stopped ]] || return 1
  [[ $1 != *"no CUDA GPU answers"* ]] || return 0
  command -v nvidia-smi >/dev/null && ! timeout 20 nvidia-smi -L >/dev/null 2>&1
}

# record_outcome NAME SECONDS NOTE: of what ended with `code`.
record_outcome() {
  local status=ok
  case $code in
    0) ;;
    124 | 137) status=timeout ;;
    *) status=failed ;;
  esac
  [ -z "$stopped" ] || status=failed
  case $code,$3 in
    64,*"does not support it"*) status="left out" ;;        # an older GPU lacks some precisions
    69,*"--comm nccl is not available"*) status="left out" ;; # a build without NCCL
    77,*) status="left out" ;;                              # a test program without its GPU, nothing to compare
  esac
  record "$1" "$status" "$2" "$3"
  [[ $status == failed || $status == timeout ]] && gpu_is_gone "$3" || return 0
  stopped="the GPU stopped answering in $1"
  worst=69
  echo "gpu_check.sh: $stopped, so nothing more is started: $3" >&2
}

# keep_outcome NAME SECONDS: of a run, which is packed at once; a comparison comes with the next run.
keep_outcome() {
  record_outcome "$@" "$(note_of "$1")"
  [ "${outcome[$1]}" = ok ] || mv -f "$results/$1.json" "$results/$1.failed.json" 2>/dev/null || true # nothing compares it
  pack
}

print_summary() {
  local line name status note did=0 bad=0 not=()
  for line in "${summary[@]}"; do
    IFS=$'\t' read -r name status _ note <<<"$line"
    if [ "$status" = "left out" ]; then not+=("  $name: $note"); else did=$((did + 1)); fi
    case $status in failed | timeout) bad=$((bad + 1)) ;; esac
  done
  echo "runs and comparisons of ${commit:-unknown}: $did done, $bad of them failed, ${#not[@]} left out; $((SECONDS - started)) of $budget s"
  printf '%s\n' "${summary[@]}" |
    awk -F '\t' '$2 != "" && $2 != "left out" { printf "  %-24s %-8s %4s s  %s\n", $1, $2, $3, $4 }'
  [ ${#not[@]} -eq 0 ] || printf '%s\n' "left out:" "${not[@]}"
}

# --- one run ------------------------------------------------------------------------------------------------------------

# starts NAME SECONDS WHAT…: whether this run is to be started now; lists it instead, or says why not.
starts() {
  local name=$1 wanted=$2 left=$((deadline - SECONDS))
  shift 2
  if [[ $name != first_run && ! $name =~ ^(${only:-.*})$ && ! $step =~ ^(${only:-.*})$ ]]; then
    complete=no
    return 1
  fi
  if [ $action = list ]; then
    planned=$((planned + wanted))
    listed+=("$(printf '  %-26s %3s s: %s' "$name" "$wanted" "$*")")
    return 1
  fi
  [ -z "$stopped" ] && [ "$wanted" -le $left ] && return
  complete=no
  leave_out "$name" "${stopped:-takes about $wanted s, $((left > 0 ? left : 0)) s are left}"
  return 1
}

# attempt NAME COMMAND…: within its limit; output in NAME.json and NAME.err, or where `said` is set to an ending in
# NAME of that ending; exit code in `code`.
attempt() {
  local name=$1 limit=90 left=$((deadline - SECONDS))
  shift
  [ "$limit" -le $left ] || limit=$((left > 0 ? left : 1))
  code=0
  { echo "$*" >"$results/$name.command" && echo "$limit" >"$results/$name.limit"; } 2>/dev/null || {
    code=74
    disk_full "$results/$name.command" "no space"
    return 0
  }
  timeout --kill-after=5 $limit "$@" >"$results/$name.${said:-json}" 2>"$results/$name.err" &
  running=$!
  wait $running || code=$?
  [ -z "$stopped" ] || wait $running || true # a signal ended the first one
  running=''
}

# figure FILE: images/s out of a result's JSON, or the sentence of a comparison, or nothing.
figure() {
  sed -n -e '/"images_per_second"/,/}/s/.*"mean": *\([0-9]*\.[0-9]\)[0-9]*.*/\1 images\/s/p' \
    -e 's/.*"summary": "\([^"]*\)".*/\1/p' "$1" 2>/dev/null | sed '2,$d' || true
}

# unfused FILE: ", 3 layers unfused", if a result names any.
unfused() {
  local layers
  layers=$(sed -n '/"unfused_layers"/,/^ \]/p' "$1" 2>/dev/null | grep -c '"layer"') || return 0
  echo ", $layers layers unfused"
}

# note_of NAME: the figure, or what was said last.
note_of() {
  if [ $code -eq 0 ]; then
    echo "$(figure "$results/$1.json")$(unfused "$results/$1.json")$(tail -n 1 "$results/$1.txt" 2>/dev/null || true)"
    return
  fi
  [ $code -ne 124 ] && [ $code -ne 137 ] || echo -n "stopped after $(<"$results/$1.limit") s; "
  if [ -s "$results/$1.err" ]; then
    { grep -v '^$' "$results/$1.err" || true; } | tail -n 1 | tr '\t' ' '
  else
    figure "$results/$1.json" # of a comparison that fails
    tail -n 1 "$results/$1.txt" 2>/dev/null || true
  fi
}

# unavailable PROGRAM ARGUMENT…: what a run of it lacks on this machine.
unavailable() {
  local option=''
  if [ ! -x "${other_programs:-$programs}/$1" ]; then
    echo "$1 is not in ${other_programs:-$programs}"
  elif [ ${#launcher[@]} -gt 0 ] && ! command -v "${launcher[0]}" >/dev/null; then
    echo "mpirun is not there"
  elif [[ $rehearse = no && ${#under[@]} -gt 0 && -z $(tool_path "${under[0]:-}") ]]; then
    echo "${under[0]} is neither on PATH nor in the CUDA toolkit"
  else
    for argument in "$@"; do
      case $option in --weights | --batch-file) [ -s "$argument" ] || echo "there is no ${argument##*/} to start from" ;; esac
      option=$argument
    done
  fi
}

# start NAME ARGUMENT…: $program within its limit, with its launcher and tool.
start() {
  local tool=("${under[@]}")
  [ ${#tool[@]} -eq 0 ] || tool[0]=$(tool_path "${under[0]}")
  attempt "$1" "${launcher[@]}" "${tool[@]}" "${other_programs:-$programs}/$program" "${@:2}"
}

# bench NAME SECONDS ARGUMENT…: one run of $program, its result in NAME.json, or in NAME.txt what a test program says; SECONDS:
# how long it should take.
bench() {
  local name=$1 wanted=$2 begin=$SECONDS arguments=("${@:3}") output=(--json) said=json missing
  case $program in
    bench_allreduce) ;;
    bench_*) output+=(--out "$results/$runs/$name" --log-dir "${logs:-$scratch/logs/$name}") ;;
    *) said=txt output=() ;;
  esac
  [[ $said = txt || " $* " == *" --device "* ]] || arguments+=(--device cuda)
  starts "$name" "$wanted" "${launcher[@]##*/}" "${under[@]:0:1}" "$program" "${arguments[@]}" || return 0
  missing=$(unavailable "$program" "${arguments[@]}")
  if [ -n "$missing" ]; then
    leave_out "$name" "$missing"
    return
  fi
  if [ "$rehearse" = yes ]; then
    rehearse_run "$name" "${arguments[@]}"
  else
    start "$name" "${arguments[@]}" "${output[@]}"
  fi
  keep_outcome "$name" $((SECONDS - begin))
}

# measure NAME SECONDS ARGUMENT…: a bench whose run the report keeps. Where tuning took too long, or an engine lost the GPU,
# a second run goes on with what the first one has tuned.
measure() {
  runs=measured bench "$@" "${tuned[@]}"
  ! wants_another "$1" || runs=measured bench "$1_again" "${@:2}" "${tuned[@]}"
}

# wants_another NAME: whether this run, the last one, was stopped or lost its GPU.
wants_another() {
  case ${outcome[$1]:-} in
    timeout) ;;
    failed) [ $code -eq 70 ] ;;
    *) return 1 ;;
  esac
}

# face NAME SECONDS ARGUMENT…: a bench of the program for faces.
face() { program=bench_arcface bench "$@"; }

# compare KIND NAME ARGUMENT…: runs held against each other by compare_runs.py; left out (77) if one of them has no result.
compare() {
  local kind=$1 name=$2 begin=$SECONDS wanted=2
  shift 2
  case $kind in losses | share | rates | same | parity) wanted=1 ;; esac # of small files
  starts "$name" $wanted compare_runs.py "$kind" "$@" || return 0
  if ! python_there; then
    leave_out "$name" "python3 is not there, which compares"
    return
  fi
  attempt "$name" python3 -B "$here/compare_runs.py" "$kind" "$@"
  record_outcome "$name" $((SECONDS - begin)) "$(note_of "$name")"
}

# script_path SCRIPT: in a bundle beside this file, else in the sources.
script_path() {
  local path
  for path in "$here" "$here"/../../{results/peers,tests/reference}; do [ ! -e "$path/$1" ] || break; done
  echo "$path/$1"
}

# peer MODULE SCRIPT NAME SECONDS ARGUMENT…: another framework on the same GPU, where python3 has that module.
peer() {
  local module=$1 script=$2 name=$3 wanted=$4 begin=$SECONDS arguments=("${@:5}")
  starts "$name" "$wanted" "$script" "${arguments[@]}" || return 0
  if ! python_has "$module"; then
    leave_out "$name" "python3 has no $module"
    return
  fi
  [ -z "$logs" ] || arguments+=(--log-dir "$logs")
  if [ "$rehearse" = yes ]; then
    case $script in
      ceilings.py) arguments=(--copy-mib 8 --rows 64 --seconds 0) ;;
      make_*) arguments+=(--batch-size 2 --steps 2 --precision fp32) ;; # half precision takes minutes on CPUs
      *) arguments+=(--bs 2 --image-size 32 --iters 2 --warmup 1 --lr 0.001) ;;
    esac
    arguments+=(--device cpu)
  fi
  XDG_CACHE_HOME=$caches attempt "$name" python3 -B "$(script_path "$script")" "${arguments[@]}"
  keep_outcome "$name" $((SECONDS - begin))
}
