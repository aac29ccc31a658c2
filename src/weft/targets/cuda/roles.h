// SPDX-License-Identifier: Apache-2.0
#pragma once
// What threads in roles do (ir/roles.h) in CUDA: tokens are mbarriers that count bytes, bulk copies
// the copy engine's (cp.async.bulk.tensor), tile_multiply four wgmma of 16 summands, tile_store
// stmatrix, registers setmaxnreg. Source: PTX ISA, the chapters of these names.

#include <string>
#include <string_view>

#include "weft/ir/node.h"

namespace weft::cuda {

/// A kernel with these calls replaced by calls of device functions, and tiles placed at multiples
/// of 1024 bytes. Throws Error(emit, "cuda.instruction.form") for a tile that wgmma does not have.
ir::PrimFunc spell_roles(const ir::PrimFunc& kernel);

/// Whether the kernel waits by itself, behind its preparations, for the launches before it. Their
/// results and its own may be touched only then.
bool waits_for_earlier(std::string_view source, std::string_view kernel);

/// The device function that such a call names; "" for other names.
std::string role_definition(std::string_view name);

/// A kernel's parameter that describes an array, with % for its name, and its type.
extern const char* const kTensorParam;
extern const char* const kTensorHelpers;

}  // namespace weft::cuda
