// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C library's vector mathematics (glibc's libmvec), found at run time: a library that imported
// its functions could not be loaded beside a glibc older than 2.35. Compiled loops call them under
// their own names, which vector_math.cpp defines; where libmvec has no such function, its
// definition computes lane by lane.

#include <string>

namespace weft {

/// The address of a vector function, such as "_ZGVdN8v_sinf": ours where it is faster
/// (vector_math_avx512.h), else libmvec's; null where there is none. Opens the library at the first
/// call. Never throws.
void* vector_function(const std::string& name);

}  // namespace weft
