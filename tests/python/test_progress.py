# SPDX-License-Identifier: Apache-2.0
"""tools/progress: what ./demo and ./test show of a build, on a terminal and in a pipe."""

import contextlib
import os
import pathlib
import pty
import re
import subprocess
import time

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/progress"
SAID = "[1/4] Building a.o\nwarning: b\n[2/4] Building c.o\nninja: no work to do.\n"


def test_a_pipe_gets_warnings_and_no_steps():
    done = subprocess.run([TOOL], input=SAID, capture_output=True, text=True, check=True)
    assert done.stdout == "warning: b\nninja: no work to do.\n" and done.stderr == ""


@pytest.mark.parametrize("term, live", [("xterm", True), ("dumb", False)])
def test_a_terminal_shows_steps_and_what_is_left(term, live):
    master, slave = pty.openpty()
    tool = subprocess.Popen(
        [TOOL], stdin=subprocess.PIPE, stdout=slave, env={**os.environ, "TERM": term}
    )
    os.close(slave)
    tool.stdin.write(b"[1/4] a\nwarning: b\n")
    tool.stdin.flush()
    said = b""
    while b"warning: b" not in said:
        said += os.read(master, 65536)
    time.sleep(5.5)  # the second step comes after the time from which the rest is estimated
    tool.stdin.write(b"[2/4] c\n")
    tool.stdin.close()
    assert tool.wait() == 0
    with contextlib.suppress(OSError):  # of a terminal that nobody writes to any more
        while part := os.read(master, 65536):
            said += part
    os.close(master)
    said = said.decode()
    assert ("1 of 4 steps" in said) == live
    assert bool(re.search(r"2 of 4 steps, about \d+ min \d\d s left", said)) == live
