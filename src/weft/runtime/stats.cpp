// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/stats.h"

#include <algorithm>
#include <map>

namespace weft::runtime {

void StatReport::add(std::string name, std::string unit, std::string meaning, std::int64_t value) {
  rows_.push_back({std::move(name), std::move(unit), std::move(meaning), value});
}

bool StatReport::has(std::string_view name) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Stat& s) { return s.name == name; });
}

std::int64_t StatReport::get(std::string_view name) const {
  std::vector<std::string> known;
  for (const Stat& stat : rows_) {
    if (stat.name == name) return stat.value;
    known.push_back(stat.name);
  }
  throw Error(ErrorKind::value, "stats.unknown", cat("there is no statistic \"", name, "\""))
      .note(cat("present: ", join(known)))
      .help(did_you_mean(name, known));
}

Json StatReport::to_json() const {
  Json out = Json::object();
  for (const Stat& stat : rows_) out[stat.name] = stat.value;
  return out;
}

std::string StatReport::table() const {
  std::size_t name_width = 0, value_width = 0, unit_width = 0;
  for (const Stat& stat : rows_) {
    name_width = std::max(name_width, stat.name.size());
    value_width = std::max(value_width, std::to_string(stat.value).size());
    unit_width = std::max(unit_width, stat.unit.size());
  }
  std::string out;
  for (const Stat& stat : rows_) {
    std::string value = std::to_string(stat.value);
    out += stat.name + std::string(name_width - stat.name.size() + 2, ' ');
    out += std::string(value_width - value.size(), ' ') + value + ' ';
    out += stat.unit + std::string(unit_width - stat.unit.size() + 2, ' ') + stat.meaning + '\n';
  }
  return out;
}

Verdict StatReport::check_books() const {
  std::map<std::string, std::int64_t, std::less<>> totals;
  std::int64_t cycles = 0;
  for (const Stat& stat : rows_) {
    std::string_view name = stat.name;
    if (name == "cycles") cycles = stat.value;
    if (name.starts_with("busy.") || name.starts_with("idle.")) {
      totals[std::string(name.substr(5))] += stat.value;
    } else if (name.starts_with("stall.")) {
      std::string_view unit = name.substr(6);
      totals[std::string(unit.substr(0, unit.find('.')))] += stat.value;
    }
  }
  for (const auto& [unit, total] : totals) {
    if (total != cycles) {
      Refusal refusal;
      refusal.code = "sim.stats.unbalanced";
      refusal.message =
          cat("the books of \"", unit, "\" hold ", total, " cycles, but the run took ", cycles);
      refusal.note("rule: per unit, busy + stalls + idle = cycles");
      return refusal;
    }
  }
  return std::nullopt;
}

}  // namespace weft::runtime
