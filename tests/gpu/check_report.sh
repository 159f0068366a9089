# gpu_check.sh --report: what came back from a machine with a GPU becomes results/measured/GPU (its runs, as
# launch/keep_runs.sh keeps them, the steps against their rooflines, every comparison and peer, summaries) and README's
# tables. Sourced by gpu_check.sh, whose variables programs, here and work it uses.
# shellcheck shell=bash disable=SC2154,SC2034

# gpu_of RESULTS: a folder's name for the GPU of its runs: "NVIDIA H100 80GB HBM3 (sm_90), …" is nvidia_h100_80gb_hbm3.
gpu_of() {
  find "$1" -name result.json -exec sed -n 's/.*"device_name": *"\([^"]*\)".*/\1/p' {} + | grep '(sm_' | sort | sed '2,$d' |
    sed 's/ (sm_.*//' | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' _ | sed 's/_*$//'
}

# unpack FOLDER: its archives to $work/calls/GPU/NAME_OF_ARCHIVE; 1 if one is damaged.
unpack() {
  local archive new gpu why status=0
  while read -r archive; do
    new=$work/new
    mkdir -p "$new"
    if ! why=$(tar -C "$new" -xzf "$archive" --strip-components=1 2>&1) || [ ! -s "$new/summary.txt" ]; then
      echo "gpu_check.sh: $archive is damaged (${why:-it has no summary}), so nothing of it is reported; get it again" >&2
      status=1
    elif gpu=$(gpu_of "$new") && [ -n "$gpu" ]; then
      mkdir -p "$work/calls/$gpu"
      mv "$new" "$work/calls/$gpu/$(basename "$archive" .tgz)"
    else
      echo "$archive has no run on a GPU: nothing of it is reported"
    fi
    rm -rf "$new"
  done < <(archives "$1")
  return $status
}

# calls_of CALLS: their folders, in the order of the archives.
calls_of() { compgen -G "$1/gpu_check*" | sort -V || true; }

# finished CALLS: the folders of the measured runs that ended well.
finished() {
  find "$1" -path '*/measured/*/result.json' -exec grep -l '"status": *"ok"' {} + | sort | sed 's/.result.json$//'
}

# write_ops CALLS FILE: of all profiles, op, engine, measured, roofline and ratio, most time lost first.
write_ops() {
  local folder
  command -v python3 >/dev/null || return 0
  while read -r folder; do
    python3 - "$folder" >>"$2" <<'END' ||
import glob, json, os, sys
call = os.path.basename(sys.argv[1]).removeprefix("gpu_")
for path in sorted(glob.glob(sys.argv[1] + "/measured/*/*/profile.json")):
    ops = [op for op in json.load(open(path))["ops"] if op["lane"] == "compute"]
    print(f"## {call}: {os.path.basename(os.path.dirname(path))}\n")
    print("| op | engine | measured ms | roofline ms | ratio | lost ms | bound by |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    for op in sorted(ops, key=lambda op: op["roofline_seconds"] - op["seconds"]):
        measured, least = 1e3 * op["seconds"], 1e3 * op["roofline_seconds"]
        ratio = f"{measured / least:.2f}" if least else "-"
        print(f"| {op['name']} | {op.get('engine') or '-'} | {measured:.4f} | {least:.4f} | {ratio} "
              f"| {measured - least:.4f} | {op['bound_by']} |")
    print()
END
      echo "gpu_check.sh: the profiles of ${folder##*/} can't be read, so they are missing in ${2##*/}" >&2
  done < <(calls_of "$1")
}

# write_comparison CALLS FILE: Plumbline beside its peers, from their logs.
write_comparison() {
  local model folder logs
  for model in "$1"/gpu_check*/logs/*; do
    logs=()
    for folder in "$model"/{plumbline,pytorch_eager,pytorch_compiled,pytorch_reduce-overhead}; do
      ! compgen -G "$folder/*/*.log" >/dev/null || logs+=("$folder")
    done
    [ ${#logs[@]} -ge 2 ] || continue
    "$programs/plumbline" compare "${logs[@]}" >>"$2" ||
      echo "gpu_check.sh: Plumbline and its peers can't be compared, so ${model##*/} is missing in ${2##*/}" >&2
  done
}

# shorten FILE: of what ncu wrote, launches and their counters; 260 of its columns describe the GPU, alike in every row.
shorten() {
  command -v python3 >/dev/null || return 0
  python3 - "$1" <<'END'
import csv, sys
rows = list(csv.reader(line for line in open(sys.argv[1]) if not line.startswith("==")))
wanted = ("ID", "Kernel Name", "Block Size", "Grid Size", "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
          "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__registers_per_thread")
columns = [rows[0].index(name) for name in wanted if name in rows[0]] if rows else []
with open(sys.argv[1], "w") as file:
    csv.writer(file, lineterminator="\n").writerows([row[i] for i in columns] for row in rows)
END
}

# describe CALLS TO: all but the measured runs, into the folder TO: results of comparisons and of the runs they compare in
# checks/, those of peers in peers/. Where archives have a file of one name, the last one's is kept.
describe() {
  local calls=$1 to=$2 folder file kind
  mkdir -p "$to"/{checks,peers}
  write_ops "$calls" "$to/ops.md"
  write_comparison "$calls" "$to/pytorch.txt"
  while read -r folder; do
    cp "$folder/summary.txt" "$to/${folder##*/gpu_}.txt"
    for file in "$folder"/{ncu.csv,machine.txt,ceilings.json,*.txt,*.json}; do
      kind=checks/
      case ${file##*/} in
        summary.txt | passed.txt | left_out.txt | environment.txt) continue ;;
        ncu.csv | machine.txt | ceilings.json) kind='' ;;
      esac
      if [ ! -s "$file" ] || [ -d "$folder/measured/$(basename "$file" .json)" ]; then continue; fi
      ! grep -q '"framework": *"PyTorch' "$file" || kind=peers/
      cp "$file" "$to/$kind"
      [ "${file##*/}" != ncu.csv ] || shorten "$to/ncu.csv"
    done
  done < <(calls_of "$calls")
  rmdir --ignore-fail-on-non-empty "$to"/{checks,peers}
}

# keep GPU: its runs and what describes them.
keep() {
  local gpu=$1 folders to=$root/results/measured/$1
  mapfile -t folders < <(finished "$work/calls/$gpu")
  describe "$work/calls/$gpu" "$work/described/$gpu"
  if [ ${#folders[@]} -gt 0 ]; then
    "$root/launch/keep_runs.sh" "$gpu" "${folders[@]}" || exit
  fi
  mkdir -p "$to" && cp -r "$work/described/$gpu"/* "$to/" || give_up 74 "$to can't be written"
  echo "$to: ${#folders[@]} runs, $(cd "$work/described/$gpu" && echo *)"
}

report() {
  local folder=$1 damaged=no gpu
  root=$(cd "$here/../.." && pwd)
  [ -x "$root/launch/keep_runs.sh" ] || give_up 69 "--report keeps runs in the project's sources; start it there, as tests/gpu/gpu_check.sh"
  [ -x "$programs/plumbline" ] || give_up 69 "there is no plumbline in $programs; build it, or name its folder with --programs"
  programs=$(cd "$programs" && pwd)
  [ -d "$folder" ] || give_up 65 "'$folder' is not a folder; give the one with gpu_check*.tgz"
  work=$(mktemp -d "${TMPDIR:-/tmp}/gpu_check.XXXXXX") || give_up 74 "no folder can be made in ${TMPDIR:-/tmp}; set TMPDIR"
  unpack "$folder" || damaged=yes
  [ -d "$work/calls" ] || give_up 65 "'$folder' holds no usable gpu_check*.tgz; nothing is reported"
  for gpu in "$work"/calls/*; do keep "${gpu##*/}"; done
  echo "now: docs/make_outputs.py writes results/measured/README.md"
  [ $damaged = no ] || exit 65
}
