// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one PE and its router, internal to the fabric. A PE comes into being when something
// first happens to it; before that it is a null pointer. Everything a router shares with a
// neighbour (the input rings) has one writer and one reader and is stamped with cycles, so that the
// order in which PEs are visited within a cycle, and the thread that visits them, cannot change the
// outcome.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "weft/targets/wse/arena.h"
#include "weft/targets/wse/express.h"
#include "weft/targets/wse/program.h"
#include "weft/targets/wse/timing.h"

namespace weft::wse {

inline constexpr Cycle kNever = INT64_MAX;
inline constexpr int kHostPort = 5;  // a sixth router port: the host's streams
inline constexpr int kAllPorts = 6;
inline constexpr int kRing = 16;  // slots of a ring: at least every configurable depth
inline constexpr std::uint32_t kHotMemory = 128;  // bytes of a PE's memory that are fetched ahead
inline constexpr std::size_t kHomeMost = 2560;    // of a PE's home: more is not asked for ahead
inline constexpr std::size_t kHotRegisters = 96;  // bytes of registers that are asked for ahead
inline constexpr int kExpressLetter =
    32;  // added to the colour of a letter about an express channel

inline constexpr std::uint32_t kMessageEnd = 2;

struct Wavelet {
  std::uint32_t data = 0;
  std::uint32_t control = 0;  // kMessageEnd: the last one of a message
  Cycle ready = 0;            // first cycle in which the reader may take it
};

/// Wavelets waiting at one input port of one colour. Written by the neighbour, read by this router.
struct Ring {
  std::array<Wavelet, kRing> slot;
  std::atomic<std::uint32_t> tail{0};
  std::atomic<std::uint64_t> pop{0};  // cycle of the last pop (low 32 bits) << 32 | head
  std::uint32_t head() const {
    return static_cast<std::uint32_t>(pop.load(std::memory_order_relaxed));
  }
  bool empty() const { return tail.load(std::memory_order_acquire) == head(); }
  Wavelet& front() { return slot[head() % kRing]; }
  /// Wavelets held at the start of cycle `now`, whatever was popped during it.
  int held(Cycle now) const {
    std::uint64_t p = pop.load(std::memory_order_relaxed);
    int n = static_cast<int>(tail.load(std::memory_order_relaxed) - static_cast<std::uint32_t>(p));
    return n + (static_cast<std::uint32_t>(p >> 32) == static_cast<std::uint32_t>(now) ? 1 : 0);
  }
  void push(const Wavelet& w) {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    slot[t % kRing] = w;
    tail.store(t + 1, std::memory_order_release);
  }
  void take(Cycle now) {
    pop.store(static_cast<std::uint64_t>(static_cast<std::uint32_t>(now)) << 32 |
                  static_cast<std::uint32_t>(head() + 1),
              std::memory_order_relaxed);
  }
  Ring() { pop.store(0xffffffffull << 32, std::memory_order_relaxed); }
};

/// One colour in one router.
struct ColorState {
  std::uint8_t color = 0;
  std::uint8_t rx = 0, tx = 0;  // in force: port bits, kHostPort included
  std::uint8_t position = 0;
  bool down = false;              // in teardown
  bool pending_teardown = false;  // waits for its handler
  bool filter_off = false;        // sparse counter: used up
  bool second_limit = false;      // sparse counter: limit2 is the limit
  bool filter_disabled = false;   // by the queue's configuration
  bool configured = false;        // a route was given (rather than made for a host stream)
  std::uint8_t outside = 0;       // wavelets that wait beyond the rectangle's edge
  std::uint16_t counter = 0, limit = 0;
  Route route;
  bool express_known = false;
  Placed<Express> express;                         // what this ramp sends goes there directly
  std::atomic<Channel*> arriving{nullptr};         // what comes to this ramp comes from there
  std::array<std::atomic<Ring*>, kAllPorts> in{};  // made once, by whoever needs it first
  /// Where wavelets go to a neighbour that swaps no colours, known once the first one has gone.
  std::array<Ring*, kRamp> onward{};
};

/// Wavelets the host sends to, or expects from, one place of one PE.
struct HostSource {
  std::uint8_t color = 0, port = kHostPort;
  std::vector<std::uint32_t> data;
  std::size_t next = 0;
  Cycle from = 0;                             // not before this cycle
  Cycle gap = 0;                              // between words: word k not before from + k * gap
  bool message = false;                       // the last word ends it
  std::atomic<std::int64_t>* left = nullptr;  // sources of the operation that are not exhausted
  std::uint32_t sender = 0;                   // messages that come in the same cycle go by this
};
struct HostSink {
  std::uint8_t color = 0, port = kHostPort;
  std::deque<std::uint32_t> got;              // arrived and not asked for yet
  std::size_t wanted = 0;                     // arrivals until the host is told; 0: nobody waits
  Cycle from = 0, gap = 0;                    // no word before `from`, the next one `gap` later
  std::atomic<std::int64_t>* left = nullptr;  // sinks of the operation that still wait
};
struct HostIo {
  std::deque<HostSource> sources;  // those of one colour and port go in order
  std::vector<HostSink> sinks;
};

/// The places of a queue, made when something is first put there: what comes over a channel never
/// is.
template <class T>
class QueueSlots {
 public:
  T& operator[](std::size_t k) {
    if (!slot_) slot_ = std::make_unique<std::array<T, 8>>();
    return (*slot_)[k];
  }

 private:
  std::unique_ptr<std::array<T, 8>> slot_;
};

struct InQueue {
  Channel* channel = nullptr;  // instead of the slots
  std::uint8_t color = kNone8;
  Priority priority = Priority::unset;
  std::uint8_t control_table = 0;
  std::uint8_t head = 0, count = 0, depth = 4;
  std::uint8_t reader = kNone8;  // operation slot that consumes it
  bool half = false;             // the second element of a two-element wavelet is still to be read
  QueueSlots<Wavelet> slot;
  Wavelet& front() { return slot[head % 8]; }
  void pop() {
    ++head;
    --count;
  }
};

struct OutQueue {
  // Of express_color; both null where its way is not fixed.
  union {
    Express* express = nullptr;
    Channel* only;  // where `single`
  };
  bool single = false;
  std::uint8_t express_color = kNone8;
  std::uint8_t color = kNone8;
  std::uint8_t head = 0, count = 0, depth = 4;
  std::uint8_t writer = kNone8;
  struct Slot {
    Wavelet wavelet;
    std::uint8_t color = 0;
  };
  QueueSlots<Slot> slot;
  /// Where `express` is known and not null.
  std::span<Channel* const> channels() const {
    return single ? std::span<Channel* const>(&only, 1) : std::span<Channel* const>(express->all);
  }
};

struct FifoState {
  std::uint16_t read = 0, write = 0, count = 0, capacity = 0;
  bool hit_empty = false, hit_full = false;
};

/// Position and shape of a walk over memory in up to four dimensions.
struct Mem4 {
  std::array<std::uint16_t, 4> extent{}, at{};
  std::array<std::int16_t, 4> strides{};
};

/// Where an operand's elements come from or go to.
struct Cursor {
  enum Kind : std::uint8_t { none, mem, mem4, value, fabin, fabout, fifo };
  Kind kind : 4 = none;
  std::uint8_t bytes : 4 = 4;   // of an element
  std::uint8_t queue = kNone8;  // fabric: slot of the queue; fifo: index
  std::uint8_t color = kNone8;
  std::uint8_t flags = 0;
  std::uint16_t address = 0;  // mem: of the next element; mem4: of the first
  std::int16_t stride = 0;
  union {
    Mem4* walk = nullptr;  // mem4
    std::uint32_t value_bits;
  };
};

/// A bulk operation in progress. Two cache lines: a PE has several at a time, and a large
/// rectangle's do not fit the caches.
struct alignas(64) Running {
  const BulkOp* op = nullptr;
  Cursor dst, a, b;
  std::array<Mem4, 3>* walks = nullptr;  // of dst, a and b; kept from one operation to the next
  Cycle ready = 0, since = 0;
  std::uint32_t scalar = 0;
  std::uint32_t left = 0, done = 0;
  std::uint32_t carry = 0, packed = 0;  // packed: first half of a two-element output wavelet
  std::uint32_t pc = 0;                 // of the instruction that started it
  std::uint16_t index = 0;
  std::uint16_t function = 0;
  OpSettings settings;
  std::uint8_t slot = 0;
  bool live : 1 = false, main : 1 = false;
  bool stalled : 1 = false;  // found no input or no room at its last turn
  bool endless : 1 = false, half_out : 1 = false, finishing : 1 = false;
  bool header : 1 = false;  // its length comes with the first wavelet
};
static_assert(sizeof(Cursor) == 16 && sizeof(Running) == 128);

/// Whether exactly one bit is set.
constexpr bool alone(std::uint32_t bits) { return bits != 0 && (bits & (bits - 1)) == 0; }

/// The operations in progress of a PE by slot. What one has used the next one uses again, whatever
/// its slot: most PEs have two or three at a time.
class OpSlots {
 public:
  Running& operator[](std::size_t k) { return at(place_[k]); }
  /// The last operation in slot k; null while there has been none.
  const Running* find(std::size_t k) const {
    return place_[k] == kNone8 ? nullptr : &at(place_[k]);
  }
  void begin(std::size_t k, const Running& run, Arena& arena) {
    const auto place = static_cast<std::uint8_t>(std::countr_zero(free_));
    free_ &= free_ - 1;
    make(blocks_[place / kBlock], arena);
    place_[k] = place;
    Running& here = at(place);
    auto* walks = here.walks;
    here = run;
    here.walks = walks;
    if (run.dst.kind != Cursor::mem4 && run.a.kind != Cursor::mem4 && run.b.kind != Cursor::mem4)
      return;
    std::size_t which = 0;
    for (Cursor* c : {&here.dst, &here.a, &here.b}) {
      if (c->kind == Cursor::mem4) {
        if (!here.walks) here.walks = arena.make<std::array<Mem4, 3>>();
        (*here.walks)[which] = *c->walk;
        c->walk = &(*here.walks)[which];
      }
      ++which;
    }
  }
  void end(const Running& run) { free_ |= 1u << place_[run.slot]; }
  /// Where the next operation will lie; null while it is not made.
  const Running* next() const {
    const auto place = static_cast<std::size_t>(std::countr_zero(free_));
    return place < kSlots && blocks_[place / kBlock] ? &at(place) : nullptr;
  }
  /// Makes the places of the first operations.
  void reserve(Arena& arena) { make(blocks_[0], arena); }

 private:
  static constexpr std::size_t kSlots = 16, kBlock = 4;
  static void make(Running*& block, Arena& arena) {
    if (block) return;
    block = static_cast<Running*>(arena.allocate(kBlock * sizeof(Running), alignof(Running)));
    std::uninitialized_value_construct_n(block, kBlock);
  }
  Running& at(std::size_t place) const { return blocks_[place / kBlock][place % kBlock]; }
  std::array<std::uint8_t, kSlots> place_ = [] {
    std::array<std::uint8_t, kSlots> none;
    none.fill(kNone8);
    return none;
  }();
  std::uint32_t free_ = (1u << kSlots) - 1;
  std::array<Running*, kSlots / kBlock> blocks_{};
};

struct Dsr {
  Dsd dsd;
  OpSettings settings;
  bool loaded = false;
};

struct Frame {
  std::uint16_t function = 0;
  std::uint32_t pc = 0;
  std::uint32_t reg = 0, dsd = 0;  // bases in the register stacks
  std::uint16_t sp = 0;            // stack pointer of the caller
};

/// Progress of a @map on the main thread.
struct MapRun {
  const MapOp* op = nullptr;
  std::array<Cursor, 8> in;
  Cursor out;
  std::array<Mem4, 9> walks;  // of `in`, then of `out`
  std::uint32_t left = 0;
  bool in_call = false;
  std::size_t depth = 0;  // frames below the mapped function
};

enum class MainState : std::uint8_t { idle, running, in_bulk, in_map };

struct PeCounters {
  std::int64_t instructions = 0, elements = 0, flops = 0, tasks = 0;
  std::int64_t busy = 0, stall = 0, idle = 0;
  std::array<std::int64_t, kAllPorts> sent{};  // wavelets out of each router port
};

/// The main thread and everything only PEs with code in motion need.
struct alignas(64) Core {
  ArenaVector<std::uint64_t> regs;
  ArenaVector<Dsd> dsds;
  ArenaVector<Frame> frames;
  OpSlots ops;  // live ones are in progress
  std::unique_ptr<MapRun> map;
  ArenaVector<FifoState> fifos;
  // Up to here what most visits read.
  std::uint8_t wanted = kNone8;            // the microthread that an operation has waited for last
  std::uint8_t transform_mask = 0;         // of .control_transform
  std::array<std::uint32_t, 2> rotated{};  // starts of the tasks of Program::rotations
  Cycle dsr_loaded = -1000;                // when a descriptor's register was loaded last
  std::vector<Dsr> dsrs;                   // 3 * 32, only if the program loads any
  std::string line;                        // simprint line in the making
  std::vector<std::pair<std::uint16_t, std::uint16_t>> registers;  // @set_config
  std::vector<std::pair<Cycle, Cycle>> gaps;  // cycles before Pe::worked_until without an element
};

/// What most visits read comes first.
struct alignas(64) Pe {
  explicit Pe(Arena& arena) : colors(&arena) {}
  std::uint32_t index = 0;
  std::uint16_t worker = 0;
  MainState main = MainState::idle;
  std::uint8_t rr_color = 0, rr_op = 0, rr_out = 0;
  std::uint8_t reach = 0;  // what is not under way yet arrives this many cycles on; 0: not known
  bool freed = false;      // an input queue has got room in this step
  bool released = false;   // the main thread has let something go on: look when its time is up
  // Ahead, the main thread waits for the calendar; operations have had their turn in that cycle.
  bool half_done = false;
  std::uint32_t visits = 0;  // since the threads' shares were made
  const Program* program = nullptr;
  Cycle wake_at = kNever;  // its entry in the calendar
  Cycle core_at = 0;       // until then only the router has something to do
  Cycle core_done = -1;    // last cycle that the core has seen
  Cycle again = kNever;    // something came too late to be seen in this visit: look then
  Cycle accounted = 0;     // counters are booked up to here
  Cycle main_ready = 0;    // main thread continues (or the next task starts) here

  Cycle main_time = 0;      // of the main thread while it runs ahead of the visit
  Cycle main_until = 0;     // the main thread works up to here
  Cycle timer_at = kNever;  // activates local task 30
  Cycle worked_until = 0;   // elements have been done up to here, but for `Core::gaps`
  std::unique_ptr<HostIo> io;
  Placed<Core> core;
  const void* home = nullptr;  // what visits read of frames, registers, queues, operations, memory
  std::uint32_t busy_colors = 0;                    // colours with wavelets in some input ring
  std::uint32_t live_ops = 0;                       // bits of ops slots
  std::array<std::uint16_t, 4> at_priority{};       // of them, those of each priority
  std::uint32_t express_in = 0;                     // colours whose channel has been announced
  std::uint16_t flush_wait = 0, flush_pending = 0;  // bits of queues; output queues are 8 more

  std::uint32_t busy_in = 0, busy_out = 0;  // queues holding something
  std::uint32_t local_pending = 0, local_blocked = 0;
  std::uint32_t color_blocked = 0;  // bits of colours, or of queues on WSE-3
  std::uint32_t high_tasks = 0;     // local tasks of high priority
  std::uint16_t ut_blocked = 0;     // microthreads
  std::uint16_t sp = 0;
  std::uint16_t command_function = kNone16;  // of the next launch
  bool waits = false;  // when neither the main thread nor an operation works: stalled, not idle
  bool has_gaps = false;
  std::uint16_t home_bytes = 0;
  std::uint8_t writing = 0;   // output queues that an operation writes, to be asked for ahead
  std::uint32_t reading = 0;  // input queues that one reads, the same
  std::uint8_t* memory = nullptr;
  std::uint32_t memory_bytes = 0;  // host bytes present; grows on demand
  bool memory_grown = false;       // beyond what the arena holds: from malloc
  std::uint32_t teardown_pending = 0;
  Cycle op_time = 0;               // cycle of the element in progress
  std::uint32_t local_merged = 0;  // tasks that were activated while they were pending
  std::uint16_t current_task = kNone16;
  std::uint8_t last_task = 63;  // id of the one picked last; the first round begins at 0
  TaskSpace current_space = TaskSpace::local;
  bool in_command = false;  // runs the function of a launch
  bool any_swap = false;

  ArenaVector<InQueue> in;
  ArenaVector<OutQueue> out;
  std::array<std::uint8_t, kColors> color_queue;  // input queue that takes the colour, kNone8: none
  PeCounters count;
  // Up to here, the counts of wavelets apart, what most visits read.
  std::int32_t x = 0, y = 0;
  std::array<std::uint8_t, kColors> color_slot;  // index in colors, kNone8: not used here
  std::pmr::vector<Placed<ColorState>> colors;
  std::uint32_t high_data = 0;  // colours, or queues on WSE-3, whose tasks have high priority
  std::uint64_t control_blocked = 0, high_control = 0;
  bool command_free = true;  // may take the next host command
  bool cluster_high_main = false;
  std::vector<std::uint64_t> command_args;
  Cycle command_ready = kNever;

  // Cycle counter.
  bool tsc_on = false;
  Cycle tsc_base = 0;
  std::int64_t tsc_value = 0;
  std::uint32_t prng = 0xdeadbeefu;

  ~Pe();
};

}  // namespace weft::wse
