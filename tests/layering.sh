#!/bin/sh
# layering.sh ROOT: fails if a source includes what its folder may not (docs/architecture.md, "Folders"), or if folders
# include each other in a circle.
# Includes of ours are written from the root: #include "folder/file.h".
set -u
root=$1

# allowed FOLDER: extended regular expression of the headers that FOLDER's sources may include.
allowed() {
  case $1 in
    base) echo '^base/' ;;
    models) echo '^(base|models)/' ;;
    kernels) echo '^(base|kernels|models)/' ;;
    comm) echo '^(base/|comm/|models/buckets\.h$|kernels/(device|program/program)\.h$)' ;;
    results) echo '^(base|results|models)/' ;;
    launch) echo '^(base/|launch/|results/|models/catalogue\.h$)' ;;
    plumbline) echo '^(base|launch|plumbline|results)/' ;;
    bench) echo '^(base|bench|models|kernels|comm|results)/' ;;
  esac
}

# sources DIRECTORY FOLDER
sources() {
  find "$1/$2" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' \) | sort
}

# includes FILE: headers of ours, one per line.
includes() {
  sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1"
}

# circles DIRECTORY: folders, at any depth, that include each other in a circle, as tsort reports them; nothing
# where there is none. A folder and its subfolders are different folders here.
circles() {
  for folder in base models kernels comm results launch plumbline bench; do
    [ -d "$1/$folder" ] || continue
    for source in $(sources "$1" $folder); do
      from=${source#"$1"/}
      for header in $(includes "$source"); do
        [ "${from%/*}" = "${header%/*}" ] || echo "${from%/*} ${header%/*}"
      done
    done
  done | sort -u | { tsort >/dev/null; } 2>&1
}

# violations DIRECTORY: "file: header" per forbidden include below DIRECTORY; "sources N" at the end.
violations() {
  count=0
  for folder in base models kernels comm results launch plumbline bench; do
    [ -d "$1/$folder" ] || continue
    rule=$(allowed $folder)
    for source in $(sources "$1" $folder); do
      count=$((count + 1))
      includes "$source" | grep -Ev "$rule" | sed "s|^|${source#"$1"/}: |"
    done
  done
  echo "sources $count"
}

# The check itself: a tree with one forbidden include per folder, and one that is allowed.
check_the_check() {
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  mkdir "$tree/models" "$tree/kernels" "$tree/comm" "$tree/results" "$tree/launch" "$tree/plumbline" \
    "$tree/bench"
  echo '#include "kernels/program/program.h"' >"$tree/models/a.h"
  echo '  #  include "comm/job.h"' >"$tree/kernels/a.cpp"
  echo '#include "kernels/program/targets.h"' >"$tree/comm/a.h"
  echo '#include "kernels/program/program.h"' >"$tree/results/a.h"
  echo '#include "bench/options/options.h"' >"$tree/launch/a.h"
  echo '#include "kernels/program/targets.h"' >"$tree/plumbline/a.h"
  echo '#include "launch/host_names.h"' >"$tree/bench/a.h"
  printf '#include "models/graph.h"\n#include <vector>\n' >"$tree/kernels/b.h"
  printf '#include "kernels/program/program.h"\n#include "comm/job.h"\n' >"$tree/comm/b.h"
  found=$(violations "$tree")
  expected='models/a.h: kernels/program/program.h
kernels/a.cpp: comm/job.h
comm/a.h: kernels/program/targets.h
results/a.h: kernels/program/program.h
launch/a.h: bench/options/options.h
plumbline/a.h: kernels/program/targets.h
bench/a.h: launch/host_names.h
sources 9'
  if [ "$found" != "$expected" ]; then
    printf 'the check finds\n%s\nwhere it should find\n%s\n' "$found" "$expected"
    exit 1
  fi
  mkdir -p "$tree/two/bench/run" "$tree/two/bench/plan"
  echo '#include "bench/run/a.h"' >"$tree/two/bench/plan/a.h"
  echo '#include "bench/options.h"' >"$tree/two/bench/run/a.h"
  [ -z "$(circles "$tree/two")" ] || { echo 'the check finds a circle where there is none' && exit 1; }
  echo '#include "bench/plan/a.h"' >"$tree/two/bench/options.h"
  found=$(circles "$tree/two" | sed -n 's|^tsort: \(bench.*\)|\1|p' | sort | tr '\n' ' ')
  if [ "$found" != 'bench bench/plan bench/run ' ]; then
    echo "of the circle bench, bench/plan, bench/run the check finds '$found'"
    exit 1
  fi
}

check_the_check
found=$(circles "$root")
if [ -n "$found" ]; then
  printf 'folders that include each other in a circle:\n%s\n' "$found"
  exit 1
fi
found=$(violations "$root")
case $found in
  "sources "*)
    if [ "${found#sources }" -lt 20 ]; then
      echo "only ${found#sources } sources below $root: is this the project's root?"
      exit 1
    fi
    echo "$found, all within their layers, and no folders in a circle"
    ;;
  *)
    printf 'includes that docs/architecture.md does not allow:\n%s\n' "$found"
    exit 1
    ;;
esac
