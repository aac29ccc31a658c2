# SPDX-License-Identifier: Apache-2.0
"""CSL programs of several operations at once, beside NumPy: chains of products, FIFOs, microthreads, events of queues."""

import numpy as np
import pytest
from csl_machine import SYS, both, everywhere, layout

rng = np.random.default_rng(42)
w3 = pytest.mark.parametrize("arch", ["wse3"])


@both
def test_products_of_wavelets_as_they_come(arch, tmp_path):
    """A chain: each PE multiplies what comes by its scalars and adds it; halves and singles mixed; rows of coefficients."""
    n = 7
    W = 4
    pe = (
        SYS
        + """
param n: u16; param first: bool; param last: bool; param px: u16;
const cs = [2]color{ @get_color(0), @get_color(1) };
const hs = [2]color{ @get_color(2), @get_color(3) };
const cin = cs[(px + 1) % 2]; const cout = cs[px % 2]; const hin = hs[(px + 1) % 2]; const hout = hs[px % 2];
const iq = @get_input_queue(2); const oq = @get_output_queue(2); const hiq = @get_input_queue(3); const hoq = @get_output_queue(3);
var x = @zeros([n]f32); var k = @zeros([2]f32); var acc = @zeros([n]f32); var hx = @zeros([n]f16); var hacc = @zeros([n]f32); var sums = @zeros([4]f32);
var x_p: [*]f32 = &x; var k_p: [*]f32 = &k; var acc_p: [*]f32 = &acc; var hx_p: [*]f16 = &hx; var hacc_p: [*]f32 = &hacc; var sums_p: [*]f32 = &sums;
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> x[i] });
const ACC = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> acc[i] });
const HX = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> hx[i] });
const HACC = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> hacc[n - 1 - i] });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = cin, .input_queue = iq });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = cout, .output_queue = oq });
const alone = .{ .simd_off = true };
const hin_d = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = hin, .input_queue = hiq });
const hout_d = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = hout, .output_queue = hoq });
const t1 = @get_local_task_id(9); const t2 = @get_local_task_id(10); const t3 = @get_local_task_id(11);
var open: u16 = 0;
fn go() void {
  @fmovs(ACC, 0.0); @fmovs(HACC, 0.0);
  open = 2;
  if (first) {
    @fmovs(out, X, .{ .async = true, .activate = t1 });
    @fmovh(hout_d, HX, .{ .async = true, .activate = t2 });
  } else {
    // x' = x_in * k0 + own, onward; the last one keeps
    if (last) { @fmacs(ACC, X, in, k[0], .{ .async = true, .activate = t1 }); @fmachs(HACC, HACC, hin_d, @as(f16, k[1]), .{ .async = true, .activate = t2 }); }
    else { @fmacs(out, X, in, k[0], .{ .async = true, .activate = t1 }); @fmach(hout_d, HX, hin_d, @as(f16, k[1]), .{ .async = true, .activate = t2 }); }
  }
}
task one() void { fin(); }
task two() void { fin(); }
fn fin() void { open -= 1; if (open == 0) {
  sums[0] = 0.5; @fadds(&sums[0], sums[0], ACC);
  sums[1] = 0.0; @fmacs(&sums[1], sums[1], ACC, 2.0);
  sums[2] = 1.0; @fmuls(&sums[2], @set_dsd_length(X, 2), sums[2]);
  sums[3] = -100.0; @fmaxs(&sums[3], HACC, sums[3]);
  sys.unblock_cmd_stream(); } }
comptime {
  @bind_local_task(one, t1); @bind_local_task(two, t2);
  if (!first) { @initialize_queue(iq, .{ .color = cin }); @initialize_queue(hiq, .{ .color = hin });
    @set_local_color_config(cin, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); @set_local_color_config(hin, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }
  if (!last) { if (@is_arch("wse3")) { @initialize_queue(oq, .{ .color = cout }); @initialize_queue(hoq, .{ .color = hout }); }
    @set_local_color_config(cout, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); @set_local_color_config(hout, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
  @export_symbol(x_p, "x"); @export_symbol(k_p, "k"); @export_symbol(acc_p, "acc"); @export_symbol(hx_p, "hx"); @export_symbol(hacc_p, "hacc"); @export_symbol(sums_p, "sums"); @export_symbol(go);
}
"""
    )
    text = layout(
        [(s, "[*]f32", True) for s in ("x", "k", "acc", "hacc", "sums")]
        + [("hx", "[*]f16", True), ("go", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .first = (x == 0), .last = (x == W - 1), .px = x",
    )

    def host(m):
        x = rng.integers(-4, 5, (1, W, n)).astype(np.float32)
        k = rng.integers(-2, 3, (1, W, 2)).astype(np.float32)
        hx = rng.integers(-4, 5, (1, W, n)).astype(np.float16)
        m.put("x", x)
        m.put("k", k)
        m.put16("hx", hx)
        m.launch("go")
        v = x[0, 0]
        h = hx[0, 0].astype(float)
        for c in range(1, W):
            v = v * k[0, c, 0] + x[0, c]
            if c < W - 1:
                h = h * k[0, c, 1] + hx[0, c]
            else:
                h = h * k[0, c, 1]
        np.testing.assert_array_equal(m.get("acc", n)[0, -1], v)
        np.testing.assert_array_equal(m.get("hacc", n)[0, -1], h[::-1])
        s = m.get("sums", 4)[0, -1]
        np.testing.assert_array_equal(
            s, [0.5 + v.sum(), 2 * v.sum(), x[0, -1, 0] * x[0, -1, 1], max(h)]
        )

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, params={"n": n})


@both
def test_three_streams_beside_a_busy_main_thread(arch, tmp_path):
    """Three microthreads of different priority feed FIFOs and memory while the main thread computes and polls a queue."""
    n = 33
    pe = (
        SYS
        + """
param n: u16; param px: u16;
const tc = @import_module("<tile_config>");
const c = [3]color{ @get_color(0), @get_color(1), @get_color(2) };
var src = @zeros([3, n]u32); var src_p: [*]u32 = &src; var dst = @zeros([3, n]u32); var dst_p: [*]u32 = &dst;
var spin: u32 = 0; var spin_p: [*]u32 = @ptrcast([*]u32, &spin);
const iqs = [3]input_queue{ @get_input_queue(2), @get_input_queue(3), @get_input_queue(4) };
const oqs = [3]output_queue{ @get_output_queue(2), @get_output_queue(3), @get_output_queue(4) };
fn mem(comptime k: u16, comptime out: bool) mem1d_dsd {
  return if (out) @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> src[k, i] }) else @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> dst[k, i] });
}
const ins = .{ @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c[0], .input_queue = iqs[0] }), @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c[1], .input_queue = iqs[1] }), @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c[2], .input_queue = iqs[2] }) };
const outs = .{ @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c[0], .output_queue = oqs[0] }), @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c[1], .output_queue = oqs[1] }), @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c[2], .output_queue = oqs[2] }) };
var fbuf = @zeros([5]u32); const fifo = @allocate_fifo(fbuf);
const loopc = @get_color(5); const lq = @get_input_queue(6); const loq = @get_output_queue(5);
const done_id = [3]local_task_id{ @get_local_task_id(9), @get_local_task_id(10), @get_local_task_id(11) };
const send_id = @get_local_task_id(12);
var open: u16 = 0;
fn go() void { spin = 0;
  if (px == 0) {
    open = 3;
    @mov32(outs[0], mem(0, true), .{ .async = true, .activate = d0 });
    @mov32(outs[1], mem(1, true), .{ .async = true, .activate = d1 });
    @mov32(outs[2], mem(2, true), .{ .async = true, .activate = d2 });
  } else {
    open = 3;
    @mov32(fifo, ins[0], .{ .async = true, .priority = .{ .high = true } });
    @mov32(mem(1, false), ins[1], .{ .async = true, .priority = .{ .low = true }, .activate = d1 });
    @mov32(mem(2, false), ins[2], .{ .async = true, .priority = .{ .medium = true }, .activate = d2 });
    // out of the FIFO around the own ramp, into memory
    @mov32(@get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = loopc, .output_queue = loq }), fifo, .{ .async = true });
    @mov32(mem(0, false), @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = loopc, .input_queue = lq }), .{ .async = true, .activate = d0 });
    var k: u32 = 0;
    while (k < 200) : (k += 1) { spin += k * k; }
  }
}
fn fin() void { open -= 1; if (open == 0) { var s: u32 = 0; for (dst) |v| { s += 1; } sys.unblock_cmd_stream(); } }
task d0() void { fin(); } task d1() void { fin(); } task d2() void { fin(); }
comptime {
  @bind_local_task(d0, done_id[0]); @bind_local_task(d1, done_id[1]); @bind_local_task(d2, done_id[2]);
  for (@range(u16, 3)) |k| {
    if (px == 0) { @set_local_color_config(c[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); if (@is_arch("wse3")) @initialize_queue(oqs[k], .{ .color = c[k] }); }
    else { @set_local_color_config(c[k], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); @initialize_queue(iqs[k], .{ .color = c[k] }); }
  }
  if (px == 1) { @set_local_color_config(loopc, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } }); @initialize_queue(lq, .{ .color = loopc }); if (@is_arch("wse3")) @initialize_queue(loq, .{ .color = loopc }); }
  tc.main_thread_priority.set_main_thread_priority(tc.main_thread_priority.level.LOW);
  @export_symbol(src_p, "src"); @export_symbol(dst_p, "dst"); @export_symbol(spin_p, "spin"); @export_symbol(go);
}
"""
    )
    pe = pe.replace("for (dst) |v| { s += 1; } ", "")
    text = layout(
        [
            ("src", "[*]u32", True),
            ("dst", "[*]u32", True),
            ("spin", "[*]u32", True),
            ("go", "fn()void"),
        ],
        params="param n: u16;",
        binding=".n = n, .px = x",
    )

    def host(m):
        s = rng.integers(0, 1 << 32, (1, 2, 3 * n), dtype=np.uint32)
        m.put("src", s)
        m.launch("go")
        np.testing.assert_array_equal(m.get("dst", 3 * n, np.uint32)[0, 1], s[0, 0])
        assert m.get("spin", 1, np.uint32)[0, 1, 0] == sum(k * k for k in range(200))

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"n": n})


@w3
def test_microthreads_with_ids_of_their_own_and_blocks(arch, tmp_path):
    """Five copies share two queues by ids of microthreads; one is blocked until the others are done."""
    n = 9
    pe = (
        SYS
        + """
param n: u16; param px: u16;
const c = [3]color{ @get_color(0), @get_color(1), @get_color(2) };
const iq = [3]input_queue{ @get_input_queue(2), @get_input_queue(3), @get_input_queue(4) };
const oq = [3]output_queue{ @get_output_queue(2), @get_output_queue(3), @get_output_queue(4) };
const ut = [6]ut_id{ @get_ut_id(1), @get_ut_id(2), @get_ut_id(3), @get_ut_id(4), @get_ut_id(5), @get_ut_id(6) };
var s = @zeros([3, n]f32); var d = @zeros([3, n]f32); var s_p: [*]f32 = &s; var d_p: [*]f32 = &d; var order = @zeros([4]u16); var order_p: [*]u16 = &order; var at: u16 = 0;
fn src(comptime k: u16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> s[k, i] }); }
fn dst(comptime k: u16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> d[k, i] }); }
fn in(comptime k: u16) fabin_dsd { return @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c[k], .input_queue = iq[k] }); }
fn out(comptime k: u16) fabout_dsd { return @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c[k], .output_queue = oq[k] }); }
const t = [3]local_task_id{ @get_local_task_id(9), @get_local_task_id(10), @get_local_task_id(11) };
var open: u16 = 0;
fn go() void {
  open = 3;
  @block(ut[0]);
  if (px == 0) {
    @fmovs(out(0), src(0), .{ .async = true, .ut_id = ut[0], .activate = t[0] });
    @fnegs(out(1), src(1), .{ .async = true, .ut_id = ut[1], .activate = t[1] });
    @fmuls(out(2), src(2), 2.0, .{ .async = true, .ut_id = ut[2], .activate = t[2] });
  } else {
    @fmovs(dst(0), in(0), .{ .async = true, .ut_id = ut[0], .activate = t[0] });
    @fadds(dst(1), src(1), in(1), .{ .async = true, .ut_id = ut[5], .activate = t[1] });
    @fmacs(dst(2), src(2), in(2), 3.0, .{ .async = true, .ut_id = ut[3], .activate = t[2] });
  }
}
fn fin(k: u16) void { order[at] = k; at += 1; open -= 1; if (open == 1) @unblock(ut[0]); if (open == 0) { at = 0; sys.unblock_cmd_stream(); } }
task f0() void { fin(0); } task f1() void { fin(1); } task f2() void { fin(2); }
comptime { @bind_local_task(f0, t[0]); @bind_local_task(f1, t[1]); @bind_local_task(f2, t[2]);
  for (@range(u16, 3)) |k| { if (px == 0) { @initialize_queue(oq[k], .{ .color = c[k] }); @set_local_color_config(c[k], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
    else { @initialize_queue(iq[k], .{ .color = c[k] }); @set_local_color_config(c[k], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); } }
  @export_symbol(s_p, "s"); @export_symbol(d_p, "d"); @export_symbol(order_p, "order"); @export_symbol(go); }
"""
    )
    text = layout(
        [
            ("s", "[*]f32", True),
            ("d", "[*]f32", True),
            ("order", "[*]u16", False),
            ("go", "fn()void"),
        ],
        params="param n: u16;",
        binding=".n = n, .px = x",
    )

    def host(m):
        s = rng.random((1, 2, 3 * n)).astype(np.float32)
        m.put("s", s)
        m.launch("go")
        m.launch("go")
        a, b = s[0].reshape(2, 3, n)
        got = m.get("d", 3 * n)[0, 1].reshape(3, n)
        np.testing.assert_array_equal(got[0], a[0])
        np.testing.assert_array_equal(got[1], b[1] - a[1])
        np.testing.assert_allclose(got[2], b[2] + 3 * (2 * a[2]), rtol=1e-6)
        assert (m.get16("order", 4, np.uint16)[0, :, 2] == 0).all()

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"n": n})


@w3
def test_queue_events(arch, tmp_path):
    """An empty queue's handler, a flush and status bits on WSE-3."""
    n = 5
    pe = (
        SYS
        + """
param n: u16; param left: bool;
const tc = @import_module("<tile_config>");
const c = @get_color(4); const iq = @get_input_queue(3); const oq = @get_output_queue(3);
var a = @zeros([n]u32); var a_p: [*]u32 = &a; var ev = @zeros([8]u16); var ev_p: [*]u16 = &ev;
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = oq });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c, .input_queue = iq });
const t1 = @get_local_task_id(9);
fn empty() void { ev[0] += 1; }
fn go() void { if (left) { @mov32(out, A, .{ .async = true, .activate = t1 }); } else { @mov32(A, in, .{ .async = true, .activate = t1 }); } }
task done() void {
  if (left) { @queue_flush(oq); } else { const s = tc.input_queue_status.get(); ev[2] = @as(u16, tc.input_queue_status.is_empty(s, iq)); sys.unblock_cmd_stream(); }
}
fn flushed() void { ev[1] += 1; tc.queue_flush.exit(oq); sys.unblock_cmd_stream(); }
comptime { @bind_local_task(done, t1);
  if (left) { @initialize_queue(oq, .{ .color = c }); @set_empty_queue_handler(flushed, oq); @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
  else { @initialize_queue(iq, .{ .color = c }); @set_local_color_config(c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }
  @export_symbol(a_p, "a"); @export_symbol(ev_p, "ev"); @export_symbol(go); }
"""
    )
    text = layout(
        [("a", "[*]u32", True), ("ev", "[*]u16", False), ("go", "fn()void")],
        params="param n: u16;",
        binding=".n = n, .left = (x == 0)",
    )

    def host(m):
        a = rng.integers(0, 99, (1, 2, n), dtype=np.uint32)
        m.put("a", a)
        m.launch("go")
        np.testing.assert_array_equal(m.get("a", n, np.uint32)[0, 1], a[0, 0])
        ev = m.get16("ev", 8, np.uint16)[0]
        assert ev[0, 1] == 1 and ev[1, 2] == 1, ev

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"n": n})


@both
def test_tuples_of_stages(arch, tmp_path):
    """Stages of a pipeline as a tuple of structs with descriptors, functions and strings, unrolled at compile time."""
    n = 6
    stage = """
param n: u16; param name: comptime_string; param scale: f32; param hook;
var buf = @zeros([n]f32);
const D = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> buf[i] });
const length = @strlen(name);
var calls: u32 = 0;
fn apply(src: mem1d_dsd) mem1d_dsd { @fmuls(D, src, scale); calls += 1; hook(calls); return D; }
"""
    pe = (
        SYS
        + """
param n: u16;
var total: u32 = 0;
fn note(c: u32) void { total += c; }
fn nothing(c: u32) void {}
const a = @import_module("stage.csl", .{ .n = n, .name = "double", .scale = 2.0, .hook = note });
const b = @import_module("stage.csl", .{ .n = n, .name = "triple!", .scale = 3.0, .hook = nothing });
const c = @import_module("stage.csl", .{ .n = n, .name = "half", .scale = 0.5, .hook = note });
const order = .{ .{ .m = a, .again = 2 }, .{ .m = b, .again = 1 }, .{ .m = c, .again = 3, .extra = 10 } };
var x = @zeros([n]f32); var x_p: [*]f32 = &x; var out = @zeros([4]u32); var out_p: [*]u32 = &out;
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> x[i] });
fn letters() u16 { var s: u16 = 0; inline for (order) |o| { s += @as(u16, o.m.length); } return s; }
fn run() void {
  var cur: mem1d_dsd = X;
  inline for (order) |o, k| {
    var r: u16 = 0;
    while (r < o.again) : (r += 1) { cur = o.m.apply(cur); }
    if (comptime @has_field(o, "extra")) { out[3] += @as(u32, @field(o, "extra")) + @as(u32, k); }
  }
  @fmovs(X, cur);
  out[0] = total; out[1] = @as(u32, comptime letters()); out[2] = a.calls * 100 + b.calls * 10 + c.calls;
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(x_p, "x"); @export_symbol(out_p, "out"); @export_symbol(run); }
"""
    )
    text = layout(
        [("x", "[*]f32", True), ("out", "[*]u32", False), ("run", "fn()void")],
        params="param n: u16;",
        binding=".n = n",
    )

    def host(m):
        x = rng.random((1, 1, n)).astype(np.float32)
        m.put("x", x)
        m.launch("run")
        np.testing.assert_allclose(m.get("x", n), x * 2 * 2 * 3 / 8, rtol=1e-6)
        assert m.get("out", 4, np.uint32).ravel().tolist() == [
            1 + 2 + 1 + 2 + 3,
            6 + 7 + 4,
            213,
            12,
        ]

    everywhere(
        tmp_path,
        arch,
        {"layout.csl": text, "pe.csl": pe, "stage.csl": stage},
        host,
        params={"n": n},
    )
