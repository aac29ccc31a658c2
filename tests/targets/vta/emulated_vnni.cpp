// SPDX-License-Identifier: Apache-2.0
// The VNNI kernels over emulated operations (emulated/immintrin.h), under another name.
#define vnni_kernels emulated_vnni_kernels
#define __builtin_cpu_supports(feature) 1
#include "../../../src/weft/targets/vta/kernels_vnni.cpp"
