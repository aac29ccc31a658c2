// SPDX-License-Identifier: Apache-2.0
#include "weft/array/divisors.h"

#include <numeric>

#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Of magnitudes; results that the type cannot hold wrap.
template <bool kMultiple>
NDArray common(const NDArray& a, const NDArray& b) {
  const Elem e = promote(a.elem(), b.elem());
  // Narrow numbers are computed in 32 bits, as they are or as their magnitude.
  const Elem wide = elem_bytes(e) < 4 ? Elem::int32 : e;
  const auto brought = [wide](const NDArray& v) {
    return v.elem() == wide ? v.contiguous() : v.astype(wide);
  };
  const NDArray x = brought(a), y = brought(b);
  const NDArray out = NDArray::empty(a.device(), wide, x.shape());
  const auto run = [&]<typename U>(U) {
    const U top = is_signed_int(wide) ? U{1} << (8 * sizeof(U) - 1) : U{0};
    const auto size = [top](U v) { return (v & top) ? U{0} - v : v; };
    const U *from = reinterpret_cast<const U*>(x.host()),
            *beside = reinterpret_cast<const U*>(y.host());
    U* const to = reinterpret_cast<U*>(out.host());
    runtime::Pool::shared().parallel_for(x.size(), 4096, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        const U p = size(from[i]), q = size(beside[i]), divisor = std::gcd(p, q);
        to[i] = !kMultiple ? divisor : divisor == 0 ? U{0} : p / divisor * q;
      }
    });
  };
  if (elem_bytes(wide) == 8) run(std::uint64_t{});
  else run(std::uint32_t{});
  return wide == e ? out : out.astype(e);
}

}  // namespace

NDArray greatest_divisors(const NDArray& a, const NDArray& b) { return common<false>(a, b); }
NDArray least_multiples(const NDArray& a, const NDArray& b) { return common<true>(a, b); }

}  // namespace weft
