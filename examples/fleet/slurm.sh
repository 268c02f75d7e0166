#!/bin/bash
# Work on a prepared run with all GPUs of some nodes, one worker per GPU:
#
#     debate run tasks.jsonl --model NAME --store postgresql://USER@HOST/NAME --out runs/first --prepare
#     sbatch slurm.sh runs/first
#
# The folder is on a file system that all nodes share. The same job may be submitted again at any time, also while
# another one works: the workers share what is left.

#SBATCH --job-name=debate
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue

set -euo pipefail

# One fleet per node starts the workers of that node, and those again that die. TERM, two minutes before the time is up,
# ends them in order; what they had begun stands in the store.
srun --kill-on-bad-exit=0 \
    debate fleet "$1" --workers "$SLURM_GPUS_ON_NODE" --gpus-per-worker 1
