// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "weft/base/error.h"

namespace weft::runtime {

/// The refusal when the host does not grant `wanted` threads.
inline Error no_threads(int wanted, const char* reason) {
  return Error(ErrorKind::device, "pool.threads",
               cat("the host does not grant ", wanted, " more threads: ", reason))
      .help("weft.set_threads(1), or raise the limit of processes of this user (ulimit -u)");
}

}  // namespace weft::runtime
