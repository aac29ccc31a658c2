// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chips whose logic is loaded: a Device may also be this.

#include <string_view>

namespace weft::runtime {

class Programmable {
 public:
  virtual ~Programmable() = default;
  /// Loads the logic; no bytes: what the device has for its configuration. Throws Error(device).
  virtual void program(std::string_view bitstream) = 0;
};

}  // namespace weft::runtime
