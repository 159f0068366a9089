#!/usr/bin/env bash
# Installs the packages that Plumbline is built from, on Debian and its kin. Takes no arguments, says nothing when
# nothing is missing. Why each is wanted: docs/dependencies.md. Exit codes: 0 all there, 64 usage, 69 can't install.
set -euo pipefail

packages=(
  cmake
  g++
  libcli11-dev
  libdnnl-dev
  libgtest-dev
  libjpeg-dev
  libjpeg-turbo-progs
  libopenmpi-dev
  libspdlog-dev
  ninja-build
  nlohmann-json3-dev
  ocl-icd-opencl-dev
  openmpi-bin
)

give_up() {
  printf 'install_deps.sh: %s\n' "$@" >&2
  exit 69
}

if [ $# -ne 0 ]; then
  echo "install_deps.sh: takes no arguments, got '$1'" >&2
  exit 64
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  give_up "apt is not on this machine, so nothing was installed." \
    "Install by hand what these Debian packages hold: ${packages[*]}." \
    "Then go on with: cmake --preset release && cmake --build --preset release && ctest --preset release"
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  case $state in
    ?i*) ;;
    *) missing+=("$package") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    give_up "packages are missing and only root may install them. Ask for, or run as root:" \
      "  apt-get install ${missing[*]}" \
      "then start this again."
  fi
  as_root=(sudo)
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT
echo "install_deps.sh: installing ${missing[*]}" >&2
apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$report" 2>&1; }
apt update || true # lists that are there already may do
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$report" >&2
  give_up "apt-get could not install ${missing[*]}." \
    "Check the network and the package sources (what apt said stands above), then start this again."
fi
