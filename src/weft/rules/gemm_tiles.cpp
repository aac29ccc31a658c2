// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/gemm_tiles.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "weft/base/integers.h"
#include "weft/schedule/primitives/specialize_warps.h"

namespace weft::rules {

namespace {

constexpr std::int64_t kRowBytes = 128, kTileRows = 64;
/// Blocks of a cluster one below another and beside one another.
struct Cluster {
  std::int64_t rows, columns;
};
constexpr Cluster kClusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};

/// Resources that are used side by side hinder each other the more the closer their times are.
/// A refit of the exponents, of the numbers below and of the table's rates:
/// bench/gpu/gemm_tiles.py.
double together(double exponent, std::initializer_list<double> times) {
  double sum = 0;
  for (double t : times) sum += std::pow(t, exponent);
  return std::pow(sum, 1 / exponent);
}
constexpr double kOfStep = 4.8, kOfProduct = 1.6;

// What tiles that lie the other way must gain.
constexpr double kTurned = 1.04;
constexpr double kInStep = 1.03;  // how much longer a step takes in a cluster
// Rows off the sectors of 32 bytes: more sectors, and two lines for each piece of 128 bytes. The
// first for what the cache gives, the second for what a processor takes.
constexpr double kOffSectors = 1.64, kOffSectorsTaken = 1.17;

std::int64_t round_up(std::int64_t v, std::int64_t to) { return ceil_div(v, to) * to; }

/// The product of the transposes.
GemmShape turned(GemmShape s) {
  std::swap(s.m, s.n);
  std::swap(s.pitch_a, s.pitch_b);
  std::swap(s.a_along_m, s.b_along_n);
  return s;
}

}  // namespace

GemmMachine gemm_machine(const Facts& facts) {
  constexpr double kSustained = 0.886;  // of the highest clock, while all processors multiply
  constexpr double kRead = 1.33;        // beside what kernels reach that read and write
  auto rate = [&](const char* name) { return static_cast<double>(facts.table().limit(name, 1)); };
  GemmMachine out;
  out.processors = facts.processors(), out.shared_bytes = facts.shared_bytes();
  out.clocks_per_microsecond = kSustained * facts.clocks_per_microsecond();
  out.sums_per_clock = rate(limits::kProductSums);
  out.cache_bytes_per_clock = rate(limits::kCacheRate);
  out.shared_cache_bytes_per_clock = rate(limits::kSharedCacheRate);
  out.memory_bytes_per_microsecond = kRead * facts.bytes_per_microsecond();
  out.tile = rate(limits::kTileNs) / 1e3, out.half_piece = rate(limits::kHalfPieceNs) / 1e3;
  out.staged_bytes_per_microsecond = rate(limits::kStagedRate);
  out.join = rate(limits::kKernelNs) / 1e3, out.cluster = rate(limits::kClusterNs) / 1e3;
  return out;
}

std::int64_t gemm_slots(const GemmMachine& machine, std::int64_t rows, std::int64_t columns) {
  const std::int64_t staged = rows / kTileRows * 2 * kTileRows * kRowBytes, tokens = 1024;
  const std::int64_t slot = (rows + round_up(columns, kTileRows)) * kRowBytes;
  return std::clamp<std::int64_t>((machine.shared_bytes - staged - tokens) / slot, 0, 8);
}

std::int64_t gemm_blocks(const GemmMachine& machine, std::int64_t cluster) {
  // A cluster lies within a group of processors. An H200 has eight groups of 14, 16 or 18; of 132
  // processors in all, clusters of four leave out 16 at most, clusters of eight 28.
  const std::int64_t p = machine.processors, held = cluster > 4   ? p - ceil_div(p * 28, 132)
                                                    : cluster > 2 ? p - ceil_div(p * 16, 132)
                                                                  : p;
  return held / cluster * cluster;
}

namespace {

/// Microseconds of a step's multiplications.
double sums_time(const GemmMachine& machine, const GemmShape& s, const GemmDecisions& d) {
  return static_cast<double>(d.rows * d.columns * s.step()) /
         (machine.sums_per_clock * 2 / s.bytes * machine.clocks_per_microsecond);
}

}  // namespace

double gemm_time(const GemmMachine& machine, const GemmShape& shape, const GemmDecisions& d) {
  const GemmShape s = d.turned ? turned(shape) : shape;
  const auto steps = static_cast<double>(ceil_div(ceil_div(s.k, s.step()), d.parts) * s.products());
  const std::int64_t tiles = round_up(ceil_div(s.m, d.rows), d.cluster) *
                             round_up(ceil_div(s.n, d.columns), d.cluster_columns) * s.batches *
                             d.parts;
  const double sums = sums_time(machine, s, d) * machine.clocks_per_microsecond;
  // What lies outside of an operand is not fetched.
  const std::int64_t loaded = s.b_along_n ? round_up(d.columns, kTileRows) : d.columns;
  // Of each product, on average.
  const double copied =
      s.keeps_pieces ? static_cast<double>(kPieces + 1) / static_cast<double>(kPieceProducts) : 1;
  const double rows = copied * static_cast<double>(std::min(s.m, d.rows) * kRowBytes),
               columns = copied * static_cast<double>(std::min(s.n, loaded) * kRowBytes);
  const bool off_a = s.pitch_a % 32 != 0, off_b = s.pitch_b % 32 != 0;
  auto times = [](double bytes, bool off, double factor) { return off ? bytes * factor : bytes; };
  const double given = times(rows, off_a, kOffSectors) / static_cast<double>(d.cluster_columns) +
                       times(columns, off_b, kOffSectors) / static_cast<double>(d.cluster);
  const double taken =
      times(rows, off_a, kOffSectorsTaken) + times(columns, off_b, kOffSectorsTaken);
  const auto processors = static_cast<double>(machine.processors);
  // Of so many blocks at a time.
  auto step = [&](double blocks) {
    const double time = together(
        kOfStep, {sums, given * blocks / (machine.shared_cache_bytes_per_clock * processors),
                  taken / machine.cache_bytes_per_clock});
    return time * (d.cluster_blocks() > 1 ? kInStep : 1) / machine.clocks_per_microsecond;
  };
  const int stored = d.parts > 1 ? 4 : s.result_bytes;
  // Threads store what lies beside whole pieces, one by one, and all of a turned tile of what is
  // not copied in bulk.
  const bool turned_in_bulk = stored == 2 && shape.n % 8 == 0;
  const double by_threads = !d.turned        ? static_cast<double>(d.columns % kTileRows)
                            : turned_in_bulk ? 0
                                             : 2 * static_cast<double>(d.columns);
  const double tile =
      machine.tile + machine.half_piece * by_threads / 32 +
      static_cast<double>(d.rows * d.columns * stored) / machine.staged_bytes_per_microsecond;
  const std::int64_t blocks = gemm_blocks(machine, d.cluster_blocks());
  const std::int64_t rounds = tiles / blocks, rest = tiles % blocks;
  double busy = static_cast<double>(rounds) * (steps * step(static_cast<double>(blocks)) + tile) +
                (d.cluster_blocks() > 1 ? machine.cluster : 0);
  if (rest) busy += steps * step(static_cast<double>(rest)) + tile;
  const double area = static_cast<double>(s.batches) * static_cast<double>(s.m * s.n);
  const double operands = static_cast<double>(s.batches) * static_cast<double>((s.m + s.n) * s.k) *
                          s.bytes * (s.pieces ? kPieces : 1);
  const double read = (s.read_bytes ? static_cast<double>(s.read_bytes) : operands) /
                      machine.memory_bytes_per_microsecond;
  const double rate = machine.memory_bytes_per_microsecond * machine.written_share;
  const double written = area * stored * static_cast<double>(d.parts) / rate;
  double time = together(kOfProduct, {busy, read + written});
  if (d.parts > 1)
    time += machine.join + area * (4 * static_cast<double>(d.parts) + s.result_bytes) / rate;
  return time;
}

namespace {

/// Calls `consider` with tiles and their expected times; those whose multiplications alone take
/// `least` (below 0: without a limit) are left out.
template <typename Consider>
void each_tile(const GemmMachine& machine, const GemmShape& given, bool turn, const double& least,
               const Consider& consider) {
  const GemmShape shape = turn ? turned(given) : given;
  const std::int64_t steps = ceil_div(shape.k, shape.step());
  const std::int64_t least_steps = shape.pieces ? 1 : 4;  // of a part
  for (std::int64_t rows = shape.most_rows; rows >= 64; rows -= 64) {
    const std::int64_t high = ceil_div(shape.m, rows);
    for (std::int64_t columns = schedule::most_warp_columns(rows, shape.pieces); columns >= 64;
         columns -= shape.column_unit) {
      // Such a tile is one of as many rows.
      if (turn && columns % kTileRows == 0 && columns <= kMostGemmRows) continue;
      const std::int64_t wide = ceil_div(shape.n, columns);
      for (const Cluster& cluster : kClusters) {
        const std::int64_t size = cluster.rows * cluster.columns,
                           blocks = gemm_blocks(machine, size);
        if (size > shape.most_cluster || cluster.rows > high || cluster.columns > wide || !blocks)
          continue;
        if (!shape.b_along_n && !schedule::cluster_shares(columns, cluster.rows)) continue;
        const std::int64_t tiles =
            round_up(high, cluster.rows) * round_up(wide, cluster.columns) * shape.batches;
        // Larger clusters took 0.72 to 1.14 of the time of pairs where every block has one tile (an
        // H200, 8 products); with several tiles, where they wait for each other, up to 1.3. Only
        // 16-bit operands were measured.
        if (size > 2 && tiles > blocks) continue;
        if ((size > 2 || cluster.columns > 1) && (shape.pieces || shape.bytes != 2)) continue;
        GemmDecisions d{rows,
                        columns,
                        gemm_slots(machine, rows, columns),
                        1,
                        blocks,
                        cluster.rows,
                        cluster.columns,
                        turn};
        for (; d.parts <= (shape.divisible ? blocks : 1);
             d.parts += std::max<std::int64_t>(1, d.parts / 4)) {
          if (d.parts > 1 && (tiles * d.parts > blocks || steps < d.parts * least_steps)) break;
          if (d.slots < 2) continue;
          const std::int64_t in_turn =
              ceil_div(tiles * d.parts, blocks) * ceil_div(steps, d.parts) * shape.products();
          if (least < 0 || static_cast<double>(in_turn) * sums_time(machine, shape, d) < least)
            consider(d, gemm_time(machine, given, d) * (turn ? kTurned : 1));
        }
      }
    }
  }
}

}  // namespace

GemmDecisions choose_gemm(const GemmMachine& machine, const GemmShape& shape) {
  GemmDecisions best;
  double least = -1;
  auto consider = [&](const GemmDecisions& d, double time) {
    if (least < 0 || time < least) least = time, best = d;
  };
  each_tile(machine, shape, false, least, consider);
  if (shape.divisible && shape.turns) each_tile(machine, shape, true, least, consider);
  return best;
}

std::vector<GemmDecisions> gemm_options(const GemmMachine& machine, const GemmShape& shape) {
  std::vector<std::pair<double, GemmDecisions>> all;
  auto consider = [&](const GemmDecisions& d, double time) { all.emplace_back(time, d); };
  const double unlimited = -1;
  each_tile(machine, shape, false, unlimited, consider);
  if (shape.divisible && shape.turns) each_tile(machine, shape, true, unlimited, consider);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GemmDecisions> out;
  for (const auto& [time, d] : all) out.push_back(d);
  return out;
}

}  // namespace weft::rules
