// SPDX-License-Identifier: Apache-2.0
// The interpreted engine with AVX2, compiled for it alone and chosen at run time.

#define WEFT_QPU_FAST_NAME make_fast_avx2
#include "weft/targets/qpu/engine/interpret.inl"
