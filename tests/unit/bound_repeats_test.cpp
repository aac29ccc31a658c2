// SPDX-License-Identifier: Apache-2.0
// Which statements under two loops of one axis are refused because the outer loop repeats them:
// those that go on from what the run before left.

#include "weft/pass/bound_repeats.h"

#include <gtest/gtest.h>

#include "../expect_error.h"
#include "lower_kit.h"
#include "weft/ir/atomic.h"
#include "weft/machine/target_info.h"

namespace weft {
namespace {

using namespace testing;

const Var kOuter = make_var("i"), kInner = make_var("j"), kOther = make_var("m"),
          kSerial = make_var("k");
const Buffer kA = make_buffer("A", dtypes::int32, {make_int(8), make_int(8)});
const Buffer kC = make_buffer("C", dtypes::int32, {make_int(8)});
const Buffer kD = make_buffer("D", dtypes::int32, {make_int(8)});

Expr number(std::int64_t n) { return make_int(n); }
Stmt bound(const Var& v, const Stmt& body, std::int64_t extent = 8,
           const std::string& axis = "threadIdx.x") {
  return make_for(v, number(0), number(extent), body, ForKind::bound, axis);
}
Stmt serial(const Var& v, const Stmt& body, std::int64_t extent = 8) {
  return make_for(v, number(0), number(extent), body);
}
Stmt zero(const Buffer& b, const Expr& at) { return store(b, make_int(0, dtypes::int32), {at}); }
Stmt copy(const Buffer& to, const Expr& at, const Buffer& from, const Expr& there) {
  return store(to, load(from, {there}), {at});
}
Stmt add(const Expr& at, const Expr& row = make_int(0)) {
  return store(kC, load(kC, {at}) + load(kA, {row, at}), {at});
}

void check(const Stmt& s) { pass::check_bound_repeats(s, generic_target_info()); }
void refuses(const Stmt& s, std::string_view what = "\"C\"") {
  expect_error(ErrorKind::lower, "lower.axis.repeated", {what, "\"i\"", "threadIdx.x"},
               [&] { check(s); });
}

TEST(BoundRepeats, updates_that_nothing_begins) {
  refuses(bound(kOuter, bound(kInner, add(kInner))), "loop \"j\"");
  refuses(bound(kOuter, serial(kSerial, bound(kInner, add(kInner, kSerial)))));
  refuses(bound(kOuter, bound(kInner, serial(kSerial, add(kInner, kSerial)))));
  refuses(
      bound(kOuter, bound(kInner, ir::atomic_add(kC, {Expr(kInner)}, make_int(1, dtypes::int32)))));
  // Begun once, outside the loop that repeats.
  refuses(seq({bound(kOther, zero(kC, kOther)), bound(kOuter, bound(kInner, add(kInner)))}));
  refuses(serial(kSerial,
                 bound(kOuter, bound(kInner, seq({if_then(eq(kSerial, number(0)), zero(kC, kInner)),
                                                  add(kInner, kSerial)})))));
  // Begun too late, or not all of it.
  refuses(bound(kOuter, seq({bound(kInner, add(kInner)), bound(kOther, zero(kC, kOther))})));
  refuses(bound(kOuter, seq({serial(kOther, zero(kC, kOther), 7), bound(kInner, add(kInner))})));
  refuses(bound(kOuter, seq({zero(kC, number(0)), bound(kInner, add(kInner))})));
  refuses(bound(kOuter, seq({bound(kOther, if_then(lt(kOther, number(7)), zero(kC, kOther))),
                             bound(kInner, add(kInner))})));
}

TEST(BoundRepeats, updates_that_each_iteration_begins) {
  check(bound(kOuter, seq({bound(kOther, zero(kC, kOther)), bound(kInner, add(kInner))})));
  check(bound(kOuter, bound(kInner, seq({zero(kC, kInner), add(kInner)}))));
  check(bound(kOuter, seq({serial(kOther, zero(kC, kOther)), bound(kInner, add(kInner))})));
  check(bound(kOuter, seq({bound(kOther, zero(kC, kOther)),
                           serial(kSerial, bound(kInner, add(kInner, kSerial)))})));
  // As lowering writes a first value: at the first step of the loops that sum.
  const Stmt first = if_then(eq(kSerial, number(0)), zero(kC, kInner));
  check(bound(kOuter, bound(kInner, serial(kSerial, seq({first, add(kInner, kSerial)})))));
  check(bound(kOuter, serial(kSerial, bound(kInner, seq({first, add(kInner, kSerial)})))));
  // The same condition around both; digits of one index.
  const Expr few = lt(kOther, number(7)), same = lt(kInner, number(7));
  check(bound(kOuter, seq({bound(kOther, if_then(few, zero(kC, kOther))),
                           bound(kInner, if_then(same, add(kInner)))})));
  const Var low = make_var("l");
  check(bound(kOuter, seq({serial(kOther, serial(low, zero(kC, Expr(kOther) * 4 + low), 4), 2),
                           bound(kInner, add(kInner))})));
  refuses(bound(kOuter, seq({serial(kOther, serial(low, zero(kC, Expr(kOther) * 5 + low), 3), 2),
                             bound(kInner, add(kInner))})));
  // Memory of each iteration's own begins with nothing in it.
  const Buffer own = make_buffer("S", dtypes::int32, {make_int(8)}, "shared");
  check(bound(kOuter, allocate(own, bound(kInner, store(own, load(own, {Expr(kInner)}) + 1,
                                                        {Expr(kInner)})))));
}

TEST(BoundRepeats, values_that_come_round) {
  // C goes to D, and D to C the next time.
  refuses(bound(kOuter, seq({bound(kInner, copy(kD, kInner, kC, kInner)),
                             bound(kOther, copy(kC, kOther, kD, number(0)))})));
  check(
      bound(kOuter,
            seq({bound(kInner, copy(kD, kInner, kC, kInner)),
                 bound(kOther, store(kA, load(kD, {Expr(kOther)}), {number(0), Expr(kOther)}))})));
  // Conditions and bounds read, too.
  const Expr seen = gt(load(kC, {number(0)}), make_int(3, dtypes::int32));
  refuses(bound(kOuter, seq({if_then(seen, bound(kInner, zero(kD, kInner))),
                             bound(kOther, copy(kC, kOther, kD, kOther))})));
  const Var x = make_var("x", dtypes::int32);
  refuses(bound(kOuter, seq({let_stmt(x, load(kC, {number(0)}),
                                      bound(kInner, store(kD, Expr(x), {Expr(kInner)}))),
                             bound(kOther, zero(kC, kOther))})));
}

TEST(BoundRepeats, stores_of_each_iteration_among_repeated_ones) {
  refuses(bound(kOuter, seq({bound(kInner, zero(kC, kInner)),
                             store(kC, load(kC, {Expr(kOuter)}) + 1, {Expr(kOuter)})})));
  check(bound(kOuter, seq({bound(kInner, zero(kC, kInner)), copy(kD, kOuter, kC, kOuter)})));
}

TEST(BoundRepeats, reads_of_each_iteration_before_repeated_stores) {
  refuses(bound(kOuter, seq({copy(kD, kOuter, kC, kOuter), bound(kInner, zero(kC, kInner))})));
  check(bound(kOuter, seq({copy(kD, kOuter, kC, kOuter), bound(kInner, zero(kD, kInner), 1)})));
}

TEST(BoundRepeats, loops_that_repeat_nothing) {
  check(bound(kOuter, add(kOuter)));
  check(bound(kOuter, bound(kInner, add(kInner), 1), 1));
  check(bound(kOuter, bound(kInner, add(kInner), 8, "threadIdx.y")));
  check(bound(kOuter, bound(kInner, add(kInner), 8, "vthread"), 8, "vthread"));
  check(seq({bound(kOuter, add(kOuter)), bound(kInner, add(kInner))}));
  check(serial(kSerial, bound(kOuter, add(kOuter))));
}

}  // namespace
}  // namespace weft
