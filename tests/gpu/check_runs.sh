# How check.sh starts one run, keeps what it printed, and puts a stage's JSON together. Sourced by check.sh, whose
# variables out, programs, here, rehearse and stage it uses.
# shellcheck shell=bash disable=SC2154

under=()    # a tool that the next program runs under; not in a rehearsal
launcher=() # mpirun and its options, for more than one rank
program=bench_resnet50
peer=pytorch_resnet50.py
peers=$here # in a bundle; in the repository among the peers
[ -e "$peers/$peer" ] || peers=$here/../../results/peers

python_there() { command -v python3 >/dev/null; }

describe_machine() {
  date
  uname -a
  "$programs/bench_resnet50" --version
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi
    nvidia-smi --query-gpu=name,uuid,driver_version,clocks.max.sm,clocks.max.mem,power.limit,compute_cap --format=csv
  else
    echo "nvidia-smi is not there"
  fi
}

exit_code() { cat "$out/$stage/$1.code"; }

# record NAME CODE SECONDS NOTE ARGUMENT…: what a stage's JSON and the summary are made of; output lies in NAME.json.
record() {
  local name=$1 code=$2 seconds=$3 note=$4 status=ok
  shift 4
  case $code in
    0) ;;
    77) status=skipped ;;
    124 | 137) status=timeout ;;
    *) status=failed ;;
  esac
  echo "$code" >"$out/$stage/$name.code"
  printf '%s\t%s\t%s\t%s\t%s\n' "$stage" "$name" "$status" "$seconds" "$note" >>"$out/$stage/runs.tsv"
  printf '  %-28s %-8s %4s s  %s\n' "$name" "$status" "$seconds" "$note"
  echo "$*" >"$out/$stage/$name.command"
}

skip_run() { record "$1" 77 0 "$2"; }

# limited NAME COMMAND…: within the stage's time, output in NAME.json and NAME.err.
limited() {
  local name=$1 left=$((deadline - SECONDS))
  shift
  [ $left -gt 0 ] || return 124
  timeout --kill-after=10 $left "$@" >"$out/$stage/$name.json" 2>"$out/$stage/$name.err"
}

# figure FILE: images/s out of a result's JSON, or nothing.
figure() {
  sed -n '/"images_per_second"/,/}/s/.*"mean": *\([0-9]*\.[0-9]\)[0-9]*.*/\1 images\/s/p' "$1" 2>/dev/null | sed '2,$d'
}

# no_more_than NAME VALUE LIMIT: an option with a smaller number, for small_arguments.
no_more_than() { small_arguments+=("$1" $(($2 < $3 ? $2 : $3))); }

# Leaves in small_arguments what a run on the GPU becomes in a rehearsal.
in_small() {
  small_arguments=(--device cpu)
  while [ $# -gt 0 ]; do
    case $1 in
      --fp16 | --bf16 | --tf32 | --fp32 | --autotune | --profile | --share-gpu) ;;
      --comm | --cuda-graph | --fusion | --loss-scale | --seconds | --image-size | --device | --classes) shift ;;
      --backbone)
        small_arguments+=(--backbone y1) # r50 and r100 would take minutes
        shift
        ;;
      --bs | --iters)
        no_more_than "$1" "$2" 2
        shift
        ;;
      *) small_arguments+=("$1") ;;
    esac
    shift
  done
  [[ " ${small_arguments[*]} " == *" --iters "* ]] || small_arguments+=(--iters 2 --warmup 1 --lr 0.001)
  [[ " ${small_arguments[*]} " == *" --bs "* ]] || small_arguments+=(--bs 2)
  if [ "$program" = bench_arcface ]; then
    small_arguments+=(--classes 100) # and one size of images
  else
    small_arguments+=(--image-size 32)
  fi
}

# A run that the CPU has nothing to add to after its dry run.
ends_with_dry_run() { [[ " $* " == *" --find-max-bs "* || " $* " == *" --dry-run "* ]]; }

# dry NAME ARGUMENT…: does the program take this command line for an H200?
dry() {
  local name=$1 argument arguments=()
  shift
  for argument in "$@"; do
    [ "$argument" = --find-max-bs ] || [ "$argument" = --dry-run ] || arguments+=("$argument")
  done
  limited "$name" "$programs/$program" --dry-run --target h200 --json "${arguments[@]}"
}

# bench NAME ARGUMENT…: one run of $program, its result in NAME.json. In a rehearsal a dry run of just this command line,
# then a small run on the CPU, or the result of one that was like it.
bench() {
  local name=$1 code=0 begin=$SECONDS like arguments=("${@:2}")
  local output=(--json --out "$out/runs" --log-dir "$out/$stage/logs/$name")
  if [ "$rehearse" = no ]; then
    [[ " ${arguments[*]} " == *" --device "* ]] || arguments+=(--device cuda)
    limited "$name" "${launcher[@]}" "${under[@]}" "$programs/$program" "${arguments[@]}" "${output[@]}" || code=$?
  else
    [[ " $* " == *" --device cpu "* ]] || dry "$name" "${arguments[@]}" || code=$?
    if [ $code -eq 0 ] && ! ends_with_dry_run "$@"; then
      in_small "${arguments[@]}"
      like=$out/like/$(printf '%s' "$program ${launcher[*]} ${small_arguments[*]}" | cksum | tr ' ' _)
      if [[ " $* " != *" --save-weights "* ]] && [ -e "$like" ]; then
        cp "$like" "$out/$stage/$name.json"
      else
        limited "$name" "${launcher[@]}" "$programs/$program" "${small_arguments[@]}" "${output[@]}" || code=$?
        mkdir -p "$out/like"
        [ $code -ne 0 ] || cp "$out/$stage/$name.json" "$like"
      fi
    fi
  fi
  local note
  note=$(figure "$out/$stage/$name.json")
  [ $code -eq 0 ] || note=$(grep -v '^$' "$out/$stage/$name.err" | tail -n 1)
  [[ $code != 64 || $note != *"can't do it"* ]] || code=77 # an older GPU lacks some precisions
  [[ $code != 69 || $note != *"'nccl' is not available"* ]] || code=77 # a build without NCCL
  record "$name" $code $((SECONDS - begin)) "$note" "$program" "${arguments[@]}"
}

# compare losses|weights|share NAME ARGUMENT…: two runs held against each other by compare_runs.py.
compare() {
  local kind=$1 name=$2 code=0
  shift 2
  if ! python_there; then
    skip_run "$name" "python3 is not there, which compares"
    return
  fi
  limited "$name" python3 -B "$here/compare_runs.py" "$kind" "$@" || code=$?
  record "$name" $code 0 "$(sed -n 's/.*"summary": "\([^"]*\)".*/\1/p' "$out/$stage/$name.json")" compare_runs.py "$kind" "$@"
}

# torch NAME ARGUMENT…: $peer's rate on the same GPU, where python3 has torch.
torch() {
  local name=$1 code=0 begin=$SECONDS arguments=("${@:2}")
  if ! python_there || ! python3 -c 'import torch' 2>/dev/null; then
    skip_run "$name" "python3 has no torch"
    return
  fi
  [ "$rehearse" = no ] || arguments=(--device cpu --bs 2 --image-size 32 --iters 2 --warmup 1 --lr 0.001)
  limited "$name" python3 -B "$peers/$peer" "${arguments[@]}" || code=$?
  local note
  note=$(figure "$out/$stage/$name.json")
  [ $code -eq 0 ] || note=$(tail -n 1 "$out/$stage/$name.err")
  record "$name" $code $((SECONDS - begin)) "$note" "$peer" "${arguments[@]}"
}

# {"stage": …, "status": …, "seconds": …, "runs": {NAME: {"status", "command", "result"}, …}}
write_stage_json() {
  local status=$1 seconds=$2 separator='' name run_status result rest
  {
    printf '{"schema": "plumbline.gpu_check/1", "stage": "%s", "status": "%s", "seconds": %s, "rehearsal": %s, "runs": {\n' \
      "$stage" "$status" "$seconds" "$([ "$rehearse" = yes ] && echo true || echo false)"
    while IFS=$'\t' read -r _ name run_status rest; do
      result=null
      [ "$run_status" = skipped ] || [ ! -s "$out/$stage/$name.json" ] || result=$(<"$out/$stage/$name.json")
      printf '%s"%s": {"status": "%s", "command": "%s", "result": %s}' "$separator" "$name" "$run_status" \
        "$(sed 's/[\\"]/\\&/g' "$out/$stage/$name.command")" "$result"
      separator=$',\n'
    done <"$out/$stage/runs.tsv"
    printf '\n}}\n'
  } >"$out/$stage.json.part"
  mv "$out/$stage.json.part" "$out/$stage.json"
}

# run_stage STAGE SECONDS: 1 if one of its runs failed or there was no time for all.
run_stage() {
  local stage=$1 begin=$SECONDS status=ok
  deadline=$((SECONDS + $2))
  rm -rf "${out:?}/$stage" "$out/$stage.json"
  mkdir -p "$out/$stage"
  : >"$out/$stage/runs.tsv"
  echo "== $stage (at most $2 s)"
  "$stage"
  ! cut -f3 "$out/$stage/runs.tsv" | grep -E 'failed|timeout' >/dev/null || status=failed
  write_stage_json "$status" $((SECONDS - begin))
  [ "$status" = ok ]
}

print_summary() {
  echo "stage       run                          status   what"
  for stage in "${stages[@]}"; do
    [ ! -e "$out/$stage/runs.tsv" ] || awk -F '\t' '{ printf "%-11s %-28s %-8s %s\n", $1, $2, $3, $5 }' "$out/$stage/runs.tsv"
  done
  echo "results: $out"
}
