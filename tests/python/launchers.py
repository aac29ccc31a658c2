# SPDX-License-Identifier: Apache-2.0
"""Starts programs on several ranks under mpirun and torchrun."""

import contextlib
import fcntl
import importlib.util
import json
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


def torchrun_command(*command, ranks=2, restarts=0, port=None):
    start = [torch_python(), "-m", "torch.distributed.run", f"--nproc_per_node={ranks}"]
    start += [f"--max_restarts={restarts}", f"--master_port={port or free_port()}"]
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


def torchrun(*command, ranks=2, restarts=0, port=None, seconds=600):
    start = torchrun_command(*command, ranks=ranks, restarts=restarts, port=port)
    return run(start, seconds, PYTHONPATH=PACKAGE)


def mpirun(n, *command, seconds=600, **more):
    return run(mpirun_command(n, *command), seconds, **more)


class Job:
    """A launcher's job whose ranks run one program after the other (distributed/served.py)."""

    def __init__(self, start, folder, ranks, variables):
        self.folder, self.number, self.ranks = folder, 0, {}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen()
            self.output = (folder / "launcher").open("w+")
            self.process = subprocess.Popen(
                start, env=environment(**variables), stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            )  # fmt: skip
            listener.settimeout(1)
            while len(self.ranks) < ranks and self.process.poll() is None:
                with contextlib.suppress(TimeoutError):
                    peer = listener.accept()[0]
                    peer.settimeout(60)
                    lines = peer.makefile("rw")
                    self.ranks[int(lines.readline() or -1)] = peer, lines

    def run(self, command, seconds):
        """(status, what it printed): 0 when each rank has run it. Otherwise the job has ended."""
        self.number += 1
        output = self.folder / str(self.number)
        for rank, (peer, lines) in self.ranks.items():
            peer.settimeout(seconds)
            with contextlib.suppress(OSError):
                told = dict(command=list(map(str, command)), output=str(output), rank=rank)
                lines.write(json.dumps(told) + "\n")
                lines.flush()
        status = 0
        for _, lines in self.ranks.values():
            try:
                status = status or int(lines.readline() != "done\n")
            except OSError:  # the time is over
                status = 1
                self.process.kill()
        status = status and (self.end() or 1)
        texts = [path.read_text() for path in sorted(self.folder.glob(f"{self.number}.*"))]
        if status:
            self.output.seek(0)
            texts.append(self.output.read())
        return status, "".join(texts)

    def end(self):
        for peer, lines in self.ranks.values():
            lines.close(), peer.close()
        self.ranks = {}
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Jobs:
    """Programs under mpirun and torchrun, in jobs that are started once: a launch costs more than most programs."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="weft-jobs-")
        self._running, self._started = {}, 0

    def __call__(self, launcher, ranks, *command, seconds=200):
        job = self._running.pop((launcher, ranks), None)
        if job is None or job.process.poll() is not None:
            self._started += 1
            folder = pathlib.Path(self._folder.name) / str(self._started)
            folder.mkdir()
            serve = pathlib.Path(__file__).parent / "distributed/served.py", folder / "socket"
            start = (
                mpirun_command(ranks, *serve)
                if launcher == "mpirun"
                else torchrun_command(*serve, ranks=ranks)
            )
            job = Job(start, folder, ranks, dict(PYTHONPATH=PACKAGE))
        status, text = job.run(command, seconds)
        if status == 0:
            self._running[launcher, ranks] = job
        return status, text

    def end(self):
        for job in self._running.values():
            job.end()
        self._folder.cleanup()


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
