# SPDX-License-Identifier: Apache-2.0
"""CSL programs of several PEs in the manner of the SDK's users, beside NumPy: streams, switches, control wavelets, tallies, FIFOs."""

import numpy as np
from csl_machine import CHOICES, SYS, Machine, both, everywhere, layout
from test_wse_programs import wse

rng = np.random.default_rng(1903)
WORDS = dict(
    order=wse.MemcpyOrder.ROW_MAJOR, data_type=wse.MemcpyDataType.MEMCPY_32BIT, nonblock=False
)


@both
def test_a_factor_of_cholesky_by_turns_of_senders(arch, tmp_path):
    """One column a PE; each sends its finished column to all behind it, then lets the next one send: two commands, the
    first for its own router, the second for the next one."""
    n = 6
    pe = (
        SYS
        + """
param n: u16; param me: u16; param last: bool; param c: color;
const math = @import_module("<math>"); const ctl = @import_module("<control>");
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
var a = @zeros([n]f32); var a_p: [*]f32 = &a; var got = @zeros([n]f32); var seen: u16 = 0;
const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] });
const G = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> got[i] });
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c, .input_queue = iq });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = oq });
const turn = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true });
const next_id = @get_local_task_id(12); const took_id = @get_local_task_id(13); const sent_id = @get_local_task_id(14);
const commands = ctl.encode_payload(2, [2]ctl.opcode{ ctl.opcode.NOP, ctl.opcode.SWITCH_ADV }, [2]bool{ true, true }, true, {});
task next() void {
  if (seen < me) { @fmovs(G, in, .{ .async = true, .activate = took_id }); return; }
  const d = math.sqrt(a[me]);
  @fmuls(A, A, math.inv(d));
  for (@range(u16, me)) |i| { a[i] = 0.0; }
  a[me] = d;
  if (last) { @activate(sent_id); } else { @fmovs(out, A, .{ .async = true, .activate = pass }); }
}
const pass_id = @get_local_task_id(15);
task pass() void { @mov32(turn, commands, .{ .async = true, .activate = sent_id }); }
task took() void { @fmacs(A, A, G, -got[me]); seen += 1; @activate(next_id); }
task sent() void { sys.unblock_cmd_stream(); }
fn run() void { seen = 0; @activate(next_id); }
comptime {
  @bind_local_task(next, next_id); @bind_local_task(took, took_id); @bind_local_task(sent, sent_id); @bind_local_task(pass, pass_id);
  if (me > 0) @initialize_queue(iq, .{ .color = c });
  if (!last) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c }); }
  @export_symbol(a_p, "a"); @export_symbol(run);
}
"""
    )
    config = """const c = @get_color(6);
    const pops = .{ .pop_mode = .{ .always_pop = true }, .pos1 = .{ .rx = RAMP, .tx = EAST } };
    const pops2 = .{ .pop_mode = .{ .always_pop = true }, .pos1 = .{ .rx = RAMP } };
    if (x == 0) { @set_color_config(x, y, c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } }, .switches = .{ .pop_mode = .{ .always_pop = true } } }); }
    else if (x == W - 1) { @set_color_config(x, y, c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); }
    else if (@is_arch("wse3")) { @set_color_config(x, y, c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .switches = pops }); }
    else { @set_color_config(x, y, c, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .switches = pops2 }); }"""
    text = layout(
        [("a", "[*]f32", True), ("run", "fn()void")],
        config,
        "param n: u16;",
        ".n = n, .me = x, .last = x == W - 1, .c = @get_color(6)",
    )

    def host(m):
        b = rng.standard_normal((n, n))
        a = b @ b.T + n * np.eye(n)
        m.put("a", np.tril(a).T.astype(np.float32)[None])
        m.launch("run")
        got = m.get("a", n)[0].T
        np.testing.assert_allclose(np.tril(got), np.linalg.cholesky(a), rtol=1e-4, atol=1e-4)

    if (
        arch == "wse2"
    ):  # A sender hears itself: a position changes what comes in, not where it goes.
        pe = pe.replace("task pass() void {", "task pass() void { if (me > 0) @fmovs(G, in); ")
    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, n, 1, {"n": n})


@both
def test_norms_of_residuals_by_chains_of_maxima(arch, tmp_path):
    """max |b - A x| of a matrix over a rectangle: sums along rows, then maxima down the last column."""
    w, h, m, n = 3, 4, 4, 5
    pe = (
        SYS
        + """
param M: i16; param N: i16; param left: bool; param right: bool; param top: bool; param bottom: bool;
param east: color; param west: color; param down: color; param up: color;
var A = @zeros([N, M]f32); var x = @zeros([N]f32); var r = @zeros([M]f32); var norm = @zeros([1]f32);
var A_p: [*]f32 = @ptrcast([*]f32, &A); var x_p: [*]f32 = &x; var r_p: [*]f32 = &r; var norm_p: [*]f32 = &norm;
const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> r[i] });
const col = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> A[0, i] });
const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{N} -> x[i] });
const from_west = @get_dsd(fabin_dsd, .{ .extent = M, .fabric_color = west, .input_queue = @get_input_queue(4) });
const to_east = @get_dsd(fabout_dsd, .{ .extent = M, .fabric_color = east, .output_queue = @get_output_queue(2) });
const from_north = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = up, .input_queue = @get_input_queue(5) });
const to_south = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = down, .output_queue = @get_output_queue(3) });
const rows_id = @get_local_task_id(10); const done_id = @get_local_task_id(11); const s1 = @get_dsr(dsr_src1, 4);
fn column(v: f32) void { @fmacs(R, R, s1, -v); }
fn run() void {
  @load_to_dsr(s1, col, .{ .save_address = true });
  @map(column, X);
  if (left) { @fmovs(to_east, R, .{ .async = true, .activate = done_id }); }
  else if (right) { @fadds(R, R, from_west, .{ .async = true, .activate = rows_id }); }
  else { @fadds(to_east, R, from_west, .{ .async = true, .activate = done_id }); }
}
task rows() void {
  const absolute = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> r[i] });
  @fabss(absolute, absolute);
  norm[0] = 0.0;
  @fmaxs(&norm[0], norm[0], absolute);
  if (top and bottom) { @activate(done_id); }
  else if (top) { @fmovs(to_south, norm[0], .{ .async = true, .activate = done_id }); }
  else if (bottom) { @fmaxs(&norm[0], norm[0], from_north, .{ .async = true, .activate = done_id }); }
  else { @fmaxs(to_south, norm[0], from_north, .{ .async = true, .activate = done_id }); }
}
task done() void { sys.unblock_cmd_stream(); }
comptime {
  @bind_local_task(rows, rows_id); @bind_local_task(done, done_id);
  if (!left) @initialize_queue(@get_input_queue(4), .{ .color = west });
  if (right and !top) @initialize_queue(@get_input_queue(5), .{ .color = up });
  if (@is_arch("wse3")) {
    if (!right) @initialize_queue(@get_output_queue(2), .{ .color = east });
    if (right and !bottom) @initialize_queue(@get_output_queue(3), .{ .color = down });
  }
  @export_symbol(A_p, "A"); @export_symbol(x_p, "x"); @export_symbol(r_p, "r"); @export_symbol(norm_p, "norm"); @export_symbol(run);
}
"""
    )
    exports = [*((k, "[*]f32", True) for k in ("A", "x", "r", "norm")), ("run", "fn()void")]
    config = """const rows = [2]color{ @get_color(0), @get_color(1) }; const cols = [2]color{ @get_color(2), @get_color(3) };
    if (x + 1 < W) @set_color_config(x, y, rows[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    if (x > 0) @set_color_config(x, y, rows[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    if (x == W - 1) {
      if (y + 1 < H) @set_color_config(x, y, cols[y % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ SOUTH } } });
      if (y > 0) @set_color_config(x, y, cols[(y + 1) % 2], .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ RAMP } } });
    }"""
    binding = """.M = @as(i16, M), .N = @as(i16, N), .left = x == 0, .right = x == W - 1, .top = y == 0, .bottom = y == H - 1,
      .east = @get_color(x % 2), .west = @get_color((x + 1) % 2), .down = @get_color(2 + y % 2), .up = @get_color(2 + (y + 1) % 2)"""
    text = layout(exports, config, "param M: u16; param N: u16;", binding)

    def host(machine):
        A = rng.integers(-9, 9, (h, m, w, n)).astype(np.float32)
        x = rng.integers(-9, 9, (w, n)).astype(np.float32)
        b = rng.integers(-99, 99, (h, m)).astype(np.float32)
        machine.put("A", A.transpose(0, 2, 3, 1))
        machine.put("x", np.broadcast_to(x, (h, w, n)))
        start = np.zeros((h, w, m), np.float32)
        start[:, 0] = b
        machine.put("r", start)
        machine.launch("run")
        want = np.abs(b - np.einsum("imjn,jn->im", A, x)).max()
        assert machine.get("norm", 1)[h - 1, w - 1, 0] == want

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, h, {"M": m, "N": n})


@both
def test_seven_point_stencils_with_queues_alone(arch, tmp_path):
    """Steps of heat in three dimensions: columns of z on each PE, four borders by microthreads, descriptors by queue."""
    w, h, nz = 3, 4, 8
    sides = [
        ("east", "EAST", 0, 4, 2),
        ("west", "WEST", 1, 5, 3),
        ("north", "NORTH", 2, 6, 4),
        ("south", "SOUTH", 3, 7, 5),
    ]
    pe = SYS + "param n: u16; param steps_left: u16 = 0;\n"
    for name, _, k, iq, oq in sides:
        pe += f"""param has_{name}: bool; param in_{name}: color; param out_{name}: color;
var b_{name} = @zeros([n]f32); const B_{name} = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{n}} -> b_{name}[i] }});
const from_{name} = @get_dsd(fabin_dsd, .{{ .extent = n, .fabric_color = in_{name}, .input_queue = @get_input_queue({iq}) }});
const to_{name} = @get_dsd(fabout_dsd, .{{ .extent = n, .fabric_color = out_{name}, .output_queue = @get_output_queue({oq}) }});
comptime {{
  if (has_{name}) {{
    @initialize_queue(@get_input_queue({iq}), .{{ .color = in_{name} }});
    if (@is_arch("wse3")) @initialize_queue(@get_output_queue({oq}), .{{ .color = out_{name} }});
  }}
}}
"""
    pe += """
var u = @zeros([n + 2]f32); var v = @zeros([n]f32); var u_p: [*]f32 = &u;
const U = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> u[i + 1] });
const below = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> u[i] });
const above = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> u[i + 2] });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
var left: u16 = 0; var waits: u16 = 0; var rate: f32 = 0.0;
"""
    exchange, combine = "", ""
    for k, (name, *_) in enumerate(sides):
        pe += f"const got_{name} = @get_local_task_id({16 + k}); task arrived_{name}() void {{ arrived(); }}\n"
        pe += f"comptime {{ @bind_local_task(arrived_{name}, got_{name}); }}\n"
        exchange += f"""  if (has_{name}) {{ waits += 1; @fmovs(to_{name}, U, .{{ .async = true, .activate = got_{name} }}); }}
"""
        combine += f"""  if (has_{name}) {{ @fmovs(B_{name}, from_{name}); @fadds(V, V, B_{name}); }}
"""
    pe += (
        """
const step_id = @get_local_task_id(9);
fn arrived() void { waits -= 1; if (waits == 0) @activate(step_id); }
fn exchange() void {
  waits = 0;
"""
        + exchange
        + """
  @fmacs(V, above, U, -6.0);
  @fadds(V, V, below);
"""
        + combine
        + """
}
task step() void {
  @fmacs(U, U, V, rate);
  left -= 1;
  if (left == 0) { sys.unblock_cmd_stream(); } else { exchange(); }
}
fn run(steps: u16, k: f32) void { left = steps; rate = k; exchange(); }
comptime { @bind_local_task(step, step_id); @export_symbol(u_p, "u"); @export_symbol(run); }
"""
    )
    config = ""
    cond = {"east": "x + 1 < W", "west": "x > 0", "north": "y > 0", "south": "y + 1 < H"}
    axis = {"east": "x", "west": "x", "north": "y", "south": "y"}
    binding = ".n = n"
    opposite = {"east": "west", "west": "east", "north": "south", "south": "north"}
    number = {name: k for name, _, k, _, _ in sides}
    for name, d, k, _, _ in sides:
        there = number[opposite[name]]  # what comes from that side was sent towards the other
        config += f"""if ({cond[name]}) {{
      @set_color_config(x, y, @get_color({2 * k} + {axis[name]} % 2), .{{ .routes = .{{ .rx = .{{ RAMP }}, .tx = .{{ {d} }} }} }});
      @set_color_config(x, y, @get_color({2 * there} + ({axis[name]} + 1) % 2), .{{ .routes = .{{ .rx = .{{ {d} }}, .tx = .{{ RAMP }} }} }});
    }}
    """
        binding += f""", .has_{name} = {cond[name]}, .out_{name} = @get_color({2 * k} + {axis[name]} % 2),
      .in_{name} = @get_color({2 * there} + ({axis[name]} + 1) % 2)"""
    text = layout(
        [("u", "[*]f32", True), ("run", "fn(u16,f32)void")], config, "param n: u16;", binding
    )

    def host(m):
        u = np.zeros((h + 2, w + 2, nz + 2), np.float32)
        u[1:-1, 1:-1, 1:-1] = rng.random((h, w, nz))
        m.put("u", u[1:-1, 1:-1])
        m.launch("run", np.uint16(3), np.float32(0.1))
        u = u.astype(np.float64)
        for _ in range(3):
            s = sum(np.roll(u, d, a) for a in range(3) for d in (-1, 1)) - 6 * u
            u[1:-1, 1:-1, 1:-1] += 0.1 * s[1:-1, 1:-1, 1:-1]
        got = m.get("u", nz + 2)[:, :, 1:-1]
        np.testing.assert_allclose(got, u[1:-1, 1:-1, 1:-1], atol=1e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w, h, {"n": nz})


@both
def test_sparse_rows_by_wavelets_with_an_index(arch, tmp_path):
    """Columns of a sparse matrix on PEs of a row; products travel east as (value, row) pairs to the last PE, which adds them up;
    a control wavelet of each PE ends its part."""
    w, rows, most = 4, 20, 9
    pe = (
        SYS
        + """
param rows: u16; param most: u16; param first: bool; param last: bool; param in: color; param out: color; param parts: u16;
const ctl = @import_module("<control>");
const iq = @get_input_queue(3); const oq = @get_output_queue(4);
var values = @zeros([most]f16); var at = @zeros([most]u16); var y = @zeros([rows]f16); var x: f16 = 0.0;
var values_p: [*]f16 = &values; var at_p: [*]u16 = &at; var y_p: [*]f16 = &y;
const one = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = out, .output_queue = oq, .wavelet_index_offset = true, .simd_mode = .{ .simd_off = true } });
const end = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = out, .output_queue = oq, .control = true });
const end_id = @get_control_task_id(40);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(in);
var n: u16 = 0; var ended: u16 = 0; var ready: bool = false;
task take(v: f16, row: u16) void { if (last) { y[row] += v; } else { @fmovh(one, v, .{ .index = row }); } }
task ends() void {
  ended += 1;
  if (!last) @mov32(end, ctl.encode_control_task_payload(end_id));
  if (ended == parts and ready) finish();
}
fn finish() void { ended = 0; ready = false; sys.unblock_cmd_stream(); }
fn run(count: u16, by: f16) void {
  for (@range(u16, count)) |k| {
    const v = values[k] * by;
    if (last) { y[at[k]] += v; } else { @fmovh(one, v, .{ .index = at[k] }); }
  }
  if (!last) @mov32(end, ctl.encode_control_task_payload(end_id));
  ready = true;
  if (ended == parts) finish();
}
comptime {
  if (!first) {
    @bind_data_task(take, data_id); @bind_control_task(ends, end_id);
    if (@is_arch("wse3")) @initialize_queue(iq, .{ .color = in });
  }
  if (!last) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = out }); }
  @export_symbol(values_p, "values"); @export_symbol(at_p, "at"); @export_symbol(y_p, "y"); @export_symbol(run);
}
"""
    )
    exports = [
        ("values", "[*]f16", True),
        ("at", "[*]u16", True),
        ("y", "[*]f16", True),
        ("run", "fn(u16,f16)void"),
    ]
    config = """if (x + 1 < W) @set_color_config(x, y, @get_color(4 + x % 2), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    if (x > 0) @set_color_config(x, y, @get_color(5 - x % 2), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });"""
    binding = """.rows = rows, .most = most, .first = x == 0, .last = x == W - 1, .parts = x, .out = @get_color(4 + x % 2), .in = @get_color(5 - x % 2)"""
    text = layout(exports, config, "param rows: u16; param most: u16;", binding)

    def host(m):
        values = rng.integers(-8, 9, (1, w, most)).astype(np.float16)
        at = rng.integers(0, rows, (1, w, most)).astype(np.uint16)
        m.put16("values", values)
        m.put16("at", at)
        m.put16("y", np.zeros((1, w, rows), np.float16))
        m.launch("run", np.uint16(most), np.float16(0.5))
        want = np.zeros(rows)
        np.add.at(want, at.ravel(), values.ravel() * 0.5)
        np.testing.assert_array_equal(m.get16("y", rows, np.float16)[0, w - 1], want)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, 1, {"rows": rows, "most": most})


@both
def test_streams_in_and_out_by_numbers_and_by_colors(arch, tmp_path):
    """The host streams words to each PE and takes as many back, scaled by a FIFO's two microthreads; both forms of streams."""
    w, h, n = 2, 3, 21
    pe = (
        SYS
        + """
param n: u16;
const h2d = IN; const d2h = OUT;
const iq = @get_input_queue(5); const oq = @get_output_queue(4);
var room = @zeros([4]f32); const fifo = @allocate_fifo(room);
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = h2d, .input_queue = iq });
const out = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = d2h, .output_queue = oq });
const start_id = @get_local_task_id(9);
task start() void {
  @fmuls(fifo, in, 2.0, .{ .async = true });
  @fnegs(out, fifo, .{ .async = true, .activate = start_id });
}
comptime {
  @bind_local_task(start, start_id); @activate(start_id);
  @initialize_queue(iq, .{ .color = h2d });
  if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = d2h });
}
"""
    )
    base = layout([], params="param n: u16;", binding=".n = n")
    for sdk in ("1.4", "2.10"):
        stream = "@get_color({})" if sdk == "1.4" else "{}"
        text = base.replace(
            ".height = H }",
            f".height = H, .MEMCPYH2D_1 = {stream.format(1)}, .MEMCPYD2H_1 = {stream.format(2)} }}",
        )
        read = "sys.{}" if sdk == "1.4" else "@get_color(sys.{})"
        code = pe.replace("IN;", read.format("MEMCPYH2D_1") + ";").replace(
            "OUT;", read.format("MEMCPYD2H_1") + ";"
        )

        def host(m):
            for order in (wse.MemcpyOrder.ROW_MAJOR, wse.MemcpyOrder.COL_MAJOR):
                x = rng.standard_normal((h, w, n)).astype(np.float32)
                flat = x.ravel() if order == wse.MemcpyOrder.ROW_MAJOR else x.ravel("F")
                how = dict(WORDS, order=order, streaming=True)
                m.runner.memcpy_h2d(1, flat, 0, 0, w, h, n, **dict(how, nonblock=True))
                got = np.zeros(h * w * n, np.float32)
                m.runner.memcpy_d2h(got, 2, 0, 0, w, h, n, **how)
                np.testing.assert_array_equal(got, -2 * flat)

        m = Machine(tmp_path, arch, {"layout.csl": text, "pe.csl": code}, w, h, {"n": n}, sdk=sdk)
        for choice in CHOICES:
            m.start(**choice)
            host(m)
            m.stop()
