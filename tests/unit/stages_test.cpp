// SPDX-License-Identifier: Apache-2.0
// Blocks as targets that plan whole blocks read them: the points that a block visits are checked
// against an enumeration of its loops.

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "../expect_error.h"
#include "weft/arith/analyzer.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/stages/blocks.h"
#include "weft/stages/conditions.h"
#include "weft/stages/linear.h"
#include "weft/stages/update.h"
#include "weft/stages/visits.h"

namespace weft::stages {
namespace {

using namespace ir;

std::int64_t value(const Expr& e, const VarMap& at) {
  const Expr simple = arith::simplify(substitute(e, at));
  const auto* n = as<IntImmNode>(simple);
  if (!n) ADD_FAILURE() << print(e) << " has no value";
  return n ? n->value : 0;
}

bool holds(const Exprs& conditions, const VarMap& at) {
  for (const Expr& c : conditions) {
    if (!value(c, at)) return false;
  }
  return true;
}

using Points = std::set<std::vector<std::int64_t>>;

/// Calls `f` with every assignment of 0-based or shifted ranges.
void each(const std::vector<Var>& vars, const std::vector<std::int64_t>& first,
          const std::vector<std::int64_t>& extent, const std::function<void(const VarMap&)>& f) {
  VarMap at;
  std::function<void(std::size_t)> go = [&](std::size_t k) {
    if (k == vars.size()) return f(at);
    for (std::int64_t i = 0; i < extent[k]; ++i) {
      at[vars[k].get()] = make_int(first[k] + i, vars[k]->dtype);
      go(k + 1);
    }
  };
  go(0);
}

Points enumerated(const Leaf& leaf) {
  std::vector<Var> vars;
  std::vector<std::int64_t> first, extent;
  for (const ForNode* l : leaf.loops) {
    vars.push_back(l->var);
    first.push_back(value(l->min, {}));
    extent.push_back(value(l->extent, {}));
  }
  Points out;
  each(vars, first, extent, [&](const VarMap& at) {
    if (!holds(leaf.conditions, at)) return;
    std::vector<std::int64_t> point;
    for (const Expr& v : leaf.iter_values) point.push_back(value(v, at));
    out.insert(point);
  });
  return out;
}

Points told(const Leaf& leaf, const Visits& visits) {
  Points out;
  if (visits.never) return out;
  std::vector<Var> vars;
  std::vector<std::int64_t> first, extent;
  for (const IterVar& i : leaf.block->iters) {
    vars.push_back(i.var);
    first.push_back(0);
    extent.push_back(value(i.dom.extent, {}));
  }
  each(vars, first, extent, [&](const VarMap& at) {
    if (!holds(visits.conditions, at)) return;
    std::vector<std::int64_t> point;
    for (const Var& v : vars) point.push_back(value(v, at));
    out.insert(point);
  });
  return out;
}

std::vector<Leaf> leaves_of(const PrimFunc& f) {
  const auto* root = as<BlockRealizeNode>(f->body);
  std::vector<Buffer> temporaries;
  return collect_leaves(root ? root->block->body : f->body, &temporaries);
}

/// `body`: loops around one block over (12, 10), with A of that shape and C to write.
PrimFunc program(const std::string& body) {
  return parse_func(
      cat("@T.prim_func\ndef main(A: T.Buffer((12, 10), \"float32\"), C: "
          "T.Buffer((12, 10), \"float32\")):\n",
          body));
}

std::string random_body(std::mt19937& random) {
  auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::string first, second, loops, condition;
  switch (below(5)) {
    case 0: loops = "i, j in T.grid(12, 10)", first = "i", second = "j"; break;
    case 1:
      loops = cat("i, j, k in T.grid(3, 4, ", 1 + below(10), ")"), first = "i * 4 + j",
      second = "k";
      break;
    case 2:
      loops = "i, j in T.grid(5, 5)", first = cat("i * 2 + ", below(4)), second = "9 - j";
      break;
    case 3:
      loops = "i, j, k in T.grid(12, 4, 3)", first = "i", second = "j * 3 + k";
      condition = "j * 3 + k < 10";
      break;
    default: loops = "i, j, r in T.grid(7, 8, 3)", first = "11 - i", second = "j + 1";
  }
  const std::vector<std::string> more = {
      "", "i < 4", "i * 2 >= j", "j % 3 == 1", "i != 2 or j > 3", "i + j < 40", "i > 50"};
  const std::string& extra = more[static_cast<std::size_t>(below(static_cast<int>(more.size())))];
  if (!extra.empty())
    condition = condition.empty() ? extra : cat("(", condition, ") and (", extra, ")");
  return cat("    for ", loops, ":\n        with T.block(\"C\"):\n",
             condition.empty() ? "" : cat("            T.where(", condition, ")\n"),
             "            vi = T.axis.spatial(12, ", first,
             ")\n            vj = T.axis.spatial(10, ", second,
             ")\n            C[vi, vj] = A[vi, vj]\n");
}

TEST(stages, visits_are_the_points_of_the_loops) {
  std::mt19937 random(5);
  int partial = 0, never = 0;
  for (int k = 0; k < 200; ++k) {
    const std::string body = random_body(random);
    const PrimFunc f = program(body);
    const Leaf leaf = leaves_of(f).at(0);
    const Visits visits = visits_of(leaf, {});
    const Points want = enumerated(leaf);
    ASSERT_EQ(told(leaf, visits), want) << body;
    never += want.empty();
    partial += !want.empty() && want.size() < 120;
    if (want.size() == 120) {
      EXPECT_TRUE(visits.conditions.empty()) << body;
    }
  }
  EXPECT_GT(partial, 50);
  EXPECT_GT(never, 5);
}

TEST(stages, digits_of_bindings) {
  const PrimFunc f = program(R"(    for i, j, k in T.grid(3, 4, 10):
        with T.block("C"):
            vi = T.axis.spatial(12, i * 4 + j)
            vj = T.axis.spatial(10, 9 - k)
            C[vi, vj] = A[vi, vj]
)");
  const Visits visits = visits_of(leaves_of(f).at(0), {});
  ASSERT_EQ(visits.bindings.size(), 2u);
  ASSERT_EQ(visits.bindings[0].digits.size(), 2u);
  EXPECT_EQ(visits.bindings[0].digits[0].scale, 4);
  EXPECT_EQ(visits.bindings[0].digits[1].scale, 1);
  EXPECT_EQ(visits.bindings[1].start, 0);
  EXPECT_TRUE(visits.bindings[1].digits[0].reversed);
}

TEST(stages, loops_and_iterators_one_to_one) {
  auto iterators = [](const std::string& loops, const std::string& vi, const std::string& vj) {
    const PrimFunc f = program(cat("    for ", loops,
                                   ":\n        with T.block(\"C\"):\n            vi = "
                                   "T.axis.spatial(12, ",
                                   vi, ")\n            vj = T.axis.spatial(10, ", vj,
                                   ")\n            C[vi, vj] = A[vi, vj]\n"));
    const auto leaf = single_leaf(as<BlockRealizeNode>(f->body)->block->body);
    std::string out;
    if (!leaf) return std::string("no leaf");
    const auto found = iterators_of_loops(*leaf);
    if (!found) return std::string("none");
    for (const IterVar* i : *found) out += i->var->name + " ";
    return out;
  };
  EXPECT_EQ(iterators("i, j in T.grid(12, 10)", "i", "j"), "vi vj ");
  EXPECT_EQ(iterators("j, i in T.grid(10, 12)", "i", "j"), "vj vi ");
  EXPECT_EQ(iterators("i, j in T.grid(10, 10)", "i + 2", "j"), "none");
  EXPECT_EQ(iterators("i, j, r in T.grid(12, 10, 2)", "i", "j"), "none");
}

TEST(stages, updates) {
  auto update = [](const std::string& body) {
    const PrimFunc f =
        program(cat("    for i, j, k in T.grid(12, 10, 10):\n        with "
                    "T.block(\"C\"):\n            vi, vj, vk = T.axis.remap(\"SSR\", "
                    "[i, j, k])\n",
                    body));
    return read_update(leaves_of(f).at(0).block);
  };
  EXPECT_EQ(update("            C[vi, vj] = C[vi, vj] + A[vi, vk]\n").combine, Combine::add);
  EXPECT_EQ(update("            C[vi, vj] = A[vi, vk] * C[vi, vj]\n").combine, Combine::mul);
  EXPECT_EQ(update("            C[vi, vj] = T.max(C[vi, vj], A[vi, vk])\n").combine, Combine::max);
  EXPECT_EQ(update("            C[vi, vj] = T.min(A[vi, vk], C[vi, vj])\n").combine, Combine::min);
  // Another element, and no such operation.
  EXPECT_EQ(update("            C[vi, vj] = C[vi, vk] + A[vi, vk]\n").combine, Combine::none);
  EXPECT_EQ(update("            C[vi, vj] = C[vi, vj] - A[vi, vk]\n").combine, Combine::none);
  EXPECT_TRUE(update("            C[vi, vj] = C[vi, vj] + C[vi, vj] * A[vi, vk]\n").reads_own);
  const Update guarded =
      update("            if vk < vi:\n                C[vi, vj] = C[vi, vj] + A[vi, vk]\n");
  EXPECT_TRUE(guarded.condition);
  EXPECT_EQ(guarded.combine, Combine::add);
}

TEST(stages, refusals) {
  auto refuses = [](std::string_view slug, std::string_view part, const std::string& body) {
    weft::testing::expect_error(ErrorKind::lower, slug, {part}, [&] {
      const PrimFunc f = program(body);
      for (const Leaf& leaf : leaves_of(f)) {
        read_update(leaf.block);
        visits_of(leaf, {{"pe.x", 4}});
      }
    });
  };
  refuses("stages.body", "block C", R"(    for i, j in T.grid(12, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
            C[vi, vj] = C[vi, vj] * T.float32(2)
)");
  refuses("stages.init", "not a store to C", R"(    for i, j in T.grid(12, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                A[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vj]
)");
  refuses("stages.fused", "holds 2 blocks", R"(    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            C[vi, 0] = A[vi, 0]
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi, 1] = A[vi, 1]
)");
  refuses("stages.axis", "\"lane\"", R"(    for i in T.thread_binding(12, thread="lane"):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi, 0] = A[vi, 0]
)");
}

TEST(stages, conditions_on_what_is_no_iterator) {
  const PrimFunc f = parse_func(R"(@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((12, 10), "float32"), n: T.int32):
    for i, j in T.grid(12, 10):
        with T.block("C"):
            T.where(i < n)
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
)");
  weft::testing::expect_error(ErrorKind::lower, "stages.condition", {"depends on n"},
                              [&] { visits_of(leaves_of(f).at(0), {}); });
}

TEST(stages, linear_forms_keep_what_casts_change) {
  const Var i = make_var("i", dtypes::int32);
  const std::vector<Axis> axes = {{i, 300, false}};
  EXPECT_TRUE(linear(cast(dtypes::int64, i * 2 + 1), axes, nullptr));
  EXPECT_FALSE(linear(cast(dtypes::int8, i), axes, nullptr));  // 128 becomes -128
  EXPECT_TRUE(linear(cast(dtypes::int16, i), axes, nullptr));
}

TEST(stages, linear_forms_of_shifts_masks_and_quotients) {
  const Var i = make_var("i", dtypes::int32), j = make_var("j", dtypes::int32);
  const std::vector<Axis> axes = {{i, 16, false}, {j, 8, false}};
  const Expr sum = i * 8 + Expr(j);
  auto shift = [&](const char* name, const Expr& x, int n) {
    return linear(call(name, {x, make_int(n)}), axes, nullptr);
  };
  const Linear just_i{0, {{i.get(), 1}}}, just_j{0, {{j.get(), 1}}};
  const Linear both{0, {{i.get(), 8}, {j.get(), 1}}};
  EXPECT_EQ(shift("shift_right", sum, 3), just_i);
  EXPECT_EQ(shift("shift_right", sum, 0), both);
  EXPECT_EQ(shift("bitwise_and", sum, 7), just_j);
  EXPECT_FALSE(shift("bitwise_and", sum, 6));
  EXPECT_EQ(shift("shift_left", i, 3), (Linear{0, {{i.get(), 8}}}));
  EXPECT_EQ(shift("shift_left", sum, 0), both);
  EXPECT_FALSE(shift("shift_left", i, 62));
  EXPECT_EQ(linear(floordiv(sum, make_int(8)), axes, nullptr), just_i);
  EXPECT_EQ(linear(floormod(sum, make_int(8)), axes, nullptr), just_j);
  EXPECT_FALSE(linear(floordiv(sum, make_int(-8)), axes, nullptr));
  EXPECT_FALSE(linear(floordiv(sum, Expr(j)), axes, nullptr));
  EXPECT_EQ(linear(div(sum, make_int(8)), axes, nullptr), just_i);
  EXPECT_FALSE(linear(div(sum - 1, make_int(8)), axes, nullptr));  // C rounds -1 / 8 to 0
}

TEST(stages, conditions_that_always_hold_bound_nothing) {
  const Var i = make_var("i", dtypes::int32), j = make_var("j", dtypes::int32);
  const std::vector<Axis> axes = {{i, 4, false}, {j, 8, false}};
  const std::vector<Linear> indices = {{0, {{i.get(), 1}}}, {0, {{j.get(), 1}}}};
  std::vector<Bounds> bounds = {{0, 4}, {0, 8}};
  EXPECT_TRUE(bounds_from(ge(Expr(i) + Expr(j), make_int(0)), indices, axes, bounds));
  EXPECT_FALSE(bounds_from(ge(Expr(i) + Expr(j), make_int(1)), indices, axes, bounds));
  EXPECT_TRUE(bounds_from(gt(make_int(7), Expr(j) + 2), indices, axes, bounds));
  EXPECT_TRUE(bounds_from(lt(Expr(i), make_int(3)), indices, axes, bounds));
  EXPECT_EQ(bounds[0].low, 0);
  EXPECT_EQ(bounds[0].high, 3);
  EXPECT_EQ(bounds[1].low, 0);
  EXPECT_EQ(bounds[1].high, 5);
}

}  // namespace
}  // namespace weft::stages
