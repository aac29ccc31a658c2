// SPDX-License-Identifier: Apache-2.0
#include "weft/base/repairs.h"

#include <unordered_map>
#include <vector>

namespace weft {
namespace {

struct RepairIndex {
  std::unordered_map<std::string_view, std::string_view> single;
  std::vector<RepairRow> families;
};

const RepairIndex& repair_index() {
  static const RepairIndex made = [] {
    RepairIndex out;
    for (const RepairRow& row : repair_rows()) {
      if (row.slug.find('*') == std::string_view::npos) {
        out.single.emplace(row.slug, row.text);
      } else {
        out.families.push_back(row);
      }
    }
    return out;
  }();
  return made;
}

bool belongs(std::string_view slug, std::string_view family) {
  const std::size_t star = family.find('*');
  const std::string_view head = family.substr(0, star), tail = family.substr(star + 1);
  return slug.size() > head.size() + tail.size() && slug.starts_with(head) && slug.ends_with(tail);
}

}  // namespace

std::string_view repair_of(std::string_view slug) {
  if (auto found = repair_index().single.find(slug); found != repair_index().single.end())
    return found->second;
  for (const RepairRow& row : repair_index().families) {
    if (belongs(slug, row.slug)) return row.text;
  }
  return {};
}

}  // namespace weft
