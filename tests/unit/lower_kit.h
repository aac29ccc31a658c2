// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small programs built through ir/build.h, for tests of passes and targets.

#include <string>
#include <vector>

#include "weft/ir/build.h"

namespace weft::testing {

using namespace ir;

inline IterVar iter(const std::string& name, Expr extent, IterKind kind = IterKind::spatial) {
  return {make_var(name), {make_int(0), std::move(extent)}, kind};
}

/// A block with iterators bound to `values`.
inline Stmt block(const std::string& name, std::vector<IterVar> iters, Exprs values,
                  std::vector<BufferRegion> reads, std::vector<BufferRegion> writes, Stmt body,
                  Stmt init = nullptr, Expr predicate = nullptr) {
  auto b = make_ref<BlockNode>();
  b->id = fresh_block_id();
  b->name = name;
  b->iters = std::move(iters);
  b->reads = std::move(reads);
  b->writes = std::move(writes);
  b->init = std::move(init);
  b->body = std::move(body);
  return block_realize(std::move(values), std::move(predicate), b);
}

inline Annotations noalias() { return {{"noalias", Json(true)}}; }

/// C[i] = A[i] + B[i], loop i split into outer blocks of `inner` with a predicate where it does not
/// divide.
inline PrimFunc vector_add(std::int64_t n, std::int64_t inner = 0,
                           ForKind outer_kind = ForKind::serial, std::string outer_axis = "",
                           ForKind inner_kind = ForKind::serial, std::string inner_axis = "",
                           DType type = dtypes::float32) {
  Buffer A = make_buffer("A", type, {make_int(n)}), B = make_buffer("B", type, {make_int(n)}),
         C = make_buffer("C", type, {make_int(n)});
  IterVar vi = iter("vi", make_int(n));
  Expr at = vi.var;
  Stmt body = store(C, load(A, {at}) + load(B, {at}), {at});
  std::vector<BufferRegion> reads{point_region(A, {at}), point_region(B, {at})},
      writes{point_region(C, {at})};
  Stmt loops;
  if (inner == 0) {
    Var i = make_var("i");
    loops = make_for(i, make_int(0), make_int(n), block("C", {vi}, {i}, reads, writes, body),
                     outer_kind, outer_axis);
  } else {
    Var o = make_var("i_0"), i = make_var("i_1");
    std::int64_t outer = (n + inner - 1) / inner;
    Expr value = Expr(o) * inner + i;
    Stmt realize = block("C", {vi}, {value}, reads, writes, body, nullptr,
                         n % inner ? lt(value, make_int(n)) : nullptr);
    loops = make_for(o, make_int(0), make_int(outer),
                     make_for(i, make_int(0), make_int(inner), realize, inner_kind, inner_axis),
                     outer_kind, outer_axis);
  }
  return make_func("main", {buffer_param(A), buffer_param(B), buffer_param(C)}, root_block(loops),
                   noalias());
}

/// The seed's window sum: B[i] = A[i] + A[i+1] + A[i+2] over 1024, blocks of 128, A through shared
/// memory. cooperative: the fetch of 130 elements is split over the threads, with a predicate.
inline PrimFunc window_sum_shared(bool cooperative) {
  Buffer A = make_buffer("A", dtypes::float32, {make_int(1026)}),
         B = make_buffer("B", dtypes::float32, {make_int(1024)});
  Buffer S = make_buffer("A_shared", dtypes::float32, {make_int(1026)}, "shared");
  Var i0 = make_var("i_0"), i1 = make_var("i_1");
  IterVar v0 = iter("v0", make_int(1026)), vi = iter("vi", make_int(1024));
  Stmt copy = store(S, load(A, {v0.var}), {v0.var});
  std::vector<BufferRegion> cr{point_region(A, {v0.var})}, cw{point_region(S, {v0.var})};
  Stmt fetch;
  if (cooperative) {
    Var a0 = make_var("ax0_0"), a1 = make_var("ax0_1");
    Expr at = Expr(a0) * 128 + a1;
    Stmt realize = block("A_shared", {v0}, {Expr(i0) * 128 + at}, cr, cw, copy, nullptr,
                         lt(at, make_int(130)));
    fetch =
        make_for(a0, make_int(0), make_int(2),
                 make_for(a1, make_int(0), make_int(128), realize, ForKind::bound, "threadIdx.x"));
  } else {
    Var a = make_var("ax0");
    fetch = make_for(a, make_int(0), make_int(130),
                     block("A_shared", {v0}, {Expr(i0) * 128 + a}, cr, cw, copy));
  }
  Expr at = vi.var;
  Stmt sum = store(B, load(S, {at}) + load(S, {at + 1}) + load(S, {at + 2}), {at});
  Stmt use = block("B", {vi}, {Expr(i0) * 128 + i1}, {{S, {{at, make_int(3)}}}},
                   {point_region(B, {at})}, sum);
  Stmt loops = make_for(
      i0, make_int(0), make_int(8),
      make_for(i1, make_int(0), make_int(128), seq({fetch, use}), ForKind::bound, "threadIdx.x"),
      ForKind::bound, "blockIdx.x");
  return make_func("main", {buffer_param(A), buffer_param(B)}, root_block(loops, {S}), noalias());
}

/// C = A * B with an initialised reduction; optionally the outermost loop parallel and the
/// innermost vectorized.
inline PrimFunc matmul(Expr n, Expr m, Expr k, bool scheduled, DType type = dtypes::float32) {
  Buffer A = make_buffer("A", type, {n, k}), B = make_buffer("B", type, {k, m}),
         C = make_buffer("C", type, {n, m});
  IterVar vi = iter("vi", n), vj = iter("vj", m), vk = iter("vk", k, IterKind::reduce);
  Expr i = vi.var, j = vj.var, r = vk.var;
  Stmt body = store(C, load(C, {i, j}) + load(A, {i, r}) * load(B, {r, j}), {i, j});
  Var li = make_var("i"), lj = make_var("j"), lk = make_var("k");
  Stmt realize =
      block("C", {vi, vj, vk}, {li, lj, lk}, {point_region(A, {i, r}), point_region(B, {r, j})},
            {point_region(C, {i, j})}, body, store(C, make_zero(type), {i, j}));
  Stmt loops = scheduled ? make_for(lk, make_int(0), k,
                                    make_for(lj, make_int(0), m, realize, ForKind::vectorized))
                         : make_for(lj, make_int(0), m, make_for(lk, make_int(0), k, realize));
  loops = make_for(li, make_int(0), n, loops, scheduled ? ForKind::parallel : ForKind::serial);
  return make_func("main", {buffer_param(A), buffer_param(B), buffer_param(C)}, root_block(loops),
                   noalias());
}

}  // namespace weft::testing
