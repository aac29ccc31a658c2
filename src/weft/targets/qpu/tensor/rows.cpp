// SPDX-License-Identifier: Apache-2.0
// Softmax, norms and their like: reductions along rows and what is made of them, row by row.
#include <algorithm>
#include <unordered_set>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/stages/update.h"
#include "weft/targets/qpu/tensor/nest.h"

namespace weft::qpu::tensor {

using namespace ir;
using schedule::BlockRef;
using schedule::LoopRef;
using schedule::Schedule;

namespace {

constexpr std::size_t kReductions = 3;  // of a group: each keeps a value in a register
constexpr std::int64_t kHeld = 16;      // vectors of a row that registers hold

const BufferNode* written(const Nest& n) {
  return n.block->writes.size() == 1 ? n.block->writes[0].buffer.get() : nullptr;
}

bool reads(const Nest& n, const BufferNode* b) {
  return std::any_of(n.block->reads.begin(), n.block->reads.end(),
                     [&](const BufferRegion& r) { return r.buffer.get() == b; });
}

bool is_reduction(const Nest& n) {
  return std::any_of(n.loops.begin(), n.loops.end(),
                     [](const Loop& l) { return l.iter->kind == IterKind::reduce; });
}

/// The extents of the loops over results; empty where one is not known or the reduction is of
/// another form.
std::vector<std::int64_t> rows_of(const Nest& n) {
  std::vector<std::int64_t> out;
  std::size_t terms = 0;
  const std::optional<stages::Update> update = stages::find_update(n.block);
  for (const Loop& l : n.loops) {
    if (l.extent <= 0) return {};
    if (l.iter->kind == IterKind::reduce) {
      if (l.extent < kLanes) return {};
      ++terms;
      continue;
    }
    if (!update || out.size() >= update->store->indices.size() ||
        update->store->indices[out.size()].get() != l.iter->var.get())
      return {};
    out.push_back(l.extent);
  }
  const Loop* lane = lane_loop(n);
  const bool good = terms == 1 && joins(n) && lane && lane->iter->kind == IterKind::reduce &&
                    update->store->indices.size() == out.size();
  return good ? out : std::vector<std::int64_t>();
}

/// Whether every read of the buffer in a block names its first iterators, in order.
bool reads_own_row(const Nest& n, const BufferNode* b, std::size_t rows) {
  bool good = n.loops.size() >= rows;
  for_each_expr(n.block->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer.get() != b) return;
    good = good && l->indices.size() == rows;
    for (std::size_t d = 0; good && d < rows; ++d)
      good = l->indices[d].get() == n.loops[d].iter->var.get() &&
             n.loops[d].iter->kind == IterKind::spatial;
  });
  return good;
}

/// The group that ends at nest `last`, in program order: nests that this group alone reads. Empty:
/// no reduction is among them.
std::vector<std::size_t> group_of(const std::vector<Nest>& all, std::size_t last) {
  std::vector<std::size_t> members{last};
  std::vector<std::int64_t> rows;
  std::size_t reductions = 0;
  for (std::size_t i = last; i-- > 0;) {
    const Nest& n = all[i];
    const BufferNode* out = n.block ? written(n) : nullptr;
    if (!out) continue;
    bool read = false, elsewhere = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (k == i || (all[k].block && !reads(all[k], out))) continue;
      const bool member = std::find(members.begin(), members.end(), k) != members.end();
      (member ? read : elsewhere) = true;
    }
    if (!read || elsewhere) continue;
    if (is_reduction(n)) {
      std::vector<std::int64_t> own = rows_of(n);
      if (own.empty() || (!rows.empty() && own != rows)) continue;
      rows = own;
      if (++reductions > kReductions) return {};
    } else {
      const std::optional<stages::Update> update = stages::find_update(n.block);
      if (!update || update->condition || update->init || update->reads_own) continue;
    }
    members.push_back(i);
  }
  std::reverse(members.begin(), members.end());
  return reductions > 0 ? members : std::vector<std::size_t>();
}

/// Whether every read of the buffer in a block is at the block's own point: its iterators in order.
bool reads_own_point(const Nest& n, const BufferNode* b) {
  bool good = true;
  for_each_expr(n.block->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer.get() != b) return;
    good = good && l->indices.size() == n.loops.size();
    for (std::size_t d = 0; good && d < n.loops.size(); ++d)
      good = l->indices[d].get() == n.loops[d].iter->var.get();
  });
  return good;
}

/// Whether a nest visits the points of a row that registers hold.
bool is_short(const Nest& n) {
  return !n.loops.empty() && n.loops.back().extent > 0 && n.loops.back().extent <= kHeld * kLanes;
}

bool same_points(const Nest& a, const Nest& b) {
  bool same = a.loops.size() == b.loops.size();
  for (std::size_t d = 0; same && d < a.loops.size(); ++d)
    same = a.loops[d].extent == b.loops[d].extent;
  return same;
}

/// Values that cost more than reading a register: worth one for each vector of a short row where
/// two nests want them.
bool worth_holding(const std::vector<Nest>& all, const std::vector<std::size_t>& members,
                   std::size_t which) {
  const Nest& n = all[which];
  if (!is_short(n)) return false;
  bool costly = false;
  for_each_expr(n.block->body, [&](const Expr& e) {
    costly =
        costly || (e->dtype.is_float() && (e->kind == ExprKind::call || e->kind == ExprKind::div));
  });
  std::size_t readers = 0;
  for (std::size_t i : members) {
    if (i == which || !reads(all[i], written(n))) continue;
    ++readers;
    if (!same_points(all[i], n) || !reads_own_point(all[i], written(n))) return false;
  }
  const auto* store = as<StoreNode>(n.block->body);
  bool own = store && store->indices.size() == n.loops.size();
  for (std::size_t d = 0; own && d < n.loops.size(); ++d)
    own = store->indices[d].get() == n.loops[d].iter->var.get();
  return costly && own && readers > 1;
}

/// Clocks that a row takes for each of its elements: what no register holds is computed where it is
/// read.
double element_clocks(const std::vector<Nest>& all, const std::vector<std::size_t>& members) {
  constexpr double kNest = 3, kCostly = 5;  // of a nest; of a quotient or a function
  double out = 0;
  for (std::size_t i : members) {
    double own = 0;
    for_each_expr(all[i].block->body, [&](const Expr& e) {
      if (e->dtype.is_float() && (e->kind == ExprKind::call || e->kind == ExprKind::div))
        own += kCostly;
    });
    std::int64_t times = 1;
    if (!is_reduction(all[i]) && i != members.back() && !worth_holding(all, members, i))
      times = std::count_if(members.begin(), members.end(), [&](std::size_t k) {
        return k != i && reads(all[k], written(all[i]));
      });
    out += kNest + own * static_cast<double>(times);
  }
  return out;
}

/// With few long rows, stages of their own use more QPUs: each element costs them more clocks, as
/// it goes through memory, and every stage is a launch.
bool stages_are_faster(std::int64_t rows, std::int64_t elements, double clocks, std::int64_t qpus) {
  constexpr double kThroughMemory = 1.75, kLaunches = 3000, kRow = 1800;
  const auto turns = static_cast<double>((rows + qpus - 1) / qpus);
  const double share = static_cast<double>(rows) / static_cast<double>(qpus);
  return static_cast<double>(elements) * clocks * (turns - kThroughMemory * share) >
         kLaunches + kRow * static_cast<double>(rows);
}

/// Words of short rows that several of these nests want, each at its own point, are read once. The
/// blocks that read them.
std::vector<BlockRef> hold_operands(Schedule& sch, const std::vector<const Nest*>& group) {
  std::vector<BlockRef> out;
  std::vector<const BufferNode*> seen;
  for (const Nest* first : group) {
    for (std::size_t r = 0; r < first->block->reads.size(); ++r) {
      const BufferNode* b = first->block->reads[r].buffer.get();
      if (!is_short(*first) || std::find(seen.begin(), seen.end(), b) != seen.end()) continue;
      seen.push_back(b);
      std::vector<BlockRef> readers;
      bool good = true;
      for (const Nest* n : group) {
        good = good && written(*n) != b;
        if (!reads(*n, b)) continue;
        good = good && same_points(*first, *n) && reads_own_point(*n, b);
        readers.push_back(sch.get_block(n->block->name));
      }
      if (good && readers.size() > 1)
        out.push_back(sch.cache_read(readers[0], static_cast<std::int64_t>(r), "local", readers));
    }
  }
  return out;
}

const Nest* named(const std::vector<Nest>& all, const std::string& name) {
  for (const Nest& n : all)
    if (n.block && n.block->name == name) return &n;
  return nullptr;
}

}  // namespace

bool place_rows(Schedule& sch, const std::vector<Nest>& all, std::size_t last, std::int64_t qpus) {
  if (!all[last].block || is_reduction(all[last])) return false;
  const std::vector<std::size_t> members = group_of(all, last);
  if (members.empty()) return false;
  const double clocks = element_clocks(all, members);
  std::vector<std::string> sums, before;  // reductions; these and values that registers hold
  for (std::size_t i : members) {
    if (i == last) continue;
    const bool sum = is_reduction(all[i]);
    if (sum) sums.push_back(all[i].block->name);
    if (sum || worth_holding(all, members, i)) before.push_back(all[i].block->name);
    else sch.compute_inline(sch.get_block(all[i].block->name));
  }
  // What is left reads reductions at its own row, and nothing else of the group.
  const PrimFunc now = sch.func();
  const std::vector<Nest> left = nests_of(now);
  const Nest* end = named(left, all[last].block->name);
  std::vector<std::int64_t> rows;
  for (const std::string& name : sums) {
    const Nest* sum = named(left, name);
    rows = sum ? rows_of(*sum) : std::vector<std::int64_t>();
    if (!end || rows.empty()) return false;
    for (const Nest& n : left)
      if (n.block && reads(n, written(*sum)) && !reads_own_row(n, written(*sum), rows.size()))
        return false;
  }
  const Loop* lane = lane_loop(*end);
  std::int64_t points = 1;
  std::vector<LoopRef> outer, rest;
  for (std::size_t d = 0; d < end->loops.size(); ++d) {
    const Loop& l = end->loops[d];
    const bool row = d < rows.size();
    if (row ? l.extent != rows[d] || &l == lane : l.extent <= 0) return false;
    if (row) points *= l.extent;
    if (&l != lane) (row ? outer : rest).push_back(l.ref);
  }
  if (!lane) return false;
  std::int64_t elements = lane->extent;
  for (std::size_t d = rows.size(); d < end->loops.size(); ++d)
    if (&end->loops[d] != lane) elements *= end->loops[d].extent;
  if (stages_are_faster(points, elements, clocks, qpus)) return false;

  std::vector<const Nest*> group{end};
  for (const std::string& name : before) group.push_back(named(left, name));
  std::vector<BlockRef> earlier = hold_operands(sch, group);
  const std::size_t operands = earlier.size();
  for (const std::string& name : before) earlier.push_back(sch.get_block(name));
  const LoopRef row = outer.size() > 1 ? sch.fuse(outer) : outer[0];
  const std::vector<LoopRef> shares = sch.split(row, {std::nullopt, std::min(points, qpus)});
  const std::vector<LoopRef> vectors = sch.split(lane->ref, {std::nullopt, kLanes});
  std::vector<LoopRef> order{shares[1], shares[0]};
  order.insert(order.end(), rest.begin(), rest.end());
  order.insert(order.end(), vectors.begin(), vectors.end());
  sch.reorder(order);
  for (std::size_t k = earlier.size(); k-- > 0;) {
    const BlockRef block = earlier[k];
    if (k >= operands) sch.set_scope(block, 0, "local");
    sch.compute_at(block, shares[0]);
    sch.bind(sch.split(sch.get_loops(block).back(), {std::nullopt, kLanes})[1], "lane");
  }
  sch.bind(shares[1], "qpu");
  sch.bind(vectors[1], "lane");
  return true;
}

}  // namespace weft::qpu::tensor
