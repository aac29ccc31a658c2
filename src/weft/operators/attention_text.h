// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statements that programs of attention share.

#include <string>
#include <string_view>

#include "weft/operators/attention_tiles.h"

namespace weft::operators {

/// Philox 2x32-7 of (query, key) under the seed and the plane: `keep` is the factor of a weight.
std::string dropout_factor(std::string_view in, std::string_view query, std::string_view key,
                           std::string_view plane);

/// The text with `blanks` before each of its lines.
std::string indented(std::string_view text, int blanks);

/// Pieces of 64 columns.
inline int pieces(int width) { return (width + 63) / 64; }

/// An array of rows as the copy engine sees it, innermost axis first; `strides`: the prefix of its
/// strides' names.
std::string tile_map(const char* name, const char* strides, int width, const char* rows,
                     const char* heads, int box_rows);

/// Parameters of the options, behind the operands and behind the strides.
void option_arrays(class ProgramText& p, const AttentionTiles& s);
void option_numbers(ProgramText& p, const AttentionTiles& s);

/// Statements after which S[j, i, e] is -inf where the query must not see the key; an added mask
/// has joined the others. Rows are queries or keys; columns begin at `start`. `outside`: whether
/// some element of the tile is not seen by the limits of lengths and band alone.
std::string masked_scores(const AttentionTiles& s, bool rows_are_queries, int groups,
                          std::string_view start, std::string_view outside);

/// Statements of a group of the forward programs. After the first S holds weights that are not
/// divided by their sum, and LESS the factors of what was summed before; the second ones make S of
/// the queries and a slot's keys; the third ones OUT += the weights of a slot times its values, or
/// = where `first`, a condition unless empty, holds.
std::string tile_softmax(const AttentionTiles& s, std::string_view start, int blanks);
std::string tile_scores(const AttentionTiles& s, std::string_view slot, int blanks);
std::string tile_values(const AttentionTiles& s, std::string_view slot, std::string_view first,
                        int blanks);

}  // namespace weft::operators
