// SPDX-License-Identifier: Apache-2.0
// The AVX-VNNI kernels over emulated operations (emulated/immintrin.h), under another name.
#include <cpuid.h>
#define avxvnni_kernels emulated_avxvnni_kernels
#define __builtin_cpu_supports(feature) 1
#define __get_cpuid_count(leaf, subleaf, a, b, c, d) (*(a) = 1u << 4, 1)
#include "../../../src/weft/targets/vta/kernels_avxvnni.cpp"
