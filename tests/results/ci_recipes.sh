#!/usr/bin/env bash
# ci_recipes.sh PLUMBLINE PAGE: the shell parts of docs/how-to/ci.md (PAGE) are run as a CI server would, night after night, with a
# stand-in for the bench; /data/history becomes a folder of the test.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
plumbline=$1
page=$2
mkdir "$scratch/bin"
ln -s "$(realpath "$plumbline")" "$scratch/bin/plumbline"

# mpirun -np 8 bench_resnet50 --fp16 --output FOLDER …: a run folder at about the speed in the file `speed`, one minute later
# than the one before.
cat >"$scratch/bin/mpirun" <<'END'
#!/usr/bin/env bash
set -eu
here=$(dirname "$0")
[ "$1 $2" = '-np 8' ]
while [ $# -gt 1 ]; do
  [ "$1" != --output ] || out=$2
  shift
done
minute=$(($(cat "$here/minute") + 1))
echo "$minute" >"$here/minute"
folder=$out/resnet50_1n8g_b128_fp16_$(date -d "2026-01-01 00:00 $minute minutes" +%Y%m%d-%H%M%S)_1
mkdir -p "$folder"
awk -v speed="$(cat "$here/speed")" -v minute="$minute" 'BEGIN {
  speed += minute % 5 / 10
  step = sprintf("%.9f", 1024 / speed)
  printf "{\"schema\": \"plumbline.result/2\", \"status\": \"ok\", \"failure\": \"\", \"model\": \"resnet50\","
  printf "\"precision\": \"fp16\", \"device\": \"cuda\", \"device_name\": \"a GPU\", \"batch_per_device\": 128,"
  printf "\"world_size\": 8, \"nodes\": 1, \"devices_per_node\": 8, \"iterations\": 3, \"warmup\": 1,"
  printf "\"step_seconds\": [%s, %s, %s], \"loss\": [7, 7, 7], \"exposed_communication_seconds\": 0,", step, step, step
  printf "\"images_per_second\": {\"mean\": %s, \"median\": %s, \"min\": %s, \"max\": %s},", speed, speed, speed, speed
  window = sprintf("%.9f", 2 * step)
  printf "\"rank_window_seconds\": [%s", window
  for (i = 1; i < 8; ++i) printf ", %s", window
  printf "], \"data_wait_seconds\": 0, \"parameters\": 25557032, \"macs_per_image\": 4089184256,"
  printf "\"memory_bytes\": {\"peak\": 1}, \"checks\": {\"loss_finite\": true},"
  printf "\"config\": {\"data\": \"synthetic\", \"image_size\": 224}, \"log_files\": [],"
  printf "\"energy_joules_per_image\": null}\n"
}' >"$folder/result.json"
END
cat >"$scratch/bin/bench_resnet50" <<'END'
END
chmod +x "$scratch/bin/mpirun" "$scratch/bin/bench_resnet50"

# The shell part of a recipe, as its server passes it on.
shell_part() {
  case $1 in
    nightly) awk '/^```sh$/ { ++block; next } /^```$/ { if (block == 1) exit } block == 1' "$page" ;;
    github) awk '/^      - run: \|$/ { inside = 1; next } inside && !/^          / { exit } inside' "$page" ;;
    gitlab) awk '/^  script:$/ { inside = 1; next } inside && !/^    - / { exit } inside { print substr($0, 7) }' "$page" ;;
  esac | sed "s|/data/history|$scratch/$1/history|g"
}

# night RECIPE SPEED CODE: the recipe in a folder of its own. Files of the night before are still there, except in GitLab,
# which cleans its checkout; GitHub's summary is a new file for each job.
night() {
  local recipe=$1 work=$scratch/$1
  echo "$2" >"$scratch/bin/speed"
  [ "$recipe" != gitlab ] || rm -rf "$work/checkout"
  mkdir -p "$work/checkout"
  rm -f "$work/checkout/summary.md"
  ln -sf "$scratch/bin/plumbline" "$scratch/bin/bench_resnet50" "$work/checkout"
  [ "$recipe" != nightly ] || { mkdir -p "$work/history" && ln -sfn "$work/history" "$work/checkout/history"; }
  code=0
  (cd "$work/checkout" && TMPDIR=$scratch PATH=$scratch/bin:$PATH \
    GITHUB_STEP_SUMMARY=$work/checkout/summary.md bash -e "$work.sh") >"$work/said" 2>&1 || code=$?
  [ $code -eq "$3" ] || fail "$recipe at $2 images/s: exit $code (wanted $3): $(cat "$work/said")"
}

for recipe in nightly github gitlab; do
  echo 0 >"$scratch/bin/minute"
  mkdir "$scratch/$recipe"
  shell_part "$recipe" >"$scratch/$recipe.sh"
  [ "$(grep -c 'plumbline gate' "$scratch/$recipe.sh")" -eq 1 ] || fail "no recipe $recipe in $page"
  night "$recipe" 1000 65 # nothing was measured before
  night "$recipe" 1000 0
  night "$recipe" 900 1
  checkout=$scratch/$recipe/checkout
  grep -q '<testsuite.* failures="1"' "$checkout/gate.xml" || fail "$recipe: gate.xml: $(cat "$checkout/gate.xml")"
  [ "$recipe" = gitlab ] || grep -q '^| ' "$checkout/summary.md" || fail "$recipe: no table for the summary"
  [ "$(find "$scratch/$recipe/history" -name result.json | wc -l)" -eq 15 ] || fail "$recipe: the history isn't whole"
done
