#!/bin/sh
# Slurm's Epilog: a node that fails after a job takes no other one.
exec "${0%/*}/health_check.sh"
