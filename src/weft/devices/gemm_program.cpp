// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/gemm_program.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/devices/pieces.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/target/host_plan.h"
#include "weft/target/rules.h"

namespace weft::device {

using ir::Buffer;
using ir::Expr;
using ir::Exprs;
using ir::Stmt;
using ir::Var;

namespace {

constexpr std::int64_t kOutUnit = 8;  // of a result that is copied in bulk

class Writer {
 public:
  explicit Writer(const GemmProgram& spec) : s_(spec) {}

  ir::PrimFunc write() {
    m_ = scalar("m"), k_ = scalar("k_");
    const Var n_units = ir::make_var("n_units");
    n_ = Expr(n_units) * ir::make_int(s_.unit);
    scalars_.insert(scalars_.begin() + 1, {n_units, nullptr});
    const Expr parts = scalar("parts"), steps = scalar("part_steps");
    const bool split = s_.decisions.parts > 1;
    if (split) loop("p", parts);
    for (int i = 0; i < s_.batch_axes; ++i) batch_.push_back(scalar(cat("batch", i)));
    for (int i = 0; i < s_.batch_axes; ++i) loop(cat("b", i), batch_[static_cast<std::size_t>(i)]);
    loop("i", m_), loop("j", n_);
    const Expr terms = split ? steps * ir::make_int(s_.step()) : k_;
    const Buffer a =
        operand("a", s_.type, s_.moves_a, s_.a_along_m ? k_ : m_, s_.a_along_m ? m_ : k_);
    const Buffer b =
        operand("b", s_.type_b, s_.moves_b, s_.b_along_n ? k_ : n_, s_.b_along_n ? n_ : k_);
    Exprs shape;
    for (const ir::IterVar& v : iters_) shape.push_back(v.dom.extent);
    const Buffer sums = ir::make_buffer(s_.partial ? "out" : "sums", dtypes::float32, shape);
    const Buffer out = s_.partial ? sums : ir::make_buffer("out", s_.result, shape);
    std::vector<Buffer> all{a, b, out};
    auto factor = [&](const char* name, bool present, const Expr& extent,
                      DType type = dtypes::float32) -> Buffer {
      if (!present) return nullptr;
      all.push_back(ir::make_buffer(name, type, {extent}));
      return all.back();
    };
    const Expr one = ir::make_int(1);
    using Scale = GemmProgram::Scale;
    scale_a_ = factor("scale_a", s_.scale_a != Scale::none, s_.scale_a == Scale::each ? m_ : one);
    scale_b_ = factor("scale_b", s_.scale_b != Scale::none, s_.scale_b == Scale::each ? n_ : one);
    bias_ = factor("bias", s_.bias, n_, s_.bias_type);
    for (const Buffer& x : all) {
      auto placed = ir::edit(x);
      const bool wide = x == a || x == b || (x == out && s_.unit == kOutUnit);
      placed->align = wide ? 16 : x->dtype.total_bytes();
      if (x == out && s_.pitched)
        placed->strides = {Expr(scalar("out_step")) * ir::make_int(s_.unit), ir::make_int(1)};
      buffers_.push_back(ir::buffer_param(placed));
      placed_[x.get()] = placed;
    }
    Stmt body = product(a, b, sums, terms, split);
    if (!s_.partial) body = ir::seq({body, rounded(sums, out)});
    body = ir::replace_buffers(body, placed_);
    std::vector<ir::Param> params = buffers_;
    params.insert(params.end(), scalars_.begin(), scalars_.end());
    return ir::make_func(
        "main", std::move(params),
        ir::root_block(body, s_.partial ? std::vector<Buffer>{} : std::vector<Buffer>{sums}),
        ir::with_annotation(ir::with_annotation({}, "tir.noalias", true), kDeclaredLayout, true));
  }

 private:
  Var scalar(const std::string& name) {
    const Var v = ir::make_var(name);
    scalars_.push_back({v, nullptr});
    return v;
  }
  void loop(const std::string& name, const Expr& extent) {
    iters_.push_back({ir::make_var("v" + name), {ir::make_int(0), extent}, ir::IterKind::spatial});
    loops_.push_back(ir::make_var(name));
  }
  /// Only along the batch axes that it moves on; rows at multiples of 16 bytes.
  Buffer operand(const std::string& name, DType type, const bool* moves, const Expr& rows,
                 const Expr& row) {
    Exprs shape, strides;
    if (s_.pieces) {
      shape.push_back(ir::make_int(kPiecePlanes));
      strides.push_back(Expr(scalar(name + "_plane")) * ir::make_int(s_.vector()));
    }
    for (int i = 0; i < s_.batch_axes; ++i) {
      if (!moves[i]) continue;
      shape.push_back(batch_[static_cast<std::size_t>(i)]);
      strides.push_back(Expr(scalar(cat(name, "_step", i))) * ir::make_int(s_.vector()));
    }
    shape.insert(shape.end(), {rows, row});
    strides.insert(strides.end(),
                   {Expr(scalar(name + "_step")) * ir::make_int(s_.vector()), ir::make_int(1)});
    auto out = ir::edit(ir::make_buffer(name, type, shape));
    out->strides = strides;
    return out;
  }
  Exprs indices(const bool* moves, const Expr& plane, const Expr& outer, const Expr& inner) const {
    Exprs out;
    if (plane) out.push_back(plane);
    const std::size_t first = iters_.size() - 2 - static_cast<std::size_t>(s_.batch_axes);
    for (int i = 0; i < s_.batch_axes; ++i)
      if (moves[i]) out.push_back(iters_[first + static_cast<std::size_t>(i)].var);
    out.insert(out.end(), {outer, inner});
    return out;
  }

  static Stmt nest(const std::vector<Var>& loops, const std::vector<ir::IterVar>& iters,
                   const Ref<ir::BlockNode>& block) {
    ir::AccessRegions found = ir::detect_block_regions(*block);
    block->reads = std::move(found.reads), block->writes = std::move(found.writes);
    Stmt s = ir::block_realize(Exprs(loops.begin(), loops.end()), ir::make_bool(true), block);
    for (std::size_t i = loops.size(); i-- > 0;)
      s = ir::make_for(loops[i], ir::make_int(0), iters[i].dom.extent, s);
    return s;
  }

  Stmt product(const Buffer& a, const Buffer& b, const Buffer& sums, const Expr& terms,
               bool split) const {
    const Var term = ir::make_var("vk");
    const Expr k = split ? Expr(iters_[0].var) * terms + Expr(term) : Expr(term);
    const Expr i = iters_[iters_.size() - 2].var, j = iters_.back().var;
    const Var pair = ir::make_var("vp");
    auto read = [&](const Buffer& x, const bool* moves, const int* planes, bool turned,
                    const Expr& along) {
      const Expr plane = s_.pieces ? piece_plane(pair, planes) : nullptr;
      return ir::cast(dtypes::float32, ir::load(x, turned ? indices(moves, plane, k, along)
                                                          : indices(moves, plane, along, k)));
    };
    Expr value = read(a, s_.moves_a, kPieceOfA, s_.a_along_m, i) *
                 read(b, s_.moves_b, kPieceOfB, s_.b_along_n, j);
    if (split) value = ir::if_then_else(ir::lt(k, k_), value, ir::make_float(0));
    Exprs at;
    for (const ir::IterVar& v : iters_) at.push_back(v.var);
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "product";
    block->iters = iters_;
    block->iters.push_back({term, {ir::make_int(0), terms}, ir::IterKind::reduce});
    block->init = ir::store(sums, ir::make_float(0), at);
    block->body = ir::store(sums, ir::load(sums, at) + value, at);
    std::vector<Var> loops = loops_;
    loops.push_back(ir::make_var("k"));
    if (s_.pieces) {
      block->iters.push_back(
          {pair, {ir::make_int(0), ir::make_int(rules::kPieceProducts)}, ir::IterKind::reduce});
      loops.push_back(ir::make_var("pair"));
    }
    const std::vector<ir::IterVar> iters = block->iters;
    return nest(loops, iters, block);
  }

  Stmt rounded(const Buffer& sums, const Buffer& out) const {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "rounded";
    ir::VarMap map;
    Exprs at;
    std::vector<Var> loops;
    for (const ir::IterVar& v : iters_) {
      block->iters.push_back({ir::make_var(v.var->name), v.dom, v.kind});
      at.push_back(block->iters.back().var);
      loops.push_back(ir::make_var(v.var->name + "_"));
    }
    Expr value = ir::load(sums, at);
    auto of = [&](const Buffer& x, GemmProgram::Scale scale, const Expr& each) {
      return ir::load(x, {scale == GemmProgram::Scale::each ? each : ir::make_int(0)});
    };
    if (scale_a_) value = value * of(scale_a_, s_.scale_a, at[at.size() - 2]);
    if (scale_b_) value = value * of(scale_b_, s_.scale_b, at.back());
    if (bias_) value = value + ir::cast(dtypes::float32, ir::load(bias_, {at.back()}));
    block->body = ir::store(out, ir::cast(s_.result, value), at);
    const std::vector<ir::IterVar> iters = block->iters;
    return nest(loops, iters, block);
  }

  const GemmProgram& s_;
  Expr m_, n_, k_;
  Buffer scale_a_, scale_b_, bias_;
  Exprs batch_;
  std::vector<ir::IterVar> iters_;  // of the result
  std::vector<Var> loops_;
  std::vector<ir::Param> buffers_, scalars_;
  ir::BufferMap placed_;
};

}  // namespace

ir::PrimFunc GemmProgram::program() const { return Writer(*this).write(); }

ir::PrimFunc GemmProgram::scheduled() const {
  const ir::PrimFunc f = program();
  schedule::Schedule sch(f, all_target_info());
  sch.set_detail(false);
  const schedule::BlockRef product = sch.get_block("product");
  auto match = rules::read_gemm(rules::read_nest(sch, product, {}));
  WEFT_CHECK(match, "the program of a product is none");
  match->decisions = decisions;
  rules::schedule_gemm_tensor_core(sch, product, *match);
  return sch.func();
}

}  // namespace weft::device
