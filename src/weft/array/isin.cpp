// SPDX-License-Identifier: Apache-2.0
// Whole numbers near each other: a table of all numbers from the least to the largest. Else a table
// of the values by hashes of their bits, at most a quarter full, so that most elements are decided
// by the first entry that they look at.

#include "weft/array/isin.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// Equal elements have equal words: -0 is 0.
template <typename T>
Word<T> word_of(T v) {
  if constexpr (std::is_floating_point_v<T>) v += T{0};
  Word<T> word;
  std::memcpy(&word, &v, sizeof(T));
  return word;
}

template <typename T>
class Members {
 public:
  Members(const T* values, std::int64_t n)
      : bits_(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 4)) * 4 - 1)),
        slots_(std::make_unique_for_overwrite<W[]>(std::size_t{1} << bits_)) {
    // An entry without a value holds a word that no value has.
    std::unique_ptr<W[]> words = std::make_unique_for_overwrite<W[]>(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) words[static_cast<std::size_t>(i)] = word_of(values[i]);
    const W* const end = words.get() + n;
    while (std::find(static_cast<const W*>(words.get()), end, none_) != end) none_ += kStep;
    std::fill_n(slots_.get(), std::size_t{1} << bits_, none_);
    for (std::int64_t i = 0; i < n; ++i) {
      if (values[i] == values[i])
        slots_[place(words[static_cast<std::size_t>(i)])] = words[static_cast<std::size_t>(i)];
    }
  }
  bool has(T v) const {
    const W word = word_of(v);
    return (slots_[place(word)] == word) & (word != none_) & (v == v);
  }

 private:
  using W = Word<T>;
  static constexpr W kStep = static_cast<W>(0x9e3779b97f4a7c15u);  // odd: meets every word

  /// Where the word is, or would be.
  std::size_t place(W word) const {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    std::size_t at = (word * std::uint64_t{0x9e3779b97f4a7c15u}) >> (64 - bits_);
    while (slots_[at] != word && slots_[at] != none_) at = (at + 1) & mask;
    return at;
  }

  int bits_;
  W none_ = kStep;
  std::unique_ptr<W[]> slots_;
};

/// Of words, whose distances from the first value are what they are whether they have a sign or
/// not.
template <typename W>
class NearMembers {
 public:
  /// Empty where the table would be longer than so many entries.
  NearMembers(const W* values, std::int64_t n, std::uint64_t most) {
    using Signed = std::make_signed_t<W>;
    if (n == 0) return;
    const W base = values[0];
    Signed low = 0, high = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto away = static_cast<Signed>(values[i] - base);
      low = std::min(low, away), high = std::max(high, away);
    }
    const W span = static_cast<W>(high) - static_cast<W>(low);
    if (span >= most) return;
    least_ = base + static_cast<W>(low);
    table_.resize(static_cast<std::size_t>(span) + 2);  // the last one of what is outside
    for (std::int64_t i = 0; i < n; ++i) table_[static_cast<W>(values[i] - least_)] = 1;
  }
  bool any() const { return !table_.empty(); }
  bool has(W v) const {
    return table_[std::min<std::size_t>(static_cast<W>(v - least_), table_.size() - 1)] != 0;
  }

 private:
  W least_ = 0;
  std::vector<char> table_;
};

template <typename T>
void look_up(const NDArray& x, const NDArray& values, const NDArray& out) {
  const T *const from = reinterpret_cast<const T*>(x.host()), *const set =
                                                                  reinterpret_cast<const T*>(
                                                                      values.host());
  auto* const to = reinterpret_cast<bool*>(out.host());
  const auto all = [&](const auto& members) {
    runtime::Pool::shared().parallel_for(x.size(), 4096, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) to[i] = members.has(from[i]);
    });
  };
  if constexpr (std::is_integral_v<T>) {
    constexpr std::int64_t kMost = 1 << 18;  // bytes, of the second-level cache
    const auto most = static_cast<std::uint64_t>(std::min(kMost, 64 + 4 * x.size()));
    if (const NearMembers<T> near(set, values.size(), most); near.any()) return all(near);
  }
  all(Members<T>(set, values.size()));
}

}  // namespace

NDArray is_in(const NDArray& x, const NDArray& values) {
  check_same_device(x, values, "isin");
  const Elem common = arithmetic_elem(promote(x.elem(), values.elem()));
  const Elem e = !is_real_float(common) && elem_bytes(common) < 4 ? Elem::int32 : common;
  const NDArray in = (x.elem() == e ? x : x.astype(e)).contiguous(),
                set = (values.elem() == e ? values : values.astype(e)).contiguous();
  const NDArray out = NDArray::empty(x.device(), Elem::boolean, x.shape());
  switch (e) {
    case Elem::float32: look_up<float>(in, set, out); break;
    case Elem::float64: look_up<double>(in, set, out); break;
    default:
      if (elem_bytes(e) == 4) look_up<std::uint32_t>(in, set, out);
      else look_up<std::uint64_t>(in, set, out);
  }
  return out;
}

}  // namespace weft
