// SPDX-License-Identifier: Apache-2.0
// Running translated programs: what their code calls, the processor's float mode around it, and the
// two caches of machine code (the emulator keeps programs; files keep them for other processes).

#include "weft/targets/qpu/engine/translate.h"

#include <cstddef>
#include <exception>
#include <utility>

#include "weft/base/hash.h"
#include "weft/jit/jit.h"
#include "weft/runtime/cache.h"
#include "weft/targets/qpu/float.h"
#include "weft/targets/qpu/tmu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::qpu::hw {

void require_translation(const std::string& missing) {
  if (missing.empty()) return;
  throw Error(ErrorKind::device, "qpu.engine.translated",
              cat("the translated engine cannot run here: ", missing))
      .help("use engine=interpreted, which needs nothing");
}

#if defined(__x86_64__)
// These run only where translated code does.
#define WEFT_QPU_AVX2 __attribute__((target("avx2,bmi,bmi2")))

namespace {

/// MXCSR as translated code wants it: toward zero, denormals flushed; and back.
class Mode {
 public:
  explicit Mode(unsigned wanted) : saved_(_mm_getcsr()) { _mm_setcsr(wanted); }
  ~Mode() { _mm_setcsr(saved_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  unsigned saved_;
};
constexpr unsigned kHost = 0x1f80, kQpu = 0x1f80 | 0x6000 | 0x8040;

void locate(Qpu& q, std::uint32_t pc, std::uint32_t into) {
  q.pc = pc;
  q.now = q.time + timing::kIssue * static_cast<std::int64_t>(into);
}

/// Runs `work`; the block's part before this instruction is accounted when control leaves it.
template <typename F>
[[gnu::always_inline]] inline int guarded(Qpu& q, std::uint32_t pc, std::uint32_t into, F work) {
  locate(q, pc, into);
  try {
    if (work()) return 0;
  } catch (...) {
    q.fault = std::current_exception();
  }
  q.time += timing::kIssue * static_cast<std::int64_t>(into);
  q.instructions += into;
  return 1;
}

int do_read(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into, int file_b,
            unsigned address) {
  return guarded(*q, pc, into, [&] {
    return m->read(*q, file_b, address, q->slot[file_b ? kSlotPerB : kSlotPerA]);
  });
}

int do_write(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into, int file_b,
             unsigned address) {
  return guarded(*q, pc, into, [&] {
    if (address >= kWRecip && address <= kWLog2) {
      Mode host(kHost);
      m->write(*q, file_b, address, q->slot[kSlotOutAdd]);
      q->slot[kSlotAcc + 4] = q->sfu_result;  // nothing can see r4 in between
      q->sfu_countdown = 0;
    } else {
      m->write(*q, file_b, address, q->slot[kSlotOutAdd]);
    }
    return true;
  });
}

int do_tmu(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into, unsigned unit) {
  return guarded(*q, pc, into, [&] {
    m->tmu_request(*q, unit, q->slot[kSlotOutAdd]);
    return true;
  });
}

template <unsigned kUnit>
[[gnu::noinline]] int any_tmu_row(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into,
                                  std::uint32_t first, RequestSite* site) {
  return guarded(*q, pc, into, [&] {
    m->tmu_request_row(*q, kUnit, first);
    m->open_site(*q, *site, first);
    return true;
  });
}

template <unsigned kUnit>
WEFT_QPU_AVX2 int do_tmu_row(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into,
                             std::uint32_t first, RequestSite* site) {
  std::int64_t now = q->time + timing::kIssue * static_cast<std::int64_t>(into);
  if (!q->events && m->tmu_request_line<kUnit>(*q, *site, first, now)) [[likely]]
    return 0;
  return any_tmu_row<kUnit>(m, q, pc, into, first, site);
}

WEFT_QPU_AVX2 int do_receive(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into,
                             unsigned unit) {
  return guarded(*q, pc, into, [&] {
    m->tmu_receive(*q, unit);
    return true;
  });
}

int do_semaphore(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into) {
  return guarded(*q, pc, into, [&] {
    const Instr& i = m->program->instrs[pc];
    return m->semaphore(*q, i.sem, i.acquire);
  });
}

int do_clock_semaphore(Machine* m, Qpu* t, std::uint32_t pc, std::uint32_t into) {
  return guarded(*t, pc, into, [&] {
    if (std::exchange(t->passed, false)) return true;
    const Instr& i = m->program->instrs[pc];
    if (!m->semaphore(*t, i.sem, i.acquire)) return false;
    t->passed = true;  // it goes on with what the other thread writes down from here
    return false;
  });
}

int do_settle(Machine* m, Qpu* t, std::uint32_t pc, std::uint32_t into, std::uint32_t bytes) {
  return guarded(*t, pc, into, [&] {
    const Event* end = t->settling + (bytes & ~Event::kBytes) / sizeof(Event);
    while (t->settling < end) m->settle_one(*t, t->settling);
    return true;
  });
}

int do_clock_row(Machine* m, Qpu* t, std::uint32_t pc, std::uint32_t into, std::uint32_t asked,
                 std::uint32_t unit) {
  if (asked & Event::kBytes) return do_settle(m, t, pc, into, asked);
  std::int64_t now = t->time + timing::kIssue * static_cast<std::int64_t>(into);
  TmuFifo& fifo = t->fifo[unit];
  fifo.ready[fifo.free()] = m->line_booked(*t->tmu[unit], asked, now);
  ++fifo.count;
  return 0;
}

int do_store(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into, std::uint32_t address,
             RequestSite* site) {
  return guarded(*q, pc, into, [&] {
    m->dma_store(*q, address);
    // Code for one thread does not save pages in place.
    if (q->events || !q->saved) m->open_site(*q, *site, address);
    return true;
  });
}

int do_literal(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into) {
  return guarded(*q, pc, into, [&] {
    Mode host(kHost);
    return literal_instruction(*m, *q);
  });
}

int do_break(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into) {
  return guarded(*q, pc, into, [&] {
    Mode host(kHost);
    m->breakpoint(*q);
    return true;
  });
}

int do_off(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t into) {
  return guarded(*q, pc, into, [&]() -> bool { ran_off(*m, *q); });
}

int do_finish(Machine* m, Qpu* q, std::uint32_t pc, std::uint32_t) {
  return guarded(*q, pc, 0, [&] {
    q->now = q->time - timing::kIssue;
    m->finish(*q);
    return true;
  });
}

/// 0: without a result, rax would have to stay as it is (WEFT_QPU_RARE).
int do_repair(Vec* scratch, const std::int32_t* recipe, int) {
  std::int32_t operations = recipe[0], inputs = recipe[1];
  const std::int32_t* step = recipe + 2;
  for (std::int32_t k = 0; k < operations; ++k, step += 3) {
    const Vec &a = scratch[step[1]], &b = scratch[step[2]];
    Vec& out = scratch[inputs + k];
    auto op = static_cast<unsigned>(step[0]);
    for (unsigned l = 0; l < 16; ++l) {
      out[l] = op >= kRecipeMul ? mul_lane(op - kRecipeMul, a[l], b[l]).value
                                : add_lane(op, a[l], b[l]).value;
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft::qpu::hw

// The same for calls that are rare, from code that has its values in vector registers: LLVM's
// convention preserve_allcc, in which the callee keeps every register but r11 and that of the
// result.
#define WEFT_QPU_RARE(name, function)                                                         \
  extern "C" __attribute__((visibility("hidden"))) char weft_qpu_rare_##name;                 \
  extern "C" __attribute__((visibility("hidden"), used)) void* const weft_qpu_target_##name = \
      reinterpret_cast<void*>(&function);                                                     \
  asm(".text\n.p2align 4\n.hidden weft_qpu_rare_" #name "\n.globl weft_qpu_rare_" #name       \
      "\n"                                                                                    \
      "weft_qpu_rare_" #name                                                                  \
      ":\n"                                                                                   \
      "  movq weft_qpu_target_" #name                                                         \
      "(%rip), %r11\n"                                                                        \
      "  jmp weft_qpu_keep_all\n")

asm(R"(
.text
.p2align 4
weft_qpu_keep_all:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rcx
  pushq %rdx
  pushq %rsi
  pushq %rdi
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %rbx
  subq $512, %rsp
  andq $-32, %rsp
  vmovdqa %ymm0, (%rsp)
  vmovdqa %ymm1, 32(%rsp)
  vmovdqa %ymm2, 64(%rsp)
  vmovdqa %ymm3, 96(%rsp)
  vmovdqa %ymm4, 128(%rsp)
  vmovdqa %ymm5, 160(%rsp)
  vmovdqa %ymm6, 192(%rsp)
  vmovdqa %ymm7, 224(%rsp)
  vmovdqa %ymm8, 256(%rsp)
  vmovdqa %ymm9, 288(%rsp)
  vmovdqa %ymm10, 320(%rsp)
  vmovdqa %ymm11, 352(%rsp)
  vmovdqa %ymm12, 384(%rsp)
  vmovdqa %ymm13, 416(%rsp)
  vmovdqa %ymm14, 448(%rsp)
  vmovdqa %ymm15, 480(%rsp)
  vzeroupper
  call *%r11
  vmovdqa (%rsp), %ymm0
  vmovdqa 32(%rsp), %ymm1
  vmovdqa 64(%rsp), %ymm2
  vmovdqa 96(%rsp), %ymm3
  vmovdqa 128(%rsp), %ymm4
  vmovdqa 160(%rsp), %ymm5
  vmovdqa 192(%rsp), %ymm6
  vmovdqa 224(%rsp), %ymm7
  vmovdqa 256(%rsp), %ymm8
  vmovdqa 288(%rsp), %ymm9
  vmovdqa 320(%rsp), %ymm10
  vmovdqa 352(%rsp), %ymm11
  vmovdqa 384(%rsp), %ymm12
  vmovdqa 416(%rsp), %ymm13
  vmovdqa 448(%rsp), %ymm14
  vmovdqa 480(%rsp), %ymm15
  leaq -64(%rbp), %rsp
  popq %rbx
  popq %r10
  popq %r9
  popq %r8
  popq %rdi
  popq %rsi
  popq %rdx
  popq %rcx
  popq %rbp
  ret
)");

namespace weft::qpu::hw {
namespace {
WEFT_QPU_RARE(read, do_read);
WEFT_QPU_RARE(write, do_write);
WEFT_QPU_RARE(tmu, do_tmu);
WEFT_QPU_RARE(tmu_row0, do_tmu_row<0>);
WEFT_QPU_RARE(tmu_row1, do_tmu_row<1>);
WEFT_QPU_RARE(receive, do_receive);
WEFT_QPU_RARE(settle, do_settle);
WEFT_QPU_RARE(store, do_store);
WEFT_QPU_RARE(repair, do_repair);

void* helper_address(std::string_view name) {
  struct Known {
    std::string_view name;
    void* address;
  };
  static const Known known[] = {
      {"weft_qpu_read", reinterpret_cast<void*>(&do_read)},
      {"weft_qpu_write", reinterpret_cast<void*>(&do_write)},
      {"weft_qpu_tmu_row0", reinterpret_cast<void*>(&do_tmu_row<0>)},
      {"weft_qpu_tmu_row1", reinterpret_cast<void*>(&do_tmu_row<1>)},
      {"weft_qpu_settle", reinterpret_cast<void*>(&do_settle)},
      {"weft_qpu_clock_row", reinterpret_cast<void*>(&do_clock_row)},
      {"weft_qpu_clock_semaphore", reinterpret_cast<void*>(&do_clock_semaphore)},
      {"weft_qpu_receive", reinterpret_cast<void*>(&do_receive)},
      {"weft_qpu_semaphore", reinterpret_cast<void*>(&do_semaphore)},
      {"weft_qpu_literal", reinterpret_cast<void*>(&do_literal)},
      {"weft_qpu_break", reinterpret_cast<void*>(&do_break)},
      {"weft_qpu_off", reinterpret_cast<void*>(&do_off)},
      {"weft_qpu_finish", reinterpret_cast<void*>(&do_finish)},
      {"weft_qpu_rare_read", &weft_qpu_rare_read},
      {"weft_qpu_rare_write", &weft_qpu_rare_write},
      {"weft_qpu_rare_tmu", &weft_qpu_rare_tmu},
      {"weft_qpu_rare_tmu_row0", &weft_qpu_rare_tmu_row0},
      {"weft_qpu_rare_tmu_row1", &weft_qpu_rare_tmu_row1},
      {"weft_qpu_rare_receive", &weft_qpu_rare_receive},
      {"weft_qpu_rare_settle", &weft_qpu_rare_settle},
      {"weft_qpu_rare_store", &weft_qpu_rare_store},
      {"weft_qpu_rare_repair", &weft_qpu_rare_repair},
  };
  for (const Known& k : known)
    if (k.name == name) return k.address;
  return nullptr;
}

class Translated final : public DividedProgram {
 public:
  Translated(const Program& program, const TranslateOptions& options)
      : program_(program),
        options_(options),
        flow_(analyse(program, options.keep)),
        size_(program.instrs.size()),
        block_counts_(flow_.blocks.size()) {
    synchronises = orders_accesses(program, flow_);
    may_be_joined = flow_.own_sites;
    compile(Role::alone);
  }

  unsigned enter() override {
    unsigned before = _mm_getcsr();
    _mm_setcsr(kQpu);
    return before;
  }
  void leave(unsigned before) override { _mm_setcsr(before); }

  void run(Machine& m, Qpu& q, std::int64_t limit) override {
    const Untold untold(q);
    call(Role::alone, m, q, limit);
  }

  void prepare() override {
    for (Role role : {Role::values, Role::clocks})
      if (!code_[static_cast<std::size_t>(role)]) compile(role);
  }
  void lead(Machine& m, Qpu& q) override { call(Role::values, m, q, 0); }
  bool settle(Machine& m, Qpu& t, std::int64_t limit) override {
    if (t.exhausted) return true;
    call(Role::clocks, m, t, limit);
    const bool branched = !t.finished && t.wait == Wait::none && !t.passed;
    t.exhausted = branched && t.record >= t.record_leave;
    return t.exhausted && t.time < limit;
  }

  const std::vector<std::int64_t>& counts() const override {
    counts_.assign(size_, 0);
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      const FlowBlock& block = flow_.blocks[b];
      for (std::size_t at = block.first; at <= block.last && at < size_; ++at)
        counts_[at] += block_counts_[b];
    }
    return counts_;
  }
  void clear_counts() override { std::fill(block_counts_.begin(), block_counts_.end(), 0); }

 private:
  /// Code does not count waits for the TMU: they are what remains of the clock.
  struct Untold {
    explicit Untold(Qpu& qpu) : q(qpu), before(remains(qpu)) {}
    ~Untold() { q.stall[kStallTmu] += remains(q) - before; }
    static std::int64_t remains(const Qpu& q) {
      std::int64_t clocks = q.time - timing::kIssue * q.instructions;
      for (std::int64_t stalled : q.stall) clocks -= stalled;
      return clocks;
    }
    Qpu& q;
    std::int64_t before;
  };

  using Run = void(Machine*, Qpu*, Shared*, std::int64_t, std::int64_t*, Vec*, std::int32_t);
  static constexpr std::size_t kRoles = 3;

  void compile(Role role) {
    const std::string text = translate_text(program_, flow_, options_.count, role);
    auto make = [&] {
      jit::CompileOptions how;
      how.codegen_level = options_.optimisation;
      return jit::compile_to_object(text, how);
    };
    std::string object;
    if (options_.file_cache) {  // the text names every offset of the state that the code relies on
      const std::string key =
          cat("qpu ", jit::host_fingerprint(), " ", options_.optimisation, "\n", text);
      object = runtime::FileCache::shared().get(runtime::CacheKey::of(key), make);
    } else {
      object = make();
    }
    const auto r = static_cast<std::size_t>(role);
    code_[r] = jit::load_object(object, helper_address);
    run_[r] = code_[r]->function<Run>("weft_qpu_run");
    WEFT_CHECK(run_[r], "the translated program has no entry");
  }
  void call(Role role, Machine& m, Qpu& q, std::int64_t limit) {
    const std::vector<std::int32_t>& blocks = q.slots_left ? flow_.slot_block_at : flow_.block_at;
    Vec scratch[kScratch];
    run_[static_cast<std::size_t>(role)](&m, &q, &m.shared, limit, block_counts_.data(), scratch,
                                         blocks[q.pc]);
    if (q.fault) [[unlikely]]
      std::rethrow_exception(std::exchange(q.fault, nullptr));
  }

  const Program& program_;
  TranslateOptions options_;
  Flow flow_;
  std::size_t size_;
  Ref<jit::Code> code_[kRoles];
  Run* run_[kRoles] = {};
  std::vector<std::int64_t> block_counts_;
  mutable std::vector<std::int64_t> counts_;
};
}  // namespace

std::string translation_missing() {
  if (!__builtin_cpu_supports("avx2")) return "the processor has no AVX2";
  if (!jit::llvm().available) return jit::llvm().reason;
  return "";
}

std::unique_ptr<FastProgram> make_translated(const Program& program,
                                             const TranslateOptions& options) {
  require_translation(translation_missing());
  return std::make_unique<Translated>(program, options);
}

#else

std::string translation_missing() { return "translated programs need an x86-64 host"; }

std::unique_ptr<FastProgram> make_translated(const Program&, const TranslateOptions&) {
  require_translation(translation_missing());
  return nullptr;
}

#endif

}  // namespace weft::qpu::hw
