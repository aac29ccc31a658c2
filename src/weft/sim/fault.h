// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated machine's error: exact, with the unit, the pc and the cycle. Thrown as weft::Error of
// kind `fault`, so the same renderer shows it.

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/error.h"

namespace weft::sim {

struct FaultPlace {
  std::string unit;      // "qpu 2", "compute", "pe (3, 4)"
  std::int64_t pc = -1;  // byte address or instruction index; -1: none
  std::int64_t cycle = -1;
  std::string instruction;  // disassembly
  std::string source;       // "kernel.weft:14", block name
};

/// Error(ErrorKind::fault, code, message) with the place rendered; add notes to taste, then throw.
Error fault(std::string_view code, std::string message, const FaultPlace& place);

}  // namespace weft::sim
