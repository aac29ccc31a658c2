// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/product.h"
#include "weft/operators/product.h"
#include "weft/rules/product_tile.h"
#include "weft/target/host_plan.h"
#include "weft/target/rules.h"

namespace weft::device {

operators::ProductSpec product_spec(const ContractSpec& s) {
  operators::ProductSpec p;
  auto name = [](Elem e) { return std::string(name_of(e)); };
  p.sum = name(s.out), p.a = name(s.a), p.b = name(s.b), p.out = name(s.store);
  p.narrow = s.narrow, p.bias = s.bias;
  p.rank_m = s.rank_m, p.rank_n = s.rank_n, p.rank_k = s.rank_k, p.rank_batch = s.rank_batch;
  auto along_k = [](Read r) { return r == Read::summed || r == Read::terms; };
  auto vectors = [](Read r) { return r == Read::wide || r == Read::terms; };
  p.a_along_k = along_k(s.read_a), p.b_along_k = along_k(s.read_b);
  if (vectors(s.read_a)) p.vector_a = vector_of(s.a);
  if (vectors(s.read_b)) p.vector_b = vector_of(s.b);
  p.lines_a = s.tile.instruction && p.a_along_k, p.lines_b = s.tile.instruction && p.b_along_k;
  if (s.wide_store) p.vector_out = vector_of(s.store);
  p.rows = s.tile.rows, p.columns = s.tile.columns, p.depth = s.tile.depth;
  return p;
}

ir::PrimFunc product_kernel(const ContractSpec& s) {
  const operators::ProductSpec p = product_spec(s);
  rules::ProductTile tile = s.tile.tile(elem_bytes(s.out), s.spread);
  tile.ahead = s.stages - 1;
  tile.vector[0] = p.vector_a, tile.vector[1] = p.vector_b, tile.vector_out = p.vector_out > 1;
  schedule::Schedule sch(operators::product_program(p), all_target_info());
  sch.set_detail(false);
  rules::PaddedProduct blocks{sch.get_block("product"),
                              {sch.get_block("A_tile"), sch.get_block("B_tile")},
                              sch.get_block("store"),
                              {{0}, {0}},
                              std::nullopt};
  if (s.rank_k > 1) blocks.places = sch.get_block("places");
  rules::schedule_product_tile(sch, blocks, tile);
  const auto f = ir::edit(sch.func());
  if (s.wide_store)
    f->attrs = ir::with_annotation(f->attrs, kBlocksPerProcessor, s.tile.blocks_per_sm);
  return f;
}

}  // namespace weft::device
