#!/usr/bin/env bash
# Read by check_deb.sh and container/check_recipe.sh: a package of the programs, and a new, minimal Debian to try it in.
# Both give up by exit code and sentence; `me` is the name in front of that.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
me=$(basename "$0" .sh)
export PATH=$PATH:/usr/sbin:/sbin

give_up() {
  echo "$me: $2" >&2
  exit "$1"
}

require_chroot() {
  [ "$(id -u)" = 0 ] || give_up 69 "only root may chroot; start it by sudo"
  command -v debootstrap >/dev/null || give_up 69 "debootstrap is missing; apt-get install debootstrap"
}

# make_packages SOURCES: builds the .debs in build/deb, without GPUs, for CPUs of x86-64-v3, and sets `debs`, their folder.
make_packages() {
  (
    cd "$1"
    cmake --preset programs -B build/deb -D PLUMB_CUDA=OFF -D PLUMB_MARCH=x86-64-v3 --log-level=WARNING
    cmake --build build/deb
    rm -f build/deb/*.deb
    cd build/deb
    cpack -G DEB
  ) >&2
  # shellcheck disable=SC2034 # its caller's
  debs=$1/build/deb
}

clean_up() {
  umount "$system/proc" "$system/sys" 2>/dev/null || true
  rm -rf --one-file-system "$system"
}

# bootstrap SUITE: sets `system`, which goes when this shell ends.
bootstrap() {
  system=$(mktemp -d)
  trap clean_up EXIT
  debootstrap --variant=minbase "$1" "$system" >"$system.log" 2>&1 || {
    tail -5 "$system.log" >&2
    give_up 69 "debootstrap failed"
  }
  rm -f "$system.log"
  mount -t proc proc "$system/proc"
  mount -t sysfs -o ro sysfs "$system/sys" # where Open MPI finds the cores
}

# inside VARIABLES COMMAND…: in the new system, with no other variables; VARIABLES is the name of an array of NAME=VALUE.
inside() {
  local -n variables=$1
  shift
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${variables[@]}" chroot "$system" "$@"
}

# try WHAT WORD…: what its caller's in_system does with the words.
try() {
  local output what=$1
  shift
  output=$(in_system "$@" 2>&1) || {
    echo "$output" | tail -20
    give_up 1 "FAILED: $what"
  }
  echo "ok: $what"
}
