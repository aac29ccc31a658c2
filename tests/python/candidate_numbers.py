# SPDX-License-Identifier: Apache-2.0
"""Faults of a tuner's candidates by the order in which they first came up: neither measured times nor chance decide which
candidate hangs or ends its process."""

import subprocess

PLACE = """
import fcntl, os, time, zlib
import weft
from weft.tuning import apart, measure

def place(schedule):
    "Which candidate of those seen this is, from 0; None for the program as it is. Also when it is seen again."
    if not len(schedule.trace):
        return None
    mark = str(zlib.crc32(str(schedule.trace.as_json()).encode()))
    with open(SEEN, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read().split()
        if mark not in known:
            file.write(mark + " ")
    return known.index(mark) if mark in known else len(known)
"""


def plant(monkeypatch, folder, text):
    """The processes that build and measure candidates run `text` first, which may ask place(schedule)."""
    from weft.tuning import apart

    plain = apart.subprocess.Popen
    program = f"SEEN = {str(folder / 'seen')!r}\n{PLACE}\n{text}\napart.serve()\n"

    def popen(command, **options):
        return plain([command[0], "-c", program, command[3]], stderr=subprocess.DEVNULL, **options)

    monkeypatch.setattr(apart.subprocess, "Popen", popen)
