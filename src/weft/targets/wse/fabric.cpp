// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/fabric.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <thread>

#include "weft/base/interrupt.h"
#include "weft/base/run_together.h"
#include "weft/sim/delays.h"
#include "weft/sim/fault.h"
#include "weft/targets/wse/debug.h"
#include "weft/targets/wse/fetch.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

Pe::~Pe() {
  if (memory_grown) std::free(memory);
}

Fabric::Fabric(const Layout& layout, FabricOptions options)
    : layout_(layout),
      options_(options),
      timing_(Timing::of(layout.arch)),
      wse3_(layout.arch == Arch::wse3),
      width_(layout.width),
      height_(layout.height),
      pes_(static_cast<std::size_t>(layout.width) * static_cast<std::size_t>(layout.height)) {
  if (pes_.empty() || layout.tiles.size() != pes_.size()) {
    throw Error(ErrorKind::value, "wse.layout.size",
                cat("the layout has a rectangle of ", layout.width, " x ", layout.height,
                    " PEs and ", layout.tiles.size(), " tiles"));
  }
  if (sim::Debugger* debugger = sim::debugger()) {
    debug_ = std::make_unique<FabricDebug>(*debugger, *this);
    options_.threads = 1;  // the result is the same
  }
  int threads = std::clamp(options_.threads, 1, 64);
  threads = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), pes_.size()));
  for (int i = 0; i < threads; ++i) {
    auto w = std::make_unique<Worker>();
    w->id = i;
    for (auto& l : w->letters) l.resize(static_cast<std::size_t>(threads));
    for (auto& m : w->mail) m.resize(static_cast<std::size_t>(threads));
    workers_.push_back(std::move(w));
  }
  share_tiles();
  for (const Program& p : layout.programs) {
    TaskTable t;
    t.local.fill(kNone16);
    t.data.fill(kNone16);
    t.control.fill(kNone16);
    for (std::size_t i = 0; i < p.tasks.size(); ++i) {
      const TaskBinding& b = p.tasks[i];
      auto n = static_cast<std::uint16_t>(i);
      if (b.space == TaskSpace::local) t.local.at(b.id) = n;
      else if (b.space == TaskSpace::control) t.control.at(b.id) = n;
      else t.data.at(b.id) = n;
    }
    t.by_wavelets = std::any_of(p.tasks.begin(), p.tasks.end(),
                                [](const TaskBinding& b) { return b.space != TaskSpace::local; });
    tables_.push_back(t);
  }
  native_ = std::vector<NativeSlot>(layout.programs.size());
  express_allowed_ = options_.express && !options_.trace_links;
  for (const Program& p :
       layout.programs) {  // run-time changes of routes: every router must be visited
    if (!p.teardown_handlers.empty() || !p.registers.empty()) express_allowed_ = false;
    for (const Function& f : p.functions) {
      for (const Insn& i : f.code) {
        auto fn = static_cast<ConfigFn>(i.c);
        if (i.op == Op::config && fn != ConfigFn::set_task_priority &&
            fn != ConfigFn::set_main_priority && fn != ConfigFn::set_timer &&
            fn != ConfigFn::timer_left)
          express_allowed_ = false;
      }
    }
  }
  for (const HostStream& s : layout.streams)
    (s.to_device ? stream_in_ : stream_out_) |= 1u << s.color;
}

Fabric::~Fabric() {
  for (auto& p : pes_) Placed<Pe> end(p.load());
}

Pe* Fabric::find(std::int32_t x, std::int32_t y) const {
  return pes_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
              static_cast<std::size_t>(x)]
      .load();
}

bool Fabric::touched(std::int32_t x, std::int32_t y) const { return find(x, y) != nullptr; }

Pe& Fabric::touch(std::int32_t x, std::int32_t y) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) {
    throw Error(ErrorKind::index, "wse.pe.outside",
                cat("PE (", x, ", ", y, ") lies outside the program rectangle of ", width_, " x ",
                    height_));
  }
  return make(static_cast<std::uint32_t>(y * width_ + x));
}

Pe& Fabric::make(std::uint32_t index) {
  if (Pe* p = pes_[index].load(std::memory_order_acquire)) return *p;
  sim::hand_over();
  std::lock_guard lock(make_mutex_);
  if (Pe* p = pes_[index].load(std::memory_order_acquire)) return *p;
  Placed<Pe> pe(arena_.make<Pe>(arena_));
  pe->index = index;
  pe->x = static_cast<std::int32_t>(index) % width_;
  pe->y = static_cast<std::int32_t>(index) / width_;
  pe->worker = worker_of(index);
  pe->color_slot.fill(kNone8);
  pe->color_queue.fill(kNone8);
  pe->accounted = 0;
  const Tile& tile = layout_.tiles[index];
  pe->program = tile.program == kNoProgram ? nullptr : &layout_.programs[tile.program];
  if (pe->program) make_home(*pe);
  setup_colors(*pe);
  if (const Program* program = pe->program) {
    for (const Segment& s : program->image) {
      std::memcpy(span(*pe, s.address, static_cast<std::uint32_t>(s.bytes.size())), s.bytes.data(),
                  s.bytes.size());
    }
    for (const QueueInit& q : program->queues) {
      if (q.output) {
        if (pe->out.size() <= q.queue) pe->out.resize(q.queue + 1u, arena_);
        pe->out[q.queue].depth = static_cast<std::uint8_t>(timing_.out_depth[q.queue & 7]);
        pe->out[q.queue].color = q.color;
      } else if (q.color != kNone8) {
        bind_queue(*pe, q.queue, q.color);
        pe->in[q.queue].priority = q.priority;
        pe->in[q.queue].control_table = q.control_table;
      }
    }
    for (const TaskBinding& t : program->tasks) {
      if (t.space == TaskSpace::color && pe->color_queue[t.id] == kNone8) {
        // WSE-2: the queue that a descriptor names for this colour, or one that is free.
        auto q = static_cast<std::uint8_t>(std::max<std::size_t>(pe->in.size(), 8));
        for (const Dsd& d : program->dsds) {
          const bool free = pe->in.size() <= d.queue || pe->in[d.queue].color == kNone8;
          if (d.kind == DsdKind::fabin && d.color == t.id && d.queue < 8 && free) q = d.queue;
        }
        bind_queue(*pe, q, static_cast<std::uint8_t>(t.id));
      }
    }
    if (!wse3_ && std::any_of(program->tasks.begin(), program->tasks.end(),
                              [](const TaskBinding& t) { return t.space == TaskSpace::control; })) {
      // WSE-2: a control task may be the only taker of a colour; the hardware finds it a queue as
      // well.
      for (std::size_t i = 0; i < pe->colors.size(); ++i) {
        const Route& r = pe->colors[i]->route;
        std::uint8_t tx = r.tx, c = pe->colors[i]->color;
        for (const SwitchPosition& p : r.positions) tx |= p.tx;
        if ((tx & port_bit(kRamp)) && pe->color_queue[c] == kNone8) {
          bind_queue(*pe, static_cast<std::uint8_t>(std::max<std::size_t>(pe->in.size(), 8)), c);
        }
      }
    }
    for (const TaskState& s : program->states) {
      if (s.active) task_bit(*pe, Op::activate, s.space, s.id);
      if (s.blocked) task_bit(*pe, Op::block, s.space, s.id);
      if (s.unblocked) task_bit(*pe, Op::unblock, s.space, s.id);
    }
    if (program->post_out != kNone8) {
      ColorState& out = add_color(*pe, program->post_out);
      out.rx = out.route.rx = port_bit(kRamp);
      out.tx = out.route.tx = port_bit(kHostPort);
      ColorState& in = add_color(*pe, program->post_in);
      in.rx = in.route.rx = port_bit(kHostPort);
      in.tx = in.route.tx = port_bit(kRamp);
    }
    for (const auto& [address, value] : program->registers) {
      std::uint64_t args[2] = {address, value};
      configure(*pe, ConfigFn::set_register, args);
    }
    for (std::size_t k = 0; k < program->rotations.size(); ++k)
      core(*pe).rotated[k] = program->rotations[k].init;
    for (const StartConfig& c : program->start_config) {
      std::uint64_t args[3] = {c.args[0], c.args[1], c.args[2]};
      configure(*pe, static_cast<ConfigFn>(c.fn), args);
    }
  }
  created_.fetch_add(1, std::memory_order_relaxed);
  Pe* raw = pe.release();
  raw->wake_at = kNever;
  pes_[index].store(raw, std::memory_order_release);
  return *raw;
}

ColorState& Fabric::add_color(Pe& pe, std::uint8_t color) {
  if (ColorState* cs = color_state(pe, color)) return *cs;
  pe.color_slot[color] = static_cast<std::uint8_t>(pe.colors.size());
  pe.colors.push_back(Placed<ColorState>(arena_.make<ColorState>()));
  pe.colors.back()->color = color;
  return *pe.colors.back();
}

// Puts the current switch position in force.
void Fabric::enforce(ColorState& cs) {
  cs.rx = cs.route.rx;
  cs.tx = cs.route.tx;
  // What a position leaves out is as in the one before it.
  for (std::size_t k = 0; k < cs.position; ++k) {
    const SwitchPosition& p = cs.route.positions[k];
    if (p.rx) cs.rx = p.rx;
    if (p.tx) cs.tx = p.tx;
  }
}

void Fabric::setup_colors(Pe& pe) {
  auto apply = [&](const ColorRoute& r) {
    ColorState& cs = add_color(pe, r.color);
    cs.route = r.route;
    cs.configured = true;
    cs.position = r.route.current;
    cs.down = r.route.teardown;
    cs.counter = r.route.filter.init_counter;
    cs.limit = r.route.filter.limit1;
    enforce(cs);
    pe.any_swap |= r.route.swap_x || r.route.swap_y;
  };
  const Tile& tile = layout_.tiles[pe.index];
  if (tile.routes < layout_.route_sets.size()) {
    for (const ColorRoute& r : layout_.route_sets[tile.routes]) apply(r);
  }
  if (pe.program) {
    for (const ColorRoute& r : pe.program->routes) apply(r);
  }
}

Ring& Fabric::make_ring(ColorState& cs, int port) {
  auto& slot = cs.in[static_cast<std::size_t>(port)];
  Ring* fresh = arena_.make<Ring>();
  Ring* expected = nullptr;
  return slot.compare_exchange_strong(expected, fresh) ? *fresh : *expected;
}

ColorState* Fabric::ramp_color(Pe& pe, int color) {
  ColorState* cs = color_state(pe, color);
  if (cs) return cs;
  if (!(stream_out_ >> color & 1u)) return nullptr;
  cs = &add_color(pe, static_cast<std::uint8_t>(color));
  cs->rx = cs->route.rx = port_bit(kRamp);
  cs->tx = cs->route.tx = port_bit(kHostPort);
  return cs;
}

std::uint8_t* Fabric::grow(Pe& pe, std::uint32_t address, std::uint32_t bytes) {
  if (address + bytes > static_cast<std::uint32_t>(kMemoryBytes)) {
    throw pe_fault(pe, "wse.memory.bounds",
                   cat("access of ", bytes, " bytes at address ", address, " leaves the ",
                       kMemoryBytes, " bytes of the PE's memory"));
  }
  std::uint32_t want = std::min<std::uint32_t>(
      kMemoryBytes, std::max(address + bytes, pe.memory_bytes + pe.memory_bytes / 4));
  auto* p = static_cast<std::uint8_t*>(std::realloc(pe.memory_grown ? pe.memory : nullptr, want));
  if (p == nullptr)
    throw Error(ErrorKind::memory, "wse.memory.host",
                cat("the host has no ", want, " bytes left for a PE"));
  if (!pe.memory_grown && pe.memory_bytes) std::memcpy(p, pe.memory, pe.memory_bytes);
  pe.memory_grown = true;
  std::memset(p + pe.memory_bytes, 0, want - pe.memory_bytes);
  pe.memory = p;
  pe.memory_bytes = want;
  return p + address;
}

int Fabric::neighbor_index(const Pe& pe, int port) const {
  switch (port) {
    case kEast: return pe.x + 1 < width_ ? static_cast<int>(pe.index) + 1 : -1;
    case kWest: return pe.x > 0 ? static_cast<int>(pe.index) - 1 : -1;
    case kNorth: return pe.y > 0 ? static_cast<int>(pe.index) - width_ : -1;
    case kSouth: return pe.y + 1 < height_ ? static_cast<int>(pe.index) + width_ : -1;
    default: return -1;
  }
}

void Fabric::start() {
  // Programs that begin by themselves: an activated task, or registers to be loaded.
  std::vector<bool> active(layout_.programs.size());
  for (std::size_t i = 0; i < active.size(); ++i) {
    for (const TaskState& s : layout_.programs[i].states) active[i] = active[i] || s.active;
  }
  for (std::uint32_t i = 0; i < pes_.size(); ++i) {
    std::uint32_t p = layout_.tiles[i].program;
    if (p != kNoProgram && active[p]) schedule_core(make(i), now_);
  }
}

// Cycles without an element before `worked`, which are waiting and not work.
void Fabric::book_gaps(Pe& pe, Cycle from, Cycle worked, Cycle now) {
  const Cycle main = std::clamp(pe.main_until, from, now);
  auto& gaps = pe.core->gaps;
  Cycle waited = 0;
  for (const auto& [begin, end] : gaps)
    waited += std::max<Cycle>(0, std::min(end, worked) - std::max(begin, main));
  std::erase_if(gaps, [now](const auto& gap) { return gap.second <= now; });
  pe.has_gaps = !gaps.empty();
  pe.count.busy -= waited;
  pe.count.stall += waited;
}

// An operation works in the cycles from `at` on. Work ahead of the clock leaves gaps, as a task may
// begin in them before the clock has come there.
void Fabric::mark_work(Pe& pe, Cycle at, Cycle cycles) {
  const Cycle from = std::max(pe.worked_until, pe.accounted);
  if (at > from) {
    pe.core->gaps.emplace_back(from, at);
    pe.has_gaps = true;
  } else if (at < from && pe.has_gaps) {
    auto& gaps = pe.core->gaps;
    for (std::size_t k = gaps.size(); k-- > 0;) {
      auto [begin, end] = gaps[k];
      if (end <= at || begin >= at + cycles) continue;
      gaps[k].second = std::max(begin, at);
      if (at + cycles < end) gaps.emplace_back(at + cycles, end);
    }
  }
  pe.worked_until = std::max(pe.worked_until, at + cycles);
}

// Whether the main thread's next instruction is one that others see at once: it waits until the
// calendar has come to its cycle.
bool Fabric::meets_calendar(const Pe& pe) {
  const Frame& f = pe.core->frames.back();
  const Function& fn = pe.program->functions[f.function];
  if (f.pc >= fn.code.size()) return true;
  const Op op = fn.code[f.pc].op;
  return op == Op::map || op == Op::print || op == Op::nextcmd || op == Op::config || op == Op::nop;
}

Cycle Fabric::step_core(Worker& w, Pe& pe, Cycle now, Cycle& router) {
  Cycle next = kNever;
  if (pe.live_ops && !pe.half_done) run_ops(w, pe, now, next);
  pe.half_done = false;
  if (pe.program) run_main(w, pe, now, next);
  if (pe.busy_out) {
    Cycle ramp = kNever;
    drain_out(w, pe, now, ramp);
    router = std::min(router, ramp);
    next = std::min(next, ramp);
  }
  if (pe.flush_wait && flushed(pe)) next = std::min(next, now + 1);
  next = std::min(next, pe.again);
  pe.again = kNever;
  book_mode(pe);
  return next;
}

void Fabric::book_mode(Pe& pe) {
  pe.main_until = pe.main_ready;
  pe.waits = pe.live_ops || pe.main != MainState::idle;
}

// In how many cycles at least something can come to the core that is not in its queues and channels
// yet: over the shortest channel, or from the router's rings.
Cycle Fabric::reach_of(Pe& pe) {
  if (pe.reach) return pe.reach;
  int reach = 64;
  for (const auto& cs : pe.colors) {
    std::uint8_t tx = cs->route.tx;
    for (const SwitchPosition& p : cs->route.positions) tx |= p.tx;
    if (!(tx & port_bit(kRamp))) continue;
    const Channel* channel = cs->arriving.load(std::memory_order_acquire);
    reach = std::min(reach, channel ? int{channel->latency} : 1 + timing_.ramp_in);
  }
  pe.reach = static_cast<std::uint8_t>(std::max(reach, 1));
  return pe.reach;
}

// A core goes on in the same visit while nothing from outside can change what it does: within the
// time that a wavelet takes to come, with nothing to tell the router or the host, and with free
// places for what it sends. An operation alone works ahead by other rules and waits for the
// calendar.
bool Fabric::may_go_on(Worker& w, Pe& pe, Cycle now, Cycle at) {
  if (at >= now + reach_of(pe) || at > w.last || at >= pe.core_at || at >= pe.wake_at) return false;
  if (pe.freed || pe.busy_in || pe.busy_out || pe.flush_wait || pe.io || pe.any_swap ||
      pe.teardown_pending || pe.timer_at != kNever || !pe.core || pe.core->map)
    return false;
  if (pe.main == MainState::running && pe.main_ready <= at && meets_calendar(pe)) return false;
  if (!pe.live_ops) return true;
  if (pe.main == MainState::idle && timing_.task_start == 0 &&
      (pe.local_pending & ~pe.local_blocked))
    return false;
  if (alone(pe.live_ops) && (pe.main == MainState::idle || pe.main == MainState::in_bulk))
    return false;
  for (std::uint32_t mask = pe.live_ops; mask; mask &= mask - 1) {
    const Running& run = pe.core->ops[static_cast<std::size_t>(std::countr_zero(mask))];
    if (run.dst.kind != Cursor::fabout) continue;
    OutQueue& q = pe.out[run.dst.queue];
    if (!express_of(pe, q, run.dst.color)) return false;
    for (const Channel* channel : q.channels())
      if (!channel->sure_of_room(now)) return false;
  }
  return true;
}

Cycle Fabric::step(Worker& w, Pe& pe, Cycle now) {
  account(pe, now);
  Cycle next = kNever;
  if (pe.timer_at <= now) {
    pe.timer_at = kNever;
    task_bit(pe, Op::activate, TaskSpace::local, kTimerTask);
    pe.core_at = std::min(pe.core_at, now);
  }
  if (pe.io && !pe.io->sources.empty()) inject(pe, now, next);
  if (pe.busy_colors) route(w, pe, now, next);
  // The core is left alone where nothing can have happened to it. An operation that is alone looks
  // at every visit how far it can work ahead.
  if (now <= pe.core_done) {  // the core is ahead of the calendar
    if (pe.core_at <= now) pe.core_at = pe.core_done + 1;
  } else if (now < pe.core_at && !alone(pe.live_ops) && !pe.busy_out && !pe.freed &&
             !pe.flush_wait && !pe.io && pe.timer_at == kNever) {
    book_mode(pe);
  } else {
    pe.core_at = kNever;
    pe.core_done = now;
    Cycle core = step_core(w, pe, now, next);
    const bool ahead = options_.timed && options_.fast && express_allowed_;
    while (ahead && may_go_on(w, pe, now, core)) {
      account(pe, core);
      pe.core_done = core;
      w.asleep_until = std::max(w.asleep_until, core);
      try {
        core = step_core(w, pe, core, next);
        if (pe.half_done) {  // goes on when the calendar has come to this cycle
          pe.again = core;
          core = pe.core_done--;
          break;
        }
      } catch (...) {
        w.deferred.push_back({core, pe.index, std::current_exception()});
        break;
      }
    }
    pe.core_at = std::min(pe.core_at, core);
  }
  next = std::min({next, pe.core_at, pe.timer_at});
  if (pe.freed) {
    pe.freed = false;
    if (pe.busy_colors) next = std::min(next, now + 1);
  }
  return next;
}

namespace {
constexpr std::size_t kAhead = 3;                      // visits between the stages of fetching
constexpr std::size_t kCached = std::size_t{1} << 20;  // so much state the caches hold
}  // namespace

void Fabric::rethrow_deferred(Worker& w, std::uint32_t index) {
  for (std::size_t k = 0; k < w.deferred.size(); ++k) {
    if (w.deferred[k].pe != index || w.deferred[k].at > w.now) continue;
    std::exception_ptr error = w.deferred[k].error;
    w.deferred.erase(w.deferred.begin() + static_cast<std::ptrdiff_t>(k));
    std::rethrow_exception(error);
  }
}

void Fabric::run_cycle(Worker& w, Cycle now, int) {
  w.take(now);
  w.now = now;
  const std::size_t n = w.batch.size();
  const bool apart = n > 1 && apart_;
  auto at = [&](std::size_t k) { return pes_[w.batch[k]].load(std::memory_order_relaxed); };
  // An entry that has been moved is not visited.
  auto home = [&](std::size_t k) {
    if (at(k)->wake_at == now) fetch_home(*at(k));
  };
  for (std::size_t k = 0; apart && k < std::min(n, 3 * kAhead); ++k) fetch_pe(at(k));
  for (std::size_t k = 0; apart && k < std::min(n, 2 * kAhead); ++k) home(k);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t index = w.batch[i];
    if (apart) {
      if (i + 3 * kAhead < n) fetch_pe(at(i + 3 * kAhead));
      if (i + 2 * kAhead < n) home(i + 2 * kAhead);
      if (i + kAhead < n && at(i + kAhead)->wake_at == now) fetch_work(*at(i + kAhead));
      if (i + 1 < n) {
        const Pe& after = *at(i + 1);
        for (std::uint32_t m = after.writing; m; m &= m - 1) {
          const OutQueue& q = after.out[static_cast<std::size_t>(std::countr_zero(m))];
          if (q.single) fetch_receiver(pes_[q.only->to].load(std::memory_order_relaxed));
        }
      }
    }
    Pe& pe = *pes_[index].load(std::memory_order_relaxed);
    sim::hand_over();
    if (pe.wake_at != now) continue;  // came earlier, or was moved
    pe.wake_at = kNever;
    ++w.steps;
    ++pe.visits;
    try {
      if (!w.deferred.empty()) rethrow_deferred(w, index);
      Cycle next = step(w, pe, now);
      if (debug_) [[unlikely]]
        debug_->visited(pe, now);
      if (next != kNever) schedule(pe, next <= now ? now + 1 : next);
    } catch (...) {
      if (!w.error || index < w.error_pe) {
        w.error = std::current_exception();
        w.error_pe = index;
      }
    }
  }
}

void Fabric::rethrow_first() {
  Worker* first = nullptr;
  for (auto& w : workers_) {
    if (w->error && (!first || w->error_pe < first->error_pe)) first = w.get();
  }
  if (!first) return;
  std::exception_ptr e = first->error;
  for (auto& w : workers_) w->error = nullptr;
  try {
    std::rethrow_exception(e);
  } catch (const Error& error) {
    report(error);
    throw;
  }
}

namespace {
constexpr std::int64_t kAsk = 64;  // rounds from one question whether to stop to the next
}  // namespace

Stop Fabric::run(Cycle until) {
  apart_ = arena_.bytes() > kCached;
  if (!debug_ && !timeline_) return run_to(until);
  std::optional<FabricDebug::Scope> scope;
  if (debug_) scope.emplace(*debug_);
  return timeline_ ? run_and_sample(until) : run_to(until);
}

// In pieces that end where a sample is due: the same events in the same order.
Stop Fabric::run_and_sample(Cycle until) {
  while (true) {
    if (now_ >= timeline_->due()) sample();
    if (timeline_->due() >= until) return run_to(until);
    const Stop s = run_to(timeline_->due());
    if (s != Stop::limit) return s;
  }
}

void Fabric::report(const Error& error) const {
  if (debug_) debug_->failed(error);
}

void Fabric::report_begin() const {
  if (debug_) debug_->begin_launch();
}

void Fabric::report_end() const {
  if (debug_) debug_->ended();
}

Stop Fabric::run_to(Cycle until) {
  host_event_ = false;
  if (workers_.size() > 1) return run_threads(until);
  Worker& w = *workers_[0];
  w.last = std::min(until, options_.cycle_limit);
  for (std::int64_t round = 1;; ++round) {
    if (round % kAsk == 0) poll_interrupt();
    Cycle t = w.first();
    if (t == kNever && w.asleep_until <= until) {
      now_ = std::max(now_, w.asleep_until);
      return Stop::quiet;
    }
    if (t > until) {
      now_ = std::max(now_, until);
      return Stop::limit;
    }
    if (t > options_.cycle_limit) {
      const Error error = deadlock("wse.limit.cycles", cat("the program still runs after ",
                                                           options_.cycle_limit, " cycles"));
      report(error);
      throw error;
    }
    now_ = std::max(now_, t);
    run_cycle(w, t, 0);
    if (w.error) rethrow_first();
    if (host_event_.load(std::memory_order_relaxed)) return Stop::host;
  }
}

namespace {

// All threads meet; the last one to come opens the gate. Spins briefly, then yields.
class Gate {
 public:
  explicit Gate(int n) : n_(n) {}
  void pass() {
    sim::hand_over();
    int turn = turn_.load(std::memory_order_acquire);
    if (here_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_) {
      here_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spin = 0; turn_.load(std::memory_order_acquire) == turn; ++spin) {
      if (spin > 2000) std::this_thread::yield();
    }
    sim::hand_over();
  }

 private:
  int n_;
  std::atomic<int> here_{0}, turn_{0};
};

}  // namespace

Stop Fabric::run_threads(Cycle until) {
  Stop result = Stop::quiet;
  while (run_share(until, result)) {
    // A look that changed nothing makes the next one later.
    share_period_ = share_anew() ? 2048 : std::min<std::int64_t>(share_period_ * 2, 1 << 20);
  }
  return result;
}

bool Fabric::run_share(Cycle until, Stop& result) {
  int n = static_cast<int>(workers_.size());
  Gate gate(n);
  struct Say {
    std::atomic<Cycle> next{kNever};
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> steps{0};  // made in this call
  };
  std::vector<std::array<Say, 2>> say(static_cast<std::size_t>(n));
  result = Stop::quiet;
  bool uneven = false;
  Cycle last = now_;
  // One gate per cycle: each thread says when its next event is, letters included; letters of a
  // cycle are read after the gate while the next cycle's go into the other half of the mailbox.
  auto body = [&](int id) {
    Worker& w = *workers_[static_cast<std::size_t>(id)];
    int parity = 0;
    bool stop = false;
    w.letter_min = kNever;
    w.last = std::min(until, options_.cycle_limit);
    const std::int64_t steps_before = w.steps;
    for (std::int64_t round = 1;; ++round) {
      Say& mine = say[static_cast<std::size_t>(id)][static_cast<std::size_t>(parity)];
      mine.next.store(std::min(w.first(), w.letter_min), std::memory_order_relaxed);
      mine.stop.store(stop, std::memory_order_relaxed);
      const bool look = round % share_period_ == 0;
      if (look) mine.steps.store(w.steps - steps_before, std::memory_order_relaxed);
      gate.pass();
      Cycle t = kNever;
      bool halt = false;
      for (auto& s : say) {
        t = std::min(t, s[static_cast<std::size_t>(parity)].next.load(std::memory_order_relaxed));
        halt |= s[static_cast<std::size_t>(parity)].stop.load(std::memory_order_relaxed);
      }
      for (auto& from : workers_) {  // letters written in the cycle before
        auto& box =
            from->letters[static_cast<std::size_t>(parity ^ 1)][static_cast<std::size_t>(id)];
        for (const Worker::Letter& l : box) {
          Pe& pe = *pes_[l.pe].load(std::memory_order_acquire);
          wake(pe, l.at, l.color);
        }
        box.clear();
        auto& bag = from->mail[static_cast<std::size_t>(parity ^ 1)][static_cast<std::size_t>(id)];
        for (Worker::Mail& m : bag) deliver(m.pe, std::move(m.message));
        bag.clear();
      }
      if (halt || t == kNever || t > until || t > options_.cycle_limit) {
        if (id == 0) {
          result = halt ? Stop::host : t == kNever ? Stop::quiet : Stop::limit;
          last = halt || t == kNever ? last : t;
        }
        return;
      }
      if (look) {
        std::int64_t sum = 0, most = 0;
        for (auto& s : say) {
          std::int64_t k =
              s[static_cast<std::size_t>(parity)].steps.load(std::memory_order_relaxed);
          sum += k;
          most = std::max(most, k);
        }
        // Every thread comes to the same answer: more than an eighth above the mean is uneven.
        if (most * n * 8 > sum * 9) {
          if (id == 0) uneven = true;
          return;
        }
      }
      if (id == 0) last = t;
      w.letter_min = kNever;
      w.parity = parity;
      run_cycle(w, t, parity);
      if (id == 0 && round % kAsk == 0 && !w.error) {  // only the caller's thread can be asked
        try {
          poll_interrupt();
        } catch (...) {
          w.error = std::current_exception();
        }
      }
      stop = w.error != nullptr || host_event_.load(std::memory_order_relaxed);
      parity ^= 1;
    }
  };
  try {
    run_together(n, body);
  } catch (const std::system_error& refused) {
    throw Error(ErrorKind::device, "wse.threads",
                cat("the host does not grant ", n - 1, " more threads: ", refused.what()))
        .help("wse:WxH without threads=, or raise the limit of processes of this user (ulimit -u)");
  }
  rethrow_first();
  if (uneven) {
    now_ = std::max(now_, last);
    return true;
  }
  if (result == Stop::limit) {
    if (last > options_.cycle_limit && until > options_.cycle_limit) {
      const Error error = deadlock("wse.limit.cycles", cat("the program still runs after ",
                                                           options_.cycle_limit, " cycles"));
      report(error);
      throw error;
    }
    now_ = std::max(now_, until);
  } else {
    now_ = std::max(now_, last);
    if (result == Stop::quiet) {
      for (auto& w : workers_) now_ = std::max(now_, w->asleep_until);
      if (now_ > until) {
        now_ = until;
        result = Stop::limit;
      }
    }
  }
  return false;
}

}  // namespace weft::wse
