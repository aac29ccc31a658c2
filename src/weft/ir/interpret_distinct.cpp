// SPDX-License-Identifier: Apache-2.0
// Functions whose author vouches that points store to different elements (kDistinctElements): the
// promise is checked while the points run one after another.
#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "weft/base/hash.h"
#include "weft/ir/atomic.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret_internal.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"

namespace weft::ir::interp {

namespace {

bool is_point_loop(const Stmt& s) {
  const auto* loop = as<ForNode>(s);
  return as<LaunchNode>(s) ||
         (loop && (loop->for_kind == ForKind::parallel ||
                   (loop->for_kind == ForKind::bound && is_grid_axis(loop->axis))));
}

/// A store, and then the question whether another point stored something else there.
struct DistinctStore final : Code {
  const StoreNode* node = nullptr;
  CodePtr store;
  Access access;
  std::vector<std::pair<const VarNode*, int>> points;  // variables and slots, outermost first

  void run(Frame& fr) const override {
    store->run(fr);
    fr.current = node;
    const DType type = access.buffer->dtype;
    const char* element = fr.views[at(access.view)].data + access.offset(fr) * type.total_bytes();
    std::uint64_t value = 0;
    std::memcpy(&value, element, std::min<std::size_t>(sizeof value, at(type.total_bytes())));
    std::vector<std::int64_t> point;
    for (const auto& [var, slot] : points) point.push_back(fr.slots[at(slot)].i);
    auto [found, fresh] = fr.machine->stored.try_emplace(element, point, value);
    if (fresh || found->second.first == point || found->second.second == value) return;
    std::string indices, here, there;
    for (const ExpPtr& e : access.index) indices += cat(indices.empty() ? "" : ", ", e->i(fr));
    for (std::size_t k = 0; k < points.size(); ++k) {
      const char* comma = k ? ", " : "";
      here += cat(comma, points[k].first->name, " = ", point[k]);
      there += cat(comma, points[k].first->name, " = ", found->second.first[k]);
    }
    fault(fr, "distinct",
          cat("\"", access.buffer->name, "\"[", indices, "] is stored by two points, ", there,
              " and ", here, ", with different values; the function declares ", kDistinctElements));
  }
};

/// The outermost loop of points: what earlier loops stored is no conflict.
struct FreshPoints final : Code {
  CodePtr loop;
  void run(Frame& fr) const override {
    fr.machine->stored.clear();
    loop->run(fr);
  }
};

}  // namespace

void Compiler::find_promise(const PrimFunc& f) {
  if (!has_flag(f->attrs, kDistinctElements)) return;
  checks_distinct_ = true;
  for_each_stmt(f->body, [&](const Stmt& outer) {
    if (!is_point_loop(outer)) return;
    for_each_stmt(outer, [&](const Stmt& s) {
      if (const auto* a = as<AllocateNode>(s)) own_.insert(a->buffer.get());
      if (const auto* b = as<BlockRealizeNode>(s)) {
        for (const Buffer& buffer : b->block->alloc_buffers) own_.insert(buffer.get());
        for (const MatchBuffer& m : b->block->match_buffers)
          if (own_.count(m.source.buffer.get())) own_.insert(m.buffer.get());
      }
    });
  });
}

CodePtr Compiler::checked_store(const StoreNode* s) {
  CodePtr plain = store(s);
  const bool vector = std::any_of(s->indices.begin(), s->indices.end(),
                                  [](const Expr& e) { return e->dtype.lanes > 1; });
  if (points_.empty() || vector || as_atomic(s) || own_.count(s->buffer.get())) return plain;
  auto out = std::make_unique<DistinctStore>();
  out->node = s;
  out->store = std::move(plain);
  out->access = access(s->buffer, s->indices);
  for (const VarNode* v : points_) out->points.emplace_back(v, slot(v));
  return out;
}

CodePtr Compiler::point_loop(const Stmt& s, const std::function<CodePtr()>& compile) {
  if (!checks_distinct_ || !is_point_loop(s)) return compile();
  const std::size_t before = points_.size();
  if (const auto* loop = as<ForNode>(s)) points_.push_back(loop->var.get());
  if (const auto* launch = as<LaunchNode>(s)) {
    // Threads that meet at barriers may store to one element, one after another.
    const bool joint = waits(launch->body);
    for (const LaunchAxis& axis : launch->axes)
      if (!joint || is_grid_axis(axis.axis)) points_.push_back(axis.var.get());
  }
  CodePtr loop = compile();
  points_.resize(before);
  if (before > 0) return loop;
  auto out = std::make_unique<FreshPoints>();
  out->loop = std::move(loop);
  return out;
}

}  // namespace weft::ir::interp
