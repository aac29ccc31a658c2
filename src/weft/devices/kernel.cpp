// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/kernel.h"

#include <algorithm>
#include <map>

#include "weft/base/fork_safe_mutex.h"
#include "weft/target/host_plan.h"
#include "weft/target/rules.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

Grid::Grid(const TargetInfo& table)
    : Facts(table), threads_(std::min<std::int64_t>(1024, table.group_threads())) {
  const AxisInfo* threads = table.axis("threadIdx.x");
  present_ = threads_ > 0 && table.axis("blockIdx.x") && threads->barrier &&
             table.memory("shared") && table.symbolic_shapes;
}

const Grid& grid_of(const Ref<Device>& device) {
  static const TargetInfo none;
  static ForkSafeMutex mutex;
  static auto& known = *new std::map<const TargetInfo*, Grid>;
  const TargetInfo* table = target_info_of(*device);
  if (!table) table = &none;
  std::lock_guard lock(mutex);
  return known.try_emplace(table, *table).first->second;
}

ir::Buffer Builder::buffer(const std::string& name, Elem elem, int align) {
  auto b = ir::edit(ir::make_buffer(name, dtype_of(elem), {ir::make_var("n_" + name)}));
  b->align = align ? align : elem_bytes(elem);
  ir::Buffer out = b;
  buffers_.push_back(ir::buffer_param(out));
  return out;
}
Expr Builder::integer(const std::string& name) {
  ir::Var v = ir::make_var(name, index_type);
  scalars_.push_back({v, nullptr});
  return v;
}
Expr Builder::size(const std::string& name) {
  ir::Var v = ir::make_var(name, dtypes::int64);
  scalars_.push_back({v, nullptr});
  return v;
}
Expr Builder::number(const std::string& name, Elem elem) {
  ir::Var v = ir::make_var(name, dtype_of(elem));
  scalars_.push_back({v, nullptr});
  return v;
}
std::vector<Expr> Builder::integers(const std::string& name, int count) {
  std::vector<Expr> out;
  for (int i = 0; i < count; ++i) out.push_back(integer(cat(name, i)));
  return out;
}

Stmt Builder::bound(const char* axis, const Expr& extent, const Body& body) const {
  ir::Var v = var(std::string(axis, 1) + axis[std::string_view(axis).size() - 1]);
  return ir::make_for(v, at(0), extent, body(v), ir::ForKind::bound, axis);
}
Stmt Builder::loop(const char* name, const Expr& extent, const Body& body, ir::ForKind kind) const {
  ir::Var v = var(name);
  return ir::make_for(v, at(0), extent, body(v), kind);
}
std::vector<ir::Param> Builder::params() const {
  std::vector<ir::Param> out = buffers_;
  out.insert(out.end(), scalars_.begin(), scalars_.end());
  return out;
}
ir::PrimFunc Builder::finish(const Stmt& body, bool exclusive, bool distinct,
                             std::int64_t blocks) const {
  // "weft.points_together": points exchange through shared memory, ordered by barriers
  // (pass/check_private.h).
  ir::Annotations notes = ir::with_annotation({}, "weft.points_together", true);
  if (exclusive) notes = ir::with_annotation(std::move(notes), "tir.noalias", true);
  if (blocks > 0) notes = ir::with_annotation(std::move(notes), kBlocksPerProcessor, blocks);
  if (distinct) notes = ir::with_annotation(std::move(notes), ir::kDistinctElements, true);
  return ir::make_func("main", params(), ir::root_block(body), std::move(notes));
}

ir::Buffer local(const std::string& name, DType type, std::int64_t extent) {
  return ir::make_buffer(name, type, {ir::make_int(extent)}, "local");
}
ir::Buffer shared(const std::string& name, DType type, std::vector<std::int64_t> shape) {
  ir::Exprs extents;
  for (std::int64_t n : shape) extents.push_back(ir::make_int(n));
  return ir::make_buffer(name, type, extents, "shared");
}

std::vector<Expr> positions(const Expr& linear, const std::vector<Expr>& extents,
                            const std::vector<std::vector<Expr>>& strides) {
  std::vector<Expr> out(strides.size());
  Expr rest = linear;
  for (std::size_t i = extents.size(); i-- > 0;) {
    Expr x = rest;
    if (i > 0) {
      x = ir::make_binary(ir::ExprKind::mod, rest, extents[i]);
      rest = ir::div(rest, extents[i]);
    }
    for (std::size_t k = 0; k < strides.size(); ++k) {
      Expr term = x * strides[k][i];
      out[k] = out[k] ? out[k] + term : term;
    }
  }
  for (Expr& e : out) {
    if (!e) e = ir::make_int(0, linear->dtype);
  }
  return out;
}

bool fits_narrow(std::int64_t most) { return most < (std::int64_t{1} << 31) - (1 << 16); }

}  // namespace weft::device
