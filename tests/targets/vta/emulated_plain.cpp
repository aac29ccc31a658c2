// SPDX-License-Identifier: Apache-2.0
// The portable kernels as a processor without SSE2 compiles them, under another name.
#define WEFT_VTA_PLAIN_VECTORS
#define portable_kernels emulated_plain_kernels
#define usable_kernels emulated_plain_list
#include "../../../src/weft/targets/vta/kernels_portable.cpp"
