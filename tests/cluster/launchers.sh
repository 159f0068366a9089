#!/usr/bin/env bash
# launchers.sh SCENARIO PROGRAMS: launch/run, Slurm and sweeps.
# shellcheck disable=SC2034,SC2154 # variables of scenario.sh
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
. "${0%/*}/scenario.sh"

launch_run() {
  on_first "$root/launch/run" "$@"
}

case $scenario in
  launch_run_gives_mpiruns_result)
    on_cluster 2 none
    model='--backbone y1 --head dp --classes 100 --iters 2'
    train plain bench_arcface -np 2 -H n1,n2
    train_by launched bench_arcface launch_run -H 'n[1-2]'
    expect_same_losses plain launched
    [ -d launched/logs/2n1g ] || fail "no folder 2n1g, but $(ls launched/logs)"
    grep -q '^mpirun -np 2 -H n1:1,n2:1 ' launched.txt || fail "the command line isn't shown: $(cat launched.txt)"
    code=0
    launch_run -H 'n[1-3]' touch started 2>refused.txt || code=$?
    [ $code = 69 ] && [ ! -e started ] || fail "exit code $code for a host that isn't there: $(cat refused.txt)"
    grep -q 'host n3 has no address' refused.txt || fail "it says: $(cat refused.txt)"
    ;;
  launch_run_gives_mpiruns_result_under_slurm)
    on_slurm
    model='--backbone y1 --head dp --classes 100 --iters 2 --device cpu'
    train plain bench_arcface -np 2 -H n1,n2
    train_by stepped bench_arcface launch_run --via srun -H 'n[1-2]'
    expect_same_losses plain stepped
    "$CLUSTER" on n1 "$programs/plumbline" doctor --ssh srun -H 'n[1-2],n9' >doctor.txt 2>&1 || true
    grep -q '^error *n9: .*Invalid node name.*: name hosts as sinfo shows them' doctor.txt || fail "srun's refusal isn't told: $(cat doctor.txt)"
    grep -q '^3 hosts, 2 answered' doctor.txt || fail "srun doesn't reach the hosts: $(cat doctor.txt)"
    here=$PWD
    train_in_job() { # as sbatch's options wait for the end, and the job's folder holds launch/
      (cd "$root" && "$CLUSTER" on n1 sbatch --wait --quiet --nodes=2 --ntasks-per-node=1 --gpus-per-node=0 \
        --output="$here/job.txt" launch/slurm/run.sbatch "$@") || { cat job.txt && return 1; }
    }
    train_by batched bench_arcface train_in_job
    expect_same_losses plain batched
    ;;
  a_sweep_over_hosts_says_whether_it_scales)
    on_cluster 4 1gbit
    cat >sweep.toml <<TOML
[sweep]
repetitions = 1
[launcher]
hosts = "n[1-4]"
programs = "$programs"
[[case]]
model = "y1"
nodes = [1, 2, 4]
devices_per_node = [1]
batch_sizes = [2]
precisions = ["fp32"]
iterations = 3
warmup = 1
options = { device = "cpu", head = "dp", classes = 100, threads = 1, lr = 0.001, comm = "mpi", profile = true }
TOML
    on_first "$programs/plumbline" sweep sweep.toml --dry-run >plan.txt
    grep -q "/launch/run -H 'n\[1-4\]' --nodes 4 --devices 1 $programs/bench_arcface " plan.txt || fail "the plan is $(cat plan.txt)"
    on_first "$programs/plumbline" sweep sweep.toml --output swept >sweep.txt 2>&1 ||
      { cat sweep.txt swept/output/* && fail "the sweep failed"; }
    for name in 1n1g 2n1g 4n1g; do
      grep -q "^$name " sweep.txt || fail "no row of $name in $(cat sweep.txt)"
    done
    "$programs/plumbline" report swept --format markdown -o report.md || fail "there is no report"
    head -n 1 report.md >answer.txt
    grep -qE "^- MobileFaceNet y1 fp32 (scales as it should|doesn't scale as it should|is held back by (its links|ranks that wait for each other)|cannot be judged).*[24]n1g" answer.txt ||
      fail "the report begins with: $(cat answer.txt)"
    grep -q ' predicted |$' report.md || fail "nothing is predicted by the links that the runs probed: $(cat report.md)"
    "$programs/plumbline" report swept -o report.html || fail "there is no page"
    grep -q 'Does it scale as it should?' report.html || fail "the page has no answer"
    sed -i 's/nodes = .*/nodes = [1, 8]/' sweep.toml
    code=0
    on_first "$programs/plumbline" sweep sweep.toml --output more 2>refused.txt || code=$?
    [ $code = 65 ] || fail "exit code $code for more hosts than there are"
    grep -q 'expected at most the 4 hosts given' refused.txt || fail "it says: $(cat refused.txt)"
    ;;
  *) fail "no scenario $scenario" ;;
esac
