// SPDX-License-Identifier: Apache-2.0
#include "weft/array/kernels.h"

namespace weft {

#if defined(WEFT_X86_LEVELS)
#define WEFT_LEVELS(X) X(base) X(avx2) X(avx512)
#else
#define WEFT_LEVELS(X) X(base)
#endif
#define WEFT_DECLARE(level)                       \
  void fill_integers_##level(KernelTable& table); \
  void fill_reals_##level(KernelTable& table);    \
  void fill_others_##level(KernelTable& table);   \
  void fill_casts_##level(KernelTable& table);
WEFT_LEVELS(WEFT_DECLARE)
#undef WEFT_DECLARE

namespace {
#define WEFT_FILL_ALL(level)          \
  void fill_##level(KernelTable& t) { \
    fill_integers_##level(t);         \
    fill_reals_##level(t);            \
    fill_others_##level(t);           \
    fill_casts_##level(t);            \
  }
WEFT_LEVELS(WEFT_FILL_ALL)
#undef WEFT_FILL_ALL

KernelTable choose() {
  KernelTable table;
#if defined(WEFT_X86_LEVELS)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    fill_avx512(table);
    return table;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    fill_avx2(table);
    return table;
  }
#endif
  fill_base(table);
  return table;
}
}  // namespace

const KernelTable& kernels() {
  static const KernelTable table = choose();
  return table;
}

}  // namespace weft
