// SPDX-License-Identifier: Apache-2.0
#pragma once
// f with a zero of the C++ type in which elements of a real type are compared: booleans as bytes,
// 16-bit floats as float.

#include <cstdint>

#include "weft/elements/elem.h"

namespace weft {

template <typename F>
auto with_type(Elem e, F&& f) {
  switch (e) {
    case Elem::boolean:
    case Elem::uint8: return f(std::uint8_t{});
    case Elem::int8: return f(std::int8_t{});
    case Elem::int16: return f(std::int16_t{});
    case Elem::int32: return f(std::int32_t{});
    case Elem::int64: return f(std::int64_t{});
    case Elem::uint16: return f(std::uint16_t{});
    case Elem::uint32: return f(std::uint32_t{});
    case Elem::uint64: return f(std::uint64_t{});
    case Elem::float64: return f(double{});
    default: return f(float{});
  }
}

}  // namespace weft
