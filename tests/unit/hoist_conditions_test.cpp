// SPDX-License-Identifier: Apache-2.0
// Conditions that no iteration changes leave their loop, and others stay.

#include <gtest/gtest.h>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/pass/common_subexpression_elimination.h"
#include "weft/pass/hoist_conditions.h"

namespace weft::pass {
namespace {

using namespace ir;

class HoistConditions : public ::testing::Test {
 protected:
  Buffer a = make_buffer("A", dtypes::float32, {make_int(64)});
  Var n = make_var("n", dtypes::int64), i = make_var("i"), j = make_var("j");

  PrimFunc around(const Stmt& body) {
    return make_func("main", {buffer_param(a), {n, nullptr}}, root_block(body));
  }
  Stmt loop(const Var& v, const Stmt& body, ForKind kind = ForKind::serial) {
    return make_for(v, make_int(0), make_int(8), body, kind);
  }
  Stmt put() { return store(a, make_float(1.0, dtypes::float32), {Expr(i) * 8 + Expr(j)}); }
  /// How often the text has the condition, and whether a loop stands before it.
  std::string after(const Stmt& body) { return print(hoist_conditions(around(body))); }
};

TEST_F(HoistConditions, of_the_outer_loop_leave_the_inner_one) {
  for (ForKind kind : {ForKind::serial, ForKind::unrolled}) {
    const std::string text = after(loop(i, loop(j, if_then(lt(i, n), put()), kind)));
    EXPECT_LT(text.find("if i < n"), text.find("for j")) << text;
    EXPECT_LT(text.find("for i"), text.find("if i < n")) << text;
  }
  const std::string both = after(loop(i, loop(j, if_then(lt(n, make_int(5)), put()))));
  EXPECT_LT(both.find("if n < "), both.find("for i")) << both;
}

TEST_F(HoistConditions, that_change_or_read_memory_stay) {
  const PrimFunc own = around(loop(i, loop(j, if_then(lt(j, n), put()))));
  EXPECT_EQ(hoist_conditions(own), own);
  const Expr read = gt(load(a, {i}), make_float(0.0, dtypes::float32));
  const PrimFunc memory = around(loop(i, loop(j, if_then(read, put()))));
  EXPECT_EQ(hoist_conditions(memory), memory);
  const PrimFunc other = around(loop(i, loop(j, if_then(lt(i, n), put(), put()))));
  EXPECT_EQ(hoist_conditions(other), other);
  const PrimFunc vector = around(loop(i, loop(j, if_then(lt(i, n), put()), ForKind::vectorized)));
  EXPECT_EQ(hoist_conditions(vector), vector);
}

TEST_F(HoistConditions, and_quotients_that_no_iteration_changes_are_divided_once) {
  const Expr least = max(n, make_int(1));
  const Expr row = floordiv(Expr(i), least);
  const Stmt body = loop(i, loop(j, store(a, make_float(1.0, dtypes::float32), {row + Expr(j)})));
  const std::string text = print(common_subexpression_elimination(around(body)));
  EXPECT_LT(text.find("//"), text.find("for j")) << text;
  // What may be zero is divided where it is used.
  const Stmt risky = loop(
      i, loop(j, store(a, make_float(1.0, dtypes::float32), {floordiv(Expr(i), n) + Expr(j)})));
  const PrimFunc unchanged = around(risky);
  EXPECT_EQ(common_subexpression_elimination(unchanged), unchanged);
}

}  // namespace
}  // namespace weft::pass
