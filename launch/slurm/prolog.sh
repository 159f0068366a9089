#!/bin/sh
# Slurm's Prolog: a node that fails is drained, and Slurm starts the job again on others.
exec "${0%/*}/health_check.sh"
