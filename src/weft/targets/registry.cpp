// SPDX-License-Identifier: Apache-2.0
// The list of back ends of this build; backends.inc is written by CMake from targets.list.
#include "weft/target/backend.h"

#define WEFT_BACKEND(name) \
  namespace weft::name {   \
  Backend& backend();      \
  }
#include "backends.inc"
#undef WEFT_BACKEND

namespace weft {

const std::vector<Backend*>& backends() {
  static const std::vector<Backend*> all = {
#define WEFT_BACKEND(name) &name::backend(),
#include "backends.inc"
#undef WEFT_BACKEND
  };
  return all;
}

}  // namespace weft
