// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/contract.h"

#include <algorithm>

#include "weft/elements/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

Expr mod(const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); }

/// Names for values, introduced around a statement in the order in which they were made.
class Lets {
 public:
  Expr name(const Builder& p, const char* name, const Expr& value) {
    vars_.emplace_back(p.var(name), value);
    return vars_.back().first;
  }
  Stmt around(Stmt s) const {
    for (std::size_t i = vars_.size(); i-- > 0;)
      s = ir::let_stmt(vars_[i].first, vars_[i].second, s);
    return s;
  }

 private:
  std::vector<std::pair<ir::Var, Expr>> vars_;
};

/// Where the elements of an operand lie.
struct Operand {
  ir::Buffer from, tile, table;  // in global memory; [stages, depth, extent]
  Elem elem;
  Read read = Read::rows;
  std::int64_t extent = 0;         // rows or columns of the tile
  bool lines = false;              // the tile is [stages, extent, depth]
  std::vector<Expr> outer, steps;  // extents and steps of the axes that are not summed
  std::vector<Expr> summed;        // steps of the summed axes
  Expr base, start, limit;         // of the batch; of the block; number of rows or columns
};

class Kernel {
 public:
  explicit Kernel(const ContractSpec& spec) : s_(spec), t_(spec.tile), p_(spec.narrow) {}

  ir::PrimFunc build() {
    to_ = p_.buffer("out", s_.store);
    a_.from = p_.buffer("a", s_.a);
    b_.from = p_.buffer("b", s_.b);
    if (s_.bias) bias_ = p_.buffer("bias", s_.out);
    blocks_m_ = p_.integer("blocks_m"), blocks_n_ = p_.integer("blocks_n");
    parts_ = p_.integer("parts"), batches_ = p_.integer("batches"), length_ = p_.integer("part");
    a_.limit = p_.integer("m"), b_.limit = p_.integer("n"), k_ = p_.integer("k");
    slab_ = p_.integer("slab");
    a_.outer = p_.integers("dm", s_.rank_m), b_.outer = p_.integers("dn", s_.rank_n);
    dk_ = p_.integers("dk", s_.rank_k), db_ = p_.integers("db", s_.rank_batch);
    a_.steps = p_.integers("am", s_.rank_m), a_.summed = p_.integers("ak", s_.rank_k);
    batch_a_ = p_.integers("ab", s_.rank_batch);
    b_.summed = p_.integers("bk", s_.rank_k), b_.steps = p_.integers("bn", s_.rank_n);
    batch_b_ = p_.integers("bb", s_.rank_batch);
    out_m_ = p_.integers("om", s_.rank_m), out_n_ = p_.integers("on", s_.rank_n);
    batch_out_ = p_.integers("ob", s_.rank_batch);
    const DType type = dtype_of(s_.out);
    a_.elem = s_.a, b_.elem = s_.b, a_.read = s_.read_a, b_.read = s_.read_b;
    a_.extent = t_.rows, b_.extent = t_.columns;
    for (Operand* o : {&a_, &b_})
      o->lines = t_.instruction && (o->read == Read::summed || o->read == Read::terms);
    a_.tile = padded("tile_a", type, a_), b_.tile = padded("tile_b", type, b_);
    acc_ = local("acc", type, t_.each_m * t_.each_n);
    for (std::size_t i = 0; i < 2; ++i) {
      ra_[i] = local(cat("ra", i), type, t_.each_m);
      rb_[i] = local(cat("rb", i), type, t_.each_n);
    }
    a_.table = shared("table_a", p_.index_type, {table_slots(), t_.depth});
    b_.table = shared("table_b", p_.index_type, {table_slots(), t_.depth});
    place_ = local("place", p_.index_type, t_.each_n);
    token_ = ir::make_var("copied", dtypes::int64);
    return p_.finish(
        // One axis of blocks: the others are limited to 65535.
        p_.bound("blockIdx.x", blocks_n_ * blocks_m_ * parts_ * batches_,
                 [&](const Expr& block) {
                   return p_.bound("threadIdx.x", p_.at(t_.threads()),
                                   [&](const Expr& thread) { return body(block, thread); });
                 }),
        true, true, s_.wide_store ? t_.resident : 0);
  }

 private:
  Expr at(std::int64_t v) const { return p_.at(v); }

  /// [stages, depth, extent] with lines four elements longer: transposed writes and an
  /// instruction's reads fall on different banks, and vectors stay aligned.
  ir::Buffer padded(const char* name, DType type, const Operand& o) const {
    const std::int64_t lines = o.lines ? o.extent : t_.depth,
                       length = (o.lines ? t_.depth : o.extent) + 4;
    auto b = ir::edit(shared(name, type, {s_.stages, lines, length - 4}));
    b->strides = {ir::make_int(lines * length), ir::make_int(length), ir::make_int(1)};
    return b;
  }
  static ir::Exprs place_in(const Operand& o, const Expr& slot, const Expr& k, const Expr& e) {
    if (o.lines) return {slot, e, k};
    return {slot, k, e};
  }

  Stmt body(const Expr& block, const Expr& thread) {
    Lets lets;
    auto let = [&](const char* name, const Expr& value) { return lets.name(p_, name, value); };
    thread_ = thread;
    Expr x = let("x", mod(block, blocks_n_)), rest = let("rest", ir::div(block, blocks_n_));
    Expr y = let("y", mod(rest, blocks_m_)), z = let("z", ir::div(rest, blocks_m_));
    Expr which = let("which", mod(z, parts_));
    first_ = let("first", which * length_);
    last_ = let("last", ir::min(first_ + length_, k_));
    auto base = positions(ir::div(z, parts_), db_, {batch_a_, batch_b_, batch_out_});
    a_.base = let("base_a", base[0]), b_.base = let("base_b", base[1]);
    Expr base_out = let("base_out", base[2] + which * slab_);
    a_.start = let("start_m", y * at(t_.rows)), b_.start = let("start_n", x * at(t_.columns));
    // The thread's place: warp, then lane; groups of up to four rows and columns.
    Expr warp = let("warp", ir::div(thread, at(32))), lane = let("lane", mod(thread, at(32)));
    const std::int64_t lanes_n = 32 / t_.lanes_m;
    // An instruction's sums: one row and two columns of each 8 x 8.
    four_m_ = t_.instruction ? 1 : std::min<std::int64_t>(4, t_.each_m);
    four_n_ = t_.instruction ? 2 : s_.spread ? 1 : std::min<std::int64_t>(4, t_.each_n);
    warp_row_ = let("warp_row", ir::div(warp, at(t_.warps_n)) * at(t_.lanes_m * t_.each_m));
    warp_column_ = let("warp_column", mod(warp, at(t_.warps_n)) * at(lanes_n * t_.each_n));
    row_ = let("row", warp_row_ + ir::div(lane, at(lanes_n)) * at(four_m_));
    column_ = let("column", warp_column_ + mod(lane, at(lanes_n)) * at(four_n_));
    Fetch fa = prepare(a_, lets), fb = prepare(b_, lets);
    Expr tiles = let("tiles", ir::div(last_ - first_ + at(t_.depth - 1), at(t_.depth)));

    std::vector<Stmt> all;
    for (std::int64_t i = 0; i < t_.each_m * t_.each_n; ++i) {
      Expr first = zero();
      if (s_.bias && i < t_.each_n) {
        const Expr j = column(at(i));
        // The parts of a sum are added up afterwards: one of them has it.
        const Expr here = ir::logical_and(ir::lt(j, b_.limit), ir::eq(which, at(0)));
        first = ir::if_then_else(here, ir::load(bias_, {j}), zero());
      } else if (s_.bias) {
        first = ir::load(acc_, {at(i % t_.each_n)});
      }
      all.push_back(ir::store(acc_, first, {at(i)}));
    }
    // Copies run `ahead` steps before their use; each slot of shared memory is one of them.
    const std::int64_t ahead = s_.stages - 1;
    if (tabled()) {
      for (std::int64_t s = 0; s < kTablesAhead; ++s) all.push_back(tabulate(at(s)));
    }
    auto wait = [&](std::int64_t in_flight) {
      return ir::Stmt(make_ref<const ir::WaitNode>(token_, ir::make_int(in_flight), ""));
    };
    // Operands of a summand are taken while the one before is added; those of a tile's first
    // summand behind the barrier that the tile before ends with.
    auto copies = [&](const Expr& tile) {
      std::vector<Stmt> both = {bring(a_, fa, tile), bring(b_, fb, tile)};
      // Places for the copies after the next: what is still in flight is read by none.
      if (tabled()) both.push_back(tabulate(tile + at(kTablesAhead)));
      return group(ir::seq(std::move(both)));
    };
    for (std::int64_t s = 0; s < ahead; ++s) all.push_back(copies(at(s)));
    const bool early = s_.early && ahead > 0 && !t_.instruction;
    if (early) {
      // Copies go out first: what they replace was taken before the barrier.
      all.insert(all.end(), {wait(ahead - 1), copies(at(ahead)), take(0, at(0), at(0))});
    }
    all.push_back(p_.loop("kt", tiles, [&](const Expr& kt) {
      std::vector<Stmt> steps;
      const Expr slot = ir::floormod(kt, at(s_.stages));
      if (!early) {
        if (ahead > 0) steps.insert(steps.end(), {wait(ahead - 1), copies(kt + at(ahead))});
        else steps.insert(steps.end(), {copies(kt), wait(0)});
        if (t_.instruction) {
          steps.push_back(add_tiles(slot));
          return ir::seq(std::move(steps));
        }
        steps.push_back(p_.unrolled("kk", t_.depth, [&](const Expr& kk) {
          return ir::seq({take(0, slot, kk), add(0)});
        }));
        return ir::seq(std::move(steps));
      }
      steps.push_back(p_.unrolled("kk", t_.depth / 2 - 1, [&](const Expr& kk) {
        return ir::seq(
            {take(1, slot, kk * at(2) + at(1)), add(0), take(0, slot, kk * at(2) + at(2)), add(1)});
      }));
      steps.insert(steps.end(), {take(1, slot, at(t_.depth - 1)), add(0)});
      const Expr after = ir::floormod(kt + at(1), at(s_.stages));
      steps.insert(steps.end(),
                   {wait(ahead - 1), copies(kt + at(s_.stages)), take(0, after, at(0))});
      steps.push_back(add(1));
      return ir::seq(std::move(steps));
    }));
    // Copies behind the last step are asked for and left out; none outlives the block.
    if (ahead > 0) all.push_back(wait(0));
    all.push_back(write(base_out));
    Stmt s = ir::seq(std::move(all));
    for (const ir::Buffer& b : {acc_, ra_[0], ra_[1], rb_[0], rb_[1], place_, a_.tile, b_.tile})
      s = ir::allocate(b, s);
    if (tabled()) s = ir::allocate(a_.table, ir::allocate(b_.table, s));
    return lets.around(s);
  }

  Expr zero() const { return ir::make_const(0, dtype_of(s_.out)); }
  Stmt group(const Stmt& copies) const {
    return make_ref<const ir::AsyncNode>(s_.queue.empty() ? "in order" : s_.queue, token_, copies);
  }
  /// Places along several summed axes come from a table in shared memory: divisions are made once
  /// for a block.
  bool tabled() const { return s_.rank_k > 1; }
  static constexpr std::int64_t kTablesAhead = 2;
  /// Of two groups of copies without a barrier between them none writes what the other reads.
  static constexpr std::int64_t table_slots() { return 4; }

  Stmt tabulate(const Expr& tile) const {
    Expr pk = first_ + tile * at(t_.depth) + thread_;
    auto places = positions(pk, dk_, {a_.summed, b_.summed});
    Expr slot = ir::floormod(tile, at(table_slots()));
    Stmt both = ir::seq({ir::store(a_.table, places[0], {slot, thread_}),
                         ir::store(b_.table, places[1], {slot, thread_})});
    return ir::if_then(ir::lt(thread_, at(t_.depth)), both);
  }

  /// A thread's share of a tile: `count` elements or vectors, `pace` apart along the axis on which
  /// they differ.
  struct Fetch {
    std::int64_t width = 1, count = 0, pace = 0, units = 0;
    bool guarded = false;  // the last share is not a full one
    Expr kk, ee;           // of the first
    Expr inside;           // along the summed axis for rows and wide; along the other for summed
    std::vector<Expr> places;
  };

  Fetch prepare(const Operand& o, Lets& lets) const {
    auto let = [&](const char* name, const Expr& value) { return lets.name(p_, name, value); };
    Fetch f;
    const std::int64_t threads = t_.threads();
    f.width = o.read == Read::wide || o.read == Read::terms ? vector_of(o.elem) : 1;
    const bool along_terms = o.read == Read::summed || o.read == Read::terms;
    const std::int64_t line = (along_terms ? t_.depth : o.extent) / f.width;
    f.units = o.extent * t_.depth / f.width;
    f.count = (f.units + threads - 1) / threads;
    f.guarded = f.units % threads != 0;
    f.pace = threads / line;
    WEFT_CHECK(threads % line == 0, "a line of ", line, " for ", threads, " threads");
    Expr across = let("across", mod(thread_, at(line))),
         along = let("along", ir::div(thread_, at(line)));
    f.kk = along_terms ? across : along;
    f.ee = along_terms ? along : across;
    if (along_terms) {
      for (std::int64_t e = 0; e < f.count; ++e) {
        if (e > 0 && o.outer.size() == 1) break;  // a known distance apart
        Expr pe = o.start + f.ee + at(e * f.pace);
        f.places.push_back(let("place", o.base + positions(pe, o.outer, {o.steps})[0]));
      }
      return f;
    }
    Expr pe = o.start + f.ee * at(f.width);
    f.inside = let("inside", ir::select(ir::lt(pe, o.limit), last_, at(0)));
    Expr place;
    if (o.read == Read::wide) {
      // The last axis holds whole vectors.
      place = ir::div(o.start, at(f.width)) + f.ee;
      std::vector<Expr> vectors = o.outer;
      vectors.back() = ir::div(vectors.back(), at(f.width));
      if (vectors.size() > 1) place = positions(place, vectors, {o.steps})[0];
    } else {
      place = positions(pe, o.outer, {o.steps})[0];
    }
    f.places.push_back(let("place", o.base + place));
    return f;
  }

  /// Step `tile` of an operand into its slot.
  Stmt bring(const Operand& o, const Fetch& f, const Expr& tile) const {
    Lets lets;
    Expr slot = lets.name(p_, "slot", ir::floormod(tile, at(s_.stages)));
    const bool terms = o.read == Read::terms;
    Expr pk =
        lets.name(p_, "pk", first_ + tile * at(t_.depth) + (terms ? f.kk * at(f.width) : f.kk));
    Expr table_slot = ir::floormod(tile, at(table_slots()));
    auto place_k = [&](const Expr& kk) { return ir::load(o.table, {table_slot, kk}); };
    std::vector<Stmt> copies;
    Expr at_k, limit;
    if (terms) {
      at_k = lets.name(p_, "at_k",
                       ir::div(first_, at(f.width)) + tile * at(t_.depth / f.width) + f.kk);
      limit = lets.name(p_, "limit", ir::select(ir::lt(pk, last_), o.limit, at(0)));
    } else if (o.read == Read::summed) {
      at_k = lets.name(p_, "at_k", tabled() ? place_k(f.kk) : pk * o.summed[0]);
      limit = lets.name(p_, "limit", ir::select(ir::lt(pk, last_), o.limit, at(0)));
    } else if (!tabled()) {
      at_k = lets.name(p_, "at_k", f.places[0] + pk * o.summed[0]);
    }
    for (std::int64_t e = 0; e < f.count; ++e) {
      Expr kk = f.kk, ee = f.ee, place, ok;
      if (terms || o.read == Read::summed) {
        ee = ee + at(e * f.pace);
        place = at_k + (o.outer.size() == 1 ? f.places[0] + at(e * f.pace) * o.steps[0]
                                            : f.places[static_cast<std::size_t>(e)]);
        ok = ir::lt(o.start + ee, limit);
      } else {
        kk = kk + at(e * f.pace);
        place = tabled() ? f.places[0] + place_k(kk) : at_k + at(e * f.pace) * o.summed[0];
        ok = ir::lt(pk + at(e * f.pace), f.inside);
      }
      auto copy = [&](const Expr& v) {
        Expr from = f.width == 1 ? place : place * at(f.width) + v;
        const Expr along = terms ? kk : ee, to = f.width == 1 ? along : along * at(f.width) + v;
        Expr value = convert_value(ir::load(o.from, {from}), s_.out);
        return ir::store(o.tile, ir::if_then_else(ok, value, zero()),
                         terms ? place_in(o, slot, to, ee) : place_in(o, slot, kk, to));
      };
      Stmt put =
          f.width == 1 ? copy(nullptr) : p_.loop("v", at(f.width), copy, ir::ForKind::vectorized);
      if (f.guarded && e + 1 == f.count)
        put = ir::if_then(ir::lt(thread_, at(f.units - e * t_.threads())), put);
      copies.push_back(put);
    }
    return lets.around(ir::seq(std::move(copies)));
  }

  /// The thread's operands of one summand, into one of two sets of registers.
  Stmt take(std::size_t set, const Expr& slot, const Expr& kk) const {
    std::vector<Stmt> s;
    auto each_four = [&](const ir::Buffer& into, const ir::Buffer& tile, const Expr& place,
                         std::int64_t each, std::int64_t four, std::int64_t apart) {
      for (std::int64_t g = 0; g < each / four; ++g) {
        auto one = [&](const Expr& v) {
          return ir::store(into, ir::load(tile, {slot, kk, place + at(g * apart) + v}),
                           {at(g * four) + v});
        };
        s.push_back(four == 1 ? one(at(0)) : p_.loop("v", at(four), one, ir::ForKind::vectorized));
      }
    };
    each_four(ra_[set], a_.tile, row_, t_.each_m, four_m_, four_m_ * t_.lanes_m);
    each_four(rb_[set], b_.tile, column_, t_.each_n, four_n_, four_n_ * (32 / t_.lanes_m));
    return ir::seq(std::move(s));
  }

  /// One summand of every element of the thread.
  Stmt add(std::size_t set) const {
    std::vector<Stmt> s;
    for (std::int64_t i = 0; i < t_.each_m; ++i) {
      for (std::int64_t jj = 0; jj < t_.each_n; ++jj) {
        std::int64_t j = i % 2 ? t_.each_n - 1 - jj : jj;  // neighbours share an operand
        Expr to = at(i * t_.each_n + j);
        s.push_back(ir::store(
            acc_, ir::load(acc_, {to}) + ir::load(ra_[set], {at(i)}) * ir::load(rb_[set], {at(j)}),
            {to}));
      }
    }
    return ir::seq(std::move(s));
  }

  /// All summands of a step by an instruction for the threads of a warp, where the target has one
  /// for this nest.
  Stmt add_tiles(const Expr& slot) const {
    const Expr lane = mod(thread_, at(32));
    const Expr row = warp_row_ + ir::div(lane, at(4)),
               column = warp_column_ + mod(lane, at(4)) * at(2);
    const Stmt nest = p_.loop("i", at(t_.each_m), [&](const Expr& i) {
      return p_.loop("j", at(t_.each_n / 2), [&](const Expr& j) {
        return p_.loop("e", at(2), [&](const Expr& e) {
          return p_.loop("k", at(t_.depth), [&](const Expr& k) {
            const Expr to = i * at(t_.each_n) + j * at(2) + e;
            return ir::store(
                acc_,
                ir::load(acc_, {to}) +
                    ir::load(a_.tile, place_in(a_, slot, k, row + i * at(8))) *
                        ir::load(b_.tile, place_in(b_, slot, k, column + j * at(8) + e)),
                {to});
          });
        });
      });
    });
    const auto* outer = ir::as<ir::ForNode>(nest);
    return ir::make_for(outer->var, outer->min, outer->extent, outer->body, outer->for_kind,
                        outer->axis, {{"instruction", Json("mma.float64")}});
  }

  Expr spread(const Expr& i, std::int64_t four, std::int64_t apart) const {
    return ir::div(i, at(four)) * at(apart) + mod(i, at(four));
  }
  /// Of the thread's j-th column.
  Expr column(const Expr& j) const {
    return b_.start + column_ + spread(j, four_n_, four_n_ * (32 / t_.lanes_m));
  }

  /// One statement stores everything, in loops that the compiler of the target unrolls: barriers
  /// between stores of one thread would be asked for otherwise.
  Stmt write(const Expr& base) const {
    if (s_.wide_store) return write_vectors(base);
    Stmt columns = p_.unrolled("j", t_.each_n, [&](const Expr& j) {
      return ir::store(place_, positions(column(j), b_.outer, {out_n_})[0], {j});
    });
    Stmt rows = p_.unrolled("i", t_.each_m, [&](const Expr& i) {
      Lets line;
      Expr r = line.name(p_, "r", a_.start + row_ + spread(i, four_m_, four_m_ * t_.lanes_m));
      Expr start = line.name(p_, "line", base + positions(r, a_.outer, {out_m_})[0]);
      Stmt stores = p_.unrolled("j", t_.each_n, [&](const Expr& j) {
        return ir::if_then(
            ir::logical_and(ir::lt(r, a_.limit), ir::lt(column(j), b_.limit)),
            ir::store(to_, convert_value(ir::load(acc_, {i * at(t_.each_n) + j}), s_.store),
                      {start + ir::load(place_, {j})}));
      });
      return line.around(stores);
    });
    return ir::seq({columns, rows});
  }

  /// The same where the last axis of columns holds whole vectors of the result: other steps count
  /// vectors.
  Stmt write_vectors(const Expr& base) const {
    const std::int64_t lanes = vector_of(s_.store), each = t_.each_n / lanes;
    WEFT_CHECK(four_n_ % lanes == 0, "a thread has ", four_n_, " neighbours, vectors ", lanes);
    auto column = [&](const Expr& j) { return this->column(j * at(lanes)); };
    std::vector<Expr> vectors = b_.outer;
    vectors.back() = ir::div(vectors.back(), at(lanes));
    Stmt columns = p_.unrolled("j", each, [&](const Expr& j) {
      const Expr vector = ir::div(column(j), at(lanes));
      return ir::store(place_,
                       vectors.size() > 1 ? positions(vector, vectors, {out_n_})[0] : vector, {j});
    });
    Stmt rows = p_.unrolled("i", t_.each_m, [&](const Expr& i) {
      Lets line;
      Expr r = line.name(p_, "r", a_.start + row_ + spread(i, four_m_, four_m_ * t_.lanes_m));
      Expr start = line.name(p_, "line", base + positions(r, a_.outer, {out_m_})[0]);
      return line.around(p_.unrolled("j", each, [&](const Expr& j) {
        const Expr vector = start + ir::load(place_, {j});
        return ir::if_then(ir::logical_and(ir::lt(r, a_.limit), ir::lt(column(j), b_.limit)),
                           p_.loop(
                               "v", at(lanes),
                               [&](const Expr& v) {
                                 return ir::store(
                                     to_, ir::load(acc_, {i * at(t_.each_n) + j * at(lanes) + v}),
                                     {vector * at(lanes) + v});
                               },
                               ir::ForKind::vectorized));
      }));
    });
    return ir::seq({columns, rows});
  }

  const ContractSpec& s_;
  const Tile t_;
  Builder p_;
  Operand a_, b_;
  ir::Buffer to_, bias_, acc_, ra_[2], rb_[2], place_;
  ir::Var token_;
  Expr blocks_m_, blocks_n_, parts_, batches_, length_, k_, slab_, thread_, first_, last_, row_,
      column_, warp_row_, warp_column_;
  std::vector<Expr> dk_, db_, batch_a_, batch_b_, out_m_, out_n_, batch_out_;
  std::int64_t four_m_ = 4, four_n_ = 4;
};

}  // namespace

ir::PrimFunc contract_kernel(const ContractSpec& spec) { return Kernel(spec).build(); }

}  // namespace weft::device
