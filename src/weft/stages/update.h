// SPDX-License-Identifier: Apache-2.0
#pragma once
// The body of a block as one update of one element: element = value, or element = element op value.

#include <cstdint>
#include <optional>

#include "weft/ir/node.h"

namespace weft::stages {

enum class Combine : std::uint8_t { none, add, mul, min, max };

struct Update {
  const ir::StoreNode* store = nullptr;
  const ir::StoreNode* init = nullptr;  // null: the block has none
  ir::Expr condition;                   // of the store, not of the init; null: always
  Combine combine = Combine::none;      // only of blocks with a reduction iterator or an init
  ir::Expr value;                       // what is stored, or combined with the element
  bool reduces = false;                 // the block has a reduction iterator
  bool reads_own = false;               // `value` reads the buffer that is written
};

/// Whether `e` reads the element that `store` writes.
bool reads_element(const ir::StoreNode& store, const ir::Expr& e);

/// Absent when the body is not one store, perhaps under one `if`, or the init is no store to the
/// same buffer.
std::optional<Update> find_update(const ir::Block& block);
/// The same, with Error(lower, "stages.body" or "stages.init").
Update read_update(const ir::Block& block);

}  // namespace weft::stages
