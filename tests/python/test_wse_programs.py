# SPDX-License-Identifier: Apache-2.0
"""CSL programs of our own, run as a user runs them: one per feature, and whole ones with their command scripts."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/targets/wse/programs"
pytest.importorskip("weft")
from present import wafer  # noqa: E402

wse = wafer()

LAYOUT = 'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
START = """
task first_task() void { %s }
comptime {
  @bind_local_task(first_task, @get_local_task_id(8));
  @activate(@get_local_task_id(8));
}
"""


def features():
    """(name, architecture, files, expected values) of each program of features.txt."""
    preludes, out = {}, []
    for text in re.split(r"^==== ", (PROGRAMS / "features.txt").read_text(), flags=re.M)[1:]:
        head, _, rest = text.partition("\n")
        name, *marks = head.split()
        if marks == ["prelude"]:
            preludes[name] = rest
            continue
        expected = re.findall(r"^## (\w+) (\w+) (.*)$", rest, re.M)
        parts = re.split(r"^----(.*)\n", re.sub(r"^## .*\n", "", rest, flags=re.M), flags=re.M)
        files = {parts[k].strip(): parts[k + 1] for k in range(3, len(parts), 2)}
        prelude = next((preludes[m[1:]] for m in marks if m[0] == "+"), "")
        files["pe.csl"] = prelude + parts[0] + START % parts[2]
        for arch in [m for m in marks if m[0] != "+"] or ["wse2", "wse3"]:
            out.append((name, arch, files, expected))
    return out


def compiled(folder, files, arch="wse2"):
    for path, text in {"layout.csl": LAYOUT, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"), arch=arch)
    return str(folder / "out")


@pytest.mark.parametrize(
    "name,arch,files,expected", [pytest.param(*f, id=f"{f[0]}-{f[1]}") for f in features()]
)
def test_feature(name, arch, files, expected, tmp_path):
    out = compiled(tmp_path, files, arch)
    assert expected
    for engine in ("bytecode", "native"):
        runner = wse.SdkRuntime(out, memcpy_required=False, engine=engine)
        runner.load()
        runner.run()
        runner._call("stop")
        for symbol, dtype, values in expected:
            want = np.array(
                [float(v) if dtype[0] == "f" else int(v) for v in values.split()]
            ).astype(dtype)
            got = runner.read_symbol(0, 0, symbol, dtype)[: want.size]
            np.testing.assert_array_equal(got, want, f"{symbol} on {engine}")


TOOLS = """
cslc() { "$PYTHON" -c "import sys; from weft_wse.compiler import cslc_main; sys.exit(cslc_main())" "$@"; }
cs_python() { "$PYTHON" -c "import sys; from weft_wse.script import cs_python_main; sys.exit(cs_python_main())" "$@"; }
. ./commands.sh
"""


@pytest.mark.parametrize("name", sorted(p.parent.name for p in PROGRAMS.glob("*/commands.sh")))
def test_program(name, tmp_path):
    for f in (PROGRAMS / name).rglob("*"):
        if f.is_file():
            target = tmp_path / f.relative_to(PROGRAMS / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f.read_text())
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"), PYTHON=sys.executable)
    done = subprocess.run(
        ["bash", "-c", TOOLS], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=500
    )
    runs = (PROGRAMS / name / "commands.sh").read_text().count("cs_python")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") >= runs, done.stdout


def refused(tmp_path, globals_, body, code, text, arch="wse2"):
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, {"pe.csl": globals_ + START % body}, arch)
    assert caught.value.code == code and text in str(caught.value)


def test_map_says_which_type_it_cannot_know(tmp_path):
    refused(
        tmp_path,
        "var a = @zeros([4]f32); fn f(x: anytype) void {} const A = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 4 });"
        " fn g(d: mem1d_dsd) void { @map(f, d); }",
        "g(A);",
        "wse.csl.map.element",
        "have no type of their own",
    )


def test_symbols_named_by_themselves(tmp_path):
    exports = (
        '@export_name("A", i16, true); @export_name("B", i16, true); @export_name("go", fn(f32)void); '
        '@export_name("p", [*]f32, true);'
    )
    text = """
export var o = @zeros([4]u32); export var A: i16 = 41; var B: i16 = 42; var f = @zeros([2]f32); const p: [*]f32 = &f;
fn go(a: f32) void { o[3] = 1; }
comptime { @export_symbol(A); @export_symbol(B); @export_symbol(go); @export_symbol(p); }
var id: u16 = 0;
"""
    body = "id = @get_symbol_id(B); o[0] = @as(u32, @as(u16, @get_symbol_value(i16, id))); o[1] = @as(u32, @get_symbol_id(go)); o[2] = @as(u32, @get_symbol_id(p));"
    out = compiled(
        tmp_path,
        {"layout.csl": LAYOUT.replace("}", exports + "}"), "pe.csl": text + START % body},
    )
    runner = wse.SdkRuntime(out, memcpy_required=False)
    runner.load()
    runner.run()
    runner._call("stop")
    assert list(runner.read_symbol(0, 0, "o", "uint32")) == [42, 2, 3, 0]
    with pytest.raises(wse.WseError) as caught:
        compiled(
            tmp_path,
            {
                "layout.csl": LAYOUT.replace("}", exports + "}"),
                "pe.csl": text + "var C: i16 = 1;" + START % "id = @get_symbol_id(C);",
            },
        )
    assert caught.value.code == "wse.csl.export.unbound", caught.value
    with pytest.raises(wse.WseError) as caught:
        compiled(
            tmp_path,
            {
                "layout.csl": LAYOUT.replace("}", exports + "}"),
                "pe.csl": text + START % "const x = @get_symbol_value(u64, id);",
            },
        )
    assert caught.value.code == "wse.csl.export.type" and "u64" in str(caught.value)


TAKE = """
param c2: color; param c3: color; export var got = @zeros([2]u32);
task two(x: u32) void { got[0] += x; }
task three(x: u32) void { got[1] += x; }
comptime { @bind_data_task(two, @get_data_task_id(c2)); @bind_data_task(three, @get_data_task_id(c3)); }
"""


def taken(tmp_path, colors):
    """What the right PE of two adds up by color 2 and by color 3, where the left one sends twenty fives on color 2."""
    (tmp_path / "layout.csl").write_text(
        """
const c2 = @get_color(2); const c3 = @get_color(3);
layout {
  @set_rectangle(2, 1);
  @set_tile_code(0, 0, "send.csl", .{ .c = c2 });
  @set_tile_code(1, 0, "take.csl", .{ .c2 = c2, .c3 = c3 });
"""
        + colors
        + "}"
    )
    (tmp_path / "send.csl").write_text(
        "param c: color; const X = @get_dsd(fabout_dsd, .{ .extent = 20, .fabric_color = c, .output_queue = @get_output_queue(2) });"
        + START % "@mov32(X, @as(u32, 5));"
    )
    (tmp_path / "take.csl").write_text(TAKE)
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"))
    runner = wse.SdkRuntime(str(tmp_path / "out"), memcpy_required=False)
    runner.load()
    runner.run()
    runner._call("stop")
    return list(runner.read_symbol(1, 0, "got", "uint32"))


@pytest.mark.parametrize("swaps", [(False, False), (False, True), (True, True)])
def test_swaps_of_one_color_of_a_pair(swaps, tmp_path):
    """What arrives on color 2 is received on 3 where 3 swaps, and on 2 as well where 2 does not."""
    config = ".{ .routes = .{ .rx = WEST, .tx = RAMP, .color_swap_x = %s } }"
    got = taken(
        tmp_path,
        "  @set_color_config(0, 0, c2, .{ .routes = .{ .rx = RAMP, .tx = EAST } });\n"
        + "".join(
            f"  @set_color_config(1, 0, c{c}, {config % str(on).lower()});\n"
            for c, on in zip((2, 3), swaps)
        ),
    )
    assert (
        got == {(False, False): [100, 0], (False, True): [100, 100], (True, True): [0, 100]}[swaps]
    )


@pytest.mark.parametrize("axes", ["xy", "x", "y", ""])
def test_swaps_of_the_color_that_a_core_sends_on(axes, tmp_path):
    """What the core of a PE that swaps both ways sends on color 2 leaves on 3; one axis alone does not concern the core."""
    swaps = ", ".join(f".color_swap_{a} = true" for a in axes)
    got = taken(
        tmp_path,
        f"  @set_color_config(0, 0, c3, .{{ .routes = .{{ .rx = RAMP, .tx = EAST{', ' + swaps if swaps else ''} }} }});\n"
        + "  @set_color_config(0, 0, c2, .{ .routes = .{ .rx = RAMP, .tx = EAST } });\n"
        + "".join(f"  @set_color_config(1, 0, c{c}, .{{ .routes = .{{ .rx = WEST, .tx = RAMP }} }});\n" for c in (2, 3)),
    )  # fmt: skip
    assert got == ([0, 100] if axes == "xy" else [100, 0])


STREAMS = """
param memcpy_params: comptime_struct;
param c: color;
const sys = @import_module("<memcpy/memcpy>", .{ .LAUNCH = memcpy_params.LAUNCH, .MEMCPYH2D_1 = c });
export var sum: u32 = 0;
task on_word(x: u32) void { sum += x; }
comptime {
  @comptime_assert(@is_same_type(@type_of(memcpy_params.MEMCPYD2H_1), void));
  @bind_data_task(on_word, @get_data_task_id(sys.MEMCPYH2D_1)); @rpc(@get_data_task_id(sys.LAUNCH));
}
"""


def test_streams_and_launch_colors_named_by_the_pe(tmp_path):
    (tmp_path / "pe.csl").write_text(STREAMS)
    (tmp_path / "layout.csl").write_text("""
const c = @get_color(5);
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1, .LAUNCH = @get_color(8) });
layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0), .c = c }); }
""")
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        str(tmp_path / "out"),
        memcpy=True,
        fabric_dims=(8, 3),
        fabric_offsets=(4, 1),
    )
    runner = wse.SdkRuntime(str(tmp_path / "out"))
    runner.load()
    runner.run()
    how = dict(
        data_type=wse.MemcpyDataType.MEMCPY_32BIT, order=wse.MemcpyOrder.ROW_MAJOR, nonblock=False
    )
    runner.memcpy_h2d(5, np.arange(5, dtype=np.uint32), 0, 0, 1, 1, 5, streaming=True, **how)
    runner._call("stop")
    assert runner.read_symbol(4, 1, "sum", "uint32")[0] == 10


# ---- tensor programs


def random_tensor_program(rng):
    """A chain of one to four steps over small odd shapes: (inputs, result, what it does)."""
    from weft import te

    dtype = rng.choice(["float32", "float32", "float32", "int32", "float16"])
    inputs, done = [], []

    def given(shape):
        inputs.append(te.placeholder(shape, dtype, name=f"in{len(inputs)}"))
        return inputs[-1]

    t = given(
        tuple(
            rng.choice([1, 3, 5, 7, 8, 9, 12, 13, 17]) for _ in range(rng.choice([1, 2, 2, 2, 3]))
        )
    )
    while not done:
        for step in range(rng.randint(1, 4)):
            s, src, name = tuple(int(x) for x in t.shape), t, f"t{step}"
            kind = rng.choice(
                [
                    "unary",
                    "binary",
                    "scale",
                    "reduce",
                    "reduce",
                    "matmul",
                    "gemv",
                    "turn",
                    "repeat",
                    "shift",
                    "reshape",
                    "pick",
                ]
            )
            if kind == "unary":
                t = te.compute(s, lambda *i: src[i] * src[i] + src[i], name=name)
            elif kind == "binary":
                o = given(s)
                t = te.compute(s, lambda *i: src[i] + o[i], name=name)
            elif kind == "scale":
                o = given(s[-1:])
                t = te.compute(s, lambda *i: src[i] * o[i[-1]], name=name)
            elif kind == "reduce":
                axis, fold = rng.randrange(len(s)), rng.choice([te.sum, te.max])
                k = te.reduce_axis(s[axis], name=f"k{step}")
                rest = s[:axis] + s[axis + 1 :]
                if rest:
                    t = te.compute(
                        rest, lambda *i: fold(src[i[:axis] + (k,) + i[axis:]], axis=k), name=name
                    )
                else:
                    t = te.compute((1,), lambda i: fold(src[(k,)], axis=k), name=name)
            elif kind in ("matmul", "gemv") and len(s) == 2:
                k = te.reduce_axis(s[1], name=f"k{step}")
                if kind == "gemv":
                    o = given((s[1],))
                    t = te.compute(s[:1], lambda i: te.sum(src[i, k] * o[k], axis=k), name=name)
                else:
                    o = given((s[1], rng.choice([4, 5, 11])))
                    t = te.compute(
                        (s[0], int(o.shape[1])),
                        lambda i, j: te.sum(src[i, k] * o[k, j], axis=k),
                        name=name,
                    )
            elif kind == "turn" and len(s) == 2:
                t = te.compute(s[::-1], lambda i, j: src[j, i], name=name)
            elif kind == "repeat" and len(s) == 1:
                t = te.compute((rng.choice([3, 6, 10]),) + s, lambda i, j: src[j], name=name)
            elif kind == "reshape" and len(s) == 2:
                t = te.compute(
                    (s[0] * s[1],), lambda i: src[i // s[1], i % s[1]] + src[0, 0], name=name
                )
            elif kind == "reshape" and len(s) == 1:
                n = next(k for k in (7, 5, 3, 2, 1) if s[0] % k == 0)
                w = s[0] // n
                t = te.compute((n, w), lambda i, j: src[(i * w + j) * 2 % s[0]], name=name)
            elif kind == "pick":
                n, m = s[0], s[-1]
                t = te.compute(
                    s,
                    lambda *i: (
                        src[((i[0] * i[0] + 2) % n,) + i[1:-1] + ((i[-1] * 3 + i[0]) % m,)]
                        if len(s) > 1
                        else src[(i[0] * 5 + 1) % n]
                    ),
                    name=name,
                )
            elif kind == "shift" and s[0] > 2:
                t = te.compute(
                    (s[0] - 1,) + s[1:], lambda *i: src[i] + src[(i[0] + 1,) + i[1:]], name=name
                )
            else:
                continue
            done.append(kind)
    return inputs, t, f"{dtype} {' '.join(done)}"


def on_target(program, target, values, shape):
    import weft

    device = weft.device(target)
    out = weft.zeros(shape, dtype=str(values[0].dtype), device=device)
    weft.build(program, target=target)["main"](
        *[weft.asarray(v, device=device) for v in values], out
    )
    return out.numpy()


@pytest.mark.parametrize("size", ["1x1", "2x3", "4x4", "5x1", "1x4"])
def test_reads_and_writes_through_quotients_and_remainders(size):
    import weft
    from weft import te
    from weft import script as T

    a = np.arange(42, dtype=np.float32).reshape(7, 6)
    A = te.placeholder((7, 6), "float32", name="A")
    B = te.compute((7, 6), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis(14, "k")
    E = te.compute((3,), lambda i: te.sum(B[(i * 14 + k) // 6, (i * 14 + k) % 6], axis=k), name="E")
    F = te.compute((3,), lambda i: E[i] * E[2 - i], name="F")
    rows = (a + 1).reshape(3, 14).sum(1)
    got = on_target(te.create_prim_func([A, F]), f"wse:{size}", [a], (3,))
    np.testing.assert_array_equal(got, rows * rows[::-1])

    @T.prim_func
    def main(A: T.Buffer((7, 6), "float32"), C: T.Buffer((42,), "float32")):
        B = T.alloc_buffer((2, 21), "float32")
        for i, j in T.grid(7, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[(vi * 6 + vj) // 21, (vi * 6 + vj) % 21] = A[vi, vj] * T.float32(3)
        for i in range(42):
            with T.block("C"):
                vi = T.axis.spatial(42, i)
                C[vi] = B[vi // 21, vi % 21] - B[(41 - vi) // 21, (41 - vi) % 21]

    b = a.ravel() * 3
    np.testing.assert_array_equal(on_target(main, f"wse:{size}", [a], (42,)), b - b[::-1])
    assert "// B[vi // 21, vi % 21], " in weft.build(main, target=f"wse:{size}").source()


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_tensor_programs_match_the_reference(first):
    import random

    import weft
    from weft import te

    for seed in range(first, first + 20):
        rng = random.Random(seed)
        inputs, result, what = random_tensor_program(rng)
        size = rng.choice(["1x1", "2x3", "4x4", "3x2", "5x1", "1x4"])
        fill = np.random.default_rng(seed)
        values = [
            fill.integers(-3, 4, [int(x) for x in p.shape]).astype(str(p.dtype)) for p in inputs
        ]
        program = te.create_prim_func([*inputs, result])
        got = []
        for target in (f"wse:{size}", "ref"):
            device = weft.device(target)
            out = weft.zeros(
                tuple(int(x) for x in result.shape), dtype=str(result.dtype), device=device
            )
            weft.build(program, target=target)["main"](
                *[weft.asarray(v, device=device) for v in values], out
            )
            got.append(out.numpy().astype(np.float64))
        rough = 1e-2 if "float16" in what else 1e-5
        np.testing.assert_allclose(
            got[0], got[1], rtol=rough, err_msg=f"seed {seed} on {size}: {what}"
        )
