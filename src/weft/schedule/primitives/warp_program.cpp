// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/warp_pipeline.h"

namespace weft::schedule {
namespace {

using namespace ir;

constexpr std::int64_t kGroup = 128, kWarp = 32, kTile = 64, kSharedRowBytes = 128;

Stmt call_stmt(const char* op, Exprs args) { return evaluate(call(op, std::move(args))); }
Expr address(const Buffer& b, Exprs indices) {
  return call("address_of", {load(b, std::move(indices))});
}
/// Values with names, around the statements that use them.
class Names {
 public:
  Expr operator()(const char* name, Expr value) {
    if (is_const_int(value)) return value;
    list_.emplace_back(make_var(name, value->dtype), std::move(value));
    return list_.back().first;
  }
  Stmt around(Stmt s) const {
    for (std::size_t i = list_.size(); i-- > 0;)
      if (free_vars(s).count(list_[i].first.get()))
        s = let_stmt(list_[i].first, list_[i].second, s);
    return s;
  }

 private:
  std::vector<std::pair<Var, Expr>> list_;
};

class Maker {
 public:
  Maker(const WarpPipeline& p, const WarpProgramOptions& options) : p_(p), o_(options) {
    for (const ForNode* loop : p_.grid)
      if (!is_const_int(loop->extent)) index_ = dtypes::int32;
  }

  WarpProgram make() {
    const DType type = p_.a.global->dtype;
    auto shared = [&](const char* name, DType of, Exprs shape) {
      return make_buffer(name, of, std::move(shape), "shared");
    };
    ring_a_ = shared("ring_a", type, dims({p_.slots, p_.rows, p_.step}));
    ring_b_ = shared("ring_b", p_.b.global->dtype, dims({p_.slots, p_.ring_columns(), p_.step}));
    full_ = shared("full", dtypes::uint64, dims({p_.slots}));
    empty_ = shared("empty", dtypes::uint64, dims({p_.slots}));
    auto registers = [&](const char* name) {
      return make_buffer(name, dtypes::float32, dims({p_.columns / 8, 2, 2}), "local");
    };
    sums_ = registers("sums");
    added_ = p_.promote ? registers("added") : sums_;
    ring_ = make_buffer("ring", dtypes::int32, dims({3}), "local");
    turned_ = is_along(as<StoreNode>(p_.store->body)->indices.size() - 1, p_.row);
    bulk_ = stores_in_bulk();
    if (bulk_)
      staged_ = shared("staged", p_.store_buffer()->dtype, dims({p_.groups(), 2, kTile, kTile}));
    total_ = tiles(1);
    for (const ForNode* loop : p_.grid) total_ = total_ * shares(loop);
    const std::int64_t size = o_.cluster_blocks();
    clusters_ = o_.blocks ? min(tiles(o_.blocks / size), total_) : total_;
    const std::int64_t threads = kGroup * (p_.groups() + 1);
    thread_ = var("thread");
    const Var own = make_var("block", index_);
    cluster_ = own, place_ = place_row_ = place_column_ = tiles(0);
    Names let;
    if (size > 1) {
      cluster_ = let("cluster", div(own, tiles(size)));
      place_ = let("place", rest_of(own, tiles(size)));
      const bool both = size > o_.cluster_writers();
      if (o_.cluster > 1)
        place_row_ = both ? let("place_row", rest_of(place_, tiles(o_.cluster))) : place_;
      if (o_.cluster_columns > 1)
        place_column_ = both ? let("place_column", div(place_, tiles(o_.cluster))) : place_;
    }
    WarpProgram out;
    Var s = var("s");
    const Stmt start = if_then(
        eq(thread_, at(0)),
        make_for(s, at(0), at(p_.slots),
                 seq({call_stmt("token_init", {address(full_, {s}), at(1)}),
                      call_stmt("token_init", {address(empty_, {s}),
                                               at(4 * p_.groups() * o_.cluster_writers())})})));
    const Stmt producer = part("producer", 0, kGroup, o_.copying, copy(), &out.producer);
    const Stmt consumer =
        part("consumer", kGroup, threads, o_.multiplying, multiply(), &out.consumer);
    std::vector<Stmt> body{start, call_stmt("sync", {make_string("shared")}), producer, consumer};
    if (size > 1) {
      // Tokens of all blocks are made before any is used, and none is gone before all are done.
      body[1] = call_stmt("cluster_meet", {at(size)});
      body.push_back(body[1]);
    }
    Stmt nest = make_for(thread_, at(0), at(threads), let.around(seq(std::move(body))),
                         ForKind::bound, "threadIdx.x");
    auto block = make_ref<BlockNode>();
    block->id = fresh_block_id();
    block->name = "warp_specialized";
    block->alloc_buffers = {ring_a_, ring_b_};
    if (bulk_) block->alloc_buffers.push_back(staged_);
    for (const Buffer& b : {full_, empty_, sums_, ring_}) block->alloc_buffers.push_back(b);
    if (p_.promote) block->alloc_buffers.push_back(added_);
    block->body = nest;
    set_regions(*block);
    out.nest = make_for(own, tiles(0), clusters_ * tiles(size),
                        block_realize({}, make_bool(true), block), ForKind::bound, "blockIdx.x");
    return out;
  }

 private:
  static Expr at(std::int64_t v) { return make_int(v); }
  Expr tiles(std::int64_t v) const { return make_int(v, index_); }
  static Exprs dims(std::initializer_list<std::int64_t> shape) {
    Exprs out;
    for (std::int64_t n : shape) out.push_back(make_int(n));
    return out;
  }
  static Var var(const char* name) { return make_var(name); }

  /// How many steps of a loop of the grid a cluster does at a time.
  std::int64_t at_a_time(const ForNode* loop) const {
    if (o_.cluster > 1 && loop == p_.loop_of(p_.row)) return o_.cluster;
    return o_.cluster_columns > 1 && loop == p_.loop_of(p_.column) ? o_.cluster_columns : 1;
  }
  /// How many steps of a loop of the grid clusters share among themselves.
  Expr shares(const ForNode* loop) const {
    const Expr extent = cast(index_, loop->extent);
    const std::int64_t n = at_a_time(loop);
    return n == 1 ? extent : div(extent + tiles(n - 1), tiles(n));
  }

  /// An address that the copy engine writes to looks like a read.
  void set_regions(BlockNode& block) const {
    AccessRegions found = detect_block_regions(block);
    block.writes = std::move(found.writes);
    for (BufferRegion& r : found.reads)
      (bulk_ && r.buffer == p_.store_buffer() ? block.writes : block.reads).push_back(std::move(r));
  }

  Stmt part(const char* name, std::int64_t begin, std::int64_t end, std::int64_t registers,
            Stmt body, std::uint64_t* id) const {
    auto block = make_ref<BlockNode>();
    *id = block->id = fresh_block_id();
    block->name = name;
    block->execution = {"threadIdx.x", begin, end};
    if (p_.groups() > 1) block->annotations = with_annotation({}, "registers", registers);
    block->body = std::move(body);
    set_regions(*block);
    return block_realize({}, make_bool(true), block);
  }

  // ---- the ring: the slot, the parity to wait for, the slot before

  enum Field : std::int64_t { slot, parity, before };
  Expr ring(Field i) const { return load(ring_, {at(i)}); }
  Stmt set_ring(Field i, const Expr& v) const {
    return store(ring_, cast(dtypes::int32, v), {at(i)});
  }
  Stmt advance() const {
    return seq({set_ring(slot, ring(slot) + 1),
                if_then(eq(ring(slot), make_int(p_.slots, dtypes::int32)),
                        seq({set_ring(slot, at(0)),
                             set_ring(parity, make_int(1, dtypes::int32) - ring(parity))}))});
  }

  // ---- tiles

  /// The body for every tile of this block; variables of the grid get their values in `tile_`.
  template <typename Body>
  Stmt each_tile(std::int64_t first_parity, Body&& body) {
    const Stmt begin = seq({set_ring(slot, at(0)), set_ring(parity, at(first_parity))});
    if (!o_.blocks) {
      turn_ = tiles(0);
      return seq({begin, tile(cluster_, body)});
    }
    const Var turn = make_var("turn", index_);
    turn_ = turn;
    Names let;
    const Expr turns = let("turns", div(total_ - cluster_ + clusters_ - 1, clusters_));
    const Expr index = cluster_ + Expr(turn) * clusters_;
    return let.around(seq({begin, make_for(turn, tiles(0), turns, tile(index, body))}));
  }

  // Nothing here is negative: C's quotients and remainders are the cheaper ones.
  static Expr rest_of(Expr a, Expr b) {
    return make_binary(ExprKind::mod, std::move(a), std::move(b));
  }

  template <typename Body>
  Stmt tile(const Expr& index, Body&& body) {
    Names let;
    tile_.clear();
    Expr rest = let("tile", index);
    auto give = [&](const ForNode* loop, const Expr& value) {
      const std::int64_t n = at_a_time(loop);
      const Expr& place = loop == p_.loop_of(p_.row) ? place_row_ : place_column_;
      const Expr own = n > 1 ? value * tiles(n) + place : value;
      tile_[loop->var.get()] = cast(loop->var->dtype, own);
    };
    const ForNode *m = nullptr, *n = nullptr;
    if (o_.group_rows >= 2 * o_.cluster) m = p_.loop_of(p_.row), n = p_.loop_of(p_.column);
    if (m && n && m != n) {
      const Expr high = shares(m), across = shares(n), group = tiles(o_.group_rows / o_.cluster);
      const Expr area = let("area", high * across);
      const Expr place = let("place", rest_of(rest, area)),
                 band_size = let("band_size", across * group);
      const Expr band = let("band", div(place, band_size)),
                 in = let("in_band", rest_of(place, band_size));
      const Expr rows = let("band_rows", min(group, high - band * group));
      give(m, let("tile_m", band * group + rest_of(in, rows)));
      give(n, let("tile_n", div(in, rows)));
      rest = let("outer", div(rest, area));
    } else {
      m = n = nullptr;
    }
    for (std::size_t i = p_.grid.size(); i-- > 0;) {
      const ForNode* loop = p_.grid[i];
      if (loop == m || loop == n) continue;
      const Expr extent = shares(loop);
      give(loop, let(loop->var->name.c_str(), rest_of(rest, extent)));
      rest = div(rest, extent);
    }
    return let.around(body());
  }

  Expr now(const Expr& e) const { return substitute(e, tile_); }
  Expr steps() const { return now(p_.steps->extent); }

  // ---- the warp that copies

  Stmt leader(std::int64_t of, Stmt body) const {
    return if_then(eq(floormod(thread_, at(of)), at(0)), std::move(body));
  }

  /// Of a tile that so many blocks of the cluster share: which of them this one is, and their bits.
  struct Share {
    std::int64_t parts = 1;
    Expr place, blocks;
  };
  /// Blocks of a cluster are numbered column by column.
  Share share_of(bool rows) const {
    Share out{rows ? o_.cluster : o_.cluster_columns, rows ? place_row_ : place_column_, nullptr};
    std::int64_t bits = 0;
    for (std::int64_t i = 0; i < out.parts; ++i)
      bits |= std::int64_t{1} << (rows ? i : i * o_.cluster);
    const Expr first = rows ? place_ - place_row_ : place_row_;
    out.blocks = o_.cluster == 1 || o_.cluster_columns == 1
                     ? at(bits)
                     : call("shift_left", {at(bits), cast(dtypes::int64, first)});
    return out;
  }

  Stmt copy() {
    Names bits;
    Share of_a = share_of(false), of_b = share_of(true);
    of_a.blocks = bits("row_blocks", of_a.blocks), of_b.blocks = bits("column_blocks", of_b.blocks);
    const Stmt tiles = each_tile(1, [&] {
      Names let;
      const Var step = var("step");
      tile_[p_.steps->var.get()] = cast(p_.steps->var->dtype, step);
      const Expr to = let("to", ring(slot));
      std::vector<Stmt> all = {
          call_stmt("token_wait", {address(empty_, {to}), ring(parity)}),
          call_stmt("token_expect",
                    {address(full_, {to}), at((p_.rows + p_.ring_columns()) * kSharedRowBytes)})};
      load_tile(all, ring_a_, p_.a, p_.rows, to, of_a);
      load_tile(all, ring_b_, p_.b, p_.ring_columns(), to, of_b);
      all.push_back(advance());
      return make_for(step, at(0), steps(), let.around(seq(std::move(all))));
    });
    return if_then(eq(thread_, at(0)), bits.around(tiles));
  }

  /// Rows along the sum are one box; rows along the tile are 64 elements long, a box for each.
  /// Where blocks share the tile, each copies its part of the rows to all of them.
  void load_tile(std::vector<Stmt>& out, const Buffer& ring, const PipelineOperand& x,
                 std::int64_t extent, const Expr& to, const Share& share) const {
    const bool whole = x.rows_along_sum();
    const std::int64_t parts = share.parts,
                       high = (whole ? extent : p_.step) / parts;  // rows of a box
    const Expr part = cast(dtypes::int64, share.place) * at(high);
    for (std::int64_t i = 0; i < extent; i += whole ? extent : kTile) {
      Exprs from, args;
      for (const Expr& e : x.first) from.push_back(now(e));
      from[x.along] = from[x.along] + i;
      if (parts > 1) {
        Expr& moved = from[whole ? x.along : x.sum_axis];
        moved = moved + cast(moved->dtype, part);
      }
      args = {address(ring, {to, parts > 1 ? at(i) + part : at(i), at(0)}),
              address(x.global, std::move(from)), address(full_, {to})};
      if (parts > 1) args.push_back(share.blocks);
      for (std::size_t d = 0; d < x.first.size(); ++d)
        args.push_back(at(d == x.sum_axis ? (whole ? p_.step : high)
                          : d == x.along  ? (whole ? high : kTile)
                                          : 1));
      out.push_back(call_stmt(parts > 1 ? "bulk_load_each" : "bulk_load", std::move(args)));
    }
  }

  // ---- the warp groups that multiply

  Stmt wait(const Var& token, std::int64_t outstanding) const {
    return make_ref<const WaitNode>(token, make_int(outstanding), "");
  }
  Expr lane() const { return floormod(thread_, at(kWarp)); }
  /// The blocks that copy to this one, a lane for each: those of its column, then the others of its
  /// row.
  Expr writer() const {
    if (o_.cluster_blocks() == o_.cluster_writers()) return lane();
    const Expr place = cast(dtypes::int64, place_), row = cast(dtypes::int64, place_row_);
    const Expr beside = place + (lane() - at(o_.cluster - 1)) * at(o_.cluster);
    return if_then_else(lt(lane(), at(o_.cluster)), place - row + lane(),
                        rest_of(beside, at(o_.cluster_blocks())));
  }
  Stmt release() const {
    if (o_.cluster_blocks() > 1)
      return if_then(lt(lane(), at(o_.cluster_writers())),
                     call_stmt("token_signal_in", {address(empty_, {ring(before)}), writer_}));
    return leader(kWarp, call_stmt("token_signal", {address(empty_, {ring(before)})}));
  }

  Stmt multiply() {
    multiplied_ = make_var("multiplied", dtypes::int64), sent_ = make_var("sent", dtypes::int64);
    Names let;
    group_ = let("group", floordiv(thread_, at(kGroup)) - 1);
    writer_ = writer();
    if (o_.cluster_blocks() > o_.cluster_writers()) writer_ = let("writer", writer_);
    Stmt tiles = each_tile(0, [&] {
      if (p_.promote) return seq({promoted(), bulk_ ? send() : write()});
      const Var step = var("step");
      Stmt last = release();
      Stmt sums = make_for(step, at(0), steps(), add(step));
      arith::Analyzer analyzer;
      bind_loops(analyzer, {});
      never_empty_ = analyzer.prove(ge(steps(), make_int(1, steps()->dtype)));
      if (!never_empty_) last = if_then(gt(steps(), make_int(0, steps()->dtype)), last);
      std::vector<Stmt> all{sums, wait(multiplied_, 0), last};
      if (!never_empty_)
        all.push_back(
            if_then(le(steps(), make_int(0, steps()->dtype)), each_sum([&](Exprs element) {
                      return store(sums_, make_float(0), std::move(element));
                    })));
      all.push_back(bulk_ ? send() : write());
      return seq(std::move(all));
    });
    if (bulk_) tiles = seq({tiles, leader(kGroup, wait(sent_, 0))});
    return let.around(tiles);
  }

  /// Sums of `promote` steps at a time: tile instructions cut off what a sum does not hold, which
  /// adds up in long ones.
  Stmt promoted() const {
    const Var run = var("run"), step = var("step");
    const Expr of = make_int(p_.promote, steps()->dtype);
    arith::Analyzer analyzer;
    const Expr rest = steps() - cast(steps()->dtype, run) * of;
    const Expr whole = make_binary(ExprKind::floormod, steps(), of);
    const Expr count = analyzer.prove_equal(whole, make_zero(whole->dtype)) ? of : min(rest, of);
    auto each = [&](const Expr& start) {
      return each_sum([&](Exprs element) {
        const Expr value = start ? start : load(sums_, element) + load(added_, element);
        return store(sums_, value, std::move(element));
      });
    };
    const Stmt body = seq(
        {make_for(step, at(0), count, add(step)), wait(multiplied_, 0), release(), each(nullptr)});
    return seq({each(make_float(0)),
                make_for(run, at(0), floordiv(steps() + of - make_int(1, of->dtype), of), body)});
  }

  Stmt add(const Var& step) const {
    Names let;
    const Expr from = let("from", ring(slot));
    const Expr again = gt(step, at(0));
    const Stmt product =
        call_stmt("tile_multiply",
                  {address(added_, {at(0), at(0), at(0)}),
                   address(ring_a_, {from, group_ * at(kTile), at(0)}),
                   address(ring_b_, {from, at(0), at(0)}), at(p_.columns),
                   at(p_.a.rows_along_sum() ? 0 : 1), at(p_.b.rows_along_sum() ? 0 : 1), again});
    return let.around(
        seq({call_stmt("token_wait", {address(full_, {from}), ring(parity)}),
             make_ref<const AsyncNode>("wgmma", multiplied_, product), wait(multiplied_, 1),
             // The step before has been read: its slot can be filled again.
             if_then(again, release()), set_ring(before, from), advance()}));
  }

  // ---- the result

  /// A point of the tile, in elements of the sums' axes.
  struct Point {
    Expr row, column;  // within the tile
  };
  /// Of the fragment's element (j, h, e) of this thread.
  Point point(const Expr& j, const Expr& h, const Expr& e) const {
    return {group_ * at(kTile) + floormod(floordiv(thread_, at(kWarp)), at(4)) * at(16) +
                floordiv(floormod(thread_, at(kWarp)), at(4)) + h * at(8),
            j * at(8) + floormod(thread_, at(4)) * at(2) + e};
  }
  Expr index(std::size_t axis, const Point& p) const {
    const Expr first = now(p_.origin[axis]);
    if (axis == p_.row) return first + cast(first->dtype, p.row);
    return axis == p_.column ? first + cast(first->dtype, p.column) : first;
  }
  VarMap iterators(const Point& p) const {
    VarMap map;
    for (std::size_t i = 0; i < p_.store->iters.size(); ++i) {
      const IterVar& iter = p_.store->iters[i];
      const std::size_t axis = p_.store_axes[i];
      map[iter.var.get()] = cast(iter.var->dtype, axis == npos ? iter.dom.min : index(axis, p));
    }
    return map;
  }
  /// Whether the point is one of the result: true where tiles end with it.
  Expr inside(const Point& p) const {
    Expr out = make_bool(true);
    for (auto [axis, tile] : {std::pair(p_.row, p_.rows * o_.cluster),
                              std::pair(p_.column, p_.columns * o_.cluster_columns)}) {
      const arith::Modular mod = arith::Analyzer().modular(p_.extents[axis]);
      if (mod.coeff % tile == 0 && mod.base % tile == 0) continue;
      out = logical_and(out, lt(index(axis, p), p_.extents[axis]));
    }
    return out;
  }
  /// What the block stores for the point whose sum is the fragment's element.
  Expr value(const Point& p, const Exprs& element) const {
    class Take final : public Rewriter {
     public:
      const BufferNode* sums = nullptr;
      Expr with;

     protected:
      Expr rewrite_load(const Expr& e) override {
        return as<LoadNode>(e)->buffer.get() == sums ? with : Rewriter::rewrite_load(e);
      }
    } take;
    take.sums = p_.sums.get();
    take.with = load(sums_, element);
    return take.rewrite(substitute(as<StoreNode>(p_.store->body)->value, iterators(p)));
  }

  bool stores_in_bulk() const {
    const auto* s = as<StoreNode>(p_.store->body);
    const Buffer& b = s->buffer;
    if (b->dtype != dtypes::float16 && b->dtype != dtypes::bfloat16) return false;
    if (b->scope != "global" || b->ndim() < 2 || b->ndim() > 5) return false;
    if (!turned_ && p_.columns < kTile) return false;
    const Exprs strides = strides_of(b);
    arith::Analyzer analyzer;
    for (std::size_t d = 0; d + 1 < strides.size(); ++d) {
      const auto mod = analyzer.modular(strides[d]);
      if (mod.coeff % 8 || mod.base % 8) return false;
    }
    std::size_t rows = 0;  // axes with rows of the box
    const std::size_t inner = turned_ ? p_.row : p_.column, outer = turned_ ? p_.column : p_.row;
    for (std::size_t d = 0; d < s->indices.size(); ++d) {
      const bool last = d + 1 == s->indices.size();
      for (std::size_t i = 0; i < p_.store->iters.size(); ++i) {
        if (!uses_var(s->indices[d], p_.store->iters[i].var.get())) continue;
        const bool exact = s->indices[d].get() == p_.store->iters[i].var.get();
        const std::size_t axis = p_.store_axes[i];
        if (axis == inner && (!last || !exact)) return false;
        if (axis == outer && (last || !exact || ++rows > 1)) return false;
      }
      // What lies outside of the result must lie outside of the array.
      for (std::size_t i = 0; i < p_.store->iters.size(); ++i) {
        const std::size_t axis = p_.store_axes[i];
        if (s->indices[d].get() != p_.store->iters[i].var.get()) continue;
        if ((axis == p_.row || axis == p_.column) &&
            !analyzer.prove_equal(p_.extents[axis], b->shape[d]))
          return false;
      }
    }
    return is_const_int_value(strides.back(), 1) && rows == 1;
  }

  /// 64 columns at a time through shared memory by the copy engine; what is left as rows of a
  /// smaller box, where columns are rows of what is written, and otherwise by threads.
  Stmt send() const {
    const auto* s = as<StoreNode>(p_.store->body);
    const std::int64_t pieces = turned_ ? (p_.columns + kTile - 1) / kTile : p_.columns / kTile;
    std::vector<Stmt> all;
    if (const Stmt apply = apply_in_place()) all.push_back(apply);
    for (std::int64_t i = 0; i < pieces; ++i) {
      const Expr half = pieces % 2 ? floormod(turn_ * at(pieces) + at(i), at(2)) : at(i % 2);
      const Exprs from{group_, half, at(0), at(0)};
      const VarMap first = iterators({group_ * at(kTile), at(i * kTile)});
      Exprs to, args;
      for (const Expr& e : s->indices) to.push_back(substitute(e, first));
      args = {address(s->buffer, to), address(staged_, from)};
      const std::int64_t high = turned_ ? std::min(kTile, p_.columns - i * kTile) : kTile;
      for (std::size_t d = 0; d < to.size(); ++d)
        args.push_back(at(is_along(d, turned_ ? p_.column : p_.row) ? high : 1));
      args.back() = at(kTile);
      Exprs tile{address(staged_, from), address(sums_, {at(i * 8), at(0), at(0)})};
      if (turned_) tile.push_back(at(high));
      const Stmt started =
          make_ref<const AsyncNode>("bulk", sent_, call_stmt("bulk_store", std::move(args)));
      const Stmt meet = call_stmt("meet", {group_ + 1, at(kGroup)});
      all.insert(all.end(), {leader(kGroup, wait(sent_, 1)), meet,
                             call_stmt(turned_ ? "tile_store_turned" : "tile_store", tile),
                             call_stmt("bulk_fence", {}), meet, leader(kGroup, started)});
    }
    if (pieces * kTile < p_.columns) all.push_back(write(pieces * 8, true));
    return seq(std::move(all));
  }
  /// Whether axis d of what is written is this axis of the sums.
  bool is_along(std::size_t d, std::size_t axis) const {
    const auto* s = as<StoreNode>(p_.store->body);
    for (std::size_t i = 0; i < p_.store->iters.size(); ++i)
      if (p_.store_axes[i] == axis && s->indices[d].get() == p_.store->iters[i].var.get())
        return true;
    return false;
  }

  Stmt unrolled(const char* name, std::int64_t extent, auto&& body,
                ForKind kind = ForKind::unrolled) const {
    const Var v = var(name);
    return make_for(v, at(0), at(extent), body(v), kind);
  }

  /// Of the sums of this thread.
  Stmt each_sum(auto&& body) const {
    return unrolled("j", p_.columns / 8, [&](const Var& j) {
      return unrolled("h", 2, [&](const Var& h) {
        return unrolled("e", 2, [&](const Var& e) { return body(Exprs{j, h, e}); });
      });
    });
  }

  /// The block's function of the sums, in registers; null when it only rounds them.
  Stmt apply_in_place() const {
    const DType out = as<StoreNode>(p_.store->body)->buffer->dtype;
    bool plain = false;
    auto apply = [&](const Exprs& element) {
      const Point p = point(element[0], element[1], element[2]);
      Expr v = value(p, element);
      const auto* c = as<CastNode>(v);
      // tile_store rounds float32 as the cast does.
      v = c && c->dtype == out && c->value->dtype == dtypes::float32 ? c->value
                                                                     : cast(dtypes::float32, v);
      const auto* l = as<LoadNode>(v);
      plain = l && l->buffer == sums_;
      bool loads = false;
      for_each_expr(v, [&](const Expr& x) {
        const auto* other = as<LoadNode>(x);
        loads = loads || (other && other->buffer != sums_);
      });
      if (loads) v = if_then_else(inside(p), v, make_float(0));
      return store(sums_, v, element);
    };
    const Stmt s = each_sum(apply);
    return plain ? nullptr : s;
  }

  /// Element by element, from column 8 `begin` on. `applied`: the sums are what is to be stored.
  Stmt write(std::int64_t begin = 0, bool applied = false) const {
    const auto* s = as<StoreNode>(p_.store->body);
    const std::int64_t count = p_.columns / 8 - begin;
    return unrolled("h", 2, [&](const Var& h) {
      return unrolled("j", count, [&](const Var& part) {
        const Expr j = begin ? Expr(part) + at(begin) : Expr(part);
        const bool pairs = stores_pairs();
        const Point first = point(j, h, at(0));
        auto one = [&](const Var& e) {
          const Point p = point(j, h, e);
          Exprs to;
          for (const Expr& i : s->indices) to.push_back(substitute(i, iterators(p)));
          const Expr stored =
              applied ? cast(s->buffer->dtype, load(sums_, {j, h, e})) : value(p, {j, h, e});
          const Stmt out = store(s->buffer, stored, std::move(to));
          const Expr in = inside(p);
          return pairs || is_const_int_value(in, 1) ? out : if_then(in, out);
        };
        const Stmt all = unrolled("e", 2, one, pairs ? ForKind::vectorized : ForKind::unrolled);
        const Expr in = inside(first);
        return !pairs || is_const_int_value(in, 1) ? all : if_then(in, all);
      });
    });
  }
  /// Whether two neighbours are both inside or both outside and lie beside each other.
  bool stores_pairs() const {
    const auto* s = as<StoreNode>(p_.store->body);
    const arith::Modular mod = arith::Analyzer().modular(p_.extents[p_.column]);
    const Exprs strides = strides_of(s->buffer);
    bool even = mod.coeff % 2 == 0 && mod.base % 2 == 0 && is_const_int_value(strides.back(), 1);
    for (std::size_t d = 0; d + 1 < strides.size(); ++d) {
      const arith::Modular m = arith::Analyzer().modular(strides[d]);
      even = even && m.coeff % 2 == 0 && m.base % 2 == 0;
    }
    bool column = false;
    for (std::size_t i = 0; i < p_.store->iters.size(); ++i)
      column = column || (p_.store_axes[i] == p_.column &&
                          s->indices.back().get() == p_.store->iters[i].var.get());
    return even && column;
  }

  const WarpPipeline& p_;
  const WarpProgramOptions& o_;
  /// Of tiles. Narrow where lowering cannot prove it: no memory holds 2^31 tiles of 64 x 64.
  DType index_ = dtypes::int64;
  Buffer ring_a_, ring_b_, staged_, full_, empty_, sums_, ring_;
  Buffer added_;  // what tile instructions add up: the sums, or those of some steps
  Var thread_, multiplied_, sent_;
  Expr total_, clusters_;  // pairs of a cluster and its turn, clusters of the launch
  Expr cluster_, place_, place_row_, place_column_;  // this block's, and its place in it
  Expr group_, turn_;
  Expr writer_;  // to this block, of this lane
  VarMap tile_;
  bool turned_ = false;  // rows of the tile lie along the last axis of what is written
  bool bulk_ = false, never_empty_ = true;
};

}  // namespace

WarpProgram make_warp_program(const WarpPipeline& p, const WarpProgramOptions& options) {
  return Maker(p, options).make();
}

}  // namespace weft::schedule
