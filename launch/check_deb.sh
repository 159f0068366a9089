#!/usr/bin/env bash
# Makes the .deb and proves it: installs it in a new, minimal Debian, by apt with what it depends on, and runs the
# programs there. Wants root, debootstrap and a network.
#
#   launch/check_deb.sh [--deb FILE.deb] [--suite NAME]
#
#   --deb    a package that is there; default: built in build/deb, without GPUs, for CPUs of x86-64-v3
#   --suite  of Debian; default: that of this machine
# Exit codes: 0 the package is fine, 1 it isn't, 64 usage, 69 root or a tool is missing.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
root=$(cd "$(dirname "$0")/.." && pwd)
export PATH=$PATH:/usr/sbin:/sbin

give_up() {
  echo "check_deb: $2" >&2
  exit "$1"
}

deb=
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
while [ $# -gt 0 ]; do
  case $1 in
    --deb | --suite)
      [ $# -gt 1 ] || give_up 64 "$1 wants a value"
      if [ "$1" = --deb ]; then deb=$2; else suite=$2; fi
      shift
      ;;
    *) give_up 64 "'$1' is not an option; there are --deb and --suite" ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || give_up 69 "only root may chroot; start it by sudo"
command -v debootstrap >/dev/null || give_up 69 "debootstrap is missing; apt-get install debootstrap"

if [ -z "$deb" ]; then
  (
    cd "$root"
    cmake --preset programs -B build/deb -D PLUMB_CUDA=OFF -D PLUMB_MARCH=x86-64-v3 --log-level=WARNING
    cmake --build build/deb
    rm -f build/deb/*.deb
    cd build/deb
    cpack -G DEB
  ) >&2
  deb=$(echo "$root"/build/deb/*.deb)
fi
[ -f "$deb" ] || give_up 64 "there is no package $deb"

system=$(mktemp -d)
clean_up() {
  umount "$system/proc" 2>/dev/null || true
  rm -rf --one-file-system "$system"
}
trap clean_up EXIT
debootstrap --variant=minbase "$suite" "$system" >"$system.log" 2>&1 || {
  tail -5 "$system.log" >&2
  give_up 69 "debootstrap failed"
}
rm -f "$system.log"
mount -t proc proc "$system/proc"
cp "$deb" "$system/tmp/plumbline.deb"

# inside WHAT COMMAND: in the new system, with an environment of its own.
inside() {
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
inside "apt installs it with what it depends on" \
  "apt-get update -q; apt-get install -q -y --no-install-recommends /tmp/plumbline.deb"
inside "every program finds its libraries" "! ldd /usr/bin/bench_* /usr/bin/plumbline | grep 'not found'"
inside "plumbline starts" "plumbline --version; plumbline --help"
inside "a run on one rank" "bench_resnet50 $small"
inside "a run on two ranks" "mpirun --bind-to none -np 2 bench_resnet50 $small"
inside "faces" "bench_arcface --backbone y1 --classes 50 --bs 2 --iters 3 --warmup 1 --log-dir faces"
inside "collectives" "mpirun --bind-to none -np 2 bench_allreduce -b 1K -e 1K -n 2 -w 1 | grep busbw"
inside "analysis" "plumbline analyze logs --iters 4 --warmup 1 | grep 1n2g"
inside "a sweep" "sed -e 's/^repetitions.*/repetitions = 1/' -e 's/^iterations.*/iterations = 3/' \
  /usr/share/plumbline/launch/sweeps/cpu.toml >cpu.toml; plumbline sweep cpu.toml | grep 1n2g"
inside "manual pages and completions" "for name in plumbline bench_resnet50 bench_arcface bench_allreduce; do
  test -s /usr/share/man/man1/\$name.1; . /usr/share/bash-completion/completions/\$name; complete -p \$name; done"
inside "apt removes it" "apt-get remove -q -y plumbline; ! test -e /usr/bin/plumbline"
echo "$deb is fine"
