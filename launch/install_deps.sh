#!/usr/bin/env bash
# Installs what Plumbline is built from: packages on Debian and its kin, and the headers for GPUs that Debian lacks, from
# PyPI into build/fetched (or $PLUMB_FETCHED). With PLUMB_TEST_PACKAGES set also what only tests start. Takes no
# arguments, says nothing when nothing is missing. Why each is wanted: docs/dependencies.md. Exit codes: 0 all there, or
# all but what only GPU parts or single tests want; 64 usage; 69 can't install.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR

packages=(
  cmake
  g++
  libboost-dev
  libcli11-dev
  libdnnl-dev
  libgtest-dev
  libjpeg-dev
  libjpeg-turbo-progs
  libjs-chart.js
  libopenmpi-dev
  libspdlog-dev
  libtomlplusplus-dev
  ninja-build
  nlohmann-json3-dev
  ocl-icd-opencl-dev
  openmpi-bin
)

# With PLUMB_TEST_PACKAGES: a browser that opens reports, what draws single plots, what makes hosts out of network
# namespaces. Without them their tests are skipped.
test_packages=(
  chromium
  gnuplot-nox
  iproute2
  python3
)

# With a CUDA toolkit: the library over cuDNN's graph API. Without: CUDA's own headers, for the tests on an emulated GPU.
cudnn_frontend=("nvidia-cudnn-frontend==1.32.0 c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0")
cuda_headers=(
  "nvidia-cuda-runtime==13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
  "nvidia-cuda-crt==13.0.88 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"
  "nvidia-cuda-cccl==13.0.85 e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"
)

give_up() {
  printf 'install_deps.sh: %s\n' "$@" >&2
  exit 69
}

# missing_of PACKAGE…: those that are not installed, in `missing`.
missing_of() {
  local package state
  missing=()
  for package in "$@"; do
    state=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    case $state in
      ?i*) ;;
      *) missing+=("$package") ;;
    esac
  done
}

# Whether this user may install; leaves how in `as_root`.
may_install() {
  as_root=()
  [ "$(id -u)" -ne 0 ] || return 0
  as_root=(sudo)
  command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }
}

apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$report" 2>&1; }

apt_install() {
  echo "install_deps.sh: installing $*" >&2
  apt update || true # lists that are there already may do
  apt install -y --no-install-recommends "$@"
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    give_up "apt is not on this machine, so nothing was installed." \
      "Install by hand what these Debian packages hold: ${packages[*]}." \
      "Then go on with: cmake --preset release && cmake --build --preset release && ctest --preset release"
  fi
  missing_of "${packages[@]}"
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! may_install; then
    give_up "packages are missing and only root may install them. Ask for, or run as root:" \
      "  apt-get install ${missing[*]}" \
      "then start this again."
  fi
  if ! apt_install "${missing[@]}"; then
    tail -n 20 "$report" >&2
    give_up "apt-get could not install ${missing[*]}." \
      "Check the network and the package sources (what apt said stands above), then start this again."
  fi
}

install_test_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  missing_of "${test_packages[@]}"
  [ ${#missing[@]} -gt 0 ] || return 0
  may_install && apt_install "${missing[@]}" ||
    echo "install_deps.sh: going on without ${missing[*]}: tests of reports will be skipped" >&2
}

# fetch NAME PIN…: headers of pinned wheels into $fetched/NAME/include. Without pip, tries to install it first.
fetch() {
  local no_pip=72 code=0 wheels
  wheels=("$launch/fetch_wheels.sh" "$fetched/$1" include "${@:2}")
  "${wheels[@]}" || code=$?
  if [ $code -eq $no_pip ] && command -v apt-get >/dev/null && may_install && apt_install python3-pip; then
    code=0
    "${wheels[@]}" || code=$?
  fi
  return $code
}

# What these headers are for is a part of the build that is left out without them.
fetch_headers() {
  local launch fetched
  launch=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
  fetched=${PLUMB_FETCHED:-${launch%/*}/build/fetched}
  if command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    fetch cudnn_frontend "${cudnn_frontend[@]}" ||
      echo "install_deps.sh: going on without the cuDNN frontend's headers: there will be no CUDA device" >&2
  else
    fetch cuda "${cuda_headers[@]}" ||
      echo "install_deps.sh: going on without CUDA's headers: there will be no tests on an emulated GPU" >&2
  fi
}

if [ $# -ne 0 ]; then
  echo "install_deps.sh: takes no arguments, got '$1'" >&2
  exit 64
fi
report=$(mktemp)
trap 'rm -f "$report"' EXIT
fetch_headers
install_packages
[ -z "${PLUMB_TEST_PACKAGES-}" ] || install_test_packages
