// SPDX-License-Identifier: Apache-2.0
#include "weft/array/gpu/thin_product.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kJoined = 16;  // sums of a thread that are joined between two barriers
constexpr std::int64_t kFolded = 8;   // threads whose sums one of them adds up

class Kernel {
 public:
  explicit Kernel(const ThinSpec& spec) : s_(spec), t_(spec.plan), p_(spec.narrow) {}

  ir::PrimFunc build() {
    to_ = p_.buffer("out", s_.out), a_ = p_.buffer("a", s_.a), b_ = p_.buffer("b", s_.b);
    blocks_ = p_.integer("blocks"), parts_ = p_.integer("parts"), part_ = p_.integer("part");
    batches_ = p_.integer("batches"), rows_ = p_.integer("rows"), columns_ = p_.integer("columns");
    depth_ = p_.integer("depth"), step_a_ = p_.integer("step_a");
    bk_ = p_.integer("bk"), bn_ = p_.integer("bn");
    out_m_ = p_.integer("om"), out_n_ = p_.integer("on");
    out_batch_ = p_.integer("ob"), out_part_ = p_.integer("op");
    db_ = p_.integers("db", s_.rank_batch);
    batch_a_ = p_.integers("ab", s_.rank_batch), batch_b_ = p_.integers("bb", s_.rank_batch);
    const DType sum = dtype_of(s_.sum);
    count_ = (t_.along_depth ? t_.rows_each : t_.vector) * t_.columns;
    acc_ = local("acc", sum, count_);
    raw_a_ = local("raw_a", dtype_of(s_.a), t_.loads * t_.rows_each * t_.vector);
    raw_b_ = local("raw_b", dtype_of(s_.b), t_.columns * (t_.along_depth ? t_.vector : 1));
    row_ = local("row", p_.index_type, t_.rows_each);
    column_ = local("column", p_.index_type, t_.columns);
    tree_ = shared("tree", sum, {along(), std::min(kJoined, count_), across()});
    return p_.finish(p_.bound("blockIdx.x", blocks_ * parts_ * batches_,
                              [&](const Expr& block) {
                                return p_.bound("threadIdx.x", at(t_.x), [&](const Expr& tx) {
                                  return p_.bound("threadIdx.y", at(t_.y), [&](const Expr& ty) {
                                    return body(block, tx, ty);
                                  });
                                });
                              }),
                     true);
  }

 private:
  Expr at(std::int64_t v) const { return p_.at(v); }
  static Expr mod(const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); }
  std::int64_t along() const { return t_.along_depth ? t_.x : t_.y; }
  std::int64_t across() const { return t_.along_depth ? t_.y : t_.x; }

  Stmt body(const Expr& block, const Expr& tx, const Expr& ty) {
    std::vector<std::pair<ir::Var, Expr>> lets;
    auto let = [&](const char* name, const Expr& value) -> Expr {
      lets.emplace_back(p_.var(name), value);
      return lets.back().first;
    };
    const Expr group = let("group", mod(block, blocks_)),
               rest = let("rest", ir::div(block, blocks_));
    const Expr which = let("which", mod(rest, parts_)), batch = let("batch", ir::div(rest, parts_));
    lane_ = t_.along_depth ? tx : ty, line_ = t_.along_depth ? ty : tx;
    auto base = positions(batch, db_, {batch_a_, batch_b_});
    base_a_ = let("base_a", base[0]), base_b_ = let("base_b", base[1]);
    // Along the depth, begin and end count loads.
    const Expr unit = at(t_.along_depth ? t_.vector : 1);
    begin_ = let("begin", ir::div(which * part_, unit));
    end_ = let("end", ir::div(ir::min(which * part_ + part_, depth_), unit));
    std::vector<Stmt> all;
    if (t_.along_depth) {
      first_ = let("first", (group * at(t_.y) + line_) * at(t_.rows_each));
      all.push_back(p_.unrolled("r", t_.rows_each, [&](const Expr& r) {
        // Rows behind the last read the last one.
        return ir::store(row_, base_a_ + ir::min(first_ + r, rows_ - at(1)) * step_a_, {r});
      }));
    } else {
      const Expr place = let("place", group * at(t_.x) + line_);
      first_ = let("first", place * at(t_.vector));
      all.push_back(ir::store(row_, base_a_ + ir::min(place, ir::div(rows_ - at(1), at(t_.vector))),
                              {at(0)}));
    }
    all.push_back(p_.unrolled("j", t_.columns, [&](const Expr& j) {
      return ir::store(column_, base_b_ + ir::min(j, columns_ - at(1)) * bn_, {j});
    }));
    const std::int64_t pace = along();
    const Expr sweep = at(pace * t_.loads);
    const Expr whole = let("whole", ir::div(end_ - begin_, sweep));
    all.push_back(p_.unrolled("i", count_, [&](const Expr& i) {
      return ir::store(acc_, ir::make_const(0, dtype_of(s_.sum)), {i});
    }));
    all.push_back(p_.loop("q", whole, [&](const Expr& q) {
      const Expr start = begin_ + q * sweep + lane_;
      return ir::seq(
          {p_.unrolled("u", t_.loads, [&](const Expr& u) { return take(start + u * at(pace), u); }),
           p_.unrolled("u", t_.loads,
                       [&](const Expr& u) { return add(start + u * at(pace), u); })});
    }));
    all.push_back(p_.loop("r", at(t_.loads), [&](const Expr& r) {
      const Expr k = begin_ + whole * sweep + r * at(pace) + lane_;
      return ir::if_then(ir::lt(k, end_), ir::seq({take(k, at(0)), add(k, at(0))}));
    }));
    join(all);
    all.push_back(write(batch, which));
    Stmt s = ir::seq(std::move(all));
    for (const ir::Buffer& b : {acc_, raw_a_, raw_b_, row_, column_, tree_}) s = ir::allocate(b, s);
    for (std::size_t i = lets.size(); i-- > 0;) s = ir::let_stmt(lets[i].first, lets[i].second, s);
    return s;
  }

  /// `width` elements from a place that counts as many, to a place that counts likewise.
  Stmt vector(const ir::Buffer& to, const Expr& slot, const ir::Buffer& from, const Expr& place,
              std::int64_t width) const {
    if (width == 1) return ir::store(to, ir::load(from, {place}), {slot});
    return p_.loop(
        "v", at(width),
        [&](const Expr& v) {
          return ir::store(to, ir::load(from, {place * at(width) + v}), {slot * at(width) + v});
        },
        ir::ForKind::vectorized);
  }

  /// Load `u` of the matrix: of each row at `k` of the depth, or of a vector of rows.
  Stmt take(const Expr& k, const Expr& u) const {
    const Expr along = t_.along_depth ? k : k * step_a_;
    return p_.unrolled("r", t_.rows_each, [&](const Expr& r) {
      return vector(raw_a_, u * at(t_.rows_each) + r, a_, ir::load(row_, {r}) + along, t_.vector);
    });
  }

  /// The summands of load `u`.
  Stmt add(const Expr& k, const Expr& u) const {
    const std::int64_t deep = t_.along_depth ? t_.vector : 1;
    Stmt vectors = p_.unrolled("j", t_.columns, [&](const Expr& j) {
      const Expr column = ir::load(column_, {j});
      if (s_.wide_b) return vector(raw_b_, j, b_, column + k * bk_, deep);
      return p_.unrolled("v", deep, [&](const Expr& v) {
        return ir::store(raw_b_, ir::load(b_, {column + (k * at(deep) + v) * bk_}),
                         {j * at(deep) + v});
      });
    });
    auto value = [&](const ir::Buffer& raw, const Expr& i) {
      return convert_value(ir::load(raw, {i}), s_.sum);
    };
    const std::int64_t lines = t_.along_depth ? t_.rows_each : t_.vector;
    Stmt sums = p_.unrolled("r", lines, [&](const Expr& r) {
      return p_.unrolled("j", t_.columns, [&](const Expr& j) {
        return p_.unrolled("v", deep, [&](const Expr& v) {
          const Expr to = r * at(t_.columns) + j;
          const Expr from = (u * at(lines) + r) * at(deep) + v;
          return ir::store(
              acc_, ir::load(acc_, {to}) + value(raw_a_, from) * value(raw_b_, j * at(deep) + v),
              {to});
        });
      });
    });
    return ir::seq({vectors, sums});
  }

  /// Sums of the threads that share a depth, a few at a time; the first thread gets them.
  void join(std::vector<Stmt>& out) const {
    if (along() == 1) return;
    const std::int64_t count = std::min(kJoined, count_);
    auto each = [&](const Expr& thread, const Expr& i) { return ir::Exprs{thread, i, line_}; };
    for (std::int64_t from = 0; from < count_; from += count) {
      out.push_back(p_.unrolled("i", count, [&](const Expr& i) {
        return ir::store(tree_, ir::load(acc_, {at(from) + i}), each(lane_, i));
      }));
      for (std::int64_t width = along(); width > 1;) {
        const std::int64_t folded = std::min(kFolded, width);
        width /= folded;
        Stmt fold = p_.unrolled("i", count, [&](const Expr& i) {
          Expr sum = ir::load(tree_, each(lane_, i));
          for (std::int64_t f = 1; f < folded; ++f)
            sum = sum + ir::load(tree_, each(lane_ + at(f * width), i));
          return ir::store(tree_, sum, each(lane_, i));
        });
        out.push_back(ir::if_then(ir::lt(lane_, at(width)), fold));
      }
      out.push_back(p_.unrolled("i", count, [&](const Expr& i) {
        return ir::store(acc_, ir::load(tree_, each(at(0), i)), {at(from) + i});
      }));
    }
  }

  Stmt write(const Expr& batch, const Expr& which) const {
    const Expr base = which * out_part_ + batch * out_batch_;
    return p_.unrolled("i", count_, [&](const Expr& i) {
      const Expr row = first_ + ir::div(i, at(t_.columns)), j = mod(i, at(t_.columns));
      return ir::if_then(ir::logical_and(ir::eq(lane_, at(0)),
                                         ir::logical_and(ir::lt(row, rows_), ir::lt(j, columns_))),
                         ir::store(to_, convert_value(ir::load(acc_, {i}), s_.out),
                                   {base + row * out_m_ + j * out_n_}));
    });
  }

  const ThinSpec& s_;
  const ThinPlan t_;
  Builder p_;
  ir::Buffer to_, a_, b_, acc_, raw_a_, raw_b_, row_, column_, tree_;
  Expr blocks_, parts_, part_, batches_, rows_, columns_, depth_, step_a_, bk_, bn_, out_m_, out_n_,
      out_batch_, out_part_;
  std::vector<Expr> db_, batch_a_, batch_b_;
  Expr lane_, line_, base_a_, base_b_, begin_, end_, first_;
  std::int64_t count_ = 1;  // sums of a thread
};

}  // namespace

ir::PrimFunc thin_kernel(const ThinSpec& spec) { return Kernel(spec).build(); }

}  // namespace weft::device
