# SPDX-License-Identifier: Apache-2.0
"""Other processes as the system shows them, on Linux."""

import os
import pathlib
import time


def computed(process):
    """Seconds of processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def computes(process, before, seconds=0.5):
    """Waits until a process has used so much more processor time than `before`: it is in its long work, however busy the machine is."""
    while computed(process) < before + seconds:
        assert process.poll() is None, "it has ended"
        time.sleep(0.02)


def marked(mark):
    """Processes that were started with the variable `mark` ("NAME=value"), without those that have ended and are not yet buried."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in variables and state not in "ZX":
            found.append(int(entry.name))
    return found


def still_marked(mark, seconds, apart=()):
    """The marked processes that are left when all but `apart` have ended, or after so many seconds."""
    end = time.monotonic() + seconds
    while left := [p for p in marked(mark) if p not in apart]:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return left
