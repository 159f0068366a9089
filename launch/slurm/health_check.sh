#!/bin/sh
# Slurm's HealthCheckProgram, Prolog or Epilog (slurm.conf): drains this node if plumbline check fails, with its line as the
# reason. A node that can't be judged stays as it is, with the line on stderr. PLUMBLINE_CHECK holds more options.
PATH=$PATH:/usr/local/bin:/usr/bin:/bin
# shellcheck disable=SC2086 # options are words
line=$(plumbline check --exit-codes slurm ${PLUMBLINE_CHECK:-}) && exit 0
scontrol update "nodename=${SLURMD_NODENAME:-$(hostname -s)}" state=drain "reason=$line"
exit 1
