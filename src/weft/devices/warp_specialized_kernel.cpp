// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/warp_specialized_kernel.h"

#include <map>
#include <utility>

#include "weft/devices/kernel.h"
#include "weft/devices/pieces.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/visit.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

using Mode = WarpSpecializedGemm::Mode;
using Out = WarpSpecializedGemm::Out;

constexpr std::int64_t kTogether = 16;  // rows of tiles that follow one another, for the cache
constexpr std::int64_t kCopying = 40, kMultiplying = 232;  // registers of a thread of two groups

Expr mod(const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); }

class Kernel {
 public:
  explicit Kernel(const WarpSpecializedGemm& spec) : s_(spec), p_(true) {}

  ir::PrimFunc build() {
    const Elem narrow = s_.type == dtypes::float16 ? Elem::float16 : Elem::bfloat16;
    const Elem result = s_.out == Out::partial ? Elem::float32 : narrow;
    a_ = p_.buffer("a", narrow), b_ = p_.buffer("b", narrow), out_ = p_.buffer("out", result);
    const std::int64_t step_x = s_.step[0], step_y = s_.step[1];
    const Box patch = {64, s_.patch[0], s_.patch[1], s_.patch[2], 1}, tile = {64, 64, 1, 1, 1},
              one = {1, 1, 1, 1, 1}, apart = {1, step_x, step_y, 1, 1};
    const Box rows = {64, 64 * s_.groups, 1, 1, 1}, columns = {64, s_.columns, 1, 1, 1};
    const bool patches = s_.mode == Mode::patches, places = s_.mode == Mode::places;
    describe("a", a_, map_a_,
             patches || places ? patch
             : s_.a_along_m    ? tile
                               : rows,
             patches || places ? apart : one);
    describe("b", b_, map_b_, places ? patch : s_.b_along_n ? tile : columns, one);
    if (s_.out == Out::copied) describe("out", out_, map_out_, patches ? patch : tile, one);
    for (std::string_view name : kGemmParams) numbers_[name] = p_.integer(std::string(name));
    Stmt body = p_.bound("blockIdx.x", of("blocks"), [&](const Expr& block) {
      return p_.bound("threadIdx.x", at(s_.threads()),
                      [&](const Expr& thread) { return roles(block, thread); });
    });
    for (std::size_t i = maps_.size(); i-- > 0;)
      body = ir::let_stmt(maps_[i].first, maps_[i].second, body);
    return p_.finish(body, true);
  }

 private:
  using Box = std::array<std::int64_t, 5>;

  Expr at(std::int64_t v) const { return p_.at(v); }
  const Expr& of(std::string_view name) const { return numbers_.at(name); }
  static Stmt call(const char* op, ir::Exprs args) {
    return ir::evaluate(ir::call(op, std::move(args)));
  }
  static Expr address(const ir::Buffer& b, ir::Exprs indices) {
    return ir::call("address_of", {ir::load(b, std::move(indices))});
  }

  void describe(const std::string& name, const ir::Buffer& buffer, ir::Var& var, const Box& box,
                const Box& steps) {
    const auto rank = static_cast<std::size_t>(s_.axes());
    ir::Exprs args{address(buffer, {ir::make_int(0)}), ir::make_int(s_.axes())};
    for (std::size_t i = 0; i < rank; ++i) args.push_back(p_.size(cat(name, "_extent", i)));
    for (std::size_t i = 0; i + 1 < rank; ++i) args.push_back(p_.size(cat(name, "_stride", i)));
    for (const Box* numbers : {&box, &steps})
      for (std::size_t i = 0; i < rank; ++i) args.push_back(ir::make_int((*numbers)[i]));
    var = ir::make_var(cat(name, "_map"), dtypes::handle);
    maps_.emplace_back(var, ir::call("tensor_map", std::move(args)));
  }

  /// Values with names, around what uses them.
  struct Names {
    const Builder& p;
    std::vector<std::pair<ir::Var, Expr>> list;
    Expr operator()(const char* name, const Expr& value) {
      list.emplace_back(p.var(name), value);
      return list.back().first;
    }
    Stmt around(Stmt s) const {
      for (std::size_t i = list.size(); i-- > 0;) {
        if (ir::free_vars(s).count(list[i].first.get()))
          s = ir::let_stmt(list[i].first, list[i].second, s);
      }
      return s;
    }
  };

  Stmt roles(const Expr& block, const Expr& thread) {
    block_ = block, thread_ = thread;
    const std::int64_t rows = 64 * s_.groups;
    auto tiles = [&](const char* name, ir::Exprs shape) {
      return ir::make_buffer(name, s_.type, std::move(shape), "shared");
    };
    auto n = [](std::int64_t v) { return ir::make_int(v); };
    ring_a_ = tiles("ring_a", {n(s_.stages), n(rows), n(64)});
    ring_b_ = tiles("ring_b", {n(s_.stages), n(s_.columns), n(64)});
    staged_ = tiles("staged", {n(s_.groups), n(2), n(64), n(64)});
    full_ = ir::make_buffer("full", dtypes::uint64, {n(tokens())}, "shared");
    empty_ = ir::make_buffer("empty", dtypes::uint64, {n(tokens())}, "shared");
    auto registers = [&](const char* name) {
      return ir::make_buffer(name, dtypes::float32, {n(s_.columns / 8), n(2), n(2)}, "local");
    };
    sums_ = registers("sums");
    added_ = s_.pieces ? registers("added") : sums_;
    at_ = ir::make_buffer("at", dtypes::int32, {n(5)}, "local");
    multiplied_ = ir::make_var("multiplied", dtypes::int64);
    sent_ = ir::make_var("sent", dtypes::int64);
    Stmt start = ir::if_then(ir::eq(thread_, at(0)), p_.loop("s", at(tokens()), [&](const Expr& s) {
      return ir::seq({call("token_init", {address(full_, {s}), at(1)}),
                      call("token_init", {address(empty_, {s}), at(4 * s_.groups)})});
    }));
    Stmt s =
        ir::seq({start, call("sync", {ir::make_string("shared")}),
                 role("copy", 0, 128, kCopying,
                      ir::if_then(ir::eq(thread_, at(0)), in_order(1, [&] { return copy(); }))),
                 role("multiply", 128, s_.threads(), kMultiplying, multiply())});
    std::vector<ir::Buffer> memory = {empty_, full_, at_, ring_b_, ring_a_};
    if (s_.out == Out::copied) memory.insert(memory.begin() + 3, staged_);
    for (const ir::Buffer& b : memory) s = ir::allocate(b, s);
    return s;
  }

  Stmt role(const char* name, std::int64_t begin, std::int64_t end, std::int64_t registers,
            Stmt body) const {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = name;
    block->execution = {"threadIdx.x", begin, end};
    if (s_.groups > 1) block->annotations = ir::with_annotation({}, "registers", registers);
    block->body = std::move(body);
    return ir::block_realize({}, ir::make_bool(true), block);
  }

  // ---- the ring: at_[0] is the slot, at_[1] the parity to wait for, at_[2] of multiplications the
  // slot before. Of copies at_[2] to at_[4] count the places of a step, since divisions would take
  // longer than a small tile's products: of patches along the window's x and y and 64 channels
  // (innermost), of places the patch along x, y and images.

  Expr ring(int i) const { return ir::load(at_, {at(i)}); }
  Stmt set_ring(int i, const Expr& v) const { return ir::store(at_, v, {at(i)}); }
  Stmt advance() const {
    return ir::seq({set_ring(0, ring(0) + at(1)),
                    ir::if_then(ir::eq(ring(0), at(s_.stages)),
                                ir::seq({set_ring(0, at(0)), set_ring(1, at(1) - ring(1))}))});
  }

  // ---- tiles in order

  struct Tile {
    Expr m, n, column, batch, first, last, which;
    Expr group, inner;  // the batch of its group
    /// Of a phase along x and y: the remainder, the first of its places of the window and how many
    /// there are, from one to the next, results that lie before, how far before a result the first
    /// place's summand lies.
    Expr rest[2], tap[2], taps[2], every[2], skipped[2], far[2];
  } tile_;

  void enter_phase(Names& let) {
    const Expr windows[2] = {of("window"), ir::div(of("turned"), of("window"))},
               before[2] = {of("before_x"), of("before_y")};
    const char *gaps[2] = {"gap_x", "gap_y"}, *commons[2] = {"common_x", "common_y"},
               *inverses[2] = {"inverse_x", "inverse_y"};
    for (int i = 0; i < 2; ++i) {
      const Expr step = at(s_.phases[i]), common = of(commons[i]);
      auto count = [&](const Expr& places, const Expr& apart) {
        return ir::div(ir::max(places + apart - at(1), at(0)), apart);
      };
      const Expr rest = let(
          "remainder", i == 0 ? mod(tile_.inner, step) : ir::div(tile_.inner, at(s_.phases[0])));
      const Expr every = let("every", ir::div(step, common));
      const Expr tap = let("tap", mod(ir::div(rest, common) * of(inverses[i]), every));
      tile_.taps[i] = let("taps", ir::select(ir::eq(mod(rest, common), at(0)),
                                             count(windows[i] - tap, every), at(0)));
      tile_.skipped[i] = let("skipped", count(before[i] - rest, step));
      tile_.far[i] = let("far", ir::div(tap * of(gaps[i]) * common - rest, step));
      tile_.rest[i] = rest, tile_.every[i] = every, tile_.tap[i] = tap;
    }
    tile_.first = at(0);
    tile_.last = let("last", of("chunks") * tile_.taps[0] * tile_.taps[1]);
  }

  /// Every tile that is this block's turn; kTogether rows of tiles follow one another.
  template <typename Body>
  Stmt in_order(std::int64_t parity, Body&& body) {
    const Expr total = of("tiles_m") * of("tiles_n") * of("parts") * of("batches");
    Names outer{p_, {}};
    const Expr turns = outer("turns", ir::div(total - block_ + of("blocks") - at(1), of("blocks")));
    Stmt loop = p_.loop("turn", turns, [&](const Expr& turn) {
      turn_ = turn;
      Names let{p_, {}};
      const Expr area = let("area", of("tiles_m") * of("tiles_n"));
      const Expr t = let("t", block_ + turn * of("blocks"));
      const Expr z = let("z", ir::div(t, area)), place = let("place", mod(t, area));
      const Expr wide = let("wide", of("tiles_n") * at(kTogether));
      const Expr band = let("band", ir::div(place, wide)), in = let("in", mod(place, wide));
      const Expr high = let("high", ir::min(at(kTogether), of("tiles_m") - band * at(kTogether)));
      tile_.m = let("m0", (band * at(kTogether) + mod(in, high)) * at(64 * s_.groups));
      tile_.column = let("tile_n", ir::div(in, high));
      tile_.n = let("n0", tile_.column * at(s_.columns));
      tile_.which = let("which", mod(z, of("parts")));
      tile_.batch = let("batch", ir::div(z, of("parts")));
      tile_.group = s_.grouped ? let("of_group", ir::div(tile_.batch, of("each"))) : at(0);
      tile_.inner = s_.grouped ? let("inner_batch", mod(tile_.batch, of("each"))) : tile_.batch;
      if (s_.phased()) {
        enter_phase(let);
      } else {
        tile_.first = let("first", tile_.which * of("part"));
        tile_.last = let("last", ir::min(tile_.first + of("part"), of("steps")));
      }
      return let.around(body());
    });
    return outer.around(ir::seq({set_ring(0, at(0)), set_ring(1, at(parity)), loop}));
  }
  Stmt each_step(const std::function<Stmt(const Expr&)>& body) const {
    return p_.loop("step", tile_.last - tile_.first,
                   [&](const Expr& i) { return body(tile_.first + i); });
  }

  // ---- the copying role

  Stmt copy() {
    Names let{p_, {}};
    std::vector<Stmt> before;
    if (s_.mode == Mode::product) {
      const Expr b0 = mod(tile_.batch, of("inner")), b1 = ir::div(tile_.batch, of("inner"));
      for (const char* operand : {"a", "b"}) {
        batch_.push_back(let(operand[0] == 'a' ? "a0" : "c0", b0 * of(cat("move_", operand, 0))));
        batch_.push_back(let(operand[0] == 'a' ? "a1" : "c1", b1 * of(cat("move_", operand, 1))));
      }
    } else if (s_.mode == Mode::patches) {
      const Expr tap = let("tap", ir::div(tile_.first, of("chunks")));
      before = {set_ring(2, mod(tap, across())), set_ring(3, ir::div(tap, across())),
                set_ring(4, mod(tile_.first, of("chunks")))};
      for (int g = 0; g < s_.groups; ++g) {
        const Expr p = ir::div(tile_.m, at(64)) + at(g);
        patch_.push_back(patch_at(let, p));
        const Expr margins[2] = {of("before_x"), of("before_y")};
        for (int i = 0; i < 2; ++i) {
          Expr& first = patch_.back()[static_cast<std::size_t>(i)];
          // Of a phase the last place of the window comes first.
          first = let(i == 0 ? "px" : "py", s_.phased() ? first + tile_.skipped[i] - tile_.far[i] -
                                                              (tile_.taps[i] - at(1)) * gap(i)
                                                        : first * at(s_.step[i]) - margins[i]);
        }
      }
    } else {
      const Expr line = let("line", ir::div(tile_.first, of("patches_w")));
      before = {set_ring(2, mod(tile_.first, of("patches_w"))),
                set_ring(3, mod(line, of("patches_h"))),
                set_ring(4, ir::div(line, of("patches_h")))};
      window_[0] = let("wx", mod(tile_.inner, of("window")) * gap(0) - of("before_x"));
      window_[1] = let("wy", ir::div(tile_.inner, of("window")) * gap(1) - of("before_y"));
    }
    before.push_back(each_step([&](const Expr& k) {
      const Stmt step = bring(k);
      if (s_.mode == Mode::product) return step;
      return ir::seq({step, s_.mode == Mode::patches ? next_channels() : next_patch()});
    }));
    return let.around(ir::seq(std::move(before)));
  }

  /// Where the p-th patch begins: x, y, image.
  std::vector<Expr> patch_at(Names& let, const Expr& p) const {
    const Expr rest = let("rest", ir::div(p, of("patches_w")));
    return {let("x", mod(p, of("patches_w")) * at(s_.patch[0])),
            let("y", mod(rest, of("patches_h")) * at(s_.patch[1])),
            let("image", ir::div(rest, of("patches_h")) * at(s_.patch[2]))};
  }

  // ---- pieces: each operand has a ring of its own, in which a step's planes follow one another;
  // at_[0] is the number of the step's first one, of both rings, modulo two turns

  /// Slots with tokens of their own: those of b follow those of a.
  std::int64_t tokens() const { return s_.pieces ? 2 * s_.stages : s_.stages; }
  Expr piece_number(int i) const { return mod(ring(0) + at(i), at(2 * s_.stages)); }
  Expr piece_slot(int i) const { return mod(piece_number(i), at(s_.stages)); }
  /// The turn of the ring, 0 or 1.
  Expr piece_turn(int i) const { return ir::div(piece_number(i), at(s_.stages)); }
  Expr token_of(const ir::Buffer& tokens, bool b, int i) const {
    return address(tokens, {piece_slot(i) + at(b ? s_.stages : 0)});
  }
  Stmt next_pieces() const { return set_ring(0, piece_number(kPiecePlanes)); }

  /// at_[i] one further; at its end back to 0, and `then`.
  Stmt count(int i, const Expr& end, const Stmt& then) const {
    return ir::seq({set_ring(i, ring(i) + at(1)),
                    ir::if_then(ir::eq(ring(i), end), ir::seq({set_ring(i, at(0)), then}))});
  }
  /// Of patches: 64 channels further, or the window's next place.
  Stmt next_channels() const {
    return count(4, of("chunks"), count(2, across(), set_ring(3, ring(3) + at(1))));
  }
  Stmt next_patch() const {
    return count(2, of("patches_w"), count(3, of("patches_h"), set_ring(4, ring(4) + at(1))));
  }
  /// From one place of the window to the next, in what is copied.
  const Expr& gap(int i) const { return of(i == 0 ? "gap_x" : "gap_y"); }
  /// Places of the window along x.
  Expr across() const { return s_.phased() ? ir::max(tile_.taps[0], at(1)) : of("window"); }

  /// Boxes that make a tile: rows of it, and where they begin in the operand.
  struct Box4 {
    int row;
    ir::Exprs at;
  };
  /// The tiles of a step, of pieces all planes of both operands, in the order of their use.
  Stmt bring(const Expr& k) {
    Names let{p_, {}};
    std::vector<Box4> boxes_a, boxes_b;
    auto load_a = [&](int row, const Expr& c0, const Expr& c1, const Expr& c2, const Expr& c3) {
      boxes_a.push_back({row, {c0, c1, c2, c3}});
    };
    auto load_b = [&](int row, const Expr& c0, const Expr& c1, const Expr& c2, const Expr& c3) {
      boxes_b.push_back({row, {c0, c1, c2, c3}});
    };
    if (s_.mode == Mode::product) {
      const Expr first = let("k0", k * at(64));
      for (int g = 0; s_.a_along_m && g < s_.groups; ++g)
        load_a(g * 64, tile_.m + at(g * 64), first, batch_[0], batch_[1]);
      if (!s_.a_along_m) load_a(0, first, tile_.m, batch_[0], batch_[1]);
      for (int j = 0; s_.b_along_n && j < s_.columns; j += 64)
        load_b(j, tile_.n + at(j), first, batch_[2], batch_[3]);
      if (!s_.b_along_n) load_b(0, first, tile_.n, batch_[2], batch_[3]);
    } else if (s_.mode == Mode::patches) {
      const Expr tx = let("tx", ring(2)), ty = let("ty", ring(3)),
                 from = let("channel", ring(4) * at(64));
      for (int g = 0; g < s_.groups; ++g) {
        const std::vector<Expr>& p = patch_[static_cast<std::size_t>(g)];
        load_a(g * 64, from, p[0] + tx * gap(0), p[1] + ty * gap(1), p[2]);
      }
      // Of a window that is turned around the last place comes first.
      auto place = [&](const char* name, const Expr& t, const Expr& extent) {
        return let(name, ir::select(ir::gt(of("turned"), at(0)), extent - at(1) - t, t));
      };
      auto tap_of = [&](const char* name, int i, const Expr& t) {
        return let(name, tile_.tap[i] + (tile_.taps[i] - at(1) - t) * tile_.every[i]);
      };
      const Expr bx = s_.phased() ? tap_of("bx", 0, tx) : place("bx", tx, of("window")),
                 by = s_.phased() ? tap_of("by", 1, ty)
                                  : place("by", ty, ir::div(of("turned"), of("window")));
      for (int j = 0; s_.b_along_n && j < s_.columns; j += 64)
        load_b(j, tile_.n + at(j), from, bx, by);
      if (!s_.b_along_n) load_b(0, from, tile_.n, bx, by);
    } else {
      const Expr p[] = {let("x", ring(2) * at(s_.patch[0])), let("y", ring(3) * at(s_.patch[1])),
                        let("image", ring(4) * at(s_.patch[2]))};
      for (int g = 0; g < s_.groups; ++g)
        load_a(g * 64, tile_.m + at(g * 64), p[0] * at(s_.step[0]) + window_[0],
               p[1] * at(s_.step[1]) + window_[1], p[2]);
      for (int j = 0; j < s_.columns; j += 64) load_b(j, tile_.n + at(j), p[0], p[1], p[2]);
    }
    std::vector<Stmt> all;
    auto load = [&](bool b, const Expr& slot, const Expr& token, const Expr& outermost) {
      for (const Box4& box : b ? boxes_b : boxes_a) {
        ir::Exprs args{address(b ? ring_b_ : ring_a_, {slot, at(box.row), at(0)}),
                       b ? map_b_ : map_a_, token};
        args.insert(args.end(), box.at.begin(), box.at.end());
        if (outermost) args.push_back(outermost);
        all.push_back(call("bulk_load", std::move(args)));
      }
    };
    const std::int64_t bytes_a = 64 * s_.groups * 128, bytes_b = s_.columns * 128;
    if (s_.pieces) {
      for (int i = 0; i < kPiecePlanes; ++i) {
        for (const bool b : {false, true}) {
          const Expr token = token_of(full_, b, i);
          all.push_back(call("token_wait", {token_of(empty_, b, i), at(1) - piece_turn(i)}));
          all.push_back(call("token_expect", {token, at(b ? bytes_b : bytes_a)}));
          load(b, piece_slot(i), token, at(b ? kPieceOrderB[i] : kPieceOrderA[i]));
        }
      }
      all.push_back(next_pieces());
      return let.around(ir::seq(std::move(all)));
    }
    const Expr slot = let("slot", ring(0)), token = address(full_, {slot});
    all.push_back(call("token_wait", {address(empty_, {slot}), ring(1)}));
    all.push_back(call("token_expect", {token, at(bytes_a + bytes_b)}));
    const Expr group = s_.grouped ? tile_.group : Expr();
    load(false, slot, token, group), load(true, slot, token, group);
    all.push_back(advance());
    return let.around(ir::seq(std::move(all)));
  }

  // ---- the multiplying role

  Stmt wait(const ir::Var& token, std::int64_t outstanding) const {
    return make_ref<const ir::WaitNode>(token, ir::make_int(outstanding), "");
  }
  Stmt leader(std::int64_t of_threads, Stmt body) const {
    return ir::if_then(ir::eq(mod(thread_, at(of_threads)), at(0)), std::move(body));
  }

  Stmt multiply() {
    Names let{p_, {}};
    group_ = let("group", ir::div(thread_, at(128)) - at(1));
    Stmt tiles = in_order(0, [&] {
      Stmt steps =
          s_.pieces
              ? promoted()
              : ir::seq({each_step([&](const Expr& k) { return add(ir::gt(k, tile_.first)); }),
                         finished()});
      // A phase may have no place of the window.
      if (s_.phased() && !s_.pieces)
        steps = ir::if_then(ir::lt(tile_.first, tile_.last), steps, each_sum(ir::make_float(0)));
      Stmt s = ir::seq({steps, s_.out == Out::copied ? send()
                               : s_.by_steps()       ? write_by_steps()
                                                     : write()});
      if (s_.pieces) s = ir::allocate(added_, s);
      return ir::allocate(sums_, s);
    });
    if (s_.out == Out::copied) tiles = ir::seq({tiles, leader(128, wait(sent_, 0))});
    return let.around(tiles);
  }

  /// All products that were started; the slot of the last one goes back to the copies.
  Stmt finished() const { return ir::seq({wait(multiplied_, 0), release()}); }
  Stmt release() const { return leader(32, call("token_signal", {address(empty_, {ring(2)})})); }

  /// `start`, or what was added up.
  Stmt each_sum(const Expr& start) const {
    return p_.unrolled("j", s_.columns / 8, [&](const Expr& j) {
      return p_.unrolled("h", 2, [&](const Expr& h) {
        return p_.unrolled("e", 2, [&](const Expr& e) {
          const ir::Exprs i{j, h, e};
          return ir::store(sums_, start ? start : ir::load(sums_, i) + ir::load(added_, i), i);
        });
      });
    });
  }

  /// Tile instructions cut off what a sum does not hold: threads add up the sums of 64 terms.
  Stmt promoted() {
    return ir::seq({each_sum(ir::make_float(0)), each_step([&](const Expr&) {
                      return ir::seq({pairs(), each_sum(nullptr)});
                    })});
  }

  /// The products of a step's pieces. Each shares an operand with the one before it; the other one
  /// goes back to the copies as soon as that one is done.
  Stmt pairs() const {
    std::vector<Stmt> all;
    for (int i = 0; i < rules::kPieceProducts; ++i) {
      const int a = kPieceUseA[i], b = kPieceUseB[i];
      const bool new_a = i == 0 || a != kPieceUseA[i - 1], new_b = i == 0 || b != kPieceUseB[i - 1];
      if (new_a) all.push_back(call("token_wait", {token_of(full_, false, a), piece_turn(a)}));
      if (new_b) all.push_back(call("token_wait", {token_of(full_, true, b), piece_turn(b)}));
      all.push_back(started(piece_slot(a), piece_slot(b), ir::make_bool(i > 0)));
      if (i == 0) continue;
      all.push_back(wait(multiplied_, 1));
      if (new_a) all.push_back(give_back(false, kPieceUseA[i - 1]));
      if (new_b) all.push_back(give_back(true, kPieceUseB[i - 1]));
    }
    constexpr int kLast = rules::kPieceProducts - 1;
    all.insert(all.end(), {wait(multiplied_, 0), give_back(false, kPieceUseA[kLast]),
                           give_back(true, kPieceUseB[kLast]), next_pieces()});
    return ir::seq(std::move(all));
  }
  Stmt give_back(bool b, int i) const {
    return leader(32, call("token_signal", {token_of(empty_, b, i)}));
  }

  /// A product of tiles in the queue; `again`: to what the one before it left.
  Stmt started(const Expr& slot_a, const Expr& slot_b, const Expr& again) const {
    return make_ref<const ir::AsyncNode>(
        "wgmma", multiplied_,
        call("tile_multiply", {address(added_, {at(0), at(0), at(0)}),
                               address(ring_a_, {slot_a, group_ * at(64), at(0)}),
                               address(ring_b_, {slot_b, at(0), at(0)}), at(s_.columns),
                               at(s_.a_along_m || s_.mode == Mode::places),
                               at(s_.b_along_n || s_.mode == Mode::places), again}));
  }

  /// The product of the next slot; `again`: to what the one before it left.
  Stmt add(const Expr& again) {
    Names let{p_, {}};
    const Expr slot = let("slot", ring(0));
    return let.around(ir::seq({call("token_wait", {address(full_, {slot}), ring(1)}),
                               started(slot, slot, again), wait(multiplied_, 1),
                               // The step before is read: its slot goes back to the copies.
                               ir::if_then(again, release()), set_ring(2, slot), advance()}));
  }

  /// By the copy engine, 64 columns after the others.
  Stmt send() {
    Names let{p_, {}};
    std::vector<Expr> p;
    const bool patches = s_.mode == Mode::patches;
    if (patches) p = patch_at(let, ir::div(tile_.m, at(64)) + group_);
    const Expr row = let("row", tile_.m + group_ * at(64));
    std::vector<Stmt> all;
    const int pieces = s_.columns / 64;
    for (int i = 0; i < pieces; ++i) {
      const Expr half = pieces % 2 ? mod(turn_ * at(pieces) + at(i), at(2)) : at(i % 2);
      const Expr from = address(staged_, {group_, half, at(0), at(0)});
      const Expr to = tile_.n + at(i * 64);
      ir::Exprs args{map_out_, from, to};
      if (patches) args.insert(args.end(), p.begin(), p.end());
      else args.insert(args.end(), {row, tile_.inner, tile_.group});
      if (s_.grouped) args.push_back(patches ? tile_.group : at(0));
      Stmt store = call("bulk_store", std::move(args));
      if (!patches) store = ir::if_then(ir::lt(row, of("m")), store);
      // A group also where nothing is sent: waits count groups.
      const Stmt started = make_ref<const ir::AsyncNode>("bulk", sent_, store);
      const Stmt meet = call("meet", {group_ + at(1), at(128)});
      all.insert(all.end(), {leader(128, wait(sent_, 1)), meet,
                             call("tile_store", {from, address(sums_, {at(i * 8), at(0), at(0)})}),
                             call("bulk_fence", {}), meet, leader(128, started)});
    }
    return let.around(ir::seq(std::move(all)));
  }

  /// By threads, which hold rows warp * 16 + lane / 4 and 8 further, columns lane % 4 * 2 and 1
  /// further of each 8. Columns go in pairs where rows hold an even number of them.
  Stmt write() {
    Names let{p_, {}};
    const Expr lane = let("lane", mod(thread_, at(32))),
               warp = let("warp", mod(ir::div(thread_, at(32)), at(4)));
    const Expr row = let("row", tile_.m + group_ * at(64) + warp * at(16) + ir::div(lane, at(4)));
    const Expr pair = let("pair", tile_.column * at(s_.columns / 2) + mod(lane, at(4)));
    const Expr half = let("half", ir::div(of("n"), at(2)));
    const DType wide = dtypes::int64;
    // Rows of a convolution's window lie beside one another, those of patches where the place does.
    const bool patches = s_.mode == Mode::patches, places = s_.mode == Mode::places;
    std::vector<Expr> p;
    if (patches) p = patch_at(let, ir::div(tile_.m, at(64)) + group_);
    // Groups lie beside one another within an image.
    const Expr each = s_.grouped ? of("each") : of("batches"),
               groups = s_.grouped ? let("groups", ir::div(of("batches"), each)) : at(1);
    const Expr slab = let("slab", places    ? tile_.which * groups + tile_.group
                                  : patches ? tile_.which * groups
                                            : tile_.which * of("batches") + tile_.batch);
    const Expr in_patch = let("in_patch", warp * at(16) + ir::div(lane, at(4)));
    auto place = [&](const Expr& h) -> std::array<Expr, 3> {
      const Expr r = in_patch + h * at(8);
      const std::int64_t across = s_.patch[0], area = across * s_.patch[1];
      return {p[0] + mod(r, at(across)), p[1] + ir::div(mod(r, at(area)), at(across)),
              p[2] + ir::div(r, at(area))};
    };
    auto line = [&](const Expr& h) {
      Expr at_row = ir::cast(wide, row + h * at(8));
      if (patches) {
        const auto [x, y, image] = place(h);
        at_row = ir::cast(wide, ((image * groups + tile_.group) * of("high") + y) * of("wide") + x);
      }
      const Expr all = ir::cast(wide, slab) * ir::cast(wide, of("m")) + at_row;
      return places ? all * ir::cast(wide, each) + ir::cast(wide, tile_.inner) : all;
    };
    auto counts = [&](const Expr& h) {
      if (!patches) return ir::lt(row + h * at(8), of("m"));
      const auto [x, y, image] = place(h);
      return ir::logical_and(ir::logical_and(ir::lt(x, of("wide")), ir::lt(y, of("high"))),
                             ir::lt((image * of("high") + y) * of("wide") + x, of("m")));
    };
    auto store = [&](const Expr& j, const Expr& h, const Expr& e, const Expr& to) {
      return ir::store(out_, result({j, h, e}), {to});
    };
    auto rows = [&](auto&& columns) {
      return p_.unrolled("h", 2, [&](const Expr& h) {
        return ir::if_then(counts(h), p_.unrolled("j", s_.columns / 8, [&](const Expr& j) {
          return columns(h, j, pair + j * at(4));
        }));
      });
    };
    Stmt pairs = rows([&](const Expr& h, const Expr& j, const Expr& at_pair) {
      const Expr first = line(h) * ir::cast(wide, half) + ir::cast(wide, at_pair);
      return ir::if_then(ir::lt(at_pair, half),
                         p_.loop(
                             "e", at(2),
                             [&](const Expr& e) {
                               return store(j, h, e, first * ir::make_int(2) + ir::cast(wide, e));
                             },
                             ir::ForKind::vectorized));
    });
    Stmt single = rows([&](const Expr& h, const Expr& j, const Expr& at_pair) {
      return p_.unrolled("e", 2, [&](const Expr& e) {
        const Expr column = at_pair * at(2) + e;
        return ir::if_then(
            ir::lt(column, of("n")),
            store(j, h, e, line(h) * ir::cast(wide, of("n")) + ir::cast(wide, column)));
      });
    });
    return let.around(ir::if_then(ir::eq(mod(of("n"), at(2)), at(0)), pairs, single));
  }

  Expr result(const ir::Exprs& sum) const {
    const Elem elem = s_.out == Out::partial       ? Elem::float32
                      : s_.type == dtypes::float16 ? Elem::float16
                                                   : Elem::bfloat16;
    return convert_value(ir::load(sums_, sum), elem);
  }

  /// Patches whose results lie at steps of their own.
  Stmt write_by_steps() {
    Names let{p_, {}};
    const Expr lane = let("lane", mod(thread_, at(32))),
               warp = let("warp", mod(ir::div(thread_, at(32)), at(4))),
               first = let("first", tile_.n + mod(lane, at(4)) * at(2));
    const std::vector<Expr> p = patch_at(let, ir::div(tile_.m, at(64)) + group_);
    const Expr in_patch = let("in_patch", warp * at(16) + ir::div(lane, at(4)));
    const DType wide = dtypes::int64;
    auto far = [&](const Expr& i, const char* step) {
      return ir::cast(wide, i) * ir::cast(wide, of(step));
    };
    const std::int64_t across = s_.patch[0], area = across * s_.patch[1];
    return let.around(p_.unrolled("h", 2, [&](const Expr& h) {
      Names place{p_, {}};
      auto in_phase = [&](int i, const Expr& v, const char* before) {
        if (!s_.phased()) return v;
        return (v + tile_.skipped[i]) * at(s_.phases[i]) + tile_.rest[i] - of(before);
      };
      const Expr r = place("r", in_patch + h * at(8)),
                 x = place("px", in_phase(0, p[0] + mod(r, at(across)), "before_x")),
                 y = place("py",
                           in_phase(1, p[1] + ir::div(mod(r, at(area)), at(across)), "before_y")),
                 image = place("pi", p[2] + ir::div(r, at(area)));
      const Expr counts =
          ir::logical_and(ir::logical_and(ir::lt(x, of("wide")), ir::lt(y, of("high"))),
                          ir::lt((image * of("high") + y) * of("wide") + x, of("m")));
      const ir::Var line = ir::make_var("line", wide);
      Stmt row = p_.unrolled("j", s_.columns / 8, [&](const Expr& j) {
        return p_.unrolled("e", 2, [&](const Expr& e) {
          const Expr column = first + j * at(8) + e;
          return ir::if_then(
              ir::lt(column, of("n")),
              ir::store(out_, result({j, h, e}), {Expr(line) + far(column, "to_channel")}));
        });
      });
      row = ir::let_stmt(line,
                         far(tile_.which, "slab") + far(tile_.group, "to_group") +
                             far(image, "to_image") + far(y, "to_y") + far(x, "to_x"),
                         row);
      return place.around(ir::if_then(counts, row));
    }));
  }

  const WarpSpecializedGemm& s_;
  Builder p_;
  ir::Buffer a_, b_, out_, ring_a_, ring_b_, staged_, full_, empty_, sums_, added_, at_;
  ir::Var map_a_, map_b_, map_out_, multiplied_, sent_;
  std::vector<std::pair<ir::Var, Expr>> maps_;
  std::map<std::string_view, Expr> numbers_;
  Expr block_, thread_, turn_, group_;
  std::vector<Expr> batch_;               // of a and b: inner, outer
  std::vector<std::vector<Expr>> patch_;  // of each group: x, y, image
  Expr window_[2];
};

}  // namespace

ir::PrimFunc warp_specialized_kernel(const WarpSpecializedGemm& spec) {
  return Kernel(spec).build();
}

}  // namespace weft::device
