# SPDX-License-Identifier: Apache-2.0
"""Every verb of the command line with files, targets, devices and options that do not fit: exit status 1 and one of weft's errors, or
2 and the usage. No Python exception comes out."""

import argparse
import itertools
import os
import subprocess
import sys

import pytest
from weft import cli

SCALE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * T.float32(2)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
FILES = {
    "absent.weft": None,
    "empty.weft": b"",
    "words.weft": b"no program\n",
    "bytes.weft": bytes(range(256)),
    "zeros.bin": bytes(64),
    "short.bin": b"\x01\x02\x03",
    "good.weft": SCALE.encode(),
    "library.weft": b"\x7fELF" + bytes(100),
}
TARGETS = ["cpu", "nothing", "", "cuda:arch=", "qpu", "vta", "vta:absent.json", "cpu:0:0", "\0"]
# Rows of arguments that every combination of a file and a target is tried with.
OF_FILES = {
    "compile": [[], ["--emit", "ir"], ["--emit", "asm"], ["--print-after", "nothing"], ["-o", "no folder/x"]],
    "run": [[], ["--function", "nothing"], ["--set", "n=a"], ["--set", "A=1x-2"], ["--device", "moon"], ["--seed", "-1"], ["--trace", "no folder/x"]],
    "asm": [[], ["-o", "no folder/x"]],
    "dis": [[], ["-o", "no folder/x"]],
    "tune": [["--function", "nothing"], ["--seed", "-1"], ["--seconds", "nan", "--trials", "1"], ["--limit", "-1", "--trials", "1"], ["--device", "moon"], ["--database", "no folder/x/y", "--trials", "1"], ["--merge", "absent.db", "--trials", "1"]],
}  # fmt: skip
# Rows that need no file. A verb that serves or measures until it is stopped is given what it must refuse.
ALONE = {
    "errors": [["nothing.like.that"], ["\0"], [""], ["array"]],
    "docs": [["no page", "--path"], ["../../etc/passwd", "--path"], ["--path"]],
    "devices": [[], ["x"]],
    "new": [["op", "Bad Name"], ["step", ""], ["what", "x"], ["pass", "../x"], ["rule", "1"]],
    "bench": [["nothing"], ["--list"], ["--what"]],
    "serve": [["--device", d] for d in ("moon", "", "cuda:99", "cpu\0")] + [["--device", "cpu", "--port", "70000"]]
    + [["--device", "cpu", "--key-file", "absent"], ["--device", "cpu", "--tls-cert", "absent", "--tls-key", "absent"]]
    + [["--device", "cpu", "--module", "absent"], ["--device", "cpu", "--host", "no such host"]],
    "debug": [["absent.py"], ["--csl", "absent"], ["--command", "absent", "absent.py"]],
    "demo": [["--what"]],
    "selftest": [["x"]],
    "playground": [["--port", "-1"], ["--memory", "0"], ["--seconds", "x"]],
}  # fmt: skip


def verbs():
    (sub,) = [a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return sorted(sub.choices)


@pytest.mark.parametrize(
    "words, usage, end",
    [
        (
            ["demo", "--quik"],
            "weft demo",
            "unrecognized arguments: --quik; did you mean '--quick'?",
        ),
        (["tune", "a", "--trails=3"], "weft tune", "--trails=3; did you mean '--trials'?"),
        (["docs", "--nope"], "weft docs", "unrecognized arguments: --nope"),
        (["devics"], "weft", "did you mean 'devices'?"),
    ],
)
def test_misspelt_options_are_the_verbs(words, usage, end, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith(f"usage: {usage} [") and end in said


def test_every_verb_has_rows():
    assert sorted([*OF_FILES, *ALONE]) == verbs()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_RPC_KEY", "a key that is long enough for everybody")
    for name, content in FILES.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.weft").mkdir()
    return tmp_path


def said(arguments, capfd):
    """None where a verb does what it is asked, or ends as it should; else what is wrong."""
    if arguments[0] == "debug":  # the debugger stays in its process
        done = subprocess.run([sys.executable, "-m", "weft", *arguments], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
        status, errors = done.returncode, done.stderr
        if "Traceback" in errors:
            return f"{arguments}: {errors[-300:]}"
    else:
        try:
            status = cli.main(arguments)
        except SystemExit as end:
            status = end.code
        except BaseException as raised:
            return f"{arguments}: {type(raised).__name__}: {raised}"
        errors = capfd.readouterr().err
    if status == 2 and "usage: weft" in errors or status == 1 and "error[" in errors or status == 0:
        return None
    return f"{arguments}: status {status}, {errors[:200]!r}"


@pytest.mark.parametrize("verb", OF_FILES)
def test_files_and_targets(verb, folder, capfd):
    wrong = [said([verb, *row], capfd) for row in ([], ["good.weft"], ["--target", "cpu"], ["--what"])]  # fmt: skip
    for name, target in itertools.product([*FILES, "folder.weft", ""], TARGETS):
        if verb in ("run", "tune") and (name, target) == ("good.weft", "cpu"):
            rows = OF_FILES[verb]
        else:
            rows = OF_FILES[verb] if name == "good.weft" else OF_FILES[verb][:1]
        wrong += [said([verb, name, "--target", target, *row], capfd) for row in rows]
    wrong = [w for w in wrong if w]
    assert not wrong, f"{len(wrong)} calls:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("verb", ALONE)
def test_other_arguments(verb, folder, capfd):
    wrong = [w for row in ALONE[verb] if (w := said([verb, *row], capfd))]
    assert not wrong, "\n".join(wrong)


def test_a_command_line_that_is_right(folder, capfd):
    assert cli.main(["run", "good.weft", "--target", "cpu", "--number", "1", "--repeat", "1"]) == 0
    assert cli.main(["compile", "good.weft", "--target", "c"]) == 0
    assert "main" in capfd.readouterr().out


def in_shell(line, folder):
    """(status, what a shell's command printed on standard error); `weft` stands for the command."""
    line = line.replace("weft", f"{sys.executable} -m weft", 1)
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300)  # fmt: skip
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "line, says",
    [
        ("weft devices >&-", "standard output"),
        ("weft compile good.weft --target c >&-", "standard output"),
        ("weft compile good.weft --target c > /dev/full", "free some space"),
        ("weft --version > /dev/full", "No space left"),
        ("weft compile /dev/zero --target c", "cli.file.size"),
        ("weft run /dev/zero --target cpu", "cli.file.size"),
        ("weft asm /dev/zero --target qpu", "cli.file.size"),
        ("weft dis /dev/zero --target qpu", "cli.file.size"),
        ("weft serve --device ref --port 0 --key-file /dev/zero", "cli.file.size"),
        ("weft compile good.weft --target c -o .", "this is a folder"),
        ("weft asm good.weft --target qpu -o .", "error["),
        ("weft run good.weft --target cpu --number 99999999999999999999", "error["),
        ("weft serve --device ref --sessions 99999999999 --port 0", "error["),
    ],
)
def test_streams_and_files_that_cannot_be_used(line, says, folder):
    status, errors = in_shell(line, folder)
    assert status == 1 and "error[" in errors and says in errors, errors


def test_standard_error_that_is_closed(folder):
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m weft compile absent.weft --target c 2>&-"], cwd=folder, env=ENVIRONMENT, capture_output=True, timeout=300)  # fmt: skip
    assert done.returncode == 1 and not done.stdout


def test_names_that_are_no_text(folder):
    name = os.path.join(os.fsencode(folder), b"z\xff.weft")
    with open(name, "wb") as file:
        file.write(SCALE.encode())
    status, errors = in_shell("weft compile z*.weft --target c", folder)
    assert status == 0, errors
    with open(name, "wb") as file:
        file.write(b"def f(:\n")
    status, errors = in_shell("weft compile z*.weft --target c", folder)
    assert status == 1 and "error[parse." in errors and "z\\xff.weft" in errors, errors
