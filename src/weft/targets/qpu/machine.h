// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of up to twelve QPUs and of what they share: memory, TMUs and their caches, VPM, DMA,
// semaphores, mutex, uniforms, host interrupt. Engines execute the ALUs; everything with an effect
// beyond one QPU's registers goes through here, so engines cannot differ in it. Invariant: q.pc and
// q.now are those of the instruction at hand whenever a peripheral function is called.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "weft/runtime/binary.h"
#include "weft/runtime/trace.h"
#include "weft/sim/memory.h"
#include "weft/targets/qpu/assumptions.h"
#include "weft/targets/qpu/calendar.h"
#include "weft/targets/qpu/isa.h"
#include "weft/targets/qpu/rules.h"
#include "weft/targets/qpu/saved_pages.h"
#include "weft/targets/qpu/shadow.h"
#include "weft/targets/qpu/timing.h"
#include "weft/targets/qpu/vector.h"

namespace weft::qpu::hw {

/// Places of a QPU's vectors in Qpu::slot.
enum Slot : std::uint8_t {
  kSlotRa = 0,
  kSlotRb = 32,
  kSlotAcc = 64,
  kSlotPerA = 70,
  kSlotPerB,
  kSlotElement,
  kSlotNumber,
  kSlotZero,
  kSlotTrash,
  kSlotOutAdd,
  kSlotOutMul,
  kSlotImm,
  kSlots = kSlotImm + 64
};

enum class Wait : std::uint8_t { none, semaphore, mutex };
enum StallReason : std::uint8_t {
  kStallTmu,
  kStallDmaLoad,
  kStallDmaStore,
  kStallSemaphore,
  kStallMutex,
  kStallReasons
};

struct TmuFifo {
  static constexpr unsigned kSlots = std::bit_ceil(unsigned{assume::kTmuFifoDepth});
  Vec data[kSlots];
  std::int64_t ready[kSlots] = {};
  std::uint64_t head = 0, count = 0;  // received so far; waiting
  std::uint64_t first() const { return head & (kSlots - 1); }
  std::uint64_t free() const { return (head + count) & (kSlots - 1); }
};

/// A texture unit: when it is busy, and the lines in its cache (0, below any allocation: empty).
struct Tmu {
  Calendar calendar;
  std::uint32_t tag[timing::kTmuLines] = {};
  std::uint64_t requests = 0;  // of QPUs that do not use it any more (Machine::settle_requests)
};

/// Statistics since clear.
struct Counters {
  // Lines beyond one per request: those and requests are either hits of a TMU's cache, fetched
  // from memory, or else hits of the L2.
  std::int64_t tmu_requests = 0, more_lines = 0, tmu_hits = 0, memory_lines = 0;
  std::int64_t l2_hits() const { return tmu_requests + more_lines - tmu_hits - memory_lines; }
  std::int64_t dma_loads = 0, dma_stores = 0, dma_bytes_read = 0, dma_bytes_written = 0,
               vpm_reads = 0, vpm_writes = 0;
  std::int64_t uniforms = 0, sfu = 0;
};

/// What the requests of all QPUs go through.
struct Shared {
  Tmu tmus[6];
  Calendar sdram;
  // Line numbers as in Tmu::tag, in each set the latest first.
  alignas(16) std::uint32_t l2_tag[timing::kL2Sets][timing::kL2Ways] = {};
  Calendar vdr, vdw;
  Counters counters;
  std::uint32_t launch = 0;  // Shadow's
  // The VPM's rows, and the summaries of their accesses.
  std::byte* vpm = nullptr;
  std::uint32_t* vpm_summary = nullptr;
};

/// What an instruction that makes requests has found out about the array that it asks for rows of.
struct RequestSite {
  std::uint32_t begin = 0, lines = 0;  // 0: nothing
  const std::byte* data = nullptr;     // of the first line
  std::uint32_t* summary = nullptr;    // of its accesses (shadow.h)
};

struct VpmAccess {
  std::uint32_t addr = 0, stride = 0, left = 0;
  bool horizontal = false, laned = false;
  bool rows = false;  // horizontal vectors of words, set up
  unsigned size = 2;
};

/// The set-up word of a DMA store of one horizontal row from column 0, and the bits that say so.
struct VdwSetup {
  static constexpr std::uint32_t kOneRow = 2u << 30 | 1u << 23 | 16u << 16 | 1u << 14;
  static constexpr std::uint32_t kOneRowBits = ~(63u << 7);
};

/// What a QPU that runs ahead (engine/decoupled_timing.h) did to units shared with others, written
/// down by its thread and settled in the order of simulated time.
struct Event {
  /// In the words of translated programs, which are lines or bytes of events: the latter.
  static constexpr std::uint32_t kBytes = 1u << 31;
  static constexpr std::uint32_t kLineStored = ~0u;  // one whole line, and no event
  enum Kind : std::uint8_t {
    row,          // value: address; extra: TMU
    scattered,    // the same; then an event with the pc, and kRaw that are the 16 addresses
    receive,      // extra: TMU
    outside_row,  // value: address; extra: words; then an event with the pc and the load's row
    dma_load,     // value: words, and clocks in the high half
    dma_store,
    wait_load,
    wait_store,
  };
  static constexpr int kRaw = 8;
  std::uint32_t value = 0;
  Kind kind = row;
  std::uint8_t extra = 0;
};
static_assert(sizeof(Event) == 8 && sizeof(Event) * Event::kRaw == sizeof(Vec));

/// Thrown where running ahead cannot go on: the launch is done again on one thread.
struct RunAgain {};

struct Qpu {
  Vec slot[kSlots];
  Vec mask[8];  // lanes by Cond: never, always, zs, zc, ns, nc, cs, cc; all ones or zero
  // What every block and every request of the fast engines looks at lies together.
  int id = 0;
  std::uint32_t bit = 1;     // of `id`
  std::uint32_t writer = 0;  // of `id`, in a Shadow's summary
  // The summary of a row of the VPM that this QPU alone has written and read, and the bits of it
  // that are looked at; after a release, one that no row has.
  std::uint32_t own_row = 0, own_row_bits = 0;
  Shadow* shadow = nullptr;        // that has its accesses
  std::uint32_t pc = 0;            // instruction index
  std::uint32_t into = 0;          // interpreted engine: instructions of the block done so far
  std::int64_t time = 0, now = 0;  // clocks since launch
  std::int64_t instructions = 0;
  Event* events = nullptr;  // running ahead: where events go; null: it does not
  // The same of words for branches and requests, and from where on a branch leaves.
  std::byte *record = nullptr, *record_leave = nullptr;
  bool traced = false;  // stalls are to be written down
  bool finished = true, taken = false;
  std::uint8_t tmu_number[2] = {};  // of its slice's pair, behind TMU0 and TMU1
  Tmu* tmu[2] = {};                 // the same
  std::int64_t stall[kStallReasons] = {};
  std::uint64_t settled_requests[2] = {};  // by TMU unit: those that Tmu::requests has
  std::int64_t limit = 0;                  // fast engines: when to give way
  Event* events_end = nullptr;
  std::exception_ptr fault;  // translated engine: thrown once its code has been left
  int slots_left = 0,
      end_left = -1;  // delay slots to go of a branch; instructions to go after program end
  std::uint32_t target = 0;
  Wait wait = Wait::none;
  unsigned wait_semaphore = 0;
  std::uint32_t uniform = 0, uniform_end = 0;
  TmuFifo fifo[2];
  // Instructions that share one find each other's array in it: more than the library's largest
  // kernel and unrolled products have.
  static constexpr std::size_t kSites = 128;
  RequestSite site[kSites];  // by FlowBlock's numbers; used by no more than one program
  VpmAccess vpm_write, vpm_read[2];
  unsigned vpm_reads = 0;
  bool vpm_write_set = false;
  std::uint32_t vdr_setup = 0, vdr_pitch = 0, vdw_setup = 0, vdw_stride = 0;
  bool vdr_set = false, vdw_set = false, load_pending = false, store_pending = false;
  std::int64_t load_done = 0, store_done = 0;
  std::uint64_t load_rows = 0, store_rows = 0;  // VPM rows of a DMA not yet waited for
  int sfu_countdown = 0;                        // oracle only: r4 changes when it reaches zero
  Vec sfu_result;
  struct Range {
    std::uint64_t begin = 1, end = 0;
  } range[4];  // allocations seen lately
  unsigned range_next = 0;
  // Running ahead: where pages are saved before stores; pages with this stamp are saved.
  SavedPages::Hand* saved = nullptr;
  const std::byte* saved_stamps = nullptr;
  std::uint32_t saved_stamp = 0;
  bool passed = false;  // the semaphore at pc
  // Who settles: the next event, and whether all that is written down has been settled.
  const Event* settling = nullptr;
  bool exhausted = true;
  std::uint64_t vpm_rows = 0;  // touched while running ahead
  struct {
    std::int64_t uniforms = 0, sfu = 0, vpm_reads = 0, vpm_writes = 0;
  } counts;
  const Instr* history[3] = {};  // the three instructions before, newest first
  std::uint32_t history_pc[3] = {};
};

enum class OutsideReads : std::uint8_t { fault, report };

/// Something a lenient machine notes instead of stopping.
struct Finding {
  std::string code;
  int qpu = 0;
  std::uint32_t pc = 0;
  std::string message, source;
  std::int64_t count = 1;
};

/// A loaded program.
struct Program {
  std::vector<Code> words;
  std::vector<Instr> instrs;
  std::vector<Violation> violations;
  std::vector<std::uint8_t> flagged;       // per instruction: breaks a rule by itself
  bool clean = false;                      // no violation possible on any path
  std::vector<runtime::DebugEntry> debug;  // sorted by pc
};

class Machine {
 public:
  Machine(int qpus, std::uint64_t memory_bytes);

  // Configuration.
  OutsideReads outside_reads = OutsideReads::fault;
  bool check_races = true;
  /// Called for the software breakpoint signal; absent: a fault.
  std::function<void(const Qpu&)> on_breakpoint;
  runtime::TraceSink* trace = nullptr;

  sim::Memory memory;
  std::vector<Qpu> qpus;
  const Program* program = nullptr;

  /// `whole`: all QPUs as well; otherwise those that are active wait for begin_qpu.
  void begin_launch(const Program& program, int active, bool whole = true);
  void begin_qpu(Qpu& q, bool active = true);
  /// The same for one that stands for the clocks of QPU `id`.
  void begin_clocks(Qpu& t, int id);
  /// The same for the clocks of one that has run up to here.
  void go_on_with_clocks(Qpu& t, const Qpu& q);
  /// Rows of the VPM that a QPU has used, where no launch runs ahead.
  std::uint64_t vpm_rows_of(const Qpu& q) const;
  /// A shadow for QPUs whose accesses a second thread looks at; of this launch, without accesses.
  Shadow& second_shadow();
  /// Whether a QPU of one shadow has stored to what one of the other has used, on these pages.
  /// While threads are at work, what they do now may be missed or reported in part.
  bool shadows_clash(const std::vector<std::uint32_t>& pages);
  /// [address of uniforms, end) of each QPU from its beginning on.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> uniforms;
  void end_launch(bool clean);

  /// [address of uniforms, end) of a QPU.
  void set_uniforms(Qpu& q, std::uint32_t begin, std::uint32_t end);

  // Peripherals. `read` returns false when the QPU must wait (nothing has happened then).
  bool read(Qpu& q, bool file_b, unsigned address, Vec& out);
  void write(Qpu& q, bool file_b, unsigned address, const Vec& value);
  void tmu_request(Qpu& q, unsigned unit, const Vec& address);
  /// The same for lanes that ask for consecutive words from `first` on, and for those that do not.
  void tmu_request_row(Qpu& q, unsigned unit, std::uint32_t first);
  void tmu_request_scattered(Qpu& q, unsigned unit, const Vec& address);
  /// The same for a row within one line of an array that `site` knows, at clock `now`, without
  /// what is rare; false: nothing has happened, and tmu_request_row does it.
  template <unsigned kUnit>
  bool tmu_request_line(Qpu& q, const RequestSite& site, std::uint32_t first, std::int64_t now);
  /// When a line that `tmu` is asked for at clock `now` is there; caches keep it.
  std::int64_t line_booked(Tmu& tmu, std::uint32_t line, std::int64_t now);
  /// Lets later requests from an instruction that asked for `first`, or stores of one that stored
  /// there, go by the short path.
  void open_site(Qpu& q, RequestSite& site, std::uint32_t first);
  /// A release: later accesses have clocks of their own.
  void forget_sites(Qpu& q) {
    for (RequestSite& site : q.site) site = {};
    q.own_row = 1, q.own_row_bits = 0;
  }
  void tmu_receive(Qpu& q, unsigned unit);  // into r4
  void dma_store(Qpu& q, std::uint32_t address);
  /// When a store of a whole line that begins at q.now is done.
  void store_line_booked(Qpu& q);
  bool semaphore(Qpu& q, unsigned number, bool acquire);
  void breakpoint(Qpu& q);
  /// Lets the TMUs have counted a QPU's requests.
  void settle_requests(Qpu& q) {
    for (unsigned unit = 0; unit < 2; ++unit) {
      const std::uint64_t asked = q.fifo[unit].head + q.fifo[unit].count;
      q.tmu[unit]->requests += asked - std::exchange(q.settled_requests[unit], asked);
    }
  }
  /// After the last slot of program end.
  void finish(Qpu& q);

  /// Readiness of a waiting QPU; moves its time to when the cause happened.
  bool wake(Qpu& q);

  void note(Qpu& q, Event::Kind kind, unsigned extra = 0, std::uint64_t value = 0) {
    if (q.events >= q.events_end) [[unlikely]]
      throw RunAgain{};
    __builtin_prefetch(q.events + 48, 1);  // the line comes from the other thread's cache
    *q.events++ = {static_cast<std::uint32_t>(value), kind, static_cast<std::uint8_t>(extra)};
  }
  /// Settles an event that a QPU running ahead wrote down, on `t`, which has its times: t.now.
  void settle_one(Qpu& t, const Event*& at);

  [[noreturn]] void fail(const Qpu& q, std::string_view code, std::string message,
                         std::string_view help = {});
  /// What fail throws.
  Error fault(const Qpu& q, std::string_view code, std::string message,
              std::string_view help = {}) const;
  [[noreturn]] void fail_rule(const Qpu& q, std::string_view slug, std::string message);
  sim::Memory& mem() { return memory; }
  std::string source_of(std::uint32_t pc) const;

  alignas(64) std::vector<Finding> findings;
  alignas(64) std::uint32_t vpm[64][16] = {};
  alignas(64) std::uint8_t semaphores[16] = {};
  std::int64_t semaphore_time[16] = {};  // of the last decrement
  int mutex_owner = -1;
  std::int64_t mutex_time = 0;
  int host_interrupts = 0;

  // What one of two threads has, and then what the other has (engine/decoupled_timing.h).
  alignas(64) Shared shared;

 private:
  bool inside(Qpu& q, std::uint64_t address, std::uint64_t bytes) {
    for (const Qpu::Range& r : q.range) {
      if (address >= r.begin && address + bytes <= r.end) return true;
    }
    return find_range(q, address, bytes);
  }
  bool find_range(Qpu& q, std::uint64_t address, std::uint64_t bytes);
  void outside_read(Qpu& q, std::uint64_t address, std::uint64_t bytes, std::string_view what);
  void conflict(Qpu& q, const Shadow::Conflict& c, std::uint64_t base, bool write, bool tmu);
  /// When the data of a request for a row are there.
  std::int64_t row_ready(Qpu& q, Tmu& tmu, std::uint64_t first);
  std::int64_t scattered_ready(Qpu& q, Tmu& tmu, const Vec& address, Vec* data);
  void dma_words(Qpu& q, std::uint64_t address, unsigned count, bool write);
  void dma_time(Qpu& q, std::int64_t words, std::int64_t beats, bool write);
  void tmu_row_slow(Qpu& q, unsigned unit, std::uint32_t address);
  void tmu_row_race(Qpu& q, std::uint64_t first);
  /// Looks for races of a TMU request: a row, a word.
  void row_race(Qpu& q, std::uint64_t first) {
    if (check_races && (first % timing::kLine ||
                        !q.shadow->read_line(q.id, (first - memory.base()) / timing::kLine, false)))
        [[unlikely]]
      tmu_row_race(q, first);
  }
  void read_word(Qpu& q, std::uint64_t address);
  /// When a line that `tmu` asks for at `start` is there; caches keep it.
  [[gnu::always_inline]] std::int64_t line_ready(Tmu& tmu, std::uint32_t line, std::int64_t start) {
    std::uint32_t& tag = tmu.tag[line % timing::kTmuLines];
    if (tag == line) {
      ++shared.counters.tmu_hits;
      return start + timing::kTmuHit;
    }
    tag = line;
    std::uint32_t(&set)[timing::kL2Ways] = shared.l2_tag[line % timing::kL2Sets];
    if (in_l2(set, line)) return start + timing::kL2Hit;
    ++shared.counters.memory_lines;
    return shared.sdram.book(start, timing::kLineClocks) + timing::kMemory;
  }
  /// Whether the set has the line; from now on it does, in place of the one that came first.
  static bool in_l2(std::uint32_t (&set)[timing::kL2Ways], std::uint32_t line) {
    static_assert(timing::kL2Ways == 4);
#if defined(__SSE2__)
    auto* at = reinterpret_cast<__m128i*>(set);
    const __m128i ways = _mm_load_si128(at), one = _mm_cvtsi32_si128(static_cast<int>(line)),
                  same = _mm_cmpeq_epi32(ways, _mm_shuffle_epi32(one, 0));
    if (_mm_movemask_epi8(same)) return true;
    _mm_store_si128(at, _mm_or_si128(_mm_slli_si128(ways, 4), one));
#else
    std::uint32_t found = 0;
    for (std::uint32_t way : set) found |= way == line;
    if (found) return true;
    std::copy_backward(set, set + timing::kL2Ways - 1, set + timing::kL2Ways);
    set[0] = line;
#endif
    return false;
  }
  [[noreturn]] void tmu_empty(const Qpu& q, unsigned unit);
  void check_fifo(const Qpu& q, unsigned unit);
  /// Each slice has two TMUs; unless told not to, every other QPU pair sees them swapped.
  void pair_tmus(Qpu& q, bool noswap) {
    unsigned swap = !noswap && (q.id & 2) ? 1 : 0, first = static_cast<unsigned>(q.id) / 4 * 2;
    for (unsigned unit = 0; unit < 2; ++unit) {
      q.tmu_number[unit] = static_cast<std::uint8_t>(first + (swap ^ unit));
      q.tmu[unit] = &shared.tmus[q.tmu_number[unit]];
    }
  }
  std::uint32_t* summary_of(const Qpu& q, std::uint64_t line) {
    return q.shadow->summary(line - memory.base() / timing::kLine);
  }
  void stall(Qpu& q, std::int64_t until, StallReason why) {
    if (until <= q.now) return;
    std::int64_t clocks = until - q.now;
    if (trace) [[unlikely]]
      trace_stall(q, clocks, why);
    q.stall[why] += clocks;
    q.time += clocks;
    q.now = until;
  }
  void trace_request(const Qpu& q, const Tmu& tmu, std::int64_t start);
  void trace_stall(const Qpu& q, std::int64_t clocks, StallReason why);
  void vpm_read(Qpu& q, Vec& out);
  void vpm_write(Qpu& q, const Vec& value);
  void setup(Qpu& q, bool write, std::uint32_t word);
  void dma_load(Qpu& q, std::uint32_t address);
  /// A store of one whole line without what is rare; false: nothing has happened.
  bool dma_store_line(Qpu& q, std::uint32_t address);
  /// Words of a row from `column` on that `mask` names are used.
  void vpm_shadow(Qpu& q, unsigned row, unsigned column, std::uint32_t mask, bool write);
  /// All words of a row.
  void vpm_row_shadow(Qpu& q, unsigned row, bool write) {
    if (!check_races) return;
    if (q.events) {
      q.vpm_rows |= 1ull << row;
      return;
    }
    if (write ? vpm_shadow_.write_line(q.id, row) : vpm_shadow_.read_line(q.id, row, true)) return;
    vpm_shadow(q, row, 0, 0xffff, write);
  }

  std::array<Vec, 64> immediates_;
  alignas(64) Shadow shadow_;
  std::unique_ptr<Shadow> second_shadow_;
  Shadow vpm_shadow_;
  std::int64_t increments_[16][16] = {};
};

/// Decodes, validates and indexes. Throws Error(emit, "qpu.binary.*") on what is no program.
Program make_program(std::vector<Code> words, std::vector<runtime::DebugEntry> debug);

/// Runs q until its time reaches `limit` (checked at taken branches), it waits, or it finishes.
void run_oracle(Machine& m, Qpu& q, std::int64_t limit);
/// Executes exactly one instruction; false: it must wait.
bool step_oracle(Machine& m, Qpu& q);

}  // namespace weft::qpu::hw
