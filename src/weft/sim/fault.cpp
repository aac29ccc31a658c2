// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/fault.h"

namespace weft::sim {

Error fault(std::string_view code, std::string message, const FaultPlace& place) {
  Error error(ErrorKind::fault, code, std::move(message));
  std::string label = place.unit;
  if (place.pc >= 0) label += cat("  pc ", hex(static_cast<std::uint64_t>(place.pc)));
  std::string text = place.instruction;
  if (place.cycle >= 0) text += cat(text.empty() ? "" : "   ", "cycle ", place.cycle);
  if (!place.source.empty()) text += cat(text.empty() ? "" : "   ", "from ", place.source);
  error.at(label, text);
  return error;
}

}  // namespace weft::sim
