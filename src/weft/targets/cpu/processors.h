// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of processors that the option mcpu may have. LLVM ends the process for a name that it does
// not know, and its C interface has no list.

#include <string>

namespace weft::cpu {

/// Throws Error(value, "cpu.option.processor") for a name of no processor of this architecture;
/// "host" is legal everywhere.
void check_processor(const std::string& name);

}  // namespace weft::cpu
