// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/gemm_tiles.h"

#include <algorithm>
#include <cmath>

#include "weft/base/integers.h"

namespace weft::rules {

namespace {

constexpr std::int64_t kRowBytes = 128, kTileRows = 64, kMostClusters = 2;

/// Two resources that are used side by side hinder each other the more the closer their times are.
/// The exponent and the constants below: bench/gpu/whole.cpp on an NVIDIA H200, 2026-11-23.
double together(double x, double y) {
  const double a = x * x, b = y * y;
  return std::sqrt(std::sqrt(a * a + b * b));
}

// Microseconds.
constexpr double kTile = 0.3;                   // to begin and end a tile
constexpr double kHalfPiece = 1.1;              // of a result that threads store, 32 columns
constexpr double kStagedPerMicrosecond = 52e3;  // bytes of a tile's result
constexpr double kJoin = 2.5;                   // a kernel more
// Rows off the sectors of 32 bytes: more sectors, and two lines for each piece of 128 bytes.
constexpr double kOffSectors = 1.55;

std::int64_t round_up(std::int64_t v, std::int64_t to) { return ceil_div(v, to) * to; }

double off_sectors(std::int64_t pitch) { return pitch % 32 ? kOffSectors : 1.0; }

}  // namespace

std::int64_t gemm_slots(const GemmMachine& machine, std::int64_t rows, std::int64_t columns,
                        std::int64_t split) {
  const std::int64_t others = (split - 1) * rows * columns / split * 4;
  const std::int64_t staged = rows / kTileRows * 2 * kTileRows * kRowBytes + others, tokens = 1024;
  const std::int64_t slot = (rows + round_up(columns, kTileRows)) * kRowBytes;
  return std::clamp<std::int64_t>((machine.shared_bytes - staged - tokens) / slot, 0, 8);
}

double gemm_time(const GemmMachine& machine, const GemmShape& s, const GemmDecisions& d) {
  const std::int64_t steps = ceil_div(ceil_div(s.k, s.step()), d.parts);
  const std::int64_t tiles =
      round_up(ceil_div(s.m, d.rows), d.cluster) * ceil_div(s.n, d.columns) * s.batches * d.parts;
  const double sums =
      static_cast<double>(d.rows * d.columns * s.step()) / (machine.sums_per_clock * 2 / s.bytes);
  // What lies outside of an operand is not fetched.
  const std::int64_t loaded = s.b_along_n ? round_up(d.columns, kTileRows) : d.columns;
  const double rows = static_cast<double>(std::min(s.m, d.rows)) * off_sectors(s.pitch_a);
  const double columns = static_cast<double>(std::min(s.n, loaded)) * off_sectors(s.pitch_b);
  const double fetched = (rows + columns / static_cast<double>(d.cluster)) * kRowBytes /
                         machine.cache_bytes_per_clock;
  const double step = together(sums, fetched) / machine.clocks_per_microsecond;
  const int stored = d.parts > 1 ? 4 : s.result_bytes;
  const double tile = kTile + (d.columns % kTileRows ? kHalfPiece : 0) +
                      static_cast<double>(d.rows * d.columns * stored) / kStagedPerMicrosecond;
  const std::int64_t blocks = machine.processors / d.cluster * d.cluster;
  const double busy = static_cast<double>(ceil_div(tiles, blocks)) *
                      (static_cast<double>(steps) * step + tile);
  const double area = static_cast<double>(s.batches) * static_cast<double>(s.m * s.n);
  const double read = static_cast<double>(s.batches) * static_cast<double>((s.m + s.n) * s.k) *
                      s.bytes / machine.memory_bytes_per_microsecond;
  const double rate = machine.memory_bytes_per_microsecond * machine.written_share;
  const double written = area * stored * static_cast<double>(d.parts) / rate;
  double time = together(busy, read + written);
  if (d.parts > 1)
    time += kJoin + area * (4 * static_cast<double>(d.parts) + s.result_bytes) / rate;
  return time;
}

GemmDecisions choose_gemm(const GemmMachine& machine, const GemmShape& shape) {
  GemmDecisions best;
  double least = -1;
  const std::int64_t steps = ceil_div(shape.k, shape.step());
  for (const std::int64_t rows : {128, 64}) {
    for (std::int64_t columns = 256; columns >= 64; columns -= shape.column_unit) {
      const std::int64_t slots = gemm_slots(machine, rows, columns);
      if (slots < 2) continue;
      for (std::int64_t cluster = 1; cluster <= kMostClusters && cluster <= ceil_div(shape.m, rows);
           cluster *= 2) {
        const std::int64_t blocks = machine.processors / cluster * cluster;
        if (blocks == 0) break;
        GemmDecisions d{rows, columns, slots, 1, blocks, cluster};
        const std::int64_t tiles =
            round_up(ceil_div(shape.m, rows), cluster) * ceil_div(shape.n, columns) * shape.batches;
        const std::int64_t most = shape.divisible ? blocks : 1;
        for (; d.parts <= most; d.parts += std::max<std::int64_t>(1, d.parts / 4)) {
          if (d.parts > 1 && (tiles * d.parts > blocks || steps < d.parts * 4)) break;
          const double time = gemm_time(machine, shape, d);
          if (least < 0 || time < least) least = time, best = d;
        }
      }
    }
  }
  return best;
}

}  // namespace weft::rules
