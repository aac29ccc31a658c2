// SPDX-License-Identifier: Apache-2.0
// Programs of products on cards as text, for tests and benchmarks.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "array_type.h"
#include "weft/devices/product.h"
#include "weft/ir/text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::py {

void bind_contraction(nb::module_& m) {
  m.def(
      "_contraction_tiles",
      [](int bytes, bool instruction) { return rules::rated_tiles(bytes, instruction).size(); },
      "bytes"_a, "instruction"_a = false, "How many tiles products have on cards.");
  m.def(
      "_contraction_program",
      [](const std::string& type, std::size_t tile, const std::string& read_a,
         const std::string& read_b, int stages, int rank, bool instruction, bool wide_store,
         const std::string& operands, bool spread) {
        device::ContractSpec s;
        s.out = s.a = s.b = s.store = elem_of(parse_dtype(type));
        if (!operands.empty()) s.a = s.b = elem_of(parse_dtype(operands));
        const auto all = rules::rated_tiles(elem_bytes(s.out), instruction);
        if (tile >= all.size()) throw nb::index_error();
        s.tile = all[tile];
        auto read = [](const std::string& name) {
          using device::Read;
          return name == "rows"    ? Read::rows
                 : name == "wide"  ? Read::wide
                 : name == "terms" ? Read::terms
                                   : Read::summed;
        };
        s.read_a = read(read_a), s.read_b = read(read_b);
        s.stages = stages, s.wide_store = wide_store;
        s.rank_n = s.rank_k = rank;
        s.spread = spread;
        if (spread) s.tile = rules::along_columns(s.tile);
        return ir::print(device::product_kernel(s));
      },
      "type"_a, "tile"_a, "read_a"_a = "wide", "read_b"_a = "wide", "stages"_a = 3, "rank"_a = 1,
      "instruction"_a = false, "wide_store"_a = false, "operands"_a = "", "spread"_a = false,
      "The text of a product's program for cards, for tests.");
}

}  // namespace weft::py
