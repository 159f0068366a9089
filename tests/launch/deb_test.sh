#!/usr/bin/env bash
# deb_test.sh BUILD_DIR: the packages that cpack makes of a build have what they should. 77 where dpkg's tools are missing.
# That they install and run elsewhere: check_deb.sh.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
needs dpkg-deb dpkg
needs dpkg-shlibdeps dpkg-dev

cd "$1"
cpack -G DEB -B "$scratch" >"$scratch/output" 2>&1 || fail "$(tail -5 "$scratch/output")"
plumbline=$(echo "$scratch"/plumbline_*.deb) bench=$(echo "$scratch"/plumbline-bench_*.deb)
dpkg-deb -x "$plumbline" "$scratch/analysis"
[ ! -e "$scratch/analysis/usr/bin/bench_resnet50" ] || fail "plumbline has what belongs to plumbline-bench"
"$scratch/analysis/usr/bin/plumbline" published >/dev/null || fail "plumbline doesn't run alone"
code=0
"$scratch/analysis/usr/bin/plumbline" sweep cpu --dry-run 2>"$scratch/alone" || code=$?
[ $code = 69 ] && grep -q 'install plumbline-bench' "$scratch/alone" || fail "plumbline alone: $code, $(cat "$scratch/alone")"
dpkg-deb -x "$bench" "$scratch/root"
[ ! -e "$scratch/root/usr/bin/plumbline" ] || fail "plumbline-bench has what belongs to plumbline"
dpkg-deb -x "$plumbline" "$scratch/root"
for file in bin/bench_{resnet50,arcface,allreduce} bin/{plumbline,make_rec} share/doc/{plumbline,plumbline-bench}/copyright share/plumbline/{README,CHANGELOG,SECURITY}.md \
  share/man/man1/{bench_resnet50,bench_arcface,bench_allreduce,make_rec,plumbline}.1 share/plumbline/launch/sweeps/dlperf_resnet50.toml \
  share/bash-completion/completions/{bench_resnet50,bench_arcface,bench_allreduce,make_rec,plumbline} \
  share/zsh/vendor-completions/_{bench_resnet50,bench_arcface,bench_allreduce,plumbline} \
  share/fish/vendor_completions.d/{bench_resnet50,bench_arcface,bench_allreduce,plumbline}.fish \
  share/plumbline/launch/{slurm/run.sbatch,container/Dockerfile} share/plumbline/launch/compare_peers.sh share/plumbline/results/peers/pytorch_resnet50.py; do
  [ -s "$scratch/root/usr/$file" ] || fail "$file is missing"
done
alone=$(dpkg-deb -f "$plumbline" Depends) depends=$(dpkg-deb -f "$bench" Depends)
for package in openmpi-bin libdnnl libopenmpi libjpeg; do
  [[ $depends == *"$package"* ]] || fail "plumbline-bench doesn't depend on $package, but on $depends"
  [[ $alone != *"$package"* ]] || fail "plumbline depends on $package"
done
for deb in "$plumbline" "$bench"; do
  for field in Maintainer Section Description; do
    [ -n "$(dpkg-deb -f "$deb" $field)" ] || fail "$deb has no $field"
  done
  [[ $(dpkg-deb -f "$deb" Maintainer) == *@*.*'>' ]] || fail "its maintainer has no address outside this machine"
done
"$scratch/root/usr/bin/plumbline" --version >/dev/null || fail "plumbline doesn't start"
"$scratch/root/usr/bin/bench_allreduce" --device cpu -b 1K -e 1K -n 2 -w 1 --quiet >"$scratch/sizes" || fail "bench_allreduce doesn't run"
grep -q busbw "$scratch/sizes" || fail "bench_allreduce prints no bandwidth: $(cat "$scratch/sizes")"
"$scratch/root/usr/share/plumbline/launch/compare_peers.sh" --help >/dev/null || fail "compare_peers.sh doesn't start"
"$scratch/root/usr/share/plumbline/launch/run" --print -H n1,n2 bench_resnet50 >"$scratch/job" || fail "launch/run doesn't start"
# Programs of a CUDA build find its libraries by themselves, and name those that are nowhere.
starter=$scratch/root/usr/bin/bench_resnet50
"$starter" --list-targets >"$scratch/targets" || fail "bench_resnet50 doesn't start"
grep -q h200 "$scratch/targets" || fail "bench_resnet50 knows no h200"
libraries=$(echo "$scratch"/root/usr/lib*/plumbline/lib/cuda_libraries.txt)
if [ -e "$libraries" ]; then
  [[ $(dpkg-deb -f "$bench" Recommends) == *libcudnn9*libcublas* ]] || fail "it recommends no cuDNN"
  echo "bench_resnet50 libcudnn_of_nowhere.so.1" >>"$libraries"
  code=0
  "$starter" --list-targets 2>"$scratch/missing" || code=$?
  [ $code = 69 ] || fail "exit code $code instead of 69 where a library is missing"
  grep -q "libcudnn_of_nowhere.so.1 was not found" "$scratch/missing" || fail "it doesn't name the missing library"
fi
if command -v man >/dev/null; then
  for page in "$scratch"/root/usr/share/man/man1/*; do
    warnings=$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "$page: $warnings"
  done
fi
