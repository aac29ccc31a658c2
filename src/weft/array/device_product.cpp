// SPDX-License-Identifier: Apache-2.0
#include "weft/array/device_product.h"

#include <algorithm>

#include "weft/arith/iter_map.h"
#include "weft/array/device_kernel.h"
#include "weft/array/device_tile.h"
#include "weft/array/device_whole.h"
#include "weft/array/gpu/thin_product.h"
#include "weft/array/row_ir.h"
#include "weft/base/integers.h"
#include "weft/ir/visit.h"
#include "weft/schedule/refs.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kVector = 8;            // elements of 16 bits that are copied at once
constexpr std::int64_t kWorthTiles = 1 << 21;  // bytes of a matrix that few vectors multiply
constexpr std::int64_t kTogether = 8;  // rows of blocks that follow one another, for the cache

Expr mod(const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); }

/// A layout of the target's row, and the extents of what it maps to.
struct Layout {
  schedule::IndexMap map;
  std::vector<Expr> shape;

  Layout(const std::string& text, std::int64_t first, std::int64_t second)
      : map(schedule::IndexMap::parse(text)) {
    arith::Analyzer analyzer;
    analyzer.bind(map.inputs[0], {ir::make_int(0), ir::make_int(first)});
    analyzer.bind(map.inputs[1], {ir::make_int(0), ir::make_int(second)});
    for (const Expr& e : map.outputs) shape.push_back(ir::make_int(analyzer.bounds(e).max + 1));
  }
  ir::Exprs at(const Expr& x, const Expr& y, const arith::Analyzer& analyzer) const {
    ir::Exprs out;
    for (const Expr& e : map.outputs)
      out.push_back(analyzer.simplify(
          ir::substitute(e, {{map.inputs[0].get(), ir::cast(map.inputs[0]->dtype, x)},
                             {map.inputs[1].get(), ir::cast(map.inputs[1]->dtype, y)}})));
    return out;
  }
};

class Kernel {
 public:
  explicit Kernel(const ProductSpec& spec)
      : s_(spec),
        shape_(*spec.row->product),
        p_(spec.narrow),
        rows_(shape_.rows * spec.groups),
        map_a_(shape_.a, shape_.rows, shape_.depth),
        map_b_(shape_.b, shape_.depth, shape_.columns),
        map_c_(shape_.c, shape_.rows, shape_.columns) {
    const std::int64_t threads = shape_.threads * s_.groups;
    WEFT_CHECK(threads % line_a() == 0 && threads % line_b() == 0 &&
                   rows_ % (threads / line_a()) == 0 && shape_.depth % (threads / line_b()) == 0,
               "tiles of ", spec.row->name, " do not divide among ", threads, " threads");
  }

  ir::PrimFunc build() {
    to_ = p_.buffer("out", s_.out), a_ = p_.buffer("a", s_.in), b_ = p_.buffer("b", s_.in);
    blocks_m_ = p_.integer("blocks_m"), blocks_n_ = p_.integer("blocks_n");
    batches_ = p_.integer("batches"), m_ = p_.integer("m"), n_ = p_.integer("n");
    k_ = p_.integer("k"), half_ = p_.integer("half");        // of n, where columns go in pairs
    step_a_ = p_.integer("am"), step_b_ = p_.integer("bk");  // of rows, in vectors
    db_ = p_.integers("db", s_.rank_batch);
    batch_a_ = p_.integers("ab", s_.rank_batch), batch_b_ = p_.integers("bb", s_.rank_batch);
    tile_a_ = tile("tile_a", map_a_, {s_.stages, s_.groups}, "shared");
    tile_b_ = tile("tile_b", map_b_, {s_.stages}, "shared");
    acc_ = ir::make_buffer("acc", dtypes::float32, {map_c_.shape.begin() + 1, map_c_.shape.end()},
                           "local");
    token_ = ir::make_var("copied", dtypes::int64);
    return p_.finish(
        p_.bound("blockIdx.x", blocks_n_ * blocks_m_ * batches_,
                 [&](const Expr& block) {
                   return p_.bound("threadIdx.y", at(s_.groups), [&](const Expr& group) {
                     return p_.bound("threadIdx.x", at(shape_.threads), [&](const Expr& thread) {
                       return body(block, group, thread);
                     });
                   });
                 }),
        true);
  }

 private:
  Expr at(std::int64_t v) const { return p_.at(v); }

  ir::Buffer tile(const char* name, const Layout& layout, std::vector<std::int64_t> lead,
                  const char* scope) const {
    ir::Exprs shape;
    for (std::int64_t extent : lead) shape.push_back(ir::make_int(extent));
    shape.insert(shape.end(), layout.shape.begin(), layout.shape.end());
    return ir::make_buffer(name, dtype_of(s_.in), shape, scope);
  }

  Stmt body(const Expr& block, const Expr& group, const Expr& thread) {
    std::vector<std::pair<ir::Var, Expr>> lets;
    auto let = [&](const char* name, const Expr& value) -> Expr {
      lets.emplace_back(p_.var(name), value);
      return lets.back().first;
    };
    group_ = group, thread_ = thread;
    all_ = group * at(shape_.threads) + thread;
    const Expr per_batch = let("per_batch", blocks_n_ * blocks_m_);
    const Expr batch = let("batch", ir::div(block, per_batch));
    const Expr place = let("place", mod(block, per_batch));
    const Expr band = let("band", ir::div(place, blocks_n_ * at(kTogether)));
    const Expr inside = let("inside", mod(place, blocks_n_ * at(kTogether)));
    const Expr high = let("high", ir::min(at(kTogether), blocks_m_ - band * at(kTogether)));
    start_m_ = let("start_m", (band * at(kTogether) + mod(inside, high)) * at(rows_));
    start_n_ = let("start_n", ir::div(inside, high) * at(shape_.columns));
    auto base = positions(batch, db_, {batch_a_, batch_b_});
    base_a_ = let("base_a", base[0]), base_b_ = let("base_b", base[1]);
    base_out_ = let("base_out", batch * m_);
    // A thread's first vectors of both tiles: where they lie, and what is left behind them.
    const Expr along_a = ir::floordiv(all_, at(line_a())),
               across_a = ir::floormod(all_, at(line_a()));
    place_a_ = let("place_a", base_a_ + (start_m_ + along_a) * step_a_ + across_a);
    rows_left_ = let("rows_left", m_ - start_m_ - along_a);
    k_left_ = let("k_left", k_ - across_a * at(kVector));
    const Expr along_b = ir::floordiv(all_, at(line_b())),
               across_b = ir::floormod(all_, at(line_b()));
    place_b_ =
        let("place_b", base_b_ + along_b * step_b_ + ir::div(start_n_, at(kVector)) + across_b);
    inside_b_ = let("inside_b",
                    ir::select(ir::lt(start_n_ + across_b * at(kVector), n_), k_ - along_b, at(0)));
    const Expr tiles = let("tiles", ir::div(k_ + at(shape_.depth - 1), at(shape_.depth)));

    std::vector<Stmt> all;
    all.push_back(each_sum("z", [&](const ir::Exprs& place_of, auto&&...) {
      return ir::store(acc_, ir::make_const(0, dtypes::float32), place_of);
    }));
    const std::int64_t ahead = s_.stages - 1;
    for (std::int64_t s = 0; s < ahead; ++s) all.push_back(bring(at(s)));
    all.push_back(p_.loop("kt", tiles, [&](const Expr& kt) {
      return ir::seq({ir::Stmt(make_ref<const ir::WaitNode>(token_, ir::make_int(ahead - 1), "")),
                      bring(kt + at(ahead)), multiply(ir::floormod(kt, at(s_.stages)))});
    }));
    all.push_back(ir::Stmt(make_ref<const ir::WaitNode>(token_, ir::make_int(0), "")));
    all.push_back(write());
    Stmt s = ir::seq(std::move(all));
    for (const ir::Buffer& b : {acc_, tile_a_, tile_b_}) s = ir::allocate(b, s);
    for (std::size_t i = lets.size(); i-- > 0;) s = ir::let_stmt(lets[i].first, lets[i].second, s);
    return s;
  }

  /// Vectors in a row of a tile as it lies in global memory.
  std::int64_t line_a() const { return shape_.depth / kVector; }
  std::int64_t line_b() const { return shape_.columns / kVector; }

  /// Both tiles of one step of the summed extent, in vectors of 16 bytes; what lies outside is 0.
  Stmt bring(const Expr& step) const {
    const Expr slot = ir::floormod(step, at(s_.stages)), first = step * at(shape_.depth);
    const std::int64_t threads = shape_.threads * s_.groups;
    arith::Analyzer analyzer;
    analyzer.bind(ir::Var(ir::as<ir::VarNode>(thread_)), {at(0), at(shape_.threads)});
    analyzer.bind(ir::Var(ir::as<ir::VarNode>(group_)), {at(0), at(s_.groups)});
    std::vector<Stmt> copies;
    /// `target`: the indices of (row, element) in the slot.
    auto copy = [&](const ir::Buffer& from, const ir::Buffer& to, const Expr& place, const Expr& ok,
                    const Expr& row, const Expr& across, auto&& target) {
      copies.push_back(p_.loop(
          "v", at(kVector),
          [&](const Expr& v) {
            analyzer.bind(ir::Var(ir::as<ir::VarNode>(v)), {at(0), at(kVector)});
            ir::Exprs indices = target(row, across * at(kVector) + v);
            indices.insert(indices.begin(), slot);
            return ir::store(to,
                             ir::if_then_else(ok, ir::load(from, {place * at(kVector) + v}),
                                              ir::make_const(0, dtype_of(s_.in))),
                             indices);
          },
          ir::ForKind::vectorized));
    };
    const std::int64_t pace_a = threads / line_a(), pace_b = threads / line_b();
    for (std::int64_t r = 0; r < rows_; r += pace_a) {
      copy(a_, tile_a_, place_a_ + at(r) * step_a_ + step * at(line_a()),
           ir::logical_and(ir::lt(at(r), rows_left_), ir::lt(first, k_left_)),
           ir::floordiv(all_, at(line_a())) + at(r), ir::floormod(all_, at(line_a())),
           [&](const Expr& row, const Expr& k) {
             ir::Exprs out = map_a_.at(ir::floormod(row, at(shape_.rows)), k, analyzer);
             out.insert(out.begin(), analyzer.simplify(ir::floordiv(row, at(shape_.rows))));
             return out;
           });
    }
    for (std::int64_t r = 0; r < shape_.depth; r += pace_b) {
      copy(b_, tile_b_, place_b_ + (first + at(r)) * step_b_, ir::lt(first + at(r), inside_b_),
           ir::floordiv(all_, at(line_b())) + at(r), ir::floormod(all_, at(line_b())),
           [&](const Expr& k, const Expr& column) { return map_b_.at(k, column, analyzer); });
    }
    return make_ref<const ir::AsyncNode>(s_.queue.empty() ? "in order" : s_.queue, token_,
                                         ir::seq(std::move(copies)));
  }

  /// The instruction on the tiles of a slot, as tensorize puts it.
  Stmt multiply(const Expr& slot) const {
    const ir::PrimFunc f = ir::deep_copy(s_.row->implementation);
    ir::BufferMap views;
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "product";
    const std::pair<ir::Buffer, ir::Exprs> operands[] = {{tile_a_, {slot, group_}},
                                                         {tile_b_, {slot}}};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& [whole, lead] = operands[i];
      const ir::Buffer& meant = f->params[i].buffer;
      ir::BufferRegion source{whole, {}};
      for (const Expr& e : lead) source.region.push_back({e, ir::make_const(1, e->dtype)});
      for (const Expr& extent : meant->shape)
        source.region.push_back({ir::make_zero(extent->dtype), extent});
      block->reads.push_back(source);
      auto view = ir::edit(meant);
      view->scope = whole->scope;
      views[meant.get()] = view;
      block->match_buffers.push_back({view, source});
    }
    Stmt inner = f->body;
    while (const auto* root = ir::as<ir::BlockRealizeNode>(inner)) inner = root->block->body;
    /// A thread's own sums: the layout's first index is the thread.
    class Own final : public ir::Rewriter {
     public:
      ir::Buffer from, to;

     protected:
      Expr rewrite_load(const Expr& e) override {
        const auto* l = ir::as<ir::LoadNode>(e);
        if (l->buffer != from) return ir::Rewriter::rewrite_load(e);
        return ir::load(to, {l->indices.begin() + 1, l->indices.end()});
      }
      Stmt rewrite_store(const Stmt& x) override {
        const auto* t = ir::as<ir::StoreNode>(x);
        if (t->buffer != from) return ir::Rewriter::rewrite_store(x);
        return ir::store(to, rewrite(t->value), {t->indices.begin() + 1, t->indices.end()});
      }
    } own;
    own.from = f->params[2].buffer, own.to = acc_;
    block->reads.push_back(ir::full_region(acc_));
    block->writes.push_back(ir::full_region(acc_));
    block->body = own.rewrite(ir::replace_buffers(inner, views));
    return ir::block_realize({}, ir::make_bool(true), block);
  }

  /// Every sum of a thread, in the order of its registers: `make` of its place in `acc_`, its row
  /// and column within the block's group, and the column that tells whether it is stored.
  template <typename Make>
  Stmt each_sum(const char* name, Make&& make) const {
    arith::Analyzer analyzer;
    std::vector<ir::IterVar> tile;
    for (std::size_t i = 0; i < 2; ++i)
      tile.push_back({map_c_.map.inputs[i],
                      {ir::make_int(0), ir::make_int(i == 0 ? shape_.rows : shape_.columns)},
                      ir::IterKind::spatial});
    const auto found = arith::detect_iter_map(map_c_.map.outputs, tile, ir::make_bool(true),
                                              arith::MapLevel::bijective, analyzer);
    WEFT_CHECK(found.ok(), "the layout of sums ", shape_.c, ": ", found.error);
    ir::Exprs place{thread_};
    std::vector<ir::Var> loops;
    for (std::size_t i = 1; i < map_c_.shape.size(); ++i) {
      loops.push_back(p_.var(cat(name, i)));
      place.push_back(loops.back());
    }
    for (std::size_t i = 0; i < loops.size(); ++i)
      analyzer.bind(loops[i], {at(0), ir::cast(p_.index_type, map_c_.shape[i + 1])});
    Expr row, column, first;
    for (const auto& [var, value] : arith::inverse_iter_map(found.indices, place)) {
      const Expr v = ir::cast(p_.index_type, value);
      if (var == map_c_.map.inputs[0]) row = v;
      else column = first = v;
      // Columns go in pairs: the first of two tells.
      if (var == map_c_.map.inputs[1] && s_.pairs) {
        first = ir::cast(p_.index_type, analyzer.simplify(ir::floordiv(value, ir::make_int(2)))) *
                at(2);
        column = first +
                 ir::cast(p_.index_type, analyzer.simplify(ir::floormod(value, ir::make_int(2))));
      }
    }
    place.erase(place.begin());  // the thread
    Stmt s = make(place, row, column, first);
    for (std::size_t i = loops.size(); i-- > 0;) {
      const bool last = i + 1 == loops.size() && s_.pairs;
      s = ir::make_for(loops[i], at(0), ir::cast(p_.index_type, map_c_.shape[i + 1]), s,
                       last ? ir::ForKind::vectorized : ir::ForKind::unrolled);
    }
    return s;
  }

  Stmt write() const {
    return each_sum(
        "w", [&](const ir::Exprs& place, const Expr& row, const Expr& column, const Expr& first) {
          const Expr i = start_m_ + group_ * at(shape_.rows) + row, line = base_out_ + i;
          const Expr to = s_.pairs ? (line * half_ + ir::div(start_n_ + first, at(2))) * at(2) +
                                         (column - first)
                                   : line * n_ + start_n_ + column;
          return ir::if_then(ir::logical_and(ir::lt(i, m_), ir::lt(start_n_ + first, n_)),
                             ir::store(to_, convert_value(ir::load(acc_, place), s_.out), {to}));
        });
  }

  const ProductSpec& s_;
  const ProductShape& shape_;
  Builder p_;
  const std::int64_t rows_;  // of a block
  const Layout map_a_, map_b_, map_c_;
  ir::Buffer to_, a_, b_, tile_a_, tile_b_, acc_;
  ir::Var token_;
  Expr blocks_m_, blocks_n_, batches_, m_, n_, k_, half_, step_a_, step_b_;
  std::vector<Expr> db_, batch_a_, batch_b_;
  Expr group_, thread_, all_, start_m_, start_n_, base_a_, base_b_, base_out_;
  Expr place_a_, rows_left_, k_left_, place_b_, inside_b_;
};

}  // namespace

NDArray in_vectors(const NDArray& x, bool zeros) {
  const int r = x.ndim();
  const std::int64_t vector = 16 / elem_bytes(x.elem());
  const std::uint64_t address =
      x.handle()->address() + static_cast<std::uint64_t>(x.offset() * elem_bytes(x.elem()));
  bool fits = address % 16 == 0 && (x.strides()[r - 1] == 1 || x.shape()[r - 1] == 1) &&
              x.shape()[r - 1] % vector == 0;
  for (int i = 0; i + 1 < r; ++i) fits = fits && x.strides()[i] % vector == 0;
  if (fits) return x;
  // Batches that are repeated are copied once.
  Dims shape = x.shape(), once = x.shape();
  for (int i = 0; i + 2 < r; ++i) {
    if (x.strides()[i] == 0) once[i] = 1;
  }
  Dims wide = once;
  // Rows at multiples of 32 bytes, the sectors that memory is fetched in, unless they were filled.
  const std::int64_t pad = zeros ? vector : 2 * vector;
  wide[r - 1] = ceil_div(once[r - 1], pad) * pad;
  NDArray out = wide == once || !zeros ? NDArray::empty(x.device(), x.elem(), wide)
                                       : full(x.device(), x.elem(), wide, Scalar(0));
  assign(out.as_strided(once, out.strides(), out.offset()),
         x.as_strided(once, x.strides(), x.offset()));
  Dims steps = out.strides();
  for (int i = 0; i + 2 < r; ++i) {
    if (once[i] != shape[i]) steps[i] = 0;
  }
  return out.as_strided(shape, steps, out.offset());
}

namespace {

struct Choice {
  std::size_t row = 0;
  std::int64_t groups = 1;
};

/// The block that keeps the processors busiest: work of the busiest one, by the rate of the block
/// (measured on an NVIDIA H200, 4096 x 4096 x 4096).
Choice choose(const Grid& grid, Elem elem, std::int64_t batch, std::int64_t m, std::int64_t n) {
  Choice best;
  double least = -1;
  for (std::size_t i = 0; i < grid.products.size(); ++i) {
    const InstructionInfo& row = grid.products[i];
    if (row.meaning->params[0].buffer->dtype != dtype_of(elem)) continue;
    const ProductShape& s = *row.product;
    for (std::int64_t groups : {1, 2}) {
      if (s.columns * groups > 256) continue;  // registers
      const std::int64_t blocks = ceil_div(m, s.rows * groups) * ceil_div(n, s.columns) * batch;
      const std::int64_t resident = std::max<std::int64_t>(1, 256 / (s.columns * groups));
      const double area = static_cast<double>(s.rows * groups * s.columns);
      const double rate = area / (area + 4096);  // small blocks read more for each sum
      const double clocks =
          static_cast<double>(ceil_div(blocks, grid.processors * resident) * resident) * area /
          rate;
      if (least < 0 || clocks < least) least = clocks, best = {i, groups};
    }
  }
  return best;
}

}  // namespace

ir::PrimFunc product_kernel(const ProductSpec& spec) { return Kernel(spec).build(); }

bool has_product(const Ref<Device>& device, Elem a, Elem b) {
  if (a != b) return false;
  const Grid& grid = grid_of(device);
  return std::any_of(grid.products.begin(), grid.products.end(), [&](const InstructionInfo& row) {
    return row.meaning->params[0].buffer->dtype == dtype_of(a);
  });
}

bool prefers_product(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (!has_product(out.device(), a.elem(), b.elem())) return false;
  const Grid& grid = grid_of(out.device());
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const std::int64_t batches = out.size() / (m * n);
  std::int64_t copied = 0, copies = 0;  // bytes of operands that do not lie in vectors
  for (const NDArray* x : {&a, &b}) {
    if (reads_in_bulk(*x)) continue;
    std::int64_t bytes = elem_bytes(x->elem());
    for (int i = 0; i < r; ++i) bytes *= x->strides()[i] == 0 && i + 2 < r ? 1 : x->shape()[i];
    ++copies, copied += bytes;
  }
  // A product with few vectors is bound by reading the matrix: threads do that as well.
  if (std::min(m, n) <= kThinColumns) {
    const std::int64_t bytes = 2 * std::max(m, n) * k * batches;
    return grid.whole_products && copies == 0 && std::min(m, n) > 2 && bytes >= kWorthTiles;
  }
  const double clocks = choose_tile(grid, 4, batches, m, n, k, 0).clocks;
  // Conversions are made by the threads that multiply, which then wait for what they load.
  constexpr double kConverted = 1.4;
  const double by_threads = kConverted * clocks / grid.clocks_per_microsecond;
  const double sums = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                      static_cast<double>(batches);
  const double by_tiles = sums / (grid.tile_sums_per_microsecond) +
                          grid.launch_microseconds * static_cast<double>(copies) +
                          static_cast<double>(2 * copied) / grid.bytes_per_microsecond;
  return by_tiles < by_threads;
}

void grid_product(const NDArray& out, const NDArray& a_in, const NDArray& b_in) {
  if (whole_product(out, a_in, b_in)) return;
  const NDArray a = in_vectors(a_in), b = in_vectors(b_in);
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  Dims batch(out.shape().data(), r - 2);
  std::int64_t batches = 1;
  for (std::int64_t extent : batch) batches *= extent;
  const Grid& grid = grid_of(out.device());
  const Choice choice = choose(grid, a.elem(), batches, m, n);
  ProductSpec spec;
  spec.row = &grid.products[choice.row];
  const ProductShape& shape = *spec.row->product;
  spec.groups = choice.groups;
  spec.out = out.elem(), spec.in = a.elem();
  spec.pairs = n % 2 == 0;
  spec.rank_batch = batch.size();
  spec.queue = grid.queue;
  const std::int64_t stage = (shape.rows * spec.groups + shape.columns) * shape.depth * 2;
  spec.stages = std::clamp<std::int64_t>((grid.shared_bytes - 2048) / 2 / stage, 2, 4);
  const std::int64_t blocks_m = ceil_div(m, shape.rows * spec.groups),
                     blocks_n = ceil_div(n, shape.columns);
  auto reach = [&](const NDArray& x) {
    std::int64_t most = 0;
    for (int i = 0; i < r; ++i)
      most += (x.shape()[i] + (i + 2 < r ? 0 : 512)) * std::abs(x.strides()[i]);
    return most;
  };
  spec.narrow = fits_narrow(std::max({reach(a), reach(b), out.size() + 1024 * (n + 1024)}));
  const ProgramKey key{
      "product.instruction",
      {static_cast<int>(spec.out), static_cast<int>(spec.in), spec.narrow, spec.pairs,
       static_cast<int>(choice.row), spec.groups, spec.stages, spec.rank_batch}};
  ProgramCall call(out.device());
  call.array(out).array(a).array(b);
  call.integer(blocks_m).integer(blocks_n).integer(batches).integer(m).integer(n).integer(k);
  call.integer(n / 2);
  call.integer(a.strides()[r - 2] / kVector).integer(b.strides()[r - 2] / kVector);
  for (std::int64_t v : batch) call.integer(v);
  for (int i = 0; i + 2 < r; ++i) call.integer(a.strides()[i] / kVector);
  for (int i = 0; i + 2 < r; ++i) call.integer(b.strides()[i] / kVector);
  call.run(key, [&] { return product_kernel(spec); });
}

}  // namespace weft::device
