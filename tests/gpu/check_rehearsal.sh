# How gpu_check.sh --rehearse does a run without a GPU: a dry run takes the command line of the real run, for an H200; then
# it runs in small, on the emulated GPU where the programs are built for it, else on the CPU. What was like a run before is
# taken from that one. Sourced by gpu_check.sh.
# shellcheck shell=bash disable=SC2154

small_arguments=()
saved='' # the weights file of a run in small

has() { [[ " ${*:2} " == *" $1 "* ]]; }

# rehearse_run NAME ARGUMENT…: leaves its exit code in `code`.
rehearse_run() {
  local name=$1 given=("${@:2}") start=("${launcher[@]}") small=$program emulated=no device=cpu like
  code=0
  if [ "${said:-json}" = txt ]; then
    attempt "$name" "$programs/$program" --gtest_list_tests
    return
  elif [ "$program" = bench_allreduce ]; then # --comm nccl --share-gpu --collective KIND …
    attempt "$name" "${launcher[@]}" "$programs/$program" --device cpu --comm mpi "${given[@]:3:2}" -b 1K -e 1K --json
    return
  fi
  has '--device cpu' "${given[@]}" || dry "$name" "${given[@]}"
  [ $code -eq 0 ] || return 0
  # The tests' ResNet of 7 blocks where it is built: the same code in a fraction of the time.
  [[ ${given[*]} == */parity/* || $program != bench_resnet50 || ! -x $programs/small_resnet ]] || small=small_resnet
  if may_be_emulated "${given[@]}"; then
    emulated=yes device=cuda
  fi
  in_small "${given[@]}"
  start+=("$programs/$small$([ $emulated = no ] || echo _emulated)" --device "$device" "${small_arguments[@]}")
  like=$scratch/like/$(printf '%s' "${start[*]} ${saved:+saved}" | cksum | tr ' ' _)
  if [ ! -e "$like" ]; then
    attempt "$name" "${start[@]}" ${saved:+--save-weights "$like.safetensors"} "${output[@]}"
    [ $code -eq 0 ] || return 0
    cp "$results/$name.json" "$like"
  fi
  cp "$like" "$results/$name.json"
  [ -z "$saved" ] || ln -f "$like.safetensors" "$saved"
}

# dry NAME ARGUMENT…: does the program take this command line?
dry() {
  attempt "$1" "$programs/$program" --dry-run --target h200 --json "${@:2}"
}

# Not where it takes long: profiles (7 to 20 s each, on the CPU here), measured runs of faces, and whole networks.
may_be_emulated() {
  [[ -x $programs/${small}_emulated && $* != */parity/* ]] && ! has '--device cpu' "$@" || return 1
  if [ "$program" = bench_resnet50 ]; then ! has --profile "$@"; else [ "$runs" = checks ]; fi
}

# Leaves in small_arguments what a run becomes, in `saved` where it saves its weights: fp32, as half precisions take the
# emulated GPU three times as long, and two iterations, or three where it saves weights. From PyTorch's files: two images.
in_small() {
  local of_peer=no
  small_arguments=() saved=''
  [[ $* != */parity/* ]] || of_peer=yes
  ! has --save-weights "$@" || saved=later
  while [ $# -gt 0 ]; do
    case $of_peer$emulated$1 in
      *--tf32 | *--fp32 | *--fp16 | *--bf16 | *no--share-gpu | *no--no-autotune) ;;
      *no--deterministic) small_arguments+=(--threads 1) ;; # with several ranks each has one
      yes*--classes | yes*--backbone | yes*--dropout | yes*--image-size) small_arguments+=("$1" "$2") && shift ;;
      yes*--iters) small_arguments+=(--iters 2) && shift ;;
      no*--dropout | *--device | *--loss-scale | *--seconds | *--image-size | *--classes | *--bs) shift ;;
      *no--fusion | *no--cuda-graph | *no--comm) shift ;;
      no*--backbone) small_arguments+=(--backbone y1) && shift ;; # r50 and r100 would take minutes
      *--lr | *--momentum | *--weight-decay | *--iters | *--warmup)
        case $1 in --iters) set -- "$1" "$(($2 < 3 ? $2 : 3))" "${@:3}" ;; esac
        [ -z "$saved" ] || small_arguments+=("$1" "$2")
        shift
        ;;
      *--no-check) [ -z "$saved" ] || small_arguments+=("$1") ;;
      *--save-weights) saved=$2 && shift ;;
      *) small_arguments+=("$1") ;;
    esac
    shift
  done
  [ -n "$saved" ] || small_arguments+=(--iters 2 --warmup 1 --lr 0.00001)
  if [ $of_peer = yes ]; then
    small_arguments+=(--bs 2)
  elif [ "$program" = bench_arcface ]; then
    small_arguments+=(--bs 2 --classes 100) # and one size of images
  else
    small_arguments+=(--bs 4 --image-size 32)
  fi
}
