// SPDX-License-Identifier: Apache-2.0
// Kernels over one contiguous row. Sums and maxima run in 32 running results joined pairwise, so
// they vectorise and keep their order.

#include "weft/elements/row_ir.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

constexpr std::int64_t kLanes = 32;
using Term = std::function<Expr(const Expr&)>;

class RowBuilder {
 public:
  explicit RowBuilder(Elem e) : elem(e), type(dtype_of(e)) {}
  const Elem elem;
  const DType type;
  Program p;

  Expr lit(double v) const { return ir::make_const(v, type); }
  Expr exp(const Expr& x) const { return ir::call("exp", {x}); }
  Expr count() const { return ir::cast(type, Expr(p.n)); }

  /// out[i] = term(i) for a whole row.
  Stmt map(const ir::Buffer& out, const Term& term) const {
    return vectors("i", p.n, [&](const Expr& i) { return ir::store(out, term(i), {i}); });
  }
  /// out[i] = after(i, exp(x(i))): float64's exp is the library's and goes through whole blocks.
  Stmt map_exp(const ir::Buffer& out, const Term& x,
               const std::function<Expr(const Expr&, const Expr&)>& after) const {
    if (elem == Elem::float32) return map(out, [&](const Expr& i) { return after(i, exp(x(i))); });
    ir::Buffer block = local("block", type, kBlock);
    return loop("b", ir::floordiv(Expr(p.n) + (kBlock - 1), number(kBlock)), [&](const Expr& b) {
      Expr base = b * number(kBlock), left = ir::min(number(kBlock), Expr(p.n) - base);
      auto over = [&](const Expr& extent, const Body& body) { return loop("j", extent, body); };
      return ir::allocate(
          block,
          ir::seq(
              {over(number(kBlock), [&](const Expr& j) { return ir::store(block, lit(0), {j}); }),
               over(left, [&](const Expr& j) { return ir::store(block, x(base + j), {j}); }),
               vectors(
                   "j", number(kBlock),
                   [&](const Expr& j) { return ir::store(block, exp(ir::load(block, {j})), {j}); }),
               over(left, [&](const Expr& j) {
                 return ir::store(out, after(base + j, ir::load(block, {j})), {base + j});
               })}));
    });
  }
  /// then(combination of all term(i)).
  Stmt reduced(ReduceOp op, const Term& term, const Body& then) const {
    ir::Buffer part = local("part", type, kLanes);
    const Expr start = reduce_identity(op, elem);
    auto step = [&](const Expr& l, const Expr& value) {
      return ir::store(part, reduce_value(op, value, ir::load(part, {l})), {l});
    };
    std::vector<Stmt> all;
    all.push_back(
        vectors("l", number(kLanes), [&](const Expr& l) { return ir::store(part, start, {l}); }));
    const Expr whole = ir::floordiv(p.n, number(kLanes));
    all.push_back(loop("i", whole, [&](const Expr& i) {
      return vectors("l", number(kLanes), [&](const Expr& l) {
        return with_value("x", term(i * number(kLanes) + l),
                          [&](const Expr& x) { return step(l, x); });
      });
    }));
    const Expr done = whole * number(kLanes);
    all.push_back(loop("l", Expr(p.n) - done, [&](const Expr& l) {
      return with_value("x", term(done + l), [&](const Expr& x) { return step(l, x); });
    }));
    for (std::int64_t width = kLanes / 2; width; width /= 2) {
      all.push_back(vectors("l", number(width), [&](const Expr& l) {
        return ir::store(
            part, reduce_value(op, ir::load(part, {l}), ir::load(part, {l + number(width)})), {l});
      }));
    }
    all.push_back(with_value("total", ir::load(part, {number(0)}), then));
    return ir::allocate(part, ir::seq(std::move(all)));
  }
};

using Make = std::function<Stmt(RowBuilder&)>;

Stmt with_moments(RowBuilder& r, const ir::Buffer& x, const Expr& eps,
                  const std::function<Stmt(const Expr&, const Expr&)>& then) {
  auto at = [x](const Expr& i) { return ir::load(x, {i}); };
  return r.reduced(ReduceOp::sum, at, [&](const Expr& total) {
    return with_value("mean", ir::div(total, r.count()), [&](const Expr& mean) {
      auto square = [&](const Expr& i) { return (at(i) - mean) * (at(i) - mean); };
      return r.reduced(ReduceOp::sum, square, [&](const Expr& squares) {
        Expr variance = ir::div(squares, r.count()) + ir::cast(r.type, eps);
        return with_value("scale", ir::div(r.lit(1), ir::call("sqrt", {variance})),
                          [&](const Expr& scale) { return then(mean, scale); });
      });
    });
  });
}

Stmt body_of(RowKernel kind, RowBuilder& r, const std::vector<ir::Buffer>& in,
             const ir::Buffer& out, const Expr& eps) {
  const ir::Buffer& x = in[0];
  auto load = [&](std::size_t k, const Expr& i) { return ir::load(in[k], {i}); };
  auto at = [&](const Expr& i) { return load(0, i); };
  auto sum = [&](const Term& term, const Body& then) {
    return r.reduced(ReduceOp::sum, term, then);
  };
  switch (kind) {
    case RowKernel::softmax:
      return r.reduced(ReduceOp::max, at, [&](const Expr& m) {
        auto shifted = [&](const Expr& i) { return at(i) - m; };
        Stmt powers = r.map_exp(out, shifted, [](const Expr&, const Expr& e) { return e; });
        Stmt rest =
            sum([&](const Expr& i) { return ir::load(out, {i}); },
                [&](const Expr& total) {
                  return with_value("scale", ir::div(r.lit(1), total), [&](const Expr& scale) {
                    return r.map(out, [&](const Expr& i) { return ir::load(out, {i}) * scale; });
                  });
                });
        return ir::seq({powers, rest});
      });
    case RowKernel::log_softmax:
      return r.reduced(ReduceOp::max, at, [&](const Expr& m) {
        return sum([&](const Expr& i) { return r.exp(at(i) - m); },
                   [&](const Expr& total) {
                     return with_value("rest", ir::call("log", {total}), [&](const Expr& rest) {
                       return r.map(out, [&](const Expr& i) { return at(i) - m - rest; });
                     });
                   });
      });
    case RowKernel::logsumexp:
      return r.reduced(ReduceOp::max, at, [&](const Expr& m) {
        Stmt finite = sum([&](const Expr& i) { return r.exp(at(i) - m); },
                          [&](const Expr& total) {
                            return ir::store(out, m + ir::call("log", {total}), {number(0)});
                          });
        return ir::if_then(ir::call("isfinite", {m}), finite, ir::store(out, m, {number(0)}));
      });
    case RowKernel::softmax_gradient:
      return sum([&](const Expr& i) { return load(1, i) * at(i); },
                 [&](const Expr& s) {
                   return r.map(out, [&](const Expr& i) { return at(i) * (load(1, i) - s); });
                 });
    case RowKernel::log_softmax_gradient:
      return sum([&](const Expr& i) { return load(1, i); },
                 [&](const Expr& s) {
                   return r.map_exp(
                       out, at, [&](const Expr& i, const Expr& e) { return load(1, i) - e * s; });
                 });
    case RowKernel::layer_norm:
      return with_moments(r, x, eps, [&](const Expr& mean, const Expr& scale) {
        return r.map(
            out, [&](const Expr& i) { return (at(i) - mean) * scale * load(1, i) + load(2, i); });
      });
    case RowKernel::layer_norm_gradient:
      return with_moments(r, x, eps, [&](const Expr& mean, const Expr& scale) {
        return with_value("share", ir::div(r.lit(1), r.count()), [&](const Expr& share) {
          return sum([&](const Expr& i) { return load(1, i); },
                     [&](const Expr& g) {
                       return sum([&](const Expr& i) { return load(1, i) * (at(i) - mean); },
                                  [&](const Expr& gx) {
                                    return with_value("a", g * share, [&](const Expr& a) {
                                      return with_value(
                                          "b", gx * share * scale * scale, [&](const Expr& b) {
                                            return r.map(out, [&](const Expr& i) {
                                              return scale * (load(1, i) - a - (at(i) - mean) * b);
                                            });
                                          });
                                    });
                                  });
                     });
        });
      });
    case RowKernel::count_: break;
  }
  return nullptr;
}

Stmt plane_body(PlaneKernel kind, RowBuilder& r, const std::vector<ir::Buffer>& in,
                const ir::Buffer& out) {
  auto at = [&](const Expr& i) { return ir::load(in[0], {i}); };
  auto g = [&](const Expr& i) { return ir::load(in[1], {i}); };
  // Numbers of the plane are read once.
  std::vector<Expr> loads;
  static constexpr int counts[] = {0, 3, 1, 4};
  for (int k = 0; k < counts[static_cast<int>(kind)]; ++k)
    loads.push_back(ir::load(in.back(), {number(k)}));
  auto put = [&](int k) {
    return [&out, k](const Expr& v) { return ir::store(out, v, {number(k)}); };
  };
  auto sum = [&](const Term& term, const Body& then) {
    return r.reduced(ReduceOp::sum, term, then);
  };
  return with_values(loads, [&](const std::vector<Expr>& v) -> Stmt {
    switch (kind) {
      case PlaneKernel::moments:
        return sum(at, [&](const Expr& total) {
          return with_value("mean", ir::div(total, r.count()), [&](const Expr& mean) {
            auto square = [&](const Expr& i) { return (at(i) - mean) * (at(i) - mean); };
            return ir::seq({put(0)(mean), sum(square, put(1))});
          });
        });
      case PlaneKernel::normalise:
        return r.map(out, [&](const Expr& i) { return (at(i) - v[0]) * v[1] + v[2]; });
      case PlaneKernel::sums:
        return ir::seq(
            {sum(g, put(0)), sum([&](const Expr& i) { return g(i) * (at(i) - v[0]); }, put(1))});
      case PlaneKernel::gradient:
        return r.map(out,
                     [&](const Expr& i) { return g(i) * v[1] + ((at(i) - v[0]) * v[2] + v[3]); });
      case PlaneKernel::count_: break;
    }
    return nullptr;
  });
}

}  // namespace

std::vector<Kernel> plane_kernels(const std::vector<Elem>& elems) {
  static constexpr const char* names[] = {"moments", "normalise", "sums", "gradient"};
  static constexpr int whole[] = {1, 1, 2, 2}, numbers[] = {0, 3, 1, 4};
  std::vector<Kernel> out;
  for (Elem e : elems) {
    for (int k = 0; k < kPlaneKernels; ++k) {
      const auto kind = static_cast<PlaneKernel>(k);
      RowBuilder r(e);
      std::vector<ir::Buffer> in;
      for (int i = 0; i < whole[k]; ++i) in.push_back(r.p.buffer(cat("a", i), e));
      if (numbers[k]) in.push_back(r.p.buffer(cat("a", whole[k]), e, number(numbers[k])));
      const bool pair = kind == PlaneKernel::moments || kind == PlaneKernel::sums;
      const ir::Buffer result = r.p.buffer("out", e, pair ? number(2) : Expr(r.p.n));
      out.push_back({entry(KernelEntry::plane, k, e), cat("w_plane_", names[k], "_", name_of(e)),
                     r.p.finish(plane_body(kind, r, in, result))});
    }
  }
  return out;
}

std::vector<Kernel> row_kernels(const std::vector<Elem>& elems) {
  static constexpr const char* names[] = {
      "softmax",    "log_softmax",         "softmax_gradient", "log_softmax_gradient",
      "layer_norm", "layer_norm_gradient", "logsumexp"};
  static constexpr int operands[] = {1, 1, 2, 2, 3, 2, 1};
  std::vector<Kernel> out;
  for (Elem e : elems) {
    for (int k = 0; k < kRowKernels; ++k) {
      const auto kind = static_cast<RowKernel>(k);
      RowBuilder r(e);
      std::vector<ir::Buffer> in;
      for (int i = 0; i < operands[k]; ++i) in.push_back(r.p.buffer(cat("a", i), e));
      ir::Buffer result =
          r.p.buffer("out", e, kind == RowKernel::logsumexp ? number(1) : Expr(r.p.n));
      const bool normal = kind == RowKernel::layer_norm || kind == RowKernel::layer_norm_gradient;
      Expr eps = normal ? r.p.scalar("eps", dtypes::float64) : nullptr;
      KernelEntry at{KernelEntry::row_kernel, static_cast<std::int16_t>(k),
                     static_cast<std::int16_t>(e), 0, nullptr};
      out.push_back({at,
                     cat("w_", names[k], "_", name_of(e)),
                     r.p.finish(body_of(kind, r, in, result, eps)),
                     false,
                     {},
                     e});
    }
  }
  return out;
}

}  // namespace weft::generate
