// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for the VideoCore IV QPUs in C++, in QPULib's vocabulary; use namespace weft::qpu.
//
//   void scale(Int n, Float a, Ptr<Float> x) { ... store(a * v, p); ... }
//   auto k = compile(scale);  k.setNumQPUs(12);  k(n, 2.0f, &array);
//
// The statements If Else While For Where End are macros. Headers of the standard library, Python
// and this project may follow; one that uses such a name itself (GoogleTest has an End) comes
// before, or define WEFT_QPU_NO_MACROS and include <weft/qpu_macros.h> after it.

#include "weft/targets/qpu/language/kernel.h"
#include "weft/targets/qpu/language/language.h"
#ifndef WEFT_QPU_NO_MACROS
#include "weft/targets/qpu/language/macros.h"
#endif
