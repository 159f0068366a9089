# How half_hour.sh --rehearse does a run without a GPU: a dry run takes the command line of the real run, for an H200; then
# it runs in small, on the emulated GPU where the programs are built for it, else on the CPU. What was like a run before is
# taken from that one. Sourced by half_hour.sh.
# shellcheck shell=bash disable=SC2154

small_arguments=()
# Bytes of the emulated GPU where the largest batch is looked for.
declare -A small_gpu=([bench_resnet50]=380000000 [small_resnet]=48000000)
saved=''  # the weights file of a run in small

# dry NAME SECONDS ARGUMENT…: does the program take this command line?
dry() {
  local name=$1 wanted=$2 argument arguments=()
  shift 2
  for argument in "$@"; do
    [[ $argument == --find-max-bs || $argument == --dry-run ]] || arguments+=("$argument")
  done
  attempt "$name" "$wanted" "$programs/$program" --dry-run --target h200 --json "${arguments[@]}"
}

# Leaves in small_arguments what a run becomes, in `saved` where it saves its weights. Precisions are fp32 or, on an
# emulated GPU, fp16; the length is two iterations, unless it saves weights or looks for the largest batch.
in_small() {
  small_arguments=(--bs "$smallest")
  saved=''
  if [ $largest = yes ]; then
    small_arguments=(--fp16 --find-max-bs --no-autotune --image-size 64)
    return
  fi
  while [ $# -gt 0 ]; do
    case $1 in
      --tf32 | --fp32 | --share-gpu) ;;
      --deterministic) [ $graphs = no ] || small_arguments+=("$1") ;;
      --cuda-graph | --comm) [ $graphs = no ] || small_arguments+=("$1" "$2") && shift ;;
      --no-autotune) [ $emulated = no ] || small_arguments+=("$1") ;; # engines by time would differ from run to run
      --fp16 | --bf16) [ $emulated = no ] || small_arguments+=(--fp16 --loss-scale 8) ;;
      --fusion) [ $emulated = no ] || small_arguments+=(--fusion "$2") && shift ;;
      --device | --layout | --loss-scale | --seconds | --image-size | --classes | --bs) shift ;;
      --iters | --warmup | --lr | --momentum | --weight-decay)
        [ "$saves" = no ] || small_arguments+=("$1" "$2")
        shift
        ;;
      --no-check) [ "$saves" = no ] || small_arguments+=("$1") ;;
      --save-weights) saved=$2 && shift ;;
      --backbone) small_arguments+=(--backbone y1) && shift ;; # r50 and r100 would take minutes
      *) small_arguments+=("$1") ;;
    esac
    shift
  done
  [ "$saves" = yes ] || small_arguments+=(--iters 2 --warmup 1 --lr 0.00001)
  if [ "$program" = bench_arcface ]; then
    small_arguments+=(--classes 100) # and one size of images
  else
    small_arguments+=(--image-size 32)
  fi
}

# rehearse_run NAME SECONDS ARGUMENT…: leaves its exit code in `code`.
rehearse_run() {
  local name=$1 wanted=$2 like emulated=no saves=no smallest=8 small device=cpu run
  local graphs=no largest=no memory=()
  shift 2
  code=0
  [[ " $* " == *" --device cpu "* ]] || dry "$name" "$wanted" "$@"
  [[ $code -eq 0 && " $* " != *" --dry-run "* ]] || return 0
  [[ " $* " != *" --save-weights "* ]] || saves=yes
  [ "$program" = bench_resnet50 ] || smallest=2
  small=$(small_program)
  run=$programs/$small
  if may_be_emulated "$@"; then
    emulated=yes run=${run}_emulated device=cuda
  fi
  if [[ " $* " == *" --find-max-bs "* ]]; then
    [ $emulated = yes ] || return 0 # a CPU's memory would take it hours
    largest=yes
  fi
  [[ $emulated = no || $program != bench_resnet50 || " $* " != *" --cuda-graph "* ]] || graphs=yes
  in_small "$@"
  like=$scratch/like/$(printf '%s' "$run ${launcher[*]} ${small_arguments[*]} $saves" | cksum | tr ' ' _)
  if [ ! -e "$like" ]; then
    [ $saves = no ] || small_arguments+=(--save-weights "$like.safetensors")
    [ $largest = no ] || memory=(env EMULATED_GPU_MEMORY="${small_gpu[$small]}")
    attempt "$name" "$wanted" "${launcher[@]}" "${memory[@]}" "$run" --device $device "${small_arguments[@]}" "${output[@]}"
    [ $code -eq 0 ] || return 0
    cp "$results/$name.json" "$like"
  fi
  cp "$like" "$results/$name.json"
  [ $saves = no ] || ln -f "$like.safetensors" "$saved"
}

# The tests' ResNet of 7 blocks where it is built: the same code in a fraction of the time.
small_program() {
  [[ $program == bench_resnet50 && -x $programs/small_resnet ]] && echo small_resnet || echo "$program"
}

# Not where it takes long: profiles (7 to 20 s each, on the CPU here), several ranks, measured runs of faces. Of the runs
# with or without a graph only those in fp16 that have to agree to the bit.
may_be_emulated() {
  [[ -x $programs/${small}_emulated && ${#launcher[@]} -eq 0 && " $* " != *" --device cpu "* ]] || return 1
  if [ "$program" = bench_resnet50 ]; then
    [[ " $* " != *" --profile "* ]] &&
      [[ " $* " != *" --cuda-graph "* || (" $* " == *" --fp16 "* && " $* " == *" --deterministic "*) ]]
  else
    [ "$runs" = checks ]
  fi
}
