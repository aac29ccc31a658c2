// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/buffer_access.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/primitives/cache_parts.h"

namespace weft::schedule {

using namespace ir;

namespace {

Verdict check_kind(const State& s, std::string_view step, const std::string& kind) {
  if (kind == "read" || kind == "write") return std::nullopt;
  return refuse(s, cat("schedule.", step, ".kind"), cat(step, " got buf_type \"", kind, "\""))
      .note("legal: \"read\" or \"write\"");
}

/// Whether the statement names the buffer other than by its address.
bool accesses(const Stmt& s, const Buffer& buffer, bool writing) {
  bool found = false;
  if (!s) return found;
  std::unordered_set<const ExprNode*> addressed;
  for_each_expr(s, [&](const Expr& e) {
    if (const auto* c = as<CallNode>(e); c && c->op == "address_of") {
      for (const Expr& a : c->args) addressed.insert(a.get());
    }
    const auto* l = as<LoadNode>(e);
    found |= !writing && l && l->buffer == buffer && !addressed.count(l);
  });
  for_each_stmt(s, [&](const Stmt& x) {
    const auto* t = as<StoreNode>(x);
    found |= writing && t && t->buffer == buffer;
    if (const auto* realize = as<BlockRealizeNode>(x)) {
      for (const BufferRegion& r : writing ? realize->block->writes : realize->block->reads)
        found |= r.buffer == buffer;
      for (const MatchBuffer& m : realize->block->match_buffers) found |= m.source.buffer == buffer;
    }
  });
  return found;
}

}  // namespace

Verdict AnnotateBufferAccess::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  WEFT_TRY(check_kind(s, kName, buf_type));
  const BlockNode* old = path.realize()->block.get();
  const bool write = buf_type == "write";
  const auto& list = write ? old->writes : old->reads;
  WEFT_TRY(check_buffer_index(s, kName, path, list, buffer_index, write ? "writes" : "reads"));
  const auto which = static_cast<std::size_t>(buffer_index);
  const Buffer buffer = list[which].buffer;
  const std::size_t axes = buffer->ndim(), given = gen_new_ranges.outputs.size();
  if (gen_new_ranges.inputs.size() != old->iters.size() || (given != axes && given != 2 * axes)) {
    Refusal r = refuse(s, "schedule.annotate_buffer_access.rank",
                       cat("annotate_buffer_access of \"", buffer->name, "\" in ", name_of(old),
                           " got a map of ", gen_new_ranges.inputs.size(), " indices to ", given),
                       path.target().get());
    r.note(cat("legal: maps of ", old->iters.size(), " iterators to ", axes, " indices or ",
               2 * axes, " begins and ends"));
    return r;
  }
  VarMap values;
  for (std::size_t i = 0; i < old->iters.size(); ++i)
    values[gen_new_ranges.inputs[i].get()] = old->iters[i].var;
  BufferRegion stated{buffer, {}};
  for (std::size_t d = 0; d < axes; ++d) {
    const bool point = given == axes;
    const Expr begin = substitute(gen_new_ranges.outputs[point ? d : 2 * d], values);
    const Expr extent =
        point ? make_const(1, begin->dtype)
              : arith::simplify(substitute(gen_new_ranges.outputs[2 * d + 1], values) - begin);
    stated.region.push_back({begin, extent});
  }
  arith::Analyzer analyzer;
  bind_iters(analyzer, old);
  const AccessRegions found = detect_block_regions(*old);
  const BufferRegion* touched = region_of(write ? found.writes : found.reads, buffer.get());
  const bool holds = !touched || arith::covers(clip(stated.region, buffer, analyzer),
                                               clip(touched->region, buffer, analyzer), analyzer);
  const bool exact = !write || !touched || arith::covers(touched->region, stated.region, analyzer);
  if (!holds || !exact) {
    Refusal r =
        refuse(s, "schedule.annotate_buffer_access.region",
               cat("annotate_buffer_access of \"", buffer->name, "\" in ", name_of(old),
                   !exact ? " states more than the block writes"
                          : " leaves out elements that the block uses, or not provably none"),
               path.target().get());
    r.note(write ? "legal: exactly what the block writes"
                 : "legal: regions that hold every access of the block");
    return r;
  }
  auto changed = edit(path.realize()->block);
  (write ? changed->writes : changed->reads)[which] = std::move(stated);
  out.mod = with_body(s.mod, path.func, replace(path, with_block(path.realize(), changed)));
  return std::nullopt;
}

Verdict UnsafeHideBufferAccess::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  WEFT_TRY(check_kind(s, kName, buf_type));
  const BlockNode* old = path.realize()->block.get();
  const bool write = buf_type == "write";
  auto changed = edit(path.realize()->block);
  auto& list = write ? changed->writes : changed->reads;
  std::vector<std::int64_t> gone = buf_index_array;
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  for (std::size_t k = gone.size(); k-- > 0;) {
    WEFT_TRY(check_buffer_index(s, kName, path, write ? old->writes : old->reads, gone[k],
                                write ? "writes" : "reads"));
    const auto which = static_cast<std::size_t>(gone[k]);
    const Buffer buffer = list[which].buffer;
    if (accesses(old->body, buffer, write) || accesses(old->init, buffer, write)) {
      Refusal r = refuse(s, "schedule.unsafe_hide_buffer_access.used",
                         cat("unsafe_hide_buffer_access: the body of ", name_of(old), " ", buf_type,
                             "s \"", buffer->name,
                             "\" itself, and a program whose blocks do not "
                             "name what they access is not well-formed"),
                         path.target().get());
      r.note("legal: regions that stand for accesses through T.address_of, or for none");
      return r;
    }
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(which));
  }
  out.mod = with_body(s.mod, path.func, replace(path, with_block(path.realize(), changed)));
  return std::nullopt;
}

// ---- unsafe_set_dtype

namespace {

class Retype final : public Rewriter {
 public:
  Retype(Buffer from, Buffer to) : from_(std::move(from)), to_(std::move(to)) {}
  Buffer rewrite_buffer(const Buffer& b) override { return b == from_ ? to_ : b; }

  using Rewriter::rewrite;
  /// A type that holds every number of the old one brings it back as it was.
  Expr rewrite(const Expr& e) override {
    const auto* c = e ? as<CastNode>(e) : nullptr;
    const auto* l = c ? as<LoadNode>(c->value) : nullptr;
    if (!l || l->buffer != from_ || !holds_all(to_->dtype, from_->dtype))
      return Rewriter::rewrite(e);
    bool changed = false;
    return cast(e->dtype, load(to_, rewrite_all(l->indices, &changed)));
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    if (l->buffer != from_) return Rewriter::rewrite_load(e);
    bool changed = false;
    return cast(from_->dtype, load(to_, rewrite_all(l->indices, &changed)));
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    if (t->buffer != from_) return Rewriter::rewrite_store(s);
    bool changed = false;
    return store(to_, cast(to_->dtype, rewrite(t->value)), rewrite_all(t->indices, &changed));
  }

 private:
  static bool holds_all(DType wide, DType narrow) {
    if (wide.is_int() && narrow.is_int()) return wide.bits >= narrow.bits;
    if (wide.is_integral() && narrow.is_uint()) return wide.bits > narrow.bits;
    return wide.is_float() && wide.bits >= 32 && narrow.is_float() && narrow.bits <= wide.bits;
  }
  Buffer from_, to_;
};

}  // namespace

Verdict UnsafeSetDtype::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockNode* node = path.realize()->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, node->writes, buffer_index, "writes"));
  const Buffer buffer = node->writes[static_cast<std::size_t>(buffer_index)].buffer;
  std::size_t depth = 0;
  WEFT_TRY(find_allocation(s, kName, path, buffer, depth));
  DType type;
  const bool known = try_parse_dtype(dtype, type);
  if (!known || !type.is_scalar() || type.is_handle() || type.is_complex() ||
      buffer->dtype.is_complex()) {
    Refusal r = refuse(s, "schedule.unsafe_set_dtype.dtype",
                       cat("unsafe_set_dtype of \"", buffer->name, "\" (", to_string(buffer->dtype),
                           ") got \"", dtype, "\""),
                       path.target().get());
    r.note("legal: real element types, such as \"float16\", \"bfloat16\", \"int8\"");
    return r;
  }
  bool viewed = false;
  for_each_stmt(path.nodes[depth], [&](const Stmt& x) {
    if (const auto* realize = as<BlockRealizeNode>(x)) {
      for (const MatchBuffer& m : realize->block->match_buffers)
        viewed |= m.source.buffer == buffer;
    }
  });
  for_each_expr(path.nodes[depth], [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (!c || c->op != "address_of") return;
    for (const Expr& a : c->args) {
      const auto* l = as<LoadNode>(a);
      viewed |= l && l->buffer == buffer;
    }
  });
  if (viewed)
    return refuse(s, "schedule.unsafe_set_dtype.view",
                  cat("unsafe_set_dtype of \"", buffer->name,
                      "\", of which a block takes a view or an address"),
                  path.target().get())
        .note("legal: buffers that are loaded and stored element by element; before tensorize");
  auto changed = edit(buffer);
  changed->dtype = type;
  const Buffer fresh = changed;
  out.mod = with_body(s.mod, path.func,
                      replace(path, Retype(buffer, fresh).rewrite(path.nodes[depth]), depth));
  return std::nullopt;
}

}  // namespace weft::schedule
