// SPDX-License-Identifier: Apache-2.0
// torch.autocast("weft"): which operators run in the lower precision, which in float32; torch's own
// lists for every device.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define WEFT_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(WEFT_LOWER)
#undef WEFT_LOWER
#define WEFT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(WEFT_FP32)
#undef WEFT_FP32
#define WEFT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(WEFT_PROMOTE)
#undef WEFT_PROMOTE
}

}  // namespace
