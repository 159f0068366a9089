# The steps of gpu_check.sh, the most valuable first. Each run has the seconds that it should take: what it took on an H200
# machine with 16 cores and a fifth more, or an estimate (the kernel suite, peers with compiled code from a cache, and what
# comes after the energy). Sourced by gpu_check.sh, like check_runs.sh, which has bench, measure, face, compare and peer.
# shellcheck shell=bash disable=SC2154,SC2034

steps=(
  'first_run: machine, libraries, one small run'
  'variants: VARIANTS in turn'
  'headline: fp16 batch 256, tuned from a cold cache, with a profile'
  'compile_ahead: PyTorch compiles in the background while nothing is timed'
  'nccl_ranks: several NCCL ranks on this GPU equal one rank to the bit'
  'kernels: the kernel suite; own kernels under compute-sanitizer'
  'parity: losses and weights of 4 steps against PyTorch on this GPU'
  'face_parity: as parity, for r50 and r100'
  'repeat: batch 256 twice, equal to the bit'
  'tuned_step: a tuned fp16 step at 64 x 224 against plain instructions and fp32'
  'compilers_end: waits for compile_ahead'
  'peers: PyTorch eager and compiled, in turn with Plumbline, twice'
  'peers_at_their_best: PyTorch with CUDA graphs, and compiled in bf16'
  'full_load: a minute of fp16'
  'energy: ceilings, joules per byte and FLOP; does a vanishing gradient change the speed of faces'
  'counters: of own kernels, by Nsight Compute'
  'peers_again: as peers, twice more'
  'precisions: bf16, TF32, fp32'
  'batches: other batches and ways of fp16'
  'faces: r50, r100, y1 in fp16, with profiles'
  'face_heads: dp and pfc, a million classes'
  'face_peers: r50 beside PyTorch'
  'on_cpu: ResNet-50 and faces against the CPU'
  'memory: memcheck of a training step'
)

# The first run on a bare machine: the libraries come from a cold disk.
first_run() {
  bench first_run 4 --fp16 --loss-scale 128 --bs 16 --image-size 64 --lr 0.0001 --iters 2 --warmup 1 --no-autotune
  [ $action = run ] || return 0
  if [ "${outcome[first_run]}" = failed ] && [ $code -eq 69 ]; then
    stopped=${stopped:-$(note_of first_run)} worst=69
    echo "gpu_check.sh: nothing was checked, as the first run could not start: $(note_of first_run)" >&2
  elif [ "${outcome[first_run]}" = ok ]; then
    take_over
  fi
}

# GPU and libraries of this machine, as the tuning cache names them (tuning_environment(), kernels/cuda/device.cpp).
tuning_environment() {
  local gpu
  gpu=$(sed -n 's/.*"device_name": *"\(.*\) (sm_.*/\1/p' "$results/first_run.json")
  echo "$gpu, $(sed -n '/^cuDNN: /s/: / /p' "$results/machine.txt"), $(sed -n '/^cuBLASLt: /s/: / /p' "$results/machine.txt")"
}

# take_over: from earlier calls, tuned engines of this GPU and these libraries, the steps that passed on it with this commit,
# and the caches of the peers' compilers.
take_over() {
  local archive here_is theirs name
  here_is=$(tuning_environment)
  printf '%s\n' "$here_is" "$commit" >environment.txt
  [ ! -e "$earlier/gpu_check_caches.tgz" ] || tar -C "$caches" -xzf "$earlier/gpu_check_caches.tgz" ||
    echo "  $earlier/gpu_check_caches.tgz is damaged; peers compile again"
  while read -r archive; do
    [ "$archive" != "$out/gpu_check.tgz" ] || continue # of this call
    mkdir -p "$scratch/earlier"
    tar -C "$scratch/earlier" -xzf "$archive" --strip-components=1 2>/dev/null || echo "  $archive is damaged"
    { mapfile -t theirs <"$scratch/earlier/environment.txt"; } 2>/dev/null || theirs=('no GPU' '')
    if [ "${theirs[0]}" != "$here_is" ]; then
      echo "  $archive: of ${theirs[0]}, not of $here_is; its steps run again, engines are timed anew"
    else
      if [ -d "$scratch/earlier/cache/plumbline/tuning" ]; then
        mkdir -p cache/plumbline && cp -r "$scratch/earlier/cache/plumbline/tuning" cache/plumbline/
        echo "  tuned engines of ${archive##*/}"
      fi
      if [ "${theirs[1]}" = "$commit" ]; then
        while read -r name; do passed_earlier[$name]=${archive##*/}; done < <(cat "$scratch/earlier/passed.txt" 2>/dev/null)
      else
        echo "  $archive: of commit ${theirs[1]}, not of $commit; its steps run again"
      fi
    fi
    rm -rf "$scratch/earlier"
  done < <(archives "$earlier")
  unset 'passed_earlier[first_run]' 'passed_earlier[variants]'
}

# VARIANTS in turn, so that a GPU that warms up slows all of them. Only the first round tunes engines.
variants() {
  local sets=() set names=() rates=() round i options files
  IFS=';' read -r -d '' -a sets <<<"${VARIANTS:-}" || true
  for set in "${sets[@]}"; do
    read -r -a options <<<"$set" || true
    [ ${#options[@]} -eq 0 ] || names+=("${options[*]}")
  done
  for ((round = 1; round <= rounds; ++round)); do
    for i in "${!names[@]}"; do
      read -r -a options <<<"${names[i]}"
      other_programs=''
      [[ ${options[0]} != @* ]] || { other_programs=${options[0]#@} && options=("${options[@]:1}"); }
      [[ " ${options[*]} " != *" --backbone "* ]] || program=bench_arcface
      measure "variant_$((i + 1))_$round" $((round == 1 ? 15 : 9)) "${options[@]}"
      other_programs='' program=bench_resnet50
    done
  done
  for i in "${!names[@]}"; do
    files=''
    for ((round = 1; round <= rounds; ++round)); do
      [ "${outcome[variant_$((i + 1))_$round]:-}" != ok ] || files+=,variant_$((i + 1))_$round.json
    done
    [ -z "$files" ] || rates+=("${files#,}=${names[i]}")
  done
  [ ${#rates[@]} -eq 0 ] || compare rates variants "${rates[@]}"
}

# What was stopped while it timed engines goes on with the next run; if the last of three fails, nothing more is tuned.
headline() {
  local name
  for name in tuning tuning_again tuning_last; do
    bench $name 10 --fp16 --bs 256 --iters 5 --warmup 1 # the first ones overflow
    case ${outcome[$name]:-ok} in ok | "left out") break ;; failed) [ $name != tuning_last ] || tuned=(--no-autotune) ;; esac
  done
  measure fp16_bs256 9 --fp16 --bs 256
  measure fp16_bs256_profile 10 --fp16 --bs 256 --profile
}

# ranks N: the runs that follow start as N ranks, or with 1 as they are.
ranks() {
  launcher=()
  [ "$1" -gt 1 ] || return 0
  launcher=("$programs/mpirun" -np "$1" --oversubscribe --bind-to none)
  [ -x "${launcher[0]}" ] || launcher[0]=mpirun
  [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
}

# All ranks take the same batch, so that each has the gradient of a single rank, and so has their mean. Faces with shared
# class centers have no such single rank: two NCCL ranks equal two that meet through the host.
nccl_ranks() {
  local precision count graph name kind head given files shared
  compare batch batch "$scratch/batch.safetensors" --images 16 --size "$([ "$rehearse" = yes ] && echo 32 || echo 64)"
  for precision in fp32 fp16; do
    files=() given=("--$precision")
    [ $precision = fp32 ] || given+=(--loss-scale 128)
    given+=(--comm nccl --bs 16 --image-size 64 --batch-file "$scratch/batch.safetensors" --iters 6 --warmup 1 --lr 0.001)
    for count in '1 on' '1 off' '2 on' '2 off' '4 on'; do
      graph=${count#* } count=${count% *}
      name=nccl_${precision}_${count}_$graph
      ranks "$count"
      shared=()
      [ "$count" -eq 1 ] || shared=(--share-gpu)
      bench "$name" $((2 + count)) "${given[@]}" --deterministic --no-autotune "${shared[@]}" --cuda-graph $graph \
        --save-weights "$scratch/$name.safetensors"
      files+=("$name.json" "$scratch/$name.safetensors")
    done
    compare same "nccl_${precision}_ranks" "${files[@]}"
  done
  ranks 2
  for head in mp pfc; do
    for kind in mpi nccl; do
      face "${kind}_y1_$head" 4 --fp32 --backbone y1 --classes 1000 --head $head --share-gpu --comm $kind --bs 8 --iters 5 \
        --warmup 1 --lr 0.00001 --deterministic --no-autotune
    done
    compare same "nccl_y1_${head}_as_mpi" "mpi_y1_$head.json" "nccl_y1_$head.json"
  done
  for kind in allreduce allgather reducescatter broadcast; do
    program=bench_allreduce bench "nccl_$kind" 2 --comm nccl --share-gpu --collective $kind -b 4K -e 16M -f 16 -n 5 -w 1
  done
  ranks 1
}

# One eager step; only own kernels. Tuning would time them first.
counters() {
  local metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread
  under=(ncu --csv --page raw --log-file "$results/ncu.csv" --clock-control none --target-processes all \
    --kernel-name-base demangled --kernel-name 'regex:.*plumb.*' --launch-count 600 --metrics "$metrics")
  bench ncu 17 --fp16 --bs 256 --iters 1 --warmup 0 --cuda-graph off --no-check --no-autotune
  under=()
}

# From the same closed-form weights and batch: Plumbline's fp32 is PyTorch's, and its other precisions are no further from
# PyTorch's fp32 than PyTorch's own are.
parity() {
  peer torchvision make_resnet50.py pytorch_resnet50_steps 22 steps --out "$scratch/parity"
  local precisions=(fp32 tf32 bf16 fp16)
  as_pytorch resnet50 --bs 16 --image-size 64
}

face_parity() {
  local model precisions=(fp32 tf32 bf16 fp16)
  peer torchvision make_arcface.py pytorch_face_steps 22 steps --out "$scratch/parity" --model r50 --model r100
  for model in r50 r100; do
    program=bench_arcface as_pytorch $model --backbone $model --classes 1000 --bs 8 --dropout 0
    precisions=(fp32 fp16) # r100 has more of r50's layers
  done
}

# as_pytorch MODEL ARGUMENT…: four steps in each of `precisions`, from the files of make_resnet50.py or make_arcface.py.
as_pytorch() {
  local model=$1 of=$scratch/parity/$1 precision name scale
  shift
  for precision in "${precisions[@]}"; do
    name=${model}_$precision scale=()
    [ $precision != fp16 ] || scale=(--loss-scale 128) # as in PyTorch's steps
    bench "$name" 3 "$@" --$precision "${scale[@]}" --weights "${of}_start.safetensors" --batch-file "${of}_batch.safetensors" --iters 4 \
      --warmup 0 --lr 0.001 --no-autotune --save-weights "$scratch/$name.safetensors"
    compare parity "${name}_as_pytorch" --precision $precision --losses "$name.json" "${of}_$precision.json" "${of}_fp32.json" \
      --weights "${of}_start.safetensors" "$scratch/$name.safetensors" "${of}_$precision.safetensors" "${of}_fp32.safetensors"
    [ $action = list ] || rm -f "$scratch/$name.safetensors" # r100's are 263 MB each
  done
  [ $action = list ] || rm -f "$of"_*
}

kernels() {
  local check
  # Most of it are the references in double precision, on the threads of 16 cores.
  program=conformance_cuda bench conformance 40 --gtest_output="json:$results/conformance.json"
  for check in racecheck synccheck initcheck; do
    under=(compute-sanitizer --tool "$check" --error-exitcode 9 --print-limit 20)
    program=racecheck_kernels bench "$check" 6
  done
  under=()
}

# Its figure is of another length than the others, so it is a check and no row of the report.
full_load() { bench sustained_fp16 62 --fp16 --bs 256 --seconds 55; }

# Faces reach a loss of 1e-4 within the window, so most of their gradients are 0: with a learning rate that teaches nothing
# they aren't.
energy() {
  peer torch ceilings.py ceilings 14
  face fp16_r50_lr_1e-9 11 --backbone r50 --fp16 --bs 128 --lr 0.000000001
}

# Inductor needs a CPU for a minute per mode and precision: it takes it while steps run that time nothing. The peers' own
# runs find in the cache what it made.
compile_ahead() {
  local modes=('--fp16 --compile reduce-overhead' '--bf16 --compile') left=$((deadline - SECONDS))
  [[ $action = run && $rehearse = no && -z $stopped && $step =~ ^(${only:-.*})$ && $left -gt 60 ]] && python_has torch || return 0
  [ -n "$(ls -A "$caches")" ] || modes=('--fp16 --compile' "${modes[@]}")
  # shellcheck disable=SC2016 # a script
  XDG_CACHE_HOME=$caches timeout --kill-after=5 $((left < 240 ? left : 240)) \
    bash -c 'for mode; do python3 -B "$0" $mode --bs 256 --iters 1 --warmup 1; done' "$(script_path pytorch_resnet50.py)" \
    "${modes[@]}" &>"$scratch/compile_ahead.txt" &
  compiling=$!
}

compilers_end() {
  local begin=$SECONDS
  [ -n "$compiling" ] || return 0
  wait "$compiling" || code=$?
  compiling=''
  pack_caches
  echo "  compilers ended after another $((SECONDS - begin)) s"
}

# in_turn ROUND SECONDS SECONDS: ours, eager and compiled, so that a GPU that warms up slows all of them.
in_turn() {
  local of=$results/logs/fp16_bs256 run=(--fp16 --bs 256)
  logs=$of/plumbline measure "ours_$1" 8 "${run[@]}"
  logs=$of/pytorch_eager peer torch pytorch_resnet50.py "eager_$1" "$2" "${run[@]}"
  logs=$of/pytorch_compiled peer torch pytorch_resnet50.py "compiled_$1" "$3" "${run[@]}" --compile
}

peers() {
  in_turn 1 28 30
  pack_caches
  in_turn 2 20 30
}

peers_at_their_best() {
  local of=$results/logs/fp16_bs256 bf16=$results/logs/bf16_bs256
  logs=$of/pytorch_reduce-overhead peer torch pytorch_resnet50.py reduce_overhead 30 --fp16 --bs 256 --compile reduce-overhead
  logs=$bf16/plumbline measure ours_bf16 11 --bf16 --bs 256
  logs=$bf16/pytorch_compiled peer torch pytorch_resnet50.py compiled_bf16 30 --bf16 --bs 256 --compile
  pack_caches
}

peers_again() {
  in_turn 3 20 30
  in_turn 4 20 30
}

repeat() {
  local run=(--fp16 --bs 256 --iters 8 --warmup 2 --deterministic --no-autotune)
  bench once 6 "${run[@]}" --save-weights "$scratch/once.safetensors"
  bench twice 6 "${run[@]}" --save-weights "$scratch/twice.safetensors"
  compare same repeated once.json twice.json "$scratch/once.safetensors" "$scratch/twice.safetensors"
}

one_step=(--iters 1 --warmup 0 --lr 0.1 --momentum 0 --weight-decay 0)

# One step of batch 64, from weights so large that sums over a norm's input pass the largest fp16: statistics of every norm, and
# the change of every parameter, as tuned (fused where that is faster), by plain instructions, and in fp32.
tuned_step() {
  local run=(--bs 64 "${one_step[@]}" --weights "$scratch/loud.safetensors") scale=(--fp16 --loss-scale 8192)
  bench drawn 3 --device cpu --bs 2 --image-size 32 --iters 1 --warmup 0 --lr 0 --no-check --save-weights "$scratch/drawn.safetensors"
  compare calm loud --loud 8 "$scratch/drawn.safetensors" "$scratch/loud.safetensors"
  bench step_tuned 10 "${scale[@]}" "${run[@]}" --save-weights "$scratch/step_tuned.safetensors"
  bench step_fused 4 "${scale[@]}" "${run[@]}" --no-autotune --save-weights "$scratch/step_fused.safetensors"
  bench step_plain 3 "${scale[@]}" "${run[@]}" --no-autotune --fusion off --save-weights "$scratch/step_plain.safetensors"
  bench step_fp32 4 --fp32 "${run[@]}" --no-autotune --save-weights "$scratch/step_fp32.safetensors"
  as_plain fused_as_plain fused plain
  as_plain tuned_as_fp32 tuned fp32
}

as_plain() { compare norms "$1" "$scratch/loud.safetensors" "$scratch/step_$2.safetensors" "$scratch/step_$3.safetensors"; }

precisions() {
  measure bf16_bs256 20 --bf16 --bs 256 --profile
  measure tf32_bs128 20 --tf32 --bs 128 --profile
  measure fp32_bs128 30 --fp32 --bs 128 --profile
}

batches() {
  measure fp16_bs512 24 --fp16 --bs 512
  measure fp16_bs128 15 --fp16 --bs 128
  measure fp16_bs256_unfused 12 --fp16 --bs 256 --fusion off --profile
  measure fp16_bs256_no_graph 10 --fp16 --bs 256 --cuda-graph off
}

measure_face() { program=bench_arcface measure "$@"; }

# 85,742 classes. The first run of a backbone tunes its engines.
faces() {
  local backbone
  for backbone in r50 r100 y1; do measure_face "fp16_$backbone" 15 --backbone $backbone --fp16 --bs 128 --profile; done
}

# With one rank, mp, which faces has, is dp without its copies.
face_heads() {
  measure_face fp16_r50_dp 10 --backbone r50 --fp16 --bs 128 --head dp
  measure_face fp16_r50_pfc 10 --backbone r50 --fp16 --bs 128 --head pfc --sample-rate 0.1
  measure_face fp16_y1_pfc_million 8 --backbone y1 --fp16 --bs 128 --head pfc --sample-rate 0.1 --classes 1000000
}

face_peers() {
  local of=$results/logs/fp16_r50 run=(--backbone r50 --fp16 --bs 128)
  logs=$of/plumbline measure_face ours_r50 15 "${run[@]}"
  logs=$of/pytorch_eager peer torch pytorch_arcface.py eager_r50 12 "${run[@]}"
  logs=$of/pytorch_compiled peer torch pytorch_arcface.py compiled_r50 40 "${run[@]}" --compile
  pack_caches
}

# Dropout takes the same elements on every device. At the learning rates of ResNet-50 a small batch of faces is known by heart
# in four steps.
on_cpu() {
  local run=(--bs 16 --image-size 64 --lr 0.0001 --iters 5 --warmup 1) backbone precision
  bench cpu 3 --device cpu "${run[@]}"
  bench gpu_fp32 3 --fp32 "${run[@]}" --no-autotune
  bench gpu_fp16 4 --fp16 --loss-scale 128 "${run[@]}" --no-autotune
  compare losses fp32_as_on_cpu --first 0.001 --rest 0.05 gpu_fp32.json cpu.json
  compare losses fp16_as_on_cpu --first 0.02 --rest 0.1 gpu_fp16.json cpu.json
  for backbone in y1 r50; do
    run=(--backbone "$backbone" --classes 1000 --bs 8 --iters 8 --warmup 1 --lr 0.00001)
    face "cpu_$backbone" 6 --device cpu "${run[@]}"
    for precision in fp32 fp16; do
      face "gpu_${backbone}_$precision" 4 --$precision "${run[@]}" --no-autotune
      compare losses "${backbone}_${precision}_as_on_cpu" --first "$([ $precision = fp32 ] && echo 0.0001 || echo 0.02)" --rest \
        0.1 "gpu_${backbone}_$precision.json" "cpu_$backbone.json"
    done
  done
}

# Libraries ask for what a GPU may lack.
memory() {
  under=(compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 --target-processes all --print-limit 20)
  bench memcheck 8 --fp16 --loss-scale 128 --bs 2 --image-size 32 --iters 1 --warmup 0 --cuda-graph off --no-check --no-autotune
  under=()
}
