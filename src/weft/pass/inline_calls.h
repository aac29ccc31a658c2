// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls between the functions of a module: the body of the called function stands in place of the
// call, so that each function that is lowered is whole. Tensor parameters become the caller's
// buffers: the buffer itself when all of it is passed, rows of it when the trailing dimensions
// agree, otherwise positions counted from the address. Blocks of the called function stay blocks
// where its arguments are known outside all loops; elsewhere they become plain loops. Runs before
// everything else, once a module.

#include "weft/ir/node.h"

namespace weft::pass {

/// The same module when no function calls another. Throws Error(verify, "verify.call.*") for calls
/// that fit no function, and Error(lower, "lower.call.*") for those that cannot be inlined: of a
/// function that calls itself, inside an expression, with arguments that do not fit, or of one that
/// declares something of its body which its caller does not.
ir::IRModule inline_calls(const ir::IRModule& m);

}  // namespace weft::pass
