// SPDX-License-Identifier: Apache-2.0
// Kernels over rows that do not fit the registers of a block: a block passes over its row for each
// sum and once more to write, eight loads of a thread in flight. The later passes find the row in
// the second cache.

#include <bit>

#include "weft/array/device_grid.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kUnroll = 8;

class LongRows {
 public:
  LongRows(RowKernel kind, Elem elem, std::size_t operands, bool narrow, std::int64_t threads)
      : kind_(kind),
        elem_(elem),
        compute_(elem == Elem::float64 ? elem : Elem::float32),
        type_(dtype_of(compute_)),
        operands_(operands),
        threads_(threads),
        p_(narrow) {}

  ir::PrimFunc build() {
    result_ = p_.buffer("out", elem_);
    for (std::size_t k = 0; k < operands_; ++k) from_.push_back(p_.buffer(cat("a", k), elem_));
    Expr rows = p_.integer("rows");
    width_ = p_.integer("columns");
    tiny_ = p_.number("eps", compute_);
    x_ = local("x", type_, kUnroll), y_ = local("y", type_, kUnroll);
    keep_ = local("keep", type_, 5);
    tree_ = shared("tree", type_, {1, threads_});
    return p_.finish(p_.bound("blockIdx.x", rows, [&](const Expr& row) {
      return p_.bound("threadIdx.x", p_.at(threads_), [&](const Expr& thread) {
        thread_ = thread;
        ir::Var start = p_.var("start");
        start_ = start;
        steps();
        Stmt all = ir::seq(std::move(steps_));
        for (const ir::Buffer& b : {x_, y_, keep_, tree_}) all = ir::allocate(b, all);
        return ir::let_stmt(start, row * width_, all);
      });
    }));
  }

 private:
  static constexpr std::int64_t kTop = 0, kSum = 1, kDeviation = 2, kOther = 3, kRunning = 4;

  Expr kept(std::int64_t k) const { return ir::load(keep_, {p_.at(k)}); }
  void keep(std::int64_t k, const Expr& v) { steps_.push_back(ir::store(keep_, v, {p_.at(k)})); }
  Expr number(double v) const { return ir::make_const(v, type_); }
  /// The least finite value: minus infinity less itself would be no number.
  Expr lowest() const {
    return compute_ == Elem::float64 ? ir::make_float(-1.7976931348623157e308, type_)
                                     : ir::make_float(-3.4028234663852886e38, type_);
  }

  /// One pass: `body` says what happens to the elements x(e), y(e) at column(e).
  using Value = std::function<Expr(const Expr&)>;
  struct Chunk {
    Value x, y, column, inside;
  };
  void sweep(bool both, const std::function<Stmt(const Chunk&)>& body) {
    Expr chunks = ir::div(width_ + p_.at(threads_ * kUnroll - 1), p_.at(threads_ * kUnroll));
    steps_.push_back(p_.loop("q", chunks, [&](const Expr& q) {
      Chunk c;
      c.column = [&](const Expr& e) {
        return q * p_.at(threads_ * kUnroll) + e * p_.at(threads_) + thread_;
      };
      c.inside = [&](const Expr& e) { return ir::lt(c.column(e), width_); };
      c.x = [&](const Expr& e) { return ir::load(x_, {e}); };
      c.y = [&](const Expr& e) { return ir::load(y_, {e}); };
      std::vector<Stmt> s;
      for (std::size_t k = 0; k < (both ? 2u : 1u); ++k) {
        for (std::int64_t e = 0; e < kUnroll; ++e) {
          Expr at = start_ + ir::min(c.column(p_.at(e)), width_ - p_.at(1));
          s.push_back(ir::store(k ? y_ : x_, convert_value(ir::load(from_[k], {at}), compute_),
                                {p_.at(e)}));
        }
      }
      s.push_back(body(c));
      return ir::seq(std::move(s));
    }));
  }

  /// keep[into] of all threads as one value.
  void join(std::int64_t into, const Combine& combine) {
    steps_.push_back(join_points(p_, tree_, p_.at(0), thread_, threads_, kept(into), combine, keep_,
                                 p_.at(into)));
  }

  /// keep[into] = the sum of `value` over the row.
  void total(bool both, std::int64_t into,
             const std::function<Expr(const Chunk&, const Expr&)>& value) {
    keep(into, number(0));
    sweep(both, [&](const Chunk& c) {
      std::vector<Stmt> s;
      for (std::int64_t e = 0; e < kUnroll; ++e) {
        Expr v = ir::select(c.inside(p_.at(e)), value(c, p_.at(e)), number(0));
        s.push_back(ir::store(keep_, kept(into) + v, {p_.at(into)}));
      }
      return ir::seq(std::move(s));
    });
    join(into, [](const Expr& a, const Expr& b) { return a + b; });
  }

  void write(bool both, const std::function<Expr(const Chunk&, const Expr&)>& value) {
    sweep(both, [&](const Chunk& c) {
      // One statement: barriers between stores of one thread would be asked for otherwise.
      return p_.unrolled("e", kUnroll, [&](const Expr& e) {
        return ir::if_then(c.inside(e), ir::store(result_, convert_value(value(c, e), elem_),
                                                  {start_ + c.column(e)}));
      });
    });
  }

  /// keep[kTop] = the largest element, keep[kSum] = the sum of exp(x - largest), in one pass: a
  /// sum so far is scaled whenever a larger element comes.
  void largest_and_sum() {
    auto exp = [](const Expr& v) { return ir::call("exp", {v}); };
    Combine larger = [](const Expr& a, const Expr& b) { return reduce_value(ReduceOp::max, a, b); };
    keep(kTop, lowest());
    keep(kSum, number(0));
    sweep(false, [&](const Chunk& c) {
      std::vector<Stmt> s;
      auto set = [&](std::int64_t k, const Expr& v) {
        s.push_back(ir::store(keep_, v, {p_.at(k)}));
      };
      set(kRunning, kept(kTop));
      for (std::int64_t e = 0; e < kUnroll; ++e)
        set(kRunning,
            larger(kept(kRunning), ir::select(c.inside(p_.at(e)), c.x(p_.at(e)), lowest())));
      set(kSum, kept(kSum) * exp(kept(kTop) - kept(kRunning)));
      for (std::int64_t e = 0; e < kUnroll; ++e)
        set(kSum, kept(kSum) + ir::select(c.inside(p_.at(e)), exp(c.x(p_.at(e)) - kept(kRunning)),
                                          number(0)));
      set(kTop, kept(kRunning));
      return ir::seq(std::move(s));
    });
    keep(kRunning, kept(kTop));
    join(kTop, larger);
    keep(kSum, kept(kSum) * exp(kept(kRunning) - kept(kTop)));
    join(kSum, [](const Expr& a, const Expr& b) { return a + b; });
  }

  /// keep[kTop] = the mean, keep[kDeviation] = one over the deviation.
  void moments() {
    Expr n = ir::cast(type_, width_);
    total(false, kTop, [](const Chunk& c, const Expr& e) { return c.x(e); });
    keep(kTop, ir::div(kept(kTop), n));
    total(false, kDeviation, [&](const Chunk& c, const Expr& e) {
      return (c.x(e) - kept(kTop)) * (c.x(e) - kept(kTop));
    });
    keep(kDeviation, ir::div(number(1), ir::call("sqrt", {ir::div(kept(kDeviation), n) + tiny_})));
  }
  Expr normal(const Chunk& c, const Expr& e) const {
    return (c.x(e) - kept(kTop)) * kept(kDeviation);
  }

  void steps() {
    switch (kind_) {
      case RowKernel::softmax:
        largest_and_sum();
        keep(kSum, ir::div(number(1), kept(kSum)));
        return write(false, [&](const Chunk& c, const Expr& e) {
          return ir::call("exp", {c.x(e) - kept(kTop)}) * kept(kSum);
        });
      case RowKernel::log_softmax:
        largest_and_sum();
        keep(kSum, ir::call("log", {kept(kSum)}));
        return write(
            false, [&](const Chunk& c, const Expr& e) { return c.x(e) - kept(kTop) - kept(kSum); });
      case RowKernel::softmax_gradient:
        total(true, kSum, [](const Chunk& c, const Expr& e) { return c.x(e) * c.y(e); });
        return write(true,
                     [&](const Chunk& c, const Expr& e) { return c.x(e) * (c.y(e) - kept(kSum)); });
      case RowKernel::log_softmax_gradient:
        total(true, kSum, [](const Chunk& c, const Expr& e) { return c.y(e); });
        return write(true, [&](const Chunk& c, const Expr& e) {
          return c.y(e) - ir::call("exp", {c.x(e)}) * kept(kSum);
        });
      case RowKernel::layer_norm:
        moments();
        return write(false, [&](const Chunk& c, const Expr& e) {
          return normal(c, e) * convert_value(ir::load(from_[1], {c.column(e)}), compute_) +
                 convert_value(ir::load(from_[2], {c.column(e)}), compute_);
        });
      case RowKernel::layer_norm_gradient: {
        moments();
        total(true, kSum, [](const Chunk& c, const Expr& e) { return c.y(e); });
        total(true, kOther, [&](const Chunk& c, const Expr& e) { return c.y(e) * normal(c, e); });
        Expr n = ir::cast(type_, width_);
        return write(true, [&](const Chunk& c, const Expr& e) {
          return kept(kDeviation) *
                 (c.y(e) - ir::div(kept(kSum), n) - normal(c, e) * ir::div(kept(kOther), n));
        });
      }
      default: WEFT_CHECK(false, "row kernel ", static_cast<int>(kind_));
    }
  }

  RowKernel kind_;
  Elem elem_, compute_;
  DType type_;
  std::size_t operands_;
  std::int64_t threads_;
  Builder p_;
  ir::Buffer result_, x_, y_, keep_, tree_;
  std::vector<ir::Buffer> from_;
  Expr width_, tiny_, thread_, start_;
  std::vector<Stmt> steps_;
};

}  // namespace

void grid_long_rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                    double eps) {
  const std::int64_t columns = out.shape()[out.ndim() - 1], rows = out.size() / columns;
  const auto most = static_cast<std::uint64_t>(grid_of(out.device()).threads);
  const auto threads = static_cast<std::int64_t>(std::bit_floor(most));
  const bool narrow = fits_narrow(out.size() + threads * kUnroll);
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  Key key{5, word(kind) | word(out.elem()) << 8 | word(narrow) << 16, word(threads), 0};
  Call call(out.device());
  call.array(out);
  for (const NDArray* a : in) call.array(*a);
  call.integer(rows).integer(columns).real(eps);
  call.run(key, [&] { return LongRows(kind, out.elem(), in.size(), narrow, threads).build(); });
}

}  // namespace weft::device
