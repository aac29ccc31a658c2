// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sizes of one convolution on a host, whatever the order of its axes in memory.

#include <cstdint>

#include "weft/autograd/convolution.h"

namespace weft {

struct ConvolutionSizes {
  std::int64_t n, c, h, w, o, cg, og, groups, kh, kw, oh, ow, k;  // k: terms of a result
  Pair stride, padding, dilation;

  ConvolutionSizes(const Dims& x, const Dims& weight, const Conv& conv, const Window& win)
      : n(x[0]),
        c(x[1]),
        h(x[2]),
        w(x[3]),
        o(weight[0]),
        cg(weight[1]),
        og(weight[0] / conv.groups),
        groups(conv.groups),
        kh(weight[2]),
        kw(weight[3]),
        oh(win.out[0]),
        ow(win.out[1]),
        k(cg * kh * kw),
        stride(conv.stride),
        padding(conv.padding),
        dilation(conv.dilation) {}
  /// The image itself is its windows.
  bool plain() const { return kh == 1 && kw == 1 && stride == Pair{1, 1} && padding == Pair{0, 0}; }
};

}  // namespace weft
