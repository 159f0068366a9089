#!/usr/bin/env bash
# export_parsers.sh PLUMBLINE: what `plumbline export` writes, read by the parser of the Python package
# prometheus-client. 77 without it.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
plumbline=$1
# shellcheck source=tests/golden/made_inputs.sh
source "$(dirname "$0")/../golden/made_inputs.sh"
cd "$scratch"

run runs/a checks='{"loss_finite": true}' config.seed=0

python3 -c 'import prometheus_client' 2>/dev/null ||
  skip "prometheus-client is missing (PLUMB_TEST_PACKAGES=1 launch/install_deps.sh fetches it)"
"$plumbline" export runs/a --format prometheus -o plumbline.prom
python3 - <<'END'
from prometheus_client.parser import text_string_to_metric_families

with open('plumbline.prom', encoding='utf-8') as file:
    families = {family.name: family for family in text_string_to_metric_families(file.read())}
speed, = families['plumbline_images_per_second'].samples
assert families['plumbline_images_per_second'].type == 'gauge'
assert speed.value == 80 and speed.labels['model'] == 'resnet50' and speed.labels['batch_per_device'] == '8', speed
END
