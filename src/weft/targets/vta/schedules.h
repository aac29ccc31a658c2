// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hand-written schedules of the common operators over packed layouts, recorded with Builder. All
// shapes count elements (tiles): activations [n][c][h][w], weights [co][ci][kh][kw], matrices
// [o][n] and [m][n]. `threads` 2 is double buffering: load, compute and store of neighbouring tiles
// overlap.

#include <vector>

#include "weft/targets/vta/builder.h"
#include "weft/targets/vta/timing.h"

namespace weft::vta {

/// What happens to a sum before it is stored: >> shift, + bias[channel], clip.
struct Epilogue {
  int shift = 0;
  bool bias = false;  // parameter "bias" of accumulator elements, one per output channel block
  bool clip = false;
  std::int64_t low = 0, high = 127;
};

struct MatmulShape {
  std::int64_t o = 1, m = 1, n = 1;
};
struct MatmulTiles {
  std::int64_t o = 1, m = 1, n = 1;
  int threads = 2;
};
/// C[o][m] = epilogue(A[o][n] . B[m][n]); parameters A, B, (bias,) C.
Program matmul(const Config& config, const MatmulShape& shape, const MatmulTiles& tiles,
               const Epilogue& epilogue = {});
/// Tiles that fit; the fewest estimated cycles among a few dozen.
MatmulTiles default_tiles(const Config& config, const MatmulShape& shape,
                          const Epilogue& epilogue = {}, int threads = 2,
                          const TimingParams& timing = {});

struct ConvShape {
  std::int64_t batch = 1, h = 1, w = 1, ci = 1, co = 1;  // ci, co: channel blocks in all
  std::int64_t kernel = 1, stride = 1, pad = 0, groups = 1, dilation = 1;
  std::int64_t reach() const {
    return (kernel - 1) * dilation + 1;
  }  // of the kernel, along an axis
  std::int64_t out_h() const { return (h + 2 * pad - reach()) / stride + 1; }
  std::int64_t out_w() const { return (w + 2 * pad - reach()) / stride + 1; }
};
struct ConvTiles {
  std::int64_t h = 1, w = 1, ci = 1, co = 1;
  int threads = 2;
  std::int64_t lead = 0;   // channel blocks of the first sum's steps, to begin early; 0: ci
  std::int64_t parts = 1;  // a finished tile is stored in so many parts
};
/// Parameters x, w, (bias,) y. Weights are [co][ci / groups][k][k].
Program conv2d(const Config& config, const ConvShape& shape, const ConvTiles& tiles,
               const Epilogue& epilogue = {});
ConvTiles default_tiles(const Config& config, const ConvShape& shape, const Epilogue& epilogue = {},
                        int threads = 2, const TimingParams& timing = {});

/// out = (h - 1) * stride - 2 pad + kernel; weights [co][ci][k][k] as conv2d's, applied transposed.
struct ConvTransposeShape {
  std::int64_t batch = 1, h = 1, w = 1, ci = 1, co = 1, kernel = 4, stride = 2, pad = 1;
  std::int64_t out_h() const { return (h - 1) * stride - 2 * pad + kernel; }
  std::int64_t out_w() const { return (w - 1) * stride - 2 * pad + kernel; }
};
struct ConvTransposeTiles {
  std::int64_t ci = 1, co = 1;
  int threads = 1;
};
Program conv2d_transpose(const Config& config, const ConvTransposeShape& shape,
                         const ConvTransposeTiles& tiles, const Epilogue& epilogue = {});

/// One step of an elementwise chain over accumulator elements: with a constant, or with a second
/// array.
struct AluStep {
  AluOp op = AluOp::add;
  bool use_imm = true;
  std::int64_t imm = 0;
};
/// y = chain(x): parameters x (int32), one array per step that has no constant, y (int8).
Program elementwise(const Config& config, std::int64_t elements, const std::vector<AluStep>& chain);

/// ResNet-18's convolutions at batch 1 as published for VTA; `repeats`: how often the network has
/// the layer.
struct ResnetLayer {
  const char* name;
  std::int64_t size, in_channels, out_channels, kernel, stride, pad;
  int repeats;
};
const std::vector<ResnetLayer>& resnet18_layers();
ConvShape shape_of(const ResnetLayer& layer, const Config& config);

}  // namespace weft::vta
