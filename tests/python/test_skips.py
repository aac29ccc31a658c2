# SPDX-License-Identifier: Apache-2.0
"""A skip for a reason that nobody has listed fails the run (conftest.py, tests/skips.txt)."""

import os
import pathlib
import subprocess
import sys

import conftest
import pytest

HERE = pathlib.Path(__file__).parent
TESTS = """
import pytest
def test_card(): pytest.skip("no card here")
@pytest.mark.skipif(True, reason="built without the target")
def test_target(): pass
def test_runs(): pass
"""


@pytest.mark.parametrize(
    ("workers", "rows", "status", "unlisted"),
    [
        ("2", "* | no card *\n* | built without*\n", 0, []),
        ("2", "# only one\n* | no card here\n", 1, ["test_target"]),
        ("0", "", 1, ["test_card", "test_target"]),
        ("0", "other.py* | *\n", 1, ["test_card", "test_target"]),
        ("0", "*::test_card | *\n*::test_target | *\n", 0, []),
    ],
)
def test_unlisted_skips_fail(workers, rows, status, unlisted, tmp_path):
    (tmp_path / "test_three.py").write_text(TESTS)
    (tmp_path / "skips.txt").write_text(rows)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "-n",
        workers,
    ]
    paths = os.pathsep.join([str(HERE), *(p for p in sys.path if p)])
    done = subprocess.run(
        [*command, f"--skips={tmp_path}/skips.txt", "test_three.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert [n for n in ("test_card", "test_target") if f"::{n} |" in done.stdout] == unlisted
    assert f"2 skipped, {len(unlisted)} of them" in done.stdout


LOG = """[ RUN      ] Cuda.card
../tests/cuda_test.cpp:132: Skipped
searched libcuda.so.1: absent
[  SKIPPED ] Cuda.card (80 ms)
[ RUN      ] Jit.compiles
../tests/jit_test.cpp:10: Skipped
searched libLLVM: absent

[  SKIPPED ] Jit.compiles (0 ms)
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Cuda.card
"""


@pytest.mark.parametrize(
    ("rows", "unlisted"),
    [("", ["Cuda.card", "Jit.compiles"]), ("Cuda.* | searched libcuda*\n", ["Jit.compiles"]), ("* | *\n", [])],
)  # fmt: skip
def test_unlisted_skips_of_programs_fail(rows, unlisted, tmp_path):
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "skips.txt").write_text(rows)
    command = [sys.executable, HERE.parents[1] / "tools/check_skips", "log", "skips.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == bool(unlisted), done.stdout + done.stderr
    assert done.stdout.startswith(f"2 C++ tests skipped, {len(unlisted)} of them")
    assert [
        n for n in ("Cuda.card", "Jit.compiles") if f"UNLISTED {n} |" in done.stdout
    ] == unlisted


def test_lists_add_up(tmp_path):
    (tmp_path / "a").write_text("a.py* | one\n")
    (tmp_path / "b").write_text("# lean\nb.py* | two\n")
    rows = conftest.known_skips(tmp_path / "a", tmp_path / "b")
    assert rows == [("a.py*", "one"), ("b.py*", "two")]


def test_every_row_of_the_list_is_read():
    rows = conftest.known_skips(HERE.parent / "skips.txt")
    assert len(rows) > 10 and all(len(row) == 2 and all(row) for row in rows)
    assert not any(row == ("*", "*") for row in rows)
