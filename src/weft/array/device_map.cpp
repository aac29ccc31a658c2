// SPDX-License-Identifier: Apache-2.0
// Element-wise maps on a grid: a block of 256 threads handles 1024 elements, neighbours in
// neighbouring threads, four loads of each operand in flight before the first store. Compact
// operands at addresses of whole vectors move 16 bytes at a time.

#include <algorithm>

#include "weft/array/device_grid.h"
#include "weft/array/device_turn.h"
#include "weft/array/nest.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kThreads = 256, kEach = 4, kPerBlock = kThreads * kEach;

/// Axes of all operands merged where all of them allow it.
void collapse(Dims& shape, Dims* strides, int count) {
  int kept = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0;
    for (int k = 0; joins && k < count; ++k)
      joins = strides[k][kept - 1] == strides[k][i] * shape[i];
    if (joins) --kept;
    std::int64_t extent = joins ? shape[kept] * shape[i] : shape[i];
    shape[kept] = extent;
    for (int k = 0; k < count; ++k) strides[k][kept] = strides[k][i];
    ++kept;
  }
  if (kept == 0) {
    shape = Dims{1};
    for (int k = 0; k < count; ++k) strides[k] = Dims{0};
    return;
  }
  shape.resize(kept);
  for (int k = 0; k < count; ++k) strides[k].resize(kept);
}

/// Elements of compact operands that move together; 1 where an address is no multiple.
std::int64_t lanes_of(const NDArray& out, std::span<const NDArray* const> in) {
  constexpr std::int64_t kBytes = 16, kMost = 8;
  std::int64_t widest = elem_bytes(out.elem());
  for (const NDArray* a : in) widest = std::max<std::int64_t>(widest, elem_bytes(a->elem()));
  const std::int64_t lanes = std::min(kMost, kBytes / widest);
  auto aligned = [&](const NDArray& a) {
    const std::int64_t bytes = elem_bytes(a.elem());
    return (a.handle()->address() + static_cast<std::uint64_t>(a.offset() * bytes)) %
               static_cast<std::uint64_t>(lanes * bytes) ==
           0;
  };
  bool all = aligned(out);
  for (const NDArray* a : in) all = all && aligned(*a);
  return all ? lanes : 1;
}

}  // namespace

void grid_map(const NDArray& out, const Map& given) {
  constexpr int kMost = 12;
  // Operands that lie transposed beside the result are turned first: reads that step from line to
  // line cost more than another pass along memory.
  Map map = given;
  std::vector<NDArray> ready;
  std::vector<const NDArray*> operands;
  for (const NDArray* a : given.arrays) ready.push_back(turned_for(out, *a));
  for (const NDArray& a : ready) operands.push_back(&a);
  map.arrays = operands;
  const int count = static_cast<int>(map.arrays.size());
  WEFT_CHECK(count < kMost, "a map of ", count, " arrays");
  bool flat = out.is_contiguous();
  for (const NDArray* a : map.arrays) flat &= a->is_contiguous() && a->shape() == out.shape();
  Dims shape, strides[kMost];
  std::int64_t most = out.size() + 2 * kPerBlock;
  if (!flat) {
    shape = out.shape();
    strides[0] = out.strides();
    for (int k = 0; k < count; ++k)
      strides[k + 1] = broadcast_strides(*map.arrays[static_cast<std::size_t>(k)], shape);
    collapse(shape, strides, count + 1);
    for (int k = 0; k <= count; ++k) {
      std::int64_t reach = 0;
      for (int i = 0; i < shape.size(); ++i) reach += std::abs(strides[k][i]) * shape[i];
      most = std::max(most, reach);
    }
    if (shape.size() == 1) {
      flat = true;
      for (int k = 0; k <= count; ++k) flat &= strides[k][0] == 1;
    }
  }
  const bool narrow = fits_narrow(most);
  const int rank = flat ? 0 : shape.size();
  const std::int64_t lanes = flat ? lanes_of(out, map.arrays) : 1;
  // Of a block: a vector of each thread, or four elements.
  const std::int64_t per_block = kThreads * (lanes > 1 ? lanes : kEach);
  Key key{1 | map.key << 8, 0, 0, map.numbers.size()};
  key[1] = static_cast<std::uint64_t>(rank) | static_cast<std::uint64_t>(narrow) << 8 |
           static_cast<std::uint64_t>(out.elem()) << 9 |
           static_cast<std::uint64_t>(map.compute) << 13 | static_cast<std::uint64_t>(count) << 17 |
           static_cast<std::uint64_t>(lanes) << 24;
  for (int k = 0; k < count; ++k)
    key[2] |= static_cast<std::uint64_t>(map.arrays[static_cast<std::size_t>(k)]->elem())
              << (5 * k);
  Call call(out.device());
  call.array(out);
  for (const NDArray* a : map.arrays) call.array(*a);
  call.integer(out.size()).integer((out.size() + per_block - 1) / per_block);
  for (int i = 0; i < rank; ++i) call.integer(shape[i]);
  for (int k = 0; k <= count && rank > 0; ++k) {
    for (int i = 0; i < rank; ++i) call.integer(strides[k][i]);
  }
  for (const Scalar& s : map.numbers) call.number(s, map.compute);
  call.run(key, [&] {
    Builder p(narrow);
    ir::Buffer result = p.buffer("out", out.elem());
    std::vector<ir::Buffer> in;
    for (int k = 0; k < count; ++k)
      in.push_back(p.buffer(cat("a", k), map.arrays[static_cast<std::size_t>(k)]->elem()));
    Expr size = p.integer("size"), blocks = p.integer("blocks");
    std::vector<Expr> extents = p.integers("d", rank);
    std::vector<std::vector<Expr>> steps;
    for (int k = 0; k <= count && rank > 0; ++k)
      steps.push_back(p.integers(cat("s", k, "_"), rank));
    std::vector<Expr> numbers;
    for (std::size_t k = 0; k < map.numbers.size(); ++k)
      numbers.push_back(p.number(cat("c", k), map.compute));
    auto element = [&](const Expr& i, Expr& to) {
      std::vector<Expr> at(static_cast<std::size_t>(count) + 1, i);
      if (rank > 0) at = positions(i, extents, steps);
      to = at[0];
      std::vector<Expr> loads;
      for (std::size_t k = 0; k < in.size(); ++k) loads.push_back(ir::load(in[k], {at[k + 1]}));
      return convert_value(map.value(loads, numbers), out.elem());
    };
    return p.finish(p.bound("blockIdx.x", blocks, [&](const Expr& b) {
      return p.bound("threadIdx.x", p.at(kThreads), [&](const Expr& t) {
        const Expr inside = ir::le(b * p.at(per_block) + p.at(per_block), size);
        if (lanes > 1) {
          auto move = [&](const Expr& v) {
            Expr to, value = element((b * p.at(kThreads) + t) * p.at(lanes) + v, to);
            return ir::store(result, value, {to});
          };
          const Stmt whole = p.loop("v", p.at(lanes), move, ir::ForKind::vectorized);
          return ir::if_then(inside, whole, p.loop("j", p.at(lanes), [&](const Expr& j) {
            Expr i = (b * p.at(kThreads) + t) * p.at(lanes) + j, to, value = element(i, to);
            return ir::if_then(ir::lt(i, size), ir::store(result, value, {to}));
          }));
        }
        Expr base = b * p.at(kPerBlock) + t;
        std::vector<Stmt> stores;
        std::vector<std::pair<ir::Var, Expr>> values;
        for (std::int64_t j = 0; j < kEach; ++j) {
          Expr to, value = element(base + p.at(j * kThreads), to);
          ir::Var v = ir::make_var(cat("v", j), value->dtype);
          values.emplace_back(v, value);
          stores.push_back(ir::store(result, v, {to}));
        }
        Stmt full = ir::seq(std::move(stores));
        for (std::size_t j = values.size(); j-- > 0;)
          full = ir::let_stmt(values[j].first, values[j].second, full);
        Stmt part = p.loop("j", p.at(kEach), [&](const Expr& j) {
          Expr i = base + j * p.at(kThreads), to, value = element(i, to);
          return ir::if_then(ir::lt(i, size), ir::store(result, value, {to}));
        });
        return ir::if_then(inside, full, part);
      });
    }));
  });
}

}  // namespace weft::device
