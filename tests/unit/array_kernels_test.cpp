// SPDX-License-Identifier: Apache-2.0
// The table of ahead-of-time kernels: complete, and the same element gives the same bits wherever
// it stands and whichever layout of the kernel runs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "weft/array/ops.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/vector_sort.h"

namespace weft {
namespace {

constexpr Elem kComputed[] = {Elem::boolean,   Elem::int8,    Elem::int16,   Elem::int32,
                              Elem::int64,     Elem::uint8,   Elem::uint16,  Elem::uint32,
                              Elem::uint64,    Elem::float32, Elem::float64, Elem::complex64,
                              Elem::complex128};

int bit_of(Elem e) {
  return e == Elem::boolean   ? 1
         : is_signed_int(e)   ? 2
         : is_unsigned_int(e) ? 4
         : is_complex(e)      ? 16
                              : 8;
}

/// `count` elements of the type: whole numbers of both signs, fractions for reals.
std::string values_of(Elem e, std::int64_t count, std::mt19937& random) {
  std::string out(static_cast<std::size_t>(count * elem_bytes(e)), '\0');
  std::uniform_real_distribution<double> draw(-3, 6);
  for (std::int64_t i = 0; i < count; ++i) {
    double v = draw(random);
    if (e == Elem::boolean) v = v > 1;
    else if (is_unsigned_int(e)) v = std::fabs(std::trunc(v));
    else if (is_integer(e)) v = std::trunc(v);
    Scalar s =
        is_integer(e) || e == Elem::boolean ? Scalar(static_cast<std::int64_t>(v)) : Scalar(v);
    write_scalar(s, e, &out[static_cast<std::size_t>(i * elem_bytes(e))]);
  }
  return out;
}

int result_bytes(const OpInfo& row, Elem e) {
  return row.rule == Rule::boolean ? 1 : elem_bytes(row.rule == Rule::real ? real_of(e) : e);
}

TEST(Kernels, every_row_has_one_for_every_type_it_names) {
  for (Elem e : kComputed) {
    const int at = static_cast<int>(e);
    for (int k = 0; k < op_count(); ++k) {
      const OpInfo& row = info(static_cast<Op>(k));
      const bool wanted = (row.types & bit_of(e)) != 0;
      EXPECT_EQ(kernels().elementwise[k][at] != nullptr, wanted) << row.name << " " << name_of(e);
    }
    for (int k = 0; k < reduce_op_count(); ++k) {
      const ReduceInfo& row = info(static_cast<ReduceOp>(k));
      const bool wanted = (row.types & bit_of(e)) != 0;
      EXPECT_EQ(kernels().reduce[k][at] != nullptr, wanted) << row.name << " " << name_of(e);
      EXPECT_EQ(kernels().accumulate[k][at] != nullptr, wanted) << row.name << " " << name_of(e);
      EXPECT_EQ(kernels().scan[k][at] != nullptr, wanted) << row.name << " " << name_of(e);
    }
    EXPECT_NE(kernels().select[at], nullptr) << name_of(e);
  }
  for (int a = 0; a < kElems; ++a) {
    for (int b = 0; b < kElems; ++b) EXPECT_NE(kernels().cast[a][b], nullptr) << a << " " << b;
  }
  for (int k = 0; k < kRowKernels; ++k) {
    EXPECT_NE(kernels().row[k][static_cast<int>(Elem::float32)], nullptr) << k;
    EXPECT_NE(kernels().row[k][static_cast<int>(Elem::float64)], nullptr) << k;
  }
}

TEST(Kernels, an_element_gives_the_same_bits_wherever_it_stands) {
  constexpr std::int64_t kCount = 75;
  std::mt19937 random(20261121);
  for (Elem e : kComputed) {
    const auto width = static_cast<std::size_t>(elem_bytes(e));
    for (int k = 0; k < op_count(); ++k) {
      ElementwiseFn fn = kernels().elementwise[k][static_cast<int>(e)];
      if (!fn) continue;
      const OpInfo& row = info(static_cast<Op>(k));
      const auto out_width = static_cast<std::size_t>(result_bytes(row, e));
      std::string x = values_of(e, kCount, random), y = values_of(e, kCount, random);
      std::string whole(kCount * out_width, '\1'), alone(out_width, '\2');
      const void* in[2] = {x.data(), y.data()};
      fn(kCount, in, whole.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        const void* one[2] = {&x[i * width], &y[i * width]};
        fn(1, one, alone.data());
        ASSERT_EQ(alone, whole.substr(i * out_width, out_width))
            << row.name << " " << name_of(e) << " at " << i;
      }
    }
  }
}

TEST(Kernels, one_element_against_many_is_the_same_as_repeated) {
  constexpr std::int64_t kCount = 53;
  std::mt19937 random(7);
  int seen = 0;
  for (Elem e : kComputed) {
    const auto width = static_cast<std::size_t>(elem_bytes(e));
    for (int k = 0; k < op_count(); ++k) {
      const OpInfo& row = info(static_cast<Op>(k));
      for (int which = 0; which < 2; ++which) {
        ElementwiseFn fn = one_kernel(which, static_cast<Op>(k), e);
        if (!fn) continue;
        ++seen;
        std::string many = values_of(e, kCount, random), one = values_of(e, 1, random), spread;
        for (std::int64_t i = 0; i < kCount; ++i) spread += one;
        const auto bytes = static_cast<std::size_t>(kCount * result_bytes(row, e));
        std::string got(bytes, '\1'), want(bytes, '\2');
        const void* short_in[2] = {which ? many.data() : one.data(),
                                   which ? one.data() : many.data()};
        const void* long_in[2] = {which ? many.data() : spread.data(),
                                  which ? spread.data() : many.data()};
        fn(kCount, short_in, got.data());
        kernels().elementwise[k][static_cast<int>(e)](kCount, long_in, want.data());
        ASSERT_EQ(got, want) << row.name << " " << name_of(e) << " operand " << which;
        ASSERT_EQ(many.size(), kCount * width);
      }
    }
  }
  EXPECT_GT(seen, 300);
}

TEST(Kernels, reductions_of_any_length_agree_with_one_by_one) {
  std::mt19937 random(3);
  for (Elem e : kComputed) {
    if (!is_integer(e) && e != Elem::boolean) continue;  // exact in any order
    const auto width = static_cast<std::size_t>(elem_bytes(e));
    for (int k = 0; k < reduce_op_count(); ++k) {
      ReduceFn fn = kernels().reduce[k][static_cast<int>(e)];
      if (!fn) continue;
      for (std::int64_t n : {1, 2, 15, 16, 31, 63, 64, 65, 255, 256, 257, 300, 1000}) {
        std::string x = values_of(e, n, random), want = x.substr(0, width), got(width, '\1');
        fn(n, x.data(), got.data());
        for (std::int64_t i = 1; i < n; ++i)
          kernels().accumulate[k][static_cast<int>(e)](1, &x[static_cast<std::size_t>(i) * width],
                                                       want.data());
        ASSERT_EQ(got, want) << info(static_cast<ReduceOp>(k)).name << " " << name_of(e) << " "
                             << n;
      }
    }
  }
}

/// Whether this processor stores compressed vectors so slowly that keys of 4 bytes are not given
/// away.
bool gives_away_short_keys() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  __builtin_cpu_init();
  return !(__builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f"));
#else
  return true;
#endif
}

template <typename T>
void expect_sorted(std::int64_t n, bool taken) {
  std::mt19937 random(5);
  for (bool descending : {false, true}) {
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& v : x) v = static_cast<T>(static_cast<std::int32_t>(random()) % 1000);
    std::vector<T> wanted = x;
    if (taken) std::sort(wanted.begin(), wanted.end());
    if (taken && descending) std::reverse(wanted.begin(), wanted.end());
    EXPECT_EQ(vector_sort(x.data(), n, descending), taken) << sizeof(T) << " bytes, " << n;
    EXPECT_EQ(x, wanted);
  }
}

// Results are the same without the library, so that only this test sees whether it is taken.
TEST(VectorSort, takes_the_library_where_it_is) {
  void* library = dlopen("libhwy_contrib.so.1", RTLD_NOW | RTLD_LOCAL);
  void* make = library ? dlsym(library, "_ZN3hwy6SorterC1Ev") : nullptr;
  void* workspace = nullptr;
  if (make) reinterpret_cast<void (*)(void*)>(make)(&workspace);
  const bool there = make && !workspace;
  for (std::int64_t n : {2, 250, 1000}) {
    const bool short_keys = there && (n <= 256 || gives_away_short_keys());
    expect_sorted<std::int64_t>(n, there);
    expect_sorted<std::uint64_t>(n, there);
    expect_sorted<std::int32_t>(n, short_keys);
    expect_sorted<float>(n, short_keys);
    expect_sorted<std::uint16_t>(n, short_keys);
    expect_sorted<std::int8_t>(n, false);
  }
}

}  // namespace
}  // namespace weft
