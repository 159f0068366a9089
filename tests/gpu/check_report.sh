# half_hour.sh --report: what came back from a machine with a GPU becomes results/measured/GPU (its runs, as
# launch/keep_runs.sh keeps them, the steps against their rooflines, the comparison with PyTorch and summaries) and
# README's tables. Sourced by half_hour.sh, whose variables programs, here and work it uses.
# shellcheck shell=bash disable=SC2154,SC2034

# gpu_of RESULTS: a folder's name for the GPU of its runs: "NVIDIA H100 80GB HBM3 (sm_90), …" is nvidia_h100_80gb_hbm3.
gpu_of() {
  find "$1" -name result.json -exec sed -n 's/.*"device_name": *"\([^"]*\)".*/\1/p' {} + | grep '(sm_' | sort | sed '2,$d' |
    sed 's/ (sm_.*//' | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' _ | sed 's/_*$//'
}

# unpack FOLDER: its archives to $work/parts/GPU/NAME_OF_ARCHIVE; 1 if one is damaged. Says which parts are missing.
unpack() {
  local part archive new gpu why status=0
  for part in first second third; do
    compgen -G "$1/check_$part*.tgz" >/dev/null || echo "$1/check_$part.tgz is not there: nothing of the part $part is reported"
  done
  while read -r archive; do
    new=''
    mkdir -p "$work/new"
    why=$(tar -C "$work/new" -xzf "$archive" 2>&1) &&
      new=$(find "$work/new" -mindepth 2 -maxdepth 2 -path '*/check_*/summary.txt' -size +0 -printf '%h')
    if [ -z "$new" ]; then
      echo "half_hour.sh: $archive is damaged (${why:-it has no summary}), so nothing of it is reported; get it again" >&2
      status=1
    else
      gpu=$(gpu_of "$new") || true
      if [ -n "$gpu" ]; then
        mkdir -p "$work/parts/$gpu"
        mv "$new" "$work/parts/$gpu/$(basename "$archive" .tgz)"
      else
        echo "$archive has no run on a GPU: nothing of it is reported"
      fi
    fi
    rm -rf "$work/new"
  done < <(in_order "$1/check_*.tgz")
  return $status
}

# finished PARTS: the folders of the measured runs that ended well.
finished() {
  find "$1" -path '*/measured/*/result.json' -exec grep -l '"status": *"ok"' {} + | sort | sed 's/.result.json$//'
}

# write_steps PARTS FILE: of all profiles, step, engine, measured, roofline and ratio, most time lost first. One archive at a
# time, as a report shows one profile per configuration.
write_steps() {
  local folder folders
  while read -r folder; do
    compgen -G "$folder/measured/*/*/profile.json" >/dev/null || continue
    mapfile -t folders < <(finished "$folder")
    [ ${#folders[@]} -gt 0 ] || continue
    if "$programs/plumbline" report --format steps --overwrite -o "$work/steps.md" "${folders[@]}" >/dev/null; then
      { printf '## %s\n\n' "${folder##*/check_}" && cat "$work/steps.md" && echo; } >>"$2"
    else
      echo "half_hour.sh: the profiles of ${folder##*/} can't be read, so they are missing in ${2##*/}" >&2
    fi
  done < <(in_order "$1/check_*")
}

# write_comparison PARTS FILE: Plumbline beside PyTorch, from their logs.
write_comparison() {
  local model folder logs
  rm -f "$2"
  for model in "$1"/check_*/logs/*; do
    logs=()
    for folder in "$model"/{plumbline,pytorch_eager,pytorch_compiled}; do
      ! compgen -G "$folder/*/*.log" >/dev/null || logs+=("$folder")
    done
    [ ${#logs[@]} -ge 2 ] || continue
    "$programs/plumbline" compare "${logs[@]}" >>"$2" ||
      echo "half_hour.sh: Plumbline and PyTorch can't be compared, so ${model##*/} is missing in ${2##*/}" >&2
  done
}

# describe PARTS TO: all but the runs, into the folder TO. Where archives have a file of one name, the last one's is kept.
describe() {
  local parts=$1 to=$2 folder file
  write_steps "$parts" "$to/steps.md"
  write_comparison "$parts" "$to/pytorch.txt"
  while read -r folder; do
    cp "$folder/summary.txt" "$to/${folder##*/check_}.txt"
    for file in "$folder"/{ncu.csv,machine.txt,fused_as_plain.json,ceilings.json}; do
      [ ! -s "$file" ] || cp "$file" "$to/"
    done
  done < <(in_order "$parts/check_*")
}

# cache_of PARTS: the folder with the tuning cache of the last archive that has one.
cache_of() {
  local folder cache=$1
  while read -r folder; do
    [ ! -e "$folder/cache/plumbline/tuning.json" ] || cache=$folder/cache
  done < <(in_order "$1/check_*")
  echo "$cache"
}

# keep GPU: its runs and what describes them.
keep() {
  local gpu=$1 folders to=$root/results/measured/$1
  mapfile -t folders < <(finished "$work/parts/$gpu")
  mkdir -p "$work/described/$gpu"
  describe "$work/parts/$gpu" "$work/described/$gpu"
  if [ ${#folders[@]} -gt 0 ]; then
    XDG_CACHE_HOME=$(cache_of "$work/parts/$gpu") "$root/launch/keep_runs.sh" "$gpu" "${folders[@]}" || exit
  fi
  mkdir -p "$to" && cp "$work/described/$gpu"/* "$to/" || give_up 74 "$to can't be written"
  echo "$to: ${#folders[@]} runs, $(cd "$work/described/$gpu" && echo *)"
}

report() {
  local folder=$1 damaged=no gpu
  root=$(cd "$here/../.." && pwd)
  [ -x "$root/launch/keep_runs.sh" ] || give_up 69 "--report keeps runs in the project's sources; start it there, as tests/gpu/half_hour.sh"
  [ -x "$programs/plumbline" ] || give_up 69 "there is no plumbline in $programs; build it, or name its folder with --programs"
  programs=$(cd "$programs" && pwd)
  [ -d "$folder" ] || give_up 65 "'$folder' is not a folder; give the one with check_*.tgz"
  work=$(mktemp -d "${TMPDIR:-/tmp}/half_hour.XXXXXX") || give_up 74 "no folder can be made in ${TMPDIR:-/tmp}; set TMPDIR"
  unpack "$folder" || damaged=yes
  [ -d "$work/parts" ] || give_up 65 "'$folder' holds no usable check_first.tgz, check_second.tgz or check_third.tgz; nothing is reported"
  for gpu in "$work"/parts/*; do keep "${gpu##*/}"; done
  "$root/launch/update_readme.sh" "$programs/plumbline" || exit
  [ $damaged = no ] || exit 65
}
