# SPDX-License-Identifier: Apache-2.0
"""weft new: what it writes into a copy of the tree compiles, its test fails, and passes once the skeleton is filled in.

Only what a skeleton touches is compiled; the rest comes from the libraries of the build.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from weft.cli import skeleton

import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build"))
COPIED = [
    "tools/new.py",
    "tools/skeletons",
    "layers.txt",
    ".clang-format",
    "docs/design/rules.md",
    "tests/unit/CMakeLists.txt",
    "tests/unit/schedule_kit.h",
    "tests/python/test_ops.py",
]


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src")
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def new(tree, kind, name):
    return subprocess.run(
        [sys.executable, tree / "tools/new.py", kind, name], capture_output=True, text=True
    )


def compiled(tree, *sources):
    cache = ["ccache"] if shutil.which("ccache") else []
    flags = [
        "-std=c++20",
        "-O0",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Isrc",
        "-Itests/unit",
    ]
    objects = []
    for source in sources:
        objects.append(f"{pathlib.Path(source).stem}.o")
        done = subprocess.run(
            [*cache, "c++", *flags, "-c", source, "-o", objects[-1]],
            cwd=tree,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    return objects


def run_test(tree, test, sources, components):
    """Compiles the sources of the copy, links them before the build's libraries, runs the test."""
    libraries = [next(iter(BUILD.glob(f"src/weft/**/libweft_{c}.a")), None) for c in components]
    if None in libraries:
        pytest.skip(f"{BUILD} holds no built libraries of {components}: build weft first")
    objects = compiled(tree, test, *sources)
    group = ["-Wl,--start-group", *libraries, "-Wl,--end-group"]
    linked = subprocess.run(
        ["c++", *objects, *group, "-lgtest_main", "-lgtest", "-pthread", "-o", "new_test"],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    assert linked.returncode == 0, linked.stderr
    return subprocess.run([tree / "new_test"], capture_output=True, text=True)


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, (path, old, text)
    path.write_text(text.replace(old, new))


def test_a_pass(tree):
    done = new(tree, "pass", "loom")
    assert done.returncode == 0 and "ninja -C build pass_loom_test" in done.stdout, done.stderr
    assert "weft_test(pass_loom_test " in (tree / "tests/unit/CMakeLists.txt").read_text()
    sources = ["src/weft/pass/loom.cpp", "src/weft/target/pipeline.cpp"]
    parts = ["pass", "machine", "arith", "ir", "base"]
    test = tree / "tests/unit/pass_loom_test.cpp"
    compiled(tree, sources[1])  # the line in the pipeline
    failed = run_test(tree, test, sources[:1], parts)
    assert failed.returncode == 1 and "write the pass" in failed.stdout, failed.stdout
    replace(tree / sources[0], "return f;", "return simplify(f);")
    replace(tree / sources[0], '#include "weft/ir/visit.h"', '#include "weft/pass/simplify.h"')
    replace(
        test,
        "    for i in range(8):\n        B[i] = A[i] + A[i]",
        "    for i in range(1):\n        B[i] = A[i] * T.float32(2)",
    )
    replace(
        test,
        "    for i in range(8):\n        B[i] = A[i] * T.float32(2)",
        "    B[0] = A[0] * T.float32(2)",
    )
    passed = run_test(tree, test, sources[:1], parts)
    assert passed.returncode == 0, passed.stdout


def test_a_step(tree):
    done = new(tree, "step", "wind_loom")
    assert done.returncode == 0 and "step_wind_loom_test" in done.stdout, done.stderr
    assert "WEFT_PRIMITIVE(WindLoom)\n" in (tree / "src/weft/schedule/primitives.def").read_text()
    step, table = "src/weft/schedule/primitives/wind_loom.cpp", "src/weft/schedule/steps.cpp"
    parts = ["schedule", "pass", "machine", "arith", "ir", "base"]
    test = tree / "tests/unit/step_wind_loom_test.cpp"
    failed = run_test(tree, test, [step, table], parts)
    assert failed.returncode == 1 and "write the step" in failed.stdout, failed.stdout
    unit = """const Var var = make_var("u");
  out.mod = with_body(s.mod, path.func,
                      replace(path, make_for(var, make_zero(var->dtype), make_const(1, var->dtype),
                                             path.target())));"""
    replace(tree / step, "out.mod = s.mod;", unit)
    replace(
        tree / step,
        "namespace weft::schedule {\n",
        "namespace weft::schedule {\nusing namespace ir;\n",
    )
    passed = run_test(tree, test, [step, table], parts)
    assert passed.returncode == 0, passed.stdout


def test_a_rule(tree):
    done = new(tree, "rule", "loom")
    assert done.returncode == 0 and "rule_loom_test" in done.stdout, done.stderr
    assert "\n**loom.** " in (tree / "docs/design/rules.md").read_text()
    sources = ["src/weft/rules/loom.cpp", "src/weft/rules/grid.cpp"]
    parts = ["rules", "schedule", "pass", "machine", "arith", "ir", "base"]
    test = tree / "tests/unit/rule_loom_test.cpp"
    failed = run_test(tree, test, sources, parts)
    assert failed.returncode == 1 and "write match_loom" in failed.stdout, failed.stdout
    rule = tree / sources[0]
    replace(rule, "return std::nullopt;", "return LoomDecisions{};")
    text = rule.read_text()
    rule.write_text(
        text[: text.index("void schedule_loom")]
        + "void schedule_loom(Schedule& sch, const Nest& nest, const LoomDecisions&) {\n"
        '  sch.bind(sch.get_loops(nest.block)[0], "threadIdx.x");\n}\n\n}  // namespace weft::rules\n'
    )
    passed = run_test(tree, test, sources, parts)
    assert passed.returncode == 0, passed.stdout


def test_an_op(tree, monkeypatch):
    done = new(tree, "op", "loom")
    assert done.returncode == 0 and "test_ops.py -k loom" in done.stdout, done.stderr
    table = (tree / "src/weft/elements/elementwise.def").read_text().splitlines()
    at = next(i for i, line in enumerate(table) if line.startswith("UNARY(loom, "))
    assert table[at - 1].startswith("UNARY(") and table[at + 1].startswith("BINARY(")
    compiled(tree, "src/weft/elements/row_ir.cpp")
    names = {"__file__": str(tree / "tests/python/test_ops.py"), "__name__": "copy"}
    exec(compile((tree / "tests/python/test_ops.py").read_text(), "test_ops.py", "exec"), names)  # noqa: S102
    assert np.isnan(names["reference"]("loom")(np.ones(3))).all(), "no value passes the test"


@pytest.mark.parametrize(
    "kind, files, lines",
    [
        ("op", [], {"src/weft/elements/elementwise.def": 1}),
        (
            "step",
            [
                "src/weft/schedule/primitives/wind_loom.cpp",
                "src/weft/schedule/primitives/wind_loom.h",
            ],
            {"src/weft/schedule/primitives.def": 1, "src/weft/schedule/primitives/all.h": 1},
        ),
        (
            "pass",
            ["src/weft/pass/wind_loom.cpp", "src/weft/pass/wind_loom.h"],
            {"src/weft/target/pipeline.cpp": 2},  # the include and the line
        ),
    ],
)
def test_how_much_is_touched(tree, kind, files, lines):
    """Beside the test of it: the files, and the lines in files that were there."""
    sources = [p for p in (tree / "src").rglob("*") if p.is_file()]
    before = {p: p.read_text("utf8").splitlines() for p in sources}
    assert new(tree, kind, "wind_loom").returncode == 0
    now = [p for p in (tree / "src").rglob("*") if p.is_file()]
    assert sorted(str(p.relative_to(tree)) for p in now if p not in before) == files
    more = {p: len(p.read_text("utf8").splitlines()) - len(before[p]) for p in sources}
    assert {str(p.relative_to(tree)): n for p, n in more.items() if n} == lines


@pytest.mark.parametrize("kind", ["op", "step", "pass", "rule"])
def test_new_files_are_formatted_and_small(tree, kind):
    if not shutil.which("clang-format"):
        pytest.skip("clang-format is not installed")
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    assert new(tree, kind, "a_rather_long_name_of_something").returncode == 0
    changed = [p for p in tree.rglob("*") if p.is_file() and before.get(p) != p.read_bytes()]
    for path in changed:
        if path.suffix in (".h", ".cpp"):
            text = subprocess.run(
                ["clang-format", path], capture_output=True, text=True, check=True
            )
            assert text.stdout == path.read_text(), path
        assert "NAME" not in path.read_text().replace("UNARY(name", "") or path in before
    files = [p for p in changed if p not in before and "unit" not in str(p)]
    assert len(files) == (0 if kind == "op" else 2)


@pytest.mark.parametrize("kind", ["op", "step", "pass", "rule"])
def test_printed_commands_can_be_typed(tree, kind):
    """Each names a program of the machine, a file of the tree that may be executed, or Python with such a file."""
    said = new(tree, kind, "loom").stdout
    commands = [
        part.strip() for line in said.splitlines() if line.startswith("  ")
        for part in line.split("&&") if " " in part.strip()
    ]  # fmt: skip
    assert len(commands) >= 4, said
    for command in commands:
        program, *words = [w for w in command.split() if not w.startswith("PYTHONPATH=")]
        if program == ".venv/bin/python":
            assert words[0] == "-m" or (ROOT / words[0]).is_file(), command
        elif "/" in program:
            assert os.access(ROOT / program, os.X_OK), command
        else:
            assert program in ("ninja", "ctest", "cmake"), command
    if kind != "op":
        assert "-DWEFT_TESTS=ON" in commands[1], "./demo builds no tests"


@pytest.mark.parametrize(
    "kind, name, status, text",
    [
        ("op", "sin", 1, "has an operation sin already"),
        ("pass", "simplify", 1, "simplify.h exists already"),
        ("step", "loops", 1, "loops.h exists already"),
        ("rule", "reduce", 1, "reduce.h exists already"),
        ("pass", "Loom", 2, "usage: weft new"),
        ("pass", "../x", 2, "usage: weft new"),
        ("loom", "x", 2, "usage: weft new"),
    ],
)
def test_names_that_are_taken_or_no_names_write_nothing(tree, kind, name, status, text):
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    done = new(tree, kind, name)
    assert done.returncode == status and text in done.stderr
    assert {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()} == before


def test_a_place_that_is_gone_writes_nothing(tree):
    table = tree / "src/weft/rules/grid.cpp"
    table.write_text(
        table.read_text().replace("constexpr Rule kRules[]", "constexpr Rule kTable[]")
    )
    before = sorted(p for p in tree.rglob("*"))
    done = new(tree, "rule", "loom")
    assert done.returncode == 1 and "nothing was written" in done.stderr
    assert sorted(p for p in tree.rglob("*")) == before


def test_the_verb_finds_the_tree_or_says_so(tree, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tree / "src/weft")
    assert skeleton.new(argparse.Namespace(kind="pass", name="loom")) == 0
    assert (tree / "src/weft/pass/loom.h").exists() and "pass loom:" in capfd.readouterr().out
    monkeypatch.chdir("/")
    monkeypatch.setattr(weft, "__file__", "/nowhere/lib/weft/__init__.py")
    with pytest.raises(weft.IOError) as caught:
        skeleton.new(argparse.Namespace(kind="pass", name="loom"))
    assert caught.value.code == "cli.new.tree"
    assert "not inside a source tree" in caught.value.message
