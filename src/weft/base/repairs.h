// SPDX-License-Identifier: Apache-2.0
#pragma once
// What helps against an error, by its slug. Each component lists the repairs that do not depend on
// the values of the case in a file `repairs.def`; an error that brings no help of its own takes its
// row's. One `*` in a slug stands for one or more words: "array.*.rank".

#include <span>
#include <string_view>

namespace weft {

struct RepairRow {
  std::string_view slug, text;
};

/// All rows of the tree (cmake/repair_tables.cmake writes the source).
std::span<const RepairRow> repair_rows();

/// The text of the row of `slug`, or empty.
std::string_view repair_of(std::string_view slug);

}  // namespace weft
