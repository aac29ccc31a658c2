// SPDX-License-Identifier: Apache-2.0
#pragma once
// WEFT_LEVELS(X): X(level) for each processor level whose kernels this build holds; WEFT_WITH_*
// come from CMakeLists.txt.

#if defined(WEFT_WITH_AVX2)
#define WEFT_LEVEL_AVX2(X) X(avx2)
#else
#define WEFT_LEVEL_AVX2(X)
#endif
#if defined(WEFT_WITH_AVX512)
#define WEFT_LEVEL_AVX512(X) X(avx512)
#else
#define WEFT_LEVEL_AVX512(X)
#endif
/// X(group, level) for each file of the element-wise rows of floats (generate/main.cpp).
#define WEFT_ROW_GROUPS(X, level) \
  X(rows0, level) X(rows1, level) X(rows2, level) X(rows3, level) X(rows4, level) X(rows5, level)
#define WEFT_LEVELS(X) X(base) WEFT_LEVEL_AVX2(X) WEFT_LEVEL_AVX512(X)
