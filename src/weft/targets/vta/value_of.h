// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise expressions as operations of ALU on int32, with the range of every value, so that
// casts between integer types keep their meaning and cost nothing where nothing can overflow.

#include <functional>
#include <optional>
#include <string>

#include "weft/targets/vta/stages.h"

namespace weft::vta {

/// Reads an expression; null: it cannot be, and slug, message and note say why.
struct ValueReader {
  const ir::BufferNode* self = nullptr;  // loads of it are the chain's value so far
  const ir::Exprs* self_index = nullptr;
  std::function<std::optional<std::size_t>(const ir::Expr&)> load;  // any other read -> operand
  std::function<DType(std::size_t)> dtype_of;
  std::string slug, message, note;

  /// The value that an expression has in its type: arithmetic of narrow types wraps.
  ValuePtr read(const ir::Expr& e);

 private:
  /// As read; of the outermost operation before it wraps.
  ValuePtr read_wide(const ir::Expr& e);
  ValuePtr refuse(const char* why, std::string text, std::string more = {});
  ValuePtr binary(const ir::Expr& whole, AluOp op, const ir::Expr& a, const ir::Expr& b);
};

ValuePtr make_constant(std::int64_t v);
ValuePtr make_op(AluOp op, ValuePtr a, ValuePtr b);
/// The value as an integer of this type holds it: the same node when it always fits.
ValuePtr narrowed(const ValuePtr& v, DType type);
/// Removes a narrowing to this many bits that a store does anyway.
ValuePtr without_narrowing(const ValuePtr& v, int bits);
/// `v` with self replaced.
ValuePtr replace_self(const ValuePtr& v, const ValuePtr& by);
int uses_of_self(const ValuePtr& v);

}  // namespace weft::vta
