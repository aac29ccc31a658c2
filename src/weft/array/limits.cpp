// SPDX-License-Identifier: Apache-2.0
#include "weft/array/limits.h"

#include <cmath>

#include "weft/array/constant_operand.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Words are in the order of their floats where those of negative ones are turned round.
std::int16_t ordered_word(std::int16_t word) {
  return static_cast<std::int16_t>(word ^ ((word >> 15) & 0x7fff));
}

void limit_words(const std::int16_t* from, std::int16_t* to, std::int64_t n, std::int16_t least,
                 std::int16_t most, std::int16_t infinite) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int16_t word = from[i], key = ordered_word(word);
    const std::int16_t above = key < least ? least : key, found = above > most ? most : above;
    const auto size = static_cast<std::int16_t>(word & 0x7fff);
    to[i] = size > infinite ? word : ordered_word(found);
  }
}

bool is_limit(const std::optional<Scalar>& limit) {
  return !limit ||
         (limit->kind != Kind::complex && !limit->beyond && !std::isnan(exponent_of(*limit)));
}

}  // namespace

bool has_clipped_words(const NDArray& x, const std::optional<Scalar>& low,
                       const std::optional<Scalar>& high) {
  return (x.elem() == Elem::float16 || x.elem() == Elem::bfloat16) && x.on_host() &&
         x.is_contiguous() && is_limit(low) && is_limit(high);
}

NDArray clipped_words(const NDArray& x, const std::optional<Scalar>& low,
                      const std::optional<Scalar>& high) {
  const auto infinite = static_cast<std::int16_t>(x.elem() == Elem::float16 ? 0x7c00 : 0x7f80);
  const auto key_of = [&](const std::optional<Scalar>& limit, int otherwise) {
    auto word = static_cast<std::int16_t>(otherwise);
    if (limit) write_scalar(*limit, x.elem(), &word);
    return ordered_word(word);
  };
  const std::int16_t least = key_of(low, infinite | 0x8000), most = key_of(high, infinite);
  NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  const auto* from = reinterpret_cast<const std::int16_t*>(x.host());
  auto* to = reinterpret_cast<std::int16_t*>(out.host());
  runtime::Pool::shared().parallel_for(x.size(), 1 << 15, [&](std::int64_t i, std::int64_t end) {
    limit_words(from + i, to + i, end - i, least, most, infinite);
  });
  return out;
}

}  // namespace weft
