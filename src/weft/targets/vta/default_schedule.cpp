// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/default_schedule.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/schedule/schedule.h"
#include "weft/targets/vta/schedules.h"
#include "weft/targets/vta/synthesise.h"
#include "weft/targets/vta/tiles.h"

namespace weft::vta {

using namespace ir;

namespace {

struct BlockInfo {
  Block block;
  bool reduces = false;
};

std::vector<BlockInfo> leaf_blocks(const PrimFunc& f) {
  std::vector<BlockInfo> out;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* r = as<BlockRealizeNode>(s);
    if (!r || r->block->iters.empty()) return;
    BlockInfo info{r->block, false};
    for (const IterVar& v : r->block->iters) info.reduces |= v.kind == IterKind::reduce;
    out.push_back(info);
  });
  return out;
}

std::int64_t extent(const Buffer& b, std::size_t d) {
  std::int64_t n = 0;
  return d < b->shape.size() && is_const_int(b->shape[d], &n) ? n : -1;
}

/// C[bo][co][bi][ci] += A[bo][ko][bi][ki] * B[co][ko][ci][ki], then elementwise blocks of C's
/// shape.
struct PackedMatmul {
  Block sum;
  std::vector<Block> after;  // in program order; the last writes the result
  MatmulShape shape;
};

bool recognise(const PrimFunc& f, const Config& c, PackedMatmul& out, std::string& why) {
  std::vector<BlockInfo> blocks = leaf_blocks(f);
  std::size_t sums = 0;
  for (const BlockInfo& b : blocks) sums += b.reduces;
  if (sums != 1 || !blocks.front().reduces) {
    why = cat("it has ", sums, " blocks with reductions, where one is expected, first");
    return false;
  }
  out.sum = blocks.front().block;
  if (out.sum->iters.size() != 6 || out.sum->reads.size() < 2 || out.sum->writes.size() != 1) {
    why = cat("block \"", out.sum->name,
              "\" is no product over packed layouts (4 spatial and 2 reduction iterators)");
    return false;
  }
  std::vector<Buffer> inputs;
  for (const BufferRegion& r : out.sum->reads) {
    if (r.buffer.get() != out.sum->writes[0].buffer.get()) inputs.push_back(r.buffer);
  }
  const Buffer& sum = out.sum->writes[0].buffer;
  if (inputs.size() != 2 || inputs[0]->ndim() != 4 || inputs[1]->ndim() != 4 || sum->ndim() != 4) {
    why = cat("block \"", out.sum->name, "\" does not multiply two packed arrays of 4 dimensions");
    return false;
  }
  bool packed = extent(inputs[0], 2) == c.batch() && extent(inputs[0], 3) == c.block_in() &&
                extent(inputs[1], 2) == c.block_out() && extent(inputs[1], 3) == c.block_in() &&
                extent(sum, 2) == c.batch() && extent(sum, 3) == c.block_out();
  if (!packed) {
    why = cat("the inner extents are not those of the machine: input [", c.batch(), "][",
              c.block_in(), "], weights [", c.block_out(), "][", c.block_in(), "], sum [",
              c.batch(), "][", c.block_out(), "]");
    return false;
  }
  if (blocks.size() < 2) {
    why = cat("\"", sum->name,
              "\" is int32, and only int8 leaves the machine: a last block must cast it");
    return false;
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) out.after.push_back(blocks[i].block);
  out.shape = {extent(sum, 0), extent(sum, 1), extent(inputs[0], 1)};
  return true;
}

}  // namespace

bool is_scheduled(const PrimFunc& f) {
  bool found = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* r = as<BlockRealizeNode>(s)) {
      for (const Buffer& b : r->block->alloc_buffers) found |= b->scope.starts_with("vta.");
    }
    if (const auto* a = as<AllocateNode>(s)) found |= a->buffer->scope.starts_with("vta.");
  });
  return found;
}

Verdict accepts_default(const PrimFunc& f, const Config& c) {
  if (is_scheduled(f)) return std::nullopt;
  PackedMatmul m;
  std::string why;
  if (recognise(f, c, m, why)) return std::nullopt;
  try {
    for (const Task& s : plan_stages(f).stages) {
      if (s.kind != Task::Kind::copy) lay_out(s, c);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return error.refusal();
  }
  return std::nullopt;
}

PrimFunc default_schedule(const PrimFunc& f, const Config& c) {
  PackedMatmul m;
  std::string why;
  if (is_scheduled(f)) return f;
  if (!recognise(f, c, m, why)) return synthesise(f, plan_stages(f), c);
  MatmulTiles t = default_tiles(c, m.shape);
  auto rules = std::make_shared<schedule::ScheduleRules>(*schedule::ScheduleRules::generic());
  for (const char* scope : {"vta.inp", "vta.wgt", "vta.acc"}) rules->scopes.push_back({scope, {}});
  schedule::Schedule sch(f, rules);
  BlockRef sum = sch.get_block(m.sum->name);
  sch.set_scope(sum, 0, "vta.acc");
  for (std::size_t i = 0; i + 1 < m.after.size(); ++i)
    sch.set_scope(sch.get_block(m.after[i]->name), 0, "vta.acc");
  BlockRef a = sch.cache_read(sum, 0, "vta.inp"), w = sch.cache_read(sum, 1, "vta.wgt");
  std::vector<LoopRef> loops = sch.get_loops(sum);
  std::vector<LoopRef> o = sch.split(loops[0], {std::nullopt, t.o}),
                       n = sch.split(loops[1], {std::nullopt, t.m}),
                       k = sch.split(loops[4], {std::nullopt, t.n});
  sch.reorder({o[0], n[0], k[0], k[1], o[1], n[1], loops[2], loops[3], loops[5]});
  sch.compute_at(a, k[0]);
  sch.compute_at(w, k[0]);
  for (const Block& block : m.after) sch.reverse_compute_at(sch.get_block(block->name), n[0]);
  sch.decompose_reduction(sum, k[0]);
  return sch.func();
}

}  // namespace weft::vta
