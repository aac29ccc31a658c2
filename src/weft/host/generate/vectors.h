// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for one width of vectors (array/vector_kernels.h), as programs in text form with their
// schedules.

#include <string>
#include <vector>

#include "weft/base/text.h"
#include "weft/host/generate/kernels.h"
#include "weft/host/vector_kernels.h"
#include "weft/schedule/schedule.h"

namespace weft::generate {

std::vector<Kernel> product_kernels(const VectorShape& shape);
std::vector<Kernel> transpose_kernels(const VectorShape& shape);
std::vector<Kernel> exchange_kernels(const VectorShape& shape);

/// Blocks "turn0", "turn1" and so on, whose two inner loops have this extent, as instructions of
/// target/transpose_rows.h.
ir::PrimFunc turned(const ir::PrimFunc& f, int blocks, int side, Elem e);
/// `frame`: the C function's parameters, named as those of the program.
Kernel vector_kernel(VectorKernel kernel, Elem e, std::string name, const char* frame,
                     ir::PrimFunc f);

}  // namespace weft::generate
