# SPDX-License-Identifier: Apache-2.0
"""More CSL programs in the manner of the SDK's users, beside NumPy: recursion, transforms, elimination, clusters, fractals, random walks."""

import numpy as np
from csl_machine import SYS, both, everywhere, layout

rng = np.random.default_rng(1904)


@both
def test_queens_by_recursion(arch, tmp_path):
    pe = (
        SYS
        + """
var found = @zeros([1]u32); var found_p: [*]u32 = &found;
var place = @zeros([10]i16); var first = @zeros([10]u16); var first_p: [*]u16 = &first;
fn safe(row: i16, column: i16) bool {
  var r: i16 = 0;
  while (r < row) : (r += 1) {
    const d = place[r] - column;
    if (d == 0 or d == row - r or d == r - row) return false;
  }
  return true;
}
fn try_row(row: i16, n: i16) void {
  if (row == n) {
    if (found[0] == 0) { for (@range(i16, n)) |i| { first[i] = @as(u16, place[i]); } }
    found[0] += 1;
    return;
  }
  for (@range(i16, n)) |column| {
    if (!safe(row, column)) continue;
    place[row] = column;
    try_row(row + 1, n);
  }
}
fn run(n: i16) void { found[0] = 0; try_row(0, n); sys.unblock_cmd_stream(); }
comptime { @export_symbol(found_p, "found"); @export_symbol(first_p, "first"); @export_symbol(run); }
"""
    )
    exports = [("found", "[*]u32", False), ("first", "[*]u16", False), ("run", "fn(i16)void")]

    def host(m):
        for n, count in ((4, 2), (6, 4), (7, 40)):
            m.launch("run", np.int16(n))
            assert m.get("found", 1, np.uint32).item() == count
            q = m.get16("first", 10, np.uint16).ravel()[:n].astype(int)
            assert len(set(q)) == len(set(q + range(n))) == len(set(q - range(n))) == n

    everywhere(tmp_path, arch, {"layout.csl": layout(exports), "pe.csl": pe}, host)


@both
def test_a_fourier_transform_of_structs(arch, tmp_path):
    """Radix 2 in place over complex structs of the library, roots of unity at compile time by <math>, bits reversed."""
    n = 32
    pe = (
        SYS
        + """
param n: u16;
const math = @import_module("<math>"); const cx = @import_module("<complex>");
const C = cx.complex_64;
fn roots() [n / 2]C {
  var t = @constants([n / 2]C, cx.get_complex(@as(f32, 0.0), 0.0));
  for (@range(u16, n / 2)) |k| {
    const angle = -2.0 * @as(f32, math.PI) * @as(f32, k) / @as(f32, n);
    t[k] = cx.get_complex_64(math.cos(angle), math.sin(angle));
  }
  return t;
}
const root = roots();
var data = @zeros([2 * n]f32); var data_p: [*]f32 = &data;
var x = @constants([n]C, C{ .real = 0.0, .imag = 0.0 });
fn reversed(k: u16) u16 {
  var out: u16 = 0; var m = n; var v = k;
  while (m > 1) : (m >>= 1) { out = (out << 1) | (v & 1); v >>= 1; }
  return out;
}
fn butterfly(a: *C, b: *C, w: C) void {
  const t = cx.multiply_complex(b.*, w);
  b.* = cx.subtract_complex(a.*, t);
  a.* = cx.add_complex_64(a.*, t);
}
fn run() void {
  for (@range(u16, n)) |k| { x[reversed(k)] = C{ .real = data[2 * k], .imag = data[2 * k + 1] }; }
  var half: u16 = 1;
  while (half < n) : (half *= 2) {
    const stride = n / (2 * half);
    for (@range(u16, 0, n, 2 * half)) |start| {
      for (@range(u16, half)) |k| { butterfly(&x[start + k], &x[start + k + half], root[k * stride]); }
    }
  }
  for (x) |v, k| { data[2 * k] = v.real; data[2 * k + 1] = v.imag; }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(data_p, "data"); @export_symbol(run); }
"""
    )
    text = layout(
        [("data", "[*]f32", True), ("run", "fn()void")], params="param n: u16;", binding=".n = n"
    )

    def host(m):
        x = (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(np.complex64)
        m.put("data", x.view(np.float32))
        m.launch("run")
        got = m.get("data", 2 * n).ravel().view(np.complex64)
        np.testing.assert_allclose(got, np.fft.fft(x), atol=1e-4)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_elimination_with_pivots_by_descriptors_of_rows(arch, tmp_path):
    n = 7
    pe = (
        SYS
        + """
param n: u16;
const math = @import_module("<math>");
var A = @zeros([n, 2 * n]f32); var A_p: [*]f32 = @ptrcast([*]f32, &A); var spare = @zeros([2 * n]f32);
const line = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2 * n} -> A[0, i] });
const S = @get_dsd(mem1d_dsd, .{ .base_address = &spare, .extent = 2 * n });
fn row(k: u16) mem1d_dsd { return @increment_dsd_offset(line, @as(i16, k * 2 * n), f32); }
fn largest(column: u16) u16 {
  var best = column;
  for (@range(u16, column + 1, n, 1)) |i| { if (math.abs(A[i, column]) > math.abs(A[best, column])) best = i; }
  return best;
}
fn run() void {
  for (@range(u16, n)) |k| {
    const p = largest(k);
    if (p != k) { @fmovs(S, row(k)); @fmovs(row(k), row(p)); @fmovs(row(p), S); }
    @fmuls(row(k), row(k), 1.0 / A[k, k]);
    for (@range(u16, n)) |i| { if (i != k) { const f = A[i, k]; @fmacs(row(i), row(i), row(k), -f); } }
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(A_p, "A"); @export_symbol(run); }
"""
    )
    text = layout(
        [("A", "[*]f32", True), ("run", "fn()void")], params="param n: u16;", binding=".n = n"
    )

    def host(m):
        a = rng.standard_normal((n, n))
        a[0, 0] = 0
        m.put("A", np.hstack([a, np.eye(n)]).astype(np.float32))
        m.launch("run")
        got = m.get("A", 2 * n * n).reshape(n, 2 * n)[:, n:]
        np.testing.assert_allclose(got @ a, np.eye(n), atol=2e-3)

    everywhere(tmp_path, arch, {"layout.csl": text, "pe.csl": pe}, host, params={"n": n})


@both
def test_a_fractal_with_counts_and_one_point_of_each_pe(arch, tmp_path):
    w, h, cells = 3, 2, 5
    pe = (
        SYS
        + """
param cells: u16; param most: u16 = 40;
const place = @import_module("<layout>");
const Complex = struct { re: f32, im: f32 };
var counts = @zeros([cells]u32); var counts_p: [*]u32 = &counts;
inline fn square(z: Complex) Complex { return Complex{ .re = z.re * z.re - z.im * z.im, .im = 2.0 * z.re * z.im }; }
fn escape(c: Complex, limit: u16) u16 {
  var z = Complex{ .re = 0.0, .im = 0.0 };
  var k: u16 = 0;
  return blk: {
    while (k < limit) : (k += 1) {
      const s = square(z);
      z = Complex{ .re = s.re + c.re, .im = s.im + c.im };
      if (z.re * z.re + z.im * z.im > 4.0) break :blk k;
    }
    break :blk limit;
  };
}
fn run(x0: f32, y0: f32, step: f32) void {
  for (counts) |_, i| {
    const px = place.get_x_coord() * cells + @as(u16, i);
    const c = Complex{ .re = x0 + step * @as(f32, px), .im = y0 + step * @as(f32, place.get_y_coord()) };
    counts[i] = @as(u32, escape(c, most));
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(counts_p, "counts"); @export_symbol(run); }
"""
    )
    exports = [("counts", "[*]u32", False), ("run", "fn(f32,f32,f32)void")]
    text = layout(exports, params="param cells: u16;", binding=".cells = cells")

    def host(m):
        x0, y0, step = np.float32(-1.75), np.float32(0.25), np.float32(0.125)
        m.launch("run", x0, y0, step)
        want = np.zeros((h, w * cells), int)
        for j in range(h):
            for i in range(w * cells):
                zr = zi = np.float32(0)
                cr, ci = x0 + step * np.float32(i), y0 + step * np.float32(j)
                for k in range(41):
                    if k == 40:
                        break
                    zr, zi = zr * zr - zi * zi + cr, np.float32(2) * zr * zi + ci
                    if zr * zr + zi * zi > 4:
                        break
                want[j, i] = k
        got = m.get("counts", cells, np.uint32).reshape(h, w * cells)
        np.testing.assert_array_equal(got, want)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, h, {"cells": cells})


@both
def test_random_walks_of_a_generator_of_ones_own_and_their_histogram(arch, tmp_path):
    """xorshift in 32 bits, a histogram by descriptors over one element, signed arithmetic of narrow widths."""
    walks, steps = 60, 25
    pe = (
        SYS
        + """
param walks: u16; param steps: u16;
const bins: u16 = 2 * steps + 1;
var state: u32 = 0; var histogram = @zeros([bins]u16); var histogram_p: [*]u16 = &histogram; var extremes = @zeros([2]i16); var extremes_p: [*]i16 = &extremes;
const cell = @get_dsd(mem1d_dsd, .{ .base_address = &histogram, .extent = 1 });
fn next() u32 { state ^= state << 13; state ^= state >> 17; state ^= state << 5; return state; }
fn walk() i8 {
  var at: i8 = 0;
  for (@range(u16, steps)) |_| { at += if ((next() & 0x10000) != 0) @as(i8, 1) else -1; }
  return at;
}
fn run(seed: u32) void {
  state = seed;
  histogram = @zeros([bins]u16);
  extremes = [2]i16{ 32767, -32768 };
  for (@range(u16, walks)) |_| {
    const end = @as(i16, walk());
    if (end < extremes[0]) extremes[0] = end;
    if (end > extremes[1]) extremes[1] = end;
    const bin = @increment_dsd_offset(cell, end + @as(i16, steps), u16);
    @add16(bin, bin, 1);
  }
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(histogram_p, "histogram"); @export_symbol(extremes_p, "extremes"); @export_symbol(run); }
"""
    )
    exports = [
        ("histogram", "[*]u16", False),
        ("extremes", "[*]i16", False),
        ("run", "fn(u32)void"),
    ]
    text = layout(
        exports,
        params="param walks: u16; param steps: u16;",
        binding=".walks = walks, .steps = steps",
    )

    def host(m):
        seed = state = int(rng.integers(1, 2**32))
        m.launch("run", np.uint32(seed))
        ends = []
        for _ in range(walks):
            at = 0
            for _ in range(steps):
                state ^= state << 13 & 0xFFFFFFFF
                state ^= state >> 17
                state ^= state << 5 & 0xFFFFFFFF
                at += 1 if state & 0x10000 else -1
            ends.append(at)
        got = m.get16("histogram", 2 * steps + 1, np.uint16).ravel()
        np.testing.assert_array_equal(
            got, np.bincount(np.array(ends) + steps, minlength=2 * steps + 1)
        )
        assert m.get16("extremes", 2, np.int16).ravel().tolist() == [min(ends), max(ends)]

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, params={"walks": walks, "steps": steps})


@both
def test_clusters_of_points_by_sums_over_a_row(arch, tmp_path):
    """k-means: each PE assigns its points, sums and counts go to the first PE and means come back, by collectives."""
    w, n, k = 3, 10, 3
    pe = (
        SYS
        + """
param c2d STRUCT; param n: u16; param k: u16;
const mpi = @import_module("<collectives_2d/pe>", .{ .dim_params = c2d.x, .queues = [2]u16{ 2, 4 }, .dest_dsr_ids = [1]u16{1}, .src0_dsr_ids = [1]u16{1}, .src1_dsr_ids = [1]u16{1} });
var points = @zeros([n, 2]f32); var centers = @zeros([k, 2]f32); var sums = @zeros([k, 3]f32); var total = @zeros([k, 3]f32); var labels = @zeros([n]u16);
var points_p: [*]f32 = @ptrcast([*]f32, &points); var centers_p: [*]f32 = @ptrcast([*]f32, &centers); var labels_p: [*]u16 = &labels;
const id = @get_local_task_id(16);
const Phase = enum(u16) { assign, divide, received };
var phase: Phase = Phase.assign; var rounds: u16 = 0;
fn nearest(p: [*]f32) u16 {
  var best: u16 = 0; var least: f32 = 1.0e30;
  for (@range(u16, k)) |c| {
    const dx = p[0] - centers[c, 0]; const dy = p[1] - centers[c, 1];
    const d = dx * dx + dy * dy;
    if (d < least) { least = d; best = c; }
  }
  return best;
}
task advance() void {
  switch (phase) {
    Phase.assign => {
      sums = @zeros([k, 3]f32);
      for (@range(u16, n)) |i| {
        const p = @ptrcast([*]f32, &points[i, 0]);
        const c = nearest(p);
        labels[i] = c;
        sums[c, 0] += p[0]; sums[c, 1] += p[1]; sums[c, 2] += 1.0;
      }
      phase = Phase.divide;
      mpi.reduce_fadds(0, @ptrcast([*]f32, &sums), @ptrcast([*]f32, &total), 3 * k, id);
    },
    Phase.divide => {
      if (mpi.pe_id == 0) {
        for (@range(u16, k)) |c| { for (@range(u16, 2)) |j| { if (total[c, 2] > 0.0) centers[c, j] = total[c, j] / total[c, 2]; } }
      }
      phase = Phase.received;
      mpi.broadcast(0, @ptrcast([*]u32, &centers), 2 * k, id);
    },
    Phase.received => {
      rounds -= 1;
      phase = Phase.assign;
      if (rounds == 0) { sys.unblock_cmd_stream(); } else { @activate(id); }
    },
  }
}
fn run(times: u16) void { rounds = times; mpi.init(); @activate(id); }
comptime { @bind_local_task(advance, id); @export_symbol(points_p, "points"); @export_symbol(centers_p, "centers"); @export_symbol(labels_p, "labels"); @export_symbol(run); }
"""
    )
    exports = [
        ("points", "[*]f32", True),
        ("centers", "[*]f32", True),
        ("labels", "[*]u16", False),
        ("run", "fn(u16)void"),
    ]
    params = """param n: u16; param k: u16;
const c2d = @import_module("<collectives_2d/params>");"""
    binding = """.n = n, .k = k, .c2d = c2d.get_params(x, y, .{
      .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) },
      .y_colors = .{ @get_color(4), @get_color(5) }, .y_entrypoints = .{ @get_local_task_id(12), @get_local_task_id(13) } })"""
    text = layout(exports, params=params, binding=binding)

    def host(m):
        middle = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
        points = (middle[rng.integers(0, k, w * n)] + rng.standard_normal((w * n, 2))).astype(
            np.float32
        )
        centers = middle + 2
        m.put("points", points)
        m.put("centers", np.broadcast_to(centers, (1, w, k, 2)).astype(np.float32))
        m.launch("run", np.uint16(3))
        c = centers.astype(np.float64)
        for _ in range(3):
            label = ((points[:, None] - c) ** 2).sum(-1).argmin(1)
            c = np.array(
                [points[label == j].mean(0) if (label == j).any() else c[j] for j in range(k)]
            )
        np.testing.assert_array_equal(m.get16("labels", n, np.uint16).ravel(), label)
        for got in m.get("centers", 2 * k)[0]:
            np.testing.assert_allclose(got.reshape(k, 2), c, rtol=1e-4, atol=1e-4)

    files = {"layout.csl": text, "pe.csl": pe}
    everywhere(tmp_path, arch, files, host, w, 1, {"n": n, "k": k})
