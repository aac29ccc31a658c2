// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for the VideoCore IV QPUs in C++, in QPULib's vocabulary: include this last and use
// namespace weft::qpu.
//
//   void scale(Int n, Float a, Ptr<Float> x) { ... store(a * v, p); ... }
//   auto k = compile(scale);  k.setNumQPUs(12);  k(n, 2.0f, &array);

#include "weft/targets/qpu/language/kernel.h"
#include "weft/targets/qpu/language/language.h"
#include "weft/targets/qpu/language/macros.h"
