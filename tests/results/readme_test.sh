#!/usr/bin/env bash
# readme_test.sh BEHAVIOUR SOURCE_DIR PLUMBLINE: how results/measured/README.md gets the tables of its runs.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
behavior=$1
sources=$2
plumbline=$3

mkdir "$scratch/launch" "$scratch/results"
cp "$sources/launch/update_readme.sh" "$sources/launch/keep_runs.sh" "$scratch/launch"
echo "# No table" >"$scratch/README.md"
needs python3 python3
"$sources/tests/results/browser/made_runs.py" "$scratch/runs" 1

update() { try "$scratch/launch/update_readme.sh" "$@"; }
keep() { try "$scratch/launch/keep_runs.sh" "$@"; }

case $behavior in
  is_current)
    try "$sources/launch/update_readme.sh" --check "$plumbline"
    expect_code 0
    ;;
  tables_come_from_the_runs_kept)
    run=$scratch/runs/resnet50_1n1g_1
    tables=$scratch/results/measured/README.md
    keep epyc "$run"
    expect_code 0
    cmp "$run/result.json" "$scratch/results/measured/epyc/resnet50_1n1g_1/result.json"
    cmp "$run/env.json" "$scratch/results/measured/epyc/resnet50_1n1g_1/env.json"
    update --check "$plumbline"
    expect_code 1
    expect_word "start launch/update_readme.sh"
    update "$plumbline"
    expect_code 0
    grep -q '^| 1n1g | 1 | ' "$tables" || fail "no table: $(cat "$tables")"
    figure=$(grep -oE '^\| 1n1g \| 1 \| [0-9.]+' "$tables" | grep -oE '[0-9.]+$')
    # Of a figure that was measured, and of one that nobody measured.
    readme() { printf '## What has been measured\n\n| ResNet-50 | 256 | **%s** |\n\nOn two cores …\n' "$1" >"$scratch/README.md"; }
    readme "$(printf '%.0f' "$figure" | sed -E 's/([0-9]{3})$/,\1/')"
    update --check "$plumbline"
    expect_code 0
    readme 9,999
    update --check "$plumbline"
    expect_code 1
    expect_word "9999"
    # 4242.5 is 4242.49 or 4242.51 with one digit less.
    echo 'A  Plumbline  1  4242.5' >"$scratch/results/measured/epyc/pytorch.txt"
    for figure in 4,242 4,243; do
      readme "$figure"
      update --check "$plumbline"
      expect_code 0
    done
    readme 4,244
    update --check "$plumbline"
    expect_code 1
    sed -i 's/^| 1n1g | 1 | [0-9]*/&9/' "$tables"
    update --check "$plumbline"
    expect_code 1
    rm -r "$scratch/results/measured"
    update "$plumbline"
    expect_code 0
    grep -q 'No runs are kept' "$tables" || fail "a table of no runs"
    ;;
  bad_input_is_refused)
    keep epyc
    expect_code 64
    keep ../epyc "$scratch/runs/resnet50_1n1g_1"
    expect_code 64
    keep epyc "$scratch"
    expect_code 65
    expect_word "no result.json"
    mkdir "$scratch/failed"
    echo '{ "status": "failed" }' | tee "$scratch/failed/result.json" >"$scratch/failed/env.json"
    keep epyc "$scratch/failed"
    expect_code 65
    expect_word "failed"
    keep epyc "$scratch/runs/resnet50_1n1g_1"
    keep epyc "$scratch/runs/resnet50_1n1g_1"
    expect_code 73
    update --check "$scratch/none"
    expect_code 69
    update --chek
    expect_code 64
    ;;
  *) fail "unknown behavior $behavior" ;;
esac
