#!/usr/bin/env bash
# compare_peers_test.sh BEHAVIOUR SOURCE_DIR: what launch/compare_peers.sh starts, with programs that only note it.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
behavior=$1
script=$2/launch/compare_peers.sh

# fake NAME TEXT: a program that notes its name and arguments in calls, then does TEXT.
fake() {
  printf '#!/bin/bash\necho "%s $*" >>%q\n%s\n' "$1" "$scratch/calls" "${2:-}" >"$scratch/$1"
  chmod +x "$scratch/$1"
}
fake bench_resnet50
fake bench_arcface
fake plumbline
fake python

compare() { try "$script" --programs "$scratch" --python "$scratch/python" --output "$scratch/out" --device cpu "$@"; }
# The runs in order, one word each: p plumbline's, e eager, c compiled, = plumbline compare.
order() { sed -n 's/^bench_.*/p/p; s/.*--compile .*/c/p; s/^python -B .*/e/p; s/^plumbline compare .*/=/p' "$scratch/calls" | tr -d '\n'; }

case $behavior in
  runs_alternate)
    compare --rounds 3
    expect_code 0
    [ "$(order)" = pecpecpec= ] || fail "runs were in the order $(order)"
    grep -qx "plumbline compare $scratch/out/plumbline $scratch/out/pytorch_eager $scratch/out/pytorch_compiled --iters 120 --warmup 20" \
      "$scratch/calls" || fail "the logs didn't go to compare: $(cat "$scratch/calls")"
    rm -r "$scratch/out" "$scratch/calls"
    compare --rounds 1 --peers reduce-overhead,jax
    expect_code 0
    grep -q '^python -B .*pytorch_resnet50.py --compile reduce-overhead --device' "$scratch/calls" || fail "no CUDA graphs"
    grep -q "^plumbline compare $scratch/out/plumbline $scratch/out/pytorch_reduce-overhead $scratch/out/jax " "$scratch/calls" ||
      fail "JAX isn't compared: $(cat "$scratch/calls")"
    compare --model r50 --peers jax
    expect_code 64
    expect_word "--peers jax: JAX runs ResNet-50 only"
    ;;
  both_get_the_same_options)
    compare --model r50 --bs 4 --precision bf16 --classes 100 --rounds 1 --peers eager --threads 2
    expect_code 0
    same='--backbone r50 --device cpu --bs 4 --bf16 --iters 150 --warmup 50 --lr 0.001 --classes 100 --threads 2'
    for name in plumbline pytorch_eager; do
      grep -qF -- "$same --log-dir $scratch/out/$name --run 1" "$scratch/calls" || fail "$name: $(cat "$scratch/calls")"
    done
    grep -q '^bench_arcface ' "$scratch/calls" || fail "another program ran"
    grep -q '^python -B .*/results/peers/pytorch_arcface.py ' "$scratch/calls" || fail "another script ran"
    ;;
  without_pytorch_says_what_is_missing)
    fake python 'exit 1'
    compare
    expect_code 69
    expect_word "can't import torch"
    [ ! -e "$scratch/out" ] || fail "it made a folder"
    ;;
  a_failing_run_ends_it)
    fake bench_resnet50 'echo no such luck; exit 76'
    compare
    expect_code 76
    expect_word "no such luck"
    expect_word "round 1 of plumbline failed"
    [ "$(order)" = p ] || fail "runs went on: $(order)"
    ;;
  bad_options_are_refused)
    for bad in "--model vgg" "--bs 0" "--rounds x" "--peers tensorflow" "--peers ," "--precision int8" "--warmup 120" "--lunch 1" "--bs"; do
      # shellcheck disable=SC2086 # an option and its value
      compare $bad
      expect_code 64
      [ "$(wc -l <<<"$output")" -eq 1 ] || fail "$bad: more than a line: $output"
    done
    mkdir "$scratch/out"
    compare
    expect_code 73
    ;;
  *)
    fail "there is no behavior $behavior"
    ;;
esac
