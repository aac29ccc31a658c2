// SPDX-License-Identifier: Apache-2.0
#include "weft/array/sort_lines.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "weft/host/sort_kernels.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

/// Longer lines need more exchanges than comparisons one after the other.
constexpr I kLongest = 256;
/// Vectors of lines side by side: exchanges of one wait for nothing of the other.
constexpr I kVectors = 2;

using Network = std::vector<std::uint8_t>;

/// Batcher's merge exchange for any length (Knuth, The Art of Computer Programming, 5.2.2,
/// algorithm M): pairs of places.
Network merge_exchange(I n) {
  Network pairs;
  I top = 1;
  while (2 * top < n) top *= 2;
  for (I p = top; p > 0; p /= 2) {
    for (I q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (I i = 0; i + d < n; ++i) {
        if ((i & p) != r) continue;
        pairs.push_back(static_cast<std::uint8_t>(i));
        pairs.push_back(static_cast<std::uint8_t>(i + d));
      }
      if (q == p) break;
    }
  }
  return pairs;
}

/// Made once for each length.
const Network& network(I n) {
  static std::array<std::atomic<const Network*>, kLongest + 1> made{};
  std::atomic<const Network*>& place = made[static_cast<std::size_t>(n)];
  if (const Network* known = place.load(std::memory_order_acquire)) return *known;
  auto mine = std::make_unique<const Network>(merge_exchange(n));
  const Network* before = nullptr;
  if (place.compare_exchange_strong(before, mine.get(), std::memory_order_acq_rel))
    return *mine.release();
  return *before;
}

/// The exchanges that the first `kept` places depend on.
Network partial(const Network& all, I n, I kept) {
  std::vector<bool> read(static_cast<std::size_t>(n), false);
  std::fill_n(read.begin(), kept, true);
  Network pairs;  // from the last on, so j before i
  for (std::size_t at = all.size(); at > 0; at -= 2) {
    const std::uint8_t i = all[at - 2], j = all[at - 1];
    if (!read[i] && !read[j]) continue;
    read[i] = read[j] = true;
    pairs.push_back(j);
    pairs.push_back(i);
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

Elem word(int bytes) {
  constexpr Elem words[] = {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64};
  int at = 0;
  while (1 << at < bytes) ++at;
  return words[at];
}

/// Lines that one vector of words of so many bytes holds.
I lanes(int bytes) { return vector_kernels().shape.lanes(bytes); }
I vectors(const Lines& lines, int bytes) {
  const I side_by_side = lines.inner > 1 ? lines.inner : lines.outer;
  return std::clamp<I>((side_by_side + lanes(bytes) - 1) / lanes(bytes), 1, kVectors);
}

/// Room for n places of `width` lines of words, and for as many lines one after the other.
class Block {
 public:
  Block(I n, I width, int bytes)
      : n_(n),
        width_(width),
        word_(word(bytes)),
        size_(n * width * bytes),
        memory_(std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(2 * size_ + 64))) {
    char* const at = memory_.get();
    block_ = at + (64 - reinterpret_cast<std::uintptr_t>(at) % 64) % 64;
  }
  /// Of lanes that have no line, which are sorted too.
  void clear() const { std::memset(block_, 0, static_cast<std::size_t>(size_)); }
  char* block() const { return block_; }
  char* rows() const { return block_ + size_; }
  I width() const { return width_; }
  void exchange() const { exchange(network(n_)); }
  void exchange(const Network& pairs) const {
    const auto kernel =
        width_ == lanes(elem_bytes(word_)) ? VectorKernel::exchange : VectorKernel::exchange_two;
    vector_kernels().get<ExchangeFn>(kernel, word_)(block_, pairs.data(),
                                                    static_cast<I>(pairs.size() / 2));
  }
  void from_rows(I count) const { turn(rows(), block(), n_, count, n_, width_); }
  void to_rows(I count) const { to_rows(count, n_); }
  /// The first `kept` places of each line.
  void to_rows(I count, I kept) const { turn(block(), rows(), count, kept, width_, kept); }

 private:
  void turn(const char* in, char* out, I m, I n, I in_step, I out_step) const {
    vector_kernels().get<TransposeFn>(VectorKernel::transpose, word_)(in, out, m, n, in_step,
                                                                      out_step);
  }
  I n_, width_;
  Elem word_;
  I size_;
  std::unique_ptr<char[]> memory_;
  char* block_;
};

/// Truth values are bytes.
template <typename F>
F kernel(SortKernel k, Elem e) {
  return sort_kernels().get<F>(k, e == Elem::boolean ? Elem::uint8 : e);
}

/// f(outer index, first line, how many, room for them) for groups of lines side by side.
template <typename F>
void for_groups(const Lines& lines, int bytes, const F& f) {
  const I width = vectors(lines, bytes) * lanes(bytes), n = lines.n;
  const I side = lines.inner > 1 ? lines.inner : lines.outer, per = (side + width - 1) / width;
  const I groups = lines.inner > 1 ? lines.outer * per : per;
  runtime::Pool::shared().parallel_for(groups, std::max<I>(1, 8192 / (n * width)), [&](I g, I end) {
    const Block whole(n, width, bytes), small(n, lanes(bytes), bytes);
    for (; g < end; ++g) {
      const I first = g % per * width, count = std::min(width, side - first);
      const Block& block = count <= lanes(bytes) ? small : whole;
      if (count < block.width()) block.clear();
      f(g / per, first, count, block);
    }
  });
}

/// Is a network of so many exchanges faster than one line after the other?
bool cheaper_side_by_side(Elem e, const Lines& lines, bool items, I exchanges) {
  const int bytes = items ? 8 : elem_bytes(e);
  const I side = lines.inner > 1 ? lines.inner : lines.outer, many = vectors(lines, bytes);
  const I at_once = std::min(side, many * lanes(bytes));
  if (at_once < 2) return false;
  // Tenths of nanoseconds, roughly: exchanges of vectors with the way in and out; lines alone.
  const bool eight = bytes == 8, wide = vector_kernels().shape.bytes >= 64;
  const I exchange = wide ? 22 : eight ? 11 : 7, way = wide ? 60 : 40;
  const I alone = wide ? (items   ? 1000 + 40 * lines.n
                          : eight ? 1500 + 80 * lines.n
                                  : 600 + 30 * lines.n)
                       : (items   ? 1000 + 150 * lines.n
                          : eight ? 1500 + 100 * lines.n
                                  : 600 + 40 * lines.n);
  return (exchange * exchanges + way * lines.n) * many < at_once * alone;
}

}  // namespace

bool suits_network(Elem e, const Lines& lines, bool items) {
  if (lines.n < 2 || lines.n > kLongest) return false;
  return cheaper_side_by_side(e, lines, items, static_cast<I>(network(lines.n).size()) / 2);
}

bool whole_items(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  for (I i = 0; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  if (high - low > UINT32_MAX) return false;
  for (I i = 0; i < n; ++i) items[i] = (keys[i] - low) << 32 | static_cast<std::uint64_t>(i);
  return true;
}

void upper_items(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items) {
  for (I i = 0; i < n; ++i)
    items[i] = (keys[i] & ~std::uint64_t{UINT32_MAX}) | static_cast<std::uint64_t>(i);
}

void order_equal_uppers(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items,
                        bool (*sort)(std::uint64_t* items, std::int64_t n)) {
  const auto upper = [&](I i) { return items[i] >> 32; };
  I equal = 0;
  for (I i = 1; i < n; ++i) equal += upper(i) == upper(i - 1);
  if (equal == 0) return;
  for (I begin = 0, end = 0; begin < n; begin = end) {
    do ++end;
    while (end < n && upper(end) == upper(begin));
    if (end - begin == 1) continue;
    for (I i = begin; i < end; ++i) {
      const std::uint64_t at = items[i] & UINT32_MAX;
      items[i] = keys[at] << 32 | at;
    }
    sort(items + begin, end - begin);
  }
}

std::int64_t special_values(Elem e, const void* data, std::int64_t n) {
  std::int64_t found[2] = {};
  if (is_real_float(e)) kernel<DigitCountsFn>(SortKernel::special, e)(data, found, n);
  return found[0];
}

void sort_lines(Elem e, char* data, const Lines& lines, bool descending) {
  const int bytes = elem_bytes(e);
  const I n = lines.n, flip = descending ? -1 : 0;
  const auto keys = kernel<KeysFn>(SortKernel::keys, e);
  const auto values = kernel<KeysFn>(SortKernel::values, e);
  for_groups(lines, bytes, [&](I outer, I first, I count, const Block& block) {
    if (lines.inner == 1) {
      char* const at = data + first * n * bytes;
      keys(at, block.rows(), count * n, flip);
      block.from_rows(count);
      block.exchange();
      block.to_rows(count);
      values(block.rows(), at, count * n, flip);
      return;
    }
    char* const at = data + (outer * n * lines.inner + first) * bytes;
    const I row = lines.inner * bytes, line = block.width() * bytes;
    for (I r = 0; r < n; ++r) keys(at + r * row, block.block() + r * line, count, flip);
    block.exchange();
    for (I r = 0; r < n; ++r) values(block.block() + r * line, at + r * row, count, flip);
  });
}

namespace {

/// Items of some lines one after the other: of keys of 8 bytes the upper halves where these are too
/// far apart.
class LineItems {
 public:
  LineItems(Elem e, I n, bool descending)
      : bytes_(elem_bytes(e)),
        n_(n),
        flip_(descending ? -1 : 0),
        items_(bytes_ == 8 ? nullptr : kernel<ItemsFn>(SortKernel::items, e)),
        keys_(kernel<KeysFn>(SortKernel::keys, e)) {}
  void make(const char* from, I count, std::uint64_t* rows) {
    if (items_) {
      for (I l = 0; l < count; ++l) items_(from + l * n_ * bytes_, rows + l * n_, n_, 0, flip_);
      return;
    }
    wide_.resize(static_cast<std::size_t>(n_ * count));
    whole_.assign(static_cast<std::size_t>(count), true);
    keys_(from, wide_.data(), count * n_, flip_);
    for (I l = 0; l < count; ++l) {
      const std::uint64_t* const line = wide_.data() + l * n_;
      if (whole_items(line, n_, rows + l * n_)) continue;
      whole_[static_cast<std::size_t>(l)] = false;
      upper_items(line, n_, rows + l * n_);
    }
  }
  /// Are a line's items in the order of its elements?
  bool whole(I l) const { return items_ || whole_[static_cast<std::size_t>(l)]; }
  /// Items of line l by their upper halves, sorted.
  void upper(I l, std::uint64_t* items) const {
    upper_items(wide_.data() + l * n_, n_, items);
    std::sort(items, items + n_);
  }
  /// The first `count` sorted items of line l in the order of its elements.
  void order(I l, std::uint64_t* items, I count) const {
    order_equal_uppers(wide_.data() + l * n_, count, items, [](std::uint64_t* x, I many) {
      std::sort(x, x + many);
      return true;
    });
  }

 private:
  int bytes_;
  I n_, flip_;
  ItemsFn items_;
  KeysFn keys_;
  std::vector<std::uint64_t> wide_;
  std::vector<bool> whole_;
};

}  // namespace

void argsort_lines(Elem e, const char* data, const Lines& lines, bool descending,
                   std::int64_t* out) {
  const I n = lines.n;
  const auto places = kernel<ItemPlacesFn>(SortKernel::item_places, Elem::uint64);
  for_groups(lines, 8, [&](I, I first, I count, const Block& block) {
    auto* const rows = reinterpret_cast<std::uint64_t*>(block.rows());
    LineItems items(e, n, descending);
    items.make(data + first * n * elem_bytes(e), count, rows);
    block.from_rows(count);
    block.exchange();
    block.to_rows(count);
    for (I l = 0; l < count; ++l) {
      if (!items.whole(l)) items.order(l, rows + l * n, n);
    }
    places(rows, out + first * n, count * n);
  });
}

TopLines::TopLines(Elem e, const Lines& lines, std::int64_t k, bool descending)
    : elem_(e), lines_(lines), k_(k), descending_(descending) {
  if (lines.n < 2 || lines.n > kLongest || k >= lines.n) return;
  // One more of keys of 8 bytes: is the last upper half the next one's too?
  pairs_ = partial(network(lines.n), lines.n, elem_bytes(e) == 8 ? k + 1 : k);
}

bool TopLines::suits() const {
  return !pairs_.empty() &&
         cheaper_side_by_side(elem_, lines_, true, static_cast<I>(pairs_.size()) / 2);
}

void TopLines::run(const char* data, std::int64_t* out) const {
  const I n = lines_.n, kept = elem_bytes(elem_) == 8 ? k_ + 1 : k_;
  const auto places = kernel<ItemPlacesFn>(SortKernel::item_places, Elem::uint64);
  for_groups(lines_, 8, [&](I, I first, I count, const Block& block) {
    auto* const rows = reinterpret_cast<std::uint64_t*>(block.rows());
    LineItems items(elem_, n, descending_);
    items.make(data + first * n * elem_bytes(elem_), count, rows);
    block.from_rows(count);
    block.exchange(pairs_);
    block.to_rows(count, kept);
    if (kept == k_) return places(rows, out + first * k_, count * k_);
    for (I l = 0; l < count; ++l) {
      std::uint64_t* const line = rows + l * kept;
      std::int64_t* const to = out + (first + l) * k_;
      if (items.whole(l)) {
        places(line, to, k_);
      } else if (line[k_ - 1] >> 32 != line[k_] >> 32) {
        items.order(l, line, k_);
        places(line, to, k_);
      } else {  // the lower halves decide which of them are among the first
        std::vector<std::uint64_t> all(static_cast<std::size_t>(n));
        items.upper(l, all.data());
        items.order(l, all.data(), n);
        places(all.data(), to, k_);
      }
    }
  });
}

}  // namespace weft
