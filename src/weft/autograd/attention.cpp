// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/array/random.h"
#include "weft/autograd/gpu/attention.h"
#include "weft/autograd/host_attention.h"
#include "weft/base/text.h"

namespace weft {

namespace {

const Axes kLast{false, Dims{3}};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bytes of scores that are computed at once, and up to which a graph may keep all of them.
constexpr std::int64_t kTileBytes = std::int64_t{4} << 20, kSmallBytes = std::int64_t{16} << 20;

Elem wide_elem(Elem e) { return e == Elem::float64 ? e : Elem::float32; }
NDArray wide_floats(const NDArray& x) {
  return x.elem() == wide_elem(x.elem()) ? x : x.astype(wide_elem(x.elem()));
}

/// A range of heads of one batch, and of queries.
struct Part {
  std::int64_t batch = 0, batches = 1, head = 0, heads = 1, row = 0, rows = 1;
};
Part whole(const Dims& q) { return {0, q[0], 0, q[1], 0, q[2]}; }

/// x [batch, heads, n, m] of which any extent may be 1.
NDArray part_of(const NDArray& x, const Part& p) {
  NDArray out = x;
  if (x.shape()[0] > 1) out = out.slice(0, p.batch, p.batches, 1);
  if (x.shape()[1] > 1) out = out.slice(1, p.head, p.heads, 1);
  return x.shape()[2] > 1 ? out.slice(2, p.row, p.rows, 1) : out;
}

NDArray both(const NDArray& a, const NDArray& b) {
  return !a.defined() ? b : !b.defined() ? a : apply(Op::logical_and, a, b);
}

/// Which keys the queries of a part see, of four axes; undefined where all do.
NDArray seen(const Part& p, std::int64_t m, const AttentionOptions& o, const Ref<Device>& device) {
  NDArray out;
  const NDArray keys = arange(device, Elem::int64, 0, 1, m).reshape(Dims{1, 1, 1, m});
  if (o.band) {
    const NDArray ahead = apply(Op::subtract, keys,
                                arange(device, Elem::int64, static_cast<double>(p.row), 1, p.rows)
                                    .reshape(Dims{1, 1, p.rows, 1}));
    out = both(apply(Op::greater_equal, ahead, Scalar(o.low)),
               apply(Op::less_equal, ahead, Scalar(o.high)));
  }
  if (o.padding.defined())
    out = both(out, part_of(o.padding.reshape(Dims{o.padding.shape()[0], 1, 1, m}), p));
  if (o.lengths.defined())
    out = both(
        out,
        apply(Op::less, keys,
              part_of(o.lengths.astype(Elem::int64).reshape(Dims{o.lengths.size(), 1, 1, 1}), p)));
  if (o.mask.defined() && o.mask.elem() == Elem::boolean) out = both(out, part_of(o.mask, p));
  return out;
}

/// Factors of the weights of a part: 0 where one is dropped. Random numbers of a row do not depend
/// on the part.
NDArray kept(const Part& p, const Dims& q, std::int64_t m, const AttentionOptions& o, Elem elem,
             const Ref<Device>& device) {
  const std::int64_t pitch = (m + 3) / 4 * 4;
  NDArray out = NDArray::empty(device, elem, Dims{p.batches, p.heads, p.rows, m});
  const double factor = o.dropout < 1 ? 1 / (1 - o.dropout) : 0;
  const auto threshold = static_cast<std::int64_t>(std::min(o.dropout * 0x1p32, 0x1p32));
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::int64_t plane = (p.batch + b) * q[1] + p.head + h;
      const NDArray bits =
          random_bits(device, o.seed,
                      static_cast<std::uint64_t>((plane * q[2] + p.row) * pitch / 4),
                      p.rows * pitch)
              .reshape(Dims{p.rows, pitch})
              .slice(1, 0, m, 1)
              .astype(Elem::int64);
      assign(out.select(0, b).select(0, h),
             apply(Op::multiply, apply(Op::greater_equal, bits, Scalar(threshold)).astype(elem),
                   Scalar(factor)));
    }
  }
  return out;
}

/// [batch, key heads, ...] -> [batch, heads, ...] by views and at most one copy.
Tensor for_heads(const Tensor& x, std::int64_t heads) {
  const Dims s = x.shape();
  if (s[1] == heads) return x;
  const Tensor apart = reshape(x, Dims{s[0], s[1], 1, s[2], s[3]});
  return reshape(broadcast_to(apart, Dims{s[0], s[1], heads / s[1], s[2], s[3]}),
                 Dims{s[0], heads, s[2], s[3]});
}

/// The graph of operations, which keeps all weights.
Tensor composed(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const Tensor& added,
                const AttentionOptions& o) {
  const Elem elem = q_in.elem(), wide = wide_elem(elem);
  const std::int64_t heads = q_in.shape()[1], m = k_in.shape()[2];
  auto widen = [&](const Tensor& x) { return elem == wide ? x : astype(x, wide); };
  const Tensor q = widen(q_in), k = for_heads(widen(k_in), heads),
               v = for_heads(widen(v_in), heads);
  Tensor scores = matmul(q * o.scale, transpose(k, 2, 3));
  if (m == 0) {  // sums of nothing
    const Tensor out = matmul(scores, v);
    return elem == wide ? out : astype(out, elem);
  }
  if (added.defined()) scores = scores + (added.elem() == wide ? added : astype(added, wide));
  else if (o.mask.defined() && o.mask.elem() != Elem::boolean)
    scores = scores + Tensor(o.mask.elem() == wide ? o.mask : o.mask.astype(wide));
  const Part all = whole(q.shape());
  const NDArray visible = seen(all, m, o, q.device());
  const Tensor nothing(full(q.device(), wide, {}, Scalar(0.0)));
  if (visible.defined())
    scores = where(Tensor(visible), scores, Tensor(full(q.device(), wide, {}, Scalar(-kInfinity))));
  Tensor empty;
  if (visible.defined() || added.defined() || o.mask.defined()) {
    empty = Tensor(
        apply(Op::equal, reduce(ReduceOp::max, scores.data(), kLast, true), Scalar(-kInfinity)));
    scores = where(empty, nothing, scores);
  }
  Tensor weights = softmax(scores, 3);
  if (empty.defined()) weights = where(empty, nothing, weights);
  if (o.dropout > 0) weights = weights * Tensor(kept(all, q.shape(), m, o, wide, q.device()));
  const Tensor out = matmul(weights, v);
  return elem == wide ? out : astype(out, elem);
}

/// Calls visit with parts whose scores fit the budget.
template <typename Visit>
void each_part(const Dims& q, std::int64_t group, std::int64_t m, std::int64_t bytes,
               Visit&& visit) {
  if (q[0] == 0 || q[1] == 0 || q[2] == 0) return;
  const std::int64_t row_bytes = std::max<std::int64_t>(1, m * bytes);
  const std::int64_t least = std::min<std::int64_t>(q[2], 64);
  std::int64_t heads = std::clamp<std::int64_t>(kTileBytes / (least * row_bytes), 1, q[1]);
  heads = std::max(heads / group * group, group);
  const std::int64_t rows =
      std::clamp<std::int64_t>(kTileBytes / (heads * row_bytes), least, std::max(least, q[2]));
  for (std::int64_t b = 0; b < q[0]; ++b)
    for (std::int64_t h = 0; h < q[1]; h += heads)
      for (std::int64_t r = 0; r < q[2]; r += rows)
        visit(Part{b, 1, h, std::min(heads, q[1] - h), r, std::min(rows, q[2] - r)});
}

/// The keys' heads of a part, before its queries' heads of each: [key heads, group, rows, columns].
NDArray queries(const NDArray& x, const Part& p, std::int64_t group) {
  const NDArray at = x.select(0, p.batch).slice(0, p.head, p.heads, 1).slice(1, p.row, p.rows, 1);
  const Dims &s = at.shape(), &t = at.strides();
  return at.as_strided(Dims{s[0] / group, group, s[1], s[2]}, Dims{t[0] * group, t[0], t[1], t[2]},
                       at.offset());
}
NDArray keys(const NDArray& x, const Part& p, std::int64_t group) {
  return x.select(0, p.batch).slice(0, p.head / group, p.heads / group, 1).expand_dims(1);
}

struct Weights {
  NDArray all, sums;  // [key heads, group, rows, m]; [..., 1] where wanted
};
Weights weights_of(const NDArray& q, const NDArray& k, const Part& p, std::int64_t group,
                   const AttentionOptions& o, bool want_sums) {
  const std::int64_t m = k.shape()[2];
  const Dims shape{p.heads / group, group, p.rows, m};
  NDArray scores = matmul(apply(Op::multiply, wide_floats(queries(q, p, group)), Scalar(o.scale)),
                          wide_floats(keys(k, p, group)).transpose(2, 3));
  /// [1, heads, rows, m] of which extents may be 1, in the order of the scores.
  auto like = [&](const NDArray& x) {
    return x.broadcast_to(Dims{1, p.heads, p.rows, m}).contiguous().reshape(shape);
  };
  if (o.mask.defined() && o.mask.elem() != Elem::boolean)
    scores = apply(Op::add, scores, like(part_of(o.mask, p)).astype(scores.elem()));
  const NDArray visible = seen(p, m, o, q.device());
  if (visible.defined()) scores = where(like(visible), scores, Arg(-kInfinity));
  Weights out;
  NDArray empty;
  if (visible.defined() || o.mask.defined()) {
    empty = apply(Op::equal, reduce(ReduceOp::max, scores, kLast, true), Scalar(-kInfinity));
    scores = where(empty, Arg(0.0), scores);
  }
  if (want_sums) {
    out.sums = logsumexp(scores, kLast, true);
    if (empty.defined()) out.sums = where(empty, Arg(-kInfinity), out.sums);
  }
  out.all = softmax(scores, 3);
  if (empty.defined()) out.all = where(empty, Arg(0.0), out.all);
  return out;
}

AttentionResult tiled(const NDArray& q, const NDArray& k, const NDArray& v,
                      const AttentionOptions& o) {
  const Dims& s = q.shape();
  const Elem wide = wide_elem(q.elem());
  const std::int64_t group = s[1] / std::max<std::int64_t>(1, k.shape()[1]), m = k.shape()[2],
                     width = v.shape()[3];
  AttentionResult out{NDArray::empty(q.device(), q.elem(), Dims{s[0], s[1], s[2], width}),
                      NDArray::empty(q.device(), wide, Dims{s[0], s[1], s[2]})};
  if (m == 0) {
    assign(out.out, full(q.device(), q.elem(), {}, Scalar(0.0)));
    assign(out.sums, full(q.device(), wide, {}, Scalar(-kInfinity)));
    return out;
  }
  const NDArray sums = out.sums.expand_dims(3);
  each_part(s, group, m, elem_bytes(wide), [&](const Part& p) {
    Weights w = weights_of(q, k, p, group, o, true);
    assign(queries(sums, p, group), w.sums);
    if (o.dropout > 0)
      w.all = apply(Op::multiply, w.all, kept(p, s, m, o, wide, q.device()).reshape(w.all.shape()));
    assign(queries(out.out, p, group), matmul(w.all, wide_floats(keys(v, p, group))));
  });
  return out;
}

void add_to(const NDArray& sum, const NDArray& x) {
  const NDArray one = x.shape()[1] == 1 ? x : reduce(ReduceOp::sum, x, Axes{false, Dims{1}}, true);
  apply_into(Op::add, sum, sum, one);
}

std::array<NDArray, 3> tiled_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                      const NDArray& v, const AttentionOptions& o) {
  const Dims& s = q.shape();
  const Elem wide = wide_elem(q.elem());
  const std::int64_t group = s[1] / std::max<std::int64_t>(1, k.shape()[1]), m = k.shape()[2];
  const NDArray dq = NDArray::empty(q.device(), q.elem(), s),
                dk = full(k.device(), wide, k.shape(), Scalar(0.0)),
                dv = full(v.device(), wide, v.shape(), Scalar(0.0));
  if (m == 0) {
    assign(dq, full(q.device(), q.elem(), {}, Scalar(0.0)));
    return {dq, k.copy(), v.copy()};
  }
  each_part(s, group, m, elem_bytes(wide), [&](const Part& p) {
    const NDArray w = weights_of(q, k, p, group, o, false).all;
    const NDArray from = wide_floats(queries(g, p, group)), at = wide_floats(queries(q, p, group));
    NDArray change = matmul(from, wide_floats(keys(v, p, group)).transpose(2, 3)), used = w;
    if (o.dropout > 0) {
      const NDArray factors = kept(p, s, m, o, wide, q.device()).reshape(w.shape());
      change = apply(Op::multiply, change, factors), used = apply(Op::multiply, w, factors);
    }
    // Of the same products as `change`, not of the result: where one key has nearly all of the
    // weight the two cancel, and the result was rounded.
    const NDArray delta = reduce(ReduceOp::sum, apply(Op::multiply, w, change), kLast, true);
    change = apply(Op::multiply, w, apply(Op::subtract, change, delta));
    change = apply(Op::multiply, change, Scalar(o.scale));
    assign(queries(dq, p, group), matmul(change, wide_floats(keys(k, p, group))));
    add_to(keys(dk, p, group), matmul(change.transpose(2, 3), at));
    add_to(keys(dv, p, group), matmul(used.transpose(2, 3), from));
  });
  auto rounded = [&](const NDArray& x) { return x.elem() == q.elem() ? x : x.astype(q.elem()); };
  return {dq, rounded(dk), rounded(dv)};
}

bool by_programs(const NDArray& q, const NDArray& k, const NDArray& v, const AttentionOptions& o) {
  return !q.on_host() && q.size() > 0 && k.size() > 0 && v.size() > 0 &&
         device::has_attention(q, k, v, o);
}

AttentionResult forward(const NDArray& q, const NDArray& k, const NDArray& v,
                        const AttentionOptions& o, bool want_sums) {
  if (by_programs(q, k, v, o)) return device::grid_attention(q, k, v, o);
  return host::has_attention(q, k, v, o) ? host::attention(q, k, v, o, want_sums)
                                         : tiled(q, k, v, o);
}
std::array<NDArray, 3> backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                const NDArray& v, const AttentionResult& result,
                                const AttentionOptions& o) {
  if (by_programs(q, k, v, o)) return device::grid_attention_backward(g, q, k, v, result, o);
  return host::has_attention(q, k, v, o) ? host::attention_backward(g, q, k, v, o)
                                         : tiled_backward(g, q, k, v, o);
}

[[noreturn]] void refuse(const char* what, const std::string& found, const char* rule) {
  throw Error(ErrorKind::shape, cat("nn.attention.", what), found).note(rule);
}

void check(const NDArray& q, const NDArray& k, const NDArray& v, const AttentionOptions& o) {
  const Dims &a = q.shape(), &b = k.shape(), &c = v.shape();
  auto found = [&](const char* why) {
    return cat("attention of queries ", to_string(a), ", keys ", to_string(b), " and values ",
               to_string(c), ": ", why);
  };
  constexpr const char* kRule =
      "rule: (batch, heads, n, width), (batch, key heads, m, width), (batch, key heads, m, value "
      "width); the key heads divide the heads";
  if (a.size() != 4 || b.size() != 4 || c.size() != 4)
    refuse("shape", found("arrays of four axes are needed"), kRule);
  if (a[0] != b[0] || b[0] != c[0]) refuse("shape", found("the batches differ"), kRule);
  if (a[3] != b[3]) refuse("shape", found("queries and keys have different widths"), kRule);
  if (b[2] != c[2] || b[1] != c[1])
    refuse("shape", found("keys and values differ in heads or length"), kRule);
  if (b[1] != a[1] && (b[1] == 0 || a[1] % b[1] != 0))
    refuse("shape", found("the key heads do not divide the heads"), kRule);
  if (q.elem() != k.elem() || q.elem() != v.elem() || !is_real_float(q.elem()))
    throw Error(ErrorKind::dtype, "nn.attention.type",
                cat("attention of ", name_of(q.elem()), " queries, ", name_of(k.elem()),
                    " keys and ", name_of(v.elem()), " values"))
        .note("legal: one type of floats for all three")
        .help("convert them with .astype");
  check_same_device(q, k, "attention"), check_same_device(q, v, "attention");
  auto extent = [&](const NDArray& x, const Dims& want, const char* name) {
    if (x.defined() && x.shape() != want)
      refuse("shape",
             cat(name, " of shape ", to_string(x.shape()), " for queries ", to_string(a),
                 " and keys ", to_string(b)),
             "rule: padding is (batch, m), lengths (batch,)");
    if (x.defined()) check_same_device(q, x, "attention");
  };
  extent(o.padding, Dims{a[0], b[2]}, "padding");
  extent(o.lengths, Dims{a[0]}, "lengths");
}

/// The mask as a view of four full axes.
AttentionOptions prepared(const NDArray& q, const NDArray& k, const AttentionOptions& given) {
  AttentionOptions o = given;
  if (o.mask.defined()) {
    check_same_device(q, o.mask, "attention");
    const Dims full{q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
    const Dims* shapes[] = {&o.mask.shape(), &full};
    if (o.mask.ndim() > 4 || broadcast_shapes(shapes, "attention") != full)
      refuse("mask",
             cat("a mask of shape ", to_string(o.mask.shape()), " for weights of shape ",
                 to_string(full)),
             "rule: masks broadcast to (batch, heads, n, m)");
    if (o.mask.elem() != Elem::boolean && !is_real_float(o.mask.elem()))
      throw Error(ErrorKind::dtype, "nn.attention.type", cat("a mask of ", name_of(o.mask.elem())))
          .note("legal: bool, true where a key is seen, or floats to add");
    o.mask = o.mask.broadcast_to(full);
  }
  if (o.padding.defined()) o.padding = o.padding.contiguous();
  if (o.lengths.defined()) {
    if (o.lengths.elem() != Elem::int32) o.lengths = o.lengths.astype(Elem::int32);
    o.lengths = o.lengths.contiguous();
  }
  return o;
}

std::int64_t score_bytes(const NDArray& q, const NDArray& k) {
  return q.shape()[0] * q.shape()[1] * q.shape()[2] * k.shape()[2] *
         elem_bytes(wide_elem(q.elem()));
}

}  // namespace

AttentionResult attention_forward(const NDArray& q, const NDArray& k, const NDArray& v,
                                  const AttentionOptions& options, bool want_sums) {
  check(q, k, v, options);
  return forward(q, k, v, prepared(q, k, options), want_sums);
}

std::array<NDArray, 3> attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                          const NDArray& v, const AttentionResult& result,
                                          const AttentionOptions& options) {
  check(q, k, v, options);
  return backward(g, q, k, v, result, prepared(q, k, options));
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added,
                 const AttentionOptions& options) {
  check(q.data(), k.data(), v.data(), options);
  AttentionOptions o = options;
  if (added.defined()) o.mask = added.data();
  o = prepared(q.data(), k.data(), o);
  const bool programs = by_programs(q.data(), k.data(), v.data(), o);
  const bool traced = added.defined() && added.requires_grad() && grad_enabled();
  if (traced) return composed(q, k, v, added, o);
  if (!programs && score_bytes(q.data(), k.data()) <= kSmallBytes) return composed(q, k, v, {}, o);
  AttentionResult result = forward(q.data(), k.data(), v.data(), o, true);
  const NDArray sums = result.sums;
  return make_tensor(
      "attention", std::move(result.out), {q, k, v}, [o, sums, programs](const GradientCall& c) {
        if (c.g.requires_grad() || c.out.requires_grad() || c.x[0].requires_grad() ||
            c.x[1].requires_grad() || c.x[2].requires_grad()) {
          if (programs && o.dropout > 0)
            throw Error(ErrorKind::value, "nn.attention.second",
                        "the gradient of attention with dropout has none itself")
                .help("compose it of products and softmax");
          const Tensor outputs[] = {composed(c.x[0], c.x[1], c.x[2], {}, o)};
          const Tensor seeds[] = {c.g};
          return gradients(outputs, seeds, c.x, Graph::create);
        }
        const std::array<NDArray, 3> found = backward(c.g.data(), c.x[0].data(), c.x[1].data(),
                                                      c.x[2].data(), {c.out.data(), sums}, o);
        return std::vector<Tensor>{Tensor(found[0]), Tensor(found[1]), Tensor(found[2])};
      });
}

}  // namespace weft
