// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/rolling_buffer.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/primitives/cache_parts.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Every index of one axis modulo the window.
class Wrap final : public Rewriter {
 public:
  Wrap(Buffer from, Buffer to, std::size_t axis, std::int64_t window)
      : from_(std::move(from)), to_(std::move(to)), axis_(axis), window_(window) {}
  Buffer rewrite_buffer(const Buffer& b) override { return b == from_ ? to_ : b; }
  Block rewrite_block(const Block& block) override {
    const Block changed = Rewriter::rewrite_block(block);
    if (changed == block || block->iters.empty()) return changed;
    auto out = edit(changed);
    AccessRegions found = detect_block_regions(*out);
    out->reads = std::move(found.reads);
    out->writes = std::move(found.writes);
    return out;
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    return l->buffer == from_ ? load(to_, wrapped(l->indices)) : Rewriter::rewrite_load(e);
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    return t->buffer == from_ ? store(to_, rewrite(t->value), wrapped(t->indices))
                              : Rewriter::rewrite_store(s);
  }

 private:
  Exprs wrapped(const Exprs& indices) {
    Exprs out;
    for (const Expr& e : indices) out.push_back(rewrite(e));
    out[axis_] = floormod(out[axis_], make_int(window_, out[axis_]->dtype));
    return out;
  }
  Buffer from_, to_;
  std::size_t axis_;
  std::int64_t window_;
};

/// An axis of the buffer along which successive iterations of a loop overlap: the block's iterator
/// there is loop * step + inner, inner below the window.
struct Window {
  std::size_t axis = npos, iter = npos;
  const ForNode *loop = nullptr, *inner = nullptr;
  std::int64_t step = 0, width = 0;
};

std::optional<Window> window_of(const Leaf& leaf, const BufferRegion& written, std::size_t axis) {
  const Range& at = written.region[axis];
  const auto* iter = as<VarNode>(at.min);
  if (!iter || !is_const_int_value(at.extent, 1)) return std::nullopt;
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    if (leaf.block()->iters[i].var.get() != iter) continue;
    std::vector<Var> vars;
    for (const ForNode* l : leaf.loops) vars.push_back(l->var);
    const auto linear = arith::detect_linear(leaf.realize->iter_values[i], vars);
    if (!linear) return std::nullopt;
    std::vector<std::size_t> used;
    for (std::size_t k = 0; k < vars.size(); ++k) {
      if (linear->coeffs[k] != 0) used.push_back(k);
    }
    if (used.size() != 2 || linear->coeffs[used[1]] != 1) return std::nullopt;
    Window out{axis, i, leaf.loops[used[0]], leaf.loops[used[1]], linear->coeffs[used[0]], 0};
    if (!is_const_int(out.inner->extent, &out.width) || !is_const_int_value(out.inner->min, 0) ||
        !is_const_int_value(out.loop->min, 0) || !is_const_int_value(linear->base, 0))
      return std::nullopt;
    if (out.step < 1 || out.step >= out.width) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

}  // namespace

Verdict RollingBuffer::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, old->writes, write_buffer_index, "writes"));
  const BufferRegion& written = old->writes[static_cast<std::size_t>(write_buffer_index)];
  const Buffer& buffer = written.buffer;
  std::size_t allocated = 0;
  WEFT_TRY(find_allocation(s, kName, path, buffer, allocated));
  const auto refusal = [&](std::string_view slug, std::string why, std::string legal,
                           const void* culprit) {
    return refuse(s, cat("schedule.rolling_buffer.", slug),
                  cat("rolling_buffer of \"", buffer->name, "\": ", why), culprit)
        .note(cat("legal: ", legal));
  };
  const auto scope = leaves(path.scope()->block->body);
  const std::size_t self = index_of(scope, old);
  const Leaf& leaf = scope[self];
  if (auto why = why_not_complete(scope, old); !why.empty())
    return refusal("block", cat("block ", name_of(old), " is not complete: ", why),
                   "producers of spatial iterators that alone write the buffer", realize);
  std::optional<Window> window;
  for (std::size_t d = 0; d < written.region.size() && !window; ++d)
    window = window_of(leaf, written, d);
  if (!window)
    return refusal(
        "overlap",
        cat("no iterations of a loop around ", name_of(old), " overlap along an axis of it"),
        "a producer moved by compute_at into a loop whose iterations need windows that "
        "overlap: an index of the form loop * step + inner with step below the inner "
        "loop's extent",
        realize);
  if (window->loop->for_kind != ForKind::serial)
    return refusal("kind",
                   cat("loop ", name_of(window->loop),
                       " is not serial, but its iterations "
                       "would take from the ones before"),
                   "serial loops; rolling_buffer instead of parallel or bind", window->loop);
  // One iteration earlier the same element stood `step` further in its window.
  const VarMap earlier{{window->loop->var.get(), Expr(window->loop->var) - 1},
                       {window->inner->var.get(), Expr(window->inner->var) + window->step}};
  bool repeats = true;
  Exprs kept = realize->iter_values;
  for (const Expr& part : conjuncts(realize->predicate)) kept.push_back(part);
  for (const Expr& e : kept)
    repeats = repeats && same_expr(arith::simplify(substitute(e, earlier)), arith::simplify(e));
  if (!repeats)
    return refusal("overlap",
                   cat("what ", name_of(old), " makes depends on ", name_of(window->loop),
                       " beyond the window's position"),
                   "loops that move the window and nothing else", realize);
  for (std::size_t k = 0; k < scope.size(); ++k) {
    const bool uses = reads(scope[k].block(), buffer.get()) && k != self;
    const bool under = std::find(scope[k].loops.begin(), scope[k].loops.end(), window->loop) !=
                       scope[k].loops.end();
    if (uses && !under)
      return refusal(
          "consumer",
          cat("block ", name_of(scope[k].block()), " reads it outside of ", name_of(window->loop)),
          "consumers inside the loop", scope[k].realize);
    if (!uses) continue;
    // What one iteration reads lies in its window.
    const BufferRegion* read = region_of(scope[k].block()->reads, buffer.get());
    arith::Analyzer inside;
    bind_path(inside, path.prefix(path.scope_index()));
    bind_loops(inside, scope[k].loops);
    const auto box =
        relax(bound_region(*read, scope[k].realize), loops_below(scope[k], window->loop),
              scope[k].realize->predicate, inside);
    const Expr first = Expr(window->loop->var) * window->step;
    const Range& need = box[window->axis];
    const bool fits = k > self && need.min && need.extent && inside.prove(ge(need.min, first)) &&
                      inside.prove(le(need.min + need.extent, first + window->width));
    if (!fits)
      return refusal(
          "consumer",
          cat("block ", name_of(scope[k].block()), " does not provably read within the window of ",
              window->width, " that one iteration makes"),
          "consumers of what the same iteration makes", scope[k].realize);
  }
  auto narrow = edit(buffer);
  narrow->shape[window->axis] = make_int(window->width, buffer->shape[window->axis]->dtype);
  narrow->strides.clear();
  const Buffer circular = narrow;
  const DType type = window->inner->var->dtype;
  const Expr fresh =
      logical_or(eq(window->loop->var, make_zero(window->loop->var->dtype)),
                 ge(window->inner->var, make_int(window->width - window->step, type)));
  // Iterations take values from the ones before: the iterator is not spatial any more.
  auto carried = edit(realize->block);
  carried->iters[window->iter].kind = IterKind::opaque;
  auto guarded =
      make_ref<BlockRealizeNode>(realize->iter_values, both(realize->predicate, fresh), carried);
  guarded->line = realize->line;
  const Stmt whole = replace(path, guarded);
  const auto place = find_block(whole, as<BlockRealizeNode>(path.nodes[allocated])->block->id);
  Wrap wrap(buffer, circular, window->axis, window->width);
  out.mod = with_body(s.mod, path.func, replace(*place, wrap.rewrite(place->target())));
  return std::nullopt;
}

}  // namespace weft::schedule
