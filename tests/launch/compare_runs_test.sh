#!/usr/bin/env bash
# compare_runs_test.sh SOURCE_DIR: what tests/gpu/compare_runs.py makes of files.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
checks=$1/tests/gpu
needs python3 python3
cd "$scratch"

# expect CODE WORD ARGUMENT…: of compare_runs.py.
expect() {
  local code=0 output
  output=$(python3 -B "$checks/compare_runs.py" "${@:3}" 2>&1) || code=$?
  [ $code -eq "$1" ] || fail "${*:3}: exit code $code instead of $1: $output"
  [[ $output == *"$2"* ]] || fail "'$2' is missing in: $output"
}

# tensors FILE NAME=NUMBER,NUMBER…: a safetensors file of fp32 tensors.
tensors() {
  python3 - "$@" <<'END'
import array, json, struct, sys
header, data = {"__metadata__": {"format": "pt"}}, b""
for argument in sys.argv[2:]:
    name, numbers = argument.split("=")
    values = array.array("f", map(float, numbers.split(","))).tobytes()
    shape = [len(values) // 4, 1, 1, 1] if "conv" in name and "norm" not in name else [len(values) // 4]
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
    data += values
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
END
}

echo '{"loss": [7.0, 6.5]}' >a.json
echo '{"loss": [7.0, 6.6]}' >b.json
echo '{"loss": [NaN, 6.5]}' >nan.json
expect 0 'worst 1.5e-02' losses --first 0.001 --rest 0.05 a.json b.json
expect 1 '' losses --first 0 --rest 0 a.json b.json
expect 1 '' losses --first 0.1 --rest 0.1 nan.json a.json
expect 1 '2 losses against 3' losses --first 0.1 --rest 0.1 a.json <(echo '{"loss": [7.0, 6.5, 6.0]}')

echo '{"images_per_second": {"mean": 900}}' >run.json
echo '{"images_per_second": {"mean": 990}}' >faster.json
echo '{"images_per_second": {"mean": 890}}' >slower.json
expect 0 '--x a: 895.0 images/s, 1.000; --y: 990.0 images/s, 1.106' rates 'run.json,slower.json=--x a' faster.json=--y

# Batch statistics: means 1 and 3, variances 4 and 9.
tensors before conv.weight=1,1 bn.weight=1,1 bn.running_mean=0,0 bn.running_var=1,1
tensors plain conv.weight=0,2 bn.weight=2,2 bn.running_mean=0.1,0.3 bn.running_var=1.3,1.8
tensors fused conv.weight=0,2.1 bn.weight=2,2.1 bn.running_mean=0.1,0.302 bn.running_var=1.3,1.8
tensors shifted conv.weight=0,2 bn.weight=2,2 bn.running_mean=0.1,0.4 bn.running_var=1.3,1.8
tensors clipped conv.weight=0,2 bn.weight=2,2 bn.running_mean=0.1,0.3 bn.running_var=1.3,inf
tensors another conv.weight=2,0 bn.weight=2,2 bn.running_mean=0.1,0.3 bn.running_var=1.3,1.8
expect 0 'statistics: worst bn.running_mean 0.0055' norms before fused plain
expect 1 'bn.running_mean 0.27' norms before shifted plain
expect 1 'bn.running_var None' norms before clipped plain
expect 1 'worst conv.weight 2.0' norms before another plain

cp plain plain.safetensors
cp another wrong.safetensors
tensors drawn conv.weight=1,2 layer1.0.bn3.weight=1,1 res_3_block0_conv_proj_batchnorm.weight=1 \
  dconv_23_conv_proj_batchnorm.weight=1
expect 0 '2 norms scaled by 0.1, convolutions by 8' calm --loud 8 drawn loud
tensors expected conv.weight=8,16 layer1.0.bn3.weight=0.1,0.1 \
  res_3_block0_conv_proj_batchnorm.weight=0.1 dconv_23_conv_proj_batchnorm.weight=1
cmp loud expected

# To the bit.
expect 0 '4 files equal to the bit' same a.json a.json plain.safetensors plain.safetensors
expect 1 'b.json, wrong.safetensors differ' same a.json b.json plain.safetensors wrong.safetensors

# Steps against those of a peer, both apart from the peer's fp32.
echo '{"loss": [7.0, 6.504]}' >near.json
echo '{"loss": [7.0, 6.50001]}' >nearest.json
tensors start a.weight=1,1,1,1
tensors fp32 a.weight=2,2,2,2
tensors peer a.weight=2.1,2,2,2
tensors nearer a.weight=2,2.09,2,2
tensors nearest a.weight=2,2.004,2,2
tensors one a.weight=2 b.bias=0.00001
tensors other a.weight=2 b.bias=-0.00001
tensors off a.weight=2 b.bias=0.002
tensors zero a.weight=1 b.bias=0
tensors farther a.weight=2,2.2,2,2
expect 0 'worst a.weight 2.0e-03; peer: losses 0.0e+00' parity --precision fp32 --losses nearest.json a.json a.json \
  --weights start nearest fp32 fp32
# A gradient that is rounding: the norm after this bias undoes it.
expect 0 '' parity --precision fp32 --losses a.json a.json a.json --weights zero one other other
expect 1 'worst b.bias' parity --precision fp32 --losses a.json a.json a.json --weights zero off other other
expect 1 'run: losses 6.2e-04 from fp32' parity --precision fp32 --losses near.json a.json a.json --weights start nearest fp32 fp32
expect 1 'updates 4.5e-02' parity --precision fp32 --losses nearest.json a.json a.json --weights start nearer fp32 fp32
expect 0 'updates 4.5e-02' parity --precision fp16 --losses near.json near.json a.json --weights start nearer peer fp32
expect 1 'updates 1.0e-01' parity --precision fp16 --losses near.json near.json a.json --weights start farther peer fp32
expect 1 'losses 1.5e-02 from fp32' parity --precision bf16 --losses b.json near.json a.json --weights start nearer peer fp32
