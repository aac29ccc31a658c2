# SPDX-License-Identifier: Apache-2.0
"""What CSL of SDK 2.10 has and is refused by name, types of operands, and the bounds of operands at run time."""

import numpy as np
import pytest

from test_wse_programs import LAYOUT, START, refused, wse

VECTOR = "var v = @zeros([3]{0}); const d = @get_dsd(mem1d_dsd, .{{ .base_address = &v, .extent = 3 }}); var k: {1} = 3;"


@pytest.mark.parametrize(
    "globals_,body,code,text",
    [
        ("var a: u65 = 10;", "a = 1;", "wse.csl.type.width", "integers of 65 bits are not there"),
        (
            "var a: u16 linksection(3) = 1;",
            "a = 2;",
            "wse.csl.var.linksection",
            "linksection takes a string, found comptime_int",
        ),
        (
            "const S = packed struct { x: [2]u8 };",
            "var s: S = S{ .x = @zeros([2]u8) };",
            "wse.csl.type.packed",
            'field "x" of a packed type',
        ),
        (
            "const U = union { a: u16 = 3 };",
            "var u: U = U{ .a = 1 };",
            "wse.csl.type.union",
            "a field of a union has no value of its own",
        ),
        (
            "const U = union { a: u16, b: f32 };",
            "var u = U{ .a = 1, .b = 2.0 };",
            "wse.csl.type.mismatch",
            "a union is made of exactly one of its fields",
        ),
        (
            "const U = union { a: u16, b: f32 }; const u = U{ .a = 1 }; const w = u.b;",
            "var r: f32 = w;",
            "wse.csl.union.comptime",
            "at compile time the union holds a u16",
        ),
        (
            "var b = @zeros([4]u32); const c = @get_dsd(circbuf_dsd, .{ .base_address = &b, .extent = 4, .wraparound = 0 });",
            "@mov32(c, 3);",
            "wse.csl.dsd.wraparound",
            "a circular buffer has 1 to 65535 elements",
        ),
        (
            "task m(x: u32) void {} task n() void {} comptime { @bind_rotating_tasks(m, n, @get_data_task_id(@get_color(3)), .{ .limit = 2 }); }",
            "",
            "wse.csl.builtin.wse3",
            "@bind_rotating_tasks exists on WSE-3 only",
        ),
        (VECTOR.format("f16", "u16"), "@fmach(d, d, d, k);", "wse.csl.dsd.operand", "found u16"),
        (VECTOR.format("f32", "i32"), "@fmacs(d, d, d, k);", "wse.csl.dsd.operand", "found i32"),
        (VECTOR.format("f32", "u32"), "@fadds(d, d, k);", "wse.csl.dsd.operand", "found u32"),
        (
            VECTOR.format("u16", "f16"),
            "@add16(d, d, k);",
            "wse.csl.dsd.operand",
            "takes integers of 16 bits, found f16",
        ),
        ("var a: i32 = 5;", "var b: i16 = a;", "wse.csl.type.mismatch", "expected i16, found i32"),
        ("var a: u16 = 5;", "var b: i16 = a;", "wse.csl.type.mismatch", "expected i16, found u16"),
    ],
)
def test_refusals(tmp_path, globals_, body, code, text):
    refused(tmp_path, globals_, body, code, text)


ROTATE = "task m(x: u32) void {{}} task n() void {{}} task m4(x: u32) void {{}} task n4() void {{}} task m5(x: u32) void {{}} task n5() void {{}} const q = @get_input_queue(2); comptime {{ @initialize_queue(q, .{{ .color = @get_color(3) }}); @set_control_task_table(); {} }}"
BIND = "@bind_rotating_tasks(m, n, @get_data_task_id(q), {});"
THIRD = BIND.replace("(q)", "(QUEUE)").format(".{ .limit = 1 }")


@pytest.mark.parametrize(
    "calls,code,text",
    [
        (BIND.format(".{ .init = 1 }"), "wse.csl.task.rotation", "need a .limit"),
        (
            BIND.format(".{ .init = 3, .limit = 2 }"),
            "wse.csl.task.rotation",
            "init may not exceed limit",
        ),
        (BIND.format(".{ .limit = -1 }"), "wse.csl.id.range", "limit is a number from 0"),
        (
            BIND.format(".{ .limit = 2, .step = 1 }"),
            "wse.csl.settings.unknown",
            "legal are limit and init",
        ),
        (
            BIND.format(".{ .limit = 2 }") + "@bind_control_task(n, @get_control_task_id(0));",
            "wse.csl.task.bound",
            "id 0 is already bound",
        ),
        (
            "const p = @get_input_queue(4); const r = @get_input_queue(5);"
            + BIND.format(".{ .limit = 2 }")
            + THIRD.replace("QUEUE", "p").replace("m, n", "m4, n4")
            + THIRD.replace("QUEUE", "r").replace("m, n", "m5, n5"),
            "wse.csl.task.rotation",
            "this is a third",
        ),
        (
            "@bind_rotating_tasks(n, m, @get_data_task_id(q), .{ .limit = 2 });",
            "wse.csl.task.arguments",
            'data task "n" needs an argument',
        ),
    ],
)
def test_pairs_of_rotating_tasks_that_are_none(tmp_path, calls, code, text):
    refused(tmp_path, ROTATE.format(calls), "", code, text, arch="wse3")


@pytest.mark.parametrize(
    "globals_,body",
    [
        ("const U = union { a: u16 };", "var u: U = U{ .a = 1 };"),
        ("const S = packed struct { a: u16 };", "var s: S = S{ .a = 1 };"),
        ("var a: i16 = 5;", "var b: i32 = a;"),
    ],
)
def test_the_older_version_has_none_of_it(tmp_path, globals_, body):
    for path, text in {"layout.csl": LAYOUT, "pe.csl": globals_ + START % body}.items():
        (tmp_path / path).write_text(text)
    layout, out = str(tmp_path / "layout.csl"), str(tmp_path / "out")
    wse.compile_csl(layout, out, sdk_version="2.10")
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(layout, out, sdk_version="1.4")
    assert caught.value.code == "wse.csl.version" and "exists in SDK 2.10 only" in str(caught.value)


def run(folder, body, **options):
    globals_ = """
export var a = @zeros([4]f32); export var b = @zeros([4]f32); var dummy = @zeros([1]f32);
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] });
const D = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> dummy[i] });
"""
    for path, text in {"layout.csl": LAYOUT, "pe.csl": globals_ + START % body}.items():
        (folder / path).write_text(text)
    wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"))
    runner = wse.SdkRuntime(str(folder / "out"), memcpy_required=False, **options)
    runner.load()
    runner.run()
    runner._call("stop")
    return list(runner.read_symbol(0, 0, "b", "float32"))


BEYOND = "var n: u16 = 6; @fmovs(@set_dsd_length(A, n), 2.0);"


def test_bounds_are_checked_on_demand(tmp_path, monkeypatch):
    assert run(tmp_path, BEYOND)[:2] == [2.0, 2.0]  # the machine has no objects
    for options in ({"check_bounds": True}, {}):
        with pytest.raises(wse.WseError) as caught:
            run(tmp_path, BEYOND, **options)
        assert caught.value.code == "wse.dsd.outside"
        assert 'of 6 elements begins at byte 0 of "a" and covers bytes 0 to 24; it has 16' in str(
            caught.value
        )
        monkeypatch.setenv("WEFT_WSE_CHECK_BOUNDS", "1")
    back = "var n: i16 = 3; var k: i8 = -1; @fmovs(@set_dsd_stride(@increment_dsd_offset(A, n, f32), k), 1.0);"
    assert run(tmp_path, back, check_bounds=True) == [0.0] * 4
    rebased = "@fmovs(@set_dsd_length(@set_dsd_base_addr(D, &b), 4), 3.0);"
    assert run(tmp_path, rebased, check_bounds=True) == [3.0] * 4


def test_structs_are_exported_and_modules_found_beside_the_layout_file(tmp_path):
    (tmp_path / "parts").mkdir()
    files = {
        "layout.csl": """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
const sparse = @import_module("parts/sparse.csl");
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("entries", [*]sparse.Entry, true);
  @export_name("sum", [*]f32, false);
  @export_name("add", fn()void);
}
""",
        "pe.csl": """
param memcpy_params: comptime_struct;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const sparse = @import_module("parts/sparse.csl");
var entries: [3]sparse.Entry; var entries_ptr: [*]sparse.Entry = &entries;
var sum = @zeros([1]f32); var sum_ptr: [*]f32 = &sum;
fn add() void {
  for (@range(u16, 3)) |i| { sum[0] += entries[i].value * @as(f32, entries[i].row + sparse.twice(entries[i].column)); }
  sys_mod.unblock_cmd_stream();
}
comptime { @export_symbol(entries_ptr, "entries"); @export_symbol(sum_ptr, "sum"); @export_symbol(add); }
""",
        "parts/sparse.csl": """
const Entry = struct { row: u16, column: u16, value: f32 };
const numbers = @import_module("parts/numbers.csl");
fn twice(x: u16) u16 { return numbers.two * x; }
""",
        "parts/numbers.csl": "const two: u16 = 2;",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
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
    data = np.zeros(3, [("row", np.uint16), ("column", np.uint16), ("value", np.float32)])
    data["row"], data["column"], data["value"] = [1, 2, 3], [4, 5, 6], [0.5, 1.5, 2.5]
    runner.memcpy_h2d(runner.get_id("entries"), data.view(np.uint32), 0, 0, 1, 1, 6)
    runner.launch("add", nonblock=False)
    out = np.zeros(1, np.float32)
    runner.memcpy_d2h(out, runner.get_id("sum"), 0, 0, 1, 1, 1)
    runner.stop()
    assert out[0] == 0.5 * 9 + 1.5 * 12 + 2.5 * 15


SECTIONS = """
var first: u16 linksection(".low") = 0xabcd;
var second: u16 linksection(".high") = 0x1234;
var third: u16 linksection(".low") = 0x5678;
var rest: u16 linksection(".nowhere") = 9;
export var seen = @zeros([4]u16);
task main() void {
  const p = @ptrcast([*]u16, &first);
  seen[0] = p[0];
  seen[1] = p[1];
  seen[2] = p[10];
  third = 1;
  seen[3] = p[1] + rest + second - p[10];
}
comptime { @bind_local_task(main, @get_local_task_id(8)); @activate(@get_local_task_id(8)); }
"""


def sections_of(tmp_path, text, *more):
    from weft_wse.compiler import cslc_main

    layout = tmp_path / "layout.csl"
    layout.write_text('layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }')
    (tmp_path / "pe.csl").write_text(text)
    out = tmp_path / "out"
    return cslc_main([str(layout), "-o", str(out), *more]), str(out)


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_sections_lie_where_the_command_line_says(arch, tmp_path):
    flag = "--link-section-start-address-bytes=.low:40960,.high:40980"
    status, out = sections_of(
        tmp_path, SECTIONS, f"--arch={arch}", flag, "--comptime-func-depth-limit=9"
    )
    assert status == 0
    runner = wse.SdkRuntime(out, memcpy_required=False)
    runner.load()
    runner.run()
    runner._call("stop")
    np.testing.assert_array_equal(
        runner.read_symbol(0, 0, "seen", "u2"), [0xABCD, 0x5678, 0x1234, 10]
    )


@pytest.mark.parametrize(
    "flag,slug,words",
    [
        (
            ".low:40960,.high:40962",
            "wse.csl.section.overlap",
            '"second" would lie at byte 40962, where "third" lies',
        ),
        (".low:16", "wse.csl.section.overlap", "would lie at byte 16"),
        (".low:49150", "wse.csl.section.outside", "a PE has 49152"),
        (".low:41", "wse.cslc.section", "legal are even addresses from 16 to 49150"),
        (".low:60000", "wse.cslc.section", "legal are even addresses from 16 to 49150"),
    ],
)
def test_sections_that_cannot_lie_there(flag, slug, words, tmp_path, capsys):
    status, _ = sections_of(tmp_path, SECTIONS, f"--link-section-start-address-bytes={flag}")
    said = capsys.readouterr().err
    assert status == 1 and slug in said and words in said


@pytest.mark.parametrize(
    "arch,text,taken",
    [
        ("wse2", "@bind_local_task(t, @get_local_task_id(28));", "local task 28"),
        ("wse3", "@bind_control_task(t, @get_control_task_id(35));", "control task 35"),
        (
            "wse3",
            "@initialize_queue(@get_input_queue(1), .{ .color = @get_color(3) });",
            "input queue 1",
        ),
        (
            "wse2",
            "@set_local_color_config(@get_color(22), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ EAST } } });",
            "color 22",
        ),
        ("wse2", "@initialize_queue(@get_input_queue(1), .{ .color = @get_color(3) });", None),
        ("wse3", "@bind_local_task(t, @get_local_task_id(26));", None),
    ],
)
@pytest.mark.parametrize("memcpy", [True, False])
def test_what_memcpy_takes_on_the_machine_is_named(arch, text, taken, memcpy, tmp_path):
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text("task t() void {} " + START % "" + "comptime { %s }" % text)
    how = dict(arch=arch, memcpy=memcpy, fabric_dims=(8, 3), fabric_offsets=(4, 1))
    said = wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), **how)["warnings"]
    wanted = f"{taken} is taken by memcpy on the machine"
    assert (wanted in said and "wse.csl.reserved" in said) == bool(taken and memcpy), said


@pytest.mark.parametrize(
    "globals_,body,code,text",
    [
        ("", "fadds(1, 2, 3);", "wse.csl.name.unknown", "did you mean the built-in @fadds?"),
        (
            "comptime { @set_local_color_config(@get_color(2), .{ .routes = .{ .rx = .{ RAMPP }, .tx = .{ EAST } } }); }",
            "",
            "wse.csl.name.unknown",
            'did you mean "RAMP"?',
        ),
        (
            "var x: f32 = 1.0; fn f(p: *f32) void { p = 2.0; }",
            "f(&x);",
            "wse.csl.assign.constant",
            "name.* is what it points to",
        ),
        (
            "var x: f32 = 1.0;",
            "x = x > 0.0 ? 1.0 : 2.0;",
            "wse.csl.lex.character",
            "a choice is written: if (c) a else b",
        ),
        (
            "const P = struct { y: f32 }; var s = P{ .y = 1.0 }; const r = &s; var x: f32 = 0;",
            "x = r->y;",
            "wse.csl.parse.operator",
            "there is no ->; write: p.*.y",
        ),
    ],
)
def test_habits_of_other_languages_are_named(globals_, body, code, text, tmp_path):
    refused(tmp_path, globals_, body, code, text)
