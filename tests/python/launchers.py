# SPDX-License-Identifier: Apache-2.0
"""Starts programs on several ranks under mpirun and torchrun."""

import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest

import weft
from weft.distributed.launcher import process_ended

PACKAGE = str(pathlib.Path(weft.__file__).parents[1])
needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpirun or mpi4py is not installed (tools/packages.txt names both)",
)


def torch_python():
    """A Python that has torchrun: this one, or that of WEFT_TORCH_PYTHON."""
    named = os.environ.get("WEFT_TORCH_PYTHON")
    return named or (sys.executable if importlib.util.find_spec("torch") is not None else None)


needs_torchrun = pytest.mark.skipif(
    torch_python() is None,
    reason="no torchrun: PyTorch is not installed (WEFT_TORCH_PYTHON names a Python that has it)",
)
# Jobs that end with a program under torchrun take seconds to start; the same programs run under mpirun.
whole_torchrun = pytest.mark.skipif(
    torch_python() is None or not os.environ.get("WEFT_TEST_WHOLE"),
    reason="jobs of its own under torchrun are started by WEFT_TEST_WHOLE=1",
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


def torchrun_command(*command, ranks=2, restarts=0, port=None, look=0.2):
    """`look`: seconds between two looks of torchrun at its ranks, 5 where nobody says."""
    start = [torch_python(), "-m", "torch.distributed.run", f"--nproc_per_node={ranks}"]
    start += [
        f"--max_restarts={restarts}",
        f"--master_port={port or free_port()}",
        f"--monitor_interval={look}",
    ]
    # The output of a tenth rank, which there is none of: without a word about it PyTorch 1.13 does not start under Python 3.11.
    start += ["--redirects=9:1", "--tee=9:1"]
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


def torchrun(*command, seconds=600, **more):
    start = torchrun_command(*command, **more)
    return run(start, seconds, PYTHONPATH=PACKAGE)


def mpirun(n, *command, seconds=600, **more):
    return run(mpirun_command(n, *command), seconds, **more)


class Jobs:
    """Programs under mpirun and torchrun, in jobs that are started once: a launch costs more than most programs. All workers of pytest-xdist that are given
    one folder share them: a job runs one program at a time, and the last worker ends it. Each job has a folder with a socket for each rank (distributed/served.py).
    """

    def __init__(self, folder):
        self._folder, self._started = pathlib.Path(folder), []
        self._folder.mkdir(parents=True, exist_ok=True)
        self._users = (self._folder / "users").open("w")
        fcntl.flock(self._users, fcntl.LOCK_SH)

    def __call__(self, launcher, ranks, *command, seconds=200):
        """(status, what it printed): 0 when each rank has run it. Otherwise the job has ended."""
        job = self._folder / f"{launcher}-{ranks}"
        with (self._folder / f"{job.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not job.exists():
                job.mkdir()
                self._start(job, launcher, ranks)
            status = not self._run(job, ranks, list(map(str, command)), seconds)
            if status:
                self._wait(job)
            texts = [path.read_text() for path in sorted(job.glob("output.*"))]
            if status:
                texts.append((job / "launcher").read_text())
                shutil.rmtree(job)
            return int(status), "".join(texts)

    def _start(self, job, launcher, ranks):
        serve = pathlib.Path(__file__).parent / "distributed/served.py", job, self._users.name
        start = mpirun_command(ranks, *serve) if launcher == "mpirun" else torchrun_command(*serve, ranks=ranks)  # fmt: skip
        with (job / "launcher").open("w") as output:
            process = subprocess.Popen(
                start, env=environment(PYTHONPATH=PACKAGE), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        (job / "process").write_text(str(process.pid))
        while not process_ended(process.pid) and not all(self._socket(job, r).exists() for r in range(ranks)):  # fmt: skip
            time.sleep(0.02)

    def _socket(self, job, rank):
        return job / f"rank.{rank}"

    def _run(self, job, ranks, command, seconds):
        """Whether every rank has run a command."""
        for old in job.glob("output.*"):
            old.unlink()
        asked = []
        try:
            for rank in range(ranks):
                asked.append(socket.socket(socket.AF_UNIX))
                asked[-1].settimeout(seconds)
                asked[-1].connect(str(self._socket(job, rank)))
                asked[-1].sendall((json.dumps(command) + "\n").encode())
            return all([peer.recv(4) == b"done" for peer in asked])
        except TimeoutError:
            os.kill(int((job / "process").read_text()), signal.SIGKILL)
            return False
        except OSError:  # a rank is gone
            return False
        finally:
            for peer in asked:
                peer.close()

    def _wait(self, job, seconds=60):
        process, begun = int((job / "process").read_text()), time.monotonic()
        while not process_ended(process):
            if time.monotonic() - begun > seconds:
                os.kill(process, signal.SIGKILL)
            time.sleep(0.02)

    def end(self):
        """Gives the jobs up; the last worker to do so ends them."""
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            jobs = [path for path in self._folder.iterdir() if path.is_dir()]
            for job in jobs:
                self._run(job, int(job.name.rpartition("-")[2]), [], 10)
            for job in jobs:
                self._wait(job)
            shutil.rmtree(self._folder)
        self._users.close()
        for process in self._started:  # those that have ended are buried
            process.poll()


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
