#!/usr/bin/env bash
# Installs what Plumbline is built from: packages of Debian and its derivatives, by apt, and the headers for GPUs that
# they lack, from PyPI into build/fetched (or $PLUMB_FETCHED). With PLUMB_TEST_PACKAGES set, also what only tests use.
# Takes no arguments, says nothing when nothing is missing. Why each is wanted: docs/reference/dependencies.md.
# Exit codes: 0 all there, or all but what only GPU parts or single tests want; 64 usage; 69 can't install.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit

packages=(
  cmake g++ libboost-dev libcli11-dev libdnnl-dev libgtest-dev libjpeg-dev libjpeg-turbo-progs libjs-chart.js
  libopenmpi-dev libre2-dev libspdlog-dev libtomlplusplus-dev ninja-build nlohmann-json3-dev ocl-icd-opencl-dev
  openmpi-bin zlib1g-dev
)

# With PLUMB_TEST_PACKAGES. Tests are skipped if theirs is missing.
test_packages=(
  chromium clang-16 clang-format-14 dpkg-dev fish groff-base iproute2 munge procps python3
  python3-jsonschema python3-yaml shellcheck slurm-client slurmctld slurmd
)

# With a CUDA toolkit: the library over cuDNN's graph API. Without: CUDA's own headers, for the tests on an emulated GPU.
cudnn_frontend=("nvidia-cudnn-frontend==1.32.0 c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0")
cuda_headers=(
  "nvidia-cuda-runtime==13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
  "nvidia-cuda-crt==13.0.88 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"
  "nvidia-cuda-cccl==13.0.85 e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"
)
nvml_header=("nvidia-nvml-dev==13.5.37 7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d")
# With PLUMB_TEST_PACKAGES: the parser of what `plumbline export` writes.
python_test_packages=(
  "prometheus-client==0.26.0 fa93d06737aa02bacd05794768508bb97d2fbee28cb3bca04eaae92f0ca953d6"
)

has_apt() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

# missing_of PACKAGE…: those that are not installed, in `missing`.
missing_of() {
  local package
  missing=()
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null || true) == ?i* ]] ||
      missing+=("$package")
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

install() {
  echo "install_deps.sh: installing $*" >&2
  apt update || true # lists that are there already may do
  apt install -y --no-install-recommends "$@"
}

install_packages() {
  has_apt || give_up 69 "apt is missing, so install by hand what these Debian packages hold: ${packages[*]}"
  missing_of "${packages[@]}"
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! may_install; then
    give_up 69 "packages are missing and only root may install them. Ask for, or run as root:" \
      "  apt-get install ${missing[*]}" \
      "then start this again."
  fi
  if ! install "${missing[@]}"; then
    tail -n 20 "$report" >&2
    give_up 69 "apt-get could not install ${missing[*]}." \
      "Check the network and the package sources (what apt-get said stands above), then start this again."
  fi
}

install_test_packages() {
  local package
  has_apt || return 0
  missing_of "${test_packages[@]}"
  [ ${#missing[@]} -gt 0 ] || return 0
  # A release that lacks one of them has the others.
  if may_install && ! install "${missing[@]}"; then
    for package in "${missing[@]}"; do install "$package" || true; done
  fi
  missing_of "${missing[@]}"
  [ ${#missing[@]} -eq 0 ] || echo "install_deps.sh: going on without ${missing[*]}: their tests will be skipped" >&2
}

# fetch NAME "DIRECTORY…" PIN…: those directories of pinned wheels into $fetched/NAME. Without pip, tries to install it
# first.
fetch() {
  local no_pip=72 code=0 wheels
  wheels=("$launch/fetch_wheels.sh" "$fetched/$1" "${@:2}")
  "${wheels[@]}" || code=$?
  if [ $code -eq $no_pip ] && has_apt && may_install && install python3-pip; then
    code=0
    "${wheels[@]}" || code=$?
  fi
  return $code
}

# What these headers are for is a part of the build that is left out without them.
fetch_headers() {
  if command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    fetch cudnn_frontend include "${cudnn_frontend[@]}" ||
      echo "install_deps.sh: going on without the cuDNN frontend's headers: there will be no CUDA device" >&2
  else
    fetch cuda include "${cuda_headers[@]}" ||
      echo "install_deps.sh: going on without CUDA's headers: there will be no tests on an emulated GPU" >&2
  fi
  fetch nvml include "${nvml_header[@]}" ||
    echo "install_deps.sh: going on without NVML's header: doctor will not know NVLink and PCIe of GPUs" >&2
}

[ $# -eq 0 ] || give_up 64 "takes no arguments, got '$1'"
launch=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
fetched=${PLUMB_FETCHED:-${launch%/*}/build/fetched}
report=$(mktemp)
trap 'rm -f "$report"' EXIT
fetch_headers
install_packages
if [ -n "${PLUMB_TEST_PACKAGES-}" ]; then
  install_test_packages
  fetch python "prometheus_client" "${python_test_packages[@]}" ||
    echo "install_deps.sh: going on without prometheus-client: a test of exports will be skipped" >&2
fi
