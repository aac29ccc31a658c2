// SPDX-License-Identifier: Apache-2.0
#pragma once
// What passes and emitters ask of the attributes of a function.

#include "weft/ir/build.h"

namespace weft::ir {

/// Whether an attribute is there and true (or an integer other than 0).
inline bool has_flag(const Annotations& attributes, std::string_view key) {
  const Json* v = find_annotation(attributes, key);
  return v && ((v->is_bool() && v->as_bool()) || (v->is_int() && v->as_int() != 0));
}

}  // namespace weft::ir
