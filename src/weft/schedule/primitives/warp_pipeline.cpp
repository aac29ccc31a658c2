// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/warp_pipeline.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loop_checks.h"
#include "weft/schedule/primitives/specialize_warps.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

constexpr std::int64_t kRowBytes = 128;

class Finder {
 public:
  Finder(const State& s, const Path& path, WarpPipeline& out) : s_(s), path_(path), out_(out) {}

  Verdict find() {
    WEFT_TRY(find_grid());
    WEFT_TRY(find_slots());
    WEFT_TRY(find_copies());
    WEFT_TRY(find_product());
    WEFT_TRY(find_store());
    out_.gone = {out_.sums};
    for (const auto& [shared, global] : copied_) out_.gone.push_back(shared);
    WEFT_TRY(choose_rows());
    return check_tile();
  }

 private:
  /// An index of the product as the first value of a tile, and the loops that move within it.
  struct Place {
    Expr first;
    std::vector<const ForNode*> loops;
    std::int64_t extent = 1;
  };

  Refusal no(std::string_view code, std::string message, const void* culprit = nullptr) const {
    return refuse(s_, code, cat("specialize_warps: ", message), culprit ? culprit : out_.steps);
  }

  // ---- loops

  Verdict find_grid() {
    out_.steps = path_.loop();
    if (out_.steps->for_kind != ForKind::serial)
      return no("schedule.specialize_warps.loop",
                cat("loop ", name_of(out_.steps), " is not serial"))
          .note("legal: a serial loop over the sum, under loops bound to blockIdx");
    WEFT_TRY(check_starts_at_zero(s_, "specialize_warps", out_.steps));
    const std::size_t scope = path_.scope_index();
    out_.grid = path_.loops();
    for (const ForNode* loop : out_.grid) {
      const bool apart = loop->for_kind == ForKind::parallel ||
                         (loop->for_kind == ForKind::bound && loop->axis.starts_with("blockIdx"));
      if (apart && is_const_int_value(loop->min, 0)) continue;
      return no("schedule.specialize_warps.loop",
                cat("loop ", name_of(loop), " around ", name_of(out_.steps),
                    " is neither parallel nor bound to blockIdx"),
                loop)
          .note(
              "legal: parallel loops and loops bound to blockIdx.x, blockIdx.y, blockIdx.z, all "
              "from 0")
          .repair("bind it, or move it into the pipelined loop by sch.reorder");
    }
    if (out_.grid.empty())
      return no("schedule.specialize_warps.loop",
                cat("no loop around ", name_of(out_.steps), " is bound to blockIdx"))
          .note("legal: a serial loop over the sum, under loops bound to blockIdx");
    out_.top = scope == npos ? 0 : scope + 1;
    while (out_.top < path_.nodes.size() && !as<ForNode>(path_.nodes[out_.top])) ++out_.top;
    // Below the grid: what starts the sums, the loop, what writes them.
    std::size_t last = out_.top;
    while (path_.nodes[last].get() != out_.grid.back()) ++last;
    const Stmt body = out_.grid.back()->body;
    const auto beside = statements(body);
    if (last + 1 < path_.nodes.size() && path_.nodes[last + 1].get() != body.get())
      return no("schedule.specialize_warps.loop", "the nest cannot be read");
    bool after = false;
    for (const Stmt& part : beside) {
      if (part.get() == out_.steps) after = true;
      else
        for (const Leaf& leaf : leaves(part)) (after ? after_ : before_).push_back(leaf);
    }
    if (!after)
      return no("schedule.specialize_warps.loop",
                cat("loop ", name_of(out_.steps), " does not stand directly under ",
                    name_of(out_.grid.back())));
    for (std::size_t i = out_.top; i < last; ++i) {
      const auto* outer = as<ForNode>(path_.nodes[i]);
      if (outer && statements(outer->body).size() == 1) continue;
      return no("schedule.specialize_warps.loop",
                cat("more than one nest stands under loop ", outer ? name_of(outer) : ""))
          .repair(
              "move the other blocks below the innermost loop of the grid by sch.compute_at or "
              "sch.reverse_compute_at");
    }
    bind_path(analyzer_, path_);
    return std::nullopt;
  }

  Verdict find_slots() {
    under_ = leaves_under(path_);
    const Json* stages = find_annotation(out_.steps->annotations, "software_pipeline_stage");
    const auto refuse_stages = [&](std::string found) {
      return no("schedule.specialize_warps.pipeline", cat("loop ", name_of(out_.steps), " ", found))
          .note(
              "legal: \"software_pipeline_stage\" with one stage for each statement of the loop: "
              "0 for copies, slots - 1 for the product")
          .repair(cat("sch.annotate(", out_.steps->var->name,
                      ", \"software_pipeline_stage\", [0, 0, 3])"));
    };
    if (!stages) return refuse_stages("has no annotation \"software_pipeline_stage\"");
    const auto parts = statements(out_.steps->body);
    if (!stages->is_array() || stages->as_array().size() != parts.size())
      return refuse_stages(cat("has ", parts.size(), " statements and stages ", stages->dump()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Json& stage = stages->as_array()[i];
      if (!stage.is_int()) return refuse_stages(cat("has stages ", stages->dump()));
      const bool last = i + 1 == parts.size();
      if (last ? stage.as_int() < 1 || stage.as_int() > 15 : stage.as_int() != 0)
        return refuse_stages(cat("has stages ", stages->dump()));
      if (last) out_.slots = stage.as_int() + 1;
    }
    return std::nullopt;
  }

  // ---- blocks

  Verdict find_copies() {
    if (under_.empty()) return no("schedule.specialize_warps.copy", "the loop is empty");
    for (std::size_t i = 0; i + 1 < under_.size(); ++i) {
      const BlockNode* block = under_[i].block();
      const auto* store = as<StoreNode>(block->body);
      const auto* from = store ? as<LoadNode>(store->value) : nullptr;
      bool copies = from && !block->init && store->buffer->scope == "shared" &&
                    is_param(from->buffer) && store->indices.size() == from->indices.size();
      for (std::size_t d = 0; copies && d < store->indices.size(); ++d)
        copies = analyzer_.prove_equal(store->indices[d], from->indices[d]);
      if (!copies)
        return no("schedule.specialize_warps.copy",
                  cat("block ", name_of(block),
                      " does not copy elements of a parameter to the same place in shared memory"),
                  under_[i].realize)
            .note("legal under the loop: blocks of cache_read(…, \"shared\"), then the product")
            .repair("sch.cache_read(product, operand, \"shared\") and sch.compute_at of it");
      copied_.emplace_back(store->buffer, from->buffer);
    }
    return std::nullopt;
  }

  bool is_param(const Buffer& b) const {
    for (const Param& p : s_.mod->find(path_.func)->params)
      if (p.buffer == b) return true;
    return false;
  }

  Refusal no_product(std::string found) const {
    return no("schedule.specialize_warps.product",
              cat("block ", name_of(under_.back().block()), " ", found), under_.back().realize)
        .note(
            "legal: C[…] = C[…] + cast(A[…], float32) * cast(B[…], float32), A and B both "
            "float16, both bfloat16 or both of a float8 type in shared memory, C float32 in local "
            "memory, starting at 0");
  }

  static const LoadNode* factor(const Expr& e) {
    const auto* c = as<CastNode>(e);
    const auto* l = c && c->dtype == dtypes::float32 ? as<LoadNode>(c->value) : nullptr;
    const bool narrow = l && l->dtype.is_float() && l->dtype.bits <= 16;
    return narrow ? l : nullptr;
  }

  static bool is_zero(const Expr& e) {
    const auto* f = as<FloatImmNode>(e);
    return f && f->value == 0;
  }

  Verdict find_product() {
    const Leaf& leaf = under_.back();
    const BlockNode* block = leaf.block();
    const auto* store = as<StoreNode>(block->body);
    const auto* sum = store ? as<BinaryNode>(store->value) : nullptr;
    const auto* old = sum && sum->kind == ExprKind::add ? as<LoadNode>(sum->a) : nullptr;
    Expr term = old ? sum->b : nullptr;
    Expr guard;
    if (const auto* choice = as<CallNode>(term);
        choice && choice->op == "if_then_else" && is_zero(choice->args[2]))
      guard = choice->args[0], term = choice->args[1];
    const auto* product = as<BinaryNode>(term);
    const LoadNode* x = product ? factor(product->a) : nullptr;
    const LoadNode* y = product ? factor(product->b) : nullptr;
    const bool types =
        x && y && (x->dtype == y->dtype || (x->dtype.is_float8() && y->dtype.is_float8()));
    const bool form = old && old->buffer == store->buffer && types &&
                      product->kind == ExprKind::mul && store->buffer->scope == "local" &&
                      store->buffer->dtype == dtypes::float32;
    if (!form) return no_product("is no product of two operands of 16 or 8 bits");
    out_.step = kRowBytes / x->dtype.bytes();
    for (std::size_t d = 0; d < store->indices.size(); ++d)
      if (!analyzer_.prove_equal(store->indices[d], old->indices[d]))
        return no_product("adds to another element than it writes");
    out_.sums = store->buffer;
    WEFT_TRY(check_start(block));
    VarMap map;
    for (std::size_t i = 0; i < block->iters.size(); ++i)
      map[block->iters[i].var.get()] = leaf.realize->iter_values[i];
    for (const ForNode* loop : leaf.loops) {
      const bool outer = loop == out_.steps ||
                         std::find(out_.grid.begin(), out_.grid.end(), loop) != out_.grid.end();
      if (!outer) inner_.push_back(loop);
    }
    bind_loops(analyzer_, inner_);
    for (const Expr& e : store->indices) {
      Place place;
      WEFT_TRY(read(e, map, place));
      out_.origin.push_back(place.first);
      result_.push_back(std::move(place));
      const auto* v = as<VarNode>(e);
      const IterVar* iter = nullptr;
      for (const IterVar& i : block->iters)
        if (i.var.get() == v && v) iter = &i;
      if (iter && iter->kind != IterKind::spatial) return no_product("writes along its sum");
      if (!iter && !is_const_int(e)) return no_product("writes at an index that is no iterator");
      if (iter && !is_const_int_value(iter->dom.min, 0))
        return no_product("has an iterator that does not start at 0");
      out_.extents.push_back(iter ? iter->dom.extent : make_int(1));
    }
    WEFT_TRY(find_operand(x, map, x_, x_places_));
    WEFT_TRY(find_operand(y, map, y_, y_places_));
    WEFT_TRY(match_axes());
    return check_conditions(leaf, map, guard);
  }

  /// The sums start at 0: by the block's init or by a block before the loop.
  Verdict check_start(const BlockNode* block) const {
    if (before_.size() > (block->init ? 0 : 1))
      return no("schedule.specialize_warps.product",
                cat("block ", name_of(before_[0].block()),
                    " runs before the loop and is not the start of its sums"),
                before_[0].realize);
    if (!block->init && before_.empty()) return no_product("has no start for its sums");
    const Stmt start = block->init ? block->init : before_[0].block()->body;
    const auto* zero = as<StoreNode>(start);
    if (!zero || zero->buffer != out_.sums || !is_zero(zero->value))
      return no_product("starts at something else than 0");
    return std::nullopt;
  }

  Verdict read(const Expr& e, const VarMap& map, Place& out) const {
    const Expr value = substitute(e, map);
    VarMap start;
    std::vector<IterVar> loops;
    for (const ForNode* loop : inner_) {
      start[loop->var.get()] = loop->min;
      if (!uses_var(value, loop->var.get())) continue;
      out.loops.push_back(loop);
      loops.push_back({loop->var, {loop->min, loop->extent}, IterKind::spatial});
    }
    out.first = analyzer_.simplify(substitute(value, start));
    if (loops.empty()) return std::nullopt;
    const Expr rest = analyzer_.simplify(linear_rest(value, out.first));
    for (const IterVar& l : loops) {
      std::int64_t n = 0;
      if (!is_const_int(l.dom.extent, &n))
        return no(
            "schedule.specialize_warps.tile",
            cat("loop \"", l.var->name, "\" of the tile has the extent ", print(l.dom.extent)));
      out.extent *= n;
    }
    const auto bounds = analyzer_.bounds(rest);
    const auto found = arith::detect_iter_map({rest}, loops, make_bool(true),
                                              arith::MapLevel::bijective, analyzer_);
    if (!found.ok() || bounds.min != 0 || bounds.max != out.extent - 1)
      return no("schedule.specialize_warps.tile",
                cat("the index ", print(value), " does not go through a tile without gaps"));
    return std::nullopt;
  }

  static Expr linear_rest(const Expr& value, const Expr& first) { return value - first; }

  Verdict find_operand(const LoadNode* l, const VarMap& map, PipelineOperand& out,
                       std::vector<Place>& places) const {
    for (const auto& [shared, global] : copied_)
      if (shared == l->buffer) out.global = global;
    if (!out.global)
      return no_product(
          cat("reads \"", l->buffer->name, "\", which no block under the loop fills"));
    for (const Expr& e : l->indices) {
      Place place;
      WEFT_TRY(read(e, map, place));
      out.first.push_back(place.first);
      places.push_back(std::move(place));
    }
    return std::nullopt;
  }

  static bool same(const Place& a, const Place& b) { return a.loops == b.loops; }

  /// Which axis of an operand moves with which of the result, and which are summed up.
  Verdict match_axes() {
    for (std::size_t d = 0; d < result_.size(); ++d)
      if (!result_[d].loops.empty()) tile_axes_.push_back(d);
    if (tile_axes_.size() != 2)
      return no("schedule.specialize_warps.tile",
                cat("the tile has ", tile_axes_.size(), " axes longer than 1; legal: 2"));
    const Place* sum = nullptr;
    for (auto* operand : {&x_, &y_}) {
      const auto& places = operand == &x_ ? x_places_ : y_places_;
      const std::size_t mine = operand == &x_ ? 0 : 1;
      std::size_t moving = 0, tiles = 0, summed = 0;
      for (std::size_t d = 0; d < places.size(); ++d) {
        if (places[d].loops.empty()) continue;
        ++moving;
        bool result = false;
        for (std::size_t t = 0; t < 2; ++t) {
          if (!same(places[d], result_[tile_axes_[t]])) continue;
          result = true, ++tiles, operand->along = d, axis_of_[mine] = t;
        }
        if (result) continue;
        if (sum && !same(*sum, places[d])) return no_product("sums along axes that do not agree");
        sum = &places[d], ++summed, operand->sum_axis = d;
      }
      if (moving != 2 || tiles != 1 || summed != 1)
        return no_product(cat("reads \"", operand->global->name,
                              "\" otherwise than along one axis of the result and the sum"));
    }
    if (axis_of_[0] == axis_of_[1]) return no_product("uses both operands along one axis");
    if (sum->extent != out_.step)
      return no("schedule.specialize_warps.tile",
                cat("a step adds up ", sum->extent, " terms; legal: ", out_.step))
          .repair(cat("split the loop of the sum by ", out_.step));
    return std::nullopt;
  }

  // ---- conditions

  /// What a condition leaves out must be zeros that bulk copies bring, or not be written.
  Verdict check_conditions(const Leaf& leaf, const VarMap& map, const Expr& guard) const {
    std::vector<Expr> all = conjuncts(leaf.realize->predicate);
    if (guard)
      for (const Expr& c : conjuncts(guard)) all.push_back(substitute(c, map));
    for (const Expr& c : all) {
      if (is_const_int_value(c, 1) || allowed(leaf, map, c)) continue;
      return no_product(cat("runs under the condition ", print(c)))
          .note("legal: conditions that keep iterators within their domains");
    }
    return std::nullopt;
  }

  bool allowed(const Leaf& leaf, const VarMap& map, const Expr& c) const {
    const auto* less = as<BinaryNode>(c);
    if (!less || less->kind != ExprKind::lt) return false;
    const BlockNode* block = leaf.block();
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      const IterVar& iter = block->iters[i];
      if (iter.kind == IterKind::spatial && analyzer_.prove_equal(less->b, iter.dom.extent) &&
          analyzer_.prove_equal(less->a, leaf.realize->iter_values[i]))
        return true;
    }
    // Beyond both operands along the sum: zeros.
    bool ends = true;
    for (const auto* operand : {&x_, &y_}) {
      const auto* l = load_of(leaf.block(), operand == &x_);
      ends = ends &&
             analyzer_.prove_equal(less->a, substitute(l->indices[operand->sum_axis], map)) &&
             analyzer_.prove_equal(less->b, operand->global->shape[operand->sum_axis]);
    }
    return ends;
  }

  static const LoadNode* load_of(const BlockNode* block, bool first) {
    const auto* sum = as<BinaryNode>(as<StoreNode>(block->body)->value);
    Expr term = sum->b;
    if (const auto* choice = as<CallNode>(term)) term = choice->args[1];
    const auto* product = as<BinaryNode>(term);
    return factor(first ? product->a : product->b);
  }

  // ---- the result

  Refusal no_store(std::string found, const Leaf* leaf = nullptr) const {
    return no("schedule.specialize_warps.store",
              leaf ? cat("block ", name_of(leaf->block()), " ", found) : found,
              leaf ? leaf->realize : nullptr)
        .note(
            "legal after the loop: one block that writes a function of each element of the tile "
            "once")
        .repair(
            "sch.cache_write(product, 0, \"local\") and sch.reverse_compute_at, and "
            "sch.compute_inline of other blocks into it");
  }

  Verdict find_store() {
    if (after_.size() != 1) return no_store(cat(after_.size(), " blocks follow the loop"));
    const Leaf& leaf = after_[0];
    const BlockNode* block = leaf.block();
    const auto* store = as<StoreNode>(block->body);
    if (!store || block->init || !block->alloc_buffers.empty() || !block->match_buffers.empty())
      return no_store("is more than one store", &leaf);
    out_.store = block;
    bool reads = false, other = false;
    out_.store_axes.assign(block->iters.size(), npos);
    for_each_expr(block->body, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l) return;
      for (const auto& [shared, global] : copied_) other = other || shared == l->buffer;
      other = other || l->buffer == store->buffer;
      if (l->buffer != out_.sums) return;
      reads = true;
      for (std::size_t d = 0; d < l->indices.size(); ++d) {
        std::size_t found = npos;
        for (std::size_t i = 0; i < block->iters.size(); ++i)
          if (l->indices[d].get() == block->iters[i].var.get()) found = i;
        if (found == npos) {
          other = other || !is_const_int_value(l->indices[d], 0);
          continue;
        }
        other = other || (out_.store_axes[found] != npos && out_.store_axes[found] != d);
        out_.store_axes[found] = d;
      }
    });
    if (!reads) return no_store("does not read the sums", &leaf);
    if (other) return no_store("reads more of the tile than the element that it writes", &leaf);
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      const IterVar& iter = block->iters[i];
      const std::size_t axis = out_.store_axes[i];
      const bool whole = axis == npos
                             ? is_const_int_value(iter.dom.extent, 1)
                             : is_const_int_value(iter.dom.min, 0) &&
                                   analyzer_.prove_equal(iter.dom.extent, out_.extents[axis]);
      if (iter.kind != IterKind::spatial || !whole)
        return no_store(
            cat("has the iterator \"", iter.var->name, "\", which is no axis of the whole result"),
            &leaf);
    }
    for (std::size_t t : tile_axes_) {
      if (std::find(out_.store_axes.begin(), out_.store_axes.end(), t) == out_.store_axes.end())
        return no_store("does not go along both axes of the tile", &leaf);
    }
    return std::nullopt;
  }

  /// Columns lie beside each other in what is written, unless the tile is one the other way alone.
  Verdict choose_rows() {
    const auto* store = as<StoreNode>(out_.store->body);
    std::size_t column = 1;
    for (std::size_t i = 0; i < out_.store->iters.size(); ++i)
      if (uses_var(store->indices.back(), out_.store->iters[i].var.get()) &&
          out_.store_axes[i] == tile_axes_[0])
        column = 0;
    auto is_tile = [&](std::size_t c) {
      const std::int64_t rows = result_[tile_axes_[1 - c]].extent,
                         columns = result_[tile_axes_[c]].extent;
      return rows % 64 == 0 && rows <= 192 && columns % 16 == 0 &&
             columns <= most_warp_columns(rows, out_.promote > 0);
    };
    if (!is_tile(column) && is_tile(1 - column)) column = 1 - column;
    out_.column = tile_axes_[column], out_.row = tile_axes_[1 - column];
    const bool first_is_rows = axis_of_[0] == 1 - column;
    out_.a = first_is_rows ? x_ : y_, out_.b = first_is_rows ? y_ : x_;
    out_.rows = result_[out_.row].extent, out_.columns = result_[out_.column].extent;
    return std::nullopt;
  }

  Verdict check_tile() const {
    if (out_.rows % 64 || out_.rows > 192)
      return no("schedule.specialize_warps.tile",
                cat("the tile has ", out_.rows, " rows; legal: 64, 128 and 192"));
    const std::int64_t most = most_warp_columns(out_.rows, out_.promote > 0);
    if (out_.columns % 16 || out_.columns > most)
      return no("schedule.specialize_warps.tile",
                cat("the tile has ", out_.columns, " columns; legal: multiples of 16 up to ", most,
                    most == 256 ? ""
                                : cat(", which ", out_.rows, " rows",
                                      out_.promote ? " with two sets of sums" : "",
                                      " leave registers for")));
    for (const PipelineOperand* operand : {&out_.a, &out_.b}) {
      const Buffer& b = operand->global;
      const bool last = operand->sum_axis + 1 == b->ndim() || operand->along + 1 == b->ndim();
      if (b->ndim() > 5 || !last || !is_const_int_value(strides_of(b).back(), 1))
        return no("schedule.specialize_warps.operand",
                  cat("\"", b->name,
                      "\" does not lie in rows along the tile or the sum, on at most 5 "
                      "axes"))
            .note("legal: the last axis, of stride 1, is one of the two that the tile moves along");
      if (b->dtype.bytes() == 1 && !operand->rows_along_sum())
        return no("schedule.specialize_warps.operand",
                  cat("\"", b->name, "\" of ", to_string(b->dtype),
                      " does not lie in rows along the sum"))
            .note("legal: any order for 16-bit operands; rows along the sum for float8")
            .repair("transpose the array before the product");
      const Exprs strides = strides_of(b);
      const std::int64_t unit = 16 / b->dtype.bytes();
      for (std::size_t d = 0; d + 1 < strides.size(); ++d) {
        const auto mod = analyzer_.modular(strides[d]);
        if (mod.coeff % unit == 0 && mod.base % unit == 0) continue;
        return no("schedule.specialize_warps.operand",
                  cat("the stride ", print(strides[d]), " of axis ", d, " of \"", b->name,
                      "\" is not known to be a multiple of 16 bytes"))
            .note("bulk copies read rows that begin at multiples of 16 bytes")
            .repair(cat("give the buffer rows of a multiple of ", unit,
                        " elements: a longer stride, or an extent such as n * ", unit));
      }
    }
    return std::nullopt;
  }

  const State& s_;
  const Path& path_;
  WarpPipeline& out_;
  arith::Analyzer analyzer_;
  std::vector<Leaf> before_, under_, after_;
  std::vector<std::pair<Buffer, Buffer>> copied_;  // to, from
  std::vector<const ForNode*> inner_;
  std::vector<Place> result_, x_places_, y_places_;
  PipelineOperand x_, y_;
  std::vector<std::size_t> tile_axes_;  // of the sums
  std::size_t axis_of_[2] = {0, 0};     // of x and y: index into tile_axes_
};

}  // namespace

const ForNode* WarpPipeline::loop_of(std::size_t axis) const {
  const ForNode* found = nullptr;
  for (const ForNode* loop : grid) {
    if (!uses_var(origin[axis], loop->var.get())) continue;
    if (found) return nullptr;
    found = loop;
  }
  return found;
}

Verdict find_warp_pipeline(const State& s, const Path& path, WarpPipeline& out) {
  return Finder(s, path, out).find();
}

}  // namespace weft::schedule
