#!/bin/sh
# format.sh ROOT: every source is formatted as .clang-format says; version 14, as others format otherwise. 77 without it.
set -u
command -v clang-format-14 >/dev/null || {
  echo 'skipped: clang-format-14 is missing (Debian: clang-format-14)'
  exit 77
}
find "$1" \( -name build -o -name .git \) -prune -o -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.inc' \) -print0 |
  xargs -0 clang-format-14 --dry-run --Werror
