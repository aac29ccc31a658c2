// SPDX-License-Identifier: Apache-2.0
// Kernels of all processor levels that this processor runs: arithmetic of float32 has the same
// bits, functions agree within units in the last place, since only some levels fuse products and
// sums.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "vector_level.h"
#include "weft/array/ops.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/levels.h"

namespace weft {

#define WEFT_DECLARE_LIST(group, level) \
  extern "C" const KernelEntry weft_kernels_##group##_##level[];
#define WEFT_DECLARE(level) WEFT_ROW_GROUPS(WEFT_DECLARE_LIST, level)
WEFT_LEVELS(WEFT_DECLARE)
#undef WEFT_DECLARE
#undef WEFT_DECLARE_LIST

namespace {

struct Level {
  std::string name;
  std::vector<const KernelEntry*> lists;
};

std::vector<Level> levels_that_run() {
  std::vector<Level> out;
#define WEFT_LIST(group, level) weft_kernels_##group##_##level,
#define WEFT_ADD(level) \
  if (runs_here(#level)) out.push_back({#level, {WEFT_ROW_GROUPS(WEFT_LIST, level)}});
  WEFT_LEVELS(WEFT_ADD)
#undef WEFT_ADD
#undef WEFT_LIST
  return out;
}

ElementwiseFn kernel_of(const Level& level, int row) {
  for (const KernelEntry* list : level.lists) {
    for (const KernelEntry* k = list; k->table >= 0; ++k) {
      if (k->table == KernelEntry::elementwise && k->row == row && k->layout == 0 &&
          k->elem == static_cast<int>(Elem::float32))
        return reinterpret_cast<ElementwiseFn>(k->function);
    }
  }
  return nullptr;
}

/// Floats between two, both ends of the order included; 0 for equal ones and for two NaN.
std::int64_t steps_between(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : INT32_MAX;
  auto place = [](float v) {
    const auto bits = std::bit_cast<std::int32_t>(v);
    return bits < 0 ? std::int64_t{INT32_MIN} - bits : std::int64_t{bits};
  };
  return std::abs(place(a) - place(b));
}

TEST(Levels, functions_of_all_levels_agree_within_units_in_the_last_place) {
  // Both sides of a comparison may be off by what docs/design/array.md has.
  const std::map<std::string_view, std::int64_t> bounds = {{"abs", 0},
                                                           {"add", 0},
                                                           {"cbrt", 2},
                                                           {"ceil", 0},
                                                           {"divide", 0},
                                                           {"elu", 3},
                                                           {"erf", 3},
                                                           {"exp", 2},
                                                           {"expm1", 3},
                                                           {"floor", 0},
                                                           {"gelu", 4},
                                                           {"replace_nan", 0},
                                                           {"maximum_number", 0},
                                                           {"hardswish", 0},
                                                           {"leaky_relu", 0},
                                                           {"greater", 0},
                                                           {"log", 2},
                                                           {"log1p", 3},
                                                           {"maximum", 0},
                                                           {"multiply", 0},
                                                           {"negative", 0},
                                                           {"relu", 0},
                                                           {"round", 0},
                                                           {"rsqrt", 0},
                                                           {"sigmoid", 4},
                                                           {"sign", 0},
                                                           {"silu", 4},
                                                           {"sqrt", 0},
                                                           {"square", 0},
                                                           {"subtract", 0},
                                                           {"tanh", 3}};
  constexpr std::size_t kCount = 20011;
  std::mt19937 random(291126);
  std::vector<float> x, y;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double size = std::uniform_real_distribution<double>(-8, 2)(random);
    x.push_back(static_cast<float>((i % 2 ? 1 : -1) * std::pow(10, size)));
    y.push_back(static_cast<float>(std::uniform_real_distribution<double>(-3, 3)(random)));
  }
  const float special[] = {0.0F,   -0.0F,   INFINITY, -INFINITY, NAN,
                           1e-45F, -1e-45F, 3.4e38F,  -3.4e38F};
  std::copy(std::begin(special), std::end(special), x.begin());
  const std::vector<Level> levels = levels_that_run();
  ASSERT_EQ(levels[0].name, "base");
  std::size_t seen = 0;
  for (int row = 0; row < op_count(); ++row) {
    const OpInfo& op = info(static_cast<Op>(row));
    const auto bound = bounds.find(op.name);
    if (bound == bounds.end()) continue;
    ++seen;
    const bool truth = op.rule == Rule::boolean;
    const void* in[2] = {x.data(), y.data()};
    std::vector<float> want(kCount), got(kCount);
    ASSERT_NE(kernel_of(levels[0], row), nullptr) << op.name;
    kernel_of(levels[0], row)(kCount, in, want.data());
    for (std::size_t k = 1; k < levels.size(); ++k) {
      ASSERT_NE(kernel_of(levels[k], row), nullptr) << op.name << " " << levels[k].name;
      kernel_of(levels[k], row)(kCount, in, got.data());
      // gelu below 0 is exp of about -x x / 2, whose last place is x x places of the result.
      auto more = [&](float v) {
        return op.name == "gelu" && v < 0 ? 2 * double{v} * double{v} : 0;
      };
      for (std::size_t i = 0; i < (truth ? kCount / 4 : kCount); ++i)
        ASSERT_LE(static_cast<double>(steps_between(got[i], want[i])),
                  static_cast<double>(bound->second) + more(x[i]))
            << op.name << "(" << x[i] << ", " << y[i] << ") is " << got[i] << " with "
            << levels[k].name << ", " << want[i] << " without";
    }
  }
  EXPECT_EQ(seen, bounds.size());
}

}  // namespace
}  // namespace weft
