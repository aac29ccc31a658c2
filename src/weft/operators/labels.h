// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where each row's label lies in the flat scores of all rows and classes.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kLabelThreads = 256;
/// (labels, at, flag, blocks, size, classes): at[i] = i * classes + labels[i], in int64; of a label
/// outside [0, classes) its row's first class, and flag[0] = 1.
ir::PrimFunc label_positions(const std::string& label_type);

}  // namespace weft::operators
