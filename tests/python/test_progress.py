# SPDX-License-Identifier: Apache-2.0
"""tools/progress: what ./demo and ./test show of a build, on a terminal and in a pipe."""

import os
import pathlib
import pty
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/progress"
SAID = "[1/4] Building a.o\nwarning: b\n[2/4] Building c.o\nninja: no work to do.\n"


def test_a_pipe_gets_warnings_and_no_steps():
    done = subprocess.run([TOOL], input=SAID, capture_output=True, text=True, check=True)
    assert done.stdout == "warning: b\nninja: no work to do.\n" and done.stderr == ""


@pytest.mark.parametrize("term, live", [("xterm", True), ("dumb", False)])
def test_a_terminal_shows_steps_and_what_is_left(term, live):
    master, slave = pty.openpty()
    # The second step comes after the time from which the rest is estimated.
    steps = "echo '[1/4] a'; echo 'warning: b'; sleep 5.5; echo '[2/4] c'"
    done = subprocess.run(
        ["bash", "-c", f"{{ {steps}; }} | {TOOL}"],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        env={**os.environ, "TERM": term},
        timeout=60,
        check=True,
    )
    os.close(slave)
    said = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0 and "warning: b" in said
    assert ("1 of 4 steps" in said) == live and ("2 of 4 steps, about 0 min 0" in said) == live
