#!/usr/bin/env bash
# Installs what is missing, builds preset release, which holds all tests, and runs them; ctest has the last word.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
cd "$(dirname "$0")/.."

PLUMB_TEST_PACKAGES=1 launch/install_deps.sh
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release
# Two tests more than cores: many sleep, or wait for ranks and processes that do.
exec ctest --preset release -j $(($(nproc) + 2))
