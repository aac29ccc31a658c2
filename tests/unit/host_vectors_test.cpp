// SPDX-License-Identifier: Apache-2.0
// Parts of matrix products of all processor levels that this processor runs: packed panels, the
// ends of register tiles, products with a vector, at every small size beside plain sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "vector_level.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/levels.h"
#include "weft/host/vector_kernels.h"

namespace weft {

#define WEFT_DECLARE(level) extern "C" const KernelEntry weft_kernels_vectors_##level[];
WEFT_LEVELS(WEFT_DECLARE)
#undef WEFT_DECLARE

namespace {

using I = std::int64_t;
constexpr VectorShape shape_base = kShapeBase;
[[maybe_unused]] constexpr VectorShape shape_avx2 = kShapeAvx2, shape_avx512 = kShapeAvx512;

struct Level {
  std::string name;
  VectorShape shape;
  const KernelEntry* list;

  template <typename F>
  F get(VectorKernel kernel, Elem e) const {
    for (const KernelEntry* k = list; k->table >= 0; ++k) {
      if (k->table == KernelEntry::vector && k->row == static_cast<int>(kernel) &&
          k->elem == static_cast<int>(e))
        return reinterpret_cast<F>(k->function);
    }
    ADD_FAILURE() << name << " has no kernel " << static_cast<int>(kernel);
    return nullptr;
  }
};

std::vector<Level> levels_that_run() {
  std::vector<Level> out;
#define WEFT_ADD(level) \
  if (runs_here(#level)) out.push_back({#level, shape_##level, weft_kernels_vectors_##level});
  WEFT_LEVELS(WEFT_ADD)
#undef WEFT_ADD
  return out;
}

template <typename T>
std::vector<T> drawn(I n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> number(-1, 1);
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& x : out) x = number(random);
  return out;
}

template <typename T>
void near(T got, double want, double size, const std::string& where) {
  EXPECT_NEAR(static_cast<double>(got), want,
              (size + 1) * 16 * static_cast<double>(std::numeric_limits<T>::epsilon()))
      << where;
}

template <typename T>
class Vectors : public testing::Test {
 protected:
  static constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Vectors, Types);

TYPED_TEST(Vectors, PanelsHoldRowsSideBySide) {
  using T = TypeParam;
  for (const Level& level : levels_that_run()) {
    for (const bool columns : {false, true}) {
      const I width = columns ? level.shape.columns(sizeof(T)) : level.shape.rows;
      const auto fn = level.get<PackFn>(
          columns ? VectorKernel::interleave_columns : VectorKernel::interleave_rows, this->kElem);
      for (I rows = 1; rows <= width + 9; ++rows) {
        for (const I k : {1, 3, 4, 7, 8, 9, 17, 30}) {
          // No number lies behind the last row.
          const std::vector<T> a = drawn<T>((rows - 1) * (k + 2) + k, 1);
          std::vector<T> out(static_cast<std::size_t>(k * width + 16), T(-7));
          fn(a.data(), out.data(), rows, k, k + 2, 1);
          for (I p = 0; p < k; ++p) {
            for (I r = 0; r < std::min(rows, width); ++r)
              ASSERT_EQ(out[static_cast<std::size_t>(p * width + r)],
                        a[static_cast<std::size_t>(r * (k + 2) + p)])
                  << level.name << " width " << width << " rows " << rows << " k " << k;
          }
        }
      }
    }
  }
}

TYPED_TEST(Vectors, EndsOfTilesAreSums) {
  using T = TypeParam;
  for (const Level& level : levels_that_run()) {
    const I mr = level.shape.rows, nr = level.shape.columns(sizeof(T)), low = level.shape.low();
    const std::pair<VectorKernel, I> kernels[] = {{VectorKernel::edge, mr},
                                                  {VectorKernel::edge_low, low},
                                                  {VectorKernel::edge_middle, 2 * low}};
    for (const auto& [kernel, most] : kernels) {
      const auto fn = level.get<EdgeFn>(kernel, this->kElem);
      for (const I k : {1, 2, 5, 33}) {
        const std::vector<T> a = drawn<T>(mr * k, 2), b = drawn<T>(nr * k, 3);
        for (I m = 1; m <= most; ++m) {
          for (I n = 1; n <= nr; n += n < 3 ? 1 : 5) {
            for (const I add : {0, 1}) {
              const I ldc = nr + 3;
              std::vector<T> c = drawn<T>((mr + 1) * ldc, 4);
              const std::vector<T> before = c;
              fn(a.data(), b.data(), c.data(), k, 0, ldc, m, n, add);
              for (I i = 0; i <= mr; ++i) {
                for (I j = 0; j < ldc; ++j) {
                  const auto at = static_cast<std::size_t>(i * ldc + j);
                  if (i >= m || j >= n) {
                    ASSERT_EQ(c[at], before[at]) << level.name << " beyond " << m << " x " << n;
                    continue;
                  }
                  double want = add ? static_cast<double>(before[at]) : 0;
                  for (I p = 0; p < k; ++p)
                    want += static_cast<double>(a[static_cast<std::size_t>(p * mr + i)]) *
                            static_cast<double>(b[static_cast<std::size_t>(p * nr + j)]);
                  near(c[at], want, static_cast<double>(k), level.name);
                }
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(Vectors, RowsByAVector) {
  using T = TypeParam;
  for (const Level& level : levels_that_run()) {
    for (const I rows : {1, 4}) {
      const auto fn =
          level.get<DotFn>(rows == 4 ? VectorKernel::dot_four : VectorKernel::dot_one, this->kElem);
      for (I k = 0; k <= 140; ++k) {
        // No number lies behind the last row.
        const std::vector<T> a = drawn<T>((rows - 1) * (k + 3) + k, 5), x = drawn<T>(k, 6);
        std::vector<T> y(static_cast<std::size_t>(rows), T(-7));
        fn(a.data(), x.data(), y.data(), k, k + 3);
        for (I r = 0; r < rows; ++r) {
          double want = 0;
          for (I p = 0; p < k; ++p)
            want += static_cast<double>(a[static_cast<std::size_t>(r * (k + 3) + p)]) *
                    static_cast<double>(x[static_cast<std::size_t>(p)]);
          near(y[static_cast<std::size_t>(r)], want, static_cast<double>(k), level.name);
        }
      }
    }
  }
}

TYPED_TEST(Vectors, TwoAndFourRowsByAMatrix) {
  using T = TypeParam;
  for (const Level& level : levels_that_run()) {
    for (const I rows : {2, 4}) {
      const auto fn = level.get<ColumnsRowsFn>(
          rows == 2 ? VectorKernel::columns_two : VectorKernel::columns_four, this->kElem);
      for (const I m : {1, 2, 7, 16, 31, 64, 95, 97, 193, 230, 400}) {
        for (const I k : {1, 3, 8}) {
          const I col = m + 1, xs = k + 2, ys = m + 4;
          const std::vector<T> a = drawn<T>((k - 1) * col + m, 7), x = drawn<T>(rows * xs, 8);
          std::vector<T> y = drawn<T>(rows * ys, 9);
          const std::vector<T> before = y;
          fn(a.data(), x.data(), y.data(), m, k, col, xs, ys);
          for (I r = 0; r < rows; ++r) {
            for (I i = 0; i < ys; ++i) {
              const auto at = static_cast<std::size_t>(r * ys + i);
              double want = static_cast<double>(before[at]);
              for (I p = 0; i < m && p < k; ++p)
                want += static_cast<double>(a[static_cast<std::size_t>(p * col + i)]) *
                        static_cast<double>(x[static_cast<std::size_t>(r * xs + p)]);
              near(y[at], want, static_cast<double>(k), level.name);
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(Vectors, ProductsOfElements) {
  using T = TypeParam;
  for (const Level& level : levels_that_run()) {
    const auto fn = level.get<ProductsFn>(VectorKernel::products, this->kElem);
    for (const I m : {1, 3, 8, 17, 32, 67, 96, 133}) {
      for (const I k : {0, 1, 3, 7}) {
        for (const auto& [as, xs] : {std::pair<I, I>{m + 1, m + 3}, {0, m}, {m, 0}}) {
          const std::vector<T> a = drawn<T>(k * as + m, 10), x = drawn<T>(k * xs + m, 11);
          std::vector<T> y = drawn<T>(m + 2, 12);
          const std::vector<T> before = y;
          fn(a.data(), x.data(), y.data(), m, k, as, xs);
          for (I i = 0; i < m + 2; ++i) {
            double want = static_cast<double>(before[static_cast<std::size_t>(i)]);
            for (I p = 0; i < m && p < k; ++p)
              want += static_cast<double>(a[static_cast<std::size_t>(p * as + i)]) *
                      static_cast<double>(x[static_cast<std::size_t>(p * xs + i)]);
            near(y[static_cast<std::size_t>(i)], want, static_cast<double>(k), level.name);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
