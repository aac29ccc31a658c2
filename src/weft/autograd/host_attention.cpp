// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "weft/array/ops.h"
#include "weft/host/gemm.h"
#include "weft/host/kernels.h"
#include "weft/runtime/pool.h"

namespace weft::host {

namespace {

using I = std::int64_t;

/// Bytes of the scores of a block, and most of its queries.
constexpr I kBlockBytes = I{512} << 10, kLeastRows = 16, kMostRows = 256;
/// Products of one share of a thread, at least.
constexpr I kShare = 65536;
/// Rows of weights have whole vectors, so that none ends with elements one by one.
constexpr I whole_vectors(I n) { return (n + 15) / 16 * 16; }

template <typename T>
constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
template <typename T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// Elements of one head: where they begin, and their steps.
template <typename T>
struct Plane {
  T* at;
  I row, column;
};
template <typename T>
Plane<T> plane(const NDArray& x, I batch, I head) {
  const Dims& s = x.strides();
  return {reinterpret_cast<T*>(x.host()) + batch * s[0] + head * s[1], s[2], s[3]};
}

template <typename T>
void multiply(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, I b_col, T* c,
              I ldc) {
  if (m == 1 && gemv<T>(n, k, b, b_col, b_row, a, a_col, c)) return;
  gemm<T>(m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc, false);
}

/// Weights below the smallest normal number become zero while this lives. Exponentials of what no
/// query sees would go through such numbers, of which each costs the processor 100 clocks and more.
class WithoutSubnormals {
 public:
#if defined(__SSE2__)
  WithoutSubnormals() { _mm_setcsr(before_ | 0x8000u); }
  ~WithoutSubnormals() { _mm_setcsr(before_); }
  WithoutSubnormals(const WithoutSubnormals&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
#endif
};

/// Memory of a thread that stays: fresh pages would cost more than what is written to them.
template <typename T>
T* scratch(int which, I count) {
  static thread_local std::vector<T> kept[3];
  std::vector<T>& v = kept[which];
  if (v.size() < static_cast<std::size_t>(count)) v.resize(static_cast<std::size_t>(count));
  return v.data();
}

NDArray as(const NDArray& x, Elem e) { return x.elem() == e ? x : x.astype(e); }

/// f(j, mask's element) for so many elements, of a step that the compiler knows where it is one.
template <typename M, typename F>
void each_seen(const M* at, I step, I count, const F& f) {
  if (step == 1) {
    for (I j = 0; j < count; ++j) f(j, at[j]);
  } else {
    for (I j = 0; j < count; ++j) f(j, at[j * step]);
  }
}

/// The type without axes that only repeat, so that a mask for all heads is converted once.
NDArray of_type(const NDArray& mask, Elem e) {
  if (mask.elem() == e) return mask;
  NDArray small = mask;
  for (int i = 0; i < mask.ndim(); ++i)
    if (mask.strides()[i] == 0 && mask.shape()[i] > 1) small = small.slice(i, 0, 1, 1);
  return small.astype(e).broadcast_to(mask.shape());
}

/// One call: extents, options, and the weights of blocks.
template <typename T>
struct Attention {
  I batches, heads, n, m, width, values, group;
  NDArray q, k, v;
  const AttentionOptions& o;
  NDArray added, allowed, padding, lengths;
  RowFn softmax, gradient, logsumexp;

  Attention(const NDArray& q_in, const NDArray& k_in, const NDArray& v_in,
            const AttentionOptions& options)
      : q(as(q_in, kElem<T>)), k(as(k_in, kElem<T>)), v(as(v_in, kElem<T>)), o(options) {
    batches = q.shape()[0], heads = q.shape()[1], n = q.shape()[2], width = q.shape()[3];
    m = k.shape()[2], values = v.shape()[3], group = heads / k.shape()[1];
    if (o.mask.defined()) {
      if (o.mask.elem() == Elem::boolean) allowed = o.mask;
      else added = of_type(o.mask, kElem<T>);
    }
    padding = o.padding, lengths = o.lengths;
    const auto row = [](RowKernel r) {
      return kernels().row[static_cast<int>(r)][static_cast<int>(kElem<T>)];
    };
    softmax = row(RowKernel::softmax), gradient = row(RowKernel::softmax_gradient);
    logsumexp = row(RowKernel::logsumexp);
  }

  /// Whether a row may see nothing although its band has keys.
  bool masked() const { return added.defined() || allowed.defined() || padding.defined(); }
  I block_rows() const {
    const I most =
        std::clamp<I>(kBlockBytes / static_cast<I>(m * sizeof(T)), kLeastRows, kMostRows);
    const I blocks = (n + most - 1) / most;
    return (n + blocks - 1) / blocks;
  }
  /// Keys [first, last) that the queries [row, row + rows) of a batch may see.
  std::pair<I, I> span(I batch, I row, I rows) const {
    I first = 0, last = m;
    if (lengths.defined())
      last = std::clamp<I>(reinterpret_cast<const std::int32_t*>(lengths.host())[batch], 0, m);
    if (o.band) {
      first = std::clamp<I>(row + o.low, 0, m);
      last = std::min(last, std::clamp<I>(row + rows - 1 + o.high + 1, 0, m));
    }
    return {first, std::max(first, last)};
  }

  /// Adds masks to the scores of one query from key `first` on; -inf where it sees nothing.
  void mask(I batch, I head, I row, I first, I count, T* s) const {
    if (added.defined()) {
      const Plane<const T> p = plane<const T>(added, batch, head);
      each_seen(p.at + row * p.row + first * p.column, p.column, count,
                [s](I j, T x) { s[j] += x; });
    }
    if (allowed.defined()) {
      const Plane<const bool> p = plane<const bool>(allowed, batch, head);
      each_seen(p.at + row * p.row + first * p.column, p.column, count,
                [s](I j, bool seen) { s[j] = seen ? s[j] : kNothing<T>; });
    }
    if (padding.defined()) {
      each_seen(reinterpret_cast<const bool*>(padding.host()) + batch * m + first, 1, count,
                [s](I j, bool seen) { s[j] = seen ? s[j] : kNothing<T>; });
    }
  }

  struct Block {
    I row, rows, first, count;  // queries, keys
    I pitch;                    // from row to row of the weights
    T* scaled;                  // [rows, width]: queries by the scale
    T* weights;                 // [rows, count]
  };
  /// The weights of a block; `sums` steps from query to query.
  Block block(I batch, I head, I row, I rows, T* sums, I step) const {
    const auto [first, last] = span(batch, row, rows);
    Block b{row,
            rows,
            first,
            last - first,
            whole_vectors(last - first),
            scratch<T>(0, rows * width),
            scratch<T>(1, rows * whole_vectors(last - first))};
    const auto scale = static_cast<T>(o.scale);
    const Plane<const T> from = plane<const T>(q, batch, head);
    for (I i = 0; i < rows; ++i) {
      const T* at = from.at + (row + i) * from.row;
      T* to = b.scaled + i * width;
      for (I j = 0; j < width; ++j) to[j] = at[j * from.column] * scale;
    }
    if (b.count == 0) {
      for (I i = 0; sums && i < rows; ++i) sums[(row + i) * step] = kNothing<T>;
      return b;
    }
    const Plane<const T> key = plane<const T>(k, batch, head / group);
    multiply<T>(rows, b.count, width, b.scaled, width, 1, key.at + first * key.row, key.column,
                key.row, b.weights, b.pitch);
    [[maybe_unused]] const WithoutSubnormals fast;
    for (I i = 0; i < rows; ++i) {
      const auto [from_key, to_key] = span(batch, row + i, 1);
      T* const s = b.weights + i * b.pitch;
      const I seen_from = std::min(from_key - first, b.count),
              seen_to = std::clamp(to_key - first, seen_from, b.count), seen = seen_to - seen_from;
      const I stop = std::min(b.pitch, seen_from + whole_vectors(seen));
      std::fill(s, s + seen_from, T(0));
      std::fill(s + seen_to, s + stop, kNothing<T>);
      std::fill(s + stop, s + b.pitch, T(0));
      T* const sum = sums ? sums + (row + i) * step : nullptr;
      weigh(batch, head, row + i, first + seen_from, seen, stop - seen_from, s + seen_from, sum);
    }
    return b;
  }
  /// Scores of one query to weights; behind them -inf up to `whole` elements.
  void weigh(I batch, I head, I row, I first, I count, I whole, T* s, T* sum) const {
    if (masked()) mask(batch, head, row, first, count, s);
    const void* in[1] = {s};
    T total = kNothing<T>;
    if (count > 0 && (sum || masked())) logsumexp(whole, in, &total, 0);
    if (sum) *sum = total;
    if (count == 0 || (masked() && total == kNothing<T>)) std::fill(s, s + whole, T(0));
    else softmax(whole, in, s, 0);
  }

  void forward(const NDArray& out, const NDArray& sums) const {
    const I rows = block_rows(), blocks = (n + rows - 1) / rows;
    const Plane<T> none{nullptr, 0, 0};
    each(batches * heads * blocks, rows, [&](I at) {
      const I number = at % blocks, head = at / blocks % heads, batch = at / blocks / heads;
      const Plane<T> s = sums.defined() ? plane<T>(sums, batch, head) : none;
      const I here = std::min(rows, n - number * rows);
      const Block b = block(batch, head, number * rows, here, s.at, s.row);
      const Plane<T> to = plane<T>(out, batch, head);
      T* const c = to.at + b.row * to.row;
      if (b.count == 0) {
        for (I i = 0; i < here; ++i) std::fill(c + i * to.row, c + i * to.row + values, T(0));
        return;
      }
      const Plane<const T> from = plane<const T>(v, batch, head / group);
      multiply<T>(here, values, b.count, b.weights, b.pitch, 1, from.at + b.first * from.row,
                  from.row, from.column, c, to.row);
    });
  }

  /// One share is a head of keys with the heads of queries that it serves.
  void backward(const NDArray& g, const NDArray& dq, const NDArray& dk, const NDArray& dv) const {
    const I rows = block_rows(), served = heads / group;
    each(batches * served, n * group, [&](I at) {
      const I batch = at / served, head = at % served;
      const Plane<T> to_k = plane<T>(dk, batch, head), to_v = plane<T>(dv, batch, head);
      for (I j = 0; j < m; ++j) {
        std::fill(to_k.at + j * to_k.row, to_k.at + j * to_k.row + width, T(0));
        std::fill(to_v.at + j * to_v.row, to_v.at + j * to_v.row + values, T(0));
      }
      for (I h = head * group; h < (head + 1) * group; ++h)
        for (I row = 0; row < n; row += rows)
          step_back(batch, h, row, std::min(rows, n - row), g, plane<T>(dq, batch, h), to_k, to_v);
    });
  }
  void step_back(I batch, I head, I row, I rows, const NDArray& g, const Plane<T>& to_q,
                 const Plane<T>& to_k, const Plane<T>& to_v) const {
    const Block b = block(batch, head, row, rows, nullptr, 0);
    T* const dq = to_q.at + row * to_q.row;
    if (b.count == 0) {
      for (I i = 0; i < rows; ++i) std::fill(dq + i * to_q.row, dq + i * to_q.row + width, T(0));
      return;
    }
    const Plane<const T> from = plane<const T>(g, batch, head);
    const T* const change = from.at + row * from.row;
    const Plane<const T> key = plane<const T>(k, batch, head / group),
                         value = plane<const T>(v, batch, head / group);
    gemm<T>(b.count, values, rows, b.weights, 1, b.pitch, change, from.row, from.column,
            to_v.at + b.first * to_v.row, to_v.row, true);
    T* const weighed = scratch<T>(2, rows * b.pitch);
    multiply<T>(rows, b.count, values, change, from.row, from.column,
                value.at + b.first * value.row, value.column, value.row, weighed, b.pitch);
    // Of the same products, not of the result: where one key has nearly all of the weight the two
    // cancel, and the result was rounded.
    for (I i = 0; i < rows; ++i) {
      T *const w = b.weights + i * b.pitch, *const by = weighed + i * b.pitch;
      std::fill(by + b.count, by + b.pitch, T(0));
      const void* in[2] = {w, by};
      gradient(b.pitch, in, w, 0);
    }
    gemm<T>(b.count, width, rows, b.weights, 1, b.pitch, b.scaled, width, 1,
            to_k.at + b.first * to_k.row, to_k.row, true);
    multiply<T>(rows, width, b.count, b.weights, b.pitch, 1, key.at + b.first * key.row, key.row,
                key.column, dq, to_q.row);
    const auto scale = static_cast<T>(o.scale);
    for (I i = 0; i < rows; ++i)
      for (I j = 0; j < width; ++j) dq[i * to_q.row + j] *= scale;
  }

 private:
  template <typename F>
  void each(I count, I rows, const F& one) const {
    const I work = std::max<I>(1, rows * m * (width + values));
    runtime::Pool::shared().parallel_for(count, std::max<I>(1, kShare / work), [&](I at, I end) {
      for (; at < end; ++at) one(at);
    });
  }
};

/// [batch, heads, n, width] over memory in the order [batch, n, heads, width].
NDArray heads_inside(const NDArray& like, Elem e, const Dims& shape) {
  return NDArray::empty(like.device(), e, Dims{shape[0], shape[2], shape[1], shape[3]})
      .transpose(1, 2);
}

template <typename F>
auto with_floats(Elem e, const F& fn) {
  return e == Elem::float64 ? fn(double{}) : fn(float{});
}

}  // namespace

bool has_attention(const NDArray& q, const NDArray& k, const NDArray& v,
                   const AttentionOptions& o) {
  return q.on_host() && o.dropout == 0 && q.size() > 0 && k.size() > 0 && v.size() > 0;
}

AttentionResult attention(const NDArray& q, const NDArray& k, const NDArray& v,
                          const AttentionOptions& o, bool want_sums) {
  const Dims& s = q.shape();
  return with_floats(q.elem(), [&]<typename T>(T) {
    const Attention<T> of(q, k, v, o);
    AttentionResult r{heads_inside(q, kElem<T>, Dims{s[0], s[1], s[2], v.shape()[3]}), {}};
    if (want_sums) r.sums = NDArray::empty(q.device(), kElem<T>, Dims{s[0], s[1], s[2]});
    of.forward(r.out, want_sums ? r.sums.expand_dims(3) : NDArray());
    r.out = as(r.out, q.elem());
    return r;
  });
}

std::array<NDArray, 3> attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                          const NDArray& v, const AttentionOptions& o) {
  return with_floats(q.elem(), [&]<typename T>(T) {
    const Attention<T> of(q, k, v, o);
    const NDArray dq = heads_inside(q, kElem<T>, q.shape()),
                  dk = heads_inside(k, kElem<T>, k.shape()),
                  dv = heads_inside(v, kElem<T>, v.shape());
    of.backward(as(g, kElem<T>), dq, dk, dv);
    return std::array<NDArray, 3>{as(dq, q.elem()), as(dk, q.elem()), as(dv, q.elem())};
  });
}

}  // namespace weft::host
