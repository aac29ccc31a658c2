// SPDX-License-Identifier: Apache-2.0
// Which loops whose iterations run in step hand values on in another order than as loops.

#include "weft/pass/check_exchanges.h"

#include <gtest/gtest.h>

#include "../expect_error.h"
#include "lower_kit.h"
#include "weft/ir/attributes.h"
#include "weft/ir/interpret.h"
#include "weft/ir/visit.h"
#include "weft/machine/target_info.h"

namespace weft {
namespace {

using namespace testing;

const Var kI = make_var("i"), kJ = make_var("j"), kK = make_var("k"), kN = make_var("n");
const Buffer kA = make_buffer("A", dtypes::int32, {make_int(64), make_int(64)});
const Buffer kC = make_buffer("C", dtypes::int32, {make_int(64), make_int(64)});
const Buffer kD = make_buffer("D", dtypes::int32, {make_int(64), make_int(64)});
const Buffer kShared = make_buffer("S", dtypes::int32, {make_int(64), make_int(64)}, "shared");

Expr number(std::int64_t n) { return make_int(n); }
Stmt bound(const Var& v, const Stmt& body, const Expr& extent = make_int(64),
           const std::string& axis = "threadIdx.x") {
  return make_for(v, number(0), extent, body, ForKind::bound, axis);
}
Stmt serial(const Var& v, const Stmt& body, std::int64_t extent = 8) {
  return make_for(v, number(0), number(extent), body);
}
Stmt lanes(const Stmt& body) {
  return make_for(kI, number(0), number(64), body, ForKind::vectorized);
}
Stmt copy(const Buffer& to, const Exprs& at, const Buffer& from, const Exprs& there) {
  return store(to, load(from, there), at);
}
/// C[row, to] = A[0, i]; D[0, i] = C[there, from]
Stmt hand_on(const Expr& row, const Expr& to, const Expr& there, const Expr& from,
             const Buffer& through = kC) {
  return seq({copy(through, {row, to}, kA, {number(0), kI}),
              copy(kD, {number(0), kI}, through, {there, from})});
}

PrimFunc function(const Stmt& body) {
  auto out = make_ref<PrimFuncNode>();
  out->name = "main";
  out->body = body;
  return out;
}
PrimFunc check(const Stmt& s, std::int64_t budget = 200'000) {
  return pass::check_exchanges(function(s), generic_target_info(), budget);
}
void refuses(const Stmt& s, std::string_view what = "are one element") {
  expect_error(ErrorKind::lower, "lower.axis.exchanged", {what, "\"i\"", "another order"},
               [&] { check(s); });
}
void takes(const Stmt& s) {
  const PrimFunc f = function(s);
  EXPECT_EQ(pass::check_exchanges(f, generic_target_info()), f);
}
bool is_serial(const Stmt& s) {
  const PrimFunc f = check(s);
  const auto* loop = as<ForNode>(f->body);
  return loop->for_kind == ForKind::serial && find_annotation(loop->annotations, "scalarised");
}

TEST(CheckExchanges, what_a_later_iteration_stores) {
  refuses(bound(kI, hand_on(number(0), kI, number(0), number(63) - kI)));
  refuses(bound(kI, hand_on(number(0), kI, number(0), min(kI + 1, number(63)))));
  refuses(bound(kI, hand_on(number(0), kI, number(0), floormod(kI + 40, number(64)))));
  // Under loops that decide nothing, of many iterations, and of an extent known only at run time.
  refuses(serial(kK, bound(kI, hand_on(number(0), kI, number(0), number(63) - kI)), 1000));
  refuses(bound(kI, hand_on(number(0), kI, number(0), Expr(kN) - 1 - kI), kN));
}

TEST(CheckExchanges, what_an_earlier_iteration_stores) {
  takes(bound(kI, hand_on(number(0), kI, number(0), max(kI - 1, number(0)))));
  takes(bound(kI, seq({copy(kD, {number(0), kI}, kC, {number(0), min(kI + 1, number(63))}),
                       copy(kC, {number(0), kI}, kA, {number(0), kI})})));
}

TEST(CheckExchanges, elements_of_its_own) {
  takes(bound(kI, hand_on(number(0), kI, number(0), kI)));
  takes(bound(kI, hand_on(kI, number(3), kI, number(5))));
  takes(bound(kI, hand_on(number(1), kI, number(0), number(63) - kI)));
  takes(bound(kI, hand_on(number(0), kI, number(0), number(63) - kI, kShared)));  // its barriers
  // Digits of one index.
  const Expr at = kI * 8 + kJ;
  takes(bound(kI,
              seq({serial(kJ, copy(kC, {number(0), at}, kA, {kI, kJ})),
                   serial(kK, copy(kD, {kI, kK}, kC, {number(0), kI * 8 + (number(7) - kK)}))}),
              number(8)));
}

TEST(CheckExchanges, steps_of_loops_inside_and_around) {
  const Stmt step =
      seq({copy(kC, {kK, kI}, kA, {kK, kI}), copy(kD, {kK, kI}, kC, {kK, number(63) - kI})});
  refuses(bound(kI, serial(kK, step)));
  refuses(serial(kK, bound(kI, step)));
  // What the step before has stored.
  const Stmt after =
      seq({copy(kC, {kK + 1, kI}, kA, {kK, kI}), copy(kD, {kK, kI}, kC, {kK, number(63) - kI})});
  takes(serial(kK, bound(kI, after)));
  refuses(bound(kI, serial(kK, after)));
}

TEST(CheckExchanges, barriers_of_the_program) {
  const Stmt sync = evaluate(call("sync", {make_string("global")}));
  takes(bound(kI, seq({copy(kC, {number(0), kI}, kA, {number(0), kI}), sync,
                       copy(kD, {number(0), kI}, kC, {number(0), number(63) - kI})})));
}

TEST(CheckExchanges, the_same_from_all) {
  const Stmt fill = serial(kK, copy(kC, {number(0), kK}, kA, {number(0), kK}), 64);
  takes(bound(kI, seq({fill, copy(kD, {number(0), kI}, kC, {number(0), kI})})));
  const Stmt own = serial(kK, copy(kC, {number(0), kK}, kA, {kI, kK}), 64);
  refuses(bound(kI, seq({own, copy(kD, {number(0), kI}, kC, {number(0), kI})})));
  refuses(bound(kI, seq({copy(kD, {number(0), kI}, kC, {number(0), kI}), fill})));
}

TEST(CheckExchanges, lanes_become_a_serial_loop) {
  EXPECT_TRUE(is_serial(lanes(hand_on(number(0), kI, number(0), number(63) - kI))));
  const auto one = [](const Expr& from) {
    return lanes(store(kC, load(kC, {number(0), from}) + 1, {number(0), kI}));
  };
  EXPECT_TRUE(is_serial(one(max(kI - 1, number(0)))));
  takes(one(min(kI + 1, number(63))));  // a vector is read before it is stored
  takes(lanes(hand_on(number(0), kI, number(0), kI)));
}

TEST(CheckExchanges, places_that_data_chooses) {
  const Expr by = load(kA, {number(0), kI});
  refuses(bound(kI, hand_on(number(0), kI, number(0), by)), "data chooses");
  refuses(bound(kI, hand_on(number(0), kI, number(0), by), number(64), "blockIdx.x"),
          "data chooses");
  takes(bound(kI, hand_on(kI, number(0), kI, by)));  // of its own row
  auto f = edit(function(bound(kI, hand_on(number(0), kI, number(0), by))));
  f->attrs = with_annotation(f->attrs, ir::kDistinctElements, true);
  const PrimFunc vouched = f;
  EXPECT_EQ(pass::check_exchanges(vouched, generic_target_info()), vouched);
}

TEST(CheckExchanges, what_the_budget_does_not_reach_is_run_in_part) {
  const Stmt body =
      serial(kK, serial(kJ, hand_on(number(0), kI, number(0), number(63) - kI), 100), 100);
  expect_error(ErrorKind::lower, "lower.axis.exchanged", {"are one element"},
               [&] { check(bound(kI, body), 2'000); });
}

}  // namespace
}  // namespace weft
