// SPDX-License-Identifier: Apache-2.0
// Which PE has what part of a stage, and how values come from one stage to the next.
#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/ir/visit.h"
#include "weft/targets/wse/lowering.h"

namespace weft::wse {

using namespace ir;

void Lowering::place(Stage& s, const std::vector<BoundPart>& parts) {
  bool chain = s.combine != Combine::none && !s.keeps;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    StageIter& i = s.iters[k];
    if (parts[k].partition == Partition::none) continue;
    if (i.reduce && (!chain || parts[k].partition == Partition::y)) {
      refuse("axis",
             cat("reduction iterator ", i.var->name, " of block ", s.name,
                 chain ? " goes over \"pe.y\"; sums end along rows first"
                       : " goes over PEs, but the block has no init or leaves elements out"),
             chain ? "bind it to pe.x, or to (y * width + x)"
                   : "give the block an init, or leave the iterator on one PE");
    }
    i.partition = parts[k].partition;
    i.chunk = std::min(parts[k].chunk, i.extent);
    if (i.reduce) s.reduced = i.partition;
  }
}

void Lowering::place(Stage& s, bool after_chain) {
  std::vector<StageIter*> spatial, reduce;
  for (StageIter& i : s.iters) {
    if (i.extent > 1) (i.reduce ? reduce : spatial).push_back(&i);
  }
  auto spread = [&](StageIter& i, Partition how) {
    std::int64_t parts = how == Partition::x ? out_.width
                         : how == Partition::y
                             ? out_.height
                             : static_cast<std::int64_t>(out_.width) * out_.height;
    i.partition = how;
    i.chunk = (i.extent + parts - 1) / parts;
  };
  auto largest = [](std::vector<StageIter*>& v) {
    return *std::max_element(v.begin(), v.end(),
                             [](auto* a, auto* b) { return a->extent < b->extent; });
  };
  bool chain = s.combine != Combine::none && !s.keeps;  // a reduction may end in a chain
  if (spatial.size() >= 2 && chain && reduce_in_place(s)) {
    spread(*spatial[0], Partition::y);
  } else if (spatial.size() >= 2) {
    spread(*spatial[0], Partition::y);
    spread(*spatial[1], Partition::x);
  } else if (spatial.size() == 1 && chain && !reduce.empty() && out_.width > 1) {
    spread(*spatial[0], Partition::y);
    spread(*largest(reduce), Partition::x);
    s.reduced = Partition::x;
  } else if (spatial.size() == 1) {
    spread(*spatial[0], after_chain ? Partition::y : Partition::xy);
  } else if (chain && !reduce.empty()) {
    spread(*largest(reduce), Partition::xy);
    s.reduced = Partition::xy;
  }
  follow_writer(s);
}

/// A reduction of an intermediate whose columns of PEs hold different steps of it: each PE reduces
/// what it has, and a chain along the row ends it.
bool Lowering::reduce_in_place(Stage& s) {
  StageIter* found = nullptr;
  std::int64_t chunk = 0;
  bool fits = out_.width > 1;
  for_each_expr(s.value, [&](const Expr& x) {
    const auto* l = as<LoadNode>(x);
    if (!l) return;
    const Stage* from = nullptr;
    for (const Stage& before : out_.stages) {
      if (out_.buffers[before.output.buffer].buffer.get() == l->buffer.get()) from = &before;
    }
    if (!from) return;
    for (std::size_t d = 0; d < l->indices.size(); ++d) {
      for (std::size_t w = 0; w < from->iters.size(); ++w) {
        const StageIter& other = from->iters[w];
        if (from->output.coef[d][w] != 1 || other.partition != Partition::x || other.extent == 1)
          continue;
        for (StageIter& i : s.iters) {
          if (i.var.get() != l->indices[d].get()) continue;
          fits &= i.reduce && (!found || found == &i);
          found = &i;
          chunk = other.chunk;
        }
      }
    }
  });
  // Worth a chain where that divides the work further than the second iterator would.
  std::vector<std::int64_t> points;
  for (const StageIter& i : s.iters) {
    if (!i.reduce && i.extent > 1) points.push_back(i.extent);
  }
  if (!found || !fits || (points.size() > 1 && points[1] >= found->extent)) return false;
  // A sum over more steps than the intermediate has, of a padded one, does not end in its parts.
  if (chunk * out_.width < found->extent) return false;
  found->partition = s.reduced = Partition::x;
  found->chunk = std::min(chunk, found->extent);
  return true;
}

/// Parts of the size that an earlier stage's output has, where they serve: then values stay where
/// they are, or only their borders travel.
void Lowering::follow_writer(Stage& s) {
  for_each_expr(s.value, [&](const Expr& x) {
    const auto* l = as<LoadNode>(x);
    if (!l) return;
    const Stage* from = nullptr;
    for (const Stage& before : out_.stages) {
      if (out_.buffers[before.output.buffer].buffer.get() == l->buffer.get()) from = &before;
    }
    if (!from) return;
    std::vector<Var> vars;
    for (const StageIter& i : s.iters) vars.push_back(i.var);
    for (std::size_t d = 0; d < l->indices.size(); ++d) {
      const auto linear = arith::detect_linear(l->indices[d], vars);
      if (!linear) continue;
      for (std::size_t k = 0; k < s.iters.size(); ++k) {
        StageIter& i = s.iters[k];
        if (linear->coeffs[k] != 1 || i.reduce) continue;
        for (std::size_t w = 0; w < from->iters.size(); ++w) {
          const StageIter& other = from->iters[w];
          if (from->output.coef[d][w] == 1 && other.partition == i.partition && !other.reduce)
            i.chunk = std::min(std::max(i.chunk, other.chunk), i.extent);
        }
      }
    }
  });
}

std::vector<Redistribution::Origin> Lowering::origins(const Stage& s, const LocalArray& a) const {
  std::vector<Origin> out;
  for (std::size_t d = 0; d < a.extent.size(); ++d) {
    Origin o{a.base[d], 0, 0};
    for (std::size_t k = 0; k < s.iters.size(); ++k) {
      std::int64_t step = a.coef[d][k] * s.iters[k].chunk;
      if (s.iters[k].partition == Partition::x) o.cx += step;
      if (s.iters[k].partition == Partition::y) o.cy += step;
      if (s.iters[k].partition == Partition::xy) {
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

bool Lowering::covers(const Stage& s) const {
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

Partition Lowering::where(const Stage& s, Partition inputs) {
  if (s.reduced == Partition::xy || inputs == Partition::xy) return Partition::xy;
  if (s.reduced == Partition::x || inputs == Partition::x) return Partition::x;
  return Partition::none;
}
bool Lowering::uses(const Stage& s, Partition axis) {
  for (const StageIter& i : s.iters) {
    if (i.partition == axis || i.partition == Partition::xy) return true;
  }
  return false;
}

/// A box that lacks elements of the writer's on one side and goes beyond it on the other gets them
/// all: what travels then begins at the writer's edges.
void Lowering::widen(const Stage& from, const Stage& s, LocalArray& a) const {
  const std::vector<Origin> writer = origins(from, from.output), reader = origins(s, a);
  for (std::size_t d = 0; d < writer.size(); ++d) {
    if (writer[d].cx != reader[d].cx || writer[d].cy != reader[d].cy) continue;
    const std::int64_t before = writer[d].base - reader[d].base,
                       after =
                           reader[d].base + a.extent[d] - writer[d].base - from.output.extent[d];
    if (before < 0 && after > 0) {
      a.base[d] += before;
      a.extent[d] -= before;
    } else if (after < 0 && before > 0) {
      a.extent[d] -= after;
    }
  }
}

/// Whether the reader's box is the writer's with borders that neighbours have.
bool Lowering::halo(const Stage& from, const LocalArray& a, Redistribution* m) const {
  const std::vector<Origin> at = origins(from, from.output);
  std::size_t wide = 0;
  for (std::size_t d = 0; d < m->box.size(); ++d) {
    const Origin &w = at[d], &r = m->origin[d];
    const Partition partition = m->parts[d].partition;
    if (w.cx != r.cx || w.cy != r.cy || partition == Partition::xy) return false;
    const std::int64_t before = w.base - r.base, after = r.base + a.extent[d] - w.base - m->box[d];
    const bool divided = (partition == Partition::x && out_.width > 1) ||
                         (partition == Partition::y && out_.height > 1);
    const bool whole = w.base == 0 && m->box[d] >= out_.buffers[a.buffer].shape[d];
    if ((before > 0 || after > 0) && !(whole && !divided)) {  // beyond the buffer nothing is used
      if (!divided || before < 0 || after < 0 || std::max(before, after) > m->box[d]) return false;
    }
    m->before.push_back(before);
    m->after.push_back(after);
    wide += a.extent[d] > 1;
  }
  return wide <= 4;  // dimensions of a descriptor
}

Redistribution Lowering::plan_redistribution(const Stage& from, Partition held, const Stage& s,
                                             const LocalArray& a, std::int64_t limit,
                                             bool borders) const {
  Redistribution m;
  if (limit == 0) return m;
  m.from = from.output.name;
  m.box = from.output.extent;
  m.origin = origins(s, a);
  if (held != Partition::none && m.box == a.extent && origins(from, from.output) == m.origin) {
    m.kind = held == Partition::x ? Redistribution::Kind::row : Redistribution::Kind::all;
    return m;
  }
  bool by_x = false, by_y = false, by_xy = false;
  m.within_row = true;
  for (std::size_t d = 0; d < m.box.size(); ++d) {
    Redistribution::Part part;
    for (std::size_t k = 0; k < from.iters.size(); ++k) {
      if (from.output.coef[d][k] == 0 || from.iters[k].extent == 1) continue;
      part = {from.iters[k].chunk, from.iters[k].partition};
    }
    by_x |= part.partition == Partition::x;
    by_y |= part.partition == Partition::y;
    by_xy |= part.partition == Partition::xy;
    if (part.partition == Partition::y && out_.height > 1)
      m.within_row &= m.origin[d] == Origin{0, 0, part.chunk} && a.extent[d] <= part.chunk;
    m.parts.push_back(part);
  }
  if (borders && held == Partition::none && halo(from, a, &m)) {
    m.kind = Redistribution::Kind::halo;
    return m;
  }
  m.within_row &= !by_xy && held != Partition::xy;
  if (by_x || by_xy) m.columns = out_.width;
  if ((by_y || by_xy) && !m.within_row) m.rows = out_.height;
  m.here = held == Partition::none && m.columns == 1 && m.rows == 1;
  if (m.gathered() * out_.buffers[a.buffer].dtype.bytes() <= limit)
    m.kind = Redistribution::Kind::gather;
  return m;
}

void Lowering::keep_in_place(std::int64_t limit) {
  if (out_.has_panels()) limit = 0;  // their colors take the queues
  std::vector<Partition> valid(out_.stages.size(), Partition::none);
  std::vector<std::ptrdiff_t> writer(out_.buffers.size(), -1);  // last stage that covers it
  for (Stage& s : out_.stages) s.collect = false;
  auto fetched = [&](std::size_t buffer) {  // its last writer must hand it out
    if (out_.buffers[buffer].view_of >= 0)
      buffer = static_cast<std::size_t>(out_.buffers[buffer].view_of);
    if (writer[buffer] >= 0) out_.stages[static_cast<std::size_t>(writer[buffer])].collect = true;
  };
  for (std::size_t j = 0; j < out_.stages.size(); ++j) {
    Stage& s = out_.stages[j];
    Partition inputs = Partition::none;
    auto alias = [&](LocalArray& a) {
      std::ptrdiff_t w = writer[a.buffer];
      if (w < 0) return false;
      const Stage& from = out_.stages[static_cast<std::size_t>(w)];
      Partition held = valid[static_cast<std::size_t>(w)];
      if (from.output.extent != a.extent || origins(from, from.output) != origins(s, a))
        return false;
      // Values that only column 0 (or PE 0) has serve a stage that works there only.
      if (held == Partition::x && uses(s, Partition::x)) return false;
      if (held == Partition::xy && (uses(s, Partition::x) || uses(s, Partition::y))) return false;
      a.name = from.output.name;
      a.kept = true;
      inputs = std::max(inputs, held);
      return true;
    };
    for (LocalArray& a : s.inputs) alias(a);
    auto choose = [&](bool borders) {
      for (LocalArray& a : s.inputs) {
        const std::ptrdiff_t w = writer[a.buffer];
        if (a.kept || w < 0) continue;
        if (limit && borders) widen(out_.stages[static_cast<std::size_t>(w)], s, a);
        a.move = plan_redistribution(out_.stages[static_cast<std::size_t>(w)],
                                     valid[static_cast<std::size_t>(w)], s, a, limit, borders);
      }
    };
    // Borders are sent while the stage goes on: nothing else may use their colors meanwhile.
    choose(s.reduced == Partition::none);
    auto travels = [&](Redistribution::Kind kind) {
      return std::any_of(s.inputs.begin(), s.inputs.end(),
                         [&](const LocalArray& a) { return a.move.kind == kind; });
    };
    if (travels(Redistribution::Kind::halo) && travels(Redistribution::Kind::gather)) choose(false);
    for (LocalArray& a : s.inputs) {
      if (!a.on_wafer()) fetched(a.buffer);
    }
    if (s.keeps && !alias(s.output)) fetched(s.output.buffer);
    valid[j] = where(s, inputs);
    s.held = valid[j];
    s.whole = covers(s);
    std::size_t b = s.output.buffer;
    if (std::ptrdiff_t of = out_.buffers[b].view_of; of >= 0) {
      fetched(b);  // what the view does not reach
      s.collect = true;
      writer[static_cast<std::size_t>(of)] = -1;
    } else if (s.whole) {
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

// Results and inputs of one type, shape and division, each the whole of a parameter.
void Lowering::find_takes() {
  constexpr std::size_t kMost = 8;  // each is a function on every PE
  auto parameter = [&](std::size_t b) {
    return out_.buffers[b].param && out_.buffers[b].view_of < 0;
  };
  for (const Stage& from : out_.stages) {
    const StageBuffer& result = out_.buffers[from.output.buffer];
    if (!from.collect || !from.whole || from.held != Partition::none ||
        !parameter(from.output.buffer))
      continue;
    for (const Stage& s : out_.stages) {
      if (s.panels) continue;  // their operands are divided along the reduction
      for (const LocalArray& a : s.inputs) {
        const StageBuffer& input = out_.buffers[a.buffer];
        if (a.on_wafer() || a.name == from.output.name || !parameter(a.buffer) ||
            input.dtype != result.dtype || input.shape != result.shape ||
            a.extent != from.output.extent || a.strides() != from.output.strides() ||
            origins(s, a) != origins(from, from.output) || out_.takes.size() == kMost)
          continue;
        out_.takes.push_back({from.output.name, a.name, a.size(), result.dtype});
      }
    }
  }
}

}  // namespace weft::wse
