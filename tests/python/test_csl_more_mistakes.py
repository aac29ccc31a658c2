# SPDX-License-Identifier: Apache-2.0
"""More mistakes of programs in CSL: types, descriptors, queues, colors and libraries, each refused at its place with what is legal."""

import pytest
from test_wse_programs import LAYOUT, START, wse

V = "var v = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });"
E = "const E = enum(u16) { a, b }; var e: E = E.a;"
S = "const S = struct { x: u16, y: u16 };"
ROUTE = "comptime { @set_local_color_config(@get_color(3), .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } }, %s }); }"

# Globals, body of the task, line of the mistake (line 1 is that of the globals), slug, words of the text.
MISTAKES = [
    ("var x: u16 = 1; var b: bool = true;", "x = x + b;", 2, "wse.csl.type.mismatch", "types u16 and bool do not go together; @as(u16, value) makes 0 or 1"),
    ("var x: i16 = 3; var y: i16 = 2;", "x = x << y;", 2, "wse.csl.shift.signed", "the count of << is unsigned, found i16; @as(u16, count)"),
    (E, "e = 1;", 2, "wse.csl.type.mismatch", "expected E, found comptime_int; a number becomes a member by @as(E, value)"),
    (E, "e = E.c;", 2, "wse.csl.type.field", 'E has no member "c"; its members are a, b'),
    (E, "if (e < E.b) { e = E.b; }", 2, "wse.csl.type.operator", "operator < is not defined for E; convert both sides"),
    (S, "var s = S{ .x = 1 }; s.x = 2;", 2, "wse.csl.type.missing_field", 'field "y" needs a value'),
    (S, "var s = S{ .x = 1, .x = 2, .y = 3 }; s.x = 2;", 2, "wse.csl.type.duplicate_field", 'field "x" occurs twice'),
    ("var a: [3]u16 = [3]u16{ 1, 2 };", "a[0] = 1;", 1, "wse.csl.type.initialiser", "[3]u16 needs 3 elements, found 2"),
    ("var a = @zeros([2, 3]u16);", "a[1][2] = 4;", 2, "wse.csl.index.rank", "expected 2 indices into [2,3]u16, found 1; a[i, j]"),
    ("var a = @zeros([3]u16); var f: f32 = 1.0;", "a[f] = 4;", 2, "wse.csl.index.type", "an index must be an integer, found f32; @as(i16, x)"),
    ("const k: u16 = 3; fn g(p: *u16) void { p.* = 1; }", "g(&k);", 2, "wse.csl.type.mismatch", 'argument "p": expected *u16, found *const u16; constant data cannot become'),
    ("", "for (@range(f32, 4.0)) |i| { }", 2, "wse.csl.type.mismatch", "@range counts in an integer type, found f32"),
    ("", "for (@range(i16, 0, 4, 0)) |i| { }", 2, "wse.csl.for.step", "the step of @range cannot be 0; step by 1 or more"),
    ("var x: u16 = 1;", "switch (x) { 1 => x = 2, 1 => x = 3, else => x = 4 }", 2, "wse.csl.switch.duplicate", "the case 1 occurs twice"),
    ("", "a: for (@range(u16, 2)) |i| { a: while (i > 5) { } }", 2, "wse.csl.name.duplicate", 'the label "a" is that of a loop or block around this one; give one of the two another name'),
    ("var x: u16 = 1;", "const y = b: { if (x > 2) { break :b x; } }; x = y;", 2, "wse.csl.type.mismatch", "a break of this block has a value of type u16, but the block's end can be reached without one"),
    ("var x: u16 = 1;", "b: { if (x > 2) { break :b false; } }", 2, "wse.csl.type.mismatch", "a value of type bool, but the block's end can be reached"),
    ("var x: u16 = 1;", "const y = b: { if (x > 2) { break :b; } break :b x; };", 2, "wse.csl.type.mismatch", "expected void as at another break of this block, found u16"),
    ("var x: u16 = 1;", "const y = b: { if (x > 2) { break :b x; } break :b {}; };", 2, "wse.csl.type.mismatch", "expected u16 as at another break of this block, found void"),
    ("var x: u16 = 1;", 'const y = b: { if (x > 2) { break :b "a"; } break :b "b"; };', 2, "wse.csl.type.runtime", "a value of type comptime_string cannot be chosen at run time"),
    ("var a = @zeros([3]u16);", "for (a) |*p| { p.* = 1; }", 2, "wse.csl.parse.form", "the loop variable is a copy of an element; write to the array by an index"),
    ("var x: u16 = 1;", "switch (x) { 0...4 => { }, else => { } }", 2, "wse.csl.parse.expected", "a switch lists its values: 0, 1, 2 =>"),
    ("var x: u2 = 1;", "switch (x) { 0, 1, 2 => { } }", 2, "wse.csl.switch.exhaustive", "the cases do not cover u2; add an else case"),
    (S, 'var s: S = .{ .x = 1, .y = "a" }; s.x = 2;', 2, "wse.csl.type.mismatch", 'field "y": expected u16, found comptime_string'),
    ("", "while (true) { break :outer; }", 2, "wse.csl.break.target", 'no enclosing loop or block labelled "outer"; label the loop'),
    ("fn g(comptime n: u16) u16 { return n; } var k: u16 = 3;", "var r = g(k); r = 1;", 2, "wse.csl.comptime.runtime_value", '"k" exists only at run time; use a const, a param'),
    (V, "const e = @set_dsd_stride(d, 300); @fmovs(e, d);", 2, "wse.csl.type.mismatch", "the stride: expected i8; 300 does not fit i8"),
    (V, "const e = @set_dsd_length(d, -2); @fmovs(e, d);", 2, "wse.csl.type.mismatch", "the length: expected u16; -2 does not fit u16"),
    ("var w = @zeros([4]f32);", "const e = @get_dsd(mem1d_dsd, .{ .base_address = &w, .extent = -4 }); @fmovs(e, 1.0);", 2, "wse.csl.dsd.extent", "an extent must lie in 0..65535, found -4"),
    ("var w = @zeros([4]f32);", "const e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[i], .extent = 4 }); @fmovs(e, 1.0);", 2, "wse.csl.dsd.property", 'is given "extent" twice; tensor_access gives base_address, extent and stride'),
    ("var w = @zeros([4]f32);", "const e = @get_dsd(mem1d_dsd, .{ .base_address = &w, .extent = 4, .strid = 2 }); @fmovs(e, 1.0);", 2, "wse.csl.dsd.property", 'mem1d_dsd has no property "strid"; legal are tensor_access, base_address, extent, stride'),
    ("const o = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = @get_color(1), .input_queue = @get_input_queue(2) });", "@fmovs(o, 1.0);", 1, "wse.csl.dsd.property", 'fabout_dsd has no property "input_queue"; legal are extent, fabric_color'),
    ("const r = @get_dsr(dsr_dest, 99);", "@fmovs(r, 1.0);", 1, "wse.csl.id.range", "dsr_dest 99 does not exist; legal are 0.."),
    (V, "@fmacs(d, d, d);", 2, "wse.csl.builtin.arguments", "@fmacs takes 4 operands and optional settings, found 3"),
    (V + "var k: i16 = 2;", "@fmacs(d, d, d, k);", 2, "wse.csl.dsd.operand", "scalars of type f32, found i16"),
    (V + "fn g(a: f32) f32 { return a; }", "@map(g, d, d, d);", 2, "wse.csl.builtin.arguments", '@map over "g" takes the function, 1 input, an output and optional settings; found 4'),
    ("var b = @zeros([0]u32); const f = @allocate_fifo(b);", "@mov32(f, 1);", 1, "wse.csl.fifo.buffer", "the buffer of a FIFO has no elements; module-level var array"),
    ("task t() void {}", "@bind_local_task(t, @get_local_task_id(9));", 2, "wse.csl.builtin.context", "tasks are bound in a comptime block"),
    ("task t() void {} comptime { @bind_data_task(t, @get_data_task_id(DATA)); }", "", 1, "wse.csl.task.arguments", 'data task "t" needs an argument'),
    (ROUTE % ".switches = .{ .pos5 = .{ .rx = WEST } }", "", 1, "wse.csl.route.config", 'switches has no setting "pos5"; legal are pos1..pos3'),
    (ROUTE % ".switches = .{ .pos1 = .{ .rx = WEST }, .pop_mode = .{ .sometimes = true } }", "", 1, "wse.csl.route.config", 'pop_mode has no setting "sometimes"; legal are no_pop, always_pop'),
    (ROUTE % ".filter = .{ .kind = .{ .cunter = true } }", "", 1, "wse.csl.route.config", 'no setting "cunter"; legal are range, counter and sparse_counter'),
    (ROUTE % ".filter = .{ .kind = .{ .counter = true }, .max = 3 }", "", 1, "wse.csl.route.config", 'filter has no setting "max"; legal are kind'),
    ("comptime { @initialize_queue(@get_input_queue(3), .{ .color = @get_color(1) }); @initialize_queue(@get_input_queue(3), .{ .color = @get_color(2) }); }", "", 1, "wse.csl.queue.twice", "input queue 3 is initialised twice"),
    ("comptime { @initialize_queue(@get_input_queue(3), .{ .colour = @get_color(1) }); }", "", 1, "wse.csl.settings.unknown", '@initialize_queue has no setting "colour"; legal are color'),
    ('const c = @import_module("<control>");', "var x = c.encode_single_payload(c.opcode.SWITCH_FWD, true, {}, 0); x = 1;", 2, "wse.csl.type.field", 'opcode has no member "SWITCH_FWD"; its members are NOP, SWITCH_ADV'),
    ('const t = @import_module("<time>"); var b = @zeros([2]u16);', "t.get_timestamp(&b);", 2, "wse.csl.type.mismatch", "expected *[3]u16, found *[2]u16"),
    ('const t = @import_module("<debug>", .{ .buffer_size = 10 });', "t.trace_u16(3);", 1, "wse.csl.param.missing", 'param "key" of "debug" has no value; the module is imported here'),
    ("var x: u16 = 1;", "x++;", 2, "wse.csl.parse.operator", "there is no ++; write: a += 1"),
    ("var x: u16 = 1;", "x = x > 1 ? 2 : 3;", 2, "wse.csl.lex.character", "a choice is written: if (c) a else b"),
    ("task t() u16 { return 1; } comptime { @bind_local_task(t, @get_local_task_id(9)); }", "", 1, "wse.csl.task.result", 'task "t" cannot return u16'),
    ("var x: u16 = 1;", "var y = @bitcast(f32, x); y = 1.0;", 2, "wse.csl.type.bitcast", "u16 has 16 bits, f32 has 32; @as(u32, x) converts first"),
    ("var x = @zeros([30000]f32);", "x[0] = 1.0;", 1, "wse.csl.memory.overflow", "a PE has 49152 bytes; the largest objects are x (120000 bytes)"),
    ("fn g(a: u16, a: u16) u16 { return a; }", "g(1, 2);", 1, "wse.csl.name.duplicate", '"a" names two parameters of "g"'),
    ("pub fn g() void {}", "g();", 1, "wse.csl.parse.item", "there is no pub; @import_module"),
    ("var x: u16 = undefined;", "x = 1;", 1, "wse.csl.name.unknown", '"undefined" is not declared; var x: T;'),
    ("", "var n: usize = 1; n = 2;", 2, "wse.csl.name.unknown", '"usize" is not declared; sizes and extents are u16'),
    (ROUTE.replace("WEST", "LEFT").replace("EAST", "UP") % ".switches = .{}", "", 1, "wse.csl.name.unknown", '"UP" is not declared; EAST, WEST, NORTH, SOUTH and RAMP'),
    ("", "const x: u16 = 1; x = 2;", 2, "wse.csl.assign.constant", "it is constant; var copy = x;"),
    ("comptime { @set_local_color_config(3, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } }); }", "", 1, "wse.csl.type.mismatch", "expected a color, found comptime_int; @get_color(n) is color n"),
    ("task t() void {} comptime { @bind_local_task(t, 9); }", "", 1, "wse.csl.type.mismatch", "expected a local_task_id, found comptime_int; @get_local_task_id(n)"),
    ("task t() void {} comptime { @bind_control_task(t, @get_control_task_id(9)); @block(@get_control_task_id(9)); }", "", 1, "wse.csl.task.activate", "a control task runs when its control wavelet comes; the color (WSE-2) or the input queue (WSE-3)"),
    ("var v = @zeros([4]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 });", "@fmovs(&v, d);", 2, "wse.csl.dsd.operand", "writes one number through a pointer, found *[4]f32; &A[0], or a descriptor of the array"),
    ("color main_color;", "", 1, "wse.csl.parse.item", "const c: color = @get_color(3); or param c: color;"),
    ("struct P { x: f32 }", "", 1, "wse.csl.parse.item", "a struct type is a value: const P = struct { x: f32, y: f32 };"),
    ("import math;", "", 1, "wse.csl.parse.item", '@import_module("file.csl");'),
    ("", 'asm volatile ("nop");', 2, "wse.csl.parse.form", "inline assembly is not there"),
    ("var x: f64 = 1.0;", "x = 2.0;", 1, "wse.csl.name.unknown", "floats are f16 and f32"),
    ('const m = @import_module("<math>");', "var x = m.subsat(@as(f32, 1.0), 2.0); x = 1.0;", 2, "wse.csl.library.error", "<math>.subsat; in no public document"),
    ('const t = @import_module("<tile_config>");', "t.filters.set_pass_count(1, 4);", 2, "wse.csl.library.error", "counters of half-wavelets are not there; set_counter"),
    ('const t = @import_module("<tile_config>");', "if (t.filters.get_state(1) == t.filters.counter_filter_state.DROP) {}", 2, "wse.csl.library.error", "counters of half-wavelets are not there"),
    ('const m = @import_module("<string>"); const s = m.fmt("{X}", .{ 3 });', "@comptime_assert(@strlen(s) == 1);", 1, "wse.csl.library.error", "<string>.fmt; in no public document"),
    ('const m = @import_module("<kernels/fft/fft3d>");', "", 1, "wse.csl.module.library", "<kernels/fft/fft3d> is not there; <kernels/fft/fft3d_layout> lays the whole transform out"),
    ("var s: i32 = 1; var u: u32 = 2;", "s = s + u;", 2, "wse.csl.type.mismatch", "types i32 and u32 do not go together; where that has all its values; @as(T, value)"),
    ("fn f(k: u16) u16 { const x = blk: { if (k == 0) { break :blk 1; } break :blk 2; }; return x; }", "var y = f(1); y = 2;", 1, "wse.csl.type.runtime", "the values of this block are compile-time numbers; give one a type with @as"),
    ("fn f(k: u16) u8 { const x = blk: { if (k == 0) { break :blk 300; } break :blk @as(u8, 2); }; return x; }", "var y = f(1); y = 2;", 1, "wse.csl.type.mismatch", "300 does not fit u8"),
    ("var n: u16 = 3;", "var r = @range(u16, n); r = @range(u16, 2);", 2, "wse.csl.assign.constant", "cannot be assigned to"),
    ("const S = extern enum { a };", "", 1, "wse.csl.parse.expression", "expected struct or union after extern"),
]  # fmt: skip


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
@pytest.mark.parametrize("globals_,body,line,slug,words", MISTAKES)
def test_more_mistakes_of_csl(globals_, body, line, slug, words, arch, tmp_path):
    data = "@get_color(3)" if arch == "wse2" else "@get_input_queue(3)"
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(globals_.replace("DATA", data) + START % body)
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    text = str(caught.value)
    assert caught.value.code == slug, text
    assert f"pe.csl:{line}:" in text, text
    for part in words.split("; "):
        assert part in text, text


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_a_parameter_that_a_library_does_not_have_is_reported(arch, tmp_path):
    (tmp_path / "layout.csl").write_text(LAYOUT)
    globals_ = 'const t = @import_module("<debug>", .{ .key = "a", .buffer_size = 9, .siz = 3 });'
    (tmp_path / "pe.csl").write_text(globals_ + START % "t.trace_u16(3);")
    built = wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    assert '"debug" has no param "siz"; the value is not used' in built["warnings"]


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_a_mistake_inside_a_called_function_names_the_call(arch, tmp_path):
    """The place of a mistake that only the call makes is in a function of a library: the call is its place, the rest a note."""
    (tmp_path / "layout.csl").write_text(LAYOUT)
    globals_ = 'const p = @import_module("<simprint>");'
    (tmp_path / "pe.csl").write_text(globals_ + START % 'p.fmt_no_nl("{} {}", .{ 1 });')
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    assert "<simprint>:" in str(caught.value) and "note: found here" in str(caught.value)
    assert "pe.csl:2:" in str(caught.value).split("note: found here")[0]


@pytest.mark.parametrize("arch,other", [("wse2", "@get_input_queue(3)"), ("wse3", "@get_color(3)")])
@pytest.mark.parametrize("call", ["@block(%s);", "@unblock(%s);"])
def test_wavelets_are_blocked_by_what_the_machine_knows_them_by(call, arch, other, tmp_path):
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(START % (call % other))
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    assert caught.value.code == "wse.csl.task.expected"
    assert ("by their color" if arch == "wse2" else "by their input queue") in str(caught.value)
