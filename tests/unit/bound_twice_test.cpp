// SPDX-License-Identifier: Apache-2.0
// Which statements under two loops of one axis are refused: those that both loops decide, whatever
// the way in which a loop decides (an index, a value, a condition, another loop's bounds).

#include <gtest/gtest.h>

#include "../expect_error.h"
#include "lower_kit.h"
#include "weft/machine/target_info.h"
#include "weft/pass/bound_twice.h"

namespace weft {
namespace {

using namespace testing;

const Var kOuter = make_var("i"), kInner = make_var("j"), kSerial = make_var("k");
const Buffer kA = make_buffer("A", dtypes::float32, {make_int(8), make_int(8)});
const Buffer kN = make_buffer("N", dtypes::int64, {make_int(8)});

Expr number(std::int64_t n) { return make_int(n); }
Stmt put(const Expr& row, const Expr& column) {
  return store(kA, make_float(1, dtypes::float32), {row, column});
}
Stmt bound(const Var& v, const Stmt& body, const std::string& axis = "threadIdx.x",
           std::int64_t extent = 8) {
  return make_for(v, number(0), number(extent), body, ForKind::bound, axis);
}
/// `between` stands inside the outer loop and gets the inner one.
template <typename F>
Stmt nest(F&& between, const Stmt& body, const std::string& inner = "threadIdx.x") {
  return bound(kOuter, between(bound(kInner, body, inner)));
}
Stmt nest(const Stmt& body) {
  return nest([](const Stmt& s) { return s; }, body);
}

void check(const Stmt& s) { pass::check_bound_twice(s, generic_target_info()); }
void refuses(const Stmt& s, std::string_view what = "\"A\"") {
  expect_error(ErrorKind::lower, "lower.axis.twice", {what, "\"i\" and \"j\"", "threadIdx.x"},
               [&] { check(s); });
}

TEST(BoundTwice, indices_and_values_decide) {
  refuses(nest(put(kOuter, kInner)));
  refuses(nest(store(kA, cast(dtypes::float32, kOuter), {number(0), kInner})));
  refuses(nest(store(kA, cast(dtypes::float32, load(kN, {Expr(kOuter)})), {number(0), kInner})));
  refuses(nest(evaluate(Expr(kOuter) + kInner)), "a statement");
  // A loop of another kind between or around them changes nothing.
  refuses(make_for(kSerial, number(0), number(3), nest(put(kOuter, kInner))));
  refuses(nest([](const Stmt& s) { return make_for(kSerial, number(0), number(3), s); },
               put(kOuter, kInner)));
  refuses(
      nest([](const Stmt& s) { return bound(kSerial, s, "threadIdx.y"); }, put(kOuter, kInner)));
}

TEST(BoundTwice, one_loop_alone_is_good) {
  check(nest(put(kOuter, number(0))));
  check(nest(put(kInner, number(0))));
  check(nest(put(number(0), number(0))));
  check(nest(
      [](const Stmt& s) {
        return seq({put(kOuter, number(0)), s});
      },
      put(kInner, number(0))));
  // One beside the other.
  check(seq({bound(kOuter, put(kOuter, number(0))), bound(kInner, put(kInner, number(0)))}));
  // Two axes, or a virtual one, whose points are run one after the other.
  check(nest([](const Stmt& s) { return s; }, put(kOuter, kInner), "threadIdx.y"));
  check(bound(kOuter, bound(kInner, put(kOuter, kInner), "vthread"), "vthread"));
  check(make_for(kOuter, number(0), number(8), bound(kInner, put(kOuter, kInner))));
  // A loop of one iteration has one position anyway.
  check(bound(kOuter, bound(kInner, put(kOuter, kInner), "threadIdx.x", 1), "threadIdx.x", 1));
}

TEST(BoundTwice, conditions_decide_both_cases) {
  const Expr few = lt(kOuter, number(3));
  const Stmt one = put(number(0), kInner);
  refuses(nest([&](const Stmt& s) { return if_then(few, s); }, one));
  refuses(nest([&](const Stmt& s) { return if_then(few, put(number(0), number(0)), s); }, one));
  refuses(nest(if_then(few, one)));
  refuses(nest([&](const Stmt& s) { return while_loop(few, s); }, one));
  refuses(nest(if_then(lt(Expr(kOuter) + kInner, number(3)), put(number(0), number(0)))));
  check(nest([&](const Stmt& s) { return if_then(lt(kSerial, number(3)), s); }, one));
  // Only what stands under the condition.
  check(nest([&](const Stmt& s) { return seq({if_then(few, put(kOuter, number(0))), s}); }, one));
}

TEST(BoundTwice, bounds_of_loops_decide) {
  const Stmt one = put(kSerial, kInner);
  refuses(nest(make_for(kSerial, kOuter, number(3), one)));
  refuses(nest(make_for(kSerial, number(0), kOuter, one)));
  check(nest(make_for(kSerial, number(0), number(8), one)));
}

TEST(BoundTwice, names_of_values_decide_as_the_values) {
  const Var x = make_var("x"), y = make_var("y");
  const Expr twice = Expr(kOuter) * 2;
  refuses(nest([&](const Stmt& s) { return let_stmt(x, twice, s); }, put(x, kInner)));
  refuses(nest([&](const Stmt& s) { return let_stmt(x, twice, let_stmt(y, Expr(x) + 1, s)); },
               put(y, kInner)));
  refuses(nest([&](const Stmt& s) { return let_stmt(x, twice, s); },
               let_stmt(y, Expr(x) + kInner, put(y, number(0)))));
  // A name that nothing reads decides nothing.
  check(nest([&](const Stmt& s) { return let_stmt(x, twice, s); }, put(number(0), kInner)));
}

TEST(BoundTwice, statements_inside_allocations_and_copies_ahead_are_seen) {
  const Buffer own = make_buffer("L", dtypes::float32, {make_int(1)}, "local");
  refuses(nest(allocate(own, put(kOuter, kInner))));
  refuses(nest(make_ref<const AsyncNode>("copy", make_var("token"), put(kOuter, kInner))));
  refuses(nest(seq({put(number(0), number(0)), put(kOuter, kInner)})));
  check(nest(allocate(own, put(number(0), kInner))));
}

}  // namespace
}  // namespace weft
