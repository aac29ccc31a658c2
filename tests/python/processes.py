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
