# SPDX-License-Identifier: Apache-2.0
"""CSL programs of several PEs in the manner of the SDK's users, beside NumPy: products, solvers, stencils, sparse rows."""

import numpy as np
from csl_machine import SYS, both, everywhere, layout
from test_wse_programs import wse

rng = np.random.default_rng(1902)


def queue_setup(*queues):
    """Initialises (queue constant, color) pairs on both machines: output queues on WSE-3 only."""
    lines = []
    for name, color, output in queues:
        text = f"@initialize_queue({name}, .{{ .color = {color} }});"
        lines.append(f'if (@is_arch("wse3")) {text}' if output else text)
    return "\n  ".join(lines)


@both
def test_a_product_by_scatter_broadcast_and_gather(arch, tmp_path):
    """C = A B: rows of A scattered along a row of PEs, B broadcast, rows of C gathered; the roots differ."""
    p, m, k, n = 4, 3, 5, 4
    pe = (
        SYS
        + """
param c2d STRUCT; param M: u16; param K: u16; param N: u16; param P: u16;
const mpi = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.x, .queues = [2]u16{ 2, 4 }, .dest_dsr_ids = [1]u16{1}, .src0_dsr_ids = [1]u16{1}, .src1_dsr_ids = [1]u16{1} });
var A = @zeros([P * M * K]f32); var B = @zeros([K, N]f32); var C = @zeros([P * M * N]f32);
var a = @zeros([M, K]f32); var c = @zeros([M, N]f32);
var A_p: [*]f32 = &A; var B_p: [*]f32 = @ptrcast([*]f32, &B); var C_p: [*]f32 = &C;
const step_id = @get_local_task_id(15);
var step: u16 = 0; var from: u16 = 0; var to: u16 = 0;
const row = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> c[0, i] });
const b_row = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> B[0, i] });
task go() void {
  step += 1;
  switch (step) {
    1 => mpi.scatter(from, @ptrcast([*]u32, &A), @ptrcast([*]u32, &a), M * K, step_id),
    2 => mpi.broadcast(to, @ptrcast([*]u32, &B), K * N, step_id),
    3 => {
      c = @zeros([M, N]f32);
      for (@range(i16, M)) |i| { for (@range(i16, K)) |k| {
        const r = @increment_dsd_offset(row, i * @as(i16, N), f32);
        @fmacs(r, r, @increment_dsd_offset(b_row, k * @as(i16, N), f32), a[i, k]);
      } }
      mpi.gather(to, @ptrcast([*]u32, &c), @ptrcast([*]u32, &C), M * N, step_id);
    },
    else => { step = 0; sys.unblock_cmd_stream(); },
  }
}
fn run(f: u16, t: u16) void { from = f; to = t; mpi.init(); @activate(step_id); }
comptime {
  @bind_local_task(go, step_id);
  @export_symbol(A_p, "A"); @export_symbol(B_p, "B"); @export_symbol(C_p, "C"); @export_symbol(run);
}
"""
    )
    exports = [*((s, "[*]f32", True) for s in "ABC"), ("run", "fn(u16,u16)void")]
    params = """param M: u16; param K: u16; param N: u16;
const c2d = @import_module("<collectives_2d/params>");"""
    binding = """.M = M, .K = K, .N = N, .P = W, .c2d = c2d.get_params(x, y, .{
      .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) },
      .y_colors = .{ @get_color(4), @get_color(5) }, .y_entrypoints = .{ @get_local_task_id(12), @get_local_task_id(13) } })"""
    text = layout(exports, params=params, binding=binding)

    def host(machine):
        for source, target in ((0, 0), (2, 3), (3, 1)):
            A = rng.integers(-4, 5, (p, p * m * k)).astype(np.float32)
            B = rng.integers(-4, 5, (p, k * n)).astype(np.float32)
            machine.put("A", A)
            machine.put("B", B)
            machine.launch("run", np.uint16(source), np.uint16(target))
            want = A[source].reshape(p * m, k) @ B[target].reshape(k, n)
            got = machine.get("C", p * m * n)[0, target].reshape(p * m, n)
            np.testing.assert_array_equal(got, want)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, p, 1, {"M": m, "K": k, "N": n})


@both
def test_a_matrix_vector_product_with_x_down_columns_and_sums_along_rows(arch, tmp_path):
    """x enters by a broadcast of the host; partial sums go from west to east through a chain; y leaves in the last column."""
    w, h, m, n = 4, 3, 5, 6
    pe = (
        SYS
        + """
param M: i16; param N: i16; param first: bool; param last: bool; param in: color; param out: color;
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
var A = @zeros([M, N]f32); var x = @zeros([N]f32); var y = @zeros([M]f32);
var A_p: [*]f32 = @ptrcast([*]f32, &A); var x_p: [*]f32 = &x; var y_p: [*]f32 = &y;
const exit_id = @get_local_task_id(9); const reduce_id = @get_local_task_id(10);
const column = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> A[i, 0] });
const Y = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> y[i] });
const west = @get_dsd(fabin_dsd, .{ .extent = M, .fabric_color = in, .input_queue = iq });
const east = @get_dsd(fabout_dsd, .{ .extent = M, .fabric_color = out, .output_queue = oq });
task reduce() void {
  if (first and last) { @activate(exit_id); }
  else if (first) { @fmovs(east, Y, .{ .async = true, .activate = exit }); }
  else if (last) { @fadds(Y, Y, west, .{ .async = true, .activate = exit_id }); }
  else { @fadds(east, west, Y, .{ .async = true, .activate = exit }); }
}
fn compute() void {
  var a = column;
  for (@range(i16, N)) |j| {
    @fmacs(Y, Y, a, x[j]);
    a = @increment_dsd_offset(a, 1, f32);
  }
  @activate(reduce_id);
}
task exit() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(exit, exit_id); @bind_local_task(reduce, reduce_id);
  if (!first) { @initialize_queue(iq, .{ .color = in }); }
  if (!last) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out }); }
  @export_symbol(A_p, "A"); @export_symbol(x_p, "x"); @export_symbol(y_p, "y"); @export_symbol(compute);
}
"""
    )
    exports = [*((s, "[*]f32", True) for s in "Axy"), ("compute", "fn()void")]
    config = """const c = [2]color{ @get_color(2), @get_color(3) };
    if (x != 0) { @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }
    if (x != W - 1) { @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }"""
    binding = """.M = @as(i16, M), .N = @as(i16, N), .first = x == 0, .last = x == W - 1,
      .in = @get_color(2 + (x + 1) % 2), .out = @get_color(2 + x % 2)"""
    text = layout(exports, config, "param M: u16; param N: u16;", binding)

    def host(machine):
        A = rng.integers(-9, 9, (h, m, w, n)).astype(np.float32)
        x = rng.integers(-9, 9, (w, n)).astype(np.float32)
        b = rng.integers(-9, 9, (h, m)).astype(np.float32)
        machine.put("A", A.transpose(0, 2, 1, 3))
        start = np.zeros((h, w, m), np.float32)
        start[:, 0] = b
        machine.put("y", start)
        runner = machine.runner
        how = dict(
            streaming=False,
            order=wse.MemcpyOrder.ROW_MAJOR,
            data_type=wse.MemcpyDataType.MEMCPY_32BIT,
            nonblock=True,
        )
        runner.memcpy_h2d_colbcast(runner.get_id("x"), x.ravel(), 0, 0, w, h, n, **how)
        machine.launch("compute")
        got = np.zeros(h * m, np.float32)
        how["nonblock"] = False
        runner.memcpy_d2h(got, runner.get_id("y"), w - 1, 0, 1, h, m, **how)
        want = np.einsum("imjn,jn->im", A, x) + b
        np.testing.assert_array_equal(got.reshape(h, m), want)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, h, {"M": m, "N": n})


@both
def test_conjugate_gradients_on_a_line_of_pes(arch, tmp_path):
    """A tridiagonal system: halos of one number from both sides, dot products by a chain there and back, states as an enum."""
    w, n = 5, 7
    pe = (
        SYS
        + """
param n: u16; param first: bool; param last: bool;
param halo_in_w: color; param halo_in_e: color; param halo_out_e: color; param halo_out_w: color; param up: color; param up_out: color; param down: color;
const math = @import_module("<math>");
const State = enum(u16) { halo, matvec, alpha, beta, done };
var b = @zeros([n]f32); var x = @zeros([n]f32); var r = @zeros([n]f32); var p = @zeros([n + 2]f32); var q = @zeros([n]f32);
var b_p: [*]f32 = &b; var x_p: [*]f32 = &x;
var info = @zeros([2]f32); var info_p: [*]f32 = &info;
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> x[i] });
const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> r[i] });
const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[i] });
const Q = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> q[i] });
const P0 = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> p[i + 1] });
const PL = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> p[i] });
const PR = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> p[i + 2] });
const left_in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = halo_in_w, .input_queue = @get_input_queue(6) });
const right_in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = halo_in_e, .input_queue = @get_input_queue(7) });
const east = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = halo_out_e, .output_queue = @get_output_queue(2) });
const west = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = halo_out_w, .output_queue = @get_output_queue(3) });
const sum_in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = up, .input_queue = @get_input_queue(4) });
const sum_out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = up_out, .output_queue = @get_output_queue(4) });
const total_in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = down, .input_queue = @get_input_queue(5) });
const total_out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = down, .output_queue = @get_output_queue(5) });
const first_of = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> p[1] });
const last_of = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> p[n] });
const left_cell = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> p[0] });
const right_cell = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> p[n + 1] });
var state: State = State.halo; var rho: f32 = 0.0; var limit: f32 = 0.0; var rounds: u16 = 0; var max_rounds: u16 = 0;
var dot: f32 = 0.0; var waits: i16 = 0;
const next_id = @get_local_task_id(12); const arrived_id = @get_local_task_id(13); const back_id = @get_local_task_id(14); const got_id = @get_local_task_id(15);
const arrived_left = @get_local_task_id(16); const arrived_right = @get_local_task_id(17);

// ---- the sum of `dot` over all PEs, then task `next`
fn all_sum(v: f32) void {
  dot = v;
  if (last) { @fmovs(sum_out, dot, .{ .async = true }); @fmovs(&dot, total_in, .{ .async = true, .activate = next_id }); }
  else @fadds(&dot, dot, sum_in, .{ .async = true, .activate = back_id });
}
task back() void {
  if (first) { @fmovs(total_out, dot, .{ .async = true, .activate = next_id }); }
  else { @fmovs(sum_out, dot, .{ .async = true }); @fmovs(&dot, total_in, .{ .async = true, .activate = next_id }); }
}
fn local_dot(u: mem1d_dsd, v: mem1d_dsd) f32 {
  const s = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> scratch[i] });
  @fmuls(s, u, v);
  var sum: f32 = 0.0;
  @fadds(&sum, sum, s);
  return sum;
}
var scratch = @zeros([n]f32);
fn exchange() void {
  waits = 0;
  if (!first) { waits += 1; @fmovs(west, first_of, .{ .async = true }); @fmovs(left_cell, left_in, .{ .async = true, .activate = arrived_left }); }
  if (!last) { waits += 1; @fmovs(east, last_of, .{ .async = true }); @fmovs(right_cell, right_in, .{ .async = true, .activate = arrived_right }); }
}
task from_left() void { waits -= 1; if (waits == 0) @activate(next_id); }
task from_right() void { waits -= 1; if (waits == 0) @activate(next_id); }
task next() void {
  switch (state) {
    State.halo => { state = State.matvec; exchange(); },
    State.matvec => {
      @fmuls(Q, P0, 2.5);
      @fsubs(Q, Q, PL);
      @fsubs(Q, Q, PR);
      state = State.alpha;
      all_sum(local_dot(P0, Q));
    },
    State.alpha => {
      const alpha = rho / dot;
      @fmacs(X, X, P0, alpha);
      @fmacs(R, R, Q, -alpha);
      state = State.beta;
      all_sum(local_dot(R, R));
    },
    State.beta => {
      const beta = dot / rho;
      if (rounds == 0) { @fmovs(P0, R); } else { @fmacs(P0, R, P0, beta); }
      rho = dot;
      if (rho <= limit or rounds == max_rounds) { state = State.done; @activate(next_id); return; }
      rounds += 1;
      state = State.halo;
      @activate(next_id);
    },
    State.done => {
      info = [2]f32{ @as(f32, rounds), math.sqrt(rho) };
      sys.unblock_cmd_stream();
    },
  }
}
fn solve(tolerance: f32, most: u16) void {
  limit = tolerance * tolerance; max_rounds = most; rounds = 0;
  @fmovs(X, 0.0); @fmovs(R, B); p = @zeros([n + 2]f32);
  rho = 1.0;
  state = State.beta;
  all_sum(local_dot(R, R));
}
comptime {
  @bind_local_task(next, next_id); @bind_local_task(back, back_id);
  @bind_local_task(from_left, arrived_left); @bind_local_task(from_right, arrived_right);
  if (!first) { @initialize_queue(@get_input_queue(6), .{ .color = halo_in_w }); @initialize_queue(@get_input_queue(5), .{ .color = down }); }
  if (!last) { @initialize_queue(@get_input_queue(7), .{ .color = halo_in_e }); @initialize_queue(@get_input_queue(4), .{ .color = up }); }
  if (@is_arch("wse3")) {
    if (!last) @initialize_queue(@get_output_queue(2), .{ .color = halo_out_e });
    if (!first) { @initialize_queue(@get_output_queue(3), .{ .color = halo_out_w }); @initialize_queue(@get_output_queue(4), .{ .color = up_out }); }
    if (first) @initialize_queue(@get_output_queue(5), .{ .color = down });
  }
  @export_symbol(b_p, "b"); @export_symbol(x_p, "x"); @export_symbol(info_p, "info"); @export_symbol(solve);
}
"""
    )
    exports = [
        ("b", "[*]f32", True),
        ("x", "[*]f32", False),
        ("info", "[*]f32", False),
        ("solve", "fn(f32,u16)void"),
    ]
    config = """const even = x % 2 == 0;
    const e_out = if (even) @get_color(1) else @get_color(2); const e_in = if (even) @get_color(2) else @get_color(1);
    const w_out = if (even) @get_color(3) else @get_color(4); const w_in = if (even) @get_color(4) else @get_color(3);
    const s_out = if (even) @get_color(5) else @get_color(6); const s_in = if (even) @get_color(6) else @get_color(5);
    if (x + 1 < W) {
      @set_color_config(x, y, e_out, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
      @set_color_config(x, y, w_in, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
      @set_color_config(x, y, s_in, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    }
    if (x > 0) {
      @set_color_config(x, y, w_out, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
      @set_color_config(x, y, e_in, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
      @set_color_config(x, y, s_out, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
    }
    const rx = if (x == 0) .{ RAMP } else .{ WEST };
    if (x == 0) { @set_color_config(x, y, @get_color(7), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }
    else if (x == W - 1) { @set_color_config(x, y, @get_color(7), .{ .routes = .{ .rx = rx, .tx = .{ RAMP } } }); }
    else { @set_color_config(x, y, @get_color(7), .{ .routes = .{ .rx = rx, .tx = .{ RAMP, EAST } } }); }"""
    binding = """.n = n, .first = x == 0, .last = x == W - 1,
      .halo_out_e = @get_color(1 + x % 2), .halo_in_w = @get_color(2 - x % 2),
      .halo_out_w = @get_color(3 + x % 2), .halo_in_e = @get_color(4 - x % 2),
      .up_out = @get_color(5 + x % 2), .up = @get_color(6 - x % 2), .down = @get_color(7)"""
    text = layout(exports, config, "param n: u16;", binding)

    def host(machine):
        size = w * n
        A = 2.5 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
        b = rng.standard_normal(size).astype(np.float32)
        machine.put("b", b)
        machine.launch("solve", np.float32(1e-4), np.uint16(60))
        x = machine.get("x", n).ravel()
        rounds, rest = machine.get("info", 2)[0].T
        assert (rounds == rounds[0]).all() and 5 < rounds[0] < 60, rounds
        assert rest[0] < 1e-4
        np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=2e-4)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, 1, {"n": n})
