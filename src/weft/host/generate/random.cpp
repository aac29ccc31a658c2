// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox 4x32-10 (Salmon and others, SC 2011) of counters first, first + 1, ..., a
// lane each, and what is made of the four words of a counter.

#include "weft/operators/random.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

using operators::RandomNumbers;

RandomNumbers numbers_of(RandomKernel kind) {
  switch (kind) {
    case RandomKernel::bits: return RandomNumbers::bits;
    case RandomKernel::uniform: return RandomNumbers::uniform;
    case RandomKernel::normal: return RandomNumbers::normal;
    default: return RandomNumbers::uniform64;
  }
}

ir::PrimFunc function(RandomKernel kind) {
  const RandomNumbers numbers = numbers_of(kind);
  const std::int64_t each = operators::random_each(numbers);
  Program p;
  const Expr seed = p.scalar("seed", dtypes::uint64), first = p.scalar("first", dtypes::uint64);
  ir::Buffer out = p.buffer("out", operators::random_type(numbers), Expr(p.n) * number(each));
  return p.finish(vectors("g", p.n, [&](const Expr& g) {
    return operators::random_values(
        numbers, seed, first + ir::cast(dtypes::uint64, g), [&](const ir::Exprs& values) {
          std::vector<Stmt> all;
          for (std::size_t k = 0; k < values.size(); ++k)
            all.push_back(ir::store(out, values[k],
                                    {g * number(each) + number(static_cast<std::int64_t>(k))}));
          return ir::seq(std::move(all));
        });
  }));
}

}  // namespace

std::vector<Kernel> random_kernels() {
  static constexpr const char* names[] = {"bits", "uniform", "normal", "uniform64"};
  std::vector<Kernel> out;
  for (int k = 0; k < kRandomKernels; ++k)
    out.push_back({entry(KernelEntry::random, k, Elem::float32), cat("w_random_", names[k]),
                   function(static_cast<RandomKernel>(k))});
  return out;
}

}  // namespace weft::generate
