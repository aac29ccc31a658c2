# SPDX-License-Identifier: Apache-2.0
"""Starts programs on several ranks under mpirun and torchrun."""

import contextlib
import fcntl
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap

import pytest

import weft

PACKAGE = str(pathlib.Path(weft.__file__).parents[1])
needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpirun or mpi4py is not installed (tools/packages.txt names both)",
)


def torch_python():
    """A Python whose torchrun starts: this one, or that of WEFT_TORCH_PYTHON. PyTorch 1.13's does not under Python 3.11."""
    if os.environ.get("WEFT_TORCH_PYTHON"):
        return os.environ["WEFT_TORCH_PYTHON"]
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    old = tuple(int(x) for x in torch.__version__.split(".")[:2]) < (2, 0)
    return None if old and sys.version_info >= (3, 11) else sys.executable


needs_torchrun = pytest.mark.skipif(
    torch_python() is None,
    reason="no PyTorch whose torchrun starts here (WEFT_TORCH_PYTHON names a Python that has one)",
)


_ports = []  # locks of the ports of this process


def free_port():
    """A port of this process as long as it lasts: below those that the system gives to others, and locked against other tests."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"weft-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in range(20000, 30000):
        lock = (folder / str(port)).open("w")
        with contextlib.suppress(OSError), socket.socket() as s:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            s.bind(("", port))
            _ports.append(lock)
            return port
        lock.close()
    raise OSError("no port between 20000 and 30000 is free")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return {**env, "OMP_NUM_THREADS": "1", **more}


def torchrun_command(*command, ranks=2, restarts=0, port=None):
    start = [torch_python(), "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    start += ["--max-restarts", str(restarts), "--master-port", str(port or free_port())]
    return [*start, *map(str, command)]


def mpirun_command(n, *command):
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), sys.executable]
    return [*start, *map(str, command)]


def run(command, seconds=600, **variables):
    """(status, what it printed) of a command."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=environment(**variables)
    )
    return done.returncode, done.stdout + done.stderr


def torchrun(*command, ranks=2, restarts=0, port=None, seconds=600):
    start = torchrun_command(*command, ranks=ranks, restarts=restarts, port=port)
    return run(start, seconds, PYTHONPATH=PACKAGE)


def mpirun(n, *command, seconds=600, **more):
    return run(mpirun_command(n, *command), seconds, **more)


@pytest.fixture
def program(tmp_path):
    """A program that every rank runs."""

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(
            "import weft\nfrom weft import distributed as dist\n" + textwrap.dedent(text)
        )
        return path

    return write
