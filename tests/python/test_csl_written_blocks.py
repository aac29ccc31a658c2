# SPDX-License-Identifier: Apache-2.0
"""CSL programs over blocks of a grid, beside NumPy: stencils of four neighbors, cells, number types as parameters."""

import numpy as np
from csl_machine import SYS, both, everywhere, layout

rng = np.random.default_rng(43)


@both
def test_a_star_of_25_points(arch, tmp_path):
    """Columns go four hops in each direction, from PE to PE; arrays of descriptors, colors and queues by direction."""
    Z = 9
    R = 4
    pe = (
        SYS
        + """
param Z: u16; param px: u16; param py: u16; param W: u16; param H: u16;
const R: u16 = 4;
const sides = [4]direction{ EAST, WEST, NORTH, SOUTH };
fn coefficients() [5]f32 {
  var t = @zeros([5]f32);
  t[0] = -0.75;
  for (@range(u16, 1, 5, 1)) |k| { t[k] = 0.25 / @as(f32, k * k); }
  return t;
}
const coef = coefficients();
// halo: [side, distance, z]
var halo = @zeros([4, R, Z]f32);
var u = @zeros([Z + 2 * R]f32);  // padded in z
var v = @zeros([Z]f32);
var u_p: [*]f32 = &u; var v_p: [*]f32 = &v;
const U = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{Z} -> u[i + R] });
const V = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{Z} -> v[i] });
const H0 = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{Z} -> halo[0, 0, i] });
const outc = [4]color{ @get_color(px % 2), @get_color(2 + px % 2), @get_color(4 + py % 2), @get_color(6 + py % 2) };
// what comes from the east was sent west by a PE of the other parity
const inc = [4]color{ @get_color(2 + (px + 1) % 2), @get_color((px + 1) % 2), @get_color(6 + (py + 1) % 2), @get_color(4 + (py + 1) % 2) };
const oqs = [4]output_queue{ @get_output_queue(2), @get_output_queue(3), @get_output_queue(4), @get_output_queue(5) };
const iqs = [4]input_queue{ @get_input_queue(2), @get_input_queue(3), @get_input_queue(4), @get_input_queue(5) };
fn has(comptime d: direction) bool {
  if (d == EAST) return px + 1 < W;
  if (d == WEST) return px > 0;
  if (d == NORTH) return py > 0;
  return py + 1 < H;
}
const present = [4]bool{ has(EAST), has(WEST), has(NORTH), has(SOUTH) };
const outs = [4]fabout_dsd{
  @get_dsd(fabout_dsd, .{ .extent = Z, .fabric_color = outc[0], .output_queue = oqs[0] }),
  @get_dsd(fabout_dsd, .{ .extent = Z, .fabric_color = outc[1], .output_queue = oqs[1] }),
  @get_dsd(fabout_dsd, .{ .extent = Z, .fabric_color = outc[2], .output_queue = oqs[2] }),
  @get_dsd(fabout_dsd, .{ .extent = Z, .fabric_color = outc[3], .output_queue = oqs[3] }) };
const ins = [4]fabin_dsd{
  @get_dsd(fabin_dsd, .{ .extent = Z, .fabric_color = inc[0], .input_queue = iqs[0] }),
  @get_dsd(fabin_dsd, .{ .extent = Z, .fabric_color = inc[1], .input_queue = iqs[1] }),
  @get_dsd(fabin_dsd, .{ .extent = Z, .fabric_color = inc[2], .input_queue = iqs[2] }),
  @get_dsd(fabin_dsd, .{ .extent = Z, .fabric_color = inc[3], .input_queue = iqs[3] }) };
var round: u16 = 0; var pending: u16 = 0; var left: u16 = 0;
const next_id = @get_local_task_id(8); const one_id = [8]local_task_id{ @get_local_task_id(9), @get_local_task_id(10), @get_local_task_id(11), @get_local_task_id(12), @get_local_task_id(13), @get_local_task_id(14), @get_local_task_id(15), @get_local_task_id(16) };
fn steps(n: i16) void { left = @as(u16, n); round = 0; @activate(next_id); }
fn slot(comptime s: u16, r: u16) mem1d_dsd { return @increment_dsd_offset(H0, @as(i16, (s * R + r) * Z), f32); }
task next() void {
  if (round == R) { compute(); return; }
  pending = 0;
  inline for (sides) |d, s| {
    if (comptime present[s]) pending += 2;
  }
  if (pending == 0) { round = R; @activate(next_id); return; }
  inline for (sides) |d, s| {
    if (comptime present[s]) {
      // to side d goes what came from the opposite side a round ago
      const o = if (s % 2 == 0) s + 1 else s - 1;
      if (round == 0) { @fmovs(outs[s], U, .{ .async = true, .activate = one_id[s] }); }
      else if (comptime present[o]) { @fmovs(outs[s], slot(o, round - 1), .{ .async = true, .activate = one_id[s] }); }
      else { @fmovs(outs[s], zero_dsd, .{ .async = true, .activate = one_id[s] }); }
      @fmovs(slot(s, round), ins[s], .{ .async = true, .activate = one_id[s + 4] });
    }
  }
  round += 1;
}
const zero = @zeros([1]f32);
const zero_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{Z} -> zero[0] });
fn one() void { pending -= 1; if (pending == 0) @activate(next_id); }
task t0() void { one(); } task t1() void { one(); } task t2() void { one(); } task t3() void { one(); }
task t4() void { one(); } task t5() void { one(); } task t6() void { one(); } task t7() void { one(); }
fn compute() void {
  @fmuls(V, U, 3.0 * coef[0]);
  inline for (coef) |c, k| {
    if (comptime k > 0) {
      @fmacs(V, V, @increment_dsd_offset(U, k, f32), c);
      @fmacs(V, V, @increment_dsd_offset(U, -@as(i16, k), f32), c);
      for (@range(u16, 4)) |s| {
        @fmacs(V, V, @increment_dsd_offset(H0, @as(i16, (s * R + @as(u16, k) - 1) * Z), f32), c);
      }
    }
  }
  @fmovs(U, V);
  left -= 1;
  round = 0;
  if (left == 0) sys.unblock_cmd_stream() else @activate(next_id);
}
fn route(c: color, r: direction, t: direction) void { @set_local_color_config(c, .{ .routes = .{ .rx = .{ r }, .tx = .{ t } } }); }
comptime {
  @bind_local_task(next, next_id);
  @bind_local_task(t0, one_id[0]); @bind_local_task(t1, one_id[1]); @bind_local_task(t2, one_id[2]); @bind_local_task(t3, one_id[3]);
  @bind_local_task(t4, one_id[4]); @bind_local_task(t5, one_id[5]); @bind_local_task(t6, one_id[6]); @bind_local_task(t7, one_id[7]);
  for (@range(u16, 4)) |s| {
    if (present[s]) {
      route(outc[s], RAMP, sides[s]);
      route(inc[s], sides[s], RAMP);
      @initialize_queue(iqs[s], .{ .color = inc[s] });
      if (@is_arch("wse3")) { @initialize_queue(oqs[s], .{ .color = outc[s] }); }
    }
  }
  @export_symbol(u_p, "u"); @export_symbol(v_p, "v"); @export_symbol(steps);
}
"""
    )
    text = layout(
        [("u", "[*]f32", True), ("v", "[*]f32", True), ("steps", "fn(i16)void")],
        params="param Z: u16;",
        binding=".Z = Z, .px = x, .py = y, .W = W, .H = H",
    )
    W, H = 6, 5

    def host(m):
        u = np.zeros((H, W, Z + 2 * R), np.float32)
        u[:, :, R:-R] = rng.random((H, W, Z), dtype=np.float32)
        m.put("u", u)
        m.launch("steps", np.int16(2))
        c = [-0.75] + [0.25 / (k * k) for k in range(1, 5)]
        w = u[:, :, R:-R].astype(float)
        for _ in range(2):
            p = np.pad(w, R)
            q = 3 * c[0] * w
            for k in range(1, 5):
                for ax in range(3):
                    for s in (-k, k):
                        sl = [slice(R, -R)] * 3
                        sl[ax] = slice(R + s, p.shape[ax] - R + s)
                        q = q + c[k] * p[tuple(sl)]
            w = q
        np.testing.assert_allclose(m.get("v", Z), w, rtol=1e-4, atol=1e-5)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, h=H, params={"Z": Z})


@both
def test_game_of_life_by_diagonal_neighbours_in_two_steps(arch, tmp_path):
    """Blocks of cells; rows go to the sides with their corners by four-dimensional descriptors over u16, added by @add16 and decided by @map."""
    B = 6
    W, H = 3, 2
    pe = (
        SYS
        + """
param B: u16; param W: u16; param H: u16; param px: u16; param py: u16;
const P: u16 = B + 2;
var g = @zeros([P, P]u16); var g_p: [*]u16 = &g; var sum = @zeros([B, B]u16);
const ew = [2]color{ @get_color(0), @get_color(1) }; const we = [2]color{ @get_color(2), @get_color(3) }; const ns = [2]color{ @get_color(4), @get_color(5) }; const sn = [2]color{ @get_color(6), @get_color(7) };
const x = px % 2; const y = py % 2;
const to_e = ew[x]; const fr_w = ew[1 - x]; const to_w = we[x]; const fr_e = we[1 - x]; const to_s = ns[y]; const fr_n = ns[1 - y]; const to_n = sn[y]; const fr_s = sn[1 - y];
const oq = [4]output_queue{ @get_output_queue(2), @get_output_queue(3), @get_output_queue(4), @get_output_queue(5) };
const iq = [4]input_queue{ @get_input_queue(4), @get_input_queue(5), @get_input_queue(6), @get_input_queue(7) };
const alone = .{ .simd_off = true };
fn column(comptime j: u16) mem4d_dsd { return @get_dsd(mem4d_dsd, .{ .tensor_access = |i|{B} -> g[i + 1, j] }); }
fn line(comptime i: u16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .tensor_access = |j|{P} -> g[i, j] }); }
fn O(c: color, q: output_queue, comptime n: u16) fabout_dsd { return @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = q }); }
fn I(c: color, q: input_queue, comptime n: u16) fabin_dsd { return @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c, .input_queue = q }); }
const ids = [6]local_task_id{ @get_local_task_id(9), @get_local_task_id(10), @get_local_task_id(11), @get_local_task_id(12), @get_local_task_id(13), @get_local_task_id(14) };
var left: u16 = 0; var open: u16 = 0;
fn go(n: u16) void { left = n; @activate(ids[0]); }
task rows() void {
  if (left == 0) { sys.unblock_cmd_stream(); return; }
  left -= 1;
  open = 1;
  if (px + 1 < W) { open += 1; @mov16(O(to_e, oq[0], B), column(B), .{ .async = true }); @mov16(column(B + 1), I(fr_e, iq[0], B), .{ .async = true, .activate = ids[1] }); }
  if (px > 0) { open += 1; @mov16(O(to_w, oq[1], B), column(1), .{ .async = true }); @mov16(column(0), I(fr_w, iq[1], B), .{ .async = true, .activate = ids[2] }); }
  close();
}
fn close() void { open -= 1; if (open == 0) @activate(ids[3]); }
task c1() void { close(); } task c2() void { close(); }
task cols() void {
  open = 1;
  if (py + 1 < H) { open += 1; @mov16(O(to_s, oq[2], P), line(B), .{ .async = true }); @mov16(line(B + 1), I(fr_s, iq[2], P), .{ .async = true, .activate = ids[4] }); }
  if (py > 0) { open += 1; @mov16(O(to_n, oq[3], P), line(1), .{ .async = true }); @mov16(line(0), I(fr_n, iq[3], P), .{ .async = true, .activate = ids[5] }); }
  close2();
}
task c3() void { close2(); } task c4() void { close2(); }
const S = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{B, B} -> sum[i, j] });
const C = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{B, B} -> g[i + 1, j + 1] });
fn N(comptime di: u16, comptime dj: u16) mem4d_dsd { return @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{B, B} -> g[i + di, j + dj] }); }
fn rule(cell: u16, n: u16) u16 { return if (n == 3 or (n == 2 and cell == 1)) 1 else 0; }
fn close2() void {
  open -= 1; if (open != 0) return;
  @mov16(S, 0);
  inline for (.{ 0, 1, 2 }) |di| { inline for (.{ 0, 1, 2 }) |dj| { if (comptime !(di == 1 and dj == 1)) @add16(S, S, N(di, dj)); } }
  @map(rule, C, S, C);
  @activate(ids[0]);
}
fn link(c: color, out: direction, q: output_queue, on: bool) void { if (on) { @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ out } } }); if (@is_arch("wse3")) @initialize_queue(q, .{ .color = c }); } }
fn take(c: color, from: direction, q: input_queue, on: bool) void { if (on) { @set_local_color_config(c, .{ .routes = .{ .rx = .{ from }, .tx = .{ RAMP } } }); @initialize_queue(q, .{ .color = c }); } }
comptime {
  link(to_e, EAST, oq[0], px + 1 < W); link(to_w, WEST, oq[1], px > 0); link(to_s, SOUTH, oq[2], py + 1 < H); link(to_n, NORTH, oq[3], py > 0);
  take(fr_e, EAST, iq[0], px + 1 < W); take(fr_w, WEST, iq[1], px > 0); take(fr_s, SOUTH, iq[2], py + 1 < H); take(fr_n, NORTH, iq[3], py > 0);
  @bind_local_task(rows, ids[0]); @bind_local_task(c1, ids[1]); @bind_local_task(c2, ids[2]); @bind_local_task(cols, ids[3]); @bind_local_task(c3, ids[4]); @bind_local_task(c4, ids[5]);
  @export_symbol(g_p, "g"); @export_symbol(go);
}
"""
    )
    text = layout(
        [("g", "[*]u16", True), ("go", "fn(u16)void")],
        params="param B: u16;",
        binding=".B = B, .W = W, .H = H, .px = x, .py = y",
    )

    def host(m):
        world = rng.integers(0, 2, (H * B, W * B)).astype(np.uint16)
        g = np.zeros((H, W, B + 2, B + 2), np.uint16)
        g[:, :, 1:-1, 1:-1] = world.reshape(H, B, W, B).transpose(0, 2, 1, 3)
        m.put16("g", g.reshape(H, W, -1))
        m.launch("go", np.uint16(3))
        w = world.astype(int)
        for _ in range(3):
            p = np.pad(w, 1)
            s = sum(
                p[1 + i : 1 + i + w.shape[0], 1 + j : 1 + j + w.shape[1]]
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                if i or j
            )
            w = ((s == 3) | ((s == 2) & (w == 1))).astype(int)
        got = (
            m.get16("g", (B + 2) ** 2, np.uint16)
            .reshape(H, W, B + 2, B + 2)[:, :, 1:-1, 1:-1]
            .transpose(0, 2, 1, 3)
            .reshape(H * B, W * B)
        )
        np.testing.assert_array_equal(got, w)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=W, h=H, params={"B": B})


@both
def test_escape_counts_by_both_float_types(arch, tmp_path):
    """A number type as a parameter: each column of PEs iterates z^2 + c in another type; counts and values by @map with pointers."""
    n = 16
    pe = (
        SYS
        + """
param n: u16; param half: bool;
const T = if (half) f16 else f32;
const math = @import_module("<math>");
var re = @zeros([n]f32); var im = @zeros([n]f32); var cnt = @zeros([n]u16); var re_p: [*]f32 = &re; var im_p: [*]f32 = &im; var cnt_p: [*]u16 = &cnt; var stat = @zeros([2]f32); var stat_p: [*]f32 = &stat;
const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> re[i] }); const I = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> im[i] }); const C = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> cnt[i] });
const Point = struct { x: T, y: T };
fn square(p: Point) Point { return Point{ .x = p.x * p.x - p.y * p.y, .y = @as(T, 2.0) * p.x * p.y }; }
fn escape(cx: f32, cy: f32, most: u16, inside: *f32) u16 {
  var z = Point{ .x = 0.0, .y = 0.0 };
  var k: u16 = 0;
  while (k < most) : (k += 1) {
    z = square(z); z.x += @as(T, cx); z.y += @as(T, cy);
    if (z.x * z.x + z.y * z.y > @as(T, 4.0)) break;
  }
  if (k == most) inside.* += 1.0;
  return k;
}
fn go(most: u16) void { stat[0] = 0.0; @map(escape, R, I, most, &stat[0], C); stat[1] = @as(f32, cnt[0]); sys.unblock_cmd_stream(); }
comptime { @export_symbol(re_p, "re"); @export_symbol(im_p, "im"); @export_symbol(cnt_p, "cnt"); @export_symbol(stat_p, "stat"); @export_symbol(go); }
"""
    )
    text = layout(
        [
            ("re", "[*]f32", True),
            ("im", "[*]f32", True),
            ("cnt", "[*]u16", False),
            ("stat", "[*]f32", False),
            ("go", "fn(u16)void"),
        ],
        params="param n: u16;",
        binding=".n = n, .half = (x == 1)",
    )

    def host(m):
        re = rng.uniform(-2, 1, (1, 2, n)).astype(np.float32)
        im = rng.uniform(-1, 1, (1, 2, n)).astype(np.float32)
        m.put("re", re)
        m.put("im", im)
        m.launch("go", np.uint16(25))
        got = m.get16("cnt", n, np.uint16)[0]
        stat = m.get("stat", 2)[0]
        for x, T in enumerate((np.float32, np.float16)):
            cs = []
            with np.errstate(all="ignore"):
                for a, b in zip(re[0, x], im[0, x]):
                    zx = zy = T(0)
                    k = 0
                    while k < 25:
                        zx, zy = T(T(zx * zx) - T(zy * zy)), T(T(T(2) * zx) * zy)
                        zx = T(zx + T(a))
                        zy = T(zy + T(b))
                        if T(T(zx * zx) + T(zy * zy)) > 4:
                            break
                        k += 1
                    cs.append(k)
            assert got[x].tolist() == cs and stat[x, 0] == cs.count(25)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, w=2, params={"n": n})


@both
def test_wide_products_and_divisions_in_64_bits(arch, tmp_path):
    """Products of 128 bits by parts, quotients and remainders with and without a sign."""
    pe = (
        SYS
        + """
const N: u16 = 12;
var a = @zeros([2 * N]u32); var a_p: [*]u32 = &a; var r = @zeros([10 * N]u32); var r_p: [*]u32 = &r;
fn w(k: u16) u64 { return (@as(u64, a[2 * k + 1]) << 32) | @as(u64, a[2 * k]); }
fn put(k: u16, v: u64) void { r[2 * k] = @as(u32, v & 0xffffffff); r[2 * k + 1] = @as(u32, v >> 32); }
fn mulhi(x: u64, y: u64) u64 {
  const x0 = x & 0xffffffff; const x1 = x >> 32; const y0 = y & 0xffffffff; const y1 = y >> 32;
  const t = x1 * y0 + ((x0 * y0) >> 32);
  return x1 * y1 + (t >> 32) + ((x0 * y1 + (t & 0xffffffff)) >> 32);
}
fn go() void {
  for (@range(u16, N)) |k| {
    const x = w(k); const y = w((k + 1) % N) | 1;
    put(5 * k, x * y); put(5 * k + 1, x / y); put(5 * k + 2, x % y); put(5 * k + 3, mulhi(x, y));
    const sx = @bitcast(i64, x); const sy = @bitcast(i64, y);
    put(5 * k + 4, @bitcast(u64, sx / sy) ^ @bitcast(u64, sx % sy) ^ @bitcast(u64, sx >> 7) ^ (if (sx < sy) @as(u64, 5) else 9));
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(a_p, "a"); @export_symbol(r_p, "r"); @export_symbol(go); }
"""
    )
    text = layout([("a", "[*]u32", True), ("r", "[*]u32", False), ("go", "fn()void")])

    def host(m):
        a = rng.integers(0, 1 << 63, 12, dtype=np.uint64) * 2 + 1
        a[3] = 5
        a[7] = (1 << 64) - 3
        m.put("a", a.view(np.uint32).reshape(1, 1, -1))
        m.launch("go")
        got = m.get("r", 120, np.uint32).ravel().view(np.uint64).tolist()
        M = (1 << 64) - 1
        sg = lambda v: v - (1 << 64) if v >> 63 else v
        for k in range(12):
            x, y = int(a[k]), int(a[(k + 1) % 12]) | 1
            sx, sy = sg(x), sg(y)
            q = abs(sx) // abs(sy) * (1 if (sx < 0) == (sy < 0) else -1)
            rem = sx - q * sy
            assert got[5 * k : 5 * k + 5] == [
                x * y & M,
                x // y,
                x % y,
                x * y >> 64,
                (q & M) ^ (rem & M) ^ ((sx >> 7) & M) ^ (5 if sx < sy else 9),
            ], k

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host)


@both
def test_dots_and_norms_in_a_solver_with_callbacks_between_modules(arch, tmp_path):
    """Steepest descent on a line of PEs: modules call back through parameters of function and task type; ends by itself."""
    n = 6
    W = 3
    reduce = """
param left: bool; param right: bool; param px: u16; param done: fn (f32) void; param queues: [2]u16; param ids: [2]local_task_id;
const c = [4]color{ @get_color(0), @get_color(1), @get_color(2), @get_color(3) };
const up_in = c[(px + 1) % 2]; const up_out = c[px % 2]; const down_in = c[2 + (px + 1) % 2]; const down_out = c[2 + px % 2];
const iq0 = @get_input_queue(queues[0]); const iq1 = @get_input_queue(queues[1]); const oq0 = @get_output_queue(2); const oq1 = @get_output_queue(3);
var part = @zeros([1]f32); var all = @zeros([1]f32);
const P = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> part[i] }); const A = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> all[i] });
const ui = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = up_in, .input_queue = iq0 });
const uo = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = up_out, .output_queue = oq0 });
const di = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = down_in, .input_queue = iq1 });
const do = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = down_out, .output_queue = oq1 });
// sums go east, the total comes back west
fn sum(x: f32) void {
  part[0] = x;
  if (left and right) { all[0] = x; @activate(ids[1]); return; }
  if (left) { @fmovs(uo, P, .{ .async = true }); @fmovs(A, di, .{ .async = true, .activate = ids[1] }); }
  else if (right) { @fadds(A, P, ui, .{ .async = true, .activate = ids[0] }); }
  else { @fadds(uo, P, ui, .{ .async = true }); @fmovs(A, di, .{ .async = true, .activate = ids[0] }); }
}
task back() void { @fmovs(do, A, .{ .async = true, .activate = ids[1] }); }
task total() void { done(all[0]); }
comptime {
  @bind_local_task(total, ids[1]);
  if (!left) { @bind_local_task(back, ids[0]);
    @set_local_color_config(up_in, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } }); @set_local_color_config(down_out, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
    @initialize_queue(iq0, .{ .color = up_in }); if (@is_arch("wse3")) @initialize_queue(oq1, .{ .color = down_out }); }
  if (!right) { @set_local_color_config(up_out, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); @set_local_color_config(down_in, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
    @initialize_queue(iq1, .{ .color = down_in }); if (@is_arch("wse3")) @initialize_queue(oq0, .{ .color = up_out }); }
}
"""
    pe = (
        SYS
        + """
param n: u16; param px: u16; param W: u16;
const math = @import_module("<math>");
const State = enum(u16) { rr, rAr, again };
var state: State = State.rr;
const net = @import_module("reduce.csl", .{ .left = px == 0, .right = px + 1 == W, .px = px, .done = arrived, .queues = [2]u16{ 4, 5 }, .ids = [2]local_task_id{ @get_local_task_id(12), @get_local_task_id(13) } });
var d = @zeros([n]f32); var b = @zeros([n]f32); var x = @zeros([n]f32); var r = @zeros([n]f32); var q = @zeros([n]f32); var info = @zeros([2]f32);
var d_p: [*]f32 = &d; var b_p: [*]f32 = &b; var x_p: [*]f32 = &x; var info_p: [*]f32 = &info;
const D = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> d[i] }); const B = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> b[i] }); const X = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> x[i] }); const R = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> r[i] }); const Q = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> q[i] });
var rr: f32 = 0.0; var eps: f32 = 0.0; var most: u16 = 0; var its: u16 = 0;
fn dot(u: mem1d_dsd, v: mem1d_dsd) f32 { var s: f32 = 0.0; @map(mac, u, v, &s); return s; }
fn mac(u: f32, v: f32, s: *f32) void { s.* += u * v; }
fn solve(tolerance: f32, limit: u16) void { eps = tolerance; most = limit; its = 0; @fmovs(X, 0.0); @fmovs(R, B); state = State.rr; net.sum(dot(R, R)); }
fn arrived(v: f32) void {
  switch (state) {
    State.rr => { rr = v; if (math.sqrt(rr) < eps or its == most) { info[0] = math.sqrt(rr); info[1] = @as(f32, its); sys.unblock_cmd_stream(); return; }
      @fmuls(Q, D, R); state = State.rAr; net.sum(dot(R, Q)); },
    State.rAr => { const alpha = rr / v; @fmacs(X, X, R, alpha); @fmacs(R, R, Q, -alpha); its += 1; state = State.rr; net.sum(dot(R, R)); },
    else => @assert(false),
  }
}
comptime { @export_symbol(d_p, "d"); @export_symbol(b_p, "b"); @export_symbol(x_p, "x"); @export_symbol(info_p, "info"); @export_symbol(solve); }
"""
    )
    text = layout(
        [
            ("d", "[*]f32", True),
            ("b", "[*]f32", True),
            ("x", "[*]f32", False),
            ("info", "[*]f32", False),
            ("solve", "fn(f32, u16)void"),
        ],
        params="param n: u16;",
        binding=".n = n, .px = x, .W = W",
    )

    def host(m):
        d = rng.uniform(1, 3, (1, W, n)).astype(np.float32)
        b = rng.uniform(-1, 1, (1, W, n)).astype(np.float32)
        m.put("d", d)
        m.put("b", b)
        m.launch("solve", np.float32(1e-4), np.uint16(60))
        np.testing.assert_allclose(m.get("x", n), b / d, atol=1e-3)
        info = m.get("info", 2)[0]
        assert (
            (info[:, 0] < 1e-4).all() and (info[:, 1] == info[0, 1]).all() and 3 < info[0, 1] < 60
        )

    everywhere(
        tmp_path,
        arch,
        {"layout.csl": text, "pe.csl": pe, "reduce.csl": reduce},
        host,
        w=W,
        params={"n": n},
    )
