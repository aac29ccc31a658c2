# SPDX-License-Identifier: Apache-2.0
"""`weft debug`: the same results, cycles and statistics as without it, the commands on each machine, refusals, and the
sessions of docs/guide/debugging.md. `python tests/python/test_debug.py` writes that page's sessions anew."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guide/debugging.md"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python")])}
WEFT = [sys.executable, "-m", "weft"]
CSLC = [
    sys.executable,
    "-c",
    "import sys; from weft.wse_tools import cslc_main as m; sys.exit(m())",
]
CS_PYTHON = [
    sys.executable,
    "-c",
    "import sys; from weft.wse_tools import cs_python_main as m; sys.exit(m())",
]


def run(command, folder, text=""):
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def debug(folder, commands, *program):
    """Standard output of a session; the exit status must be 0."""
    done = run([*WEFT, "debug", *program], folder, "\n".join(commands) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def answers(output, command):
    """What a command printed."""
    part = output.split(f"(weft) {command}\n", 1)
    assert len(part) == 2, output
    return part[1].split("(weft) ")[0]


# ---- the same as without ----

PROGRAMS = """
import hashlib, sys
import numpy as np
import weft
from weft import te

machine = sys.argv[1]
rng = np.random.default_rng(3)


def run(name, tensors, arrays):
    device = weft.device(machine)
    module = weft.build(te.create_prim_func(tensors), target=machine)
    held = [weft.array(a, device=machine) for a in arrays]
    device.clear_stats()
    module(*held)
    module(*held)
    out = hashlib.sha256(np.ascontiguousarray(held[-1].numpy()).tobytes()).hexdigest()
    rows = sorted(device.stats().items())
    print("result", name, out[:16], hashlib.sha256(repr(rows).encode()).hexdigest()[:16], dict(rows)["cycles"])


def elementwise(n, dtype):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: A[i] * 3 + 1, name="B")
    run(f"elementwise {n}", [A, B], [rng.integers(-5, 5, n).astype(dtype), np.zeros(n, dtype)])


def product(m, n, k, dtype, sums):
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((n, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype(sums) * B[j, r].astype(sums), axis=r), name="C")
    a, b = (rng.integers(-4, 4, s).astype(dtype) for s in ((m, k), (n, k)))
    run(f"product {m} {n} {k}", [A, B, C], [a, b, np.zeros((m, n), sums)])


def sums(m, n, dtype):
    A = te.placeholder((m, n), dtype, name="A")
    r = te.reduce_axis((0, n), name="r")
    B = te.compute((m,), lambda i: te.sum(A[i, r], axis=r), name="B")
    run(f"sums {m} {n}", [A, B], [rng.integers(-4, 4, (m, n)).astype(dtype), np.zeros(m, dtype)])


if machine.startswith("vta"):
    for shape in ((16, 16, 16), (5, 17, 33), (40, 48, 64)):
        product(*shape, "int8", "int32")
    elementwise(200, "int32")
else:
    for n in (1, 16, 100, 1000):
        elementwise(n, "float32")
        elementwise(n, "int32")
    product(8, 8, 8, "float32", "float32")
    product(5, 17, 9, "float32", "float32")
    sums(13, 37, "float32")
"""

BUSY = ["break launch"] + 60 * [
    "stepi 7",
    "watch *64",
    "units",
    "waiting all",
    "where",
    "cycle 30",
    "delete 2",
]


def results(text):
    return [line for line in text.splitlines() if line.startswith("result")]


@pytest.mark.parametrize("machine", ["qpu", "qpu:engine=translated,counts=off", "vta", "wse:3x2"])
def test_results_cycles_and_statistics_are_those_of_a_free_run(machine, tmp_path):
    (tmp_path / "many.py").write_text(PROGRAMS)
    free = run([sys.executable, "many.py", machine], tmp_path)
    assert free.returncode == 0, free.stderr
    expected = results(free.stdout)
    assert len(expected) >= 4
    for commands in (["continue"], [*BUSY, "delete", "continue"]):
        assert results(debug(tmp_path, commands, "many.py", machine)) == expected


LONG = {
    "layout.csl": """
layout {
  @set_rectangle(3, 1);
  const c = @get_color(0);
  for (@range(u16, 3)) |x| { @set_tile_code(x, 0, "pe.csl", .{ .n = 20000 + 3000 * x }); }
  @set_color_config(0, 0, c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } } });
  @set_color_config(2, 0, c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
}
""",
    "pe.csl": """
param n: u16;
export var sum: u32 = 0;
export var seen = @zeros([4]u32);
const word = @get_dsd(fabout_dsd, .{
  .extent = 1, .fabric_color = @get_color(0), .output_queue = @get_output_queue(3) });
var k: u16 = 0;
fn add(x: u32) void {
  sum = sum * 3 + x;
}
task main() void {
  for (@range(u16, n)) |i| {
    add(@as(u32, i));
  }
  if (n == 20000) {
    for (@range(u16, 4)) |i| { @mov32(word, sum + @as(u32, i)); }
  }
}
task take(x: u32) void {
  seen[k] = x;
  k += 1;
  for (@range(u16, 50)) |i| { add(x); }
}
comptime {
  @bind_local_task(main, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
  if (n != 20000) { @bind_data_task(take, @get_data_task_id(@get_color(0))); }
}
""",
    "run.py": """
from weft import wse
wse.compile_csl("layout.csl", "out", fabric_dims=(10, 3), fabric_offsets=(4, 1))
r = wse.SdkRuntime("out", memcpy_required=False)
r.load(); r.run(); r.stop()
print("result", r.cycles(), [r.read_symbol(4 + x, 1, "sum", "uint32")[0] for x in range(3)])
print("result", r.read_symbol(5, 1, "seen", "uint32"), r.stats())
""",
}


@pytest.fixture(scope="module")
def long_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    for name, text in LONG.items():
        (folder / name).write_text(text)
    free = run([sys.executable, "run.py"], folder)
    assert free.returncode == 0, free.stderr
    return folder, results(free.stdout)


def test_csl_that_would_run_as_native_code(long_program):
    folder, expected = long_program
    assert "'engine.native': 3" in expected[1]  # the free run translated all programs
    assert results(debug(folder, ["continue"], "run.py")) == expected


def test_csl_stops_at_tasks_functions_and_changes(long_program):
    folder, expected = long_program
    commands = """break take
break add on 1,0
breakpoints
continue
stack
finish
next
step
delete 2
continue
wavelets
queues
tasks
print sum as hex
watch seen
delete 1
continue
break end
delete 3
continue
print seen on 2,0
continue"""
    out = debug(folder, commands.splitlines(), "run.py")
    assert results(out) == expected
    assert "breakpoint 1: take, pe.csl:20, 2 places in the code" in answers(out, "break take")
    assert "  0  add  pe.csl:9\n  1  main  pe.csl:13\n" in answers(out, "stack")
    assert "pe.csl:12 in main" in answers(out, "finish")
    assert "pe.csl:13 in main" in answers(out, "next")
    assert "in add" in answers(out, "step")
    assert "on the way from pe 0,0  color 0" in answers(out, "wavelets")
    assert "holds 3" in answers(out, "queues")
    assert "data task 0  take" in answers(out, "tasks")
    assert "sum = 0x" in answers(out, "print sum as hex")
    assert "[0] 0 -> 3635216016" in out.split("delete 1\n")[1]
    assert "after *14 stx.u32  memory[r2 + r1 * 4] = r0 (pe.csl:20) on pe 1,0" in out
    assert "launch 1 has ended after" in out
    assert "3635216016 3635216017 3635216018 3635216019" in answers(out, "print seen on 2,0")


def test_numbers_beyond_all_lines_and_cycles(long_program):
    folder, expected = long_program
    lines = ["list 4294967300", "list", "list 2147483647", "list pe.csl:9223372036854775807"]
    steps = [
        "cycle 9223372036854775807",
        "break cycle 9223372036854775807",
        "code 9223372036854775807",
    ]
    out = debug(folder, ["stepi", *lines, *steps[1:], steps[0]], "run.py")
    for command in lines:
        assert "lines" in answers(out, command), out
    assert results(out) == expected and "launch 1 has ended" in answers(out, steps[0])


def test_a_host_script_and_its_programs_under_the_debugger(tmp_path):
    source = ROOT / "examples/wse/gemv"
    options = "--fabric-dims=15,3 --fabric-offsets=4,1 --memcpy --channels=1".split()
    params = "--params=width:8,rows:16,cols:4"
    for arch in ("wse2", "wse3"):
        out = tmp_path / arch
        done = run(
            [*CSLC, "layout.csl", *options, params, f"--arch={arch}", "-o", str(out)], source
        )
        assert done.returncode == 0, done.stderr
        free = run([*CS_PYTHON, "run.py", "--name", str(out)], source)
        assert free.stdout.startswith("SUCCESS!"), free.stderr
        commands = ["break multiply", "continue", "units", "break cycle 1700", "delete 1"]
        commands += ["continue", "waiting all", "operations all", "continue"]
        text = debug(source, commands, "python", "run.py", "--name", str(out))
        assert text.endswith(free.stdout)
        assert "pe.csl:27 in multiply" in answers(text, "continue")
        assert re.search(r"pe \d,0  cycle 17\d\d", text)
        assert "has not called unblock_cmd_stream" in answers(text, "waiting all")


STUCK = {
    "layout.csl": """
param memcpy_params: comptime_struct;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("start", fn()void);
}
""".replace("param memcpy_params: comptime_struct;\n", ""),
    "pe.csl": """
param memcpy_params: comptime_struct;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
task held() void { sys_mod.unblock_cmd_stream(); }
fn start() void { @activate(@get_local_task_id(10)); }
comptime {
  @bind_local_task(held, @get_local_task_id(10));
  @block(@get_local_task_id(10));
  @export_symbol(start);
}
""",
    "run.py": """
from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime

def main():
    runner = SdkRuntime("out")
    runner.load()
    runner.run()
    runner.launch("start", nonblock=False)
    runner.launch("start", nonblock=False)
    runner.stop()

main()
""",
}


def test_a_deadlock_stops_where_it_is_and_the_traceback_is_the_scripts(tmp_path):
    for name, text in STUCK.items():
        (tmp_path / name).write_text(text)
    options = "--fabric-dims=8,3 --fabric-offsets=4,1 --memcpy --channels=1 -o out".split()
    done = run([*CSLC, "layout.csl", *options], tmp_path)
    assert done.returncode == 0, done.stderr
    commands = "continue\nwaiting all\ntasks\ncontinue\n"
    done = run([*WEFT, "debug", "run.py"], tmp_path, commands)
    assert done.returncode == 1
    assert "error[wse.command.stalled]" in answers(done.stdout, "continue")
    assert "stopped: the program failed" in done.stdout
    assert "activated and blocked: local task 10 (held)" in answers(done.stdout, "waiting all")
    assert "local task 10  held  activated, blocked" in answers(done.stdout, "tasks")
    free = run([*CS_PYTHON, "run.py"], tmp_path)
    for text in (done.stderr, free.stderr):
        frames = re.findall(r'File "(.*?)", line (\d+), in (\S+)', text)
        names = [(pathlib.Path(f).name, function) for f, _, function in frames]
        assert names == [("run.py", "<module>"), ("run.py", "main")], text
        assert "error[wse.command.stalled]" in text
    assert free.returncode == 1


# ---- the machines ----

QPU = """
import sys
import numpy as np
import weft
from weft import te

n = 40
A = te.placeholder((n,), "float32", name="A")
B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
module = weft.build(te.create_prim_func([A, B]), target="qpu")
x = weft.array(np.arange(n, dtype=np.float32), device="qpu")
y = weft.zeros((n,), dtype="float32", device="qpu")
for _ in range(3):
    module(x, y)
print("result", y.numpy()[:4])
"""


@pytest.fixture(scope="module")
def qpu_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qpu")
    (folder / "scale.py").write_text(QPU)
    return folder


def test_steps_count_from_where_the_stop_is(qpu_program):
    out = debug(qpu_program, ["stepi", "stepi 3", "cycle 40", "delete", "continue"], "scale.py")
    assert "  *1  " in answers(out, "stepi")
    assert "  *4  " in answers(out, "stepi 3")
    cycle = int(re.search(r"cycle (\d+)", answers(out, "cycle 40")).group(1))
    assert cycle >= 4 * 4 + 40


def test_launches_and_ends(qpu_program):
    commands = ["break launch 3", "break end 1", "continue", "print B[0:4]", "continue", "where"]
    out = debug(qpu_program, [*commands, "breakpoints", "delete", "continue"], "scale.py")
    ended = answers(out, "continue")
    assert "launch 1 has ended after" in ended and "breakpoint 2 (end 1)" in ended
    assert "[0] 1 3 5 7" in answers(out, "print B[0:4]")
    assert "launch 3: kernel" in out and "launch 2: kernel" not in out
    assert "1  break launch 3  hits 1" in out


def test_launches_of_a_program_that_stays_on_the_wafer(tmp_path):
    text = QPU.replace("qpu", "wse:2x2")
    (tmp_path / "scale.py").write_text(text)
    commands = [
        "break launch 3",
        "break end 1",
        "continue",
        "waiting all",
        "print B on pe 0,0",
        "continue",
    ]
    commands += ["where", "break end", "continue", "breakpoints", "delete", "continue"]
    out = debug(tmp_path, commands, "scale.py")
    assert "result [1. 3. 5. 7.]" in out
    ended, third = (part for part in out.split("(weft) ") if part.startswith("continue")), out
    first, second, last = [next(ended) for _ in range(3)]
    assert "launch 1 has ended after" in first and "breakpoint 2 (end 1)" in first, first
    assert "still waits" not in out
    assert "launch 3: 2 x 2 PEs" in second and "launch 2" not in second, second
    assert "launch 3 has ended after" in last and "(end)" in last, last
    # Launches of one program take the same time; the first one's arguments were sent before it.
    cycles = re.findall(r"launch \d has ended after (\d+) cycles", third)
    assert len(cycles) == 2 and int(cycles[1]) <= int(cycles[0])
    assert "1  break launch 3  hits 1" in answers(out, "breakpoints")
    stepped = debug(tmp_path, ["stepi", "delete", *["cycle 100000"] * 4], "scale.py")
    assert [f"launch {k} has ended after" in stepped for k in (1, 2, 3)] == [True] * 3
    assert [f"launch {k}: 2 x 2 PEs" in stepped for k in (1, 2, 3)] == [True] * 3


def test_a_watch_names_the_change_and_its_instruction(qpu_program):
    out = debug(qpu_program, ["watch B[1] as hex", "continue", "delete", "continue"], "scale.py")
    text = answers(out, "continue")
    assert "stopped: watch 1 (B[1] as hex)" in text
    assert "[1] 0x00000000 -> 0x40400000" in text
    assert re.search(r"after \*\d+ .* on qpu 0", text)


def test_values_of_other_types_and_memory(qpu_program):
    commands = ["print A[1] as u32", "print A[1] as u8", "print A[2:6] as f16", "print r0"]
    out = debug(qpu_program, [*commands, "print vpm[0:2]", "continue"], "scale.py")
    assert "A[1] = 1065353216" in answers(out, commands[0])
    assert "A[1] = 0" in answers(out, commands[1])
    assert "float16[80]" in answers(out, commands[2])
    assert "int32[16]" in answers(out, "print r0")


def test_lines_fit_eighty_columns_and_commands_may_be_cut_short(qpu_program):
    commands = ["help", "registers all", "queues all", "units", "b *20 on qpu 1", "c", "reg"]
    out = debug(qpu_program, [*commands, "code 40", "uniforms all", "del", "c"], "scale.py")
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert "stopped: breakpoint 1 (*20 on qpu 1)" in answers(out, "c")


REFUSALS = [
    ("jump 3", "debug.command", '"jump" is no command', "legal: step, next"),
    ("brek 3", "debug.command", '"brek" is no command', 'did you mean "break"'),
    ("step x", "debug.arguments", '"x" is not a number of at least 1', "legal: step [N]"),
    ("continue 3", "debug.arguments", '"3" is too much', "legal: continue"),
    ("break", "debug.arguments", "a place is missing", "legal: break LINE"),
    ("break 3 4", "debug.arguments", '"3 4" is no place', "legal: break LINE"),
    ("break cycle", "debug.arguments", "the cycle's number is missing", "legal: break LINE"),
    ("break 3", "debug.place", 'line "3" has no code', "legal: *N"),
    ("break nowhere", "debug.place", '"nowhere" names no place', "or a function: main"),
    ("break *4000", "debug.place", "has no instruction 4000", "command code lists"),
    ("break *3 on qpu 12", "debug.unit", 'no unit "qpu 12"', "qpu 0 to qpu 11"),
    ("unit load", "debug.unit", 'no unit "load"', "qpu 0 to qpu 11"),
    ("print C", "debug.name", 'qpu 0 has no "C"', "legal: A, B, r0 to r5"),
    ("print A[40]", "debug.range", "elements 40 to 40 of A", "it has 40 of type float32"),
    ("print A[3:2]", "debug.range", "of A", "it has 40"),
    ("print A[9223372036854775807]", "debug.range", "of A", "it has 40"),
    ("print A[9223372036854775807:1]", "debug.range", "of A", "it has 40"),
    ("watch A[1:9223372036854775807]", "debug.range", "of A", "it has 40"),
    ("print *0x10000[9223372036854775807]", "debug.range", "elements 0 to", "of type uint32"),
    ("print A[3", "debug.value", '"A[3": "[" without "]" at the end', "legal: NAME"),
    ("print A[x]", "debug.value", '"x" is no number', "legal: NAME"),
    ("print A as f80", "debug.type", '"f80" is no type of a value', "legal: f16, bf16"),
    ("memory 0x7fffffff0", "debug.memory", "has no memory at 0x7fffffff0", "print names an array"),
    ("delete 3", "debug.number", "there is no breakpoint 3", "there are none"),
    ("finish", "debug.finish", "qpu 0 is not inside a function", "continue, or break"),
    ("help jump", "debug.command", '"jump" is no command', "help lists all commands"),
    ("list nowhere", "debug.arguments", '"nowhere" is no line', "legal: list"),
    ("list x.csl:3", "debug.place", 'no code comes from a file "x.csl"', "files with code: none"),
]


def test_refusals_say_what_was_asked_found_and_legal(qpu_program):
    out = debug(qpu_program, [row[0] for row in REFUSALS] + ["continue"], "scale.py")
    for command, slug, message, more in REFUSALS:
        text = " ".join(answers(out, command).split())
        assert f"error[{slug}]:" in text, (command, text)
        assert message in text and more in text, (command, text)
    assert "result" in out  # none of them moved or ended the program


def test_cycles_that_have_passed_are_refused(qpu_program):
    out = debug(qpu_program, ["cycle 100", "break cycle 3", "continue"], "scale.py")
    text = answers(out, "break cycle 3")
    assert "error[debug.cycle]: cycle 3 has passed" in text
    assert "the machine is at cycle" in text
    # Each launch has cycles of its own.
    commands = ["break launch 2", "continue", "break cycle 3", "continue"]
    out = debug(qpu_program, [*commands, "delete", "continue"], "scale.py")
    assert "breakpoint 2: cycle 3" in answers(out, "break cycle 3")
    assert "breakpoint 2 (cycle 3)" in out and "result" in out


def test_quit_the_end_of_input_and_files_of_commands(qpu_program):
    for commands in (["quit"], ["stepi"], []):
        assert "result" not in debug(qpu_program, commands, "scale.py")
    (qpu_program / "stops.txt").write_text("break *5\n# a remark\n\ncontinue\n")
    out = debug(qpu_program, ["delete", "continue"], "--command", "stops.txt", "scale.py")
    assert "stopped: breakpoint 1 (*5)" in out and "result" in out


def test_a_script_that_goes_on_after_quit_is_stopped_again(tmp_path):
    (tmp_path / "stubborn.py").write_text(
        QPU.replace(
            "    module(x, y)",
            "    try:\n        module(x, y)\n    except weft.Error as e:\n        print(e.code)",
        )
    )
    out = debug(tmp_path, ["quit"], "stubborn.py")
    assert out.count("debug.quit\n") == 3 and out.count("(weft)") == 1


def test_errors_of_the_command_line_and_of_the_script(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    raise KeyError('x')\nf()\n")
    (tmp_path / "three.py").write_text("import sys\nsys.exit(3)\n")
    for arguments, text in (
        ([], "there is no program to debug"),
        (["none.py"], "there is no file 'none.py'"),
        (["--csl", "out", "bad.py"], "--csl out and the program 'bad.py' are both given"),
        (["--csl", "nowhere"], "nowhere"),
        (["--command", "none.txt", "bad.py"], 'cannot use "none.txt"'),
    ):
        done = run([*WEFT, "debug", *arguments], tmp_path)
        assert done.returncode == 1 and text in done.stderr, done.stderr
        if "--command" not in arguments and "nowhere" not in arguments:
            assert "error[cli.debug.program]" in done.stderr
        assert "Traceback" not in done.stderr
    done = run([*WEFT, "debug", "bad.py"], tmp_path)
    assert done.returncode == 1 and "KeyError: 'x'" in done.stderr
    assert re.findall(r'File ".*?(\w+\.py)", line', done.stderr) == ["bad.py", "bad.py"]
    assert run([*WEFT, "debug", "three.py"], tmp_path).returncode == 3


def test_vta_units_memories_and_names(tmp_path):
    script = re.search(r"`product.py`:\n\n```python\n(.*?)```", PAGE.read_text(), re.S).group(1)
    (tmp_path / "product.py").write_text(script)
    commands = ["units", "queues all", "break on store", "continue", "tokens", "print acc[0:4]"]
    commands += ["print wgt[0:4]", "where on fetch", "uops on compute", "memory 0 4", "step"]
    out = debug(tmp_path, [*commands, "print B[0:4]", "delete", "continue"], "product.py")
    for unit in ("fetch", "load", "compute", "store"):
        assert unit in answers(out, "units")
    assert "[0] 64 64 64 64" in answers(out, "print acc[0:4]")
    assert "[0] 2 2 2 2" in answers(out, "print wgt[0:4]")
    assert "fetch" in answers(out, "where on fetch")
    assert out.endswith("[64 64 64 64]\n")


def test_a_stream_that_deadlocks_stops_before_the_error(tmp_path):
    (tmp_path / "asm.py").write_text(
        QPU.replace("qpu", "vta")
        .replace('"float32"', '"int32"')
        .replace("np.float32", "np.int32")
        .replace("A[i] * 2.0 + 1.0", "A[i] * 2 + 1")
    )
    out = debug(tmp_path, ["waiting", "units", "continue"], "asm.py")
    assert "waits for a token compute->store" in answers(out, "units")
    assert "result [1 3 5 7]" in out


# ---- the page ----


def _sessions(text):
    """(start, end, files before it, lines) of each console block of the page."""
    files = {}
    for match in re.finditer(r"(?:`([\w.]+)`:\n\n)?```(\w+)\n(.*?)```", text, re.S):
        if match.group(2) == "console":
            yield match.start(3), match.end(3), dict(files), match.group(3).splitlines()
        elif match.group(1):
            files[match.group(1)] = match.group(3)


def _play(files, lines):
    """The session as it is now: its commands, run."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (pathlib.Path(folder) / name).write_text(text)
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)]):
            words = lines[start].split()[1:]
            command = {"weft": WEFT, "cslc": CSLC}[words[0]] + words[1:]
            given = [line[7:] for line in lines[start + 1 : end] if line.startswith("(weft) ")]
            done = run(command, folder, "".join(line + "\n" for line in given))
            assert done.returncode == 0, done.stdout + done.stderr
            out += [lines[start], *(done.stdout + done.stderr).splitlines()]
    return out


def test_the_sessions_of_the_page_are_what_happens():
    sessions = list(_sessions(PAGE.read_text()))
    assert len(sessions) == 3
    for _, _, files, lines in sessions:
        assert _play(files, lines) == lines


def test_the_page_names_every_command(qpu_program):
    text = PAGE.read_text()
    out = answers(debug(qpu_program, ["help", "continue"], "scale.py"), "help")
    commands = re.findall(r"^  (\w+) ", out, re.M)
    assert len(commands) > 20
    for command in commands:
        assert re.search(rf"`{command}\b", text) or f"(weft) {command}" in text, command


if __name__ == "__main__":
    page = PAGE.read_text()
    for begin, end, given_files, given_lines in reversed(list(_sessions(page))):
        page = page[:begin] + "\n".join(_play(given_files, given_lines)) + "\n" + page[end:]
    PAGE.write_text(page)
