# SPDX-License-Identifier: Apache-2.0
"""CSL programs of several PEs in the manner of the SDK's users, beside NumPy: phases counted by tasks, states by an enum, rings that end by control
wavelets."""

import numpy as np
from csl_machine import SYS, both, everywhere, layout

rng = np.random.default_rng(1905)


@both
def test_sums_by_a_tree_of_colors_and_a_broadcast(arch, tmp_path):
    W, n = 8, 5
    pe = (
        SYS
        + """
param me: u16; param W: u16; param n: u16; param up: [3]color; param down: color;
const layout_of = @import_module("<layout>");
const iq = [3]input_queue{ @get_input_queue(2), @get_input_queue(3), @get_input_queue(4) };
const oq = @get_output_queue(2); const bq = @get_output_queue(3); const biq = @get_input_queue(5);
var v = @zeros([n]f32); var t = @zeros([n]f32); var v_p: [*]f32 = &v;
const V = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n }); const T = @get_dsd(mem1d_dsd, .{ .base_address = &t, .extent = n });
fn levels() u16 { var l: u16 = 0; var m = me; while (l < 3) : (l += 1) { if (m & 1 == 1) return l; m >>= 1; } return 3; }
const mine: u16 = levels();   // this PE receives on levels below, sends on level `mine`
var level: u16 = 0;
const step_id = @get_local_task_id(9); const done_id = @get_local_task_id(10); const add_id = @get_local_task_id(11);
const ins = [3]fabin_dsd{ @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = up[0], .input_queue = iq[0] }), @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = up[1], .input_queue = iq[1] }), @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = up[2], .input_queue = iq[2] }) };
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = if (mine < 3) up[mine] else down, .output_queue = oq });
const bin = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = down, .input_queue = biq });
task step() void {
  if (level < mine) {
    switch (level) { 0 => @fmovs(T, ins[0], .{ .async = true, .activate = add }), 1 => @fmovs(T, ins[1], .{ .async = true, .activate = add }), else => @fmovs(T, ins[2], .{ .async = true, .activate = add }) }
  } else if (mine == 3) { @fmovs(out, V, .{ .async = true, .activate = done }); }
  else { @fmovs(out, V, .{ .async = true }); @fmovs(V, bin, .{ .async = true, .activate = done }); }
}
task add() void { level += 1; @fadds(V, V, T); @activate(step_id); }
task done() void { sys.unblock_cmd_stream(); }
fn run() void { level = 0; @activate(step_id); }
comptime {
  @bind_local_task(step, step_id); @bind_local_task(add, add_id); @bind_local_task(done, done_id);
  inline for (@range(u16, 3)) |l| { if (l < mine) { @initialize_queue(iq[l], .{ .color = up[l] }); } }
  if (mine != 3) { @initialize_queue(biq, .{ .color = down }); }
  if (@is_arch("wse3")) { @initialize_queue(oq, .{ .color = if (mine < 3) up[mine] else down }); }
  @export_symbol(v_p, "v"); @export_symbol(run);
}
"""
    )
    cfg = """
    const up = [3]color{ @get_color(1), @get_color(2), @get_color(3) }; const down = @get_color(8);
    for (@range(u16, 3)) |l| {
      const d: u16 = @as(u16, 1) << l; const from = x % (2 * d);   // sender at d, receiver at 0
      if (from == d) { @set_color_config(x, y, up[l], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } }); }
      else if (from == 0) { @set_color_config(x, y, up[l], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } }); }
      else if (from < d) { @set_color_config(x, y, up[l], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ WEST } } }); }
    }
    if (x == 0) { @set_color_config(x, y, down, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
    else if (x == W - 1) { @set_color_config(x, y, down, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }
    else { @set_color_config(x, y, down, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } } }); }
"""
    text = layout(
        [("v", "[*]f32", True), ("run", "fn()void")],
        config=cfg,
        params="param n: u16;",
        binding=".me = x, .W = W, .n = n, .up = [3]color{ @get_color(1), @get_color(2), @get_color(3) }, .down = @get_color(8)",
    )

    def host(m):
        x = rng.integers(-9, 9, (1, W, n)).astype(np.float32)
        m.put("v", x)
        m.launch("run")
        got = m.get("v", n)
        np.testing.assert_array_equal(got, np.broadcast_to(x.sum(1, keepdims=True), x.shape))
        m.launch("run")
        np.testing.assert_array_equal(m.get("v", n), got * W)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, params={"n": n})


@both
def test_conjugate_gradients_as_states_between_collectives(arch, tmp_path):
    W, n = 4, 3
    lay = """
param W: u16; param H: u16; param n: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = W, .height = H });
const c2d = @import_module("<collectives_2d/params>");
layout {
  @set_rectangle(W, H);
  for (@range(u16, W)) |x| {
    const cp = c2d.get_params(x, 0, .{ .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(14), @get_local_task_id(15) } });
    @set_tile_code(x, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .c2d = cp, .n = n, .me = x, .W = W });
  }
  @export_name("x", [*]f32, true); @export_name("b", [*]f32, true); @export_name("rr", [*]f32, false); @export_name("run", fn(u16)void);
}"""
    pe = (
        SYS
        + """
param c2d STRUCT; param n: u16; param me: u16; param W: u16;
const mpi = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.x, .queues = [2]u16{ 2, 4 }, .dest_dsr_ids = [1]u16{ 1 }, .src0_dsr_ids = [1]u16{ 1 }, .src1_dsr_ids = [1]u16{ 1 } });
const State = enum(u16) { init_rr, edges, pap, rr, done };
var state = State.init_rr;
var x = @zeros([n]f32); var b = @zeros([n]f32); var r = @zeros([n]f32); var p = @zeros([n]f32); var ap = @zeros([n]f32);
var ends = @zeros([2]f32); var all_ends = @zeros([2 * W]f32); var part = @zeros([1]f32); var total = @zeros([1]f32); var rr = @zeros([1]f32);
var x_p: [*]f32 = &x; var b_p: [*]f32 = &b; var rr_p: [*]f32 = &rr; var left: u16 = 0; var half = false;
const R = @get_dsd(mem1d_dsd, .{ .base_address = &r, .extent = n }); const P = @get_dsd(mem1d_dsd, .{ .base_address = &p, .extent = n });
const XD = @get_dsd(mem1d_dsd, .{ .base_address = &x, .extent = n }); const AP = @get_dsd(mem1d_dsd, .{ .base_address = &ap, .extent = n }); const B = @get_dsd(mem1d_dsd, .{ .base_address = &b, .extent = n });
fn mul_acc(a: f32, c: f32, s: *f32) void { s.* += a * c; }
fn dot(a: mem1d_dsd, c: mem1d_dsd) f32 { var s: f32 = 0.0; @map(mul_acc, a, c, &s); return s; }
const next_id = @get_local_task_id(17);
// sum over the row: reduce to 0, then broadcast
fn allreduce(v: f32) void { part[0] = v; half = true; mpi.reduce_fadds(0, @ptrcast([*]f32, &part), @ptrcast([*]f32, &total), 1, next_id); }
task next() void {
  if (half) { half = false; mpi.broadcast(0, @ptrcast([*]u32, &total), 1, next_id); return; }
  switch (state) {
    State.init_rr => { rr[0] = total[0]; start(); },
    State.edges => { if (!gathered) { gathered = true; mpi.broadcast(0, @ptrcast([*]u32, &all_ends), 2 * W, next_id); return; } apply(); },
    State.pap => { const alpha = rr[0] / total[0]; @fmacs(XD, XD, P, alpha); @fmacs(R, R, AP, -alpha); state = State.rr; allreduce(dot(R, R)); },
    State.rr => { const beta = total[0] / rr[0]; rr[0] = total[0]; @fmuls(P, P, beta); @fadds(P, P, R); left -= 1; start(); },
    else => {},
  }
}
var gathered = false;
fn start() void {
  if (left == 0) { state = State.done; sys.unblock_cmd_stream(); return; }
  state = State.edges; gathered = false; ends[0] = p[0]; ends[1] = p[n - 1];
  mpi.gather(0, @ptrcast([*]u32, &ends), @ptrcast([*]u32, &all_ends), 2, next_id);
}
fn apply() void {
  for (@range(u16, n)) |i| {
    const l: f32 = if (i > 0) p[i - 1] else if (me > 0) all_ends[2 * (me - 1) + 1] else 0.0;
    const h: f32 = if (i < n - 1) p[i + 1] else if (me < W - 1) all_ends[2 * (me + 1)] else 0.0;
    ap[i] = 2.5 * p[i] - l - h;
  }
  state = State.pap; allreduce(dot(P, AP));
}
fn run(iters: u16) void {
  mpi.init(); left = iters; state = State.init_rr;
  @fmovs(XD, 0.0); @fmovs(R, B); @fmovs(P, B); allreduce(dot(R, R));
}
comptime { @bind_local_task(next, next_id); @export_symbol(x_p, "x"); @export_symbol(b_p, "b"); @export_symbol(rr_p, "rr"); @export_symbol(run); }
"""
    )

    def host(m):
        N = W * n
        b = rng.standard_normal((1, W, n)).astype(np.float32)
        m.put("b", b)
        m.launch("run", np.uint16(N + 3))
        A = 2.5 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
        np.testing.assert_allclose(
            m.get("x", n).ravel(), np.linalg.solve(A, b.ravel().astype(float)), atol=2e-4
        )

    everywhere(tmp_path, arch, {"layout.csl": lay, "pe.csl": pe}, host, w=W, params={"n": n})


@both
def test_a_histogram_on_a_ring_that_control_wavelets_end(arch, tmp_path):
    W, n, bins = 4, 9, 3
    pe = (
        SYS
        + """
param me: u16; param W: u16; param n: u16; param bins: u16;
const ctl = @import_module("<control>");
const a = @get_color(8); const b = @get_color(9);
// even PEs send on a, odd ones on b, to the east; the last sends back to the first on color 7 through all
const wrap = @get_color(7);
const last = me == W - 1;
const tx = if (last) wrap else if (me % 2 == 0) a else b;
const rx = if (me == 0) wrap else if (me % 2 == 0) b else a;
const iq = @get_input_queue(3); const oq = @get_output_queue(3); 
var v = @zeros([n]u16); var v_p: [*]u16 = &v; var count = @zeros([bins]u32); var c_p: [*]u32 = &count;
var stops: u16 = 0; var fifo_mem = @zeros([256]u32); var at: u16 = 0; var filled: u16 = 0; var busy = false;
const one = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = tx, .output_queue = oq });
const stop = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = tx, .output_queue = oq, .control = true });
const pump_id = @get_local_task_id(12); const sent_id = @get_local_task_id(13);
fn push(x: u32) void { fifo_mem[filled % 256] = x; filled += 1; if (!busy) { busy = true; @activate(pump_id); } }
const END: u32 = 0xffffffff;
task pump() void {
  if (at == filled) { busy = false; return; }
  const x = fifo_mem[at % 256]; at += 1;
  if (x == END) { @mov32(stop, ctl.encode_control_task_payload(@get_control_task_id(20)), .{ .async = true, .activate = pump }); }
  else { @mov32(one, x, .{ .async = true, .activate = pump }); }
}
fn place(x: u16) void {
  const owner = x / bins;
  if (owner == me) { count[x % bins] += 1; } else { push(@as(u32, owner) << 16 | @as(u32, x)); }
}
task got(x: u16, owner: u16) void { if (owner == me) { count[x % bins] += 1; } else { push(@as(u32, owner) << 16 | @as(u32, x)); } }
task stopped() void { stops += 1; if (stops < W) { push(END); } else { sys.unblock_cmd_stream(); } }
fn run() void { stops = 0; for (v) |x| { place(x); } push(END); }
comptime {
  @bind_local_task(pump, pump_id); @bind_control_task(stopped, @get_control_task_id(20));
  @initialize_queue(iq, .{ .color = rx });
  @bind_data_task(got, if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(rx));
  if (@is_arch("wse3")) { @initialize_queue(oq, .{ .color = tx }); }
  if (me == 0) { @set_local_color_config(wrap, .{ .routes = .{ .rx = EAST, .tx = RAMP } }); @set_local_color_config(tx, .{ .routes = .{ .rx = RAMP, .tx = EAST } }); }
  else if (last) { @set_local_color_config(wrap, .{ .routes = .{ .rx = RAMP, .tx = WEST } }); @set_local_color_config(rx, .{ .routes = .{ .rx = WEST, .tx = RAMP } }); }
  else { @set_local_color_config(wrap, .{ .routes = .{ .rx = EAST, .tx = WEST } }); @set_local_color_config(rx, .{ .routes = .{ .rx = WEST, .tx = RAMP } }); @set_local_color_config(tx, .{ .routes = .{ .rx = RAMP, .tx = EAST } }); }
  @export_symbol(v_p, "v"); @export_symbol(c_p, "count"); @export_symbol(run);
}
"""
    )
    text = layout(
        [("v", "[*]u16", True), ("count", "[*]u32", True), ("run", "fn()void")],
        params="param n: u16; param bins: u16;",
        binding=".me = x, .W = W, .n = n, .bins = bins",
    )

    def host(m):
        x = rng.integers(0, W * bins, (1, W, n)).astype(np.uint16)
        m.put16("v", x)
        m.launch("run")
        np.testing.assert_array_equal(
            m.get("count", bins, np.uint32).ravel(), np.bincount(x.ravel(), minlength=W * bins)
        )

    everywhere(
        tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, params={"n": n, "bins": bins}
    )
