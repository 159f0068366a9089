#!/usr/bin/env bash
# shellcheck disable=SC2016 # the texts in single quotes are arguments
# mpijob_test.sh SOURCE_DIR: the MPIJob of launch/run follows the operator's rules.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
sources=$1
unset "${!SLURM_@}" "${!NCCL_@}" "${!UCX_@}" "${!FI_@}" "${!OMP_@}" "${!PLUMB_CUDA_@}"
export NCCL_SOCKET_IFNAME='eth0"'
try "$sources/launch/run" --via kubernetes -H 'n[1-4]' --devices 8 --image reg.lan/plumbline:0.1 bench_resnet50 '$(x) "\' $'a\tb' @IMAGE@
expect_code 0
echo "$output" >"$scratch/job.yaml"
expect_word '"a\tb", "@IMAGE@"]'
[ "$(grep -c '@[A-Z]*@' "$scratch/job.yaml")" = 1 ] || fail "not filled in: $output"
try "$sources/launch/run" --via kubernetes --nodes 2 --cores 4 program --device cpu
expect_code 0
[[ $output == *'limits: {cpu: 4}'* && $output == *'nodeAffinity: {}'* ]] || fail "GPUs, or hosts: $output"
try "$sources/launch/run" --via kubernetes -H n1 program $'\e'
expect_code 64
expect_word 'control characters'
python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml (Debian: python3-yaml)"
python3 "${BASH_SOURCE[0]%/*}/check_mpijob.py" "$scratch/job.yaml"
