#!/bin/sh
# scripts.sh ROOT [list]: fails if a shell script pipes into a reader that stops before the end of its input, or if a
# script does not say where it failed: bash has a trap for that, other shells with set -e have none. Behind a pipe, such
# a reader kills the writer or not, depending on who is faster; under pipefail the script then fails by chance. Let the
# reader read a file, a variable (<<<), or everything. With "list" it only prints the names of all shell scripts.
set -u
root=$1

# Every bash script has one of these below its comment on top.
# shellcheck disable=SC2016 # the script's own variables
on_failure='trap '\''echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2'\'' ERR'
prelude='^\. "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/prelude\.sh" \|\| exit$|^\. "\$\{BASH_SOURCE\[0\]%/\*\}/(\.\./)*prelude\.sh"$'

# scripts DIRECTORY: every shell script below it, build folders left out.
scripts() {
  find "$1" \( -name build -o -name .git -o -name fetched \) -prune -o -type f -print | sort | while read -r file; do
    case ${file##*/} in
      *.sh | *.sbatch) echo "$file" ;;
      *.*) ;;
      *) ! LC_ALL=C sed -n '1s/^#!.*sh$/shell/p;q' "$file" | grep -x shell >/dev/null || echo "$file" ;;
    esac
  done
}

# early_readers FILE…: "FILE:LINE: reader" for each of grep -q, -l and -m, head, read, cmp, sed with q, awk with exit
# outside of END, behind a pipe. A command may go on in the next line after a pipe, a backslash or within quotes of awk.
early_readers() {
  awk '
    function report(reader) { print FILENAME ":" first ": " reader }
    function check(command,    rest) {
      gsub(/\|\|/, ";", command)
      gsub(/END *\{[^}]*\}/, "", command)
      while (match(command, /\|&?[ \t]*[{(]?[ \t]*([A-Za-z_]+=[^ ]* +)*(command +)?(grep|egrep|fgrep|head|read|cmp|sed|awk) /)) {
        rest = substr(command, RSTART + 1)
        command = rest
        sub(/^&?[ \t]*[{(]?[ \t]*([A-Za-z_]+=[^ ]* +)*(command +)?/, "", rest)
        if (rest ~ /^(head|read|cmp) /) report(substr(rest, 1, index(rest, " ") - 1))
        if (rest ~ /^[ef]?grep ([^|]* )?(-[A-Za-z]*[qlLm]|--(quiet|silent|max-count|files-with))/) report("grep")
        if (rest ~ /^sed [^|]*[0-9\/$;{"\047 ][qQ][0-9 ]*([;}"\047]|$)/) report("sed")
        if (rest ~ /^awk / && rest ~ /[^A-Za-z_]exit[^A-Za-z_]/) report("awk")
      }
    }
    FNR == 1 { whole = "" }
    /^[ \t]*#/ { next }
    {
      if (whole == "") first = FNR
      whole = whole $0 " "
      awk_text = whole
      if (sub(/.*\|[ \t]*awk /, "", awk_text) && gsub(/\047/, "&", awk_text) % 2 == 1) next
      if ($0 ~ /(\||\\)[ \t]*$/) { sub(/\\ $/, "", whole); next }
      check(whole)
      whole = ""
    }' "$@"
}

# silent_failures FILE…: bash scripts that don't say where they failed, scripts of other shells with set -e, which can't
# say it, and scripts that nobody may execute; files without a first line of their own are read by others.
silent_failures() {
  for file in "$@"; do
    case $file:$(sed -n 1p "$file") in
      *.sbatch:*) ;;
      *:'#!'*) [ -x "$file" ] || echo "$file: not executable" ;;
    esac
    case $(sed -n 1p "$file") in
      '#!'*bash)
        grep -qE -e "$prelude" "$file" ||
          { grep -qxF -e "$on_failure" "$file" && grep -qE '^set -E[a-z]* ' "$file"; } || echo "$file: no trap on ERR"
        ;;
      '#!'*sh | '#!'*sh' '*)
        ! grep -qE '^(#!.*sh|([^#]*[;&])?[[:space:]]*set( -[A-Za-z]+)*) -([A-Za-z]*e|o errexit)' "$file" ||
          echo "$file: set -e without bash"
        ;;
    esac
  done
}

# findings DIRECTORY: both, then "scripts N".
findings() (
  cd "$1" || exit 1
  IFS='
'
  # shellcheck disable=SC2046 # one name a line
  set -- $(scripts .)
  early_readers "$@"
  silent_failures "$@"
  echo "scripts $#"
)

if [ "${2:-}" = list ]; then
  scripts "$root"
  exit
fi
found=$(findings "$root")
case $found in
  "scripts "*)
    if [ "${found#scripts }" -lt 20 ]; then
      echo "only ${found#scripts } scripts below $root: is this the project's root?"
      exit 1
    fi
    echo "$found, none of which stops reading early"
    ;;
  *)
    printf 'readers that stop early behind a pipe, and scripts that fail in silence:\n%s\n' "$found"
    exit 1
    ;;
esac
