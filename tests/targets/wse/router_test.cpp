// SPDX-License-Identifier: Apache-2.0
// Routers: switches, pop modes, filters, multicast, swaps, teardown, and the faults that name the
// culprit.
#include <gtest/gtest.h>

#include <functional>

#include "fabric_builder.h"
#include "weft/targets/wse/fabric.h"

namespace weft::wse::testing {
namespace {

std::uint32_t word(Fabric& f, int x, int y, int address) {
  std::uint32_t v = 0;
  f.read_memory(x, y, static_cast<std::uint32_t>(address), &v, 4);
  return v;
}

/// A data task that appends each wavelet of `color` to the array at 128; its length is at 64.
void add_recorder(Builder& b, int color) {
  b.imm(Op::ldi, 1, 64)
      .op(Op::ld, Ty::u32, 2, 1, 0)
      .imm(Op::ldi, 3, 128)
      .op(Op::stx, Ty::u32, 0, 3, 2);
  b.imm(Op::ldi, 4, 1).op(Op::add, Ty::u32, 2, 2, 4).op(Op::st, Ty::u32, 2, 1, 0);
  b.data_task(color, b.end("record"), {Ty::u32});
}

std::vector<std::uint32_t> recorded(Fabric& f, int x, int y) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < word(f, x, y, 64); ++i)
    out.push_back(word(f, x, y, static_cast<int>(128 + 4 * i)));
  return out;
}

/// A program whose main task sends the values (control ones marked) on `color`.
Builder sender(int color, const std::vector<std::pair<std::uint32_t, bool>>& values) {
  Builder b("send.csl");
  for (auto [v, control] : values) {
    b.p.constants.push_back(v);
    b.imm(Op::ldc, 0, static_cast<std::int32_t>(b.p.constants.size()) - 1);
    b.dsd(0, Builder::fab(true, color, 2, 1, control ? Dsd::kControl : 0));
    b.bulk(Bulk::mov32, Builder::d(0), Builder::r(0));
  }
  b.local_task(8, b.end("main"), true);
  return b;
}

constexpr std::uint32_t kAdvance = 1u << 22, kReset = 2u << 22, kTeardown = 3u << 22,
                        kNoCe = 1u << 24, kNone = 31u << 16;

class Modes : public ::testing::TestWithParam<bool> {
 protected:
  FabricOptions options() const { return {.timed = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Timing, Modes, ::testing::Bool());

TEST_P(Modes, RingSwitchSendsToEachNeighbourInTurn) {
  LayoutBuilder l(3, 3);
  std::vector<std::pair<std::uint32_t, bool>> v;
  for (std::uint32_t i = 0; i < 6; ++i) {
    v.push_back({kAdvance | kNoCe | kNone, true});
    v.push_back({100 + i, false});
  }
  ColorRoute r = route(0, R, N);
  r.route.positions = {SwitchPosition{true, 0, W}, SwitchPosition{true, 0, E},
                       SwitchPosition{true, 0, S}};
  r.route.current = 1;
  r.route.ring = true;
  l.tile(1, 1, l.add(sender(0, v).p), l.routes({r}));
  Builder rec;
  add_recorder(rec, 0);
  std::uint32_t p = l.add(rec.p);
  l.tile(1, 0, p, l.routes({route(0, S, R)}));
  l.tile(0, 1, p, l.routes({route(0, E, R)}));
  l.tile(2, 1, p, l.routes({route(0, W, R)}));
  l.tile(1, 2, p, l.routes({route(0, N, R)}));
  Fabric f(l.l, options());
  f.start();
  EXPECT_EQ(f.run(), Stop::quiet);
  // The advance itself leaves through the position in force before it.
  EXPECT_EQ(recorded(f, 2, 1), (std::vector<std::uint32_t>{100, 104}));
  EXPECT_EQ(recorded(f, 1, 2), (std::vector<std::uint32_t>{101, 105}));
  EXPECT_EQ(recorded(f, 1, 0), (std::vector<std::uint32_t>{102}));
  EXPECT_EQ(recorded(f, 0, 1), (std::vector<std::uint32_t>{103}));
}

TEST_P(Modes, StickySwitchStaysAndResetGoesBack) {
  LayoutBuilder l(3, 1);
  ColorRoute r = route(0, R, W);
  r.route.positions[0] = {true, 0, E};
  l.tile(1, 0,
         l.add(sender(0, {{1, false},
                          {kAdvance | kNoCe | kNone, true},
                          {2, false},
                          {kAdvance | kNoCe | kNone, true},
                          {3, false},
                          {kReset | kNoCe | kNone, true},
                          {4, false}})
                   .p),
         l.routes({r}));
  Builder rec;
  add_recorder(rec, 0);
  std::uint32_t p = l.add(rec.p);
  l.tile(0, 0, p, l.routes({route(0, E, R)}));
  l.tile(2, 0, p, l.routes({route(0, W, R)}));
  Fabric f(l.l, options());
  f.start();
  f.run();
  EXPECT_EQ(recorded(f, 0, 0), (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(recorded(f, 2, 0), (std::vector<std::uint32_t>{2, 3}));
}

TEST_P(Modes, PopOnAdvanceMovesOneRouterPerCommand) {
  // Two ADV commands: with pop on advance the sender uses the first, the next router the second.
  for (PopMode pop : {PopMode::on_advance, PopMode::always, PopMode::none}) {
    LayoutBuilder l(4, 1);
    std::uint32_t two = kAdvance | kNoCe | 1u << 25 | 1u << 27 | kNone;
    auto mk = [&](std::uint8_t rx, std::uint8_t tx, std::uint8_t tx1) {
      ColorRoute r = route(0, rx, tx);
      r.route.positions[0] = {true, 0, tx1};
      r.route.pop = pop;
      return l.routes({r});
    };
    l.tile(0, 0, l.add(sender(0, {{two, true}, {7, false}}).p), l.routes({[&] {
      ColorRoute r = route(0, R, E);
      r.route.pop = pop;
      r.route.positions[0] = {true, 0, E};
      return r;
    }()}));
    Builder rec;
    add_recorder(rec, 0);
    std::uint32_t p = l.add(rec.p);
    l.tile(1, 0, p, mk(W, E, R));
    l.tile(2, 0, p, mk(W, E, R));
    l.tile(3, 0, p, l.routes({route(0, W, R)}));
    Fabric f(l.l, options());
    f.start();
    f.run();
    // Router 1 sees the second ADV (popped) or the first (not popped) and turns to its ramp either
    // way.
    EXPECT_EQ(recorded(f, 1, 0), (std::vector<std::uint32_t>{7})) << static_cast<int>(pop);
    EXPECT_EQ(recorded(f, 2, 0).size(), 0u);
  }
}

TEST_P(Modes, RangeFilterKeepsItsShareAndForwardsAll) {
  LayoutBuilder l(4, 1);
  std::vector<std::pair<std::uint32_t, bool>> v;
  for (std::uint32_t i = 0; i < 12; ++i) v.push_back({i << 16 | (10 + i), false});
  l.tile(0, 0, l.add(sender(1, v).p), l.routes({route(1, R, E)}));
  Builder rec;
  add_recorder(rec, 1);
  std::uint32_t p = l.add(rec.p);
  for (int x = 1; x < 4; ++x) {
    ColorRoute r = route(1, W, x < 3 ? R | E : R);
    r.route.filter.kind = Filter::range;
    r.route.filter.min_index = static_cast<std::uint16_t>(3 * x);
    r.route.filter.max_index = static_cast<std::uint16_t>(3 * x + 2);
    l.tile(x, 0, p, l.routes({r}));
  }
  Fabric f(l.l, options());
  f.start();
  f.run();
  for (std::uint32_t x = 1; x < 4; ++x) {
    std::vector<std::uint32_t> want;
    for (std::uint32_t i = 3 * x; i < 3 * x + 3; ++i) want.push_back(i << 16 | (10 + i));
    EXPECT_EQ(recorded(f, static_cast<int>(x), 0), want);
  }
}

TEST_P(Modes, CounterFilters) {
  auto run = [&](Filter filter) {
    LayoutBuilder l(2, 1);
    std::vector<std::pair<std::uint32_t, bool>> v;
    for (std::uint32_t i = 0; i < 14; ++i) v.push_back({i, false});
    l.tile(0, 0, l.add(sender(1, v).p), l.routes({route(1, R, E)}));
    Builder rec;
    add_recorder(rec, 1);
    ColorRoute r = route(1, W, R);
    r.route.filter = filter;
    l.tile(1, 0, l.add(rec.p), l.routes({r}));
    Fabric f(l.l, options());
    f.start();
    f.run();
    return recorded(f, 1, 0);
  };
  Filter c;
  c.kind = Filter::counter;
  c.count_data = true;
  c.limit1 = 3;       // counts 0, 1, 2, 3, 0, ...
  c.max_counter = 1;  // passes counts 0 and 1
  EXPECT_EQ(run(c), (std::vector<std::uint32_t>{0, 1, 4, 5, 8, 9, 12, 13}));
  c.init_counter = 2;
  EXPECT_EQ(run(c), (std::vector<std::uint32_t>{2, 3, 6, 7, 10, 11}));
  c.init_counter = 0;
  c.kind = Filter::sparse_counter;
  c.limit2 = 5;
  // One round to the first limit, one to the second, and then everything passes.
  EXPECT_EQ(run(c), (std::vector<std::uint32_t>{0, 1, 4, 5, 10, 11, 12, 13}));
}

TEST_P(Modes, MulticastReachesEveryoneInOrder) {
  LayoutBuilder l(5, 1);
  std::vector<std::pair<std::uint32_t, bool>> v;
  std::vector<std::uint32_t> want;
  for (std::uint32_t i = 0; i < 50; ++i) {
    v.push_back({i * i, false});
    want.push_back(i * i);
  }
  l.tile(0, 0, l.add(sender(1, v).p), l.routes({route(1, R, E)}));
  Builder rec;
  add_recorder(rec, 1);
  std::uint32_t p = l.add(rec.p);
  for (int x = 1; x < 5; ++x) l.tile(x, 0, p, l.routes({route(1, W, x < 4 ? R | E : R)}));
  std::vector<std::int64_t> books;
  for (bool express : {true, false}) {
    FabricOptions o = options();
    o.express = express;
    Fabric f(l.l, o);
    f.start();
    f.run();
    for (int x = 1; x < 5; ++x) EXPECT_EQ(recorded(f, x, 0), want) << x;
    runtime::StatReport s = f.stats();
    EXPECT_FALSE(s.check_books());
    books.push_back(s.get("wavelets.east"));
    EXPECT_EQ(s.get("wavelets.ramp"), 200);
  }
  EXPECT_EQ(books[0], 200);  // 50 wavelets over four links, however they are carried
  EXPECT_EQ(books[1], 200);
}

TEST_P(Modes, ColorSwapAlternates) {
  LayoutBuilder l(4, 1);
  Builder b("swap.csl");
  add_recorder(b, 0);
  // Colour 1 adds 1000 so that the two can be told apart.
  b.p.constants.push_back(1000);
  b.imm(Op::ldi, 1, 64)
      .op(Op::ld, Ty::u32, 2, 1, 0)
      .imm(Op::ldi, 3, 128)
      .imm(Op::ldc, 5, 0)
      .op(Op::add, Ty::u32, 0, 0, 5);
  b.op(Op::stx, Ty::u32, 0, 3, 2)
      .imm(Op::ldi, 4, 1)
      .op(Op::add, Ty::u32, 2, 2, 4)
      .op(Op::st, Ty::u32, 2, 1, 0);
  b.data_task(1, b.end("record1"), {Ty::u32});
  std::uint32_t p = l.add(b.p);
  Builder s = sender(1, {{1, false}, {2, false}});
  std::uint32_t sp = l.add(s.p);
  for (int x = 0; x < 4; ++x) {
    RouteSet set;
    for (int c : {0, 1}) {
      ColorRoute r = route(c, x == 0 ? R : W, x == 3 ? R : x == 0 ? E : R | E);
      r.route.swap_x = true;
      set.push_back(r);
    }
    l.tile(x, 0, x == 0 ? sp : p, l.routes(set));
  }
  Fabric f(l.l, options());
  f.start();
  f.run();
  EXPECT_EQ(recorded(f, 1, 0), (std::vector<std::uint32_t>{1, 2}));        // 1 arrives as 0
  EXPECT_EQ(recorded(f, 2, 0), (std::vector<std::uint32_t>{1001, 1002}));  // and as 1 again
  EXPECT_EQ(recorded(f, 3, 0), (std::vector<std::uint32_t>{1, 2}));
}

TEST_P(Modes, TeardownCallsTheHandlerAndExitResumes) {
  LayoutBuilder l(2, 1);
  l.tile(0, 0, l.add(sender(1, {{5, false}, {kTeardown | kNoCe | kNone, true}, {6, false}}).p),
         l.routes({route(1, R, E)}));
  Builder b("recv.csl");
  add_recorder(b, 1);
  // The handler notes that it ran, and leaves teardown.
  b.imm(Op::ldi, 0, 77).imm(Op::stg, 0, 32, static_cast<int>(Ty::u32)).imm(Op::ldi, 1, 1);
  b.op(Op::config, Ty::u16, 2, 1, static_cast<int>(ConfigFn::teardown_exit));
  int handler = b.end("handler");
  b.p.teardown_handlers.push_back({1, static_cast<std::uint16_t>(handler)});
  // The sender's own router goes down as well: it needs a handler, too.
  l.l.programs[0].functions.push_back(b.p.functions[static_cast<std::size_t>(handler)]);
  l.l.programs[0].teardown_handlers.push_back(
      {1, static_cast<std::uint16_t>(l.l.programs[0].functions.size() - 1)});
  l.tile(1, 0, l.add(b.p), l.routes({route(1, W, R)}));
  Fabric f(l.l, options());
  f.start();
  f.run();
  EXPECT_EQ(word(f, 0, 0, 32), 77u);
  EXPECT_EQ(word(f, 1, 0, 32), 77u);
  EXPECT_EQ(recorded(f, 1, 0), (std::vector<std::uint32_t>{5, 6}));
}

template <typename F>
Error caught(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "none", "none");
}

TEST_P(Modes, RoutingFaultsNameThePlace) {
  auto run = [&](LayoutBuilder& l) {
    return caught([&] {
      Fabric f(l.l, options());
      f.start();
      f.run();
    });
  };
  {
    LayoutBuilder l(2, 1);
    l.tile(0, 0, l.add(sender(3, {{5, false}}).p), l.routes({route(3, R, E)}));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.route.none");
    EXPECT_NE(e.message().find("colour 3 is sent EAST to PE (1, 0)"), std::string::npos)
        << e.what();
  }
  {
    // A few wavelets find a place beyond the edge.
    const std::pair<std::uint32_t, bool> five{5, false};
    LayoutBuilder l(2, 1);
    l.tile(1, 0, l.add(sender(3, {five, five, five, five}).p), l.routes({route(3, R, E)}));
    EXPECT_NO_THROW({
      Fabric f(l.l, options());
      f.start();
      f.run();
    });
    LayoutBuilder more(2, 1);
    more.tile(1, 0, more.add(sender(3, {five, five, five, five, five}).p),
              more.routes({route(3, R, E)}));
    Error e = run(more);
    EXPECT_EQ(e.code(), "wse.route.edge");
    EXPECT_NE(std::string(e.what()).find("pe (1, 0)"), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("where 4 wait already"), std::string::npos) << e.what();
  }
  {
    LayoutBuilder l(1, 1);
    l.tile(0, 0, l.add(sender(3, {{5, false}}).p));
    EXPECT_EQ(run(l).code(), "wse.route.none");
  }
  {
    LayoutBuilder l(3, 1);  // both neighbours send at the same time
    l.tile(0, 0, l.add(sender(3, {{5, false}}).p), l.routes({route(3, R, E)}));
    l.tile(2, 0, l.add(sender(3, {{6, false}}).p), l.routes({route(3, R, W)}));
    Builder rec;
    add_recorder(rec, 3);
    l.tile(1, 0, l.add(rec.p), l.routes({route(3, E | W, R)}));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.route.two_inputs");
    EXPECT_NE(e.message().find("EAST and WEST"), std::string::npos) << e.what();
  }
  {
    LayoutBuilder l(2, 1);
    l.tile(0, 0, l.add(sender(3, {{40u << 16, true}}).p), l.routes({route(3, R, E)}));
    Builder rec;
    add_recorder(rec, 3);
    l.tile(1, 0, l.add(rec.p), l.routes({route(3, W, R)}));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.task.control_unbound");
    EXPECT_NE(e.message().find("control task 40"), std::string::npos);
  }
  {
    LayoutBuilder l(1, 1);
    Builder b;
    b.task_op(Op::activate, TaskSpace::local, 12);
    b.local_task(8, b.end("main"), true);
    l.tile(0, 0, l.add(b.p));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.task.unbound");
    EXPECT_NE(e.message().find("local task 12"), std::string::npos);
  }
  {
    LayoutBuilder l(1, 1);
    Builder b;
    b.imm(Op::ldi, 0, 49150).op(Op::st, Ty::u32, 0, 0, 0);
    b.local_task(8, b.end("main"), true);
    l.tile(0, 0, l.add(b.p));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.memory.bounds");
    EXPECT_NE(std::string(e.what()).find("test.csl:10"), std::string::npos) << e.what();
  }
  {
    LayoutBuilder l(1, 1);
    Builder b;
    b.imm(Op::ldi, 0, 4).imm(Op::ldi, 1, 0).op(Op::div, Ty::i16, 0, 0, 1);
    b.local_task(8, b.end("main"), true);
    l.tile(0, 0, l.add(b.p));
    EXPECT_EQ(run(l).code(), "wse.code.division");
  }
  {
    LayoutBuilder l(1, 1);
    Builder b;
    b.p.strings.push_back("x must be positive");
    b.imm(Op::ldi, 0, 0).imm(Op::check, 0, 0);
    b.local_task(8, b.end("main"), true);
    l.tile(0, 0, l.add(b.p));
    Error e = run(l);
    EXPECT_EQ(e.code(), "wse.code.assert");
    EXPECT_NE(e.message().find("x must be positive"), std::string::npos);
  }
}

TEST_P(Modes, ProgramFaultsNameTheirCause) {
  struct Case {
    const char* slug;
    const char* part;
    std::function<void(Builder&)> make;
  };
  const std::vector<Case> cases = {
      {"wse.code.trap", "no way on",
       [](Builder& b) {
         b.p.strings.push_back("no way on");
         b.imm(Op::trap, 0, 0);
       }},
      {"wse.code.pointer", "pointer value 99",
       [](Builder& b) { b.imm(Op::ldi, 3, 99).op(Op::calli, Ty::u16, 8, 0, 3); }},
      {"wse.code.depth", "nested calls", [](Builder& b) { b.op(Op::call, Ty::u16, 1, 0, 0); }},
      {"wse.dsd.empty", "never set",
       [](Builder& b) {
         b.dsd(1, Builder::mem(64, 4)).bulk(Bulk::fmovs, Builder::d(1), Builder::d(5));
       }},
      {"wse.dsr.empty", "DSR 3",
       [](Builder& b) {
         b.p.dsr_loads.push_back({});
         b.dsd(1, Builder::mem(64, 4))
             .bulk(Bulk::fmovs, Builder::d(1), {Operand::dsr, DsrFile::src0, 3});
       }},
      {"wse.bulk.async", "@fmovs is asynchronous",
       [](Builder& b) {
         b.dsd(1, Builder::mem(64, 4))
             .dsd(2, Builder::mem(96, 4))
             .bulk(Bulk::fmovs, Builder::d(1), Builder::d(2), {}, {}, Builder::async());
       }},
      {"wse.config.color", "colour 24",
       [](Builder& b) {
         b.imm(Op::ldi, 1, 24)
             .op(Op::config, Ty::u16, 0, 1, static_cast<int>(ConfigFn::clear_position));
       }},
      {"wse.config.position", "switch position 4",
       [](Builder& b) {
         b.imm(Op::ldi, 1, 2)
             .imm(Op::ldi, 2, 4)
             .imm(Op::ldi, 3, 1)
             .op(Op::config, Ty::u16, 0, 1, static_cast<int>(ConfigFn::set_rx_position));
       }},
      {"wse.memory.bounds", "leaves the 49152 bytes",
       [](Builder& b) {
         b.dsd(1, Builder::mem(49000, 100))
             .dsd(2, Builder::mem(64, 100))
             .bulk(Bulk::fmovs, Builder::d(1), Builder::d(2));
       }},
      {"wse.limit.cycles", "still runs", [](Builder& b) { b.imm(Op::jmp, 0, 0); }},
  };
  for (const Case& c : cases) {
    LayoutBuilder l(1, 1);
    Builder b;
    c.make(b);
    b.local_task(8, b.end("main"), true);
    l.tile(0, 0, l.add(b.p));
    Error e = caught([&] {
      FabricOptions o = options();
      o.cycle_limit = 100000;
      Fabric f(l.l, o);
      f.start();
      f.run();
    });
    EXPECT_EQ(e.code(), c.slug);
    EXPECT_NE(std::string(e.what()).find(c.part), std::string::npos) << e.what();
  }
  Layout empty;
  EXPECT_EQ(caught([&] { Fabric f(empty, {}); }).code(), "wse.layout.size");
}

TEST_P(Modes, StuckProgramsSayWhoWaits) {
  LayoutBuilder l(2, 1);
  Builder b("wait.csl");
  b.dsd(0, Builder::mem(128, 4))
      .dsd(1, Builder::fab(false, 5, 2, 4))
      .bulk(Bulk::fmovs, Builder::d(0), Builder::d(1));
  b.local_task(8, b.end("main"), true);
  l.tile(0, 0, l.add(b.p), l.routes({route(5, E, R)}));
  l.tile(1, 0, l.add(sender(5, {{1, false}, {2, false}}).p), l.routes({route(5, R, W)}));
  Fabric f(l.l, options());
  f.start();
  EXPECT_EQ(f.run(), Stop::quiet);
  std::vector<std::string> who = f.waiting();
  ASSERT_EQ(who.size(), 1u);
  EXPECT_NE(
      who[0].find("pe (0, 0): main thread in @fmovs of main (wait.csl:10): no wavelet of colour 5"),
      std::string::npos)
      << who[0];
  EXPECT_NE(who[0].find("2 elements done, 2 left"), std::string::npos) << who[0];
  Error e = f.deadlock("wse.command.stalled", "stuck");
  EXPECT_NE(std::string(e.what()).find("@fmovs"), std::string::npos);
}

TEST(Router, BackpressureReachesTheSender) {
  // Nobody takes colour 5 at PE 3: what fits on the way is sent, the rest waits.
  LayoutBuilder l(4, 1);
  Builder b("send.csl");
  b.dsd(0, Builder::mem(128, 200))
      .dsd(1, Builder::fab(true, 5, 2, 200))
      .bulk(Bulk::fmovs, Builder::d(1), Builder::d(0));
  b.local_task(8, b.end("main"), true);
  l.tile(0, 0, l.add(b.p), l.routes({route(5, R, E)}));
  l.tile(1, 0, kNoProgram, l.routes({route(5, W, E)}));
  l.tile(2, 0, kNoProgram, l.routes({route(5, W, E)}));
  Builder none;
  l.tile(3, 0, l.add(none.p), l.routes({route(5, W, R)}));
  for (bool express : {true, false}) {
    Fabric f(l.l, {.express = express});
    f.start();
    EXPECT_EQ(f.run(), Stop::quiet);
    ASSERT_FALSE(f.waiting().empty());
    std::int64_t sent = f.stats().get("elements");
    EXPECT_GT(sent, 8);
    EXPECT_LT(sent, 40);
  }
}

}  // namespace
}  // namespace weft::wse::testing
