# SPDX-License-Identifier: Apache-2.0
"""The command line as processes: every verb, its exit status, what goes to which stream, and bad input."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import weft
from weft import _core, te

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(2)
"""
SYMBOLIC = """
@T.prim_func
def scale(a: T.handle, b: T.handle, s: T.float32):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * s
"""


def weft_(*arguments, cwd=None, status=0, **more):
    done = subprocess.run(
        [sys.executable, "-m", "weft", *map(str, arguments)],
        env={**ENVIRONMENT, **more},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "double.weft"
    path.write_text(PROGRAM)
    return path


def test_usage_is_status_2():
    for arguments in (
        [],
        ["loom"],
        ["compile"],
        ["compile", "x", "--target", "cpu", "--emit", "x"],
        ["run", "x"],
        ["run", "x", "--target", "cpu", "--number", "0"],
        ["run", "x", "--target", "cpu", "--set", "n"],
        ["serve"],
        ["serve", "--device", "cpu", "--port", "70000"],
        ["tune", "x", "--target", "cpu", "--trials", "0"],
    ):
        done = weft_(*arguments, status=2)
        assert "usage: weft" in done.stderr and done.stdout == ""


def test_help_names_every_verb_and_every_option_has_a_text():
    text = weft_("--help").stdout
    for verb in [
        "devices",
        "demo",
        "compile",
        "run",
        "tune",
        "debug",
        "serve",
        "asm",
        "dis",
        "bench",
        "errors",
        "selftest",
        "docs",
        "playground",
        "new",
    ]:
        assert f"\n    {verb}" in text
        assert weft_(verb, "--help").stdout.startswith(f"usage: weft {verb}")
    from weft.cli import parser

    verbs = next(a for a in parser()._actions if a.dest == "verb").choices
    silent = [(n, a.dest) for n, p in verbs.items() for a in p._actions if not a.help]
    assert len(verbs) == 15 and silent == []
    assert weft_("--version").stdout.strip() == f"weft {weft.__version__}"


@pytest.mark.targets("qpu")
def test_devices():
    lines = weft_("devices").stdout.splitlines()
    assert len(lines) == len(weft.devices())
    assert any(line.startswith("qpu:hw") and " absent " in line for line in lines)
    assert any(line.startswith("cpu ") and " present " in line for line in lines)


@pytest.mark.targets("qpu")  # named among the targets with an assembler
def test_compile_emits_each_form(program, tmp_path):
    ir = weft_("compile", program, "--target", "cpu", "--emit", "ir").stdout
    assert weft.ir.structural_equal(weft.script.from_source(ir), weft.script.from_source(PROGRAM))
    c = weft_("compile", program, "--target", "c")
    assert "float" in c.stdout and c.stderr == ""
    assert "define" in weft_("compile", program, "--target", "cpu").stdout
    assert "__global__" in weft_("compile", program, "--target", "cuda:arch=sm_80").stdout
    done = weft_("compile", program, "--target", "cpu", "--emit", "binary", cwd=tmp_path)
    assert done.stdout == "" and done.stderr == ""  # a pipe: silent
    assert weft.load(tmp_path / "out.weft-mod").functions == ["main"]
    out = tmp_path / "x.c"
    weft_("compile", program, "--target", "c", "-o", out)
    assert out.read_text().strip() == c.stdout.strip()
    asm = weft_("compile", program, "--target", "cpu", "--emit", "asm", status=1)
    assert "error[cli.compile.asm]" in asm.stderr and "qpu" in asm.stderr


def test_compile_prints_passes_and_writes_a_trace(program, tmp_path):
    done = weft_("compile", program, "--target", "c", "--print-after", "all")
    passes = [line.split()[2] for line in done.stderr.splitlines() if line.startswith("# after ")]
    assert len(passes) > 5 and "flatten_buffers" in passes
    one = weft_("compile", program, "--target", "c", "--print-after", "flatten_buffers")
    assert one.stderr.count("# after ") == 1 and one.stdout == done.stdout
    none = weft_("compile", program, "--target", "c", "--print-after", "loom", status=1)
    assert "error[cli.compile.pass]" in none.stderr and "flatten_buffers" in none.stderr
    weft_("compile", program, "--target", "c", "--trace", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {"flatten_buffers"} <= {e["name"] for e in events}


def test_run_checks_times_and_traces(program, tmp_path):
    done = weft_("run", program, "--target", "cpu", "--check", "--stats")
    assert done.stdout.startswith("main on cpu: TimeResult(") and "against ref" in done.stdout
    assert "bytes.live" in done.stdout
    weft_("run", program, "--target", "ref", "--trace", tmp_path / "t.json", "--number", "1")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {"compiler", "ref"} <= {e["args"]["name"] for e in events if e["name"] == "process_name"}
    weft_("compile", program, "--target", "cpu", "--emit", "binary", "-o", tmp_path / "m.weft-mod")
    again = weft_("run", tmp_path / "m.weft-mod", "--target", "cpu", "--repeat", "2")
    assert "n=2" in again.stdout


def test_run_takes_scalars_and_symbolic_extents(tmp_path):
    path = tmp_path / "scale.weft"
    path.write_text(SYMBOLIC)
    options = ["run", path, "--target", "cpu"]
    weft_(*options, "--set", "A=1000", "--set", "s=2.5", "--check")
    for given, slug in (
        (["--set", "A=1000"], "cli.run.unset"),
        (["--set", "s=2.5"], "cli.run.unset"),
        (["--set", "A=10", "--set", "s=x"], "cli.run.set"),
        (["--set", "A=10x10", "--set", "s=1"], "cli.run.extents"),
        (["--set", "A=10", "--set", "s=1", "--set", "Z=1"], "cli.run.name"),
    ):
        assert f"error[{slug}]" in weft_(*options, *given, status=1).stderr


def test_errors_page():
    rows = weft_("errors").stdout.splitlines()
    assert len(rows) > 200 and all(re.match(r"[a-z][\w.{…}]+( |$)", row) for row in rows)
    one = weft_("errors", "target.unknown").stdout.splitlines()
    assert one[0] == "error[target.unknown]  weft.ArgumentError"
    assert one[1].startswith("  says          there is no target") and max(map(len, one)) <= 110
    assert [line for line in one if "src/weft/target/build.cpp" in line]
    assert "error[cli.errors.slug]" in weft_("errors", "no.such.slug", status=1).stderr


@pytest.mark.targets("qpu")
def test_bad_input_is_status_1_with_a_slug(tmp_path, program):
    cases = {
        "target.unknown": ["compile", program, "--target", "cpy"],
        "device.absent": None,
        "parse.": None,
    }
    done = weft_(*cases["target.unknown"], status=1)
    assert "error[target.unknown]" in done.stderr and "did you mean" in done.stderr
    bad = tmp_path / "bad.weft"
    bad.write_text(PROGRAM.replace("A[vi] * T.float32(2)", "A[vi] * * 2"))
    done = weft_("compile", bad, "--target", "cpu", status=1)
    assert "bad.weft:7:" in done.stderr and "^" in done.stderr
    done = weft_("run", program, "--target", "c", "--device", "qpu:hw", status=1)
    assert "error[" in done.stderr and "qpu:hw" in done.stderr
    done = weft_("compile", tmp_path / "missing.weft", "--target", "cpu", status=1)
    assert "missing.weft" in done.stderr
    damaged = tmp_path / "m.weft-mod"
    damaged.write_bytes(b"WEFTMOD\nrubbish")
    assert "error[module.file" in weft_("run", damaged, "--target", "cpu", status=1).stderr


@pytest.mark.skipif("qpu" not in _core.targets(), reason="built without the qpu target")
def test_asm_and_dis_are_inverse(tmp_path):
    text = "mov ra0, 5 ; nop\nadd rb3, ra0, r1 ; v8min r0, r1, r2\nthrend\nnop\nnop\n"
    source = tmp_path / "k.s"
    source.write_text("add ra0, r1, r2\nnop\nnop\n")
    done = weft_("asm", source, "--target", "qpu")
    assert done.stdout == done.stderr == ""
    words = (tmp_path / "k.bin").read_bytes()
    assert len(words) == 24
    again = tmp_path / "again.s"
    again.write_text(weft_("dis", tmp_path / "k.bin", "--target", "qpu").stdout)
    weft_("asm", again, "--target", "qpu", "-o", tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == words
    source.write_text(text.replace("add", "addd"))
    bad = weft_("asm", source, "--target", "qpu", status=1)
    assert "error[qpu.asm." in bad.stderr and "k.s:" in bad.stderr and "^" in bad.stderr
    (tmp_path / "odd.bin").write_bytes(words[:-3])
    odd = weft_("dis", tmp_path / "odd.bin", "--target", "qpu", status=1)
    assert "error[qpu.words.size]" in odd.stderr
    none = weft_("asm", source, "--target", "cpu", status=1)
    assert "error[target.assembler.none]" in none.stderr and "qpu" in none.stderr


@pytest.mark.parametrize("target, dtype", [("qpu", "float32"), ("vta", "int32"), ("vta", "int8")])
def test_what_dis_prints_of_a_module_assembles(tmp_path, target, dtype):
    x = te.placeholder((50, 3), dtype, "X")
    y = te.compute((50, 3), lambda i, j: x[i, j] * 3 + 1, "Y")
    z = te.compute((50, 3), lambda i, j: y[i, j] * 2 - 5, "Z")
    module = weft.build(te.create_prim_func([x, z]), target=target)
    module.save(str(tmp_path / "m.weft"))
    listed = weft_("dis", tmp_path / "m.weft", "--target", target).stdout
    (tmp_path / "m.s").write_text(listed)
    weft_("asm", tmp_path / "m.s", "--target", target)
    words = weft_("dis", tmp_path / "m.bin", "--target", target).stdout
    assert words.strip(), listed
    instructions = sum(
        line.startswith(("%", "0x")) for line in listed.splitlines()
    )  # of those that a listing numbers
    assert len(words.splitlines()) == instructions


@pytest.mark.skipif("vta" not in _core.targets(), reason="built without the vta target")
def test_asm_and_dis_of_vta(tmp_path):
    (tmp_path / "f.s").write_text("finish pop=-,- push=prev,-\n")
    weft_("asm", tmp_path / "f.s", "--target", "vta")
    assert len((tmp_path / "f.bin").read_bytes()) == 16
    text = weft_("dis", tmp_path / "f.bin", "--target", "vta").stdout
    assert text == "finish pop=-,- push=prev,-\n"
    (tmp_path / "odd.bin").write_bytes(b"123")
    odd = weft_("dis", tmp_path / "odd.bin", "--target", "vta", status=1)
    assert "error[vta.words.size]" in odd.stderr


def test_bench(tmp_path):
    assert "GEMM" in weft_("bench", "--list").stdout
    done = weft_("bench", "step", "--json", tmp_path / "b.json")
    assert done.stdout.splitlines()[1].startswith("step") and done.stderr == ""
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert [r["name"] for r in rows] == ["step"] and rows[0]["value"] > 0
    assert "error[bench.unknown]" in weft_("bench", "loom", status=1).stderr


def test_tune(tmp_path, program):
    options = ["tune", program, "--target", "cpu", "--database", tmp_path / "t.db"]
    done = weft_(*options, "--trials", "4")
    assert done.stderr == "" and "def main" in done.stdout
    weft.script.from_source(done.stdout)
    weft_(*options, "--trials", "4", "-o", tmp_path / "best.weft")
    weft_("run", tmp_path / "best.weft", "--target", "cpu", "--check")
    shipped, own = tmp_path / "shipped.db", tmp_path / "own.db"
    done = weft_("tune", "--database", tmp_path / "t.db", "--export", shipped)
    assert done.stderr == f"exported 4 trials to {shipped}\n" and done.stdout == ""
    done = weft_("tune", "--database", own, "--merge", shipped)
    assert done.stderr == f"merged 4 trials of {shipped}\n"
    again = weft_("tune", program, "--target", "cpu", "--database", own, "--trials", "4")
    assert "def main" in again.stdout  # nothing left to measure
    assert "error[cli.tune.nothing]: no file" in weft_("tune", status=1).stderr
    assert (
        "error[cli.tune.target]: --target is not given" in weft_("tune", program, status=1).stderr
    )
    absent = weft_("tune", "--database", own, "--merge", tmp_path / "x.db", status=1)
    assert "error[tune.database.path]" in absent.stderr


def test_a_closed_pipe_is_no_traceback(program):
    first = subprocess.Popen(
        [sys.executable, "-m", "weft", "errors"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first.stdout.read(10)
    first.stdout.close()
    assert b"Traceback" not in first.stderr.read()
    assert first.wait(timeout=300) in (0, 1)
    first.stderr.close()


def test_python_m_weft_and_pathlike(program):
    path = pathlib.Path(program)
    assert weft_("compile", path, "--target", "c").stdout
