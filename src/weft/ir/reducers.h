// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commutative reducers every part knows by name: sum, prod, min, max over one value; argmin,
// argmax over (index, value), the smaller index winning ties.

#include <string_view>
#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

/// Null when the name is unknown or takes another number of components.
Reducer standard_reducer(std::string_view name, const std::vector<DType>& types);
const std::vector<std::string_view>& standard_reducers();
/// Same name, identity and combination.
bool same_reducer(const Reducer& a, const Reducer& b);
/// A reducer from a combining expression over fresh variables.
Reducer make_reducer(std::string name, std::vector<Var> lhs, std::vector<Var> rhs, Exprs result,
                     Exprs identity);

}  // namespace weft::ir
