// SPDX-License-Identifier: Apache-2.0
#pragma once
// The carrier of compile-time integers: 128 bits with overflow reported, which covers every
// expression over 64-bit values the language can spell short of products of products.

#include <cstdint>
#include <string>

namespace weft::wse::csl {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

std::string to_text(Int128 value);

}  // namespace weft::wse::csl
