// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/resident.h"

#include <cstring>

#include "weft/base/error.h"

namespace weft::wse {

std::vector<std::uint32_t> Resident::copy_back(const Left& left) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(left.how.words()));
  const Region all{0, 0, static_cast<std::int32_t>(left.how.width),
                   static_cast<std::int32_t>(left.how.height), left.how.array.size};
  runtime->memcpy_d2h(words.data(), static_cast<std::int64_t>(words.size()),
                      runtime->get_id(left.array), all, false,
                      left.bytes == 2 ? MemcpyDataType::MEMCPY_16BIT : MemcpyDataType::MEMCPY_32BIT,
                      MemcpyOrder::ROW_MAJOR, false);
  return words;
}

std::vector<std::uint32_t> Resident::peek(const Left& left) const {
  std::vector<std::uint32_t> words;
  const Layout& layout = runtime->layout();
  for (std::int32_t y = 0; y < left.how.height; ++y) {
    for (std::int32_t x = 0; x < left.how.width; ++x) {
      const std::string held =
          runtime->read_symbol(x + layout.offset_x, y + layout.offset_y, left.array);
      for (std::int64_t k = 0; k < left.how.array.size; ++k) {
        std::uint32_t word = 0;
        std::memcpy(&word, held.data() + k * left.bytes, static_cast<std::size_t>(left.bytes));
        words.push_back(word);
      }
    }
  }
  return words;
}

runtime::StatReport Resident::report() const {
  const runtime::StatReport now = runtime->fabric().stats();
  runtime::StatReport out;
  for (const runtime::Stat& row : now.rows()) {
    const bool counts = row.name != "pes.touched" && row.name != "engine.native";
    out.add(row.name, row.unit, row.meaning,
            row.value - (counts && before.has(row.name) ? before.get(row.name) : 0));
  }
  Cycle all = 0;
  for (const auto& [name, cycles] : stages) all += cycles;
  out.add("cycles.stages", "cycles", "simulated cycles of the stages, without copies", all);
  for (std::size_t k = 0; k < stages.size(); ++k)
    out.add(cat("cycles.stage", k, ".", stages[k].first), "cycles",
            cat("simulated cycles of stage ", k), stages[k].second);
  return out;
}

}  // namespace weft::wse
