// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/lower.h"

#include <algorithm>
#include <functional>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/blocks.h"
#include "weft/stages/visits.h"
#include "weft/targets/wse/view.h"

namespace weft::wse {

namespace {

using namespace ir;

[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help = {}) {
  Error e(ErrorKind::lower, cat("wse.lower.", slug), std::move(message));
  if (!help.empty()) e.help(std::move(help));
  throw e;
}

class Lowering {
 public:
  Lowering(const PrimFunc& f, std::int32_t w, std::int32_t h) : f_(f) {
    out_.name = f->name;
    out_.width = w;
    out_.height = h;
  }

  StageProgram run() {
    for (const Param& p : f_->params) {
      if (!p.buffer)
        refuse("scalar", cat("parameter ", p.var->name, " is a scalar; only tensors are accepted"));
      add_buffer(p.buffer, true);
    }
    std::vector<Buffer> temporaries;
    std::vector<stages::Leaf> leaves = stages::collect_leaves(f_->body, &temporaries);
    for (const Buffer& b : temporaries) add_buffer(b, false);
    for (const stages::Leaf& leaf : leaves) {
      stages::Visits visits =
          stages::visits_of(leaf, {{"pe.x", out_.width}, {"pe.y", out_.height}});
      if (!visits.never) stage(leaf, visits);
    }
    std::vector<Stage> apart = out_.stages;
    keep_in_place(kGatherBytes);
    if (bytes_used() > kFreeBytes) {  // rather through the memory beside the wafer than not at all
      out_.stages = std::move(apart);
      keep_in_place(0);
    }
    if (std::int64_t bytes = bytes_used(); bytes > kFreeBytes) {
      refuse("capacity",
             cat("every PE would need ", bytes, " bytes for its parts of the buffers; ", kFreeBytes,
                 " of its 49152 are free"),
             cat("use more PEs than ", out_.width, " x ", out_.height));
    }
    return std::move(out_);
  }

 private:
  static constexpr std::int64_t kFreeBytes = 44 * 1024;   // for arrays; code takes the rest
  static constexpr std::int64_t kGatherBytes = 8 * 1024;  // more than that is not gathered on PEs

  /// Bytes of every PE's arrays.
  std::int64_t bytes_used() const {
    std::int64_t bytes = 0;
    for (const Stage& s : out_.stages) {
      auto count = [&](const LocalArray& a) {
        if (!a.kept) bytes += a.size() * out_.buffers[a.buffer].dtype.bytes();
      };
      for (const LocalArray& a : s.inputs) count(a);
      count(s.output);
    }
    for (DType t : {dtypes::float32, dtypes::float16, dtypes::int32, dtypes::int16, dtypes::uint32,
                    dtypes::uint16})
      bytes += out_.gathered(t) * t.bytes();
    return bytes;
  }

  void add_buffer(const Buffer& b, bool param) {
    if (!(b->dtype.is_scalar() && (b->dtype == dtypes::float32 || b->dtype == dtypes::float16 ||
                                   b->dtype == dtypes::int32 || b->dtype == dtypes::int16 ||
                                   b->dtype == dtypes::uint32 || b->dtype == dtypes::uint16))) {
      refuse("dtype",
             cat("buffer ", b->name, " has elements of ", to_string(b->dtype),
                 "; a PE's arrays hold 16- and 32-bit numbers"),
             "use float32, float16, int32, int16, uint32 or uint16");
    }
    if (!b->strides.empty() ||
        (b->elem_offset && !arith::Analyzer().prove_equal(b->elem_offset, make_int(0))))
      refuse("strides", cat("buffer ", b->name,
                            " states strides or an offset; only compact buffers are accepted"));
    if (!b->spatial_axes.empty())
      refuse("layout",
             cat("buffer ", b->name, " is distributed over \"", b->spatial_axes[0],
                 "\" by a layout of its own"),
             "leave out spatial_axes; the target distributes buffers itself");
    StageBuffer s;
    s.name = b->name;
    s.buffer = b;
    s.dtype = b->dtype;
    s.param = param;
    for (const Expr& e : b->shape)
      s.shape.push_back(stages::constant_of(e, cat("an extent of ", b->name)));
    out_.buffers.push_back(std::move(s));
  }

  std::size_t buffer_index(const Buffer& b) const {
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
      if (out_.buffers[i].buffer.get() == b.get()) return i;
    }
    refuse("buffer",
           cat("buffer ", b->name, " is neither a parameter nor allocated by the function"));
  }

  /// Parts that loops over PEs ask for.
  void place(Stage& s, const std::vector<BoundPart>& parts) {
    bool chain = s.combine != Combine::none && !s.keeps;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      StageIter& i = s.iters[k];
      if (parts[k].spread == Spread::none) continue;
      if (i.reduce && (!chain || parts[k].spread == Spread::y)) {
        refuse("axis",
               cat("reduction iterator ", i.var->name, " of block ", s.name,
                   chain ? " goes over \"pe.y\"; sums end along rows first"
                         : " goes over PEs, but the block has no init or leaves elements out"),
               chain ? "bind it to pe.x, or to (y * width + x)"
                     : "give the block an init, or leave the iterator on one PE");
      }
      i.spread = parts[k].spread;
      i.chunk = std::min(parts[k].chunk, i.extent);
      if (i.reduce) s.reduced = i.spread;
    }
  }

  void place(Stage& s, bool after_chain) {
    std::vector<StageIter*> spatial, reduce;
    for (StageIter& i : s.iters) {
      if (i.extent > 1) (i.reduce ? reduce : spatial).push_back(&i);
    }
    auto spread = [&](StageIter& i, Spread how) {
      std::int64_t parts = how == Spread::x   ? out_.width
                           : how == Spread::y ? out_.height
                                              : static_cast<std::int64_t>(out_.width) * out_.height;
      i.spread = how;
      i.chunk = (i.extent + parts - 1) / parts;
    };
    auto largest = [](std::vector<StageIter*>& v) {
      return *std::max_element(v.begin(), v.end(),
                               [](auto* a, auto* b) { return a->extent < b->extent; });
    };
    bool chain = s.combine != Combine::none && !s.keeps;  // a reduction may end in a chain
    if (spatial.size() >= 2) {
      spread(*spatial[0], Spread::y);
      spread(*spatial[1], Spread::x);
    } else if (spatial.size() == 1 && chain && !reduce.empty() && out_.width > 1) {
      spread(*spatial[0], Spread::y);
      spread(*largest(reduce), Spread::x);
      s.reduced = Spread::x;
    } else if (spatial.size() == 1) {
      spread(*spatial[0], after_chain ? Spread::y : Spread::xy);
    } else if (chain && !reduce.empty()) {
      spread(*largest(reduce), Spread::xy);
      s.reduced = Spread::xy;
    }
  }

  using Origin = Movement::Origin;
  std::vector<Origin> origins(const Stage& s, const LocalArray& a) const {
    std::vector<Origin> out;
    for (std::size_t d = 0; d < a.extent.size(); ++d) {
      Origin o{a.base[d], 0, 0};
      for (std::size_t k = 0; k < s.iters.size(); ++k) {
        std::int64_t step = a.coef[d][k] * s.iters[k].chunk;
        if (s.iters[k].spread == Spread::x) o.cx += step;
        if (s.iters[k].spread == Spread::y) o.cy += step;
        if (s.iters[k].spread == Spread::xy) {
          o.cx += step;
          o.cy += step * out_.width;
        }
      }
      if (out_.width == 1) o.cx = 0;  // there is no other column
      if (out_.height == 1) o.cy = 0;
      out.push_back(o);
    }
    return out;
  }

  /// Whether the stage writes every element of its output's buffer, each box without holes.
  bool covers(const Stage& s) const {
    const auto& shape = out_.buffers[s.output.buffer].shape;
    std::vector<int> uses(s.iters.size(), 0);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t extent = 1;
      int here = 0;
      for (std::size_t k = 0; k < s.iters.size(); ++k) {
        if (s.output.coef[d][k] == 0 || s.iters[k].extent == 1) continue;
        if (s.output.coef[d][k] != 1 || ++uses[k] > 1 || ++here > 1) return false;
        extent = s.iters[k].extent;
      }
      if (s.output.base[d] != 0 || extent != shape[d]) return false;
    }
    return true;
  }

  /// PEs that hold the right values of what a stage has written: all, or those of column 0 or the
  /// first one only, where a chain ended.
  static Spread where(const Stage& s, Spread inputs) {
    if (s.reduced == Spread::xy || inputs == Spread::xy) return Spread::xy;
    if (s.reduced == Spread::x || inputs == Spread::x) return Spread::x;
    return Spread::none;
  }
  static bool uses(const Stage& s, Spread axis) {
    for (const StageIter& i : s.iters) {
      if (i.spread == axis || i.spread == Spread::xy) return true;
    }
    return false;
  }

  /// The way of `a` from the output of `from`, whose values `held` says where to find; none: the
  /// memory beside the wafer.
  Movement way(const Stage& from, Spread held, const Stage& s, const LocalArray& a,
               std::int64_t limit) const {
    Movement m;
    if (limit == 0) return m;
    m.from = from.output.name;
    m.box = from.output.extent;
    m.origin = origins(s, a);
    if (held != Spread::none && m.box == a.extent && origins(from, from.output) == m.origin) {
      m.kind = held == Spread::x ? Movement::Kind::row : Movement::Kind::all;
      return m;
    }
    bool by_x = false, by_y = false, by_xy = false;
    m.within_row = true;
    for (std::size_t d = 0; d < m.box.size(); ++d) {
      Movement::Part part;
      for (std::size_t k = 0; k < from.iters.size(); ++k) {
        if (from.output.coef[d][k] == 0 || from.iters[k].extent == 1) continue;
        part = {from.iters[k].chunk, from.iters[k].spread};
      }
      by_x |= part.spread == Spread::x;
      by_y |= part.spread == Spread::y;
      by_xy |= part.spread == Spread::xy;
      if (part.spread == Spread::y && out_.height > 1)
        m.within_row &= m.origin[d] == Origin{0, 0, part.chunk} && a.extent[d] <= part.chunk;
      m.parts.push_back(part);
    }
    m.within_row &= !by_xy && held != Spread::xy;
    if (by_x || by_xy) m.columns = out_.width;
    if ((by_y || by_xy) && !m.within_row) m.rows = out_.height;
    m.here = held == Spread::none && m.columns == 1 && m.rows == 1;
    if (m.gathered() * out_.buffers[a.buffer].dtype.bytes() <= limit)
      m.kind = Movement::Kind::gather;
    return m;
  }

  // Intermediates stay on the PEs where a reader's box is the writer's on every PE that matters, or
  // go there over the fabric; gathering takes at most `limit` bytes.
  void keep_in_place(std::int64_t limit) {
    std::vector<Spread> valid(out_.stages.size(), Spread::none);
    std::vector<std::ptrdiff_t> writer(out_.buffers.size(), -1);  // last stage that covers it
    for (Stage& s : out_.stages) s.collect = false;
    auto fetched = [&](std::size_t buffer) {  // its last writer must hand it out
      if (out_.buffers[buffer].view_of >= 0)
        buffer = static_cast<std::size_t>(out_.buffers[buffer].view_of);
      if (writer[buffer] >= 0) out_.stages[static_cast<std::size_t>(writer[buffer])].collect = true;
    };
    for (std::size_t j = 0; j < out_.stages.size(); ++j) {
      Stage& s = out_.stages[j];
      Spread inputs = Spread::none;
      auto alias = [&](LocalArray& a) {
        std::ptrdiff_t w = writer[a.buffer];
        if (w < 0) return false;
        const Stage& from = out_.stages[static_cast<std::size_t>(w)];
        Spread held = valid[static_cast<std::size_t>(w)];
        if (from.output.extent != a.extent || origins(from, from.output) != origins(s, a))
          return false;
        // Values that only column 0 (or PE 0) has serve a stage that works there only.
        if (held == Spread::x && uses(s, Spread::x)) return false;
        if (held == Spread::xy && (uses(s, Spread::x) || uses(s, Spread::y))) return false;
        a.name = from.output.name;
        a.kept = true;
        inputs = std::max(inputs, held);
        return true;
      };
      for (LocalArray& a : s.inputs) {
        if (alias(a)) continue;
        if (std::ptrdiff_t w = writer[a.buffer]; w >= 0) {
          a.move = way(out_.stages[static_cast<std::size_t>(w)], valid[static_cast<std::size_t>(w)],
                       s, a, limit);
        }
        if (!a.on_wafer()) fetched(a.buffer);
      }
      if (s.keeps && !alias(s.output)) fetched(s.output.buffer);
      valid[j] = where(s, inputs);
      std::size_t b = s.output.buffer;
      if (std::ptrdiff_t of = out_.buffers[b].view_of; of >= 0) {
        fetched(b);  // what the view does not reach
        s.collect = true;
        writer[static_cast<std::size_t>(of)] = -1;
      } else if (covers(s)) {
        writer[b] = static_cast<std::ptrdiff_t>(j);
      } else {
        fetched(b);  // what it does not write must be in the buffer
        s.collect = true;
        writer[b] = -1;
      }
    }
    for (std::size_t b = 0; b < out_.buffers.size(); ++b) {
      if (out_.buffers[b].param) fetched(b);
    }
  }

  /// Whether each index is a sum of iterators times constants.
  static bool linear(const Stage& s, const Exprs& indices) {
    std::vector<Var> vars;
    for (const StageIter& i : s.iters) vars.push_back(i.var);
    return std::all_of(indices.begin(), indices.end(), [&](const Expr& e) {
      auto l = arith::detect_linear(e, vars);
      return l && as<IntImmNode>(arith::simplify(l->base));
    });
  }

  /// A view of `b` through indices that are not linear: an element per point of the iterators in
  /// them, or of all spatial ones. Changes the indices to those iterators.
  Buffer view(const Stage& s, const Buffer& b, Exprs* indices, bool spatial) {
    std::vector<Var> used;
    StageBuffer v;
    for (const StageIter& i : s.iters) {
      bool here = spatial && !i.reduce;
      for (const Expr& e : *indices) {
        for_each_expr(e, [&](const Expr& x) { here |= x.get() == i.var.get(); });
      }
      if (!here) continue;
      used.push_back(i.var);
      v.shape.push_back(i.extent);
    }
    v.index = Json::array();
    for (std::size_t d = 0; d < indices->size(); ++d) {
      std::string why;
      Json index = index_to_json(arith::simplify((*indices)[d]), used, &why);
      if (index.is_null()) {
        refuse("index",
               cat("block ", s.name, " reaches ", b->name, " in dimension ", d,
                   " through an index that depends on ", why),
               "let each index depend on nothing but the block's iterators");
      }
      v.index.push_back(std::move(index));
    }
    v.view_of = static_cast<std::ptrdiff_t>(buffer_index(b));
    for (const Expr& e : *indices)
      v.name += cat(v.name.empty() ? cat(b->name, "[") : ", ", print(arith::simplify(e)));
    v.name += "]";
    v.dtype = b->dtype;
    v.param = false;
    Exprs shape, at;
    for (std::size_t k = 0; k < used.size(); ++k) {
      shape.push_back(make_int(v.shape[k]));
      at.push_back(used[k]);
    }
    Buffer seen = v.buffer = make_buffer(cat(b->name, "_seen"), b->dtype, shape);
    *indices = std::move(at);
    out_.buffers.push_back(std::move(v));
    return seen;
  }

  /// The expression with views in place of accesses that are not linear.
  Expr with_views(const Stage& s, const Expr& e) {
    struct Views final : Rewriter {
      Lowering& lowering;
      const Stage& s;
      Views(Lowering& l, const Stage& stage) : lowering(l), s(stage) {}
      Expr rewrite_load(const Expr& x) override {
        const auto* l = as<LoadNode>(x);
        if (linear(s, l->indices)) return x;
        Exprs indices = l->indices;
        Buffer seen = lowering.view(s, l->buffer, &indices, false);
        return load(seen, indices);
      }
    };
    return Views(*this, s).rewrite(e);
  }

  // The local array of an access, merged with an earlier one of the same slopes.
  void access(Stage& s, const Buffer& b, const Exprs& indices, const std::string& name,
              LocalArray* fixed) {
    std::vector<Var> vars;
    for (const StageIter& i : s.iters) vars.push_back(i.var);
    LocalArray a;
    a.buffer = buffer_index(b);
    const auto& shape = out_.buffers[a.buffer].shape;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      auto linear = arith::detect_linear(indices[d], vars);  // of views and others alike
      Expr simple = arith::simplify(linear->base);
      const auto* base = as<IntImmNode>(simple);
      a.coef.push_back(linear->coeffs);
      std::int64_t low = base->value, n = 1;
      for (std::size_t k = 0; k < vars.size(); ++k) {
        std::int64_t c = linear->coeffs[k];
        if (c < 0) low += c * (s.iters[k].chunk - 1);
        n += std::abs(c) * (s.iters[k].chunk - 1);
      }
      a.base.push_back(low);
      a.extent.push_back(n);
    }
    if (indices.empty()) (void)shape;
    if (fixed) {
      a.name = name;
      *fixed = std::move(a);
      return;
    }
    for (LocalArray& old : s.inputs) {
      if (old.buffer != a.buffer || old.coef != a.coef) continue;
      for (std::size_t d = 0; d < a.base.size(); ++d) {
        std::int64_t lo = std::min(old.base[d], a.base[d]),
                     hi = std::max(old.base[d] + old.extent[d], a.base[d] + a.extent[d]);
        old.base[d] = lo;
        old.extent[d] = hi - lo;
      }
      return;
    }
    a.name = cat(name, s.inputs.size());
    s.inputs.push_back(std::move(a));
  }

  /// Guards of the value and the init. Returns whether elements are left out.
  static bool conditions(Stage& s, const Exprs& all) {
    bool partial = false;
    auto add = [](Expr& to, const Expr& c) { to = to ? logical_and(to, c) : c; };
    VarMap first;  // where the init is stored: each reduction iterator at its minimum
    for (const StageIter& i : s.iters) {
      if (i.reduce) first[i.var.get()] = make_int(0, i.var->dtype);
    }
    arith::Analyzer points;
    for (const StageIter& i : s.iters)
      points.bind(i.var, {make_int(0, i.var->dtype), make_int(i.extent, i.var->dtype)});
    for (const Expr& c : all) {
      add(s.guard, c);
      const Expr at_first = points.simplify(substitute(c, first));
      const bool reduces = std::any_of(s.iters.begin(), s.iters.end(), [&](const StageIter& i) {
        return i.reduce && uses_var(c, i.var.get());
      });
      if (!reduces) add(s.init_guard, c);
      partial |= !reduces || !s.init;
      if (reduces && s.init && !points.prove(at_first))
        refuse("condition",
               cat("block ", s.name, " runs under the condition ", print(c),
                   ", which can skip the first step of its reduction, and with it the init"),
               "put the condition into the value: if_then_else(condition, value, 0)");
    }
    return partial;
  }

  /// Elements of its own output that a block reads must be the one it writes, or none it writes:
  /// PEs do not wait for each other's elements.
  static void check_own_reads(const Stage& s, const StoreNode& t) {
    arith::Analyzer points;
    for (const StageIter& i : s.iters)
      points.bind(i.var, {make_int(0, i.var->dtype), make_int(i.extent, i.var->dtype)});
    auto apart = [&](const LoadNode& l) {
      for (std::size_t d = 0; d < t.indices.size(); ++d) {
        arith::Bounds r = points.bounds(l.indices[d]), w = points.bounds(t.indices[d]);
        if (r.max < w.min || w.max < r.min) return true;
      }
      return false;
    };
    for (const Expr& e : {s.value, s.init, s.guard}) {
      if (!e) continue;
      for_each_expr(e, [&](const Expr& x) {
        const auto* l = as<LoadNode>(x);
        if (!l || l->buffer.get() != t.buffer.get() || stages::reads_element(t, x) || apart(*l))
          return;
        refuse("recurrence",
               cat("block ", s.name, " reads ", print(x), " and writes ", t.buffer->name,
                   " at other indices; elements that are computed side by side do not see each "
                   "other"),
               "store into another buffer");
      });
    }
    // Points that store into one element must not differ.
    for (const StageIter& i : s.iters) {
      if (i.reduce || i.extent == 1) continue;
      const VarNode* v = i.var.get();
      if (std::any_of(t.indices.begin(), t.indices.end(),
                      [&](const Expr& e) { return uses_var(e, v); }))
        continue;
      if (s.combine != Combine::none || uses_var(s.value, v) || (s.guard && uses_var(s.guard, v)))
        refuse("overwrite",
               cat("block ", s.name, " stores into the same elements of ", t.buffer->name,
                   " for every value of its spatial iterator ", i.var->name),
               "make it a reduction iterator");
    }
  }

  void stage(const stages::Leaf& leaf, const stages::Visits& visits) {
    const BlockNode* block = leaf.block.get();
    Stage s;
    s.name = block->name;
    std::string prefix = cat("s", out_.stages.size(), "_");
    s.label = cat(prefix, "out");
    for (const IterVar& i : block->iters) {
      StageIter it;
      it.var = i.var;
      it.name = cat("i", s.iters.size());
      it.min = stages::constant_of(i.dom.min, cat("the start of iterator ", i.var->name));
      it.extent = it.chunk =
          stages::constant_of(i.dom.extent, cat("the extent of iterator ", i.var->name));
      it.reduce = i.kind == IterKind::reduce;
      if (i.kind != IterKind::spatial && !it.reduce)
        refuse("iterator", cat("iterator ", i.var->name, " of block ", block->name,
                               " is neither spatial nor a reduction"));
      if (it.min != 0)
        refuse("iterator",
               cat("iterator ", i.var->name, " begins at ", it.min, "; it must begin at 0"));
      s.iters.push_back(std::move(it));
    }
    const stages::Update update = stages::read_update(leaf.block);
    const StoreNode* store = update.store;
    const Expr& body_condition = update.condition;  // says nothing of the init
    if (update.init) s.init = update.init->value;
    s.combine = update.combine;
    s.value = update.value;
    if (update.reduces && s.combine == Combine::none) {
      refuse("reduction",
             cat("block ", block->name, " reduces, but its store is not ", store->buffer->name,
                 "[...] = ", store->buffer->name, "[...] op value"),
             "op may be +, *, min or max");
    }
    bool partial = conditions(s, visits.conditions);
    if (body_condition) {
      partial |= !s.init;
      s.guard = s.guard ? logical_and(s.guard, body_condition) : body_condition;
    }
    bool reads_own = false;
    for_each_expr(s.value, [&](const Expr& x) { reads_own |= stages::reads_element(*store, x); });
    if (s.init && s.combine == Combine::none && (reads_own || body_condition)) {
      refuse("init",
             cat("block ", block->name,
                 " has an init and then stores what is no "
                 "combination of the element with a value"),
             "make the init a block of its own");
    }
    s.keeps = partial || (s.combine != Combine::none && !s.init);
    check_own_reads(s, *store);
    // What a chain has left in the first column is worked on there.
    bool after_chain = false;
    auto follows = [&](const Expr& e) {
      for_each_expr(e, [&](const Expr& x) {
        const auto* l = as<LoadNode>(x);
        if (!l) return;
        for (const Stage& before : out_.stages) {
          after_chain |= out_.buffers[before.output.buffer].buffer.get() == l->buffer.get() &&
                         (before.reduced == Spread::x || before.after_chain);
        }
      });
    };
    follows(s.value);
    if (s.guard) follows(s.guard);
    s.after_chain = after_chain;
    const std::vector<BoundPart> parts = parts_of(leaf, visits, out_.width);
    if (parts.empty()) place(s, after_chain);
    else place(s, parts);
    Buffer target = store->buffer;
    Exprs places = store->indices;
    if (!linear(s, places)) target = view(s, target, &places, true);
    access(s, target, places, cat(prefix, "out"), &s.output);
    for (std::size_t d = 0; d < places.size(); ++d) {
      for (std::size_t k = 0; k < s.iters.size(); ++k) {
        if (s.iters[k].reduce && s.output.coef[d][k])
          refuse("reduction", cat("block ", block->name,
                                  " writes to a place that depends on its reduction iterator ",
                                  s.iters[k].var->name));
      }
    }
    auto reads = [&](const Expr& e) {
      for_each_expr(e, [&](const Expr& x) {
        if (const auto* l = as<LoadNode>(x))
          access(s, l->buffer, l->indices, cat(prefix, "in"), nullptr);
      });
    };
    for (Expr* e : {&s.value, &s.init, &s.guard, &s.init_guard}) {
      if (!*e) continue;
      *e = with_views(s, *e);
      reads(*e);
    }
    out_.stages.push_back(std::move(s));
  }

  const PrimFunc& f_;
  StageProgram out_;
};

}  // namespace

std::int64_t StageProgram::gathered(DType dtype) const {
  std::int64_t n = 0;
  for (const Stage& s : stages) {
    for (const LocalArray& a : s.inputs) {
      if (a.move.kind == Movement::Kind::gather && !a.move.here && buffers[a.buffer].dtype == dtype)
        n = std::max(n, a.move.gathered());
    }
  }
  return n;
}

StageProgram lower_stages(const PrimFunc& f, std::int32_t width, std::int32_t height) {
  return Lowering(f, width, height).run();
}

const LocalArray* find_local(const StageProgram& program, const Stage& stage, const LoadNode& load,
                             std::vector<std::int64_t>* offset) {
  std::vector<Var> vars;
  for (const StageIter& i : stage.iters) vars.push_back(i.var);
  for (const LocalArray& a : stage.inputs) {
    if (program.buffers[a.buffer].buffer.get() != load.buffer.get()) continue;
    bool same = true;
    std::vector<std::int64_t> at;
    for (std::size_t d = 0; d < load.indices.size() && same; ++d) {
      auto linear = arith::detect_linear(load.indices[d], vars);
      same = linear && linear->coeffs == a.coef[d];
      if (!same) break;
      Expr simple = arith::simplify(linear->base);
      at.push_back(as<IntImmNode>(simple)->value - a.base[d]);
    }
    if (same) {
      *offset = std::move(at);
      return &a;
    }
  }
  return nullptr;
}

Json describe(const StageProgram& p) {
  Json out = Json::object();
  out["name"] = p.name;
  out["width"] = p.width;
  out["height"] = p.height;
  Json buffers = Json::array();
  for (const StageBuffer& b : p.buffers) {
    Json row = Json::object();
    row["dtype"] = to_string(b.dtype);
    row["param"] = b.param;
    if (b.view_of >= 0) {
      row["view_of"] = static_cast<std::int64_t>(b.view_of);
      row["index"] = b.index;
    }
    Json shape = Json::array();
    for (std::int64_t e : b.shape) shape.push_back(e);
    row["shape"] = shape;
    buffers.push_back(row);
  }
  out["buffers"] = buffers;
  auto numbers = [](const std::vector<std::int64_t>& v) {
    Json list = Json::array();
    for (std::int64_t n : v) list.push_back(n);
    return list;
  };
  auto array = [&](const LocalArray& a) {
    Json row = Json::object();
    row["name"] = a.name;
    row["buffer"] = static_cast<std::int64_t>(a.buffer);
    Json coef = Json::array();
    for (const auto& c : a.coef) coef.push_back(numbers(c));
    row["coef"] = coef;
    row["kept"] = a.on_wafer();
    row["base"] = numbers(a.base);
    row["extent"] = numbers(a.extent);
    return row;
  };
  Json stages = Json::array();
  for (const Stage& s : p.stages) {
    Json row = Json::object();
    row["name"] = s.name;
    row["keeps"] = s.keeps;
    row["collect"] = s.collect;
    row["reduced"] = static_cast<int>(s.reduced);
    Json iters = Json::array();
    for (const StageIter& i : s.iters) {
      Json it = Json::object();
      it["extent"] = i.extent;
      it["chunk"] = i.chunk;
      it["reduce"] = i.reduce;
      it["spread"] = static_cast<int>(i.spread);
      iters.push_back(it);
    }
    row["iters"] = iters;
    Json inputs = Json::array();
    for (const LocalArray& a : s.inputs) inputs.push_back(array(a));
    row["inputs"] = inputs;
    row["output"] = array(s.output);
    stages.push_back(row);
  }
  out["stages"] = stages;
  return out;
}

}  // namespace weft::wse
