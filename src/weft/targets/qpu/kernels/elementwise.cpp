// SPDX-License-Identifier: Apache-2.0
// Kernels that walk along arrays: elementwise, reductions, window sums, softmax, convolution,
// Mandelbrot.

#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/qpu/kernels/operands.h"
#include "weft/targets/qpu/language/macros.h"

namespace weft::qpu::kernels {

namespace {
/// Visits this QPU's vectors of x[0..n) (and y): body(vx, vy, offset in bytes, elements valid).
/// Requests run one vector ahead, clamped to the last element, so nothing outside is touched.
template <typename F>
void walk(const Ptr<Float>& x, const Ptr<Float>* y, const Int& n, F body) {
  Int at = me() << 4, inc = numQPUs() << 4;
  Int lane4 = index() << 2, last = (n - 1) << 2;
  If(any(at < n))
    gather(bytes(x, min((at << 2) + lane4, last)));
    if (y) gather(bytes(*y, min((at << 2) + lane4, last)));
    While(any(at < n))
      Int next = min(((at + inc) << 2) + lane4, last);
      gather(bytes(x, next));
      if (y) gather(bytes(*y, next));
      Float vx, vy;
      receive(vx);
      if (y) receive(vy);
      body(vx, vy, at);
      at = at + inc;
    End
    Float rest;
    receive(rest);
    if (y) receive(rest);
  End
}

/// Full vectors are stored plainly, the last one exactly.
void put(const Ptr<Float>& out, const Int& at, const Int& n, FloatExpr value) {
  Float v = value;
  If(any(at + 16 <= n))
    store(v, bytes(out, at << 2));
    Else store(v, bytes(out, at << 2), n - at);
  End
}

void add_kernel(Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, Int n) {
  walk(x, &y, n, [&](Float& a, Float& b, Int& at) { put(out, at, n, a + b); });
}
void mul_kernel(Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, Int n) {
  walk(x, &y, n, [&](Float& a, Float& b, Int& at) { put(out, at, n, a * b); });
}
void saxpy_kernel(Float f, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, Int n) {
  walk(x, &y, n, [&](Float& a, Float& b, Int& at) { put(out, at, n, f * a + b); });
}

/// Partial sums of all QPUs into out[0], through out[16..].
void gather_parts(const Float& acc, const Ptr<Float>& out) {
  store(acc, out + ((me() + 1) << 4));
  barrier();
  If(any(me() == 0))
    Float total = 0;
    For(Int part = 1, part <= numQPUs(), part++)
      total = total + vload(out + (part << 4));
    End
    store(sumLanes(total), out, IntExpr(1));
  End
}
void dot_kernel(Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, Int n) {
  Float acc = 0;
  walk(x, &y, n,
       [&](Float& a, Float& b, Int& at) { acc = acc + select(at + index() < n, a * b, Float(0)); });
  gather_parts(acc, out);
}
void sum_kernel(Ptr<Float> x, Ptr<Float> out, Int n) {
  Float acc = 0;
  walk(x, nullptr, n,
       [&](Float& a, Float&, Int& at) { acc = acc + select(at + index() < n, a, Float(0)); });
  gather_parts(acc, out);
}

void window_kernel(Ptr<Float> x, Ptr<Float> out, Int n, Int window) {
  Int results = n - window + 1, lane4 = index() << 2, last = (n - 1) << 2;
  For(Int at = me() << 4, at < results, at = at + (numQPUs() << 4))
    Float acc = 0;
    Int from = (at << 2) + lane4;
    For(Int k = 0, k < window, k++)
      acc = acc + fetch(bytes(x, min(from, last)));
      from = from + 4;
    End
    put(out, at, results, acc);
  End
}

void softmax_kernel(Ptr<Float> x, Ptr<Float> out, Int rows, Int cols) {
  Int lane4 = index() << 2, last = (cols - 1) << 2;
  For(Int r = me(), r < rows, r = r + numQPUs())
    Ptr<Float> p = x + r * cols, q = out + r * cols;
    Float most = -3.0e38f;
    For(Int at = 0, at < cols, at = at + 16)
      most = max(most, fetch(bytes(p, min((at << 2) + lane4, last))));
    End
    Float peak = maxLanes(most), total = 0;
    constexpr float kLog2e = 1.44269504f;
    For(Int at = 0, at < cols, at = at + 16)
      Float e = exp2((fetch(bytes(p, min((at << 2) + lane4, last))) - peak) * kLog2e);
      total = total + select(at + index() < cols, e, Float(0));
    End
    Float scale = recipFull(sumLanes(total));
    For(Int at = 0, at < cols, at = at + 16)
      Float e = exp2((fetch(bytes(p, min((at << 2) + lane4, last))) - peak) * kLog2e);
      put(q, at, cols, e * scale);
    End
  End
}

void conv_kernel(Ptr<Float> x, Ptr<Float> weights, Ptr<Float> out, Int height, Int width) {
  Float w[9];
  for (int k = 0; k < 9; k++) w[k] = fetch(bytes(weights, IntExpr(4 * k)));
  Int lane4 = index() << 2, across = width - 2, last = (width - 1) << 2;
  For(Int r = me(), r < height - 2, r = r + numQPUs())
    Ptr<Float> p[3];
    for (int k = 0; k < 3; k++) p[k] = x + (r + k) * width;
    Ptr<Float> q = out + r * across;
    For(Int at = 0, at < across, at = at + 16)
      Float acc = 0;
      Int from = (at << 2) + lane4;
      for (int j = 0; j < 3; j++) {
        Int here = min(from + 4 * j, last);
        for (int k = 0; k < 3; k++) acc = acc + w[k * 3 + j] * fetch(bytes(p[k], here));
      }
      put(q, at, across, max(acc, Float(0)));
    End
  End
}

void mandelbrot_kernel(Ptr<Int> out, Int width, Int height, Float x0, Float y0, Float dx, Float dy,
                       Int most) {
  For(Int r = me(), r < height, r = r + numQPUs())
    Float ci = y0 + toFloat(r) * dy;
    Ptr<Int> q = out + r * width;
    For(Int at = 0, at < width, at = at + 16)
      Float cr = x0 + toFloat(at + index()) * dx, zr = 0, zi = 0;
      Int count = 0, steps = 0, inside = 1;
      While(any(inside != 0 && steps < most))
        Float rr = zr * zr, ii = zi * zi;
        Where(rr + ii > Float(4))
          inside = 0;
        End
        count = count + inside;
        zi = zr * zi * 2.0f + ci;
        zr = rr - ii + cr;
        steps = steps + 1;
      End
      store(count, q + at, width - at);
    End
  End
}

void positive(int n, const char* what) {
  if (n < 0)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat(what, " is ", n))
        .note("legal: at least 0");
}
template <typename K, typename... A>
std::int64_t run(const K& kernel, int qpus, const A&... args) {
  K k = kernel;
  k.setNumQPUs(qpus);
  k(args...);
  return k.cycles();
}
}  // namespace

std::int64_t add(const Floats& x, const Floats& y, const Floats& out, int n, int qpus) {
  positive(n, "n"), holds(x.size(), n, "x"), holds(y.size(), n, "y"), holds(out.size(), n, "out");
  static auto k = compile(add_kernel, "add");
  return run(k, qpus, &x, &y, &out, n);
}
std::int64_t mul(const Floats& x, const Floats& y, const Floats& out, int n, int qpus) {
  positive(n, "n"), holds(x.size(), n, "x"), holds(y.size(), n, "y"), holds(out.size(), n, "out");
  static auto k = compile(mul_kernel, "mul");
  return run(k, qpus, &x, &y, &out, n);
}
std::int64_t saxpy(float a, const Floats& x, const Floats& y, const Floats& out, int n, int qpus) {
  positive(n, "n"), holds(x.size(), n, "x"), holds(y.size(), n, "y"), holds(out.size(), n, "out");
  static auto k = compile(saxpy_kernel, "saxpy");
  return run(k, qpus, a, &x, &y, &out, n);
}
std::int64_t dot(const Floats& x, const Floats& y, const Floats& out, int n, int qpus) {
  positive(n, "n"), holds(x.size(), n, "x"), holds(y.size(), n, "y"),
      holds(out.size(), 16 * (qpus + 1), "out");
  static auto k = compile(dot_kernel, "dot");
  return run(k, qpus, &x, &y, &out, n);
}
std::int64_t sum(const Floats& x, const Floats& out, int n, int qpus) {
  positive(n, "n"), holds(x.size(), n, "x"), holds(out.size(), 16 * (qpus + 1), "out");
  static auto k = compile(sum_kernel, "sum");
  return run(k, qpus, &x, &out, n);
}
std::int64_t window_sum(const Floats& x, const Floats& out, int n, int window, int qpus) {
  positive(n, "n");
  if (window < 1 || window > n)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat("window is ", window))
        .note(cat("legal: 1 to ", n));
  holds(x.size(), n, "x"), holds(out.size(), n - window + 1, "out");
  static auto k = compile(window_kernel, "window_sum");
  return run(k, qpus, &x, &out, n, window);
}
std::int64_t softmax(const Floats& x, const Floats& out, int rows, int cols, int qpus) {
  positive(rows, "rows"), positive(cols, "cols");
  std::int64_t n = static_cast<std::int64_t>(rows) * cols;
  holds(x.size(), n, "x"), holds(out.size(), n, "out");
  static auto k = compile(softmax_kernel, "softmax");
  return run(k, qpus, &x, &out, rows, cols);
}
std::int64_t conv3x3_relu(const Floats& x, const Floats& weights, const Floats& out, int height,
                          int width, int qpus) {
  if (height < 3 || width < 3)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat("an image of ", height, " x ", width))
        .note("legal: at least 3 x 3");
  holds(x.size(), static_cast<std::int64_t>(height) * width, "x"),
      holds(weights.size(), 9, "weights");
  holds(out.size(), static_cast<std::int64_t>(height - 2) * (width - 2), "out");
  static auto k = compile(conv_kernel, "conv3x3_relu");
  return run(k, qpus, &x, &weights, &out, height, width);
}
std::int64_t mandelbrot(const Ints& out, int width, int height, float x0, float y0, float dx,
                        float dy, int most, int qpus) {
  positive(width, "width"), positive(height, "height"), positive(most, "most");
  holds(out.size(), static_cast<std::int64_t>(width) * height, "out");
  static auto k = compile(mandelbrot_kernel, "mandelbrot");
  return run(k, qpus, &out, width, height, x0, y0, dx, dy, most);
}

}  // namespace weft::qpu::kernels
