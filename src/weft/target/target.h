// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Target is a name with options; TargetInfo (machine/target_info.h) is what shared code may know
// of it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weft/machine/target_info.h"

namespace weft {

/// "cuda:arch=sm_90a,max_threads_per_block=1024", "qpu:qpus=12", "wse:4x4", "cuda:0" (a bare value
/// is kept under the key "").
struct Target {
  std::string name;
  std::map<std::string, std::string, std::less<>> options;
  static Target parse(std::string_view text);  // throws Error(value, "target.parse")
  std::string text() const;                    // canonical
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  std::string option(std::string_view key, std::string_view otherwise) const;
};

}  // namespace weft
