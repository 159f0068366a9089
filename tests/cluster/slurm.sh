# Read by launchers.sh: a Slurm of its own on a cluster (cluster.sh), with munge, in the cluster's /run; it ends with the
# cluster. Debian's Open MPI starts under srun --mpi=pmix.
# shellcheck shell=bash

# start_slurm HOST…: slurmctld on the first host, slurmd on all; returns once they are idle. SLURM_MORE: more lines of its
# configuration.
start_slurm() {
  slurm=/run/slurm
  mkdir -p $slurm/tmp $slurm/state
  for host in "$@"; do "$CLUSTER" own "$host" $slurm/tmp; done # PMIx's sockets
  cat >$slurm/slurm.conf <<CONFIGURATION
ClusterName=plumb
SlurmctldHost=$1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
NodeName=$(echo "$@" | tr ' ' ,) CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
${SLURM_MORE:-}
CONFIGURATION
  echo CgroupPlugin=cgroup/v1 >$slurm/cgroup.conf
  echo "PMIxCliTmpDirBase=$slurm/tmp" >$slurm/mpi.conf
  export SLURM_CONF=$slurm/slurm.conf SLURM_PMIX_FENCE=ring # docs/how-to/launching.md
  (umask 077 && head -c 1024 /dev/urandom >$slurm/munge.key)
  munged --force --key-file=$slurm/munge.key --socket=$slurm/munge.socket --pid-file=$slurm/munged.pid \
    --log-file=$slurm/munged.log --seed-file=$slurm/munge.seed
  "$CLUSTER" on "$1" slurmctld -i
  for host in "$@"; do "$CLUSTER" on "$host" slurmd -N "$host"; done
  for attempt in $(seq 60); do
    [ "$("$CLUSTER" on "$1" sinfo -h -o %T)" != idle ] || return 0
    [ "$attempt" = 1 ] || sleep 0.5
  done
  tail -n 5 $slurm/*.log
  fail "Slurm's hosts aren't idle"
}
