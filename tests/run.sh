#!/usr/bin/env bash
# Installs what is missing, builds preset release, which holds all tests, and runs them. Lists the tests that were skipped,
# and why; ctest has the last word.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
cd "$(dirname "$0")/.."

PLUMB_TEST_PACKAGES=1 launch/install_deps.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release
report=$PWD/build/release/tests.xml
code=0
# Two tests more than cores: many sleep, or wait for ranks and processes that do.
ctest --preset release -j $(($(nproc) + 2)) --output-junit "$report" | python3 tests/list_skipped.py "$report" || code=$?
exit $code
