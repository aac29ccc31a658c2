// SPDX-License-Identifier: Apache-2.0
// Copies between global memory and the chip as rectangles of whole elements, with padding.
#include <algorithm>

#include "weft/ir/text.h"
#include "weft/targets/vta/lowering.h"

namespace weft::vta {

using namespace ir;

std::vector<Lowering::Dim> Lowering::elements(const Nest& nest, const Affine& a,
                                              const Affine& other, std::int64_t lanes,
                                              const StmtNode* where) const {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].extent > 1)
      dims.push_back({nest.loops[i].extent, a.coeff[i], other.coeff[i], static_cast<int>(i)});
  }
  std::sort(dims.begin(), dims.end(),
            [](const Dim& x, const Dim& y) { return x.on_chip < y.on_chip; });
  std::int64_t covered = 1;
  std::vector<Dim> out;
  for (Dim d : dims) {
    if (covered < lanes && d.on_chip == covered) {
      if (d.other != covered)
        no_unit("rectangle", "inside an element the two sides are laid out differently", where,
                cat("an element is ", lanes, " neighbouring scalars on both sides"));
      if (d.extent * covered <= lanes) {
        if (lanes % (d.extent * covered))
          no_unit(
              "rectangle",
              cat("runs of ", d.extent * covered, " scalars do not make up elements of ", lanes),
              where);
        covered *= d.extent;
        continue;
      }
      if (d.extent % (lanes / covered))
        no_unit("rectangle",
                cat("runs of ", d.extent * covered, " scalars do not make up elements of ", lanes),
                where);
      d = {d.extent / (lanes / covered), lanes, lanes, -1};
      covered = lanes;
    }
    if (d.on_chip % lanes || d.other % lanes)
      no_unit("rectangle",
              cat("a loop steps by ", d.on_chip, " and ", d.other,
                  " scalars, no whole elements of ", lanes),
              where);
    out.push_back({d.extent, d.on_chip / lanes, d.other / lanes, d.loop});
  }
  if (covered != lanes)
    no_unit("rectangle",
            cat("the nest moves ", covered, " neighbouring scalars, an element has ", lanes),
            where);
  if (a.base % lanes || other.base % lanes)
    no_unit("rectangle", cat("it begins at scalar ", other.base, ", inside an element of ", lanes),
            where);
  return out;
}

bool Lowering::pad(const Nest& nest, const Expr& condition, std::vector<Dim>& dims) const {
  const StmtNode* s = nest.update;
  const auto* c = as<BinaryNode>(condition);
  if (c && c->kind == ExprKind::and_) {
    const bool some = pad(nest, c->a, dims);
    return pad(nest, c->b, dims) && some;
  }
  if (const auto* call = as<CallNode>(condition);
      call && (call->op == "likely" || call->op == "bitwise_and")) {
    bool some = true;
    for (const Expr& part : call->args) some = pad(nest, part, dims) && some;
    return some;
  }
  const auto refused = [&](const char* why) -> bool {
    no_unit("pad", cat("the condition ", print(condition), " of a padded copy ", why), s,
            "padding: comparisons of one loop of the copy with constants, joined by and");
  };
  std::optional<Affine> x, y;
  if (c && is_compare(c->kind))
    x = affine(c->a, nest.loops, env_), y = affine(c->b, nest.loops, env_);
  if (!x || !y) {
    std::optional<Affine> known = affine(condition, nest.loops, env_);
    if (known && known->constant()) return known->base != 0;
    refused("is not understood");
  }
  // As f >= 0.
  std::int64_t sign = 1, base = x->base - y->base;
  switch (c->kind) {
    case ExprKind::ge: break;
    case ExprKind::gt: base -= 1; break;
    case ExprKind::le: sign = -1; break;
    case ExprKind::lt: sign = -1, base += 1; break;
    default: refused("is an equality");
  }
  base *= sign;
  int loop = -1;
  std::int64_t step = 0;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    std::int64_t k = sign * (x->coeff[i] - y->coeff[i]);
    if (k == 0 || nest.loops[i].extent == 1) continue;
    if (loop >= 0) refused("mixes loops");
    loop = static_cast<int>(i), step = k;
  }
  if (loop < 0) return base >= 0;
  for (Dim& d : dims) {
    if (d.loop != loop) continue;
    if (step > 0) {  // i >= -base / step
      d.before = std::max(d.before, base >= 0 ? 0 : (-base + step - 1) / step);
    } else {  // i <= base / -step
      d.after = std::max(d.after,
                         base < 0 ? d.extent : d.extent - 1 - std::min(base / -step, d.extent - 1));
    }
    return d.before + d.after < d.extent;
  }
  return refused("divides an element");
}

void Lowering::zeros(const std::vector<Dim>& dims, const Placed& chip, std::int64_t at, MemType mem,
                     int param) {
  std::int64_t width = 1;
  std::size_t used = 0;
  for (; used < dims.size() && dims[used].on_chip == width; ++used) width *= dims[used].extent;
  Rect rect{0, width, width, 1};
  std::vector<Dim> rest(dims.begin() + static_cast<std::ptrdiff_t>(used), dims.end());
  for (Dim& d : rest) d.other = 0;
  transfers(rest, 0, chip.at + at, 0, rect, mem, param, true);
}

void Lowering::dma(const Nest& nest, const LoadNode* from, const Placed& chip, bool load,
                   const std::vector<Expr>& conditions) {
  const StoreNode* s = nest.update;
  if (nest.init) no_unit("copy", "a copy has no initial value", s);
  Affine dst = index(s->indices, nest, s), src = index(from->indices, nest, s);
  const BufferNode* global = load ? from->buffer.get() : s->buffer.get();
  const Affine& on_chip = load ? dst : src;
  const Affine& in_dram = load ? src : dst;
  MemType mem = chip.mem;
  if (load) {
    bool narrow = mem == MemType::acc && global->dtype == dtypes::int8;
    DType want = mem == MemType::acc && !narrow ? dtypes::int32 : dtypes::int8;
    if (!(global->dtype == want))
      no_unit("dtype",
              cat("\"", global->name, "\" is ", to_string(global->dtype), ", ", to_string(mem),
                  " takes ", to_string(want)),
              s);
    if (narrow) mem = MemType::acc8;
  } else {
    if (mem != MemType::acc)
      no_unit("store", cat("STORE reads vta.acc, not vta.", to_string(mem)), s);
    if (!global->dtype.is_integral() || global->dtype.bits != 8) {
      no_unit("dtype",
              cat("\"", global->name, "\" is ", to_string(global->dtype), "; STORE writes int8"), s,
              "cast to int8 (the low 8 bits are kept), after shifting and clipping");
    }
  }
  std::int64_t lanes = lanes_of(chip.mem);
  std::vector<Dim> dims = elements(nest, on_chip, in_dram, lanes, s);
  for (const Dim& d : dims) {
    if (d.on_chip < 0 || d.other < 0) no_unit("rectangle", "it runs backwards", s);
  }
  bool some = true;
  for (const Expr& c : conditions) some = pad(nest, c, dims) && some;
  if (!some) return zeros(dims, chip, on_chip.base / lanes, mem, params_.at(global));
  // x: neighbours on both sides. y: rows that follow one another on chip. The rest is one
  // transfer each. A padded loop ends its direction.
  Rect rect{1, 1, 0};
  std::int64_t skip = 0, width = 1, height = 1;  // width, height: with padding
  std::size_t used = 0;
  bool padded = false;
  // With one element left between the padding, its step in memory does not matter.
  auto single = [](const Dim& d) { return d.extent - d.before - d.after == 1; };
  while (!padded && used < dims.size() && dims[used].on_chip == width &&
         (dims[used].other == width || single(dims[used]))) {
    if (width > 1 && (dims[used].before || dims[used].after)) break;  // padded by whole rows
    const Dim& d = dims[used++];
    padded = d.before || d.after;
    rect.pad_left = d.before * width, rect.pad_right = d.after * width;
    skip += d.before * d.other;
    rect.x = (d.extent - d.before - d.after) * width;
    width *= d.extent;
  }
  rect.stride = rect.x;
  padded = false;
  while (!padded && used < dims.size() && dims[used].on_chip == width * height &&
         (dims[used].other > 0 || single(dims[used])) &&
         (height == 1 || dims[used].other == rect.stride * height)) {
    const Dim& d = dims[used++];
    if (height == 1) rect.stride = single(d) ? rect.x : d.other;
    padded = d.before || d.after;
    rect.pad_top = d.before * height, rect.pad_bottom = d.after * height;
    skip += d.before * d.other;
    rect.y = (d.extent - d.before - d.after) * height;
    height *= d.extent;
  }
  for (std::int64_t p : {rect.pad_left, rect.pad_right, rect.pad_top, rect.pad_bottom}) {
    if (p > 15)
      no_unit("pad", cat("a copy is padded by ", p, " elements"), s,
              "LOAD pads up to 15 elements on each side of rows and columns");
  }
  for (std::size_t i = used; i < dims.size(); ++i) {
    if (dims[i].before || dims[i].after)
      no_unit("pad", "a copy is padded in its third dimension", s,
              "LOAD pads rows and columns only");
  }
  transfers(dims, used, chip.at + on_chip.base / lanes, in_dram.base / lanes + skip, rect, mem,
            params_.at(global), load);
}

void Lowering::transfers(const std::vector<Dim>& dims, std::size_t i, std::int64_t chip,
                         std::int64_t dram, const Rect& rect, MemType mem, int param, bool load) {
  if (i < dims.size()) {
    for (std::int64_t k = 0; k < dims[i].extent; ++k)
      transfers(dims, i + 1, chip + k * dims[i].on_chip, dram + k * dims[i].other, rect, mem, param,
                load);
    return;
  }
  if (load) {
    emit([=, this] { b_.load(mem, chip, param, dram, rect); });
  } else {
    emit([=, this] { b_.store(chip, param, dram, rect); });
  }
}

}  // namespace weft::vta
