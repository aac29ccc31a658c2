// SPDX-License-Identifier: Apache-2.0
// Element-wise maps of many small lists of arrays, such as the parameters of a model, in few
// launches: a thread finds the list that its element is of.

#include "weft/devices/many_maps.h"

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/share.h"

namespace weft::device {

using ir::Expr;
using ir::Exprs;

namespace {

constexpr std::int64_t kManyThreads = 256;
constexpr std::size_t kMostLists = 16;
constexpr std::size_t kMostPointers = 112;  // OpenCL promises 1024 bytes of arguments

std::int64_t elements_of(const MapOfMany& m) { return m.outs[0].size(); }

ir::PrimFunc many_maps_program(std::span<const MapOfMany> maps, const Map& given,
                               const MapValues& values) {
  Builder p(true);
  std::vector<std::vector<ir::Buffer>> outs(maps.size()), arrays(maps.size());
  for (std::size_t m = 0; m < maps.size(); ++m) {
    for (std::size_t k = 0; k < maps[m].outs.size(); ++k)
      outs[m].push_back(p.buffer(cat("out", m, "_", k), maps[0].outs[k].elem()));
    for (std::size_t k = 0; k < maps[m].arrays.size(); ++k)
      arrays[m].push_back(p.buffer(cat("a", m, "_", k), maps[0].arrays[k]->elem()));
  }
  const Expr blocks = p.integer("blocks");
  const Exprs ends = p.integers("end", static_cast<int>(maps.size()));
  Exprs numbers;
  for (std::size_t k = 0; k < given.numbers.size(); ++k)
    numbers.push_back(p.number(cat("c", k), given.compute));
  const auto list = [&](std::size_t m, const Expr& at) {
    Exprs loads;
    for (std::size_t k = 0; k < arrays[m].size(); ++k)
      loads.push_back(ir::load(arrays[m][k], {maps[0].arrays[k]->ndim() == 0 ? p.at(0) : at}));
    return ir::with_values(loads, [&](const Exprs& loaded) {
      Exprs found = values(loaded, numbers);
      for (std::size_t k = 0; k < found.size(); ++k)
        found[k] = convert_value(found[k], maps[0].outs[k].elem());
      return ir::with_shared(found, [&](const Exprs& v) {
        std::vector<ir::Stmt> stores;
        for (std::size_t k = 0; k < v.size(); ++k)
          stores.push_back(ir::store(outs[m][k], v[k], {at}));
        return stores.size() == 1 ? stores[0] : ir::seq(stores);
      });
    });
  };
  const auto body = [&](const Expr& i) {
    ir::Stmt out;
    for (std::size_t m = maps.size(); m-- > 0;)
      out = ir::if_then(ir::lt(i, ends[m]), list(m, m ? i - ends[m - 1] : i), out);
    return out;
  };
  return p.finish(p.bound("blockIdx.x", blocks, [&](const Expr& block) {
    return p.bound("threadIdx.x", p.at(kManyThreads),
                   [&](const Expr& thread) { return body(block * p.at(kManyThreads) + thread); });
  }));
}

void run_maps(std::span<const MapOfMany> maps, const Map& given, const MapValues& values) {
  ProgramKey key(
      "many maps",
      {static_cast<std::int64_t>(given.key), static_cast<std::int64_t>(given.compute),
       static_cast<std::int64_t>(given.numbers.size()), static_cast<std::int64_t>(maps.size()),
       static_cast<std::int64_t>(maps[0].outs.size())});
  for (const NDArray& x : maps[0].outs) key.add(static_cast<std::int64_t>(x.elem()));
  for (const NDArray* x : maps[0].arrays)
    key.add(static_cast<std::int64_t>(x->elem()) * 2 + (x->ndim() == 0));
  ProgramCall call(maps[0].outs[0].device());
  std::int64_t total = 0;
  for (const MapOfMany& m : maps) {
    for (const NDArray& x : m.outs) call.array(x);
    for (const NDArray* x : m.arrays) call.array(*x);
    total += elements_of(m);
  }
  call.integer(ceil_div(total, kManyThreads));
  total = 0;
  for (const MapOfMany& m : maps) call.integer(total += elements_of(m));
  for (const Scalar& n : given.numbers) call.number(n, given.compute);
  call.run(key, [&] { return many_maps_program(maps, given, values); });
}

}  // namespace

void grid_maps(std::span<const MapOfMany> maps, const Map& given, const MapValues& values) {
  const std::size_t pointers = maps[0].outs.size() + maps[0].arrays.size();
  const std::size_t most = std::clamp<std::size_t>(kMostPointers / pointers, 1, kMostLists);
  // Few numbers of lists, so that there are few programs.
  for (std::size_t at = 0; at < maps.size();) {
    std::size_t some = most;
    while (some > maps.size() - at) some = (some + 1) / 2;
    run_maps(maps.subspan(at, some), given, values);
    at += some;
  }
}

}  // namespace weft::device
