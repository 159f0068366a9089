#!/usr/bin/env bash
# Plumbline and PyTorch on this machine, in turn, so that whatever drifts hits both alike; at the end their logs go to
# `plumbline compare`. Nothing is installed.
#
#   launch/compare_peers.sh [OPTION…]
#
#   --model resnet50|r50|r100|y1    default resnet50; the others are backbones of faces
#   --device cuda|cpu               default: cuda where nvidia-smi finds a GPU
#   --bs N                          images per device and step; default 128, on a CPU 8
#   --precision fp32|tf32|fp16|bf16 default fp32
#   --rounds N                      runs of each; default 5
#   --peers eager,compiled,reduce-overhead   PyTorch in three ways; default the first two
#   --iters N, --warmup N           default 120 and 20, of faces 150 and 50
#   --image-size N, --classes N, --threads N, --lr X    as the programs take them; lr: 0.001
#   --programs FOLDER               of bench_resnet50, bench_arcface and plumbline; default build/release/bin, or
#                                   where they are installed
#   --python PROGRAM                a Python that has PyTorch; default python3
#   -o, --output FOLDER             a new one for logs, runs and messages; default peer_comparison
#
# Exit codes: 0 done, 64 usage, 69 no programs or no PyTorch, 73 the folder exists; else that of the run that failed, or
# of plumbline compare.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit
root=$(cd "$(dirname "$0")/.." && pwd)

model=resnet50 device=cpu bs='' precision=fp32 rounds=5 peers=eager,compiled iters='' warmup='' lr=0.001
programs='' python=python3 output=peer_comparison others=()
! nvidia-smi -L >/dev/null 2>&1 || device=cuda
while [ $# -gt 0 ]; do
  [ "$1" != --help ] || { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" && exit 0; }
  [ $# -gt 1 ] || give_up 64 "$1 needs a value; see --help"
  case $1 in
    --model | --device | --bs | --precision | --rounds | --peers | --iters | --warmup | --lr | --programs | --python | --output)
      printf -v "${1#--}" %s "$2"
      ;;
    --out | -o) output=$2 ;;
    --image-size | --classes | --threads) others+=("$1" "$2") ;;
    *) give_up 64 "'$1' is not an option; see --help" ;;
  esac
  shift 2
done

IFS=, read -ra peer_list <<<"$peers"
[[ $peers, =~ ^((eager|compiled|reduce-overhead),)+$ ]] ||
  give_up 64 "--peers $peers: expected one or more of eager, compiled and reduce-overhead"
[[ $rounds =~ ^[1-9][0-9]{0,5}$ ]] || give_up 64 "--rounds $rounds: expected a whole number of at least 1"

[ -n "$bs" ] || { [ "$device" = cpu ] && bs=8 || bs=128; }
if [ "$model" = resnet50 ]; then
  program=bench_resnet50 script=pytorch_resnet50.py iters=${iters:-120} warmup=${warmup:-20} model_options=()
else
  program=bench_arcface script=pytorch_arcface.py iters=${iters:-150} warmup=${warmup:-50} model_options=(--backbone "$model")
fi

if [ -z "$programs" ]; then
  programs=$root/build/release/bin
  [ -x "$programs/plumbline" ] || ! installed=$(command -v plumbline) || programs=${installed%/*}
fi
for name in "$program" plumbline; do
  [ -x "$programs/$name" ] || give_up 69 "cannot find $name in $programs; build it, or pass its folder as --programs"
done
command -v "$python" >/dev/null || give_up 69 "cannot find '$python'; pass a Python with PyTorch as --python"
"$python" -c 'import torch' 2>/dev/null ||
  give_up 69 "PyTorch is missing, as '$python' cannot import torch; install it (pip install torch), or pass another --python"

[ ! -e "$output" ] || give_up 73 "--output $output: it exists already; pass another"
mkdir -p "$output" || give_up 73 "--output $output: cannot create it; pass another"

common=("${model_options[@]}" --device "$device" --bs "$bs" "--$precision" --iters "$iters" --warmup "$warmup" --lr "$lr" "${others[@]}")

# one_run NAME COMMAND…: messages and results in OUT/NAME_ROUND.txt.
one_run() {
  local name=$1 code=0 begin=$SECONDS messages=$output/$1_$round.txt
  shift
  "$@" "${common[@]}" --log-dir "$output/$name" --run "$round" >"$messages" 2>&1 || code=$?
  if [ $code -ne 0 ]; then
    tail -n 5 "$messages" >&2
    give_up $code "round $round of $name failed with exit code $code; see $messages"
  fi
  echo "round $round of $rounds: $name, $((SECONDS - begin)) s" >&2
}

for ((round = 1; round <= rounds; ++round)); do
  one_run plumbline "$programs/$program" --output "$output/runs"
  for peer in "${peer_list[@]}"; do
    case $peer in
      eager) how=() ;;
      compiled) how=(--compile) ;;
      *) how=(--compile "$peer") ;;
    esac
    one_run "pytorch_$peer" "$python" -B "$root/results/peers/$script" "${how[@]}"
  done
done
exec "$programs/plumbline" compare "$output/plumbline" "${peer_list[@]/#/$output/pytorch_}" --iters "$iters" --warmup "$warmup"
