// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/host/kernels.h"

namespace weft {

/// Square roots of float32 and float64 and magnitudes of complex64 on processors with AVX-512, in
/// place of the generated kernels: the instruction takes two to three times as long as an estimate
/// that multiplications put right. The roots have the instruction's bits.
void put_roots_avx512(KernelTable& table);

}  // namespace weft
