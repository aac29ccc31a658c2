# SPDX-License-Identifier: Apache-2.0
"""Mistakes that programmers of CSL and of host scripts make: each is refused at its place, with what is legal."""

import numpy as np
import pytest
from test_wse_programs import LAYOUT, START, wse

V = "var v = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });\n"

# Globals, body of the task, line of the mistake (line 1 is the first of the globals), slug, words of the text.
MISTAKES = [
    (
        "var x: u16 = 0;",
        "x = 1",
        2,
        "wse.csl.parse.expected",
        ['expected ";" at the end of the statement, found "}"'],
    ),
    (
        "var x: u16 = 0;",
        "y = 1;",
        2,
        "wse.csl.name.unknown",
        ['"y" is not declared', 'did you mean "x"?'],
    ),
    (
        "var x: u16 = 0;",
        "x = 1.5;",
        2,
        "wse.csl.type.mismatch",
        [
            "expected u16, found comptime_float",
            "there is no implicit conversion here; @as(u16, value) converts",
        ],
    ),
    (
        "var x: u16 = 0;",
        "x = 70000;",
        2,
        "wse.csl.type.mismatch",
        ["expected u16, found comptime_int", "70000 does not fit u16"],
    ),
    (
        "var x: u16 = 0;",
        "x = -1;",
        2,
        "wse.csl.type.mismatch",
        ["expected u16, found comptime_int", "-1 does not fit u16"],
    ),
    (
        "var x: u16 = 0; var f: f32 = 0.0;",
        "f = x;",
        2,
        "wse.csl.type.mismatch",
        [
            "expected f32, found u16",
            "there is no implicit conversion here; @as(f32, value) converts",
        ],
    ),
    (
        "var x: u16 = 0; var i: i16 = 0;",
        "x = x + i;",
        2,
        "wse.csl.type.mismatch",
        [
            "types u16 and i16 do not go together",
            "otherwise use @as(T, value)",
        ],
    ),
    (
        "const n = 4;",
        "n = 5;",
        2,
        "wse.csl.assign.constant",
        ["the left side cannot be assigned to: it is constant"],
    ),
    ("var x: u16 = 0;", "x++;", 2, "wse.csl.parse.operator", ["there is no ++; write: a += 1"]),
    (
        "var x: u16 = 0;",
        "if (x) { x = 2; }",
        2,
        "wse.csl.type.mismatch",
        ["a condition: expected bool, found u16"],
    ),
    (
        "var x: u16 = 0;",
        "if x == 1 { x = 2; }",
        2,
        "wse.csl.parse.expected",
        ['expected "(" after if, found "x"'],
    ),
    (
        "var x: u16 = 0;",
        "while (x < 4) x += 1",
        2,
        "wse.csl.parse.expected",
        ['expected ";" at the end of the statement, found "}"'],
    ),
    (
        "var x: u16 = 0;",
        "for (@range(u16, 4)) { x += 1; }",
        2,
        "wse.csl.parse.expected",
        ['expected "|" before the loop variable, found "{"'],
    ),
    (
        "var x: u16 = 0;",
        "for (i in 4) { x += 1; }",
        2,
        "wse.csl.parse.expected",
        ['expected ")" after what for iterates over, found "in"'],
    ),
    (
        "var x: u16 = 0;",
        "x = x && 1;",
        2,
        "wse.csl.parse.operator",
        ["there is no &&; write: a and b"],
    ),
    (
        "fn f(a: u16) u16 { return a; }",
        "var r: u16 = f();",
        2,
        "wse.csl.call.arguments",
        ['"f" takes 1 argument, found 0'],
    ),
    (
        "fn f(a: u16) u16 { return a; }",
        "var r: u16 = f(1, 2);",
        2,
        "wse.csl.call.arguments",
        ['"f" takes 1 argument, found 2'],
    ),
    (
        "fn f(a: u16) u16 { return a; }",
        "var r: f32 = f(1);",
        2,
        "wse.csl.type.mismatch",
        [
            '"r": expected f32, found u16',
            "there is no implicit conversion here; @as(f32, value) converts",
        ],
    ),
    (
        "fn f(a: u16) u16 { if (a == 1) { return 2; } }",
        "var r: u16 = f(1);",
        1,
        "wse.csl.return.missing",
        ['"f" can end without returning u16'],
    ),
    (
        "fn f() void { return 3; }",
        "f();",
        1,
        "wse.csl.type.mismatch",
        ["the result: expected void, found comptime_int"],
    ),
    (
        V,
        "v[4] = 1.0;",
        3,
        "wse.csl.index.range",
        ["index 4 is outside the extent 4 of dimension 0 of [4]f32"],
    ),
    (V, "v = 1.0;", 3, "wse.csl.type.mismatch", ["expected [4]f32, found comptime_float"]),
    (V, "v.x = 1.0;", 3, "wse.csl.type.field", ['a value of type [4]f32 has no field "x"']),
    (
        V,
        "@fadd(d, d, d);",
        3,
        "wse.csl.builtin.unknown",
        ["there is no built-in @fadd", 'did you mean "faddh"?'],
    ),
    (
        V,
        "@fadds(d, d);",
        3,
        "wse.csl.builtin.arguments",
        ["@fadds takes 3 operands and optional settings, found 2 arguments"],
    ),
    (
        V,
        "@fadds(v, d, d);",
        3,
        "wse.csl.dsd.operand",
        ["@fadds needs a descriptor, a DSR, a FIFO or a pointer as destination, found [4]f32"],
    ),
    (
        V,
        "@fmovs(d, 1.0, .{ .async = true });",
        3,
        "wse.csl.settings.async",
        ["an asynchronous @fmovs needs a fabric operand"],
    ),
    (
        V,
        "@fmovs(d, d, .{ .activate = 3 });",
        3,
        "wse.csl.task.expected",
        ["expected a task or a task id, found comptime_int"],
    ),
    (
        V,
        "@fmovs(d, d, .{ .asinc = true });",
        3,
        "wse.csl.settings.unknown",
        [
            'an operation has no setting "asinc"',
            "legal are async, activate, unblock, on_control, priority, index, ut_id, save_address and single_step",
        ],
    ),
    (
        V,
        "const e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> v[i * i] }); @fmovs(e, d);",
        3,
        "wse.csl.dsd.affine",
        ["the index of a tensor access must be affine in its index variables"],
    ),
    (
        V,
        "const e = @get_dsd(mem2d_dsd, .{ .base_address = &v, .extent = 4 }); @fmovs(e, d);",
        3,
        "wse.csl.name.unknown",
        ['"mem2d_dsd" is not declared'],
    ),
    (
        V,
        "const e = @increment_dsd_offset(d, 1); @fmovs(e, d);",
        3,
        "wse.csl.builtin.arguments",
        ["@increment_dsd_offset takes 3 arguments, found 2"],
    ),
    (
        V,
        "const e = @set_dsd_length(d, 2.0); @fmovs(e, d);",
        3,
        "wse.csl.type.mismatch",
        [
            "the length: expected u16, found comptime_float",
            "there is no implicit conversion here; @as(u16, value) converts",
        ],
    ),
    (
        "",
        "const c = @get_color(24);",
        2,
        "wse.csl.id.range",
        ["color 24 does not exist on WSE-2; legal are 0..23"],
    ),
    (
        "",
        "const t = @get_local_task_id(99); @activate(t);",
        2,
        "wse.csl.id.range",
        ["local_task_id 99 does not exist on WSE-2; legal are "],
    ),
    (
        "",
        "@activate(9);",
        2,
        "wse.csl.task.activate",
        ["@activate takes a local task, found comptime_int"],
    ),
    (
        "task t() void {} comptime { @bind_local_task(t, @get_local_task_id(8)); }",
        "",
        4,
        "wse.csl.task.bound",
        ['id 8 is already bound to task "t"'],
    ),
    (
        "task t(x: u32) void {} comptime { @bind_local_task(t, @get_local_task_id(9)); }",
        "",
        1,
        "wse.csl.task.arguments",
        ['local task "t" cannot take arguments'],
    ),
    (
        "fn t() void {} comptime { @bind_local_task(t, @get_local_task_id(9)); }",
        "",
        1,
        "wse.csl.task.expected",
        ["expected a task, found a function"],
    ),
    (
        "task t() void {} ",
        "t();",
        2,
        "wse.csl.call.task",
        ['task "t" cannot be called', "activate it with @activate"],
    ),
    (
        'const m = @import_module("<maths>");',
        "m.sqrt(2.0);",
        1,
        "wse.csl.module.library",
        ["there is no library module <maths>", 'did you mean "<math>"?'],
    ),
    (
        'const m = @import_module("<math>");',
        "var x = m.sqroot(@as(f32, 2.0));",
        2,
        "wse.csl.module.member",
        ['module "math" has no "sqroot"', 'did you mean "sqrt"?'],
    ),
    (
        'const m = @import_module("other.csl");',
        "m.f();",
        1,
        "wse.csl.file.missing",
        ["cannot read"],
    ),
    (
        "param n: u16;",
        "var x: u16 = n;",
        2,
        "wse.csl.param.missing",
        ['param "n" of "pe" has no value'],
    ),
    (
        'comptime { @export_symbol(nothing, "x"); }',
        "",
        1,
        "wse.csl.name.unknown",
        ['"nothing" is not declared'],
    ),
    (
        "var x: u16 = 0; var x: u16 = 1;",
        "x = 2;",
        1,
        "wse.csl.name.duplicate",
        ['"x" is declared twice in this file'],
    ),
    (
        "",
        "const x: u16 = 0; const x: u16 = 1;",
        2,
        "wse.csl.name.duplicate",
        ['"x" is declared twice in this block', "the first declaration is here"],
    ),
    (
        "const s = .{ .a = 1 };",
        "var x: u16 = s.b;",
        2,
        "wse.csl.type.field",
        [
            'there is no field "b" in struct {a: comptime_int}',
            'its fields are a; did you mean "a"?',
        ],
    ),
    (
        "var p: *u16 = 0;",
        "p.* = 1;",
        1,
        "wse.csl.type.mismatch",
        ['var "p": expected *u16, found comptime_int'],
    ),
    (
        "var x: u16 = 0;",
        "x.* = 1;",
        2,
        "wse.csl.type.dereference",
        ["only a pointer can be dereferenced, found u16"],
    ),
    (
        "var x: u16 = 0;",
        "x = @as(f32, x);",
        2,
        "wse.csl.type.mismatch",
        [
            "expected u16, found f32",
            "there is no implicit conversion here; @as(u16, value) converts",
        ],
    ),
    (
        "var x: u16 = 0;",
        "switch (x) { 0 => x = 1, }",
        2,
        "wse.csl.switch.exhaustive",
        ["the cases do not cover u16; add an else case"],
    ),
    (
        "var x: u16 = 0;",
        "x = if (x == 0) 1;",
        2,
        "wse.csl.if.else",
        [
            "this if has a value of type comptime_int, but none where its condition is false",
            "add an else with the other value",
        ],
    ),
    (
        "",
        "return 1;",
        2,
        "wse.csl.type.mismatch",
        ["the result: expected void, found comptime_int"],
    ),
    ("", "break;", 2, "wse.csl.break.target", ["there is no enclosing loop"]),
    (
        "var x: u16 = 0; var y: u16 = 0;",
        "if (x == 0 || y == 0) { x = 1; }",
        2,
        "wse.csl.parse.operator",
        ["there is no ||; write: a or b"],
    ),
    (
        "const c = @get_color(3); const o = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = 3 });",
        "@fmovs(o, 1.0);",
        1,
        "wse.csl.type.mismatch",
        ["fabric_color is a color, found comptime_int"],
    ),
    (
        "const o = @get_dsd(fabout_dsd, .{ .fabric_color = @get_color(3) });",
        "@fmovs(o, 1.0);",
        1,
        "wse.csl.dsd.extent",
        ["fabout_dsd needs an extent"],
    ),
    ("", "@load_to_dsr(3, 4);", 2, "wse.csl.type.mismatch", ["expected a DSR, found comptime_int"]),
    (
        "",
        "var z: [2]u16 = @zeros([3]u16);",
        2,
        "wse.csl.type.mismatch",
        ['"z": expected [2]u16, found [3]u16'],
    ),
    (
        "export var n: u16 = 0;",
        "n = @as(u16);",
        2,
        "wse.csl.builtin.arguments",
        ["@as takes 2 arguments, found 1"],
    ),
    ("", "@print(3);", 2, "wse.csl.builtin.unknown", ["there is no built-in @print"]),
    (
        "struct S { x: u16 }",
        "",
        1,
        "wse.csl.parse.item",
        ["a struct type is a value: const P = struct { x: f32, y: f32 };"],
    ),
    (
        "fn f(x) void {}",
        "f(1);",
        1,
        "wse.csl.parse.expected",
        ['expected ":" after the parameter\'s name, found ")"'],
    ),
    ("var x: int = 0;", "x = 1;", 1, "wse.csl.name.unknown", ['"int" is not declared']),
    (
        "",
        "@block(3);",
        2,
        "wse.csl.task.expected",
        ["expected a task or a task id, found comptime_int"],
    ),
    (
        "var x: u16 = 0;",
        "x = 'ab';",
        2,
        "wse.csl.lex.character_literal",
        ["a character literal holds exactly one byte: 'a', '\\n', '\\x0a'"],
    ),
    (
        "",
        "for (@range(u16, 4, 2)) |i| { }",
        2,
        "wse.csl.builtin.arguments",
        ["@range takes 2 or 4 arguments: (T, stop) or (T, start, stop, step)"],
    ),
    ("", "v[0];", 2, "wse.csl.name.unknown", ['"v" is not declared']),
    (
        "var a: u16 = 1; fn f() u16 { return 1; }",
        "_ = f();",
        2,
        "wse.csl.name.unknown",
        ['"_" is not declared', "a call whose result nobody needs is a statement by itself: f();"],
    ),
    (
        "var a: u16 = 1;",
        "for (var i = 0; i < 3; i += 1) { a += 1; }",
        2,
        "wse.csl.parse.form",
        ["for goes over a range or an array; write: for (@range(u16, n)) |i| { }"],
    ),
    (
        "",
        "for (@range(4)) |i| { }",
        2,
        "wse.csl.builtin.arguments",
        ["@range takes 2 or 4 arguments: (T, stop) or (T, start, stop, step)"],
    ),
    (
        "",
        "let x = 3;",
        2,
        "wse.csl.parse.form",
        ['"let" begins no declaration; a variable is written: var x: T = value;'],
    ),
    (
        "func f(x: u16) void {}",
        "f(1);",
        1,
        "wse.csl.parse.form",
        ['"func" begins no declaration; a function is written: fn f(a: T) T { }'],
    ),
    (
        "var a: u16 = 0;",
        "if (a == 0) a = 1; else a = 2;",
        2,
        "wse.csl.parse.form",
        ['no ";" stands before else; write: if (c) a else b;'],
    ),
    (
        "fn f(x: u16) { }",
        "f(1);",
        1,
        "wse.csl.parse.result_type",
        ["a function needs a result type before its body; use void for none"],
    ),
    (
        "const S = struct { x: u16, y: u16 };",
        "var s = S{ .x = 1, .z = 2, .y = 3 };",
        2,
        "wse.csl.type.mismatch",
        ["expected S, found struct", 'it has no field "z"; its fields are x, y'],
    ),
    (
        "const S = struct { x: u16 }; var k: u16 = 2;",
        "var s: S = .{ .x = k, .w = k };",
        2,
        "wse.csl.type.mismatch",
        ["expected S, found struct", 'it has no field "w"; its fields are x'],
    ),
    (
        "const Color = enum(u16) { red, green }; var c: Color = Color.red;",
        "c = Color.blue;",
        2,
        "wse.csl.type.field",
        ['Color has no member "blue"', "its members are red, green"],
    ),
]


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
@pytest.mark.parametrize("globals_,body,line,slug,words", MISTAKES)
def test_mistakes_of_csl(globals_, body, line, slug, words, arch, tmp_path):
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(globals_ + START % body)
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    text = str(caught.value)
    assert caught.value.code == slug, text
    assert f"pe.csl:{line}:" in text, text
    for w in words:
        assert w.replace("WSE-2", arch.upper().replace("WSE", "WSE-")) in text, text
    assert not (tmp_path / "out").exists()


HOST_LAYOUT = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 2, .height = 1 });
layout {
  @set_rectangle(2, 1);
  for (@range(u16, 2)) |x| @set_tile_code(x, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) });
  @export_name("a", [*]f32, true);
  @export_name("c", [*]f32, false);
  @export_name("add", fn(f32, u16)void);
}
"""
HOST_PE = """
param memcpy_params: comptime_struct;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var a = @zeros([4]f32); var c = @zeros([4]f32);
var pa: [*]f32 = &a; const pc: [*]const f32 = &c;
fn add(k: f32, n: u16) void { a[n] += k; sys.unblock_cmd_stream(); }
comptime { @export_symbol(pa, "a"); @export_symbol(pc, "c"); @export_symbol(add); }
"""
WAY = {
    "streaming": False,
    "order": wse.MemcpyOrder.ROW_MAJOR,
    "data_type": wse.MemcpyDataType.MEMCPY_32BIT,
    "nonblock": False,
}
DATA = np.zeros(8, np.float32)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    (folder / "layout.csl").write_text(HOST_LAYOUT)
    (folder / "pe.csl").write_text(HOST_PE)
    wse.compile_csl(
        str(folder / "layout.csl"),
        str(folder / "out"),
        memcpy=True,
        fabric_dims=(9, 3),
        fabric_offsets=(4, 1),
    )
    runner = wse.SdkRuntime(str(folder / "out"))
    runner.load()
    runner.run()
    yield runner
    runner.stop()


HOST_MISTAKES = [
    (
        lambda r, a: r.memcpy_h2d(a, DATA, 1, 0, 2, 1, 4, **WAY),
        "wse.memcpy.region",
        [
            "memcpy_h2d: the region of 2 x 1 PEs at (1, 0) with 4 elements each does not fit the 2 x 1 rectangle"
        ],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, DATA[:6], 0, 0, 2, 1, 4, **WAY),
        "wse.memcpy.size",
        [
            "memcpy_h2d: the host array has 6 elements, the region needs 8",
            "w = 2, h = 1, elements per PE = 4",
        ],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, DATA.astype(np.float64), 0, 0, 2, 1, 4, **WAY),
        "wse.memcpy.dtype",
        [
            "memcpy_h2d: elements of float64 have 8 bytes; they must be 32-bit words (16-bit values go into the low halves of uint32)"
        ],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, list(DATA), 0, 0, 2, 1, 4, **WAY),
        "wse.memcpy.array",
        ["memcpy_h2d needs a NumPy array, not list"],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, np.zeros(16, np.float32)[::2], 0, 0, 2, 1, 4, **WAY),
        "wse.memcpy.strides",
        ["memcpy_h2d: the array is not contiguous, strides (8,)"],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, np.zeros(0, np.float32), 0, 0, 2, 1, 0, **WAY),
        "wse.memcpy.region",
        [
            "memcpy_h2d: the region of 2 x 1 PEs at (0, 0) with 0 elements each does not fit the 2 x 1 rectangle"
        ],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, DATA, -1, 0, 2, 1, 4, **WAY),
        "wse.memcpy.region",
        [
            "memcpy_h2d: the region of 2 x 1 PEs at (-1, 0) with 4 elements each does not fit the 2 x 1 rectangle"
        ],
    ),
    (
        lambda r, a: r.memcpy_h2d(a, np.zeros(4000, np.float32), 0, 0, 2, 1, 2000, **WAY),
        "wse.memcpy.extent",
        ['"a" has 16 bytes at PE (0, 0), the copy moves 8000', 'the pointer leads into "a"'],
    ),
    (
        lambda r, a: r.memcpy_h2d(77, DATA, 0, 0, 2, 1, 4, **WAY),
        "wse.symbol.id",
        ["symbol id 77 does not exist; there are 3"],
    ),
    (
        lambda r, a: r.memcpy_h2d(r.get_id("c"), DATA, 0, 0, 2, 1, 4, **WAY),
        "wse.symbol.immutable",
        [
            '"c" is exported as immutable and cannot be written',
            "pass true as third argument of its @export_name",
        ],
    ),
    (
        lambda r, a: r.get_id("b"),
        "wse.symbol.unknown",
        ['the program exports no symbol "b"', "it exports a, c, add", 'did you mean "a"?'],
    ),
    (
        lambda r, a: r.launch("sub", nonblock=False),
        "wse.symbol.unknown",
        ['the program exports no symbol "sub"', "it exports a, c, add"],
    ),
    (
        lambda r, a: r.launch("add", nonblock=False),
        "wse.launch.arguments",
        ['"add" takes (f32, u16) and was given ()'],
    ),
    (
        lambda r, a: r.launch("add", np.float32(1), nonblock=False),
        "wse.launch.arguments",
        ['"add" takes (f32, u16) and was given (f32)'],
    ),
    (
        lambda r, a: r.launch("add", np.float32(1), np.float32(1), nonblock=False),
        "wse.launch.type",
        ["argument 1 is the float 1.0; u16 is declared"],
    ),
    (
        lambda r, a: r.launch("add", np.uint16(1), np.uint16(1), nonblock=False),
        "wse.launch.arguments",
        ['"add" takes (f32, u16) and was given (u16, u16)'],
    ),
    (
        lambda r, a: r.launch("add", "one", np.uint16(1), nonblock=False),
        "wse.launch.type",
        ["argument 0 is 'one', which is no f32"],
    ),
    (
        lambda r, a: r.launch("a", nonblock=False),
        "wse.symbol.kind",
        ['"a" of type [*]f32 is not a function'],
    ),
    (
        lambda r, a: r.task_wait(wse.Task(12345)),
        "wse.runtime.task",
        ["task 12345 was never issued"],
    ),
    (
        lambda r, a: r.read_symbol(9, 1, "a", "float32"),
        "wse.pe.outside",
        ["(9, 1) is not in the program rectangle of 2 x 1 at (4, 1)"],
    ),
    (
        lambda r, a: r.read_symbol(4, 1, "z", "float32"),
        "wse.symbol.unknown",
        ['the program of PE (4, 1) has no symbol "z"', "it has pa, pc, a, c", 'did you mean "a"?'],
    ),
]


@pytest.mark.parametrize("call,slug,words", HOST_MISTAKES)
def test_mistakes_of_host_scripts(call, slug, words, host):
    with pytest.raises(wse.WseError) as caught:
        call(host, host.get_id("a"))
    text = str(caught.value)
    assert caught.value.code == slug, text
    for w in words:
        assert w in text, text


def test_a_host_script_goes_on_after_its_mistakes(host):
    a = host.get_id("a")
    host.memcpy_h2d(a, np.arange(8, dtype=np.float32), 0, 0, 2, 1, 4, **WAY)
    with pytest.raises(wse.WseError):
        host.memcpy_h2d(a, DATA, 1, 0, 2, 1, 4, **WAY)
    host.launch("add", np.float32(3), np.uint16(1), nonblock=False)
    got = np.zeros(8, np.float32)
    host.memcpy_d2h(got, a, 0, 0, 2, 1, 4, **WAY)
    assert list(got) == [0, 4, 2, 3, 4, 8, 6, 7]


def test_longer_arrays_than_the_region_are_reported(host):
    a = host.get_id("a")
    with pytest.warns(RuntimeWarning, match="has 10 elements, the first 8 are copied"):
        host.memcpy_h2d(a, np.arange(10, dtype=np.float32), 0, 0, 2, 1, 4, **WAY)
    back = np.full(9, -1, np.float32)
    with pytest.warns(RuntimeWarning, match="has 9 elements"):
        host.memcpy_d2h(back, a, 0, 0, 2, 1, 4, **WAY)
    np.testing.assert_array_equal(back, [*range(8), -1])


def test_a_missing_param_names_the_import_and_nothing_else(tmp_path):
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(
        'const m = @import_module("<debug>", .{ .key = "k" });' + START % "m.trace_u16(1);"
    )
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"))
    text = str(caught.value)
    assert caught.value.code == "wse.csl.param.missing"
    assert 'param "buffer_size" of "debug" has no value' in text
    assert "pe.csl:1:11: note: the module is imported here" in text
    assert "can end without returning" not in text
