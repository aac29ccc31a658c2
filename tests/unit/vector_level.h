// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace weft {

/// Can this processor run the kernels of a level: base, avx2, avx512?
inline bool runs_here([[maybe_unused]] const std::string& level) {
#if defined(WEFT_WITH_AVX2) || defined(WEFT_WITH_AVX512)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  if (level == "avx2") return avx2;
  if (level == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  return level == "base";
}

}  // namespace weft
