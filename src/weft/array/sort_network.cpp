// SPDX-License-Identifier: Apache-2.0
#include "weft/array/sort_network.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/array/strided_copy.h"
#include "weft/host/sort_kernels.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

/// Elements of a line up to which a network's steps are fewer than those of other methods.
constexpr I kLongest = 256;
constexpr I longest(int bytes) { return bytes == 4 ? kLongest : kLongest / 2; }
/// Below this many lines most lanes would be empty.
constexpr I kFewest = 8;

/// Comparisons that sort n elements (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M).
std::vector<I> comparisons(I n) {
  std::vector<I> out;
  I top = 1;
  while (top * 2 < n) top *= 2;
  for (I p = top; p > 0; p /= 2) {
    I q = top, r = 0, d = p;
    while (true) {
      for (I i = 0; i + d < n; ++i) {
        if ((i & p) == r) out.insert(out.end(), {i, i + d});
      }
      if (q == p) break;
      d = q - p, q /= 2, r = p;
    }
  }
  return out;
}

/// The comparisons of the last length that this thread asked for.
const std::vector<I>& comparisons_of(I n) {
  thread_local I length = 0;
  thread_local std::vector<I> held;
  if (length != n) held = comparisons(n), length = n;
  return held;
}

/// Sorts up to kSortLanes lines of n elements in place.
class Lines {
 public:
  Lines(Elem e, I n, bool descending)
      : bytes_(elem_bytes(e)), n_(n), flip_(descending ? -1 : 0), pairs_(&comparisons_of(n)) {
    const SortTable& table = sort_kernels();
    const Elem word = bytes_ == 4 ? Elem::uint32 : Elem::uint64;
    keys_ = table.get<KeysFn>(SortKernel::keys, e);
    values_ = table.get<KeysFn>(SortKernel::values, e);
    network_ = table.get<NetworkFn>(SortKernel::network, word);
    turn_ = vector_kernels().get<TransposeFn>(VectorKernel::transpose, word);
  }

  /// Element i of line l is at data[i * step + l].
  void beside_each_other(char* data, I step, I lines) {
    if (lines < kSortLanes) std::memset(lanes_, 0, static_cast<std::size_t>(n_ * width()));
    for (I i = 0; i < n_; ++i)
      keys_(data + i * step * bytes_, lanes_ + i * width(), lines, flip_);
    run();
    for (I i = 0; i < n_; ++i)
      values_(lanes_ + i * width(), data + i * step * bytes_, lines, flip_);
  }

  /// Line after line.
  void after_each_other(char* data, I lines) {
    if (lines < kSortLanes) std::memset(lanes_, 0, static_cast<std::size_t>(n_ * width()));
    keys_(data, keyed_, lines * n_, flip_);
    turn(keyed_, n_, lanes_, kSortLanes, lines, n_);
    run();
    turn(lanes_, kSortLanes, keyed_, n_, n_, lines);
    values_(keyed_, data, lines * n_, flip_);
  }

 private:
  I width() const { return kSortLanes * bytes_; }
  void run() {
    network_(pairs_->data(), lanes_, static_cast<I>(pairs_->size() / 2), n_ * kSortLanes);
  }
  /// to[j * to_step + i] = from[i * from_step + j] for i < m, j < n.
  void turn(const char* from, I from_step, char* to, I to_step, I m, I n) const {
    if (m >= 8 && n >= 8) return turn_(from, to, n, m, from_step, to_step);
    for (I i = 0; i < m; ++i)
      copy_run(bytes_, to + i * bytes_, to_step, from + i * from_step * bytes_, 1, n);
  }

  const int bytes_;
  const I n_, flip_;
  const std::vector<I>* pairs_;
  KeysFn keys_, values_;
  NetworkFn network_;
  TransposeFn turn_;
  alignas(64) char lanes_[kLongest * kSortLanes * 4], keyed_[kLongest * kSortLanes * 4];
};

/// Are there numbers that have no place of their own among keys?
bool has_special(const NDArray& x) {
  if (!is_real_float(x.elem())) return false;
  I special = 0;
  sort_kernels().get<DigitCountsFn>(SortKernel::special, x.elem())(x.host(), &special, x.size());
  return special > 0;
}

}  // namespace

NDArray sorted_by_network(const NDArray& x, int axis, bool descending) {
  const int bytes = elem_bytes(x.elem());
  const I n = x.shape()[axis];
  if (!x.on_host() || is_complex(x.elem()) || (bytes != 4 && bytes != 8)) return {};
  if (n < 2 || n > longest(bytes) || x.size() / n < kFewest) return {};
  I inner = 1;
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  if (inner > 1 && inner < kFewest) return {};
  const NDArray out = x.copy();
  if (has_special(out)) return {};
  const I lines = inner > 1 ? inner : out.size() / n;  // that lie one way
  const I groups = (lines + kSortLanes - 1) / kSortLanes, blocks = out.size() / n / lines;
  const I grain = std::max<I>(1, 4096 / (n * kSortLanes));
  runtime::Pool::shared().parallel_for(blocks * groups, grain, [&](I g, I end) {
    Lines work(out.elem(), n, descending);
    for (; g < end; ++g) {
      const I first = g % groups * kSortLanes, count = std::min(kSortLanes, lines - first);
      if (inner > 1)
        work.beside_each_other(out.host() + (g / groups * n * inner + first) * bytes, inner, count);
      else work.after_each_other(out.host() + first * n * bytes, count);
    }
  });
  return out;
}

}  // namespace weft
