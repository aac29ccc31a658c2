// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace weft::opencl {

/// Declarations of the functions that our texts call (spelling.cpp), for drivers that compile with
/// Clang's opencl-c.h. Its 18,000 lines take two fifths of the time to compile a kernel; with
/// kSkipHeader they are passed over.
const std::string& declarations();
inline constexpr char kSkipHeader[] = "-D_OPENCL_H_";

}  // namespace weft::opencl
