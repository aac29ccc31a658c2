# SPDX-License-Identifier: Apache-2.0
"""The command line on terminals of 80 and 60 columns, without colours: no line is cut inside a word, nothing but text is written, and
hosts without a home, a disk, a port or a network are told what to do."""

import argparse
import fcntl
import os
import pty
import re
import socket
import stat
import struct
import subprocess
import sys
import termios
import threading

import pytest
from test_cli import PROGRAM
from weft import cli

ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")},
    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    "TERM": "dumb",
    "NO_COLOR": "1",
}
VERBS = sorted(
    next(a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
)


def on_terminal(words, columns, cwd=None, **more):
    """Exit status and all that a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=ENVIRONMENT | more,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    timer = threading.Timer(300, child.kill)
    timer.start()
    try:
        while piece := os.read(ours, 1 << 16):
            said += piece
    except OSError:  # the last writer has gone
        pass
    finally:
        timer.cancel()
        os.close(ours)
    return child.wait(), said.decode().replace("\r\n", "\n")


def weft_(arguments, columns, **more):
    status, said = on_terminal(
        [sys.executable, "-m", "weft", *map(str, arguments)], columns, **more
    )
    assert "Traceback" not in said, said
    assert not re.search(r"[^\n\t -~\u00a0-\uffff]", said), repr(said)  # no control sequences
    return status, said


def fits(said, columns):
    """Lines are no longer than the terminal is wide, unless one word is."""
    for line in said.split("\n"):
        assert len(line) <= columns or len(line.split()) <= 2, (columns, line)


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(verb, columns):
    status, said = weft_([verb, "--help"] if verb else ["--help"], columns)
    assert status == 0
    fits(said, columns)


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize(
    "status, words",
    [
        (0, ["devices"]),
        (0, ["errors"]),
        (0, ["errors", "schedule.split"]),
        (1, ["errors", "no.such.slug"]),
        (0, ["bench", "--list"]),
        (1, ["docs", "no page"]),
        (1, ["serve", "--device", "moon"]),
        (1, ["serve", "--device", "cuda:99"]),
        (1, ["compile", "absent.weft", "--target", "cpu"]),
        (1, ["compile", "good.weft", "--target", "metall"]),
        (1, ["compile", "bad.weft", "--target", "cpu"]),
        (0, ["run", "good.weft", "--target", "cpu", "--check", "--stats"]),
        (1, ["run", "good.weft", "--target", "cpu", "--set", "n=3"]),
        (0, ["asm", "good.qasm", "--target", "qpu"]),
        (1, ["asm", "good.weft", "--target", "qpu"]),
        (1, ["dis", "good.weft", "--target", "vta"]),
        (2, ["new", "op", "Bad Name"]),
        (2, ["devics"]),
        (2, ["tune", "--trails", "3"]),
        (1, ["tune", "good.weft", "--target", "nothing"]),
        (1, ["debug", "absent.py"]),
    ],
)
def test_what_a_verb_says(words, status, columns, tmp_path):
    (tmp_path / "good.weft").write_text(PROGRAM)
    (tmp_path / "bad.weft").write_text(PROGRAM.replace("A[vi] *", "A[vi] **"))
    (tmp_path / "good.qasm").write_text("nop; nop; thrend\nnop\nnop\n")
    ended, said = weft_(words, columns, cwd=tmp_path)
    assert ended == status, said
    fits(said, columns)


@pytest.mark.parametrize("columns", [80, 60])
def test_the_cerebras_compiler(columns, tmp_path):
    cslc = [
        sys.executable,
        "-c",
        "import sys; from weft import wse_tools; sys.exit(wse_tools.cslc_main())",
    ]
    for words in (["--help"], [], ["absent.csl", "--fabric-dims=8,3"], ["--what"]):
        status, said = on_terminal([*cslc, *words], columns, cwd=tmp_path)
        assert (status == 0) == (words == ["--help"]), said
        assert "Traceback" not in said and "\033" not in said, said
        fits(said, columns)


def test_colours_and_progress_are_for_terminals_that_have_them(tmp_path):
    (tmp_path / "good.weft").write_text(PROGRAM)
    words = ["tune", "good.weft", "--target", "cpu", "--trials", "2", "--database", "found.db"]
    status, said = weft_(words, 80, cwd=tmp_path)
    assert status == 0, said


def test_a_home_that_cannot_be_written(tmp_path):
    (tmp_path / "good.weft").write_text(PROGRAM)
    more = {"HOME": "/proc/no-home", "XDG_CACHE_HOME": "/proc/no-home/cache"}
    for words in (
        ["run", "good.weft", "--target", "cpu", "--check"],
        ["compile", "good.weft", "--target", "c"],
        ["devices"],
    ):
        status, said = weft_(words, 80, cwd=tmp_path, **more)
        assert status == 0, said


@pytest.mark.parametrize(
    "words",
    [
        ["compile", "good.weft", "--target", "c", "-o", "/dev/full"],
        ["compile", "good.weft", "--target", "c", "--emit", "binary", "-o", "/dev/full"],
        [
            "tune",
            "good.weft",
            "--target",
            "cpu",
            "--trials",
            "1",
            "--database",
            "found.db",
            "--export",
            "/dev/full",
        ],
        ["compile", "good.weft", "--target", "c", "--emit", "binary", "-o", "/proc/out.weft-mod"],
        ["run", "good.weft", "--target", "cpu", "--trace", "/dev/full"],
        ["asm", "good.qasm", "--target", "qpu", "-o", "/proc/x.bin"],
        ["demo", "--output", "/proc/out"],
        ["tune", "good.weft", "--target", "cpu", "--trials", "1", "--database", "/proc/x.db"],
    ],
)
def test_a_place_that_cannot_be_written(words, tmp_path):
    (tmp_path / "good.weft").write_text(PROGRAM)
    (tmp_path / "good.qasm").write_text("nop; nop; thrend\nnop\nnop\n")
    status, said = weft_(words, 80, cwd=tmp_path)
    assert status == 1 and "error[" in said and "help:" in said, said
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_results_go_into_a_pipe_that_stands_there(tmp_path):
    """As into a device: a file in its place would end it for everybody."""
    (tmp_path / "good.weft").write_text(PROGRAM)
    (tmp_path / "good.qasm").write_text("nop; nop; thrend\nnop\nnop\n")
    for words in (
        ["compile", "good.weft", "--target", "c"],
        ["compile", "good.weft", "--target", "c", "--emit", "binary"],
        ["asm", "good.qasm", "--target", "qpu"],
    ):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
        reader.start()
        status, said = weft_([*words, "-o", "pipe"], 80, cwd=tmp_path)
        assert stat.S_ISFIFO(os.stat(pipe).st_mode)
        reader.join(60)
        assert status == 0 and got[0], said
        pipe.unlink()


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words in (["serve", "--device", "ref"], ["playground"]):
            status, said = weft_([*words, "--port", port], 80)
            assert status == 1 and str(port) in said and "help:" in said, said
            fits(said, 80)
