# SPDX-License-Identifier: Apache-2.0
"""Every command of the pages' console blocks is run: here, or by the test that the table names; other blocks say why not."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import weft
from test_docs import BLOCK, NAMES, NEEDS, REMOTE, ROOT, like, marks
from weft import te

SUGGESTIONS = {  # pages whose blocks another test runs
    "docs/guide/adding.md": "tests/python/test_new.py",
    "docs/guide/debugging.md": "tests/python/test_debug.py",
}
SERVED = [*REMOTE, "docs/guide/serving.md"]
CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"


def _wafer(name):
    return lambda folder: shutil.copytree(ROOT / "examples/wse" / name, folder, dirs_exist_ok=True)


def _triple(folder):
    """The page's program, against the library that ninja weft_qpu builds."""
    if not (pathlib.Path(weft.__file__).parent / "lib/libweft_qpu.so").exists():
        pytest.skip("this build has no libweft_qpu.so (ninja weft_qpu)")
    page = (ROOT / "docs/guide/from-qpulib.md").read_text()
    (code,) = [code for _, words, code in BLOCK.findall(page) if words.strip() == "cpp"]
    (folder / "triple.cpp").write_text(code)


def _served(folder):
    """What the commands of the page about serving expect to find."""
    a = te.placeholder((5,), "float32", name="A")
    module = weft.build(te.create_prim_func([a, te.compute((5,), lambda i: a[i], name="B")]), "c")
    for name in ("gemm", "softmax"):
        module.save(str(folder / f"{name}.weft-mod"))
    subprocess.run(CERTIFICATE.split(), cwd=folder, capture_output=True, check=True)


FILES = {  # what lies in the reader's folder
    "README.md": _wafer("seed"),
    "docs/tutorial/05-wafer.md": _wafer("gemv"),
    "docs/guide/from-qpulib.md": _triple,
    "docs/guide/serving.md": _served,
}
TARGETS = {**NEEDS, **dict.fromkeys(SERVED, ["vta"])}


def consoles(page):
    """(why the block is not run, its lines) of each console block of a page."""
    for _, words, code in BLOCK.findall((ROOT / page).read_text()):
        language, _, why = words.strip().partition(" not-run: ")
        if language == "console":
            yield why, code.replace("\\\n", "").splitlines()


RUN = [p for p in NAMES if p not in SUGGESTIONS and any(not why for why, _ in consoles(p))]


def test_every_console_block_is_run_or_says_why_not():
    for page in NAMES:
        for why, lines in consoles(page):
            assert not why or len(why) > 10, (page, lines)
            commands = [line for line in lines if line.startswith("$ ")]
            assert why or commands, f"{page}: no command in {lines}"
    assert len(RUN) >= 5 and set(SERVED) <= set(RUN)
    for page, test in SUGGESTIONS.items():
        assert any(not why for why, _ in consoles(page)) and (ROOT / test).exists()


@pytest.fixture
def home(tmp_path):
    """A folder of a reader, whose shell finds this weft's commands."""
    (tmp_path / "bin").mkdir()
    paths = os.pathsep.join(str(ROOT / p) for p in ("python", "compat/cerebras"))
    entries = {
        "weft": "-m weft",
        "cslc": "-c 'import sys; from weft_wse.compiler import cslc_main as m; sys.exit(m())'",
        "cs_python": "-c 'import sys; from weft_wse.script import cs_python_main as m; sys.exit(m())'",
        "python": "",
    }
    for name, words in entries.items():
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} {words} "$@"\n')
        script.chmod(0o755)
    folder = tmp_path / "home"
    (folder / ".venv").mkdir(parents=True)
    (folder / ".venv/bin").symlink_to(tmp_path / "bin")
    return folder


def shell(home, command):
    path = f"{home.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["bash", "-c", command], cwd=home, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _run(home, command):
    if " serve " not in command:
        process = shell(home, command)
        said, wrong = process.communicate(timeout=300)
        assert process.returncode == 0, (command, said, wrong)
        return said
    # The page's port may be taken. A server is asked to leave as soon as it says that it listens.
    process = shell(home, f"exec env {command} --port 0")
    said = process.stdout.readline()
    process.terminate()
    rest, wrong = process.communicate(timeout=500)
    assert said.startswith("serving ") and process.returncode == 0, (command, said, wrong)
    return said + rest


@pytest.mark.parametrize("page", [pytest.param(p, marks=marks(p, TARGETS, SERVED)) for p in RUN])
def test_the_commands_of_a_page_run(page, home):
    FILES.get(page, lambda folder: None)(home)
    for why, lines in consoles(page):
        said = None
        for line in lines if not why else ():
            if line.startswith("$ "):
                said = _run(home, line[2:].partition("  #")[0].strip())
            else:
                assert like(line, said), f"{page} shows {line}, but the command prints {said}"
