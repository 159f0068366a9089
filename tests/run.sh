#!/usr/bin/env bash
# Installs what is missing, builds preset release, which holds all tests, and runs them; ctest has the last word.
set -euo pipefail
cd "$(dirname "$0")/.."

launch/install_deps.sh --tests
cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release
exec ctest --preset release -j 2
