# SPDX-License-Identifier: Apache-2.0
"""tools/new_target.py: the skeleton it writes is the guide's machine under another name, compiles, and is listed once."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = [
    "tools/new_target.py",
    "src/weft/targets/targets.list",
    "tests/targets/toy/backend.cpp",
    "tests/targets/run_program.h",
    "tests/targets/seed_programs.h",
    "tests/expect_error.h",
    "docs/targets/c.md",
    ".clang-format",
]


@pytest.fixture
def tree(tmp_path):
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(tree, *names):
    return subprocess.run(
        [sys.executable, tree / "tools/new_target.py", *names], capture_output=True, text=True
    )


def test_the_skeleton_is_whole_and_compiles(tree):
    done = run(tree, "loom")
    assert done.returncode == 0, done.stderr
    assert "ninja -C build loom_test" in done.stdout
    backend = tree / "src/weft/targets/loom/backend.cpp"
    for path in (backend, tree / "tests/targets/loom/loom_test.cpp"):
        assert "loom" in path.read_text() and not re.search("toy", path.read_text(), re.I)
    rule = (tree / "src/weft/targets/loom/CMakeLists.txt").read_text()
    assert rule.startswith("weft_target(loom DEPS ") and "backend.cpp" in rule
    assert "weft_test(loom_test" in (tree / "tests/targets/loom/CMakeLists.txt").read_text()
    assert (tree / "docs/targets/loom.md").read_text().startswith("# loom\n")
    listed = (tree / "src/weft/targets/targets.list").read_text()
    assert listed == (ROOT / "src/weft/targets/targets.list").read_text().rstrip("\n") + "\nloom\n"
    cache = ["ccache"] if shutil.which("ccache") else []
    for file in (backend, tree / "tests/targets/loom/loom_test.cpp"):
        compiled = subprocess.run(
            [*cache, "c++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror=return-type"]
            + [f"-I{ROOT / 'src'}", "-c", file.relative_to(tree), "-o", "object.o"],
            cwd=tree,
            capture_output=True,
            text=True,
        )
        assert compiled.returncode == 0, compiled.stderr
        assert "warning" not in compiled.stderr, compiled.stderr


@pytest.mark.parametrize(
    "names, status, text",
    [
        ([], 2, "new_target.py NAME"),
        (["Loom"], 2, "new_target.py NAME"),
        (["../x"], 2, "new_target.py NAME"),
        (["vta"], 1, "already a target vta"),
    ],
)
def test_a_name_that_is_not_new_or_no_name_is_refused(tree, names, status, text):
    before = sorted(p for p in tree.rglob("*"))
    done = run(tree, *names)
    assert done.returncode == status and text in done.stderr
    assert sorted(p for p in tree.rglob("*")) == before, "nothing is written"
