#!/usr/bin/env bash
# Checks and measures the CUDA device on a machine with a GPU, the headline first. Runs from an unpacked bundle
# (launch/bundle) or from the sources; nothing is installed. The first pass takes under 8 minutes on one GPU.
#
#   check.sh [--out FOLDER] [--from STAGE] [--only STAGE] [--programs FOLDER] [--rehearse]
#
#   --out       where results go (check_results); each stage's STAGE.json is there as soon as the stage is done
#   --from      leave out the stages before this one; --only: run just this one
#   --programs  the folder of bench_resnet50 and bench_arcface; default: bin beside this script, else build/release/bin
#   --rehearse  no GPU: hands every command line to a dry run, then runs it in small on the CPU
#
# Stages: smoke, headline, arcface, precisions, steps, pytorch, limits, sanitizer. Exit codes: 0 all passed or were skipped,
# 1 a stage failed, 64 usage, 69 no programs, no GPU or no library that fits it.
set -Euo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
here=$(cd "$(dirname "$0")" && pwd)
stages=(smoke headline arcface precisions steps pytorch limits sanitizer)
declare -A seconds_of=([smoke]=120 [headline]=120 [arcface]=150 [precisions]=120 [steps]=300 [pytorch]=360 [limits]=300 [sanitizer]=300)

give_up() {
  echo "check.sh: $2" >&2
  exit "$1"
}

out=check_results from=${stages[0]} only='' programs='' rehearse=no
while [ $# -gt 0 ]; do
  case $1 in
    --rehearse) rehearse=yes ;;
    --out | --from | --only | --programs)
      [ $# -gt 1 ] || give_up 64 "$1 wants a value"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    *) give_up 64 "'$1' is not an option; there are --out, --from, --only, --programs and --rehearse" ;;
  esac
  shift
done
for stage in "$from" ${only:+"$only"}; do
  [ -n "${seconds_of[$stage]:-}" ] || give_up 64 "'$stage' is not one of the stages ${stages[*]}"
done
if [ -z "$programs" ]; then
  programs=$here/bin
  [ -d "$programs" ] || programs=$here/../../build/release/bin
fi
for name in bench_resnet50 bench_arcface; do
  [ -x "$programs/$name" ] || give_up 69 "there is no $name in $programs; name its folder with --programs"
done
programs=$(cd "$programs" && pwd)
mkdir -p "$out" && cd "$out" || give_up 69 "folder '$out' can't be made; give another --out"
out=$PWD

# shellcheck source=tests/gpu/check_runs.sh disable=SC2034
source "$here/check_runs.sh"

# --- the stages; each calls bench, face, compare, torch or skip_run ----------------------------------------------

# face NAME ARGUMENT…: bench, of the program for faces.
face() { program=bench_arcface bench "$@"; }

smoke() {
  local small=(--bs 16 --image-size 64 --lr 0.0001 --iters 5 --warmup 1)
  bench on_cpu --device cpu "${small[@]}"
  bench fp32 "${small[@]}" --fp32
  if [ "$(exit_code fp32)" = 69 ]; then
    cat "$out/smoke/fp32.err" >&2
    give_up 69 "the GPU can't be used (why stands above), so nothing can be checked; --rehearse runs on the CPU"
  fi
  bench fp16 "${small[@]}" --fp16 --loss-scale 128
  compare losses fp32_as_on_cpu --first 0.001 --rest 0.05 smoke/fp32.json smoke/on_cpu.json
  compare losses fp16_as_on_cpu --first 0.02 --rest 0.1 smoke/fp16.json smoke/on_cpu.json
  smoke_of_faces y1
  smoke_of_faces r50
}

# Dropout takes the same elements on every device. At the learning rates of ResNet-50 a small batch is known by heart in
# four steps, and its loss next to nothing.
smoke_of_faces() {
  local small=(--backbone "$1" --classes 1000 --bs 8 --lr 0.00001 --iters 5 --warmup 1)
  face "$1_on_cpu" --device cpu "${small[@]}"
  face "$1_fp32" "${small[@]}" --fp32
  face "$1_fp16" "${small[@]}" --fp16 --loss-scale 128
  compare losses "$1_fp32_as_on_cpu" --first 0.001 --rest 0.05 "smoke/$1_fp32.json" "smoke/$1_on_cpu.json"
  compare losses "$1_fp16_as_on_cpu" --first 0.02 --rest 0.1 "smoke/$1_fp16.json" "smoke/$1_on_cpu.json"
}

headline() {
  bench fp16_bs256 --fp16 --bs 256
  bench fp16_bs256_no_fusion --fp16 --bs 256 --fusion off
  bench fp32_bs128 --fp32 --bs 128
  bench fp16_bs256_profile --fp16 --bs 256 --profile
}

# 85,742 classes; with one rank, mp is dp without its copies.
arcface() {
  local backbone run=(--fp16 --bs 128)
  for backbone in r50 r100 y1; do
    face "$backbone" --backbone $backbone "${run[@]}"
    face "${backbone}_limit" --backbone $backbone "${run[@]}" --dry-run
    compare share "${backbone}_of_roofline" --aim 0.7 "arcface/$backbone.json" "arcface/${backbone}_limit.json"
  done
  face r50_profile --backbone r50 "${run[@]}" --profile
  face r100_profile --backbone r100 "${run[@]}" --profile
  face r50_dp --backbone r50 "${run[@]}" --head dp
  face r50_pfc --backbone r50 "${run[@]}" --head pfc --sample-rate 0.1
  face y1_pfc_million --backbone y1 "${run[@]}" --head pfc --sample-rate 0.1 --classes 1000000
  face r50_no_fusion --backbone r50 "${run[@]}" --fusion off
  face r50_fp32 --backbone r50 --fp32 --bs 64
}

precisions() {
  bench bf16_bs256 --bf16 --bs 256
  bench tf32_bs128 --tf32 --bs 128
  bench fp16_bs128 --fp16 --bs 128
  bench fp16_bs512 --fp16 --bs 512
  bench fp16_bs256_autotuned --fp16 --bs 256 --autotune
  bench fp16_bs256_no_graph --fp16 --bs 256 --cuda-graph off
}

# From the same weights and batch: what one step does to every parameter, 20 losses, graph and eager.
steps() {
  local one=(--iters 1 --warmup 0 --lr 0.1 --momentum 0 --weight-decay 0)
  local many=(--iters 20 --warmup 1 --lr 0.001)
  local files=$out/steps # of weights and of the batch
  if ! python_there; then
    skip_run steps "python3 is not there, which compares weights and makes the batch"
    return
  fi
  local images=(--bs 16 --image-size "$steps_size")
  compare batch batch "$files/batch.safetensors" --images 16 --size "$steps_size"
  bench start --device cpu "${images[@]}" --iters 1 --warmup 0 --lr 0 --no-check --save-weights "$files/drawn.safetensors"
  compare calm calm "$files/drawn.safetensors" "$files/start.safetensors"
  local given=("${images[@]}" --weights "$files/start.safetensors" --batch "$files/batch.safetensors")
  bench one_cpu --device cpu "${given[@]}" "${one[@]}" --save-weights "$files/one_cpu.safetensors"
  bench many_cpu --device cpu "${given[@]}" "${many[@]}"
  local precision options
  for precision in fp32 tf32 fp16 bf16; do
    options=("--$precision")
    [ $precision != fp16 ] || options+=(--loss-scale 128) # so small a batch overflows at the scale of a large one
    bench "one_$precision" "${options[@]}" "${given[@]}" "${one[@]}" --save-weights "$files/one_$precision.safetensors"
    compare weights "one_${precision}_as_on_cpu" --precision "$precision" "$files/start.safetensors" \
      "$files/one_$precision.safetensors" "$files/one_cpu.safetensors"
  done
  graph_and_eager fp32 --fp32
  graph_and_eager fp16 --fp16 --loss-scale 128
  compare losses many_fp32_as_on_cpu --first 0.0001 --rest 0.01 steps/graph_fp32.json steps/many_cpu.json
  compare losses many_fp16_as_on_cpu --first 0.005 --rest 0.02 steps/graph_fp16.json steps/many_cpu.json
  bench unfused_fp16 --fp16 --loss-scale 128 "${given[@]}" "${many[@]}" --fusion off
  compare losses many_unfused_fp16_as_on_cpu --first 0.005 --rest 0.02 steps/unfused_fp16.json steps/many_cpu.json
  nccl_alone
  bench dynamic_scale_fp16 --fp16 --loss-scale dynamic "${images[@]}" --iters 40 --warmup 1 --lr 0.001
  two_ranks
  steps_of_faces
  rm -f "$out"/steps/*.safetensors
}

steps_of_faces() {
  steps_of_heads y1 dp mp pfc
  steps_of_heads r50 mp
}

# steps_of_heads BACKBONE HEAD…: 20 losses from the same weights, graph and eager alike.
steps_of_heads() {
  local backbone=$1 head like_this few=(--bs 16 --classes 1000) gently=(--iters 20 --warmup 1 --lr 0.00001)
  shift
  face "${backbone}_start" --device cpu --backbone "$backbone" "${few[@]}" --iters 1 --warmup 0 --lr 0 --no-check \
    --save-weights "$files/$backbone.safetensors"
  for head in "$@"; do
    like_this=(--backbone "$backbone" "${few[@]}" --weights "$files/$backbone.safetensors" "${gently[@]}" --head "$head")
    face "${backbone}_${head}_cpu" --device cpu "${like_this[@]}"
    face "${backbone}_$head" --fp32 "${like_this[@]}" --deterministic --cuda-graph on
    face "${backbone}_${head}_eager" --fp32 "${like_this[@]}" --deterministic --cuda-graph off
    compare losses "${backbone}_${head}_graph_as_eager" --first 0 --rest 0 "steps/${backbone}_$head.json" \
      "steps/${backbone}_${head}_eager.json"
    compare losses "${backbone}_${head}_as_on_cpu" --first 0.0001 --rest 0.02 "steps/${backbone}_$head.json" \
      "steps/${backbone}_${head}_cpu.json"
  done
}

# graph_and_eager NAME OPTION…: the same losses to the bit; within steps.
graph_and_eager() {
  local name=$1
  shift
  bench "graph_$name" "$@" "${given[@]}" "${many[@]}" --deterministic --cuda-graph on
  bench "eager_$name" "$@" "${given[@]}" "${many[@]}" --deterministic --cuda-graph off
  compare losses "graph_as_eager_$name" --first 0 --rest 0 "steps/graph_$name.json" "steps/eager_$name.json"
}

# What one GPU can prove of NCCL: that it starts, and that collectives are captured and ordered among the other steps.
# Summing alone it moves no data, so the losses are those without it.
nccl_alone() {
  local how
  for how in on off; do
    bench "nccl_graph_$how" --fp16 --loss-scale 128 "${given[@]}" "${many[@]}" --deterministic --cuda-graph $how --comm nccl
    [ "$(exit_code "nccl_graph_$how")" != 77 ] || continue
    compare losses "nccl_graph_${how}_as_without" --first 0 --rest 0 "steps/nccl_graph_$how.json" steps/graph_fp16.json
  done
}

# NCCL wants a GPU for each rank, so these two meet through the host.
two_ranks() {
  local mpirun=$programs/mpirun
  [ -x "$mpirun" ] || mpirun=$(command -v mpirun) || {
    skip_run two_ranks_share_gpu "mpirun is not there"
    return
  }
  launcher=("$mpirun" -np 2 --oversubscribe --bind-to none)
  [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
  bench two_ranks_share_gpu --fp16 --loss-scale 128 --share-gpu --bs 8 --image-size "$steps_size" --iters 5 --warmup 1 --lr 0.001
  local head
  for head in dp mp pfc; do
    face "two_ranks_$head" --backbone y1 --classes 1000 --head $head --share-gpu --bs 8 --iters 5 --warmup 1 --lr 0.001
  done
  launcher=()
}

# In turn, so that a GPU that warms up slows both.
pytorch() {
  bench ours_first --fp16 --bs 256
  torch eager_fp16 --fp16 --bs 256
  torch compiled_fp16 --fp16 --bs 256 --compile
  bench ours_again --fp16 --bs 256
  bench ours_fp32 --fp32 --bs 128
  torch eager_fp32 --fp32 --bs 128
  face r50_ours_first --backbone r50 --fp16 --bs 128
  peer=pytorch_arcface.py torch r50_eager_fp16 --backbone r50 --fp16 --bs 128
  peer=pytorch_arcface.py torch r50_compiled_fp16 --backbone r50 --fp16 --bs 128 --compile
  face r50_ours_again --backbone r50 --fp16 --bs 128
}

limits() {
  bench largest_fp16 --fp16 --find-max-bs
  bench largest_fp32 --fp32 --find-max-bs
  bench sustained_fp16 --fp16 --bs 256 --seconds 60
  face largest_r50_fp16 --backbone r50 --fp16 --find-max-bs
  face sustained_r100_fp16 --backbone r100 --fp16 --bs 128 --seconds 60
}

sanitizer() {
  local tool check
  tool=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null) || tool=
  for check in memcheck racecheck; do
    if [ "$rehearse" = no ] && [ -z "$tool" ]; then
      skip_run "$check" "compute-sanitizer is neither on PATH nor in the CUDA toolkit"
      continue
    fi
    under=("$tool" --tool "$check" --error-exitcode 9 --target-processes all)
    bench "$check" --fp16 --loss-scale 128 --bs 2 --image-size 32 --iters 1 --warmup 0 --cuda-graph off --no-check
    face "y1_$check" --backbone y1 --classes 1000 --fp16 --loss-scale 128 --bs 2 --iters 1 --warmup 0 --cuda-graph off --no-check
    # shellcheck disable=SC2034 # check_runs.sh reads it
    under=()
  done
}

# --- all of them --------------------------------------------------------------------------------------------------

describe_machine >"$out/machine.txt" 2>&1
steps_size=64
[ "$rehearse" = no ] || steps_size=32
worst=0
started=no
for stage in "${stages[@]}"; do
  [ "$stage" != "$from" ] || started=yes
  [ $started = yes ] || continue
  [ -z "$only" ] || [ "$stage" = "$only" ] || continue
  run_stage "$stage" "${seconds_of[$stage]}" || worst=1
done
echo
print_summary
exit $worst
