#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are scripts
# scripts_test.sh BEHAVIOUR SOURCE_DIR: one behavior of the scripts; 77 where its tool isn't there.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
behavior=$1
sources=$2

tools=$scratch/tools # what install_deps.sh finds in PATH
mkdir "$tools"
for tool in bash dirname env mkdir mktemp mv rm tail; do ln -s "$(command -v "$tool")" "$tools/$tool"; done

# fake NAME: a tool whose text comes from standard input.
fake() {
  { echo '#!/bin/bash'; cat; } >"$tools/$1"
  chmod +x "$tools/$1"
}

fake_user() { echo "echo $1" | fake id; }
fake_apt() { printf 'echo "$*" >>%q\nexit %s\n' "$scratch/apt_calls" "${1:-0}" | fake apt-get; }
# Every package is installed but those given.
fake_packages() {
  printf 'for missing in %s; do [ "$3" != "$missing" ] || { echo no such package >&2; exit 1; }; done\n' "$*" |
    fake dpkg-query
  echo 'echo "ii "' >>"$tools/dpkg-query"
}

# fake_pip PIP DOWNLOAD: a python3 whose pip answers with exit code PIP, its download with DOWNLOAD; unpacking works.
fake_pip() {
  printf 'echo "$*" >>%q\n' "$scratch/pip_calls" | fake python3
  printf 'case $* in *--version) exit %s ;; *download*) exit %s ;; *) mkdir -p "$2/unpacked" ;; esac\n' "$1" "$2" \
    >>"$tools/python3"
}
expect_pip() { grep -qF -- "$1" "$scratch/pip_calls" || fail "pip was not called with '$1'"; }

install_deps() {
  try env PATH="$tools" CUDA_HOME="$scratch/cuda" PLUMB_FETCHED="$scratch/fetched" \
    bash "$sources/launch/install_deps.sh" "$@" </dev/null
}
expect_apt() { grep -qF -- "$1" "$scratch/apt_calls" || fail "apt-get was not called with '$1'"; }

mapfile -t scripts < <(find "$sources" \( -path "$sources/build" -o -name .git \) -prune -o -name '*.sh' -print)
scripts+=("$sources/launch/bundle" "$sources/launch/run" "$sources/.ci/run")

case $behavior in
  scripts_parse)
    for script in "${scripts[@]}"; do
      bash -n "$script" || fail "$script"
      read -r first <"$script"
      [[ -x $script || $first != '#!'* ]] || fail "$script is not executable"
    done
    ;;
  nothing_missing_says_nothing)
    fake_packages none
    fake_user 1000
    fake_apt 1
    fake_pip 0 0
    install_deps # fetches headers
    install_deps
    expect_code 0
    [ -z "$output" ] || fail "it said: $output"
    [ ! -e "$scratch/apt_calls" ] || fail "it called apt-get"
    ;;
  missing_packages_are_installed_by_root)
    fake_packages libdnnl-dev cmake
    fake_user 0
    fake_apt
    install_deps
    expect_code 0
    expect_word "installing cmake libdnnl-dev"
    expect_apt "install -y --no-install-recommends cmake libdnnl-dev"
    ;;
  missing_packages_are_installed_by_sudo)
    fake_packages cmake
    fake_user 1000
    fake_apt
    printf '[ "$1" = -n ] && exit 0\necho sudo "$@" >>%q\nexec "$@"\n' "$scratch/apt_calls" | fake sudo
    ln -s "$(command -v true)" "$tools/true"
    install_deps
    expect_code 0
    expect_apt "sudo env"
    expect_apt "install -y --no-install-recommends cmake"
    ;;
  without_apt_says_how_to_go_on)
    install_deps
    expect_code 69
    expect_word "neither apt nor dnf is on this machine"
    expect_word "libopenmpi-dev"
    expect_word "cmake --preset release"
    ;;
  missing_packages_are_installed_by_dnf)
    fake_pip 0 0
    fake_user 0
    # Everything is installed but oneDNN and Open MPI.
    printf 'for missing in onednn-devel openmpi-devel; do [ "${*: -1}" != "$missing" ] || exit 1; done\n' | fake rpm
    printf 'echo "$*" >>%q\n' "$scratch/dnf_calls" | fake dnf
    install_deps
    expect_code 0
    expect_word "installing onednn-devel openmpi-devel"
    expect_word "module load mpi/openmpi-x86_64"
    expect_word "PLUMB_CHART_JS"
    [ "$(cat "$scratch/dnf_calls")" = "install -y --setopt=install_weak_deps=False onednn-devel openmpi-devel" ] ||
      fail "dnf was called with: $(cat "$scratch/dnf_calls")"
    ;;
  a_failing_dnf_is_reported)
    fake_pip 0 0
    fake_user 0
    echo 'exit 1' | fake rpm
    echo 'echo "No match for argument: onednn-devel" >&2; exit 1' | fake dnf
    install_deps
    expect_code 69
    expect_word "No match for argument: onednn-devel"
    expect_word "dnf could not install boost-devel"
    ;;
  without_root_names_the_command)
    fake_packages ninja-build
    fake_user 1000
    fake_apt
    install_deps
    expect_code 69
    expect_word "apt-get install ninja-build"
    [ ! -e "$scratch/apt_calls" ] || fail "it called apt-get"
    ;;
  a_failing_apt_is_reported)
    fake_packages cmake
    fake_user 0
    echo 'echo "no route to host" >&2; exit 100' | fake apt-get
    install_deps
    expect_code 69
    expect_word "no route to host"
    expect_word "could not install cmake"
    ;;
  cuda_headers_are_fetched_where_no_toolkit_is)
    fake_packages none
    fake_apt 1
    fake_pip 0 0
    install_deps
    expect_code 0
    expect_word "nvidia-cuda-runtime"
    expect_pip "--require-hashes"
    [ -e "$scratch/fetched/cuda/fetched.txt" ] || fail "no record of what was fetched"
    [ ! -e "$scratch/fetched/cudnn_frontend" ] || fail "fetched the cuDNN frontend without a toolkit"
    ;;
  cudnn_frontend_is_fetched_for_a_toolkit)
    fake_packages none
    fake_apt 1
    fake_pip 0 0
    echo | fake nvcc
    install_deps
    expect_code 0
    expect_word "nvidia-cudnn-frontend"
    [ -e "$scratch/fetched/cudnn_frontend/fetched.txt" ] || fail "no record of what was fetched"
    ;;
  without_network_goes_on_without_headers)
    fake_packages none
    fake_apt 1
    fake_pip 0 1
    install_deps
    expect_code 0
    expect_word "check the network"
    expect_word "going on without CUDA's headers"
    [ ! -e "$scratch/fetched/cuda" ] || fail "left a folder without headers"
    ;;
  a_missing_pip_is_installed)
    fake_packages none
    fake_user 0
    fake_pip 1 0
    printf 'echo "$*" >>%q\nrm -f %q\n' "$scratch/apt_calls" "$tools/python3" | fake apt-get
    install_deps
    expect_code 0
    expect_apt "install -y --no-install-recommends python3-pip"
    expect_word "going on without"
    ;;
  another_pin_is_fetched_again)
    fake_pip 0 0
    for version in 1 1 2; do
      PATH=$tools "$sources/launch/fetch_wheels.sh" "$scratch/wheel" include "some-wheel==$version abc" 2>/dev/null
    done
    [ "$(grep -c download "$scratch/pip_calls")" -eq 2 ] || fail "pip calls: $(cat "$scratch/pip_calls")"
    ;;
  test_packages_are_installed_on_request)
    fake_packages chromium
    fake_user 0
    fake_apt
    fake_pip 0 0
    install_deps
    expect_code 0
    [ ! -e "$scratch/apt_calls" ] || fail "installed a browser unasked"
    [ ! -e "$scratch/fetched/python" ] || fail "fetched parsers unasked"
    PLUMB_TEST_PACKAGES=1 install_deps
    expect_code 0
    expect_apt "install -y --no-install-recommends chromium"
    expect_word "fetching mlperf-logging"
    [ -e "$scratch/fetched/python/fetched.txt" ] || fail "no parsers were fetched"
    ;;
  a_test_package_that_does_not_exist_costs_no_other)
    fake_packages chromium fish shellcheck
    fake_user 0
    printf 'echo "$*" >>%q
[[ $* != *chromium* ]]
' "$scratch/apt_calls" | fake apt-get
    fake_pip 0 0
    PLUMB_TEST_PACKAGES=1 install_deps
    expect_code 0
    for alone in fish shellcheck; do
      grep -q -e "install -y --no-install-recommends $alone\$" "$scratch/apt_calls" || fail "$alone was not installed alone"
    done
    ;;
  without_test_packages_goes_on)
    fake_packages chromium gnuplot-nox
    fake_user 0
    fake_apt 100
    fake_pip 0 0
    PLUMB_TEST_PACKAGES=1 install_deps
    expect_code 0
    expect_word "going on without chromium gnuplot-nox: their tests will be skipped"
    ;;
  arguments_are_refused)
    install_deps --help
    expect_code 64
    expect_word "--help"
    try bash "$sources/launch/quickstart.sh" fast
    expect_code 64
    expect_word "fast"
    ;;
  images_are_made_once)
    needs cjpeg libjpeg-turbo-progs
    "$sources/launch/make_images.sh" "$scratch/images"
    [ "$(find "$scratch/images" -name '*.jpg' -size +1k | wc -l)" -eq 48 ] || fail "not 48 images"
    echo changed >"$scratch/images/wave_0/0.jpg"
    "$sources/launch/make_images.sh" "$scratch/images"
    [ "$(cat "$scratch/images/wave_0/0.jpg")" = changed ] || fail "made again"
    "$sources/launch/make_images.sh" "$scratch/grainy" 32 24 40
    djpeg -pnm "$scratch/grainy/wave_3/11.jpg" >"$scratch/grainy.ppm"
    [[ $(tr '\n\0' '  ' <"$scratch/grainy.ppm") == 'P6 32 24 '* ]] || fail "not 32 x 24"
    ;;
  *) fail "unknown behavior $behavior" ;;
esac
