// SPDX-License-Identifier: Apache-2.0
// Positions of extremes: of a value in a run, and of columns that are looked through row by row.

#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

constexpr std::int64_t kFar = INT32_MAX;
constexpr std::size_t kRunsAtOnce = 4;

/// acc[k] = the first place of `wanted[k]` in row k of n < 2^31 elements, NaN's where it is NaN; n
/// where there is none. Lanes keep the first place they met, four rows at a time; the last vector
/// overlaps the one before.
ir::PrimFunc find_function(Elem e) {
  const DType t = dtype_of(e), place = dtypes::int32;
  const std::int64_t lanes = 16;
  Program p;
  std::vector<ir::Buffer> x, least;
  for (std::size_t k = 0; k < kRunsAtOnce; ++k) {
    x.push_back(p.buffer(cat("a", k), t));
    least.push_back(local(cat("least", k), place, lanes));
  }
  ir::Buffer wanted = p.buffer("wanted", t, number(kRunsAtOnce)),
             acc = p.buffer("acc", dtypes::int64, number(kRunsAtOnce)),
             result = local("result", dtypes::int64, kRunsAtOnce);
  auto at = [](const ir::Buffer& b, const Expr& i) { return ir::load(b, {i}); };
  auto row = [](std::size_t k) { return number(static_cast<std::int64_t>(k)); };
  auto each = [](const std::function<Stmt(std::size_t)>& one) {
    std::vector<Stmt> all;
    for (std::size_t k = 0; k < kRunsAtOnce; ++k) all.push_back(one(k));
    return ir::seq(std::move(all));
  };
  const Expr far = ir::make_const(static_cast<double>(kFar), place);
  auto smaller = [](const Expr& a, const Expr& b) { return ir::select(ir::lt(b, a), b, a); };
  auto vector_at = [&](const Expr& first, const std::vector<Expr>& what) {
    return vectors("l", number(lanes), [&](const Expr& l) {
      return with_value("here", ir::cast(place, first) + ir::cast(place, l), [&](const Expr& here) {
        return each([&](std::size_t k) {
          const Expr met = ir::select(ir::eq(at(x[k], first + l), what[k]), here, far);
          return with_values({met, at(least[k], l)}, [&](const std::vector<Expr>& v) {
            return ir::store(least[k], smaller(v[1], v[0]), {l});
          });
        });
      });
    });
  };
  std::vector<Expr> sought;
  for (std::size_t k = 0; k < kRunsAtOnce; ++k) sought.push_back(at(wanted, row(k)));
  const Stmt wide = with_values(sought, [&](const std::vector<Expr>& what) {
    std::vector<Stmt> all;
    all.push_back(vectors("l", number(lanes), [&](const Expr& l) {
      return each([&](std::size_t k) { return ir::store(least[k], far, {l}); });
    }));
    all.push_back(loop("i", ir::floordiv(p.n, number(lanes)),
                       [&](const Expr& i) { return vector_at(i * number(lanes), what); }));
    all.push_back(vector_at(Expr(p.n) - number(lanes), what));
    for (std::int64_t width = lanes / 2; width; width /= 2) {
      all.push_back(vectors("l", number(width), [&](const Expr& l) {
        return each([&](std::size_t k) {
          return with_values({at(least[k], l), at(least[k], l + number(width))},
                             [&](const std::vector<Expr>& v) {
                               return ir::store(least[k], smaller(v[0], v[1]), {l});
                             });
        });
      }));
    }
    all.push_back(each([&](std::size_t k) {
      const Expr found = at(least[k], number(0));
      return ir::store(result,
                       ir::select(ir::eq(found, far), Expr(p.n), ir::cast(dtypes::int64, found)),
                       {row(k)});
    }));
    return ir::seq(std::move(all));
  });
  // One by one until `stop`.
  auto search = [&](std::size_t k, const Expr& stop) {
    const Expr here = at(result, row(k));
    return ir::seq({ir::store(result, number(0), {row(k)}),
                    ir::while_loop(ir::logical_and(ir::lt(here, p.n), ir::logical_not(stop)),
                                   ir::store(result, here + number(1), {row(k)}))});
  };
  auto element = [&](std::size_t k) { return at(x[k], at(result, row(k))); };
  const Stmt brief =
      each([&](std::size_t k) { return search(k, ir::eq(element(k), at(wanted, row(k)))); });
  Stmt any = wide;
  for (const ir::Buffer& b : least) any = ir::allocate(b, any);
  std::vector<Stmt> all = {ir::if_then(ir::ge(p.n, number(lanes)), any, brief)};
  if (t.is_float()) {
    all.push_back(each([&](std::size_t k) {
      const Expr what = at(wanted, row(k));
      return ir::if_then(ir::ne(what, what), search(k, ir::ne(element(k), element(k))));
    }));
  }
  all.push_back(each([&](std::size_t k) { return ir::store(acc, at(result, row(k)), {row(k)}); }));
  return p.finish(ir::allocate(result, ir::seq(std::move(all))));
}

/// acc[i] = here where x[i] is top[i], both NaN included.
ir::PrimFunc place_function(Elem e) {
  const DType t = dtype_of(e);
  Program p;
  const Expr here = p.scalar("here", dtypes::int32);
  ir::Buffer x = p.buffer("a0", t), top = p.buffer("a1", t), acc = p.buffer("acc", dtypes::int32);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    return with_values(
        {ir::load(x, {i}), ir::load(top, {i}), ir::load(acc, {i})},
        [&](const std::vector<Expr>& v) {
          Expr hit = ir::eq(v[0], v[1]);
          if (t.is_float()) {
            const Expr none = ir::call("bitwise_and", {ir::ne(v[0], v[0]), ir::ne(v[1], v[1])});
            hit = ir::call("bitwise_or", {hit, none});
          }
          return ir::store(acc, ir::select(hit, here, v[2]), {i});
        });
  }));
}

}  // namespace

std::vector<Kernel> extreme_kernels() {
  std::vector<Kernel> out;
  for (int k = 0; k < kElems; ++k) {
    const Elem e = static_cast<Elem>(k);
    if (is_complex(e) || is_narrow_float(e)) continue;
    const Elem code = e == Elem::boolean ? Elem::int8 : signless(e);
    auto add = [&](KernelEntry::Table table, const char* head, ir::PrimFunc (*program)(Elem)) {
      Kernel kernel = {entry(table, 0, e), cat(head, name_of(e)), nullptr};
      if (code == e) kernel.func = program(e);
      else kernel.code = cat(head, name_of(code));
      out.push_back(std::move(kernel));
    };
    add(KernelEntry::find, "w_find_", find_function);
    add(KernelEntry::place, "w_place_", place_function);
  }
  return out;
}

}  // namespace weft::generate
