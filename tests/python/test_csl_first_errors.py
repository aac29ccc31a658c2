# SPDX-License-Identifier: Apache-2.0
"""Mistakes of people who come from C, Python, Zig or Rust, each with its place and what was found."""

import pytest
from test_wse_programs import LAYOUT, START, wse

MISTAKES = [
    ("var a = @zeros([4]f32);", "a = 3.0;", "2:28", "wse.csl.type.mismatch", "expected [4]f32, found comptime_float"),
    ("var x: u16 = 3;", "x = x + 1.5;", "2:32", "wse.csl.type.mismatch", "types u16 and comptime_float do not go together"),
    ("var x: u16 = 3;", "x = -1;", "2:28", "wse.csl.type.mismatch", "expected u16, found comptime_int"),
    ("const n: i16 = 4; var a = @zeros([n, n]f32);", "a[0][1] = 2.0;", "2:26", "wse.csl.index.rank", "expected 2 indices into [4,4]f32, found 1"),
    ("var a = @zeros([4]f32); var p: [*]f32 = a;", "p[0] = 1.0;", "1:41", "wse.csl.comptime.runtime_value", 'this value of "a" exists only at run time, but is needed at compile time'),
    ("var x: f32 = 0.0;", "for (@range(i16, 4)) |i| x += i;", "2:53", "wse.csl.type.mismatch", "types f32 and i16 do not go together"),
    ("var x: f32 = 0.0; fn f(v: f32) f32 { return v; }", "x = f(1.0, 2.0);", "2:30", "wse.csl.call.arguments", '"f" takes 1 argument, found 2'),
    ("fn f(v: f32) f32 { if (v > 0.0) { return 1.0; } }", "var y = f(2.0);", "1:4", "wse.csl.return.missing", '"f" can end without returning f32'),
    ("const c = @get_color(24);", "_ = c;", "2:26", "wse.csl.name.unknown", '"_" is not declared'),
    ("var x: i16 = 0;", "if (x = 1) { x = 2; }", "2:32", "wse.csl.parse.expected", 'expected ")" after the condition, found "="'),
    ("var x: i16 = 0;", "x++;", "2:28", "wse.csl.parse.operator", "there is no ++; write: a += 1"),
    ("var x: i16 = 0;", "x = x && 1;", "2:33", "wse.csl.parse.operator", "there is no &&; write: a and b"),
    ("var x: i16 = 0;", "while (x < 3) x += 1", "2:47", "wse.csl.parse.expected", 'expected ";" at the end of the statement, found "}"'),
    ('var x: i16 = 0; const m = @import_module("<maths>");', "x = 1;", "1:27", "wse.csl.module.library", "there is no library module <maths>"),
    ('const math = @import_module("<math>"); var x: f32 = 1.0;', "x = math.squareroot(x);", "2:35", "wse.csl.module.member", 'module "math" has no "squareroot"'),
    ('const math = @import_module("<math>"); var x: i32 = 1;', "x = math.sqrt(x);", "2:35", "wse.csl.type.mismatch", "sqrt takes a floating-point number, found i32"),
    ("var a = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] });", "@fadds(d, d);", "2:26", "wse.csl.builtin.arguments", "@fadds takes 3 operands and optional settings, found 2 arguments"),
    ("var a = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] });", "@fadds(d, d, d, .{ .async = true });", "2:26", "wse.csl.settings.async", "an asynchronous @fadds needs a fabric operand"),
    ("const q = @get_output_queue(2); const o = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = @get_color(3), .output_queue = q }); var a = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] });", "@fmovs(d, o);", "2:36", "wse.csl.dsd.operand", "a fabout_dsd cannot be a source"),
    ("const q = @get_input_queue(2); const o = @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = @get_color(3), .output_queue = q });", "_ = o;", "2:26", "wse.csl.name.unknown", '"_" is not declared'),
    ("task t(x: u32) void {}", "t(3);", "2:26", "wse.csl.call.task", 'task "t" cannot be called'),
    ("task t() void {} comptime { @bind_local_task(t, 9); }", "@activate(9);", "1:49", "wse.csl.type.mismatch", "expected a local_task_id, found comptime_int"),
    ("param n: u16;", "var k = n;", "2:34", "wse.csl.param.missing", 'param "n" of "pe" has no value'),
    ("struct P { x: i16 }", "var p: P;", "1:1", "wse.csl.parse.item", "a struct type is a value: const P = struct { x: f32, y: f32 };"),
    ("const P = struct { x: i16, y: i16 };", "var p = P{ .x = 1 };", "2:34", "wse.csl.type.missing_field", 'field "y" needs a value'),
    ("const P = struct { x: i16, y: i16 };", "var p = P{ .x = 1, .y = 2 }; p.z = 3;", "2:57", "wse.csl.type.field", 'there is no field "z" in P'),
    ("const E = enum(u16) { a, b }; var e: E = E.a;", "e = E.c;", "2:32", "wse.csl.type.field", 'E has no member "c"'),
    ("const E = enum(u16) { a, b }; var e: E = E.a; var r: u16 = 0;", "switch (e) { E.a => r = 1 }", "2:26", "wse.csl.switch.exhaustive", "the cases do not cover E; add an else case"),
    ("var r: u16 = 0; const T = [3]u16{ 1, 2 };", "r = T[0];", "1:27", "wse.csl.type.initialiser", "[3]u16 needs 3 elements, found 2"),
    ("var r: u16 = 0; const T = [3]u16{ 1, 2, 3 };", "r = T[3];", "2:32", "wse.csl.index.range", "index 3 is outside the extent 3 of dimension 0 of [3]u16"),
    ("var r: u16 = 0; const k = 5;", "k = 6;", "2:28", "wse.csl.assign.constant", "the left side cannot be assigned to: it is constant"),
    ("var r: u16 = 0; var i: i16 = 2;", "r <<= i;", "2:28", "wse.csl.shift.signed", "the count of << is unsigned, found i16"),
    ("var r: u16 = 0; var u: i16 = 2;", "r = u;", "2:28", "wse.csl.type.mismatch", "expected u16, found i16"),
    ("fn g(comptime n: u16) u16 { return n; } var u: u16 = 2;", "u = g(u);", "2:32", "wse.csl.comptime.runtime_value", 'this value of "u" exists only at run time, but is needed at compile time'),
    ("var f: f32 = 1.0;", "f = ~f;", "2:30", "wse.csl.type.operator", "operator ~ is not defined for f32"),
    ("var f: f32 = 1.0;", '@simprint("x");', "2:26", "wse.csl.builtin.unknown", "there is no built-in @simprint"),
    ("var f: f32 = 1.0;", "f = @sqrt(f);", "2:30", "wse.csl.builtin.unknown", "there is no built-in @sqrt"),
    ("comptime { @export_symbol(foo); }", "var x: u16 = 1;", "1:27", "wse.csl.name.unknown", '"foo" is not declared'),
    ("var p: *f32 = null;", "p.* = 1.0;", "1:15", "wse.csl.name.unknown", '"null" is not declared'),
    ("var a = @zeros([2]f32);", "const s = a[0:1];", "2:39", "wse.csl.parse.expected", 'expected "]" after the index, found ":"'),
    ('import "<math>";', "var x: u16 = 1;", "1:1", "wse.csl.parse.item", 'a module is a value: const m = @import_module("file.csl");'),
    ("#include <math>", "var x: u16 = 1;", "1:1", "wse.csl.lex.character", "'#' begins no token"),
    ("var x: int = 3;", "x = 4;", "1:8", "wse.csl.name.unknown", '"int" is not declared'),
    ("var x: float = 3.0;", "x = 4.0;", "1:8", "wse.csl.name.unknown", '"float" is not declared'),
    ("let x: u16 = 3;", "x = 4;", "1:1", "wse.csl.parse.item", 'expected a declaration (const, var, param, fn, task, layout or comptime), found "let"'),
    ("var x: u16 = 3;", "return 1;", "2:26", "wse.csl.type.mismatch", "the result: expected void, found comptime_int"),
    ("var x: u16 = 3;", "break;", "2:26", "wse.csl.break.target", "there is no enclosing loop"),
    ("fn f() u16 { return; }", "var y = f();", "1:14", "wse.csl.return.value", "this function returns u16, but return has no value"),
    ("var x: bool = 1;", "x = true;", "1:15", "wse.csl.type.mismatch", 'var "x": expected bool, found comptime_int'),
    ("var x: u16 = true;", "x = 2;", "1:14", "wse.csl.type.mismatch", 'var "x": expected u16, found bool'),
    ("comptime { @set_local_color_config(@get_color(2), .{ .routes = .{ .rx = EAST, .tx = .{ RAM } } }); }", "var x: u16 = 2;", "1:88", "wse.csl.name.unknown", '"RAM" is not declared'),
    ("comptime { @set_local_color_config(2, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } }); }", "var x: u16 = 2;", "1:36", "wse.csl.type.mismatch", "expected a color, found comptime_int"),
    ('const mem = @import_module("<memcpy/memcpy>", .{ .width = 1 });', "mem.unblock_cmd_streams();", "2:30", "wse.csl.module.member", 'module "memcpy" has no "unblock_cmd_streams"'),
    ("var x: u16 = 2;", "@unblock_cmd_stream();", "2:26", "wse.csl.builtin.unknown", "there is no built-in @unblock_cmd_stream"),
    ("var x: u32 = 0; var y: u16 = 1;", "x = @bitcast(u32, y);", "2:30", "wse.csl.type.bitcast", "@bitcast needs equal widths: u16 has 16 bits, u32 has 32"),
    ("var x = @zeros(4, f32);", "x[0] = 1.0;", "1:9", "wse.csl.builtin.arguments", "@zeros takes 1 argument, found 2"),
    ("var x = @zeros([4]f32);", "x.len = 3;", "2:28", "wse.csl.type.field", 'a value of type [4]f32 has no field "len"'),
    ("fn fact(n: u16) u16 { return n * fact(n - 1) }", "var y = fact(3);", "1:46", "wse.csl.parse.expected", 'expected ";" at the end of the statement, found "}"'),
]


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_mistakes_have_their_place(arch, tmp_path):
    wrong = []
    (tmp_path / "layout.csl").write_text(LAYOUT)
    for globals_, body, place, slug, words in MISTAKES:
        (tmp_path / "pe.csl").write_text(globals_ + START % body)
        with pytest.raises(wse.WseError) as caught:
            wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
        text = str(caught.value)
        if caught.value.code != slug or f"pe.csl:{place}: error: {words}" not in text:
            wrong.append((globals_, body, text))
    assert not wrong, wrong
