// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stable sorting of the rows of a compact array by digits. Keys are unsigned integers whose order
// is the order of the values: -0 and 0 are equal, NaN the greatest in either direction. Where
// positions are sorted they travel with the keys. Where elements are, nothing else travels: a key
// says which element it is, and its digits are those of the key that equal ones share. Rows
// that fit a block are sorted in shared memory, four bits a pass. Longer ones go through memory,
// eight bits a pass: `count` counts the digits of each tile, the counts are scanned (scan_apply,
// exclusive, along [digit, tile]), `move` sorts a tile by the digit and writes its runs.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

enum class KeyKind : std::uint8_t { unsigned_integer, signed_integer, floating };
/// What is sorted: positions (64 bits), or elements.
enum class SortResult : std::uint8_t { positions, elements };

struct SortSpec {
  KeyKind kind = KeyKind::unsigned_integer;
  int bits = 32;          // of an element: 8, 16, 32, 64
  int exponent_bits = 8;  // of floating elements
  bool descending = false;
  bool narrow = true;
  int threads = 256, items = 8;
  bool first = true;  // reads elements; else what the pass before wrote
  bool last = true;   // writes the result; else keys, and positions where those are sorted
  SortResult result = SortResult::positions;
  int tile() const { return threads * items; }
};
inline constexpr int kDigits = 256;

/// The key of a word (text of an expression of the key's type), and that type.
std::string sort_key(const SortSpec& spec, const std::string& word);
std::string sort_key_type(const SortSpec& spec);
/// The word of an integer's key.
std::string sort_word(const SortSpec& spec, const std::string& key);

/// Shared memory of a block of `sort_move` and `sort_block`.
std::int64_t sort_shared_bytes(const SortSpec& spec);

/// Rows of at most a tile: (x, out, rows, n).
ir::PrimFunc sort_block(const SortSpec& spec);
/// (keys, counts, blocks, n, tiles, shift); counts [rows, digits, tiles], int32 or int64.
ir::PrimFunc sort_count(const SortSpec& spec);
/// (x, keys, at, starts, keys_out, at_out, out, blocks, n, tiles, shift) without those that
/// the pass does not use: x of the first one, keys and at of later ones, out of the last, keys_out
/// and at_out of all others; at and at_out where positions are sorted.
ir::PrimFunc sort_move(const SortSpec& spec);

}  // namespace weft::operators
