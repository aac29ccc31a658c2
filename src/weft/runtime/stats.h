// SPDX-License-Identifier: Apache-2.0
#pragma once
// Self-describing statistics: each value carries its name, unit and meaning. Names follow
// `cycles`, `instructions`, `busy.<unit>`, `stall.<unit>.<reason>`, `idle.<unit>`,
// `bytes.<memory>.read|written`. The books balance: per unit busy + stalls + idle = cycles.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"

namespace weft::runtime {

struct Stat {
  std::string name;
  std::string unit;     // "cycles", "bytes", "1"
  std::string meaning;  // one line
  std::int64_t value = 0;
};

class StatReport {
 public:
  void add(std::string name, std::string unit, std::string meaning, std::int64_t value);
  const std::vector<Stat>& rows() const { return rows_; }
  /// Throws Error(value, "stats.unknown") listing names when absent.
  std::int64_t get(std::string_view name) const;
  bool has(std::string_view name) const;
  Json to_json() const;       // {name: value}
  std::string table() const;  // aligned text: name, value, unit, meaning
  /// Refuses (sim.stats.unbalanced) when for some unit busy + stalls + idle differs from `cycles`.
  Verdict check_books() const;

 private:
  std::vector<Stat> rows_;
};

}  // namespace weft::runtime
