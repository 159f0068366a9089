#!/usr/bin/env bash
# Installs what is missing, builds preset release, which holds all tests, and runs them; ctest has the last word.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
cd "$(dirname "$0")/.."

PLUMB_TEST_PACKAGES=1 launch/install_deps.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release
# One test more than cores: those that want two at once leave one idle at times.
exec ctest --preset release -j $(($(nproc) + 1))
