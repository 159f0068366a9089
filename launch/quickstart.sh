#!/usr/bin/env bash
# From a fresh clone to the table of `plumbline analyze`: installs what is missing, builds the programs, trains
# ResNet-50 for a few iterations on 1 and on 2 ranks, on JPEG files and on synthetic data, then ArcFace with
# MobileFaceNet on the same files packed as RecordIO. Takes no arguments; may be run again at any time, each run
# has its own folder under build/quickstart.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit

[ $# -eq 0 ] || give_up 64 "takes no arguments, got '$1'"
cd "$(dirname "$0")/.."
[ -f CMakePresets.json ] || give_up 69 "$PWD has no sources; start it in a clone of the repository"

iterations=30
warmup=5
batch=4
image_size=64
learning_rate=0.01 # the default is made for larger batches
face_iterations=6
face_warmup=2
programs=build/programs/bin
images=build/quickstart/images
records=build/quickstart/images.rec
mkdir -p build/quickstart
run_folder=$(mktemp -d "build/quickstart/$(date +%Y-%m-%d_%H%M%S)_XXXX")

step() { printf '\n== %s\n' "$*"; }

launcher=(mpirun)
[ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)

# start RANKS PROGRAM [OPTION…]
start() {
  local ranks=$1 program=$2
  shift 2
  "${launcher[@]}" -np "$ranks" --bind-to none --oversubscribe "$programs/$program" --bs "$batch" \
    --lr "$learning_rate" --out "$run_folder/runs" "$@"
}

# train RANKS LOG_FOLDER [OPTION…]
train() {
  local ranks=$1 logs=$2
  shift 2
  start "$ranks" bench_resnet50 --image-size "$image_size" --iters "$iterations" --warmup "$warmup" \
    --log-dir "$logs" "$@"
}

# analyze LOG_FOLDER ITERATIONS WARM-UP
analyze() {
  "$programs/plumbline" analyze "$1" --iters "$2" --warmup "$3"
}

step "1 of 7: packages (silent if none is missing)"
launch/install_deps.sh

step "2 of 7: building the programs into $programs"
cmake --preset programs --log-level=WARNING >/dev/null
cmake --build --preset programs

step "3 of 7: a small folder of JPEG files, $images"
launch/make_images.sh "$images"

for ranks in 1 2; do
  step "$((ranks + 3)) of 7: training on $ranks rank(s), first on the JPEG files, then on synthetic data"
  train "$ranks" "$run_folder/logs_images" --data "$images"
  train "$ranks" "$run_folder/logs_synthetic"
done

step "6 of 7: the same files packed into $records, and ArcFace on 2 ranks, its 4 class centers shared out"
[ -e "$records" ] || "$programs/make_rec" "$images" "$records"
start 2 bench_arcface --backbone y1 --classes 4 --head mp --data "$records" --iters "$face_iterations" \
  --warmup "$face_warmup" --log-dir "$run_folder/logs_faces"

step "7 of 7: the logs read back, in images/s"
echo "-- JPEG files ($run_folder/logs_images)"
analyze "$run_folder/logs_images" "$iterations" "$warmup"
echo "-- synthetic data ($run_folder/logs_synthetic)"
analyze "$run_folder/logs_synthetic" "$iterations" "$warmup"
echo "-- ArcFace on RecordIO ($run_folder/logs_faces)"
analyze "$run_folder/logs_faces" "$face_iterations" "$face_warmup"
cat <<END

These figures show that everything works; they are NOT comparable with published ones: the images have
$image_size x $image_size pixels instead of 224 x 224, the batch is $batch, and $iterations iterations are few. Full size, 120 iterations:
  ${launcher[*]} -np 2 --bind-to none $programs/bench_resnet50 --bs 16
END
