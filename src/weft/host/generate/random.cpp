// SPDX-License-Identifier: Apache-2.0
// Random numbers: the words of sixteen counters at a time (philox.cpp), and what is made of them.

#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
#include "weft/operators/random_words.h"

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

/// What is made of `width` words: numbers[0], numbers[1] and so on.
using Made =
    std::function<Stmt(const ir::Exprs& words, const std::function<Stmt(const ir::Exprs&)>&)>;

/// out = numbers of n counters; `width` words give `each` of them.
ir::PrimFunc function(Program& p, DType type, std::int64_t width, std::int64_t each,
                      const Made& made) {
  const Expr seed = p.scalar("seed", dtypes::uint64), first = p.scalar("first", dtypes::uint64);
  const std::int64_t parts = 4 / width;  // of a counter
  ir::Buffer out = p.buffer("out", type, Expr(p.n) * number(parts * each)),
             words = local("words", dtypes::uint32, 4 * kCounters);
  auto block = [&](const Expr& counter, const Expr& counters) {
    Stmt fill = ir::evaluate(ir::call_typed(
        dtypes::int32, "call_extern",
        {ir::make_string("weft_random_words"), seed, first + ir::cast(dtypes::uint64, counter),
         ir::call("address_of", {ir::load(words, {number(0)})})}));
    Stmt use = vectors("l", counters * number(parts), [&](const Expr& l) {
      ir::Exprs loads;
      for (std::int64_t k = 0; k < width; ++k)
        loads.push_back(ir::load(words, {l * number(width) + number(k)}));
      return with_values(loads, [&](const ir::Exprs& w) {
        return made(w, [&](const ir::Exprs& values) {
          std::vector<Stmt> all;
          for (std::int64_t k = 0; k < each; ++k)
            all.push_back(ir::store(out, values[static_cast<std::size_t>(k)],
                                    {(counter * number(parts) + l) * number(each) + number(k)}));
          return ir::seq(std::move(all));
        });
      });
    });
    return ir::seq({fill, use});
  };
  const Expr whole = ir::floordiv(p.n, number(kCounters)), rest = whole * number(kCounters);
  return p.finish(ir::allocate(
      words,
      ir::seq({loop("i", whole,
                    [&](const Expr& i) { return block(i * number(kCounters), number(kCounters)); }),
               ir::if_then(ir::lt(rest, p.n), block(rest, Expr(p.n) - rest))})));
}

ir::PrimFunc numbers_function(RandomKernel kind) {
  const RandomNumbers numbers = numbers_of(kind);
  const std::int64_t width = operators::random_words(numbers);
  Program p;
  return function(p, operators::random_type(numbers), width,
                  operators::random_each(numbers) * width / 4,
                  [&](const ir::Exprs& words, const auto& then) {
                    return operators::random_of_words(numbers, words, then);
                  });
}

/// low + the upper 64 bits of range times 64 random ones.
ir::PrimFunc integers_function() {
  Program p;
  const Expr range = p.scalar("range", dtypes::uint32), low = p.scalar("low", dtypes::int64);
  return function(p, dtypes::int64, 2, 1, [&](const ir::Exprs& words, const auto& then) {
    auto times = [&](const Expr& w) {
      return ir::cast(dtypes::uint64, w) * ir::cast(dtypes::uint64, range);
    };
    auto upper = [](const Expr& x) {
      return ir::call("shift_right", {x, ir::make_const(32, dtypes::uint64)});
    };
    const Expr value = upper(times(words[1]) + upper(times(words[0])));
    return then({ir::cast(dtypes::int64, value) + low});
  });
}

}  // namespace

std::vector<Kernel> random_kernels() {
  static constexpr const char* names[] = {"bits", "uniform", "normal", "uniform64"};
  std::vector<Kernel> out;
  for (int k = 0; k < kRandomKernels; ++k)
    out.push_back({entry(KernelEntry::random, k, Elem::float32), cat("w_random_", names[k]),
                   numbers_function(static_cast<RandomKernel>(k))});
  out.push_back({entry(KernelEntry::random_integers, 0, Elem::int64), "w_random_integers",
                 integers_function()});
  out.back().parameters =
      "int64_t n, uint64_t seed, uint64_t first, uint32_t range, int64_t low, void* out";
  return out;
}

}  // namespace weft::generate
