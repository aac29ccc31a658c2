# SPDX-License-Identifier: Apache-2.0
"""What the launcher says about this process: torchrun, Open MPI, MPICH and Slurm."""

from __future__ import annotations

import dataclasses
import os
import re

import weft

from .._core import shown
from .._errors import error


@dataclasses.dataclass(frozen=True)
class Launch:
    """This process among those of the job. `launcher`: "torchrun", "mpi", or "" for a single process."""

    launcher: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    rank_variable: str = ""


# launcher, and its variables for rank, size, rank on this host, processes on this host
_LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (
        "mpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("mpi", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)


def _number(variables, name, otherwise):
    text = variables.get(name)
    if text is None:
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise error(
            weft.ArgumentError,
            "distributed.environment",
            f"the launcher's variable {name} is {shown(text)}",
            ["legal: a whole number"],
            help="start the job with torchrun, mpirun or srun, or unset the variable",
        ) from None


def _tasks_here(variables):
    """Slurm's number of tasks on this host: "2(x3),1" for four hosts. 1 where it does not say."""
    node = _number(variables, "SLURM_NODEID", 0)
    hosts = re.findall(r"(\d+)(?:\(x(\d+)\))?", variables.get("SLURM_STEP_TASKS_PER_NODE", ""))
    for count, times in hosts:
        node -= int(times or 1)
        if node < 0:
            return int(count)
    return 1


def read_launch(variables=None) -> Launch:
    """The job's shape from the environment; a single process where no launcher has set its variables.

    torchrun's variables count before those of MPI and Slurm, which are set around it on a cluster. Raises ArgumentError for variables that
    are no numbers or do not fit one another.
    """
    variables = os.environ if variables is None else variables
    for launcher, rank, size, local_rank, local_size in _LAUNCHERS:
        if rank not in variables or size not in variables:
            continue
        if launcher == "torchrun" and "MASTER_ADDR" not in variables:
            continue
        found = Launch(
            launcher,
            _number(variables, rank, 0),
            _number(variables, size, 1),
            _number(variables, local_rank, 0),
            _tasks_here(variables) if rank == "SLURM_PROCID" else _number(variables, local_size, 1),
            rank,
        )
        if not 0 <= found.rank < found.size:
            raise error(
                weft.ArgumentError,
                "distributed.environment",
                f"{rank}={found.rank} and {size}={found.size}",
                [f"legal: {rank} from 0 to {size} - 1"],
            )
        if found.local_rank < 0 or found.local_size < 1:
            raise error(
                weft.ArgumentError,
                "distributed.environment",
                f"{local_rank}={found.local_rank} and {local_size}={found.local_size}",
                [f"legal: {local_rank} of 0 and more, {local_size} of 1 and more"],
            )
        return found
    _refuse_half(variables)
    return Launch("", 0, 1, 0, 1)


def _refuse_half(variables):
    """A process that somebody meant to be one of several, and who has set some of the variables, would train alone beside the others."""
    wanted = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
    absent = [name for name in wanted if name not in variables]
    several = {"RANK": 0, "WORLD_SIZE": 1}
    if any(variables.get(name, "").isdecimal() and int(variables[name]) > n for name, n in several.items()):  # fmt: skip
        there = ", ".join(f"{name}={variables[name]}" for name in several if name in variables)
        raise error(
            weft.ArgumentError,
            "distributed.environment",
            f"{there} without {' and '.join(absent)}",
            ["legal: all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none of them"],
            help="start the job with torchrun, mpirun or srun, or unset the variables",
        )
