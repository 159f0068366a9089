#!/usr/bin/env bash
# Makes the two .debs and proves them: installs them in a new, minimal Debian, by apt with what they depend on, first
# plumbline alone, and runs the programs there. Wants root, debootstrap and a network.
#
#   tests/launch/check_deb.sh [--debs FOLDER] [--suite NAME]
#
#   --debs   folder of packages that are there; default: built in build/deb, without GPUs, for CPUs of x86-64-v3
#   --suite  of Debian; default: that of this machine
# Exit codes: 0 the package is fine, 1 it isn't, 64 usage, 69 root or a tool is missing.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=$PATH:/usr/sbin:/sbin

give_up() {
  echo "check_deb: $2" >&2
  exit "$1"
}

debs=
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
while [ $# -gt 0 ]; do
  case $1 in
    --debs | --suite)
      [ $# -gt 1 ] || give_up 64 "$1 needs a value"
      if [ "$1" = --debs ]; then debs=$2; else suite=$2; fi
      shift
      ;;
    *) give_up 64 "'$1' is not an option; use --debs and --suite" ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || give_up 69 "chroot needs root; start it with sudo"
command -v debootstrap >/dev/null || give_up 69 "debootstrap is missing; apt-get install debootstrap"

make_packages() {
  cd "$root"
  cmake --preset programs -B build/deb -D PLUMB_CUDA=OFF -D PLUMB_MARCH=x86-64-v3 --log-level=WARNING
  cmake --build build/deb
  rm -f build/deb/*.deb
  (cd build/deb && cpack -G DEB)
}
[ -n "$debs" ] || { make_packages >&2 && debs=$root/build/deb; }
[ -f "$(echo "$debs"/plumbline-bench_*.deb)" ] || give_up 64 "$debs has no packages; build them"

system=$(mktemp -d)
clean_up() {
  umount "$system/proc" "$system/sys" 2>/dev/null || true
  rm -rf --one-file-system "$system" "$system.log"
}
trap clean_up EXIT
debootstrap --variant=minbase "$suite" "$system" >"$system.log" 2>&1 ||
  give_up 69 "debootstrap failed: $(tail -5 "$system.log")"
mount -t proc proc "$system/proc"
mount -t sysfs -o ro sysfs "$system/sys" # where Open MPI finds the cores
cp "$debs"/*.deb "$system/tmp"

# try WHAT COMMANDS: in the new system, with no other variables.
try() {
  local output
  output=$(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    chroot "$system" /bin/bash -euc "cd /tmp; $2" 2>&1) || {
    echo "$output" | tail -20
    give_up 1 "FAILED: $1"
  }
  echo "ok: $1"
}

small="--image-size 32 --bs 2 --iters 4 --warmup 1 --threads 1"
try "apt installs plumbline alone, without MPI" \
  "apt-get update -q; apt-get install -q -y --no-install-recommends /tmp/plumbline_*.deb; plumbline published; ! command -v mpirun"
try "apt installs plumbline-bench with what it depends on" "apt-get install -q -y --no-install-recommends /tmp/plumbline-bench_*.deb"
try "every program finds its libraries" "! ldd /usr/bin/bench_* /usr/bin/plumbline | grep 'not found'"
try "plumbline starts" "plumbline --version; plumbline --help"
try "a run on one rank" "bench_resnet50 $small"
try "a run on two ranks" "mpirun --bind-to none -np 2 bench_resnet50 $small"
try "faces" "bench_arcface --backbone y1 --classes 50 --bs 2 --iters 3 --warmup 1 --log-dir faces"
try "collectives" "mpirun --bind-to none -np 2 bench_allreduce -b 1K -e 1K -n 2 -w 1 | grep busbw"
try "analysis" "plumbline analyze logs --iters 4 --warmup 1 | grep 1n2g"
try "a sweep" "sed -e 's/^repetitions.*/repetitions = 1/' -e 's/^iterations.*/iterations = 3/' \
  /usr/share/plumbline/launch/sweeps/cpu.toml >cpu.toml; plumbline sweep cpu.toml | grep 1n2g"
try "manual pages and completions" "for name in plumbline bench_resnet50 bench_arcface bench_allreduce; do
  test -s /usr/share/man/man1/\$name.1; . /usr/share/bash-completion/completions/\$name; complete -p \$name; done"
try "apt removes it" "apt-get remove -q -y plumbline plumbline-bench; ! test -e /usr/bin/plumbline"
echo "the packages in $debs are fine"
