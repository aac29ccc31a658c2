# SPDX-License-Identifier: Apache-2.0
"""The command line where something is missing: no disk, no home, no network, a taken port, a plain terminal, 80 columns."""

import os
import pathlib
import pty
import re
import select
import shutil
import socket
import subprocess
import sys

import pytest
import weft

ROOT = pathlib.Path(weft.__file__).resolve().parents[1]
WEFT = [sys.executable, "-m", "weft"]
PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] + T.float32(1)
"""


def run(*arguments, before=(), timeout=500, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [*before, *WEFT, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=timeout,
    )


@pytest.fixture
def program(tmp_path):
    (tmp_path / "p.weft").write_text(PROGRAM)
    return tmp_path / "p.weft"


@pytest.fixture
def full(tmp_path):
    """A folder on a disk of 64 KB without a free byte."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        with open(folder / "fill", "wb", buffering=0) as file:
            with pytest.raises(OSError):
                while True:
                    file.write(bytes(4096))
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk(program, full):
    text = run("compile", program, "--target", "c", "-o", full / "a.c")
    assert text.returncode == 1 and "error[cli.file]: " in text.stderr
    assert "No space left on device" in text.stderr and "help: free some space" in text.stderr
    module = run("compile", program, "--target", "c", "--emit", "binary", "-o", full / "a.weft-mod")
    assert module.returncode == 1 and "error[file.write]" in module.stderr
    assert not (full / "a.weft-mod").exists()
    report = run("demo", "--quick", "--output", full / "out")
    assert report.returncode == 1 and "error[cli.file]" in report.stderr
    assert report.stdout == "" and "Traceback" not in report.stderr  # before it runs anything
    save = "import sys, weft; weft.save(weft.ones((1000, 1000)), sys.argv[1])"
    saved = subprocess.run(
        [sys.executable, "-c", save, full / "x.npy"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert saved.returncode == 1 and "error[python.file]" in saved.stderr, saved.stderr
    assert "help: free some space" in saved.stderr
    # What is only kept to be quick the next time is not needed.
    done = run("run", program, "--target", "c", "--check", XDG_CACHE_HOME=str(full))
    assert done.returncode == 0 and "error" in done.stdout, done.stderr


def test_a_name_of_the_wrong_kind(program, tmp_path):
    for command, repair in (
        (("run", tmp_path / "none.weft", "--target", "c"), "name a file that exists"),
        (("run", tmp_path, "--target", "c"), "this is a folder"),
        (("demo", "--quick", "--output", program), "this is a file, and a folder is needed"),
        (("compile", program, "--target", "c", "-o", program / "a.c"), "a folder is needed"),
    ):
        done = run(*command)
        assert done.returncode == 1 and "error[cli.file]: " in done.stderr, done.stderr
        assert repair in done.stderr.partition("help: ")[2], done.stderr
        assert "Traceback" not in done.stderr and done.stdout == ""


def test_a_home_that_cannot_be_written(program):
    home = {"HOME": "/proc", "XDG_CACHE_HOME": "", "XDG_DATA_HOME": "", "WEFT_TUNE_DB": ""}
    for target in ("cpu", "c"):
        assert run("run", program, "--target", target, **home).returncode == 0
    tuned = run("tune", program, "--target", "cpu", "--trials", 2, **home)
    assert tuned.returncode == 1 and "error[tune.database.folder]" in tuned.stderr
    assert "help: set WEFT_TUNE_DB" in tuned.stderr


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        page = run("playground", "--port", port)
        assert page.returncode == 1 and "error[playground.port]" in page.stderr
        assert "--port 0 takes any free port" in page.stderr
        if weft.device("cpu").available and _remote():
            key = {"WEFT_RPC_KEY": "k" * 32}
            server = run("serve", "--device", "cpu", "--port", port, **key)
            assert server.returncode == 1 and "error[rpc.bind.failed]" in server.stderr
            assert "help: port 0 takes any free one" in server.stderr


def _remote():
    import importlib.util

    return importlib.util.find_spec("weft._rpc") is not None


def test_a_machine_without_a_network(program):
    alone = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let a program leave its network")
    assert run("run", program, "--target", "c", "--check", before=alone).returncode == 0
    devices = run("devices", before=alone)
    assert devices.returncode == 0 and "cpu" in devices.stdout


def on_a_terminal(term, *arguments):
    """Everything that a command writes to a terminal of this kind."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*WEFT, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": term, "COLUMNS": "80"},
    )
    os.close(slave)
    said = b""
    while process.poll() is None or select.select([master], [], [], 0.2)[0]:
        if select.select([master], [], [], 0.2)[0]:
            try:
                said += os.read(master, 65536)
            except OSError:  # the other side is closed
                break
    process.wait(120)
    os.close(master)
    return process.returncode, said.decode(errors="replace")


@pytest.mark.parametrize("term, sequences", [("xterm", True), ("dumb", False)])
def test_progress_is_for_terminals_that_can_write_over_a_line(program, tmp_path, term, sequences):
    database = tmp_path / "t.db"
    status, said = on_a_terminal(
        term, "tune", str(program), "--target", "cpu", "--trials", "2", "--database", str(database)
    )
    assert status == 0 and "def main" in said, said
    assert ("\033[" in said) == sequences


@pytest.mark.parametrize(
    "verb", [(), ("demo",), ("tune",), ("playground",), ("compile",), ("serve",)]
)
def test_help_fits_80_columns(verb):
    done = run(*verb, "--help", COLUMNS="80")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_devices_fit_80_columns():
    done = run("devices", COLUMNS="80")
    assert done.returncode == 0 and re.search(r"^cpu\b", done.stdout, re.M)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_no_compiler_is_said(program, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    for name in ("env", "sh"):
        os.symlink(shutil.which(name), empty / name)
    done = run(
        "run", program, "--target", "c", PATH=str(empty), CC="", XDG_CACHE_HOME=str(tmp_path)
    )
    assert done.returncode == 1 and re.search(r"error\[c\.\S+\]", done.stderr), done.stderr
    assert "help:" in done.stderr or "searched" in done.stderr


def test_a_terminal_that_lacks_characters():
    ascii_only = {
        "PYTHONIOENCODING": "ascii:strict",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    for words in (["errors"], ["errors", "schedule.split"], ["errors", "no.such"]):
        done = run(*words, **ascii_only)
        assert done.returncode == (words[-1] == "no.such"), done.stderr
        assert (done.stdout + done.stderr).isascii() and "Traceback" not in done.stderr
