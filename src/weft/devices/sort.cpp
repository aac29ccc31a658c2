// SPDX-License-Identifier: Apache-2.0
// Sorting and searching on devices with a grid: how rows are cut into tiles, and the launches.

#include <algorithm>
#include <bit>

#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/operators/best.h"
#include "weft/operators/network_sort.h"
#include "weft/operators/search.h"

namespace weft {

operators::SortSpec sort_spec_of(Elem elem, bool descending, std::int64_t size) {
  operators::SortSpec spec;
  spec.kind = is_real_float(elem)   ? operators::KeyKind::floating
              : is_signed_int(elem) ? operators::KeyKind::signed_integer
                                    : operators::KeyKind::unsigned_integer;
  spec.bits = 8 * elem_bytes(elem);
  spec.exponent_bits = elem == Elem::float16 ? 5 : elem == Elem::float64 ? 11 : 8;
  spec.descending = descending;
  spec.narrow = device::fits_narrow(size);
  return spec;
}

namespace {

using operators::KeyKind;
using operators::SortResult;
using operators::SortSpec;

ProgramKey key_of(std::string_view name, const SortSpec& s) {
  return {name,
          {static_cast<int>(s.kind), s.bits, s.exponent_bits, s.descending, s.narrow, s.threads,
           s.items, s.first, s.last, static_cast<int>(s.result)}};
}

/// The largest tile that fits a block's shared memory, at most 16 elements a thread.
void choose_tile(SortSpec& spec, const device::Grid& grid) {
  spec.threads = static_cast<int>(std::min<std::int64_t>(256, grid.threads()));
  for (spec.items = 16; spec.items > 1; spec.items /= 2) {
    if (operators::sort_shared_bytes(spec) <= std::min<std::int64_t>(grid.shared_bytes(), 49152))
      return;
  }
}

class GridSort {
 public:
  /// Only the lowest `bits` of the keys differ.
  GridSort(const NDArray& x, bool descending, SortResult result, int bits)
      : x_(x), grid_(device::grid_of(x.device())), bits_(bits) {
    n_ = x.shape()[x.ndim() - 1];
    rows_ = x.size() / n_;
    spec_ = sort_spec_of(x.elem(), descending, x.size());
    spec_.result = result;
  }

  void run(const NDArray& out) {
    if (by_network(out)) return;
    choose_tile(spec_, grid_);
    if (n_ <= spec_.tile()) return in_a_block(out);
    const Elem key = spec_.bits == 64 ? Elem::uint64 : Elem::uint32,
               at = spec_.narrow ? Elem::int32 : Elem::int64;
    const std::int64_t tiles = ceil_div(n_, spec_.tile());
    spec_.narrow = spec_.narrow && device::fits_narrow(rows_ * operators::kDigits * tiles);
    const int passes = (bits_ + 7) / 8;
    auto array = [&](Elem e, Dims shape) { return NDArray::empty(x_.device(), e, shape); };
    const Dims counters{rows_, operators::kDigits * tiles};
    const NDArray counts = array(at, counters), starts = array(at, counters);
    const bool positions = spec_.result == SortResult::positions;
    NDArray keys[2], places[2];
    for (int i = 0; i < std::min(2, passes - 1); ++i) {
      keys[i] = array(key, x_.shape());
      if (positions) places[i] = array(at, x_.shape());
    }
    for (int pass = 0; pass < passes; ++pass) {
      SortSpec spec = spec_;
      spec.first = pass == 0;
      spec.last = pass == passes - 1;
      const NDArray &from = keys[(pass + 1) % 2], &to = keys[pass % 2];
      auto scalars = [&](ProgramCall& call) {
        call.integer(rows_ * tiles).integer(n_).integer(tiles).integer(8 * pass);
      };
      SortSpec counted = spec;
      counted.last = false;
      ProgramCall count(x_.device());
      count.array(spec.first ? x_ : from).array(counts);
      scalars(count);
      count.run(key_of("sort.count", counted), [&] { return sort_count(counted); });
      grid_scan_rows(starts, counts, true);
      ProgramCall move(x_.device());
      move.array(spec.first ? x_ : from);
      if (!spec.first && positions) move.array(places[(pass + 1) % 2]);
      move.array(starts).array(spec.last ? out : to);
      if (!spec.last && positions) move.array(places[pass % 2]);
      scalars(move);
      move.run(key_of("sort.move", spec), [&] { return sort_move(spec); });
    }
  }

 private:
  /// Short rows whose network has fewer instructions than passes over their digits.
  bool by_network(const NDArray& out) {
    constexpr std::int64_t kMost = 2048, kBlock = 64;
    // Instructions for an element: of a comparison in registers, of one in shared memory, of a
    // pass.
    constexpr int kInside = 4, kAcross = 9, kPass = 45;
    if (n_ > kMost || bits_ < spec_.bits) return false;
    SortSpec spec = spec_;
    spec.items = n_ <= 16 ? 2 : n_ <= 128 ? 4 : 8;
    const int lanes = operators::network_lanes(spec, n_);
    spec.threads = static_cast<int>(std::max<std::int64_t>(lanes, std::min(kBlock, rows_ * lanes)));
    if (spec.threads > grid_.threads() ||
        operators::network_shared_bytes(spec) > std::min<std::int64_t>(grid_.shared_bytes(), 49152))
      return false;
    const int in = std::bit_width(static_cast<unsigned>(spec.items)) - 1,
              over = std::bit_width(static_cast<unsigned>(lanes)) - 1;
    const int across = over * (over + 1) / 2, inside = in * (in + 1) / 2 + in * over;
    if (kInside * inside + kAcross * across > kPass * spec.bits / 4) return false;
    const std::int64_t of_block = spec.threads / lanes;
    ProgramCall call(x_.device());
    call.array(x_).array(out).integer(ceil_div(rows_, of_block)).integer(rows_).integer(n_);
    ProgramKey key = key_of("sort.network", spec);
    key.add(lanes);
    call.run(key, [&] { return sort_network(spec, lanes); });
    return true;
  }
  /// Small rows take small blocks.
  void in_a_block(const NDArray& out) {
    while (spec_.items > 8 && spec_.tile() / 2 >= n_) spec_.items /= 2;
    while (spec_.threads > 32 && spec_.tile() / 2 >= n_) spec_.threads /= 2;
    while (spec_.items > 1 && spec_.tile() / 2 >= n_) spec_.items /= 2;
    ProgramCall call(x_.device());
    call.array(x_).array(out).integer(rows_).integer(n_);
    call.run(key_of("sort.block", spec_), [&] { return sort_block(spec_); });
  }

  const NDArray& x_;
  const device::Grid& grid_;
  int bits_;
  std::int64_t n_, rows_;
  SortSpec spec_;
};

}  // namespace

NDArray grid_sort(const NDArray& x, bool descending, bool positions) {
  if (is_float8(x.elem())) {  // float16 has every number of both types
    const NDArray sorted = grid_sort(x.astype(Elem::float16), descending, positions);
    return positions ? sorted : sorted.astype(x.elem());
  }
  const NDArray rows = x.contiguous();
  NDArray out = NDArray::empty(x.device(), positions ? Elem::int64 : x.elem(), x.shape());
  if (out.size() == 0) return out;
  GridSort(rows, descending, positions ? SortResult::positions : SortResult::elements,
           8 * elem_bytes(x.elem()))
      .run(out);
  return out;
}

std::optional<NDArray> grid_best(const NDArray& x, std::int64_t k, bool largest) {
  using operators::kBestThreads;
  constexpr std::int64_t kShort = 1024, kLongest = (std::int64_t{1} << 32) - 1;
  const device::Grid& grid = device::grid_of(x.device());
  const std::int64_t n = x.ndim() ? x.shape()[x.ndim() - 1] : 0;
  if (!grid.present() || n <= kShort || n >= kLongest || k < 1 || k > operators::kMostBest ||
      is_float8(x.elem()) || is_complex(x.elem()) || elem_bytes(x.elem()) > 4 ||
      grid.threads() < kBestThreads || x.size() == 0)
    return std::nullopt;
  NDArray rows = x.contiguous();
  const std::int64_t count = x.size() / n;
  operators::BestSpec spec;
  spec.keys = sort_spec_of(x.elem(), largest, x.size());
  Dims shape = x.shape();
  shape[x.ndim() - 1] = k;
  // Pieces of each row: enough blocks, and few left from each.
  constexpr std::int64_t kBlocks = 1024, kLeast = 2048, kMost = 16384;
  for (std::int64_t left = n;; spec.first = false) {
    std::int64_t length = std::clamp(ceil_div(count * left, kBlocks), kLeast, kMost);
    length = ceil_div(length, std::int64_t{kBestThreads}) * kBestThreads;
    while (operators::best_items(k, length) > operators::kMostBestItems) length -= kBestThreads;
    std::int64_t pieces = ceil_div(left, length);
    if (operators::best_items(k, left) <= operators::kMostBestItems && left <= kMost)
      length = left, pieces = 1;
    spec.items = static_cast<int>(operators::best_items(k, length));
    spec.last = pieces == 1;
    const NDArray out = spec.last
                            ? NDArray::empty(x.device(), Elem::int64, shape)
                            : NDArray::empty(x.device(), Elem::uint64, Dims{count, pieces * k});
    ProgramCall call(x.device());
    call.array(rows).array(out).integer(count * pieces).integer(left).integer(length);
    call.integer(pieces).integer(k);
    ProgramKey key = key_of("best", spec.keys);
    key.add(spec.items), key.add(spec.first), key.add(spec.last);
    call.run(key, [&] { return best_of_pieces(spec); });
    if (spec.last) return out;
    rows = out, left = pieces * k;
  }
}

NDArray grid_order(const NDArray& places, std::int64_t limit) {
  // As unsigned numbers only the bits below the limit's differ.
  NDArray out = NDArray::empty(places.device(), Elem::int64, places.shape());
  if (out.size() == 0) return out;
  const NDArray words(places.handle(), Elem::uint64, places.shape(), places.strides(),
                      places.offset());
  const int bits = std::max<int>(1, std::bit_width(static_cast<std::uint64_t>(limit)));
  GridSort(words, false, SortResult::positions, bits).run(out);
  return out;
}

NDArray grid_searchsorted(const NDArray& x, const NDArray& values, bool right) {
  if (is_float8(x.elem()))
    return grid_searchsorted(x.astype(Elem::float16), values.astype(Elem::float16), right);
  const NDArray sorted = x.contiguous(), wanted = values.contiguous();
  NDArray out = NDArray::empty(x.device(), Elem::int64, values.shape());
  if (out.size() == 0) return out;
  if (x.size() == 0) return full(x.device(), Elem::int64, values.shape(), Scalar(0));
  const std::int64_t n = x.size(), count = out.size();
  const device::Grid& grid = device::grid_of(x.device());
  operators::SearchSpec spec;
  spec.right = right;
  spec.keys = sort_spec_of(x.elem(), false, 1);
  const std::int64_t key_bytes = spec.keys.bits == 64 ? 8 : 4;
  // A long table saves many searches steps through memory; two blocks of a processor have theirs.
  constexpr std::int64_t kMany = 1 << 17, kBlocksEach = 2, kWideBlock = 512;
  const std::int64_t longest = operators::kLongSearchTableBytes / key_bytes;
  if (count >= kMany && n >= longest &&
      grid.shared_bytes() >= kBlocksEach * operators::kLongSearchTableBytes) {
    spec.made = true;
    spec.table = static_cast<int>(longest);
    if (grid.threads() >= kWideBlock) spec.threads = kWideBlock;
  }
  // Few blocks, which have the table once for all their tiles.
  const std::int64_t tiles = ceil_div(count, std::int64_t{spec.tile()}),
                     most = std::max<std::int64_t>(1, kBlocksEach * grid.processors()),
                     rounds = ceil_div(tiles, most), blocks = ceil_div(tiles, rounds);
  // Places of the table reach twice as far as elements.
  spec.keys.narrow = device::fits_narrow(2 * std::max(n, rounds * blocks * spec.tile()));
  std::int64_t steps = 0;
  while (std::int64_t{spec.table} << steps <= n) ++steps;
  const std::int64_t stride = std::int64_t{1} << steps;
  auto key = [&](std::string_view name) {
    ProgramKey k = key_of(name, spec.keys);
    k.add(spec.right), k.add(spec.threads), k.add(spec.table), k.add(spec.made);
    return k;
  };
  NDArray table;
  if (spec.made) {
    table =
        NDArray::empty(x.device(), key_bytes == 8 ? Elem::uint64 : Elem::uint32, Dims{spec.table});
    ProgramCall make(x.device());
    make.array(sorted).array(table).integer(spec.table / spec.threads).integer(n).integer(stride);
    make.run(key("search.table"), [&] { return search_table(spec); });
  }
  ProgramCall call(x.device());
  call.array(sorted);
  if (spec.made) call.array(table);
  call.array(wanted).array(out).integer(blocks).integer(count).integer(n);
  call.integer(stride).integer(steps).integer(rounds);
  call.run(key("search"), [&] { return search_sorted(spec); });
  return out;
}

}  // namespace weft
