# How half_hour.sh starts one run, keeps what it printed, and packs all results again. Sourced by half_hour.sh, whose
# variables part, out, work, results, scratch, programs, here, rehearse, listing and deadline it uses.
# shellcheck shell=bash disable=SC2154,SC2034

under=()    # a tool that the next program runs under; not in a rehearsal
launcher=() # mpirun and its options, for more than one rank
program=bench_resnet50
tuned=()    # --no-autotune once tuning has failed
runs=checks # the folder of a run's --out: checks, or measured for what a report shows
logs=''     # the folder of its --log-dir, where the log comes back
running=''  # process id of the run
stopped=''  # why no further run is started
code=0      # exit code of the last run
planned=0   # seconds that all runs so far should take, for a list
summary=()
declare -A outcome=() # of a run, by name: ok, failed, timeout, left out
peers=$here           # in a bundle; in the repository among the peers
[ -e "$peers/pytorch_resnet50.py" ] || peers=$here/../../results/peers

python_there() { command -v python3 >/dev/null; }
torch_there() { python_there && python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))'; }

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

# --- what is kept -------------------------------------------------------------------------------------------------------

# pack: everything into the one file that comes back, whole or not at all. Files above 4 MiB are named and left out: a
# file that grew that large is a tool's endless output, and the machine may send back no more than some MiB.
pack() {
  local aside=$out/check_$part.tgz.part why
  [ "$worst" != 74 ] || return 0 # the archive of the run before stays
  (cd "$work" && find "check_$part" -size +4M) >"$scratch/too_large" 2>"$scratch/pack.err" &&
    cp "$scratch/too_large" "$results/left_out.txt" 2>"$scratch/pack.err" &&
    tar -I 'gzip -1' -C "$work" -X "$scratch/too_large" -cf "$aside" "check_$part" 2>"$scratch/pack.err" &&
    mv "$aside" "$out/check_$part.tgz" 2>"$scratch/pack.err" && return
  why=$(sed -n '/./{p;q}' "$scratch/pack.err" 2>/dev/null)
  rm -f "$aside"
  disk_full "$out/check_$part.tgz" "${why:-no space}"
}

# disk_full FILE WHY: nothing more is started.
disk_full() {
  worst=74 keep_work=yes
  [ -z "$stopped" ] || return 0
  stopped="$1 can't be written"
  echo "half_hour.sh: $1 can't be written ($2); free space, or give another OUT or TMPDIR: what was done lies in $results, and" \
    "check_$part.tgz, if it is there, holds all but the last run" >&2
}

# record NAME STATUS SECONDS NOTE: one line of the summary.
record() {
  local line text
  outcome[$1]=$2
  printf -v line '%s\t%s\t%s\t%s' "$@"
  summary+=("$line")
  printf '  %-24s %-8s %4s s  %s\n' "$1" "$2" "$3" "$4"
  [[ $2 != failed && $2 != timeout || $worst != 0 ]] || worst=1
  text=$(print_summary)
  { echo "$text" >"$results/summary.txt" && printf '%s\n' "${summary[@]}" >"$results/runs.tsv"; } 2>/dev/null ||
    disk_full "$results/summary.txt" "no space"
}

leave_out() { record "$1" "left out" 0 "$2"; }

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
    64,*"can't do it"*) status="left out" ;;                # an older GPU lacks some precisions
    69,*"'nccl' is not available"*) status="left out" ;;    # a build without NCCL
  esac
  record "$1" "$status" "$2" "$3"
}

# keep_outcome NAME SECONDS: of a run, which is packed at once; a comparison comes with the next run.
keep_outcome() {
  record_outcome "$@" "$(note_of "$1")"
  pack
}

print_summary() {
  local line name status note did=0 bad=0 not=()
  for line in "${summary[@]}"; do
    IFS=$'\t' read -r name status _ note <<<"$line"
    if [ "$status" = "left out" ]; then not+=("  $name: $note"); else did=$((did + 1)); fi
    case $status in failed | timeout) bad=$((bad + 1)) ;; esac
  done
  echo "part $part, runs and comparisons: $did done, $bad of them failed, ${#not[@]} left out; $((SECONDS - started)) of $budget s"
  printf '%s\n' "${summary[@]}" |
    awk -F '\t' '$2 != "" && $2 != "left out" { printf "  %-24s %-8s %4s s  %s\n", $1, $2, $3, $4 }'
  [ ${#not[@]} -eq 0 ] || printf '%s\n' "left out:" "${not[@]}"
}

# --- one run ------------------------------------------------------------------------------------------------------------

# limit_of SECONDS: what a run that should take so long may take.
limit_of() {
  local limit=$((2 * $1))
  echo $((limit < 60 ? 60 : limit > 90 ? 90 : limit))
}

# starts NAME SECONDS WHAT…: whether this run is to be started now; lists it instead, or says why not.
starts() {
  local name=$1 wanted=$2 left=$((deadline - SECONDS)) remark=''
  shift 2
  [[ $name == first_run || $name =~ ^(${only:-.*})$ ]] || return 1
  if [ "$listing" = yes ]; then
    [ $((planned += wanted)) -le $((budget - reserve)) ] || remark='   (only if others are faster)'
    printf '%-24s %3s s, at most %s s: %s%s\n' "$name" "$wanted" "$(limit_of "$wanted")" "$*" "$remark"
    return 1
  fi
  if [ -n "$stopped" ]; then
    leave_out "$name" "$stopped"
  elif [ "$wanted" -gt $left ]; then
    leave_out "$name" "takes about $wanted s, $((left > 0 ? left : 0)) s are left"
  else
    return 0
  fi
  return 1
}

# attempt NAME SECONDS COMMAND…: within its limit; output in NAME.json and NAME.err, exit code in `code`.
attempt() {
  local name=$1 limit left=$((deadline - SECONDS))
  limit=$(limit_of "$2")
  shift 2
  [ "$limit" -le $left ] || limit=$((left > 0 ? left : 1))
  code=0
  { echo "$*" >"$results/$name.command" && echo "$limit" >"$results/$name.limit"; } 2>/dev/null || {
    code=74
    disk_full "$results/$name.command" "no space"
    return 0
  }
  timeout --kill-after=5 $limit "$@" >"$results/$name.json" 2>"$results/$name.err" &
  running=$!
  wait $running || code=$?
  [ -z "$stopped" ] || wait $running || true # a signal ended the first one
  running=''
}

# figure FILE: images/s or the largest batch out of a result's JSON, or the sentence of a comparison, or nothing.
figure() {
  sed -n -e '/"images_per_second"/,/}/s/.*"mean": *\([0-9]*\.[0-9]\)[0-9]*.*/\1 images\/s/p' \
    -e '/plumbline.max_batch/,$s/^ *"batch_per_device": *\([0-9]*\).*/largest batch \1/p' \
    -e 's/.*"summary": "\([^"]*\)".*/\1/p' "$1" 2>/dev/null | sed '2,$d'
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
    echo "$(figure "$results/$1.json")$(unfused "$results/$1.json")"
    return
  fi
  [ $code -ne 124 ] && [ $code -ne 137 ] || echo -n "stopped after $(<"$results/$1.limit") s; "
  if [ -s "$results/$1.err" ]; then
    { grep -v '^$' "$results/$1.err" || true; } | tail -n 1 | tr '\t' ' '
  else
    figure "$results/$1.json" # of a comparison that fails
  fi
}

# bench NAME SECONDS ARGUMENT…: one run of $program, its result in NAME.json; SECONDS: how long it should take.
bench() {
  local name=$1 wanted=$2 begin=$SECONDS arguments=("${@:3}") output
  [[ " $* " == *" --device "* || " $* " == *" --dry-run "* ]] || arguments+=(--device cuda)
  starts "$name" "$wanted" "${under[@]##*/}" "$program" "${arguments[@]}" || return 0
  output=(--json --out "$results/$runs/$name" --log-dir "${logs:-$scratch/logs/$name}")
  if [ "$rehearse" = yes ]; then
    rehearse_run "$name" "$wanted" "${arguments[@]}"
  else
    attempt "$name" "$wanted" "${launcher[@]}" "${under[@]}" "$programs/$program" "${arguments[@]}" "${output[@]}"
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

# without_result KIND ARGUMENT…: the first run whose file is named here, but that failed or was left out.
without_result() {
  local kind=$1 argument file name
  shift
  for argument in "$@"; do
    argument=${argument%%=*}
    for file in ${argument//,/ }; do
      [[ $file == *.json || $file == *.safetensors ]] || continue
      name=${file##*/} name=${name%.*}
      [ "${outcome[$name]:-ok}" = ok ] && { [ -s "$file" ] || [[ $kind == batch || $kind == calm ]]; } && continue
      echo "$name"
      return
    done
  done
}

# compare KIND NAME ARGUMENT…: runs held against each other by compare_runs.py; left out if one of them has no result.
compare() {
  local kind=$1 name=$2 begin=$SECONDS missing wanted=2
  shift 2
  case $kind in losses | share | rates) wanted=1 ;; esac # of small files
  starts "$name" $wanted compare_runs.py "$kind" "$@" || return 0
  if ! python_there; then
    leave_out "$name" "python3 is not there, which compares"
    return
  fi
  missing=$(without_result "$kind" "$@")
  if [ -n "$missing" ]; then
    leave_out "$name" "$missing gave no result"
    return
  fi
  attempt "$name" $wanted python3 -B "$here/compare_runs.py" "$kind" "$@"
  record_outcome "$name" $((SECONDS - begin)) "$(note_of "$name")"
}

# peer SCRIPT NAME SECONDS ARGUMENT…: PyTorch on the same GPU, where python3 has torch.
peer() {
  local script=$1 name=$2 wanted=$3 begin=$SECONDS arguments=("${@:4}")
  starts "$name" "$wanted" "$script" "${arguments[@]}" || return 0
  if ! torch_there; then
    leave_out "$name" "python3 has no torch"
    return
  fi
  [ -z "$logs" ] || arguments+=(--log-dir "$logs")
  [ "$rehearse" = no ] || arguments=(--device cpu)
  [[ $rehearse = no || $script = ceilings.py ]] || arguments+=(--bs 2 --image-size 32 --iters 2 --warmup 1 --lr 0.001)
  [[ $rehearse = no || $script != ceilings.py ]] || arguments+=(--copy-mib 8 --rows 64)
  [ -e "$here/$script" ] && script=$here/$script || script=$peers/$script
  XDG_CACHE_HOME=$scratch/peers attempt "$name" "$wanted" python3 -B "$script" "${arguments[@]}"
  keep_outcome "$name" $((SECONDS - begin))
}
