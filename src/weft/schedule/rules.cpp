// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/rules.h"

#include <algorithm>

namespace weft::schedule {
namespace {

template <typename Rows>
auto find_row(const Rows& rows, std::string_view name, auto member) -> decltype(rows.data()) {
  for (const auto& row : rows) {
    if (row.*member == name) return &row;
  }
  return nullptr;
}

template <typename Rows>
std::vector<std::string> names_of(const Rows& rows, auto member) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(row.*member);
  return out;
}

ScheduleRules make_generic() {
  // Limits that hold on every current accelerator of this kind: 1024 threads a group (64 in z),
  // 2^31-1 groups in x and 65535 in y and z (CUDA C programming guide, technical specifications).
  constexpr std::int64_t kGrid = 65535;
  constexpr std::int64_t kThreads = 1024;
  ScheduleRules rules;
  rules.axes = {
      {"blockIdx.x", (std::int64_t{1} << 31) - 1, "blockIdx", 0, false, false},
      {"blockIdx.y", kGrid, "blockIdx", 0, false, false},
      {"blockIdx.z", kGrid, "blockIdx", 0, false, false},
      {"threadIdx.x", kThreads, "threadIdx", kThreads, true, false},
      {"threadIdx.y", kThreads, "threadIdx", kThreads, true, false},
      {"threadIdx.z", 64, "threadIdx", kThreads, true, false},
      {"vthread", 0, "", 0, false, true},
      {"vthread.x", 0, "", 0, false, true},
      {"vthread.y", 0, "", 0, false, true},
      {"vthread.z", 0, "", 0, false, true},
  };
  const std::vector<std::string> groups = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
  std::vector<std::string> warps = groups;
  warps.insert(warps.end(), {"threadIdx.y", "threadIdx.z"});
  std::vector<std::string> all;
  for (const AxisRule& axis : rules.axes) all.push_back(axis.name);
  rules.scopes = {
      {"global", {}}, {"shared", groups}, {"shared.dyn", groups}, {"warp", warps}, {"local", all}};
  return rules;
}

}  // namespace

const AxisRule* ScheduleRules::axis(std::string_view name) const {
  return find_row(axes, name, &AxisRule::name);
}

const ScopeRule* ScheduleRules::scope(std::string_view name) const {
  return find_row(scopes, name, &ScopeRule::scope);
}

const InstructionRule* ScheduleRules::instruction(std::string_view name) const {
  return find_row(instructions, name, &InstructionRule::name);
}

bool ScheduleRules::is_private(std::string_view scope_name, std::string_view axis_name) const {
  const ScopeRule* row = scope(scope_name);
  return row && std::find(row->private_to.begin(), row->private_to.end(), axis_name) !=
                    row->private_to.end();
}

void ScheduleRules::merge(const ScheduleRules& other) {
  for (const auto& row : other.axes) {
    if (!axis(row.name)) axes.push_back(row);
  }
  for (const auto& row : other.scopes) {
    if (!scope(row.scope)) scopes.push_back(row);
  }
  for (const auto& row : other.instructions) {
    if (!instruction(row.name)) instructions.push_back(row);
  }
  if (!join_points) join_points = other.join_points;
}

std::vector<std::string> ScheduleRules::axis_names() const {
  return names_of(axes, &AxisRule::name);
}
std::vector<std::string> ScheduleRules::scope_names() const {
  return names_of(scopes, &ScopeRule::scope);
}
std::vector<std::string> ScheduleRules::instruction_names() const {
  return names_of(instructions, &InstructionRule::name);
}

std::shared_ptr<const ScheduleRules> ScheduleRules::generic() {
  static const auto rules = std::make_shared<const ScheduleRules>(make_generic());
  return rules;
}

}  // namespace weft::schedule
