#!/bin/sh
# ROOT: no shell script has a warning of the tool. 77 without it.
set -u
command -v shellcheck >/dev/null || {
  echo 'skipped: shellcheck is missing (Debian: shellcheck)'
  exit 77
}
"${0%/*}/scripts.sh" "$1" list | xargs -d '\n' shellcheck --severity=warning --external-sources --source-path=SCRIPTDIR
