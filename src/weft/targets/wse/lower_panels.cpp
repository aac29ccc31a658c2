// SPDX-License-Identifier: Apache-2.0
// Products of matrices whose operands are divided over both axes of the rectangle.
#include <cmath>
#include <numeric>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/targets/wse/lowering.h"

namespace weft::wse {

using namespace ir;

namespace {

constexpr double kStepCycles = 200;             // of a step beside its arithmetic
constexpr std::int64_t kBlockBytes = 8 * 1024;  // for the blocks that are on their way

/// Whether the load reaches its buffer through `first` and `second`, each once and alone, and
/// constants.
bool reaches(const LoadNode& load, const VarNode* first, const VarNode* second) {
  int found[2] = {0, 0};
  for (const Expr& e : load.indices) {
    if (e.get() == first) ++found[0];
    else if (e.get() == second) ++found[1];
    else if (!as<IntImmNode>(e)) return false;
  }
  return found[0] == 1 && found[1] == 1;
}

Exprs exchanged(const Exprs& list, const VarMap& map) {
  Exprs out;
  for (const Expr& e : list) out.push_back(substitute(e, map));
  return out;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

bool Lowering::place_panels(Stage& s) {
  if (s.combine != Combine::add || s.keeps || s.guard || s.init_guard || !s.init) return false;
  if (!as<IntImmNode>(s.init) && !as<FloatImmNode>(s.init)) return false;
  const auto* product = as<BinaryNode>(s.value);
  if (!product || product->kind != ExprKind::mul) return false;
  std::vector<std::size_t> spatial, reduce;
  for (std::size_t n = 0; n < s.iters.size(); ++n) {
    if (s.iters[n].extent > 1) (s.iters[n].reduce ? reduce : spatial).push_back(n);
  }
  if (spatial.size() != 2 || reduce.size() != 1 || out_.width * out_.height == 1) return false;
  Panels p;
  p.i = spatial[0], p.j = spatial[1], p.k = reduce[0];
  const Var vi = s.iters[p.i].var, vj = s.iters[p.j].var, vk = s.iters[p.k].var;
  const auto *a = as<LoadNode>(product->a), *b = as<LoadNode>(product->b);
  if (!a || !b || a->dtype != b->dtype || a->buffer.get() == b->buffer.get()) return false;
  if (reaches(*b, vi.get(), vk.get())) std::swap(a, b);
  if (!reaches(*a, vi.get(), vk.get()) || !reaches(*b, vk.get(), vj.get())) return false;

  const std::int64_t k = s.iters[p.k].extent;
  s.iters[p.i].partition = Partition::y;
  s.iters[p.i].chunk = ceil_div(s.iters[p.i].extent, out_.height);
  s.iters[p.j].partition = Partition::x;
  s.iters[p.j].chunk = ceil_div(s.iters[p.j].extent, out_.width);
  const std::int64_t rows = s.iters[p.i].chunk, columns = s.iters[p.j].chunk;
  const std::int64_t part_a = ceil_div(k, out_.width), part_b = ceil_div(k, out_.height);
  const std::int64_t common = out_.width == 1    ? part_b
                              : out_.height == 1 ? part_a
                                                 : std::gcd(part_a, part_b);
  p.block = std::min(part_a, part_b);
  if (common >= 4) p.block = std::min(p.block, common);
  // The first block comes before any arithmetic, and each costs a step.
  const double best = std::max(1.0, std::sqrt(kStepCycles * static_cast<double>(k) /
                                              static_cast<double>(std::max(rows, columns))));
  const auto pieces = static_cast<std::int64_t>(static_cast<double>(p.block) / best + 0.5);
  if (pieces > 1) p.block = ceil_div(p.block, pieces);
  const std::int64_t most = kBlockBytes / (2 * (rows + columns) * a->dtype.bytes());
  p.block = std::clamp<std::int64_t>(p.block, 1, std::max<std::int64_t>(most, 1));
  p.a_part = out_.width == 1 ? k : ceil_div(part_a, p.block) * p.block;
  p.b_part = out_.height == 1 ? k : ceil_div(part_b, p.block) * p.block;
  p.steps = ceil_div(k, p.block);

  // The operands' own divisions of k.
  auto divided = [&](const char* name, std::int64_t chunk, Partition partition) {
    StageIter it;
    it.var = make_var(cat(vk->name, name), vk->dtype);
    it.name = cat("i", s.iters.size());
    it.extent = k;
    it.chunk = chunk;
    it.reduce = it.travels = true;
    it.partition = chunk >= k ? Partition::none : partition;
    s.iters.push_back(it);
    return it.var;
  };
  const Var ka = divided("_a", p.a_part, Partition::x), kb = divided("_b", p.b_part, Partition::y);
  s.value = make_binary(ExprKind::mul, load(a->buffer, exchanged(a->indices, {{vk.get(), ka}})),
                        load(b->buffer, exchanged(b->indices, {{vk.get(), kb}})));
  s.panels = p;
  return true;
}

std::int64_t Lowering::panel_bytes(const Stage& s) const {
  if (!s.panels) return 0;
  const Panels& p = *s.panels;
  std::int64_t n = 0;
  if (out_.width > 1) n += 2 * p.block * s.iters[p.i].chunk;
  if (out_.height > 1) n += 2 * p.block * s.iters[p.j].chunk;
  return n * out_.buffers[s.output.buffer].dtype.bytes();
}

}  // namespace weft::wse
