# SPDX-License-Identifier: Apache-2.0
"""CSL programs as users of the SDK write them, each over several features at once, at odd sizes with random data, beside NumPy."""

import re
import sys

import numpy as np
import pytest
from test_wse_programs import ROOT, wse

sys.path.insert(0, str(ROOT / "compat" / "cerebras"))
from cerebras.sdk.debug.debug_util import debug_util  # noqa: E402

ROW = wse.MemcpyOrder.ROW_MAJOR
COLUMN = wse.MemcpyOrder.COL_MAJOR
ARCHS = ["wse2", "wse3"]
both = pytest.mark.parametrize("arch", ARCHS)


def layout(exports, config="", params="", binding=""):
    """A layout of W x H PEs of one program; `exports` as (name, type, mutable) or (name, function type)."""
    names = "".join(
        f'@export_name("{e[0]}", {e[1]}{", " + str(e[2]).lower() if len(e) > 2 else ""});\n'
        for e in exports
    )
    return f"""
param W: u16; param H: u16; {params}
const memcpy = @import_module("<memcpy/get_params>", .{{ .width = W, .height = H }});
layout {{
  @set_rectangle(W, H);
  for (@range(u16, W)) |x| {{ for (@range(u16, H)) |y| {{
    @set_tile_code(x, y, "pe.csl", .{{ .memcpy_params = memcpy.get_params(x), {binding} }});
    {config}
  }} }}
  {names}
}}"""


class Machine:
    """A program that was compiled and loaded on W x H PEs; copies by names of exported pointers."""

    def __init__(self, folder, arch, files, w=1, h=1, params=None, **options):
        for name, text in files.items():
            (folder / name).write_text(text)
        out = str(folder / "out")
        self.built = wse.compile_csl(
            str(folder / "layout.csl"),
            out,
            arch=arch,
            fabric_dims=(w + 7, h + 2),
            fabric_offsets=(4, 1),
            params={"W": w, "H": h, **(params or {})},
            memcpy=True,
        )
        assert not self.built["warnings"], self.built["warnings"]
        self.w, self.h = w, h
        self.runner = wse.SdkRuntime(out, **options)
        self.runner.load()
        self.runner.run()

    def put(self, name, values, order=ROW):
        """`values` [h, w, n] of 32 bits."""
        data = np.ascontiguousarray(values)
        assert data.dtype.itemsize == 4
        n = data.size // (self.w * self.h)
        self.runner.memcpy_h2d(
            self.runner.get_id(name),
            data.ravel(),
            0,
            0,
            self.w,
            self.h,
            n,
            streaming=False,
            order=order,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=False,
        )

    def get(self, name, n, dtype=np.float32):
        out = np.zeros(self.h * self.w * n, np.dtype(dtype))
        assert out.itemsize == 4
        self.runner.memcpy_d2h(
            out,
            self.runner.get_id(name),
            0,
            0,
            self.w,
            self.h,
            n,
            streaming=False,
            order=ROW,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=False,
        )
        return out.reshape(self.h, self.w, n)

    def put16(self, name, values):
        """`values` [h, w, n] of 16 bits."""
        data = np.ascontiguousarray(values)
        assert data.dtype.itemsize == 2
        self.runner.memcpy_h2d(
            self.runner.get_id(name),
            data.view(np.uint16).ravel().astype(np.uint32),
            0,
            0,
            self.w,
            self.h,
            data.size // (self.w * self.h),
            streaming=False,
            order=ROW,
            data_type=wse.MemcpyDataType.MEMCPY_16BIT,
            nonblock=False,
        )

    def get16(self, name, n, dtype):
        out = np.zeros(self.h * self.w * n, np.uint32)
        self.runner.memcpy_d2h(
            out,
            self.runner.get_id(name),
            0,
            0,
            self.w,
            self.h,
            n,
            streaming=False,
            order=ROW,
            data_type=wse.MemcpyDataType.MEMCPY_16BIT,
            nonblock=False,
        )
        return out.astype(np.uint16).view(dtype).reshape(self.h, self.w, n)

    def launch(self, name, *args):
        self.runner.launch(name, *args, nonblock=False)

    def stop(self):
        self.runner.stop()


SYS = 'param memcpy_params; const sys = @import_module("<memcpy/memcpy>", memcpy_params);\n'
rng = np.random.default_rng(19)


@both
def test_packets_of_unions_packed_structs_and_enums(arch, tmp_path):
    n = 37
    pe = (
        SYS
        + """
param n: u16;
const Kind = enum(u16) { add = 1, sub = 2, scale = 5, drop };
const Head = packed struct { kind: u8, times: u8, id: u16 };
const Word = union { raw: u32, head: Head, value: f32 };
const Account = struct { sum: f32, count: [4]u16, last: Kind };
var words = @zeros([2 * n]u32); var words_p: [*]u32 = &words;
var sums = @zeros([3]f32); var sums_p: [*]f32 = &sums;
var counts = @zeros([4]u32); var counts_p: [*]u32 = &counts;
var accounts: [3]Account = @constants([3]Account, Account{ .sum = 0.0, .count = [4]u16{ 0, 0, 0, 0 }, .last = Kind.drop });
fn apply(a: *Account, kind: Kind, v: f32, times: u8) void {
  var k: u8 = 0;
  while (k < times) : (k += 1) {
    switch (kind) {
      Kind.add => a.*.sum += v,
      Kind.sub => a.*.sum -= v,
      Kind.scale => { if (v == 0.0) continue; a.*.sum *= v; },
      else => return,
    }
  }
  a.*.last = kind;
}
fn run() void {
  for (@range(u16, n)) |i| {
    const head = (Word{ .raw = words[2 * i] }).head;
    const v = (Word{ .raw = words[2 * i + 1] }).value;
    const kind = @as(Kind, @as(u16, head.kind));
    const a = &accounts[head.id % 3];
    apply(a, kind, v, head.times);
    a.*.count[@as(u16, head.kind) % 4] += 1;
  }
  for (@range(u16, 3)) |k| {
    sums[k] = accounts[k].sum;
    for (@range(u16, 4)) |j| { counts[j] += @as(u32, accounts[k].count[j]); }
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(words_p, "words"); @export_symbol(sums_p, "sums"); @export_symbol(counts_p, "counts"); @export_symbol(run); }
"""
    )
    exports = [
        ("words", "[*]u32", True),
        ("sums", "[*]f32", False),
        ("counts", "[*]u32", False),
        ("run", "fn()void"),
    ]
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout(exports, params="param n: u16;", binding=".n = n"), "pe.csl": pe},
        params={"n": n},
    )
    kinds = rng.choice([1, 2, 5, 6], n)
    times = rng.integers(0, 4, n)
    ids = rng.integers(0, 9, n)
    values = rng.integers(-3, 4, n).astype(np.float32) / 2
    words = np.empty((n, 2), np.uint32)
    words[:, 0] = kinds | times << 8 | ids << 16
    words[:, 1] = values.view(np.uint32)
    m.put("words", words)
    m.launch("run")
    sums, counts = np.zeros(3, np.float32), np.zeros(4, np.uint32)
    for kind, t, k, v in zip(kinds, times, ids % 3, values):
        for _ in range(t):
            if kind == 1:
                sums[k] += v
            elif kind == 2:
                sums[k] -= v
            elif kind == 5 and v != 0:
                sums[k] *= v
        counts[kind % 4] += 1
    np.testing.assert_array_equal(m.get("sums", 3)[0, 0], sums)
    np.testing.assert_array_equal(m.get("counts", 4, np.uint32)[0, 0], counts)
    m.stop()


@both
def test_tables_made_by_functions_at_compile_time(arch, tmp_path):
    """A table of sines by Taylor's series, primes by a sieve, a permutation, all of them constants of the program."""
    n = 41
    pe = (
        SYS
        + """
param n: u16;
fn sine(comptime x: f32) f32 {
  var term: f32 = x; var sum: f32 = x;
  for (@range(i16, 9)) |k| {
    const d = @as(f32, (2 * k + 2) * (2 * k + 3));
    term = -(term * x * x) / d;
    sum += term;
  }
  return sum;
}
fn sines() [n]f32 {
  var t = @zeros([n]f32);
  for (@range(u16, n)) |i| { t[i] = sine(@as(f32, i) * 0.05); }
  return t;
}
fn primes() [n]u32 {
  var composite = @zeros([4 * n]bool);
  var out = @zeros([n]u32);
  var found: u16 = 0;
  var i: u16 = 2;
  outer: while (i < 4 * n) : (i += 1) {
    if (composite[i]) continue :outer;
    if (found == n) break :outer;
    out[found] = @as(u32, i);
    found += 1;
    var j: u16 = 2 * i;
    while (j < 4 * n) : (j += i) { composite[j] = true; }
  }
  return out;
}
const table = sines();
var table_copy: [n]f32 = table;
var prime_table: [n]u32 = primes();
var picked = @zeros([n]f32);
var table_p: [*]f32 = &table_copy; var primes_p: [*]u32 = &prime_table; var picked_p: [*]f32 = &picked;
fn pick(step: u16) void {
  for (@range(u16, n)) |i| { picked[i] = table[(i * step) % n]; }
  sys.unblock_cmd_stream();
}
comptime {
  @comptime_assert(@element_count(@type_of(table)) == n);
  @export_symbol(table_p, "table"); @export_symbol(primes_p, "primes"); @export_symbol(picked_p, "picked"); @export_symbol(pick);
}
"""
    )
    exports = [
        ("table", "[*]f32", False),
        ("primes", "[*]u32", False),
        ("picked", "[*]f32", False),
        ("pick", "fn(u16)void"),
    ]
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout(exports, params="param n: u16;", binding=".n = n"), "pe.csl": pe},
        params={"n": n},
    )
    m.launch("pick", np.uint16(7))
    table = m.get("table", n)[0, 0]
    np.testing.assert_allclose(table, np.sin(np.arange(n) * 0.05), atol=1e-6)
    sieve = [p for p in range(2, 4 * n) if all(p % q for q in range(2, p))][:n]
    sieve += [0] * (n - len(sieve))
    np.testing.assert_array_equal(m.get("primes", n, np.uint32)[0, 0], sieve)
    np.testing.assert_array_equal(m.get("picked", n)[0, 0], table[np.arange(n) * 7 % n])
    m.stop()


@both
def test_permuted_and_reversed_axes_by_descriptors(arch, tmp_path):
    a, b, c = 3, 5, 7
    pe = (
        SYS
        + """
const A = 3; const B = 5; const C = 7;
var x = @zeros([A, B, C]f32); var y = @zeros([C, A, B]f32); var z = @zeros([A, B, C]f32); var s = @zeros([B]f32);
var x_p: [*]f32 = @ptrcast([*]f32, &x); var y_p: [*]f32 = @ptrcast([*]f32, &y); var z_p: [*]f32 = @ptrcast([*]f32, &z); var s_p: [*]f32 = &s;
const whole = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> x[i, j, k] });
const turned = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> y[k, i, j] });
const flipped = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, B, C} -> z[A - 1 - i, j, C - 1 - k] });
const sums = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, C, B} -> s[k] });
const lines = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{A, C, B} -> x[i, k, j] });
fn run() void {
  @fmovs(turned, whole);
  @fmovs(flipped, whole);
  @fadds(sums, sums, lines);
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(z_p, "z"); @export_symbol(s_p, "s"); @export_symbol(run); }
"""
    )
    exports = [
        ("x", "[*]f32", True),
        ("y", "[*]f32", False),
        ("z", "[*]f32", False),
        ("s", "[*]f32", False),
        ("run", "fn()void"),
    ]
    m = Machine(tmp_path, arch, {"layout.csl": layout(exports), "pe.csl": pe})
    x = rng.random((a, b, c)).astype(np.float32)
    m.put("x", x)
    m.launch("run")
    np.testing.assert_array_equal(m.get("y", x.size).reshape(c, a, b), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(m.get("z", x.size).reshape(a, b, c), x[::-1, :, ::-1])
    np.testing.assert_allclose(m.get("s", b)[0, 0], x.sum((0, 2)), rtol=1e-5)
    m.stop()


@pytest.mark.parametrize("n", [16, 21])
@both
def test_halves_sent_in_pairs_around_a_row(arch, n, tmp_path):
    """Each PE sends its 16-bit vector to the east; what comes from the west is scaled and kept."""
    pe = (
        SYS
        + """
param n: u16; param first: bool; param last: bool; param out: color; param in: color;
const place = @import_module("<layout>");
var v = @zeros([n]f16); var got = @zeros([n]f16);
var v_p: [*]f16 = &v; var got_p: [*]f16 = &got;
const oq = @get_output_queue(2); const iq = @get_input_queue(2);
const simd = .{ .simd_32 = true };
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq, .simd_mode = simd });
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq, .simd_mode = simd });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
const G = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> got[i] });
const done = @get_local_task_id(9);
var waits: u16 = @as(u16, !first) + @as(u16, !last);
fn run() void {
  if (!last) @fmovh(to, V, .{ .async = true, .activate = done });
  if (!first) @fmulh(G, from, 0.5, .{ .async = true, .activate = done });
}
var ended: u16 = 0;
task finished() void {
  ended += 1;
  if (ended == 1 and waits == 2) { @block(done); @unblock(done); return; }
  sys.unblock_cmd_stream();
}
comptime {
  @bind_local_task(finished, done);
  if (!first) @initialize_queue(iq, .{ .color = in });
  if (!last) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out }); }
  @export_symbol(v_p, "v"); @export_symbol(got_p, "got"); @export_symbol(run);
}
"""
    )
    config = """
    if (x > 0) @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    if (x + 1 < W) @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });"""
    text = layout(
        [("v", "[*]f16", True), ("got", "[*]f16", False), ("run", "fn()void")],
        config,
        "param n: u16; const c = [2]color{ @get_color(3), @get_color(4) };",
        ".n = n, .first = x == 0, .last = x == W - 1, .out = c[x % 2], .in = c[(x + 1) % 2]",
    )
    w = 4
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    v = rng.random((1, w, n)).astype(np.float16)
    m.put16("v", v)
    m.launch("run")
    got = m.get16("got", n, np.float16)
    np.testing.assert_array_equal(got[0, 1:], v[0, :-1] * np.float16(0.5))
    np.testing.assert_array_equal(got[0, 0], 0)
    m.stop()


@both
def test_run_lengths_through_a_fifo(arch, tmp_path):
    """A data task expands (value, count) pairs into a FIFO, which a microthread empties into memory as f32."""
    pairs = [(int(v), int(k)) for v, k in zip(rng.integers(0, 99, 23), rng.integers(0, 6, 23))]
    total = sum(k for _, k in pairs)
    pe = (
        SYS
        + """
param total: u16; param n: u16;
const loop = @get_color(5); const oq = @get_output_queue(3); const iq = @get_input_queue(3);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(loop);
const done = @get_local_task_id(10);
var words = @zeros([n]u32); var out = @zeros([total]f32);
var words_p: [*]u32 = &words; var out_p: [*]f32 = &out;
var room = @zeros([6]u32);
const fifo = @allocate_fifo(room, .{ .activate_push = popped, .activate_pop = popped });
const send = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = loop, .output_queue = oq });
var value: u32 = 0; var left: u16 = 0; var taken: u16 = 0;
var single = @zeros([1]u32); const one = @get_dsd(mem1d_dsd, .{ .base_address = &single, .extent = 1 });
task arrived(count: u16, v: u16) void {
  @block(data_id);
  value = @as(u32, v);
  left = count;
  @activate(fill);
}
task filling() void {
  while (left > 0) {
    single[0] = value;
    if (!@mov32(fifo, one)) { @activate(drain); return; }
    left -= 1;
  }
  @unblock(data_id);
  @activate(drain);
}
const fill = @get_local_task_id(11); const drain = @get_local_task_id(12);
task popped() void {}
task draining() void {
  while (@mov32(one, fifo)) {
    out[taken] = @as(f32, single[0]);
    taken += 1;
  }
  if (left > 0) { @activate(fill); }
  if (taken == total) sys.unblock_cmd_stream();
}
fn run() void { @mov32(send, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> words[i] }), .{ .async = true }); }
comptime {
  @bind_data_task(arrived, data_id); @bind_local_task(popped, done); @bind_local_task(filling, fill); @bind_local_task(draining, drain);
  @set_local_color_config(loop, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @initialize_queue(iq, .{ .color = loop });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = loop });
  @export_symbol(words_p, "words"); @export_symbol(out_p, "out"); @export_symbol(run);
}
"""
    )
    text = layout(
        [("words", "[*]u32", True), ("out", "[*]f32", False), ("run", "fn()void")],
        params="param total: u16; param n: u16;",
        binding=".total = total, .n = n",
    )
    params = {"total": total, "n": len(pairs)}
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params=params)
    m.put("words", np.array([k | v << 16 for v, k in pairs], np.uint32))
    m.launch("run")
    want = np.repeat([v for v, _ in pairs], [k for _, k in pairs])
    np.testing.assert_array_equal(m.get("out", total)[0, 0], want)
    m.stop()


@both
def test_senders_take_turns_by_switches(arch, tmp_path):
    """Each PE of a row sends to the first one when its switch lets it; the last word of a sender advances the switches."""
    w, n = 5, 3
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16;
const ctrl = @import_module("<control>");
const bus = @get_color(6); const oq = @get_output_queue(3); const iq = @get_input_queue(3);
var v = @zeros([n]f32); var all = @zeros([n * W]f32); var v_p: [*]f32 = &v; var all_p: [*]f32 = &all;
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = bus, .output_queue = oq });
const turn = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = bus, .output_queue = oq, .control = true });
const in = @get_dsd(fabin_dsd, .{ .extent = n * (W - 1), .fabric_color = bus, .input_queue = iq });
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n * (W - 1)} -> all[n + i] });
const done = @get_local_task_id(9); const sent = @get_local_task_id(10);
fn run() void {
  if (x == 0) {
    for (@range(u16, n)) |i| { all[i] = v[i]; }
    @fmovs(A, in, .{ .async = true, .activate = done });
  } else {
    @fmovs(out, V, .{ .async = true, .activate = sent });
  }
}
task pass_on() void {
  // The first command turns the own switch, the second that of the next PE to the west.
  @mov32(turn, ctrl.encode_payload(2, [2]ctrl.opcode{ ctrl.opcode.SWITCH_ADV, ctrl.opcode.NOP }, [2]bool{ true, true }, true, {}), .{ .async = true, .activate = done });
}
task finished() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(finished, done); @bind_local_task(pass_on, sent);
  if (x == 0) { @initialize_queue(iq, .{ .color = bus }); } else { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); }
  @export_symbol(v_p, "v"); @export_symbol(all_p, "all"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) {
      @set_color_config(x, y, @get_color(6), .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    } else {
      @set_color_config(x, y, @get_color(6), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } },
        .switches = .{ .pos1 = .{ .rx = EAST }, .pop_mode = .{ .pop_on_advance = true } } });
    }"""
    text = layout(
        [("v", "[*]f32", True), ("all", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .W = W, .x = x",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    v = rng.random((1, w, n)).astype(np.float32)
    m.put("v", v)
    m.launch("run")
    np.testing.assert_array_equal(m.get("all", n * w)[0, 0], v.ravel())
    m.stop()


@both
def test_a_stream_dealt_out_by_filters(arch, tmp_path):
    """Every PE of a row keeps its own n of W * n wavelets; a counter per PE decides."""
    w, n = 4, 5
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16;
const bus = @get_color(9); const oq = @get_output_queue(3); const iq = @get_input_queue(4);
var all = @zeros([n * W]f32); var mine = @zeros([n]f32); var all_p: [*]f32 = &all; var mine_p: [*]f32 = &mine;
const out = @get_dsd(fabout_dsd, .{ .extent = n * W, .fabric_color = bus, .output_queue = oq });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = bus, .input_queue = iq });
const done = @get_local_task_id(9);
fn run() void {
  if (x == 0) {
    for (@range(u16, n)) |i| { mine[i] = all[i]; }
    @fmovs(out, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n * W} -> all[i] }), .{ .async = true, .activate = done });
  } else {
    @fmovs(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> mine[i] }), in, .{ .async = true, .activate = done });
  }
}
task finished() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(finished, done);
  if (x == 0) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); } else { @initialize_queue(iq, .{ .color = bus }); }
  @export_symbol(all_p, "all"); @export_symbol(mine_p, "mine"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) {
      @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    } else {
      const filter = .{ .kind = .{ .counter = true }, .count_data = true, .init_counter = n * (W - x), .limit1 = n * W - 1, .max_counter = n - 1 };
      if (x + 1 < W) {
        @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .filter = filter });
      } else {
        @set_color_config(x, y, @get_color(9), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } }, .filter = filter });
      }
    }"""
    text = layout(
        [("all", "[*]f32", True), ("mine", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .W = W, .x = x",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    data = rng.random((1, w, w * n)).astype(np.float32)
    m.put("all", data)
    for _ in range(2):  # the counters come round
        m.launch("run")
        np.testing.assert_array_equal(m.get("mine", n)[0], data[0, 0].reshape(w, n))
    m.stop()


@both
def test_maps_with_several_inputs(arch, tmp_path):
    n = 19
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var k = @zeros([n]i32); var r = @zeros([n]f32); var q = @zeros([n]i32); var low: f32 = 0.0;
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var k_p: [*]i32 = &k; var r_p: [*]f32 = &r; var q_p: [*]i32 = &q;
const math = @import_module("<math>");
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[n - 1 - i] });
const K = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> k[i] });
const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> r[i] });
const Q = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> q[i] });
var worst: f32 = -1.0;
fn mix(x: f32, y: f32, z: i32, bias: f32) f32 {
  const v = if (z % 2 == 0) x * y else x - y;
  worst = math.max(worst, v);
  return v + bias;
}
fn collatz(z: i32) i32 {
  var x = z; var steps: i32 = 0;
  while (x > 1) : (steps += 1) { x = if (x % 2 == 0) x / 2 else 3 * x + 1; }
  return steps;
}
fn run(bias: f32) void {
  @map(mix, A, B, K, bias, R);
  @map(collatz, K, Q);
  r[0] = worst;
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(k_p, "k"); @export_symbol(r_p, "r"); @export_symbol(q_p, "q"); @export_symbol(run); }
"""
    )
    exports = [(s, "[*]f32", True) for s in "abr"] + [(s, "[*]i32", True) for s in "kq"]
    text = layout([*exports, ("run", "fn(f32)void")], params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    a, b = rng.random((2, n)).astype(np.float32)
    k = rng.integers(1, 30, n).astype(np.int32)
    for name, v in (("a", a), ("b", b), ("k", k)):
        m.put(name, v)
    m.launch("run", np.float32(0.25))
    v = np.where(k % 2 == 0, a * b[::-1], a - b[::-1])
    want = v + np.float32(0.25)
    want[0] = v.max()
    np.testing.assert_array_equal(m.get("r", n)[0, 0], want)

    def steps(x):
        return 0 if x <= 1 else 1 + steps(x // 2 if x % 2 == 0 else 3 * x + 1)

    np.testing.assert_array_equal(m.get("q", n, np.int32)[0, 0], [steps(int(x)) for x in k])
    m.stop()


@both
def test_strings_as_arrays(arch, tmp_path):
    pe = (
        SYS
        + """
const text = @strcat("wafer ", "scale");
const letters = @get_array(text);
const n = @strlen(text);
fn moved() [n]u8 {
  var out = @zeros([n]u8);
  for (@range(u16, n)) |i| {
    const c = letters[i];
    out[i] = if (c >= 'a' and c <= 'z') (c - 'a' + 13) % 26 + 'a' else c;
  }
  return out;
}
const hidden = moved();
var out = @zeros([n]u32); var out_p: [*]u32 = &out;
fn back() void {
  for (hidden) |c, i| { out[i] = @as(u32, if (c >= 'a' and c <= 'z') (c - 'a' + 13) % 26 + 'a' else c); }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(out_p, "out"); @export_symbol(back); }
"""
    )
    text = layout([("out", "[*]u32", False), ("back", "fn()void")])
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe})
    m.launch("back")
    assert bytes(m.get("out", 11, np.uint32)[0, 0].astype(np.uint8)) == b"wafer scale"
    m.stop()


@both
def test_functions_of_math_in_both_widths(arch, tmp_path):
    n = 33
    names = ["sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "abs", "inv", "atan"]
    calls = "".join(
        f"  for (@range(u16, n)) |i| {{ f[{k} * n + i] = math.{name}(x[i]); h[{k} * n + i] = math.{name}(@as(f16, x[i])); }}\n"
        for k, name in enumerate(names)
    )
    pe = (
        SYS
        + f"""
param n: u16;
const math = @import_module("<math>");
var x = @zeros([n]f32); var f = @zeros([{len(names)} * n]f32); var h = @zeros([{len(names)} * n]f16);
var x_p: [*]f32 = &x; var f_p: [*]f32 = &f; var h_p: [*]f16 = &h;
fn run() void {{
{calls}  sys.unblock_cmd_stream();
}}
comptime {{ @export_symbol(x_p, "x"); @export_symbol(f_p, "f"); @export_symbol(h_p, "h"); @export_symbol(run); }}
"""
    )
    exports = [
        ("x", "[*]f32", True),
        ("f", "[*]f32", False),
        ("h", "[*]f16", False),
        ("run", "fn()void"),
    ]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    x = (rng.random(n) * 4 + 0.05).astype(np.float32)
    m.put("x", x)
    m.launch("run")
    f = m.get("f", n * len(names)).reshape(-1, n)
    h = m.get16("h", n * len(names), np.float16).reshape(-1, n)
    other = {"inv": lambda v: 1 / v, "atan": np.arctan}
    for k, name in enumerate(names):
        of = other.get(name) or getattr(np, name)
        np.testing.assert_allclose(f[k], of(x.astype(np.float64)), rtol=1e-6, err_msg=name)
        half = x.astype(np.float16).astype(np.float64)
        np.testing.assert_allclose(h[k], of(half), rtol=2e-3, atol=1e-4, err_msg=name)
    m.stop()


@both
def test_random_numbers_differ_by_seed_and_have_their_moments(arch, tmp_path):
    n = 500
    pe = (
        SYS
        + """
param n: u16;
const random = @import_module("<random>"); const place = @import_module("<layout>");
var u = @zeros([n]f32); var u_p: [*]f32 = &u;
fn draw(seed: u32) void {
  random.set_global_prng_seed(seed + @as(u32, place.get_x_coord()) * 17 + @as(u32, place.get_y_coord()));
  for (@range(u16, n)) |i| { u[i] = random.random_f32(-2.0, 3.0); }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(u_p, "u"); @export_symbol(draw); }
"""
    )
    text = layout(
        [("u", "[*]f32", False), ("draw", "fn(u32)void")], params="param n: u16;", binding=".n = n"
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, 2, 3, {"n": n})
    draws = []
    for seed in (5, 6, 5):
        m.launch("draw", np.uint32(seed))
        draws.append(m.get("u", n))
    np.testing.assert_array_equal(draws[0], draws[2])
    u = draws[0].reshape(6, n)
    assert len({row.tobytes() for row in u}) == 6
    assert u.min() >= -2 and u.max() < 3
    # The mean of 3000 uniform numbers of width 5 has a deviation of 0.026, their variance one of 0.034.
    assert abs(u.mean() - 0.5) < 0.13 and abs(u.var() - 25 / 12) < 0.17
    assert not np.array_equal(draws[0], draws[1])
    m.stop()


@both
def test_counted_cycles_grow_with_the_work(arch, tmp_path):
    pe = (
        SYS
        + """
const time = @import_module("<time>");
var v = @zeros([600]f32); var took = @zeros([3]u32); var took_p: [*]u32 = &took;
var t0 = @zeros([time.tsc_size_words]u16); var t1 = @zeros([time.tsc_size_words]u16);
fn words(t: *[3]u16) u32 { return @as(u32, t.*[0]) | @as(u32, t.*[1]) << 16; }
fn run(n: u16, k: u16) void {
  time.reset_tsc_counter();
  time.enable_tsc();
  time.get_timestamp(&t0);
  const d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
  @fmuls(d, d, 1.5);
  time.get_timestamp(&t1);
  took[k] = words(&t1) - words(&t0);
  time.disable_tsc();
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(took_p, "took"); @export_symbol(run); }
"""
    )
    text = layout([("took", "[*]u32", False), ("run", "fn(u16,u16)void")])
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe})
    for k, n in enumerate((100, 300, 500)):
        m.launch("run", np.uint16(n), np.uint16(k))
    a, b, c = m.get("took", 3, np.uint32)[0, 0].astype(int)
    assert c - b == b - a == 200  # an element a cycle, and the same beginning
    m.stop()


@both
def test_products_by_collectives_with_every_root(arch, tmp_path):
    """x goes from a root to its row, partial sums go to the root's column; the root is another one in each launch."""
    w, h, rows, columns = 3, 2, 5, 4
    pe = (
        SYS
        + """
param c2d; param R: u16; param C: u16;
const mx = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.x, .queues = [2]u16{ 2, 4 }, .dest_dsr_ids = [1]u16{ 1 }, .src0_dsr_ids = [1]u16{ 1 }, .src1_dsr_ids = [1]u16{ 1 } });
const my = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.y, .queues = [2]u16{ 3, 5 }, .dest_dsr_ids = [1]u16{ 2 }, .src0_dsr_ids = [1]u16{ 2 }, .src1_dsr_ids = [1]u16{ 2 } });
var A = @zeros([R, C]f32); var x = @zeros([C]f32); var part = @zeros([R]f32); var y = @zeros([R]f32);
var A_p: [*]f32 = @ptrcast([*]f32, &A); var x_p: [*]f32 = &x; var y_p: [*]f32 = &y;
const sent = @get_local_task_id(15); const summed = @get_local_task_id(16);
var root_x: u16 = 0; var begun: bool = false;
fn run(rx: u16, ry: u16) void {
  if (!begun) { mx.init(); my.init(); begun = true; }
  root_x = rx;
  my.broadcast(ry, @ptrcast([*]u32, &x), C, sent);
}
task got_x() void {
  const p = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{R} -> part[i] });
  @fmovs(p, 0.0);
  for (@range(u16, C)) |j| {
    @fmacs(p, p, @increment_dsd_offset(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{R} -> A[i, 0] }), @as(i16, j), f32), x[j]);
  }
  mx.reduce_fadds(root_x, &part, &y, R, summed);
}
task got_y() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(got_x, sent); @bind_local_task(got_y, summed);
  @export_symbol(A_p, "A"); @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(run);
}
"""
    )
    binding = """.R = R, .C = C, .c2d = c2d.get_params(x, y, .{
      .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) },
      .y_colors = .{ @get_color(4), @get_color(5) }, .y_entrypoints = .{ @get_local_task_id(12), @get_local_task_id(13) } })"""
    text = layout(
        [
            ("A", "[*]f32", True),
            ("x", "[*]f32", True),
            ("y", "[*]f32", True),
            ("run", "fn(u16,u16)void"),
        ],
        params='param R: u16; param C: u16; const c2d = @import_module("<collectives_2d/params>");',
        binding=binding,
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"R": rows, "C": columns})
    A = rng.random((h, w, rows, columns)).astype(np.float32)
    m.put("A", A)
    for rx in range(w):
        for ry in range(h):
            x = rng.random((h, w, columns)).astype(np.float32)
            m.put("x", x)
            m.launch("run", np.uint16(rx), np.uint16(ry))
            want = np.einsum("hwrc,wc->hr", A, x[ry])
            np.testing.assert_allclose(m.get("y", rows)[:, rx], want, rtol=1e-5)
    m.stop()


def test_messages_of_every_pe_to_every_other(tmp_path):
    """WSE-3: an exchange in rounds, each PE with the one whose number differs from its own by the round's in a cycle."""
    w, h, n = 3, 2, 4
    pe = (
        SYS
        + """
param n: u16; param P: u16;
const place = @import_module("<layout>");
const post = @import_module("<message_passing>", .{ .input_queue_id = @get_input_queue(2), .output_queue_id = @get_output_queue(2) });
var out = @zeros([P * n]f32); var got = @zeros([P * n]f32); var out_p: [*]f32 = &out; var got_p: [*]f32 = &got;
const next = @get_local_task_id(12);
var round: u16 = 0; var me: u16 = 0;
fn run() void { post.init(); me = place.get_y_coord() * 3 + place.get_x_coord(); round = 0; @activate(next); }
task step() void {
  round += 1;
  if (round == P) {
    for (@range(u16, n)) |i| { got[me * n + i] = out[me * n + i]; }
    sys.unblock_cmd_stream();
    return;
  }
  const to = (me + round) % P; const from = (me + P - round) % P;
  post.send_message(to % 3, to / 3, &out[to * n], n, .{});
  post.recv_message(&got[from * n], n, .{ .activate = next });
}
comptime { @bind_local_task(step, next); @export_symbol(out_p, "out"); @export_symbol(got_p, "got"); @export_symbol(run); }
"""
    )
    text = layout(
        [("out", "[*]f32", True), ("got", "[*]f32", False), ("run", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .P = W * H",
    )
    m = Machine(tmp_path, "wse3", {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    out = rng.random((w * h, w * h, n)).astype(np.float32)
    m.put("out", out)
    m.launch("run")
    got = m.get("got", w * h * n).reshape(w * h, w * h, n)
    np.testing.assert_array_equal(got, out.transpose(1, 0, 2))
    m.stop()


@pytest.mark.parametrize("order", [ROW, COLUMN])
@both
def test_streams_through_data_tasks(arch, order, tmp_path):
    """Each wavelet of the host is squared by a data task and goes back; the host has its order back."""
    w, h, n = 3, 2, 5
    pe = (
        SYS
        + """
param n: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const in_color = sys.MEMCPYH2D_1; const out_color = sys.MEMCPYD2H_1;
const id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(in_color);
const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = out_color, .output_queue = oq });
var v = @zeros([1]f32); const V = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 1 });
var seen = @zeros([1]u32); var seen_p: [*]u32 = &seen;
task take(x: f32) void { @block(id); seen[0] += 1; v[0] = x * x; @fmovs(out, V, .{ .async = true, .unblock = id }); }
comptime {
  @bind_data_task(take, id);
  if (@is_arch("wse3")) { @initialize_queue(iq, .{ .color = in_color }); @initialize_queue(oq, .{ .color = out_color }); }
  @export_symbol(seen_p, "seen");
}
"""
    )
    text = layout([("seen", "[*]u32", False)], params="param n: u16;", binding=".n = n").replace(
        ".height = H }",
        ".height = H, .MEMCPYH2D_1 = @get_color(0), .MEMCPYD2H_1 = @get_color(1) }",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    x, y = rng.random(w * h * n).astype(np.float32), np.zeros(w * h * n, np.float32)
    how = dict(
        streaming=True,
        order=order,
        data_type=wse.MemcpyDataType.MEMCPY_32BIT,
        nonblock=True,
    )
    handle = m.runner.memcpy_d2h(y, 1, 0, 0, w, h, n, **how)
    m.runner.memcpy_h2d(0, x, 0, 0, w, h, n, **how)
    m.runner.task_wait(handle)
    np.testing.assert_array_equal(y, x * x)
    np.testing.assert_array_equal(m.get("seen", 1, np.uint32), n)
    m.stop()


@both
def test_traces_and_prints(arch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pe = (
        SYS
        + """
const place = @import_module("<layout>");
const print = @import_module("<simprint>");
const trace = @import_module("<debug>", .{ .key = "euclid", .buffer_size = 64 });
fn gcd(a: u16, b: u16) u16 {
  trace.trace_u16(a);
  if (b == 0) return a;
  return gcd(b, a % b);
}
fn run(a: u16, b: u16) void {
  trace.trace_string("begin");
  const g = gcd(a + place.get_x_coord(), b);
  trace.trace_f32(@as(f32, g) / 2.0);
  print.fmt_with_coords("gcd {d} of {X}", .{ g, a });
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(run); }
"""
    )
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": layout([("run", "fn(u16,u16)void")]), "pe.csl": pe},
        2,
    )
    m.launch("run", np.uint16(84), np.uint16(36))
    m.stop()
    tool = debug_util(str(tmp_path / "out"))

    def steps(a, b):
        return [a] if b == 0 else [a, *steps(b, a % b)]

    for x in range(2):
        want = steps(84 + x, 36)
        got = tool.read_trace(4 + x, 1, "euclid")
        assert got == ["begin", *want, np.gcd(84 + x, 36) / 2]
    log = (tmp_path / "sim.log").read_text()
    assert re.search(r"^@\d+ PE\(0,0\): gcd 12 of 0054$", log, re.M | re.I), log
    assert re.search(r"^@\d+ PE\(1,0\): gcd 1 of 0054$", log, re.M | re.I), log


@both
def test_the_kernel_of_fourier_transforms(arch, tmp_path):
    w, n = 2, 4
    text = """
param W: u16; param H: u16; param N: u16;
const fft = @import_module("<kernels/fft/fft3d_layout>", .{ .width = W });
layout { fft.FFT_kernel(W, N, f32); }
"""
    m = Machine(tmp_path, arch, {"layout.csl": text}, w, w, {"N": n})
    x = rng.random((n, n, n)) + 1j * rng.random((n, n, n))  # [z][x][y]
    b = n // w

    def parts(a):  # [py][px][z][x][y][2]
        c = a.reshape(n, w, b, w, b).transpose(3, 1, 0, 2, 4)
        return np.stack([c.real, c.imag], -1).astype(np.float32)

    angles = -2 * np.pi * np.arange(n // 2) / n
    twiddles = np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32).ravel()
    m.put("X", parts(x))
    m.put("twiddle_array", np.tile(twiddles, (w, w, 1)))
    m.launch("csfftExecC2C", np.int16(0), np.int16(0))
    got = m.get("X", 2 * n * b * b).reshape(parts(x).shape)
    np.testing.assert_allclose(got, parts(np.fft.fftn(x)), atol=1e-4)
    m.stop()


@both
def test_two_regions_and_their_streams(arch, tmp_path):
    """SdkLayout: a region of one PE scales, a region of 1 x 2 adds a bias by parity; the host streams in and out."""
    (tmp_path / "scale.csl").write_text("""
param in: color; param out: color; param n: u16; param factor: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq });
const again = @get_local_task_id(9);
export var factor_f: f32 = 0.0;
task run() void { factor_f = @as(f32, factor); @fmuls(to, from, factor_f, .{ .async = true, .activate = again }); }
comptime {
  @bind_local_task(run, again); @activate(again);
  @initialize_queue(iq, .{ .color = in });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out });
}""")
    (tmp_path / "bias.csl").write_text("""
param in: color; param out: color; param n: u16;
const iq = @get_input_queue(2); const oq = @get_output_queue(2);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = in, .input_queue = iq });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = out, .output_queue = oq });
const again = @get_local_task_id(9);
var odd: f32 = -0.5;
fn bias(v: f32) f32 { odd = -odd; return v + odd; }
task run() void { @map(bias, from, to); @activate(again); }
comptime {
  @bind_local_task(run, again); @activate(again);
  @initialize_queue(iq, .{ .color = in });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out });
}""")
    n = 7
    target = wse.SdkTarget.WSE2 if arch == "wse2" else wse.SdkTarget.WSE3
    platform = wse.get_platform(None, wse.SimfabConfig(dump_core=False), target)
    whole = wse.SdkLayout(platform)
    into = wse.RoutingPosition().set_output([wse.Route.RAMP])
    outof = wse.RoutingPosition().set_input([wse.Route.RAMP])
    ports = []
    for k, name in enumerate(("scale", "bias")):
        region = whole.create_code_region(str(tmp_path / f"{name}.csl"), name, 1, 1)
        a, b = wse.Color(f"in{k}"), wse.Color(f"out{k}")
        region.set_param_all("in", a)
        region.set_param_all("out", b)
        region.set_param_all("n", n)
        if k == 0:
            region.set_param_all("factor", 3)
        ports.append(
            (
                region.create_input_port(a, wse.Edge.LEFT, [into], n),
                region.create_output_port(b, wse.Edge.RIGHT, [outof], n),
            )
        )
        region.place(2 + 4 * k, 2 + 3 * k)
    whole.connect(ports[0][1], ports[1][0])
    into_stream = whole.create_input_stream(ports[0][0])
    out_stream = whole.create_output_stream(ports[1][1])
    runner = wse.SdkRuntime(
        whole.compile(out_prefix=str(tmp_path / "out")), platform, memcpy_required=False
    )
    runner.load()
    runner.run()
    sign = 1
    for _ in range(3):
        x, y = rng.random(n).astype(np.float32), np.zeros(n, np.float32)
        runner.send(into_stream, x, nonblock=True)
        runner.receive(out_stream, y, n, nonblock=False)
        signs = sign * (-1.0) ** np.arange(n)
        sign = -sign  # n is odd
        np.testing.assert_array_equal(y, x * np.float32(3) + signs.astype(np.float32) / 2)
    runner.stop()


@both
def test_tasks_that_wait_for_several_microthreads(arch, tmp_path):
    """Two sends and two receptions at once over one looped color each; the end is a task that all must unblock or activate."""
    n = 11
    ut = ", .ut_id = @get_ut_id({0})" if arch == "wse3" else ""
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var s = @zeros([n]f32); var log = @zeros([8]u32);
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var s_p: [*]f32 = &s; var log_p: [*]u32 = &log;
const c1 = @get_color(3); const c2 = @get_color(4);
const i1 = @get_input_queue(3); const i2 = @get_input_queue(4); const o1 = @get_output_queue(3); const o2 = @get_output_queue(4);
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] }); const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[n - 1 - i] }); const S = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> s[i] });
const X1 = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c1, .output_queue = o1 }); const X2 = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c2, .output_queue = o2 });
const I1 = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c1, .input_queue = i1 }); const I2 = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c2, .input_queue = i2 });
const sent = @get_local_task_id(9); const first = @get_local_task_id(10); const last = @get_local_task_id(11);
var at: u16 = 0;
fn note(what: u32) void { log[at] = what; at += 1; }
fn run() void {
  @block(last);
  @fmovs(X1, A, .{ .async = true, .activate = sent UT5 });
  @fmovs(X2, B, .{ .async = true, .unblock = last UT6 });
  @fmovs(S, I1, .{ .async = true, .activate = first UT2 });
  note(1);
}
task one_sent() void { note(2); }
task added() void { note(3); @fadds(S, S, I2, .{ .async = true, .activate = last UT7 }); }
task ended() void { note(4); sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(one_sent, sent); @bind_local_task(added, first); @bind_local_task(ended, last);
  @set_local_color_config(c1, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } }); @set_local_color_config(c2, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @initialize_queue(i1, .{ .color = c1 }); @initialize_queue(i2, .{ .color = c2 });
  if (@is_arch("wse3")) { @initialize_queue(o1, .{ .color = c1 }); @initialize_queue(o2, .{ .color = c2 }); }
  @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(s_p, "s"); @export_symbol(log_p, "log"); @export_symbol(run);
}
"""
    )
    for k in (2, 5, 6, 7):
        pe = pe.replace(f" UT{k}", ut.format(k))
    exports = [(v, "[*]f32", True) for v in "abs"] + [("log", "[*]u32", False), ("run", "fn()void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    a, b = rng.random((2, n)).astype(np.float32)
    m.put("a", a)
    m.put("b", b)
    m.launch("run")
    np.testing.assert_array_equal(m.get("s", n)[0, 0], a + b[::-1])
    log = m.get("log", 8, np.uint32)[0, 0]
    assert log[0] == 1 and log[3] == 4 and set(log[1:3]) == {2, 3}
    m.stop()


@both
def test_a_filter_of_taps_in_registers(arch, tmp_path):
    """DSRs that keep their place: blocks of a signal, each of the taps an @fmacs over registers."""
    taps, block, blocks = 5, 8, 3
    n = block * blocks
    pe = (
        SYS
        + """
param taps: u16; param block: u16; param blocks: u16;
const n = block * blocks;
var x = @zeros([n + taps - 1]f32); var y = @zeros([n]f32); var w = @zeros([taps]f32);
var x_p: [*]f32 = &x; var y_p: [*]f32 = &y; var w_p: [*]f32 = &w;
const to = @get_dsr(dsr_dest, 2); const acc = @get_dsr(dsr_src0, 2); const from = @get_dsr(dsr_src1, 2);
const Y = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{block} -> y[i] });
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{block} -> x[i] });
fn run() void {
  for (@range(i16, @as(i16, taps))) |t| {
    @load_to_dsr(to, Y, .{ .save_address = true });
    @load_to_dsr(acc, Y, .{ .save_address = true });
    @load_to_dsr(from, @increment_dsd_offset(X, t, f32), .{ .save_address = true });
    for (@range(u16, blocks)) |b| { @fmacs(to, acc, from, w[t]); }
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(w_p, "w"); @export_symbol(run); }
"""
    )
    exports = [(v, "[*]f32", True) for v in "xyw"] + [("run", "fn()void")]
    text = layout(
        exports,
        params="param taps: u16; param block: u16; param blocks: u16;",
        binding=".taps = taps, .block = block, .blocks = blocks",
    )
    m = Machine(
        tmp_path,
        arch,
        {"layout.csl": text, "pe.csl": pe},
        params={"taps": taps, "block": block, "blocks": blocks},
    )
    x, w = rng.random(n + taps - 1).astype(np.float32), rng.random(taps).astype(np.float32)
    m.put("x", x)
    m.put("w", w)
    m.launch("run")
    want = np.correlate(x.astype(np.float64), w, "valid")
    np.testing.assert_allclose(m.get("y", n)[0, 0], want, rtol=1e-5)
    m.stop()


@both
def test_pointers_to_functions_and_recursion(arch, tmp_path):
    """Quicksort by recursion over pointers, with the order as a pointer to a function."""
    n = 40
    pe = (
        SYS
        + """
param n: u16;
var v = @zeros([n]i32); var v_p: [*]i32 = &v; var swaps: u32 = 0;
var swaps_a = @zeros([1]u32); var swaps_p: [*]u32 = &swaps_a;
fn up(a: i32, b: i32) bool { return a < b; }
fn down(a: i32, b: i32) bool { return a > b; }
fn by_digit(a: i32, b: i32) bool { return if (a % 10 == b % 10) a < b else a % 10 < b % 10; }
const orders = [3]*const fn(i32, i32)bool{ &up, &down, &by_digit };
fn swap(a: *i32, b: *i32) void { const t = a.*; a.* = b.*; b.* = t; swaps += 1; }
fn sort(at: [*]i32, first: i16, last: i16, before: *const fn(i32, i32)bool) void {
  if (first >= last) return;
  const pivot = at[last];
  var k = first;
  for (@range(i16, first, last, 1)) |i| {
    if (before.*(at[i], pivot)) { swap(&at[i], &at[k]); k += 1; }
  }
  swap(&at[k], &at[last]);
  sort(at, first, k - 1, before);
  sort(at, k + 1, last, before);
}
fn run(which: u16) void { sort(v_p, 0, @as(i16, n) - 1, orders[which]); swaps_a[0] = swaps; sys.unblock_cmd_stream(); }
comptime { @export_symbol(v_p, "v"); @export_symbol(swaps_p, "swaps"); @export_symbol(run); }
"""
    )
    text = layout(
        [("v", "[*]i32", True), ("swaps", "[*]u32", False), ("run", "fn(u16)void")],
        params="param n: u16;",
        binding=".n = n",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, params={"n": n})
    v = rng.integers(0, 1000, n).astype(np.int32)
    for which, want in enumerate(
        (np.sort(v), np.sort(v)[::-1], sorted(v, key=lambda x: (x % 10, x)))
    ):
        m.put("v", v)
        m.launch("run", np.uint16(which))
        np.testing.assert_array_equal(m.get("v", n, np.int32)[0, 0], want)
    assert m.get("swaps", 1, np.uint32) > 0
    m.stop()


@both
def test_odd_even_sort_between_neighbours(arch, tmp_path):
    """Rounds of exchange with one neighbour, then the other; the lower half stays in the west."""
    w, n = 5, 6
    pe = (
        SYS
        + """
param n: u16; param W: u16; param x: u16; param to_e: color; param to_w: color; param from_e: color; param from_w: color;
var mine = @zeros([n]f32); var theirs = @zeros([n]f32); var merged = @zeros([2 * n]f32); var mine_p: [*]f32 = &mine;
const oe = @get_output_queue(2); const ow = @get_output_queue(3); const ie = @get_input_queue(2); const iw = @get_input_queue(3);
const M = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> mine[i] }); const T = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> theirs[i] });
const E = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_e, .output_queue = oe }); const V = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_w, .output_queue = ow });
const FE = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_e, .input_queue = ie }); const FV = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_w, .input_queue = iw });
const merge = @get_local_task_id(9); const step = @get_local_task_id(10); const sent = @get_local_task_id(11);
var round: u16 = 0; var east: bool = false;
fn sort_mine() void {
  for (@range(u16, 1, n, 1)) |i| {
    const v = mine[i]; var k: u16 = i;
    while (k > 0 and mine[k - 1] > v) : (k -= 1) { mine[k] = mine[k - 1]; }
    mine[k] = v;
  }
}
fn run() void { round = 0; sort_mine(); @activate(step); }
task next() void {
  if (round == W) { sys.unblock_cmd_stream(); return; }
  east = (x + round) % 2 == 0;
  round += 1;
  @block(merge);
  if (east) {
    if (x + 1 == W) { @unblock(merge); @activate(step); return; }
    @fmovs(E, M, .{ .async = true, .unblock = merge });
    @fmovs(T, FE, .{ .async = true, .activate = merge });
  } else {
    if (x == 0) { @unblock(merge); @activate(step); return; }
    @fmovs(V, M, .{ .async = true, .unblock = merge });
    @fmovs(T, FV, .{ .async = true, .activate = merge });
  }
}
task merging() void {
  var a: u16 = 0; var b: u16 = 0;
  for (@range(u16, 2 * n)) |i| {
    if (b == n or (a < n and mine[a] <= theirs[b])) { merged[i] = mine[a]; a += 1; } else { merged[i] = theirs[b]; b += 1; }
  }
  const begin: u16 = if (east) 0 else n;
  for (@range(u16, n)) |i| { mine[i] = merged[begin + i]; }
  @activate(step);
}
comptime {
  @bind_local_task(next, step); @bind_local_task(merging, merge);
  if (x + 1 < W) { @initialize_queue(ie, .{ .color = from_e }); if (@is_arch("wse3")) @initialize_queue(oe, .{ .color = to_e }); }
  if (x > 0) { @initialize_queue(iw, .{ .color = from_w }); if (@is_arch("wse3")) @initialize_queue(ow, .{ .color = to_w }); }
  @export_symbol(mine_p, "mine"); @export_symbol(run);
}
"""
    )
    config = """
    const k = x % 2; const o = 1 - k;
    if (x + 1 < W) {
      @set_color_config(x, y, e[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
      @set_color_config(x, y, v[o], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    }
    if (x > 0) {
      @set_color_config(x, y, v[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
      @set_color_config(x, y, e[o], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    }"""
    text = layout(
        [("mine", "[*]f32", True), ("run", "fn()void")],
        config,
        "param n: u16; const e = [2]color{ @get_color(2), @get_color(3) }; const v = [2]color{ @get_color(4), @get_color(5) };",
        ".n = n, .W = W, .x = x, .to_e = e[x % 2], .to_w = v[x % 2], .from_e = v[1 - x % 2], .from_w = e[1 - x % 2]",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, 1, {"n": n})
    data = rng.integers(0, 40, (1, w, n)).astype(np.float32)
    m.put("mine", data)
    m.launch("run")
    np.testing.assert_array_equal(m.get("mine", n).ravel(), np.sort(data.ravel()))
    m.stop()


@both
def test_arguments_of_every_width_and_names_of_other_modules(arch, tmp_path):
    store = """
param n: u16;
export var total: f32 linkname("the_total") = 0.0;
var steps = @zeros([n]f32);
export fn keep(at: u16, v: f32) f32 { steps[at % n] = v; total += v; return total; }
fn largest() f32 { var m = steps[0]; for (steps) |s| { if (s > m) m = s; } return m; }
"""
    pe = (
        SYS
        + """
extern var total: f32 linkname("the_total");
extern fn keep(at: u16, v: f32) f32;
const store = @import_module("store.csl", .{ .n = 3 });
var out = @zeros([6]f32); var out_p: [*]f32 = &out;
fn run(a: i8, b: u16, c: i32, d: f16, e: f32, f: u32) void {
  out[0] = keep(0, @as(f32, a)); out[1] = keep(1, @as(f32, b)); out[2] = keep(2, @as(f32, c));
  out[3] = keep(3, @as(f32, d)); out[4] = keep(4, e); out[5] = store.largest();
  total += @as(f32, f);
  sys.unblock_cmd_stream();
}
var sum_p: *f32 = &total;
comptime { @export_symbol(out_p, "out"); @export_symbol(sum_p, "sum"); @export_symbol(run); }
"""
    )
    text = layout(
        [
            ("out", "[*]f32", False),
            ("sum", "*f32", False),
            ("run", "fn(i8,u16,i32,f16,f32,u32)void"),
        ]
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe, "store.csl": store})
    values = [np.int8(-7), np.uint16(65000), np.int32(-100000), np.float16(0.375), np.float32(2.5)]
    m.launch("run", *values, np.uint32(70000))
    sums = np.cumsum(np.array(values, np.float32), dtype=np.float32)
    np.testing.assert_array_equal(m.get("out", 6)[0, 0], [*sums, 2.5])
    assert m.get("sum", 1)[0, 0, 0] == sums[-1] + np.float32(70000)
    m.stop()


@both
def test_commands_in_band_with_their_data(arch, tmp_path):
    """Control wavelets between the data of one color choose what the data tasks do with what follows."""
    n = 12
    pe = (
        SYS
        + """
param n: u16; param first: bool;
const ctrl = @import_module("<control>");
const bus = @get_color(8); const oq = @get_output_queue(4); const iq = @get_input_queue(4);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(bus);
const set_op = @get_control_task_id(20); const finish = @get_control_task_id(21);
var v = @zeros([n]f32); var r = @zeros([4]f32); var v_p: [*]f32 = &v; var r_p: [*]f32 = &r;
const out = @get_dsd(fabout_dsd, .{ .extent = n / 3, .fabric_color = bus, .output_queue = oq });
const command = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = bus, .output_queue = oq, .control = true });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n / 3} -> v[i] });
var op: u16 = 3;
fn run() void {
  if (!first) return;
  inline for (.{ 0, 1, 2 }) |k| {
    @mov32(command, comptime ctrl.encode_single_payload(ctrl.opcode.NOP, false, set_op, k));
    @fmovs(out, @increment_dsd_offset(V, @as(i16, k) * @as(i16, n / 3), f32));
  }
  @mov32(command, comptime ctrl.encode_control_task_payload(finish));
  sys.unblock_cmd_stream();
}
task choose(k: u16) void { op = k; }
task take(x: f32) void {
  switch (op) { 0 => r[0] += x, 1 => r[1] -= x, 2 => { if (x > r[2]) r[2] = x; }, else => r[3] += 1.0 }
}
task end() void { sys.unblock_cmd_stream(); }
comptime {
  if (first) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = bus }); }
  else {
    @bind_data_task(take, data_id); @bind_control_task(choose, set_op); @bind_control_task(end, finish);
    @initialize_queue(iq, .{ .color = bus });
  }
  @export_symbol(v_p, "v"); @export_symbol(r_p, "r"); @export_symbol(run);
}
"""
    )
    config = """
    if (x == 0) { @set_color_config(x, y, @get_color(8), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
    else { @set_color_config(x, y, @get_color(8), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }"""
    text = layout(
        [("v", "[*]f32", True), ("r", "[*]f32", False), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .first = x == 0",
    )
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, 2, 1, {"n": n})
    v = rng.integers(-9, 9, (1, 2, n)).astype(np.float32)
    m.put("v", v)
    m.launch("run")
    a, b, c = v[0, 0].reshape(3, -1)
    np.testing.assert_array_equal(m.get("r", 4)[0, 1], [a.sum(), -b.sum(), max(0, c.max()), 0])
    m.stop()


@both
def test_one_row_or_column_for_all_and_parts_of_the_rectangle(arch, tmp_path):
    w, h, n = 4, 3, 5
    pe = (
        SYS
        + """
param n: u16;
var a = @zeros([n]f32); var b = @zeros([n]f32); var c = @zeros([n]f32);
var a_p: [*]f32 = &a; var b_p: [*]f32 = &b; var c_p: [*]f32 = &c;
fn run() void {
  @fmuls(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> c[i] }), @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] }), @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[i] }));
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(b_p, "b"); @export_symbol(c_p, "c"); @export_symbol(run); }
"""
    )
    exports = [(v, "[*]f32", True) for v in "abc"] + [("run", "fn()void")]
    text = layout(exports, params="param n: u16;", binding=".n = n")
    m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, w, h, {"n": n})
    r, how = (
        m.runner,
        dict(
            streaming=False,
            order=ROW,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=False,
        ),
    )
    by_row, by_column = rng.random((h, n)).astype(np.float32), rng.random((w, n)).astype(np.float32)
    r.memcpy_h2d_rowbcast(r.get_id("a"), by_row.ravel(), 0, 0, w, h, n, **how)
    r.memcpy_h2d_colbcast(r.get_id("b"), by_column.ravel(), 0, 0, w, h, n, **how)
    patch = rng.random((2, 3, n)).astype(np.float32)  # columns 1 to 3, rows 1 and 2
    r.memcpy_h2d(
        r.get_id("a"),
        patch.transpose(2, 1, 0).ravel(),
        1,
        1,
        3,
        2,
        n,
        **{**how, "order": COLUMN},
    )
    a = np.broadcast_to(by_row[:, None], (h, w, n)).copy()
    a[1:, 1:] = patch
    m.launch("run")
    np.testing.assert_array_equal(m.get("c", n), a * by_column[None])
    out = np.zeros(2 * 1 * n, np.float32)
    r.memcpy_d2h(out, r.get_id("c"), 2, 0, 1, 2, n, **{**how, "order": COLUMN})
    want = (a * by_column[None])[:2, 2:3]
    np.testing.assert_array_equal(out.reshape(n, 1, 2), want.transpose(2, 1, 0))
    m.stop()


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32", "i64"])
@both
def test_quotients_and_remainders_by_constants(kind, arch, tmp_path):
    """By divisors that become shifts and products, at the ends of the type and between: as by a divisor in a variable."""
    dtype = np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
    info = np.iinfo(dtype)
    drawn = [int(d) for d in rng.integers(2, min(info.max, 10**9), 6)]
    divisors = sorted({1, 2, 3, 7, 8, 10, 64, 100, 127, info.max, info.max // 2 + 1, *drawn})
    n = 64
    ends = [0, 1, info.max, info.max - 1, info.min, info.min + 1]
    values = np.array([*ends, *rng.integers(info.min, info.max, n - len(ends))], dtype)
    size = len(divisors)
    lines = "".join(
        f"    q[{k} * n + i] = x[i] / {d}; r[{k} * n + i] = x[i] % {d};\n"
        for k, d in enumerate(divisors)
    )
    pe = f"""
const n = {n};
export var x = [n]{kind}{{ {", ".join(map(str, values))} }};
export var q = @zeros([{size} * n]{kind}); export var r = @zeros([{size} * n]{kind});
task run() void {{
  for (@range(u16, n)) |i| {{
{lines}  }}
}}
comptime {{ @bind_local_task(run, @get_local_task_id(8)); @activate(@get_local_task_id(8)); }}
"""
    (tmp_path / "layout.csl").write_text(
        'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    )
    (tmp_path / "pe.csl").write_text(pe)
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    for engine in ("bytecode", "native"):
        runner = wse.SdkRuntime(str(tmp_path / "out"), memcpy_required=False, engine=engine)
        runner.load()
        runner.run()
        runner.stop()
        q = runner.read_symbol(0, 0, "q", dtype).reshape(size, n)
        r = runner.read_symbol(0, 0, "r", dtype).reshape(size, n)
        for k, d in enumerate(divisors):
            exact = [int(v) for v in values]
            want = [abs(v) // d * (1 if v >= 0 else -1) for v in exact]
            np.testing.assert_array_equal(q[k], want, err_msg=f"{kind} / {d} on {engine}")
            rest = [v - w * d for v, w in zip(exact, want)]
            np.testing.assert_array_equal(r[k], rest, err_msg=f"{kind} % {d} on {engine}")
