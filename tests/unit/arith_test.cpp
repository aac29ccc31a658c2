// SPDX-License-Identifier: Apache-2.0
// The affine engine against brute force: every answer is checked on every point of small domains.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/arith/strided.h"
#include "weft/arith/sum.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {
namespace {

using namespace ir;

using Point = std::unordered_map<const VarNode*, std::int64_t>;

/// An evaluator of its own: shares nothing with folding or the simplifier.
std::int64_t value_of(const Expr& e, const Point& p) {
  if (const auto* i = as<IntImmNode>(e)) return i->value;
  if (const auto* v = as<VarNode>(e)) return p.at(v);
  if (const auto* n = as<NotNode>(e)) return !value_of(n->a, p);
  if (const auto* s = as<SelectNode>(e))
    return value_of(s->condition, p) ? value_of(s->a, p) : value_of(s->b, p);
  if (const auto* c = as<CallNode>(e); c && c->op == "bitwise_xor")
    return value_of(c->args[0], p) ^ value_of(c->args[1], p);
  const auto* b = as<BinaryNode>(e);
  if (!b) throw Error(ErrorKind::internal, "test", "unexpected expression");
  std::int64_t x = value_of(b->a, p), y = value_of(b->b, p);
  auto fd = [](std::int64_t n, std::int64_t d) {
    std::int64_t q = n / d;
    return n % d && (n % d < 0) != (d < 0) ? q - 1 : q;
  };
  switch (e->kind) {
    case ExprKind::add: return x + y;
    case ExprKind::sub: return x - y;
    case ExprKind::mul: return x * y;
    case ExprKind::div: return x / y;
    case ExprKind::mod: return x % y;
    case ExprKind::floordiv: return fd(x, y);
    case ExprKind::floormod: return x - fd(x, y) * y;
    case ExprKind::min: return std::min(x, y);
    case ExprKind::max: return std::max(x, y);
    case ExprKind::eq: return x == y;
    case ExprKind::ne: return x != y;
    case ExprKind::lt: return x < y;
    case ExprKind::le: return x <= y;
    case ExprKind::gt: return x > y;
    case ExprKind::ge: return x >= y;
    case ExprKind::and_: return x && y;
    case ExprKind::or_: return x || y;
    default: throw Error(ErrorKind::internal, "test", "unexpected kind");
  }
}

struct Domain {
  std::vector<Var> vars;
  std::vector<std::int64_t> lows, extents;
  template <typename F>
  void each(const F& f) const {
    Point p;
    std::function<void(std::size_t)> go = [&](std::size_t i) {
      if (i == vars.size()) return f(p);
      for (std::int64_t v = lows[i]; v < lows[i] + extents[i]; ++v) {
        p[vars[i].get()] = v;
        go(i + 1);
      }
    };
    go(0);
  }
};

class Random {
 public:
  explicit Random(unsigned seed) : rng_(seed) {}
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_() % static_cast<std::uint64_t>(high - low + 1));
  }
  Domain domain() {
    Domain d;
    for (const char* name : {"i", "j", "k"}) {
      d.vars.push_back(make_var(name));
      d.lows.push_back(number(0, 3) == 0 ? number(-3, 3) : 0);
      d.extents.push_back(number(1, 9));
    }
    return d;
  }
  Expr index(const Domain& d, int depth) {
    std::int64_t kind = depth <= 0 ? number(0, 2) : number(0, 12);
    auto sub = [&] { return index(d, depth - 1); };
    switch (kind) {
      case 0: return make_int(number(-5, 20));
      case 1:
      case 2: return d.vars[static_cast<std::size_t>(number(0, 2))];
      case 3:
      case 4: return sub() + sub();
      case 5: return sub() - sub();
      case 6: return sub() * number(-3, 9);
      case 7:
      case 8: return floordiv(sub(), make_int(number(1, 12)));
      case 9:
      case 10: return floormod(sub(), make_int(number(1, 12)));
      case 11: return call("bitwise_xor", {sub(), sub()});
      default: return number(0, 1) ? min(sub(), sub()) : max(sub(), sub());
    }
  }
  Expr condition(const Domain& d, int depth) {
    std::int64_t kind = depth <= 0 ? number(0, 5) : number(0, 8);
    Expr a = index(d, 2), b = index(d, 1);
    switch (kind) {
      case 0: return lt(a, b);
      case 1: return le(a, b);
      case 2: return gt(a, b);
      case 3: return ge(a, b);
      case 4: return eq(a, b);
      case 5: return ne(a, b);
      case 6: return logical_and(condition(d, depth - 1), condition(d, depth - 1));
      case 7: return logical_or(condition(d, depth - 1), condition(d, depth - 1));
      default: return logical_not(condition(d, depth - 1));
    }
  }

 private:
  std::mt19937_64 rng_;
};

void bind(Analyzer& a, const Domain& d) {
  for (std::size_t i = 0; i < d.vars.size(); ++i)
    a.bind(d.vars[i], Range{make_int(d.lows[i]), make_int(d.extents[i])});
}

TEST(Analyzer, answers_hold_on_every_point_of_random_domains) {
  int decided = 0, shorter = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Domain d = random.domain();
    Analyzer analyzer;
    bind(analyzer, d);
    Expr e = random.index(d, 4), c = random.condition(d, 2), assumed = random.condition(d, 1);
    Expr simple = analyzer.simplify(e), simple_c = analyzer.simplify(c);
    Bounds bounds = analyzer.bounds(e);
    Modular modular = analyzer.modular(e);
    bool proved = analyzer.prove(c);
    Expr under, under_c;
    Bounds under_bounds;
    {
      Analyzer::Constraint scope(analyzer, assumed);
      under = analyzer.simplify(e);
      under_c = analyzer.simplify(c);
      under_bounds = analyzer.bounds(e);
    }
    EXPECT_TRUE(same_expr(analyzer.simplify(e), simple));  // the constraint is gone
    decided += simple_c->kind == ExprKind::int_imm;
    shorter += !same_expr(simple, e);
    bool good = true;
    d.each([&](const Point& p) {
      if (!good) return;
      std::int64_t v = value_of(e, p);
      good = value_of(simple, p) == v && v >= bounds.min && v <= bounds.max &&
             value_of(simple_c, p) == value_of(c, p) && (!proved || value_of(c, p)) &&
             (modular.coeff == 0 ? v == modular.base
                                 : floor_mod(v - modular.base, modular.coeff) == 0);
      if (good && value_of(assumed, p)) {
        good = value_of(under, p) == v && value_of(under_c, p) == value_of(c, p) &&
               v >= under_bounds.min && v <= under_bounds.max;
      }
    });
    ASSERT_TRUE(good) << "seed " << seed;
  }
  EXPECT_GT(decided, 200);
  EXPECT_GT(shorter, 500);
}

TEST(Analyzer, split_and_fuse_indices_come_back_to_the_loop) {
  Analyzer a;
  Var i0 = make_var("i0"), i1 = make_var("i1"), i2 = make_var("i2"), f = make_var("f");
  a.bind(i0, Range{make_int(0), make_int(16)});
  a.bind(i1, Range{make_int(0), make_int(8)});
  a.bind(i2, Range{make_int(0), make_int(4)});
  a.bind(f, Range{make_int(0), make_int(512)});
  Expr i = i0 * 32 + i1 * 4 + i2;
  auto is = [&](const Expr& e, const Expr& want) { return same_expr(a.simplify(e), want); };
  EXPECT_TRUE(is(floordiv(i, make_int(32)), i0));
  EXPECT_TRUE(is(floormod(i, make_int(4)), i2));
  EXPECT_TRUE(is(floormod(floordiv(i, make_int(4)), make_int(8)), i1));
  EXPECT_TRUE(is(floordiv(i, make_int(64)), floordiv(i0, make_int(2))));
  EXPECT_TRUE(is(floordiv(f, make_int(8)) * 8 + floormod(f, make_int(8)), f));
  EXPECT_TRUE(is(floordiv(f, make_int(32)) * 32 +
                     floormod(floordiv(f, make_int(4)), make_int(8)) * 4 + floormod(f, make_int(4)),
                 f));
  EXPECT_TRUE(is(lt(i, make_int(512)), make_bool(true)));
  EXPECT_TRUE(is(lt(i, make_int(256)), lt(i0, make_int(8))));
  EXPECT_TRUE(is(i - i0 * 32 - i2, i1 * 4));
}

TEST(Analyzer, digits_are_joined_only_where_they_fit) {
  Var x = make_var("x");
  for (std::int64_t c = 2; c <= 4; ++c) {
    for (std::int64_t k = 1; k <= 13; ++k) {
      for (std::int64_t m : {0, 3}) {  // 0: the leading digit, 3: one in the middle
        Expr high = floordiv(x, make_int(c));
        if (m) high = floormod(high, make_int(m));
        Expr e = high * make_int(k) + floormod(x, make_int(c)), s = simplify(e);
        for (std::int64_t v = -9; v <= 40; ++v) {
          Point p{{x.get(), v}};
          ASSERT_EQ(value_of(s, p), value_of(e, p))
              << "x = " << v << ", c = " << c << ", k = " << k;
        }
      }
    }
  }
}

TEST(Analyzer, choices_by_known_conditions) {
  Analyzer analyzer;
  const Var i = make_var("i"), x = make_var("x"), y = make_var("y");
  analyzer.bind(i, {make_int(0), make_int(8)});
  const Expr yes = lt(i, make_int(8)), no = lt(i, make_int(0));
  // A remainder inside is dropped although the sum keeps its terms and coefficients.
  const Expr inside = floormod(floormod(Expr(x), make_int(8)) + Expr(y), make_int(4));
  EXPECT_TRUE(same_expr(analyzer.simplify(inside),
                        analyzer.simplify(floormod(Expr(x) + Expr(y), make_int(4)))));
  EXPECT_TRUE(same_expr(analyzer.simplify(select(yes, x, y)), x));
  EXPECT_TRUE(same_expr(analyzer.simplify(select(no, x, y)), y));
  EXPECT_TRUE(same_expr(analyzer.simplify(if_then_else(yes, x, y)), x));
  EXPECT_TRUE(same_expr(analyzer.simplify(if_then_else(no, x, y)), y));
}

TEST(Analyzer, bounds_beyond_64_bits_are_unknown) {
  Analyzer analyzer;
  const std::int64_t most = std::int64_t{1} << 40;
  const Var up = make_var("up"), down = make_var("down");
  analyzer.bind(up, {make_int(1), make_int(most)});
  analyzer.bind(down, {make_int(-most), make_int(most)});
  EXPECT_EQ(analyzer.bounds(up * up).max, Bounds::kMax);
  EXPECT_EQ(analyzer.bounds(up * up).min, 1);
  EXPECT_EQ(analyzer.bounds(up * down).min, Bounds::kMin);
}

TEST(Analyzer, values_wrap_and_indices_do_not) {
  Analyzer analyzer;
  const Buffer data = make_buffer("A", dtypes::int32, {make_int(4)});
  const Expr x = load(data, {make_int(0)}), one = make_int(1, dtypes::int32);
  const Var i = make_var("i", dtypes::int32);
  analyzer.bind(i, {make_int(0, dtypes::int32), make_int(8, dtypes::int32)});
  const Expr grows = gt(x + one, x);
  EXPECT_TRUE(is_const_int_value(analyzer.simplify(grows), 1));         // an index
  EXPECT_FALSE(is_const_int_value(analyzer.simplify_value(grows), 1));  // a value
  EXPECT_TRUE(is_const_int_value(analyzer.simplify_value(gt(i + one, i)), 1));
  EXPECT_EQ(analyzer.value_bounds(max(x, one) + one).min, std::numeric_limits<std::int32_t>::min());
  // Bounds prove that a sum of loop variables leaves the type.
  const Expr zero = make_int(0, dtypes::int32);
  const Expr large = i + make_int(std::numeric_limits<std::int32_t>::max() - 2, dtypes::int32);
  EXPECT_TRUE(same_expr(analyzer.simplify(max(large, zero)), analyzer.simplify(large)));
  EXPECT_FALSE(same_expr(analyzer.simplify_value(max(large, zero)), analyzer.simplify(large)));
  EXPECT_EQ(analyzer.value_bounds(large).min, std::numeric_limits<std::int32_t>::min());
  // Ranges prove that this sum stays inside.
  const Expr small = floormod(x, make_int(16, dtypes::int32));
  EXPECT_TRUE(same_expr(analyzer.simplify_value(small + one - one), small));
  const Var held = make_var("held", dtypes::int32);
  EXPECT_TRUE(is_const_int_value(analyzer.simplify_value(gt(held + one, held)), 1));
  analyzer.hold_data(held);
  EXPECT_FALSE(is_const_int_value(analyzer.simplify_value(gt(held + one, held)), 1));
}

TEST(Analyzer, symbolic_extents) {
  Analyzer a;
  Var n = make_var("n"), m = make_var("m"), i = make_var("i"), j = make_var("j");
  a.bind(n, Range{make_int(1), make_int(1 << 20)});
  a.bind(m, Range{make_int(1), make_int(1 << 20)});
  a.bind(i, Range{make_int(0), n});
  a.bind(j, Range{make_int(0), m});
  EXPECT_TRUE(a.prove(lt(i, n)));
  EXPECT_TRUE(a.prove(le(i + 1, n)));
  EXPECT_FALSE(a.prove(lt(i + 1, n)));
  EXPECT_TRUE(a.prove(ge(n - i, make_int(1))));
  EXPECT_TRUE(same_expr(a.simplify(floordiv(i * Expr(m) + Expr(j), m)), i));
  EXPECT_TRUE(same_expr(a.simplify(floormod(i * Expr(m) + Expr(j), m)), j));
  Var o = make_var("o"), q = make_var("q");
  a.bind(o, Range{make_int(0), floordiv(Expr(n) + 7, make_int(8))});
  a.bind(q, Range{make_int(0), make_int(8)});
  Analyzer::Constraint scope(a, lt(o * 8 + Expr(q), n));
  EXPECT_TRUE(a.prove(lt(o * 8 + Expr(q), n)));
  EXPECT_TRUE(a.prove(le(o * 8 + Expr(q) + 1, n)));
}

/// What a statement stores, in order: buffer names are numbers, indices and values their points.
void run_stores(const Stmt& s, Point& p, std::vector<std::array<std::int64_t, 2>>& out) {
  if (const auto* t = as<StoreNode>(s)) {
    out.push_back({value_of(t->indices[0], p), value_of(t->value, p)});
  } else if (const auto* q = as<SeqNode>(s)) {
    for (const Stmt& child : q->stmts) run_stores(child, p, out);
  } else if (const auto* f = as<IfNode>(s)) {
    if (value_of(f->condition, p)) run_stores(f->then_case, p, out);
    else if (f->else_case) run_stores(f->else_case, p, out);
  } else if (const auto* l = as<ForNode>(s)) {
    const std::int64_t first = value_of(l->min, p), count = value_of(l->extent, p);
    for (std::int64_t k = 0; k < count; ++k) {
      p[l->var.get()] = first + k;
      run_stores(l->body, p, out);
    }
  }
}

/// Loops over symbolic extents that may be 0 or negative, guards on them inside and after.
class Nests {
 public:
  explicit Nests(unsigned seed) : random_(seed) {}
  Stmt statement(int depth) {
    const std::int64_t kind = depth <= 0 ? 0 : random_.number(0, 6);
    if (kind <= 1) return store(out_, cast(dtypes::int64, value()), {cast(dtypes::int64, value())});
    if (kind == 2) return if_then(guard(), statement(depth - 1), statement(depth - 1));
    if (kind == 3) return seq({statement(depth - 1), if_then(guard(), statement(depth - 1))});
    Var v = make_var("v", dtypes::int64);
    const Expr low = make_int(random_.number(-2, 2)), count = value();
    known_.push_back(v);
    Stmt body = statement(depth - 1);
    known_.pop_back();
    Stmt loop = make_for(v, low, count, body);
    return kind == 4 ? loop : seq({loop, if_then(guard(), statement(depth - 1))});
  }
  const Var n = make_var("n", dtypes::int64), m = make_var("m", dtypes::int64);

 private:
  Expr value() {
    auto one = [&]() -> Expr {
      const std::int64_t k = random_.number(0, 3);
      if (k == 0) return n;
      if (k == 1) return m;
      if (k == 2 && !known_.empty())
        return known_[static_cast<std::size_t>(
            random_.number(0, static_cast<std::int64_t>(known_.size()) - 1))];
      return make_int(random_.number(-1, 4));
    };
    switch (random_.number(0, 5)) {
      case 0: return one() + one();
      case 1: return one() - one();
      case 2: return max(one(), one());
      case 3: return floordiv(one() + 3, make_int(4));
      default: return one();
    }
  }
  Expr guard() {
    const Expr a = value(), b = value();
    switch (random_.number(0, 3)) {
      case 0: return lt(a, b);
      case 1: return ge(a, b);
      case 2: return gt(a, make_int(0));
      default: return le(a, b);
    }
  }
  Random random_;
  std::vector<Var> known_;
  Buffer out_ = make_buffer("out", dtypes::int64, {make_int(1)});
};

TEST(Statements, simplified_nests_of_symbolic_extents_store_the_same) {
  int changed = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Nests nests(seed + 5000000);
    const Stmt before = nests.statement(4), after = simplify(before);
    changed += before == after ? 0 : 1;
    for (std::int64_t n = -2; n <= 3; ++n) {
      for (std::int64_t m = -2; m <= 3; ++m) {
        Point p{{nests.n.get(), n}, {nests.m.get(), m}}, q = p;
        std::vector<std::array<std::int64_t, 2>> want, got;
        run_stores(before, p, want);
        run_stores(after, q, got);
        ASSERT_EQ(got, want) << "seed " << seed << ", n = " << n << ", m = " << m;
      }
    }
  }
  EXPECT_GT(changed, 1000);
}

TEST(Analyzer, a_loop_that_runs_is_known_inside_only) {
  Analyzer a;
  const Var n = make_var("n"), i = make_var("i");
  {
    const Analyzer::Scope inside(a);
    a.bind(i, Range{make_int(0), n});
    EXPECT_TRUE(a.prove(ge(n, make_int(1))));
    EXPECT_TRUE(a.prove(lt(i, n)));
  }
  EXPECT_FALSE(a.prove(ge(n, make_int(1))));
  EXPECT_FALSE(a.prove(ge(n, make_int(0))));  // a scalar parameter may be negative
  EXPECT_EQ(a.bounds(n).min, Bounds::kMin);
}

/// Inside a loop over a symbolic extent all that is proved holds on every point of it; after it,
/// all that is proved holds for every extent, also for those of which the loop makes nothing.
TEST(Analyzer, proofs_inside_and_after_symbolic_loops_hold) {
  int inside_proofs = 0, after_proofs = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Random random(seed + 6000000);
    Domain d;
    for (const char* name : {"n", "i", "j"}) d.vars.push_back(make_var(name));
    const auto &n = d.vars[0], &i = d.vars[1], &j = d.vars[2];
    const std::int64_t low = random.number(-2, 2), lose = random.number(-1, 2);
    const Expr inner = random.number(0, 1) ? n - i : n - lose;
    const Expr inside = random.condition(d, 1);
    Expr after = random.condition(d, 1);
    after = substitute(after, {{i.get(), n + 1}, {j.get(), n - 2}});
    Analyzer a;
    bool holds = false;
    {
      const Analyzer::Scope scope(a);
      a.bind(i, Range{make_int(low), n});
      const Analyzer::Scope deeper(a);
      a.bind(j, Range{make_int(0), inner});
      holds = a.prove(inside);
    }
    inside_proofs += holds ? 1 : 0;
    const bool later = a.prove(after);
    after_proofs += later ? 1 : 0;
    for (std::int64_t size = -4; size <= 6; ++size) {
      Point p{{n.get(), size}};
      ASSERT_TRUE(!later || value_of(after, p)) << "seed " << seed << ", n = " << size;
      for (std::int64_t x = low; holds && x < low + size; ++x) {
        p[i.get()] = x;
        const std::int64_t count = value_of(inner, p);
        for (std::int64_t y = 0; y < count; ++y) {
          p[j.get()] = y;
          ASSERT_TRUE(value_of(inside, p))
              << "seed " << seed << ", n = " << size << ", i = " << x << ", j = " << y;
        }
      }
    }
  }
  EXPECT_GT(inside_proofs, 300);
  EXPECT_GT(after_proofs, 100);
}

TEST(Region, relaxation_covers_exactly) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 5000);
    Domain d = random.domain();
    Analyzer analyzer;
    bind(analyzer, d);
    Expr e = random.index(d, 3);
    DomainMap inner{{d.vars[1].get(), {make_int(d.lows[1]), make_int(d.extents[1])}},
                    {d.vars[2].get(), {make_int(d.lows[2]), make_int(d.extents[2])}}};
    SymbolicInterval range = symbolic_interval(e, inner, analyzer);
    bool good = true;
    d.each([&](const Point& p) {
      std::int64_t v = value_of(e, p);
      if (range.min && v < value_of(range.min, p)) good = false;
      if (range.max && v > value_of(range.max, p)) good = false;
    });
    ASSERT_TRUE(good) << "seed " << seed;
  }
  // The window sum: 128 threads read i0*128 + i1 + {0, 1, 2}.
  Analyzer a;
  Var i0 = make_var("i0"), i1 = make_var("i1"), w = make_var("w");
  a.bind(i0, Range{make_int(0), make_int(8)});
  a.bind(i1, Range{make_int(0), make_int(128)});
  a.bind(w, Range{make_int(0), make_int(3)});
  DomainMap inner{{i1.get(), {make_int(0), make_int(128)}}, {w.get(), {make_int(0), make_int(3)}}};
  auto box = relax_region({{i0 * 128 + Expr(i1) + Expr(w), make_int(1)}}, inner, a);
  EXPECT_TRUE(same_expr(box[0].min, i0 * 128));
  EXPECT_TRUE(is_const_int_value(box[0].extent, 130));
}

TEST(Linear, coefficients) {
  Var i = make_var("i"), j = make_var("j"), n = make_var("n");
  auto linear = detect_linear(i * 3 + (Expr(j) - i) * 2 + Expr(n) * 5 + 7, {i, j});
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->coeffs, (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(same_expr(linear->base, Expr(n) * 5 + 7));
  EXPECT_FALSE(detect_linear(floordiv(i, make_int(2)), {i}));
  EXPECT_FALSE(detect_linear(i * Expr(j), {i, j}));
}

}  // namespace
}  // namespace weft::arith

namespace weft::arith {
namespace {

struct Loops {
  std::vector<IterVar> list;
  Var add(const char* name, std::int64_t extent) {
    Var v = make_var(name);
    list.push_back({v, Range{make_int(0), make_int(extent)}, IterKind::spatial});
    return v;
  }
  Domain domain() const {
    Domain d;
    for (const IterVar& l : list) {
      std::int64_t n = 0;
      is_const_int(l.dom.extent, &n);
      d.vars.push_back(l.var), d.lows.push_back(0), d.extents.push_back(n);
    }
    return d;
  }
};

TEST(IterMap, accepts_and_refuses_the_classic_cases) {
  Analyzer a;
  auto level = MapLevel::surjective;
  Expr yes = make_bool(true);
  {
    Loops l;
    Var i = l.add("i", 4), j = l.add("j", 16);
    EXPECT_TRUE(detect_iter_map({i * 16 + Expr(j)}, l.list, yes, MapLevel::bijective, a).ok());
    EXPECT_TRUE(detect_iter_map({i, j}, l.list, yes, MapLevel::bijective, a).ok());
    EXPECT_FALSE(detect_iter_map({i + Expr(j)}, l.list, yes, level, a).ok());  // overlap
    EXPECT_FALSE(detect_iter_map({i, i}, l.list, yes, level, a).ok());   // the same digit twice
    EXPECT_FALSE(detect_iter_map({i * 2}, l.list, yes, level, a).ok());  // gaps
    EXPECT_FALSE(detect_iter_map({i * Expr(i)}, l.list, yes, level, a).ok());
    EXPECT_FALSE(detect_iter_map({i}, l.list, yes, MapLevel::bijective, a).ok());  // j is not used
    EXPECT_TRUE(detect_iter_map({i}, l.list, yes, level, a).ok());
    EXPECT_TRUE(detect_iter_map({floordiv(j, make_int(4)), floormod(j, make_int(4)), i}, l.list,
                                yes, MapLevel::bijective, a)
                    .ok());
  }
  {
    Loops l;
    Var f = l.add("f", 512);
    EXPECT_TRUE(detect_iter_map(
                    {floordiv(f, make_int(128)), floordiv(floormod(f, make_int(128)), make_int(4)),
                     floormod(f, make_int(4))},
                    l.list, yes, MapLevel::bijective, a)
                    .ok());
    EXPECT_FALSE(detect_iter_map({floordiv(f, make_int(128)), floormod(f, make_int(256))}, l.list,
                                 yes, level, a)
                     .ok());
  }
  {
    Loops l;  // a split that does not divide: 10 = 2 * 8 under i*8 + j < 10
    Var i = l.add("i", 2), j = l.add("j", 8);
    Expr v = i * 8 + Expr(j);
    auto map = detect_iter_map({v}, l.list, lt(v, make_int(10)), level, a);
    ASSERT_TRUE(map.ok()) << map.error;
    EXPECT_TRUE(is_const_int_value(map.indices[0].splits[0].extent, 10));
  }
  {
    Loops l;  // one digit of f in an index by itself, the other below a bound: 40 columns by 16
    Var f = l.add("f", 36), j = l.add("j", 16);
    Expr column = floormod(f, make_int(3)) * 16 + Expr(j);
    for (bool swapped : {false, true}) {
      Exprs indices{floordiv(f, make_int(3)), column};
      if (swapped) std::swap(indices[0], indices[1]);
      auto map = detect_iter_map(indices, l.list, lt(column, make_int(40)), MapLevel::bijective, a);
      EXPECT_TRUE(map.ok()) << map.error;
    }
    Exprs one{column};  // the other digit of f is used nowhere
    EXPECT_FALSE(
        detect_iter_map(one, l.list, lt(column, make_int(40)), MapLevel::bijective, a).ok());
  }
}

TEST(IterMap, inverse_gives_back_every_loop) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 77);
    Loops l;
    // Random digits in a random order, fused and cut again.
    std::vector<Var> vars;
    for (int i = 0; i < 3; ++i)
      vars.push_back(l.add(std::array<const char*, 3>{"a", "b", "c"}[static_cast<std::size_t>(i)],
                           random.number(1, 6)));
    std::int64_t ea = 1, eb = 1, ec = 1;
    is_const_int(l.list[0].dom.extent, &ea), is_const_int(l.list[1].dom.extent, &eb),
        is_const_int(l.list[2].dom.extent, &ec);
    Expr fused = (vars[0] * eb + Expr(vars[1])) * ec + Expr(vars[2]);
    std::vector<Expr> indices;
    switch (random.number(0, 3)) {
      case 0: indices = {fused}; break;
      case 1: indices = {vars[2], vars[0] * eb + Expr(vars[1])}; break;
      case 2: indices = {floordiv(fused, make_int(ec)), floormod(fused, make_int(ec))}; break;
      default: {
        std::int64_t total = ea * eb * ec, cut = 1;
        for (std::int64_t k = 2; k <= total; ++k) {
          if (total % k == 0 && random.number(0, 2) == 0) cut = k;
        }
        indices = {floordiv(fused, make_int(cut)), floormod(fused, make_int(cut))};
      }
    }
    Analyzer a;
    auto map = detect_iter_map(indices, l.list, make_bool(true), MapLevel::bijective, a);
    ASSERT_TRUE(map.ok()) << map.error;
    std::vector<Expr> outputs;
    std::vector<Var> out_vars;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      out_vars.push_back(make_var("o"));
      outputs.push_back(out_vars.back());
    }
    auto inverse = inverse_iter_map(map.indices, outputs);
    l.domain().each([&](const Point& p) {
      Point q = p;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        q[out_vars[i].get()] = value_of(indices[i], p);
        EXPECT_EQ(value_of(to_expr(map.indices[i]), p), value_of(indices[i], p));
      }
      for (const auto& [v, e] : inverse) EXPECT_EQ(value_of(e, q), p.at(v.get()));
    });
    if (HasFailure()) return;
  }
}

TEST(IterMap, claims_hold_by_counting) {
  int accepted = 0, refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Random random(seed + 900000);
    Loops l;
    l.add("i", random.number(1, 6)), l.add("j", random.number(1, 6)),
        l.add("k", random.number(1, 4));
    Domain d = l.domain();
    std::vector<Expr> indices;
    for (std::int64_t n = random.number(1, 2); n--;) indices.push_back(random.index(d, 2));
    Analyzer a;
    auto map = detect_iter_map(indices, l.list, make_bool(true), MapLevel::bijective, a);
    if (!map.ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    std::set<std::vector<std::int64_t>> images;
    std::size_t points = 0;
    d.each([&](const Point& p) {
      std::vector<std::int64_t> image;
      for (const Expr& e : indices) image.push_back(value_of(e, p));
      images.insert(image);
      ++points;
    });
    ASSERT_EQ(images.size(), points) << "seed " << seed;  // injective
    std::size_t box = 1;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      std::set<std::int64_t> values;
      for (const auto& image : images) values.insert(image[i]);
      ASSERT_EQ(static_cast<std::int64_t>(values.size()), *values.rbegin() - *values.begin() + 1)
          << "seed " << seed;
      box *= values.size();
    }
    ASSERT_EQ(box, points) << "seed " << seed;  // onto a box
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 500);
}

/// Addresses in the order in which counters of a strided walk visit them.
std::vector<std::int64_t> visited(const Strided& walk, std::int64_t base) {
  std::vector<std::int64_t> out = {base};
  for (const StridedDim& d : walk.dims) {  // from the outermost: each place becomes `extent` places
    std::vector<std::int64_t> next;
    for (std::int64_t at : out) {
      for (std::int64_t k = 0; k < d.extent; ++k) next.push_back(at + k * d.stride);
    }
    out = std::move(next);
  }
  return out;
}

TEST(Strided, known_walks) {
  Loops l;
  const Var i = l.add("i", 8), j = l.add("j", 16);
  const Var n = make_var("n");
  Analyzer a;
  using Dims = std::vector<StridedDim>;
  auto dims = [&](const Expr& e) {
    auto walk = as_strided(e, l.list, a);
    return walk ? walk->dims : Dims{{-1, -1}};
  };
  EXPECT_EQ(dims(i * 16 + j), (Dims{{128, 1}}));  // contiguous
  EXPECT_EQ(dims(i * 64 + j), (Dims{{8, 64}, {16, 1}}));
  EXPECT_EQ(dims(i * 64 + floordiv(j, make_int(4)) * 16 + floormod(j, make_int(4))),
            (Dims{{32, 16}, {4, 1}}));
  EXPECT_EQ(dims(i + j), (Dims{{8, 1}, {16, 1}}));  // a window: places are visited again
  EXPECT_EQ(dims(floormod(j, make_int(4))), (Dims{{32, 0}, {4, 1}}));
  EXPECT_EQ(dims(make_int(7) - i), (Dims{{8, -1}, {16, 0}}));
  EXPECT_EQ(dims(make_int(5)), (Dims{{128, 0}}));
  EXPECT_EQ(dims(i * j), (Dims{{-1, -1}}));
  EXPECT_EQ(dims(i * n + j), (Dims{{-1, -1}}));                 // a stride that is not known
  EXPECT_EQ(dims(floordiv(j, make_int(3))), (Dims{{-1, -1}}));  // the last round is not whole
  EXPECT_EQ(dims(floordiv(i + j, make_int(2))), (Dims{{-1, -1}}));
  auto based = as_strided(j + n * 4 + 3, l.list, a);
  ASSERT_TRUE(based);
  EXPECT_TRUE(a.prove_equal(based->base, n * 4 + 3));
}

TEST(Strided, walks_visit_every_place_in_order) {
  int accepted = 0, refused = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Random random(seed + 1200000);
    Loops l;
    l.add("i", random.number(1, 12)), l.add("j", random.number(1, 12)),
        l.add("k", random.number(1, 6));
    if (random.number(0, 2) == 0) {  // loops that do not begin at 0
      for (IterVar& v : l.list) v.dom.min = make_int(random.number(-3, 5));
    }
    Expr index = make_int(random.number(-9, 9));
    for (std::int64_t n = random.number(1, 4); n--;) {
      const Var& v = l.list[static_cast<std::size_t>(random.number(0, 2))].var;
      Expr term = v;
      if (random.number(0, 1)) term = floordiv(term, make_int(random.number(1, 4)));
      if (random.number(0, 1)) term = floormod(term, make_int(random.number(1, 4)));
      index = index + term * random.number(-5, 20);
    }
    Analyzer a;
    auto walk = as_strided(index, l.list, a);
    ++(walk ? accepted : refused);
    if (!walk) continue;
    std::vector<std::int64_t> want;
    auto low = [&](std::size_t d) { return as<IntImmNode>(l.list[d].dom.min)->value; };
    auto high = [&](std::size_t d) { return low(d) + as<IntImmNode>(l.list[d].dom.extent)->value; };
    for (std::int64_t i = low(0); i < high(0); ++i) {
      for (std::int64_t j = low(1); j < high(1); ++j) {
        for (std::int64_t k = low(2); k < high(2); ++k)
          want.push_back(value_of(
              index,
              {{l.list[0].var.get(), i}, {l.list[1].var.get(), j}, {l.list[2].var.get(), k}}));
      }
    }
    ASSERT_EQ(visited(*walk, value_of(walk->base, {})), want) << "seed " << seed;
    for (std::size_t d = 1; d < walk->dims.size(); ++d)
      EXPECT_NE(walk->dims[d - 1].stride, walk->dims[d].stride * walk->dims[d].extent)
          << "seed " << seed << ": one dimension would do";
  }
  EXPECT_GT(accepted, 800);
  EXPECT_GT(refused, 800);
}

TEST(IterMap, subspace_division_recombines) {
  Analyzer a;
  Loops l;
  Var i0 = l.add("i0", 4), i1 = l.add("i1", 16), j0 = l.add("j0", 2), j1 = l.add("j1", 8);
  std::vector<Expr> bindings{i0 * 16 + Expr(i1), j0 * 8 + Expr(j1)};
  auto parts = subspace_divide(bindings, l.list, {i1, j1}, make_bool(true), a);
  ASSERT_TRUE(parts);
  l.domain().each([&](const Point& p) {
    for (std::size_t i = 0; i < 2; ++i) {
      const SubspacePart& s = (*parts)[i];
      EXPECT_EQ(value_of(s.outer, p) * value_of(s.inner_extent, p) + value_of(s.inner, p),
                value_of(bindings[i], p));
    }
  });
  EXPECT_TRUE(is_const_int_value((*parts)[0].inner_extent, 16));
  EXPECT_FALSE(subspace_divide(bindings, l.list, {i0}, make_bool(true),
                               a));  // the inner part must be the low digits
}

TEST(Analyzer, the_least_number_of_a_type_keeps_its_sign) {
  // There is no opposite to subtract instead.
  Analyzer a;
  Var i = make_var("i", dtypes::int32);
  a.bind(i, {make_int(0, dtypes::int32), make_int(13, dtypes::int32)});
  Expr least = make_int(INT32_MIN, dtypes::int32);
  EXPECT_EQ(a.bounds(Expr(i) + least).min, INT32_MIN);
  EXPECT_EQ(a.bounds(Expr(i) + least).max, std::int64_t{INT32_MIN} + 12);
  EXPECT_EQ(a.bounds(a.simplify(Expr(i) + least)).max, std::int64_t{INT32_MIN} + 12);
  Var j = make_var("j", dtypes::int32);
  a.bind(j, {make_int(0, dtypes::int32), make_int(13, dtypes::int32)});
  EXPECT_EQ(a.bounds(a.simplify(Expr(j) + Expr(i) * least)).max, 12);
}

}  // namespace
}  // namespace weft::arith
