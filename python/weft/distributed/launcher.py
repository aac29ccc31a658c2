# SPDX-License-Identifier: Apache-2.0
"""The launcher's process on this host, and the ranks that it has started beside this one: found under /proc, so on Linux.

A launcher that is killed tells nobody. Its ranks see that their parent is another one. Where it was killed before a rank has looked for the first time,
the rank compares what the launcher has put into its environment: a process, a pipe, or an address that answers.
"""

from __future__ import annotations

import os
import re
import select

# What tells a launcher's own ranks from programs that somebody has started with a launcher's variables by hand.
_MARKS = (
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "PMIX_NAMESPACE",
    "PMI_FD",
    "PMI_PORT",
    "SLURM_STEP_ID",
)


def process_ended(pid):
    """Whether a process of this host is gone or waits to be buried. False where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return os.path.exists("/proc/self/stat")
    except (OSError, IndexError):
        return False


def _parent(pid):
    """The parent of a process; None where it is gone or the system does not say."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _children(pid):
    try:
        found = []
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
        return found
    except FileNotFoundError:  # a system without these files, or the process is gone
        every = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [child for child in every if _parent(child) == pid]
    except (OSError, ValueError):
        return []


def _environment(pid):
    """The variables that a process was started with; None where they are not shown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            rows = file.read().split(b"\0")
    except OSError:
        return None
    return dict(os.fsdecode(row).partition("=")[::2] for row in rows)


def _refuses(host, port):
    """Whether nothing listens at an address. False where that is not certain."""
    import socket

    try:
        socket.create_connection((host, port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


class Launcher:
    """The launcher of `launch`. `process`: its number on this host, or None where it is not known."""

    def __init__(self, launch, variables=None):
        variables = os.environ if variables is None else variables
        self._rank, self._variables = launch.rank_variable, variables
        self._marks = {name: variables[name] for name in _MARKS if name in variables}
        self.process, self._own, self._parent = None, None, os.getppid()
        if not set(self._marks) - {"TORCHELASTIC_RESTART_COUNT"}:
            return
        own = os.getpid()
        while True:
            above = _parent(own)
            if not above:  # the first process of a container: the launcher is outside
                return
            environment = _environment(above)
            if not self._is_rank(environment) or environment[self._rank] != variables[self._rank]:
                break
            own = above  # a script or a tool between the launcher and this process
        self.process, self._own = above, own

    def name(self):
        """What tells this rank from those of other jobs, a job that a rank has started among them."""
        addresses = ("MASTER_ADDR", "MASTER_PORT") if self._rank == "RANK" else ()
        given = {n: self._variables[n] for n in (self._rank, *addresses) if n in self._variables}
        return " ".join(f"{n}={value}" for n, value in sorted({**self._marks, **given}.items()))

    def _is_rank(self, environment):
        if environment is None or self._rank not in environment:
            return False
        return all(  # each rank of MPICH has a pipe of its own
            environment.get(name) == value or (name == "PMI_FD" and name in environment)
            for name, value in self._marks.items()
        )

    def ranks(self):
        """{rank: process} of the ranks that the launcher has started on this host and that are there now."""
        found = {}
        for child in _children(self.process) if self.process is not None else ():
            environment = _environment(child)
            if self._is_rank(environment):
                try:
                    found[int(environment[self._rank])] = child
                except ValueError:
                    continue
        return found

    def gone(self):
        """What shows that the launcher has ended, or None."""
        if self.process is None:
            return None
        above = os.getppid()
        if above == self._parent and self._own != os.getpid():
            above, known = _parent(self._own), self.process
        else:
            known = self._parent
        if above in (known, None):  # None: the system does not say
            return None
        return f"its process {self.process} is gone (killed?)"

    def gone_before(self):
        """The same for a launcher that may have ended before this object was made. It asks the launcher's addresses: for the first look alone."""
        variables = self._variables
        if not self._marks:
            return None
        if variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            host, port = variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")
            if port.isdigit() and _refuses(host, int(port)):
                return f"torchrun's store at {host}:{port} is gone (killed?)"
        named = re.search(r"/pid\.(\d+)", variables.get("PMIX_SERVER_TMPDIR", ""))
        where = re.search(r"tcp4://([0-9.]+):(\d+)", variables.get("PMIX_SERVER_URI2", ""))
        if named and where and not os.path.exists(f"/proc/{named[1]}"):
            if _refuses(where[1], int(where[2])):
                return f"its process {named[1]} is gone (killed?)"
        return self._pipe_closed()

    def _pipe_closed(self):
        """MPICH's launcher holds the other end of a pipe."""
        text = self._variables.get("PMI_FD", "")
        if not text.isdigit():
            return None
        poll = select.poll()
        poll.register(int(text), select.POLLIN)
        events = dict(poll.poll(0)).get(int(text), 0)
        return "it has closed its pipe (killed?)" if events & select.POLLHUP else None
