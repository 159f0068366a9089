# The three parts of half_hour.sh: what they run, by value, each with the seconds that it should take on an H100: what was
# measured and a third more, or an estimate (PyTorch, ncu, racecheck, fp32_bs128, most of the third part). Sourced by
# half_hour.sh, like check_runs.sh, which has bench, measure, face, compare and peer.
# shellcheck shell=bash disable=SC2154,SC2034

# The first run on a bare machine: the libraries come from a cold disk.
first_run() {
  bench first_run 6 --fp16 --loss-scale 128 --bs 16 --image-size 64 --lr 0.0001 --iters 2 --warmup 1 --no-autotune
  [ "${outcome[first_run]:-}" = failed ] && [ $code -eq 69 ] || return 0
  local note why='could not start'
  note=$(note_of first_run)
  stopped=$note worst=69 # a library is missing or too old, unless:
  [[ $note != *"no CUDA GPU answers"* ]] || stopped="no GPU" why="found no GPU"
  echo "half_hour.sh: nothing was checked, as the first run $why: $note" >&2
}

# The first run's GPU and the programs' libraries, as the tuning cache names them (tuning_environment(), kernels/cuda/device.cpp).
tuning_environment() {
  local gpu
  gpu=$(sed -n 's/.*"device_name": *"\(.*\) (sm_.*/\1/p' "$results/first_run.json")
  echo "$gpu, $(sed -n '/^cuDNN: /s/: / /p' "$results/machine.txt"), $(sed -n '/^cuBLASLt: /s/: / /p' "$results/machine.txt")"
}

# Takes over the engines that the last fitting part found to be the fastest, after the first run: of fp16 batch 256, of this GPU
# and these libraries.
take_over_tuning() {
  local archive found here_is tuned_on why taken=''
  [ -z "$stopped" ] || return 0
  here_is=$(tuning_environment)
  [[ $here_is != ,* ]] || return 0 # the first run failed
  while read -r archive; do
    found=$(tar -tzf "$archive" 2>/dev/null | grep '/cache/plumbline/tuning.json$') || continue
    tar -xzOf "$archive" "$found" >"$scratch/tuning.json" || continue
    tuned_on=$(sed -n 's/^  "\(.*\)": {$/\1/p' "$scratch/tuning.json")
    why=''
    if [[ $'\n'$tuned_on$'\n' != *$'\n'$here_is$'\n'* ]]; then
      tuned_on=${tuned_on:-no GPU}
      why="is of ${tuned_on//$'\n'/; } and not of $here_is"
    elif ! awk -v begin="  \"$here_is\": {" '/^  [^ ]/ { here = $0 == begin }
        here && /^   "conv_[a-z_]* 256x.*, f16/ { found = 1 } END { exit !found }' "$scratch/tuning.json"; then
      why="has no engines of fp16 batch 256"
    fi
    if [ -n "$why" ]; then
      echo "  $archive: its tuning.json $why; engines are timed anew unless EARLIER names the folder of a first part that fits"
      continue
    fi
    mkdir -p cache/plumbline
    cp "$scratch/tuning.json" cache/plumbline/tuning.json
    taken=$archive
  done < <(in_order "$earlier/check_*.tgz")
  [ -z "$taken" ] || echo "  tuned engines of ${taken##*/}"
}

# Times all engines of fp16 batch 256, from a cold cache. What was stopped goes on with the next run. If the last of three
# fails, the runs after it tune nothing; if it took too long, they go on with it.
tune() {
  local name
  for name in tuning_fp16 tuning_fp16_again tuning_fp16_last; do
    bench $name 12 --fp16 --bs 256 --iters 5 --warmup 1 # the first ones overflow
    case ${outcome[$name]:-ok} in ok | "left out") return 0 ;; esac
  done
  [ "${outcome[$name]}" = timeout ] || tuned=(--no-autotune)
}

# --- first ------------------------------------------------------------------------------------------------------------

first() {
  first_run
  peer ceilings.py ceilings 12
  smoke
  fused_norms
  tune
  logs=$results/logs/fp16_bs256/plumbline measure fp16_bs256 12 --fp16 --bs 256 --profile
  measure fp16_bs256_unfused 12 --fp16 --bs 256 --fusion off --profile
  compare losses tuned_as_unfused --count 3 --first 0.005 --rest 0.05 fp16_bs256.json fp16_bs256_unfused.json
  pytorch 1 25 70
  counters
  pytorch 2 20 35
  measure fp32_bs128 30 --fp32 --bs 128 --profile
  pytorch 3 20 35
}

smoke() {
  local small=(--bs 16 --image-size 64 --lr 0.0001 --iters 5 --warmup 1)
  bench on_cpu 3 --device cpu "${small[@]}"
  bench fp32 3 --fp32 "${small[@]}" --no-autotune
  bench fp16 4 --fp16 --loss-scale 128 "${small[@]}" --no-autotune
  compare losses fp32_as_on_cpu --first 0.001 --rest 0.05 fp32.json on_cpu.json
  compare losses fp16_as_on_cpu --first 0.02 --rest 0.1 fp16.json on_cpu.json
}

# What cuDNN's documents leave open about its fused norms: statistics of a step, also beyond the largest fp16, and the
# gradients of every norm and of the convolution before it, against the plain instructions from the same weights.
fused_norms() {
  local one=(--fp16 --loss-scale 8192 --bs 64 --iters 1 --warmup 0 --lr 0.1 --momentum 0 --weight-decay 0 --no-autotune)
  draw loud --loud 8
  bench fused 4 "${one[@]}" --weights "$scratch/loud.safetensors" --save-weights "$scratch/fused.safetensors"
  bench plain 3 "${one[@]}" --weights "$scratch/loud.safetensors" --save-weights "$scratch/plain.safetensors" --fusion off
  if nothing_fused; then
    ! starts fused_as_plain 2 || leave_out fused_as_plain "nothing was fused, so there is nothing to compare"
    return
  fi
  compare norms fused_as_plain "$scratch/loud.safetensors" "$scratch/fused.safetensors" "$scratch/plain.safetensors"
}

# Whether the run `fused` has no fused step, as on a GPU without fused engines; a rehearsal on the CPU never has one.
nothing_fused() {
  local kept=("$results"/checks/fused/*/program.json)
  [[ $listing = no && -e ${kept[0]} ]] && [[ $rehearse = no || -x $programs/bench_resnet50_emulated ]] &&
    ! grep -qE '"kind": *"(norm_finalize|conv_norm_backward_data)"' "${kept[@]}"
}

# draw NAME ARGUMENT…: weights to start from, made calm, in NAME.safetensors.
draw() {
  bench drawn 3 --device cpu --bs 2 --image-size 32 --iters 1 --warmup 0 --lr 0 --no-check \
    --save-weights "$scratch/drawn.safetensors"
  compare calm "$@" "$scratch/drawn.safetensors" "$scratch/$1.safetensors"
}

# pytorch ROUND SECONDS SECONDS: ours, eager and compiled in turn, so that a GPU that warms up slows all of them. The first
# round's run of ours is fp16_bs256.
pytorch() {
  local of=$results/logs/fp16_bs256 run=(--fp16 --bs 256)
  [ "$1" = 1 ] || logs=$of/plumbline measure "ours_$1" 10 --fp16 --bs 256
  logs=$of/pytorch_eager peer pytorch_resnet50.py "eager_$1" "$2" "${run[@]}"
  logs=$of/pytorch_compiled peer pytorch_resnet50.py "compiled_$1" "$3" "${run[@]}" --compile
}

# Nsight Compute on one eager step; only our own kernels. Tuning would time them first.
counters() {
  local ncu metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread
  ncu=$(tool_path ncu)
  if [ "$listing$rehearse" = nono ] && [ -z "$ncu" ]; then
    ! starts ncu 20 || leave_out ncu "ncu is neither on PATH nor in the CUDA toolkit"
    return
  fi
  under=("${ncu:-ncu}" --csv --page raw --log-file "$results/ncu.csv" --clock-control none --target-processes all
    --kernel-name-base demangled --kernel-name 'regex:.*plumb.*' --launch-count 600 --metrics "$metrics")
  bench ncu 20 --fp16 --bs 256 --iters 1 --warmup 0 --cuda-graph off --no-check --no-autotune
  under=()
}

# --- second -----------------------------------------------------------------------------------------------------------

second() {
  first_run
  [ $listing = yes ] || take_over_tuning
  resnet50_steps
  face_steps r50 6 mp
  face_steps y1 3 mp pfc
  arcface_speed
  sanitizer
  face_steps r100 7 mp
  heads
  two_ranks
}

# From the same weights and batch: what one step does to every parameter, and 20 losses; eager as captured, with NCCL too.
resnet50_steps() {
  local one=(--iters 1 --warmup 0 --lr 0.1 --momentum 0 --weight-decay 0) precision scale
  local many=(--iters 20 --warmup 1 --lr 0.001) images=(--bs 16 --image-size 64)
  compare batch batch "$scratch/batch.safetensors" --images 16 --size "$([ "$rehearse" = yes ] && echo 32 || echo 64)"
  draw start
  local given=("${images[@]}" --weights "$scratch/start.safetensors" --batch "$scratch/batch.safetensors")
  bench one_cpu 3 --device cpu "${given[@]}" "${one[@]}" --save-weights "$scratch/one_cpu.safetensors"
  bench many_cpu 3 --device cpu "${given[@]}" "${many[@]}"
  for precision in fp32 fp16 bf16 tf32; do
    scale=()
    [ $precision != fp16 ] || scale=(--loss-scale 128) # so small a batch overflows at the scale of a large one
    bench "one_$precision" 4 "--$precision" "${scale[@]}" "${given[@]}" "${one[@]}" --no-autotune \
      --save-weights "$scratch/one_$precision.safetensors"
    compare weights "one_${precision}_as_on_cpu" --precision "$precision" "$scratch/start.safetensors" \
      "$scratch/one_$precision.safetensors" "$scratch/one_cpu.safetensors"
  done
  bench many_fp16 4 --fp16 --loss-scale 128 "${given[@]}" "${many[@]}" --no-autotune # fused
  graph_and_eager fp32 --fp32
  graph_and_eager fp16 --fp16 --loss-scale 128
  graph_and_eager fp16_nccl --fp16 --loss-scale 128 --comm nccl
  compare losses many_fp32_as_on_cpu --first 0.0001 --rest 0.01 graph_fp32.json many_cpu.json
  compare losses many_fp16_as_on_cpu --first 0.005 --rest 0.02 many_fp16.json many_cpu.json
  compare losses nccl_as_without --first 0 --rest 0 graph_fp16_nccl.json graph_fp16.json
}

# graph_and_eager NAME OPTION…: the same losses to the bit, so by no fused engine of cuDNN; within resnet50_steps.
graph_and_eager() {
  local name=$1
  shift
  bench "graph_$name" 4 "$@" "${given[@]}" "${many[@]}" --deterministic --cuda-graph on --no-autotune
  bench "eager_$name" 4 "$@" "${given[@]}" "${many[@]}" --deterministic --cuda-graph off --no-autotune
  compare losses "graph_as_eager_$name" --first 0 --rest 0 "graph_$name.json" "eager_$name.json"
}

# face_steps BACKBONE SECONDS HEAD…: from the same weights, against the CPU: what one step with the first head does to every
# parameter, and losses, for which the CPU should take SECONDS; the first head eager as well. Dropout takes the same elements
# on every device. At the learning rates of ResNet-50 a small batch is known by heart in four steps.
face_steps() {
  local backbone=$1 on_cpu=$2 first=$3 head given run start=$scratch/face.safetensors of=$scratch/$1
  local few=(--backbone "$1" --classes 1000 --bs 8) one=(--iters 1 --warmup 0 --lr 0.1 --momentum 0 --weight-decay 0)
  shift 2
  face "${backbone}_drawn" 3 --device cpu --backbone "$backbone" --classes 1000 --bs 2 --iters 1 --warmup 0 --lr 0 --no-check \
    --save-weights "${of}_drawn.safetensors"
  compare calm "${backbone}_start" "${of}_drawn.safetensors" "$start"
  python_there || start=${of}_drawn.safetensors
  given=("${few[@]}" --weights "$start" "${one[@]}" --head "$first")
  face "${backbone}_one_cpu" 3 --device cpu "${given[@]}" --save-weights "${of}_one_cpu.safetensors"
  face "${backbone}_one" 4 --fp32 "${given[@]}" --no-autotune --save-weights "${of}_one.safetensors"
  compare weights "${backbone}_one_as_on_cpu" --precision fp32 "$start" "${of}_one.safetensors" "${of}_one_cpu.safetensors"
  for head in "$@"; do
    given=("${few[@]}" --weights "$start" --iters 8 --warmup 1 --lr 0.00001 --head "$head")
    run=${backbone}_$head
    face "${run}_cpu" "$on_cpu" --device cpu "${given[@]}"
    face "$run" 4 --fp32 "${given[@]}" --deterministic --cuda-graph on --no-autotune
    compare losses "${run}_as_on_cpu" --first 0.0001 --rest 0.02 "$run.json" "${run}_cpu.json"
    [ "$head" = "$first" ] || continue
    face "${run}_eager" 4 --fp32 "${given[@]}" --deterministic --cuda-graph off --no-autotune
    compare losses "${run}_graph_as_eager" --first 0 --rest 0 "$run.json" "${run}_eager.json"
  done
  [ $listing = yes ] || rm -f "$start" "$of"_*.safetensors # r100's are 263 MB each
}

# 85,742 classes. The first run of a backbone tunes its engines.
arcface_speed() {
  local backbone run=(--fp16 --bs 128)
  for backbone in r50 r100 y1; do
    measure_face "fp16_$backbone" 15 --backbone $backbone "${run[@]}" --profile
    face "limit_$backbone" 1 --backbone $backbone "${run[@]}" --dry-run
    compare share "${backbone}_of_roofline" --aim 0.7 "fp16_$backbone.json" "limit_$backbone.json"
  done
}

# With one rank, mp, which the runs above have, is dp without its copies.
heads() {
  local run=(--fp16 --bs 128)
  measure_face fp16_r50_dp 10 --backbone r50 "${run[@]}" --head dp
  measure_face fp16_r50_pfc 10 --backbone r50 "${run[@]}" --head pfc --sample-rate 0.1
  measure_face fp16_y1_pfc_million 8 --backbone y1 "${run[@]}" --head pfc --sample-rate 0.1 --classes 1000000
}

measure_face() { program=bench_arcface measure "$@"; }

# Racecheck looks at our own kernels only: those of the libraries would take all of the time. It runs in strict fp32: under it
# cuDNN's engines for tensor cores end with an illegal memory access (cuDNN 9.19, H100), where memcheck finds nothing.
sanitizer() {
  local tool check own precision
  tool=$(tool_path compute-sanitizer)
  for check in memcheck racecheck; do
    if [ "$listing$rehearse" = nono ] && [ -z "$tool" ]; then
      ! starts $check 8 || leave_out $check "compute-sanitizer is neither on PATH nor in the CUDA toolkit"
      continue
    fi
    own=(--report-api-errors no) precision=(--fp16 --loss-scale 128) # libraries ask for what a GPU may lack
    [ $check = memcheck ] || own=(--kernel-name kernel_substring=plumb) precision=(--fp32)
    under=("${tool:-compute-sanitizer}" --tool "$check" "${own[@]}" --error-exitcode 9 --target-processes all --print-limit 20)
    bench $check 8 "${precision[@]}" --bs 2 --image-size 32 --iters 1 --warmup 0 --cuda-graph off --no-check --no-autotune
    under=()
  done
}

# These two meet through the host.
two_ranks() {
  local mpirun=$programs/mpirun
  [ -x "$mpirun" ] || mpirun=$(command -v mpirun) || {
    ! starts two_ranks 4 || leave_out two_ranks "mpirun is not there"
    return 0
  }
  launcher=("$mpirun" -np 2 --oversubscribe --bind-to none)
  [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
  local few=(--share-gpu --bs 8 --iters 5 --warmup 1)
  bench two_ranks 4 --fp16 --loss-scale 128 "${few[@]}" --image-size 64 --lr 0.001 --no-autotune
  face two_ranks_mp 3 --backbone y1 --classes 1000 "${few[@]}" --lr 0.00001 --no-autotune
  launcher=()
}

# --- third ------------------------------------------------------------------------------------------------------------

third() {
  first_run
  [ $listing = yes ] || take_over_tuning
  tune # what an earlier part left unfinished
  variants
  measure fp16_bs256_overlap_weights 11 --fp16 --bs 256 --overlap-weights
  measure fp16_bs128 15 --fp16 --bs 128
  measure sustained_fp16 75 --fp16 --bs 256 --seconds 60
  measure bf16_bs256 20 --bf16 --bs 256 --profile
  measure tf32_bs128 20 --tf32 --bs 128 --profile
  face_pytorch
  measure fp16_bs512 24 --fp16 --bs 512
  measure fp16_bs256_no_graph 10 --fp16 --bs 256 --cuda-graph off
  bench largest_fp16 25 --fp16 --find-max-bs --no-autotune
}

# As pytorch, for faces.
face_pytorch() {
  local of=$results/logs/fp16_r50 run=(--backbone r50 --fp16 --bs 128)
  logs=$of/plumbline measure_face ours_r50 15 "${run[@]}"
  logs=$of/pytorch_eager peer pytorch_arcface.py eager_r50 12 "${run[@]}"
  logs=$of/pytorch_compiled peer pytorch_arcface.py compiled_r50 40 "${run[@]}" --compile
}

# VARIANTS in turn, so that a GPU that warms up slows all of them. Only the first round tunes engines.
variants() {
  local sets=() set options=() names=() rates=() round i done_of
  IFS=';' read -r -d '' -a sets <<<"${VARIANTS:-}" || true
  for set in "${sets[@]}"; do
    read -r -a options <<<"$set" || true
    [ ${#options[@]} -eq 0 ] || names+=("${options[*]}")
  done
  for ((round = 1; round <= rounds; ++round)); do
    for i in "${!names[@]}"; do
      read -r -a options <<<"${names[i]}"
      program=$(program_of "${names[i]}") measure "variant_$((i + 1))_$round" $((round == 1 ? 20 : 12)) "${options[@]}"
    done
  done
  for i in "${!names[@]}"; do
    done_of=$(rounds_done $((i + 1)))
    [ -z "$done_of" ] || rates+=("$done_of=${names[i]}")
  done
  [ ${#rates[@]} -eq 0 ] || compare rates variants "${rates[@]}"
}

program_of() { [[ " $1 " == *" --backbone "* ]] && echo bench_arcface || echo bench_resnet50; }

# rounds_done VARIANT: the results of its runs that passed, with commas between them.
rounds_done() {
  local round files=''
  for ((round = 1; round <= rounds; ++round)); do
    [ "${outcome[variant_$1_$round]:-}" != ok ] || files+=,variant_$1_$round.json
  done
  echo "${files#,}"
}
