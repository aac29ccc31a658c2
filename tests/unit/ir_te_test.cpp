// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: the programs they become, and what those compute.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/interpret.h"
#include "weft/ir/te.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"

namespace weft::te {
namespace {

using ir::make_float;
using ir::make_int;
using Vars = std::vector<Var>;

ir::PrimFunc checked(const std::vector<Arg>& args) {
  ir::PrimFunc f = create_prim_func(args);
  Verdict v = ir::verify(f);
  EXPECT_FALSE(v.has_value()) << render(*v);
  EXPECT_TRUE(ir::structural_equal(f, ir::parse_func(ir::print(f)))) << ir::print(f);
  return f;
}

template <typename T>
ir::InterpretArg arg(std::vector<T>& data, std::vector<std::int64_t> shape) {
  return {data.data(), std::move(shape), {}, 0, 0};
}

void run(const ir::PrimFunc& f, std::vector<ir::InterpretArg> args) {
  ir::interpret(f, args, 10000000);
}

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (float& x : out) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return out;
}

TEST(Te, ReductionsArePrintedWithBoundsAndCondition) {
  Tensor a = placeholder({make_int(6)}, dtypes::float32, "A");
  IterVar k = reduce_axis(6, "k");
  const std::string plain = ir::print(sum(a(k.var), {k}));
  EXPECT_EQ(plain, R"(T.reduce("sum", lambda k: (A[k],), [(0, 6)]))");
  const std::string some = ir::print(sum(a(k.var), {k}, ir::lt(k.var, make_int(4))));
  EXPECT_EQ(some, R"(T.reduce("sum", lambda k: (A[k],), [(0, 6)], where=k < 4))");
}

TEST(Te, MatmulHasTheExpectedForm) {
  Tensor a = placeholder({make_int(4), make_int(6)}, dtypes::float32, "A"),
         b = placeholder({make_int(6), make_int(5)}, dtypes::float32, "B");
  IterVar k = reduce_axis(6, "k");
  Tensor c = compute({make_int(4), make_int(5)},
                     [&](const Vars& v) { return sum(a(v[0], k.var) * b(k.var, v[1]), {k}); }, "C",
                     {{"note", Json("x")}}, {"i", "j"});
  ir::PrimFunc f = checked({a, b, c});
  EXPECT_EQ(ir::print(f), R"(from weft import script as T

@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 5), "float32"), C: T.Buffer((4, 5), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j, k in T.grid(4, 5, 6):
        with T.block("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            T.block_attr({"note": "x"})
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
)");
}

TEST(Te, StagesBecomeBlocksAndIntermediatesAllocations) {
  Var n = var("n");
  Tensor a = placeholder({n, make_int(3)}, dtypes::float32, "A");
  Tensor twice = compute(
      {n, make_int(3)}, [&](const Vars& v) { return a(v[0], v[1]) * make_float(2); }, "X");
  Tensor same_name = compute(
      {n, make_int(3)}, [&](const Vars& v) { return twice(v[0], v[1]) + make_float(1); }, "X");
  IterVar k = reduce_axis(3);
  Tensor out = compute(
      {n},
      [&](const Vars& v) {
        return max(same_name(v[0], k.var) - twice(v[0], k.var) * a(v[0], k.var), {k});
      },
      "Y");
  ir::PrimFunc f = checked({a, out});
  std::string text = ir::print(f);
  EXPECT_NE(text.find("X_1 = T.alloc_buffer((n, 3), \"float32\")"), std::string::npos) << text;
  EXPECT_NE(text.find("with T.block(\"X_1\"):"), std::string::npos) << text;
  auto x = random_floats(12, 1);
  std::vector<float> y(4);
  run(f, {arg(x, {4, 3}), arg(y, {4})});
  for (std::size_t i = 0; i < 4; ++i) {
    float best = -INFINITY;
    for (std::size_t j = 0; j < 3; ++j) {
      volatile float t = x[i * 3 + j] * 2, u = t + 1, p = t * x[i * 3 + j];
      best = std::max(best, u - p);
    }
    EXPECT_EQ(y[i], best);
  }
}

TEST(Te, ReducersAndConditions) {
  Tensor a = placeholder({make_int(5), make_int(7)}, dtypes::float32, "A");
  IterVar k = reduce_axis(7, "k");
  auto of = [&](auto reduction, const char* name) {
    return compute(
        {make_int(5)},
        [&](const Vars& v) { return reduction(a(v[0], k.var), {k}, ir::lt(k.var, v[0] + 1)); },
        name);
  };
  Tensor s = of(sum, "S"), p = of(prod, "P"), lo = of(min, "L"), hi = of(max, "H");
  std::vector<Tensor> best = compute_many(
      {make_int(5)}, [&](const Vars& v) { return argmax(k.var, a(v[0], k.var), {k}); }, "best");
  std::vector<Tensor> least = compute_many(
      {make_int(5)}, [&](const Vars& v) { return argmin(k.var, a(v[0], k.var), {k}); }, "least");
  ASSERT_EQ(best.size(), 2u);
  ir::PrimFunc f = checked({a, s, p, lo, hi, best[0], best[1], least[0]});  // least[1] stays inside
  auto x = random_floats(35, 2);
  for (float& e : x) e = std::round(e * 3);  // ties
  std::vector<float> fs(5), fp(5), fl(5), fh(5), bv(5);
  std::vector<std::int64_t> bi(5), li(5);
  run(f, {arg(x, {5, 7}), arg(fs, {5}), arg(fp, {5}), arg(fl, {5}), arg(fh, {5}), arg(bi, {5}),
          arg(bv, {5}), arg(li, {5})});
  for (std::size_t i = 0; i < 5; ++i) {
    auto row = x.begin() + static_cast<std::ptrdiff_t>(i * 7);
    auto part = row + static_cast<std::ptrdiff_t>(i + 1);
    EXPECT_EQ(fs[i], std::accumulate(row, part, 0.0f));
    EXPECT_EQ(fp[i], std::accumulate(row, part, 1.0f, std::multiplies<>()));
    EXPECT_EQ(fl[i], *std::min_element(row, part));
    EXPECT_EQ(fh[i], *std::max_element(row, part));
    EXPECT_EQ(bi[i], std::max_element(row, row + 7) - row);  // the first of equals
    EXPECT_EQ(bv[i], *std::max_element(row, row + 7));
    EXPECT_EQ(li[i], std::min_element(row, row + 7) - row);
  }
}

TEST(Te, UserReducersScalarsAndPoints) {
  Var scale = var("scale", dtypes::float32);
  Tensor a = placeholder({make_int(6)}, dtypes::float32, "A");
  IterVar k = reduce_axis(make_int(1), make_int(5), "k");  // [1, 6)
  CommReducer norm =
      comm_reducer([](const Vars& x, const Vars& y) { return Exprs{x[0] + y[0] * y[0]}; },
                   [](const std::vector<DType>& t) { return Exprs{ir::make_zero(t[0])}; }, "norm");
  Tensor n = compute(
      {}, [&](const Vars&) { return norm({a(k.var)}, {k})[0]; }, "N");
  Tensor r = compute(
      {}, [&](const Vars&) { return ir::call("sqrt", {n()}) * scale; }, "R");
  std::vector<Tensor> both = compute_many(
      {make_int(6)},
      [&](const Vars& v) {
        return Exprs{a(v[0]) + r(), ir::cast(dtypes::int32, v[0] * 2)};
      },
      "two");
  ir::PrimFunc f = checked({a, scale, r, both[0], both[1]});
  std::vector<float> x = {9, 1, 2, 3, 4, 5}, y(1), z(6);
  std::vector<std::int32_t> w(6);
  run(f, {arg(x, {6}), {nullptr, {}, {}, 0, 3}, arg(y, {}), arg(z, {6}), arg(w, {6})});
  float want = static_cast<float>(std::sqrt(55.0)) * 3;
  EXPECT_EQ(y[0], want);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(z[i], x[i] + want);
    EXPECT_EQ(w[i], static_cast<std::int32_t>(2 * i));
  }
}

TEST(Te, RefusalsSayWhatIsWrong) {
  Tensor a = placeholder({make_int(4)}, dtypes::float32, "A");
  IterVar k = reduce_axis(4, "k");
  auto refused = [](auto&& f, std::string_view code, std::string_view message) {
    try {
      f();
      ADD_FAILURE() << "accepted, expected " << code;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_NE(e.message().find(message), std::string::npos) << e.what();
    }
  };
  refused(
      [&] {
        compute(
            {}, [&](const Vars&) { return sum(a(k.var), {k}) + make_float(1); }, "C");
      },
      "te.compute.reduce", "the body of \"C\" uses a reduction inside an expression");
  refused(
      [&] {
        compute(
            {}, [&](const Vars&) { return argmax(k.var, a(k.var), {k})[1]; }, "C");
      },
      "te.compute.body", "is not component 0");
  refused(
      [&] {
        compute(
            {}, [&](const Vars&) { return argmax(k.var, a(k.var), {k})[0]; }, "C");
      },
      "te.compute.body", "takes 1 of the 2 results");
  refused(
      [&] {
        compute_many(
            {}, [&](const Vars&) { return Exprs{}; }, "C");
      },
      "te.compute.body", "gives no value");
  refused(
      [&] {
        compute(
            {},
            [&](const Vars&) {
              Expr e = a(k.var);
              for (int n = 0; n < 2'000; ++n) e = e + a(k.var);
              return e;
            },
            "C");
      },
      "te.compute.depth", "the body of \"C\" is nested deeper than 1000");
  refused(
      [&] {
        Expr e = a(k.var);
        for (int n = 0; n < 1'000'000; ++n) e = e + a(k.var);
      },
      "ir.build.depth", "nested deeper than 4000 levels");
  refused([&] { placeholder({make_int(-1)}, dtypes::float32, "P"); }, "te.shape",
          "dimension 0 of \"P\" is -1");
  refused([&] { a(make_int(0), make_int(0)); }, "ir.load.rank", "\"A\" has 1 dimensions, but 2");
  refused([&] { sum(a(k.var), {}); }, "te.reduce.axes", "\"sum\" has no axis");
  refused(
      [&] {
        sum(a(k.var), {{k.var, k.dom, ir::IterKind::spatial}});
      },
      "te.reduce.axes", "\"k\" is no reduction axis");
  refused([&] { argmax(a(k.var), a(k.var), {k}); }, "te.reduce.types",
          "\"argmax\" does not reduce float32");
  refused([&] { sum(a(k.var), {k}, make_int(1)); }, "te.reduce.types",
          "the condition of a reduction is int64");
  CommReducer bad = comm_reducer(
      [](const Vars& x, const Vars&) {
        return Exprs{x[0], x[0]};
      },
      [](const std::vector<DType>& t) { return Exprs{ir::make_zero(t[0])}; }, "bad");
  refused([&] { bad({a(k.var)}, {k}); }, "te.reduce.arity",
          "\"bad\" combines to 2 values and has 1 identities for 1 sources");
  Tensor c = compute(
      {make_int(4)}, [&](const Vars& v) { return a(v[0]); }, "C");
  refused([&] { create_prim_func({c}); }, "te.create_prim_func.missing",
          "the placeholder \"A\" is used but is no argument");
  refused(
      [&] {
        create_prim_func({a, a, c});
      },
      "te.create_prim_func.args", "the tensor \"A\" appears twice");
  refused([&] { create_prim_func({}); }, "te.create_prim_func.args",
          "has no tensor among 0 arguments");
  Var loose = var("loose");
  Tensor d = compute(
      {make_int(4)}, [&](const Vars& v) { return a(v[0]) + ir::cast(dtypes::float32, loose); },
      "D");
  refused(
      [&] {
        create_prim_func({a, d});
      },
      "te.create_prim_func.var", "\"D\" uses the variable \"loose\"");
  EXPECT_NO_THROW(create_prim_func({a, loose, d}));
  Tensor twice = compute(
      {},
      [&](const Vars&) {
        return sum(a(k.var), {k, k});
      },
      "E");
  refused(
      [&] {
        create_prim_func({a, twice});
      },
      "te.create_prim_func.axis", "\"E\" reduces over \"k\" twice");
}

}  // namespace
}  // namespace weft::te
