// SPDX-License-Identifier: Apache-2.0
// Random kernels: the source interpreter, the emulated machine code on the interpreted engine, and
// for part of them the reference interpreter and the translated engine, must leave the same memory.
// Programs are built through the builder, so every operation and statement of the language takes
// part.
//
//   qpu_random_kernel_test --all [--from=1] [--to=10000]    every kernel translated as well

#include "weft/targets/qpu/compiler/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>

#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/engine/translate.h"
#include "weft/targets/qpu/language/builder.h"
#include "weft/targets/qpu/language/interpret.h"

namespace weft::qpu {
namespace {

using ast::Bool;
using ast::Expr;
using ast::Op;
using ast::Stmt;

constexpr unsigned kVars = 8, kIn = 64, kOut = 16 * 24;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng_(seed) {}

  std::unique_ptr<ast::Program> program() {
    Builder b;
    b_ = &b;
    std::uint32_t in = b.parameter(ast::Param::Kind::pointer),
                  out = b.parameter(ast::Param::Kind::pointer),
                  n = b.parameter(ast::Param::Kind::integer);
    in_ = b.expr(Op::uniform, nullptr, nullptr, in);
    n_ = b.expr(Op::uniform, nullptr, nullptr, n);
    const Expr* base = b.expr(Op::uniform, nullptr, nullptr, out);
    // Every QPU writes rows of its own.
    out_ = b.expr(
        Op::add, base,
        b.expr(Op::mul24, b.expr(Op::uniform, nullptr, nullptr, 0), b.constant(kOut / 3 * 4)));
    for (unsigned v = 0; v < kVars; ++v)
      vars_[v] = b.fresh(),
      assign(vars_[v], v & 1 ? b.expr(Op::deref, row(in_, rng_() % 3)) : b.constant(value()));
    rows_ = 0;
    pending_[0] = pending_[1] = 0;
    both_ = pick(4) == 0;
    budget_ = 30 + static_cast<int>(rng_() % 50);
    statements(0, false);
    drain();
    for (unsigned v = 0; v < kVars && rows_ < 8; ++v) put(var(v));
    return b.finish("random");
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(rng_() % n); }
  std::uint32_t value() {
    switch (pick(5)) {
      case 0: return static_cast<std::uint32_t>(rng_());
      case 1: return pick(40) - 20u;
      case 2:
        return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(pick(400)) - 200) /
                                            8.0f);
      case 3: return 1u << pick(32);
      default: return 0x3f800000u + (pick(8) << 23);
    }
  }
  const Expr* row(const Expr* p, std::uint64_t r) {
    return b_->expr(Op::add, p, b_->constant(static_cast<std::uint32_t>(r) * 64));
  }
  const Expr* var(unsigned v) { return b_->expr(Op::var, nullptr, nullptr, vars_[v]); }
  void assign(std::uint32_t v, const Expr* e) {
    Stmt& s = b_->append(Stmt::Op::assign);
    s.var = v, s.value = e;
  }
  /// An address per lane that stays within the input.
  const Expr* lanes() {
    return b_->expr(
        Op::add, in_,
        b_->expr(Op::shl, b_->expr(Op::bit_and, expr(1), b_->constant(15)), b_->constant(2)));
  }

  const Expr* expr(int depth) {
    if (depth <= 0 || pick(6) == 0) {
      switch (pick(6)) {
        case 0: return b_->constant(value());
        case 1: return b_->expr(Op::element);
        case 2: return pick(2) ? n_ : b_->expr(Op::uniform, nullptr, nullptr, pick(2));
        default: return var(pick(kVars));
      }
    }
    static constexpr Op kTwo[] = {
        Op::add,  Op::sub,  Op::mul, Op::mul24,   Op::fadd,   Op::fsub,    Op::fmul,
        Op::fmin, Op::fmax, Op::min, Op::max,     Op::umin,   Op::umax,    Op::shl,
        Op::shr,  Op::asr,  Op::ror, Op::bit_and, Op::bit_or, Op::bit_xor, Op::rotate};
    static constexpr Op kOne[] = {Op::bit_not, Op::itof,  Op::ftoi, Op::clz,
                                  Op::recip,   Op::rsqrt, Op::exp2, Op::log2};
    switch (pick(12)) {
      case 0: {  // in steps: the order of a call's arguments differs by processor
        const Expr* x = expr(depth - 1);
        return b_->expr(kOne[pick(8)], x);
      }
      case 1: {
        if (pick(3)) return select(depth);
        unsigned lane = pick(16);
        return b_->expr(Op::broadcast, expr(depth - 1), nullptr, lane);
      }
      case 2: return both_ || pick(3) ? expr(depth - 1) : b_->expr(Op::fetch, lanes());
      case 3: return both_ || pick(3) ? expr(depth - 1) : b_->expr(Op::deref, row(in_, pick(3)));
      case 4: return pick(6) ? expr(depth - 1) : b_->expr(Op::vload, row(in_, pick(3)));
      default: {
        const Expr* x = expr(depth - 1);
        const Expr* y = pick(3) ? expr(depth - 1) : b_->constant(value());
        return b_->expr(kTwo[pick(21)], x, y);
      }
    }
  }
  const Expr* select(int depth) {
    const Bool* c = boolean(depth - 1);
    const Expr* x = expr(depth - 1);
    return b_->select(c, x, expr(depth - 1));
  }
  const Bool* boolean(int depth) {
    if (depth > 0 && pick(3) == 0) {
      const Bool* x = boolean(depth - 1);
      if (pick(3) == 0)
        return b_->boolean({Bool::Op::negate, {}, {}, nullptr, nullptr, x, nullptr});
      return b_->boolean({pick(2) ? Bool::Op::both : Bool::Op::either,
                          {},
                          {},
                          nullptr,
                          nullptr,
                          x,
                          boolean(depth - 1)});
    }
    const Expr* x = expr(1);
    return b_->boolean({Bool::Op::compare, static_cast<ast::Compare>(pick(6)),
                        static_cast<ast::Kind>(pick(3)), x,
                        pick(3) ? expr(1) : b_->constant(pick(2) ? 0 : value()), nullptr, nullptr});
  }
  /// A condition with the same outcome whichever lane is asked is not needed: any and all both
  /// occur.
  void receive(std::uint8_t unit) {
    Stmt& s = b_->append(Stmt::Op::receive);
    s.var = vars_[pick(kVars)], s.all = unit != 0;
    --pending_[unit];
  }
  void put(const Expr* e) {
    Stmt& s = b_->append(Stmt::Op::store);
    s.address = row(out_, rows_++ % 8);
    s.value = e;
    if (pick(4) == 0)
      s.count = pick(2) ? b_->constant(pick(20))
                        : b_->expr(Op::bit_and, var(pick(kVars)), b_->constant(15));
  }

  void statements(int depth, bool masked) {
    int n = 1 + static_cast<int>(pick(6));
    for (int i = 0; i < n && budget_-- > 0; ++i) {
      unsigned kind = masked ? (pick(4) ? 0 : 1) : pick(9);
      switch (kind) {
        case 1:
          if (depth > 2) break;
          b_->open(Stmt::Op::where, boolean(2), false);
          statements(depth + 1, true);
          if (pick(2)) b_->otherwise(), statements(depth + 1, true);
          b_->close();
          break;
        case 2: {
          if (depth > 2) break;
          drain();
          const bool any = pick(2);
          b_->open(Stmt::Op::if_, boolean(1), any);
          statements(depth + 1, false);
          drain();
          if (pick(2)) b_->otherwise(), statements(depth + 1, false), drain();
          b_->close();
          break;
        }
        case 3: {
          if (depth > 1) break;
          drain();
          std::uint32_t i_var = b_->fresh();
          assign(i_var, b_->constant(0));
          const Expr* iv = b_->expr(Op::var, nullptr, nullptr, i_var);
          const Bool* again = b_->boolean({Bool::Op::compare, ast::Compare::lt, ast::Kind::integer,
                                           iv, b_->constant(1 + pick(4)), nullptr, nullptr});
          b_->open(Stmt::Op::while_, again, pick(2));
          statements(depth + 1, false);
          drain();
          assign(i_var, b_->expr(Op::add, iv, b_->constant(1)));
          b_->close();
          break;
        }
        case 4:
          if (std::uint8_t unit = tmu(); pending_[unit] < 4) {
            const Expr* where = lanes();
            Stmt& s = b_->append(Stmt::Op::gather);
            s.address = where, s.all = unit != 0;
            ++pending_[unit];
          }
          break;
        case 5:
          if (std::uint8_t unit = tmu(); pending_[unit] > 0) receive(unit);
          break;
        case 6: put(expr(2)); break;
        default: {
          const Expr* e = expr(3);
          assign(vars_[pick(kVars)], e);
        }
      }
    }
  }
  void drain() {
    for (std::uint8_t unit = 0; unit < 2; ++unit)
      while (pending_[unit] > 0) receive(unit);
  }
  std::uint8_t tmu() { return both_ ? static_cast<std::uint8_t>(pick(2)) : 0; }

  std::mt19937_64 rng_;
  Builder* b_ = nullptr;
  const Expr *in_ = nullptr, *out_ = nullptr, *n_ = nullptr;
  std::uint32_t vars_[kVars] = {};
  unsigned rows_ = 0;
  int pending_[2] = {}, budget_ = 0;  // gathers not yet received, per TMU
  bool both_ = false;                 // gathers of both TMUs; then nothing else reads through TMU1
};

struct World {
  explicit World(hw::Engine engine, int threads = 1) : emulator(options(engine, threads)) {
    in = emulator.memory().allocate(kIn * 4, 64);
    out = emulator.memory().allocate(kOut * 4, 64);
    std::mt19937 rng(3);
    for (unsigned i = 0; i < kIn; ++i) {
      std::uint32_t v = rng() % 2
                            ? std::bit_cast<std::uint32_t>(static_cast<float>(rng() % 1000) / 7.0f)
                            : static_cast<std::uint32_t>(rng());
      std::memcpy(emulator.memory().raw(in + 4 * i), &v, 4);
    }
  }
  static hw::EmulatorOptions options(hw::Engine engine, int threads) {
    hw::EmulatorOptions o;
    o.threads = threads;
    o.engine = engine;
    o.memory_bytes = 1 << 20;
    o.count_instructions = false;
    o.file_cache = false;
    o.optimisation = 0;
    o.division = hw::Division::always;
    return o;
  }
  void clear() { std::memset(emulator.memory().raw(out), 0x5a, kOut * 4); }
  sim::RunResult run(const runtime::Binary& binary, int qpus) {
    std::size_t p = emulator.load(binary);
    sim::Launch launch;
    launch.pointers = {in, out};
    launch.scalars = {5};
    launch.extents = {qpus};
    sim::RunLimits limits;
    limits.cycles = 50'000'000;
    auto r = emulator.run(p, launch, limits);
    emulator.unload(p);
    return r;
  }
  hw::Emulator emulator;
  std::uint64_t in = 0, out = 0;
};

struct Parts {
  static double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
  void start() { since = now(); }
  void stop(int part) {
    double t = now();
    seconds[part] += t - since;
    since = t;
  }
  double since = 0, seconds[6] = {};
};

TEST(QpuRandomKernels, machine_code_means_what_the_source_means) {
  World source(hw::Engine::interpreted), machine(hw::Engine::interpreted),
      oracle(hw::Engine::oracle), translated(hw::Engine::translated),
      divided(hw::Engine::translated, 2), joined(hw::Engine::translated, 2);
  joined.emulator.options().division = hw::Division::joined;
  const bool translate = hw::translation_missing().empty();
  if (!translate) std::printf("not translated: %s\n", hw::translation_missing().c_str());
  ASSERT_EQ(source.out, machine.out);
  std::int64_t instructions = 0;
  // LLVM takes most of the time: a twentieth of them in the suite, all with the argument --all.
  std::uint64_t share = 20, from = 1, to = 10000;
  for (const std::string& a : ::testing::internal::GetArgvs()) {
    if (a == "--all") share = 1;
    if (a.starts_with("--from=")) from = std::stoull(a.substr(7));
    if (a.starts_with("--to=")) to = std::stoull(a.substr(5));  // fewer under an emulated processor
  }
  ASSERT_LE(from, to);
  std::uint64_t compared = 0;
  std::int64_t cycles = 0;
  std::uint64_t checksum = 1469598103934665603u;  // FNV-1a over words
  // Processor seconds of the parts: making the kernel, source, machine code, translated, oracle.
  Parts parts;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    parts.start();
    std::unique_ptr<ast::Program> program = Generator(seed).program();
    Compiled compiled;
    try {
      compiled = compile_program(*program);
    } catch (const Error& e) {
      FAIL() << "seed " << seed << ": " << e.what();
    }
    parts.stop(0);
    int qpus = 1 + static_cast<int>(seed % 3);
    source.clear(), machine.clear();
    std::uint32_t params[] = {static_cast<std::uint32_t>(source.in),
                              static_cast<std::uint32_t>(source.out), 5};
    InterpretOptions options;
    options.qpus = qpus;
    try {
      interpret(*program, params, source.emulator.memory(), options);
      parts.stop(1);
      auto r = machine.run(compiled.binary, qpus);
      cycles += r.cycles;
      parts.stop(2);
      if (translate && seed % share == 0) {
        translated.clear();
        auto t = translated.run(compiled.binary, qpus);
        ASSERT_EQ(t.cycles, r.cycles) << "seed " << seed;
        ASSERT_EQ(std::memcmp(translated.emulator.memory().raw(translated.out),
                              machine.emulator.memory().raw(machine.out), kOut * 4),
                  0)
            << "the translated engine differs, seed " << seed;
        ++compared;
        parts.stop(3);
      }
      // On two threads a program is translated twice more: a twelfth of the share.
      if (translate && seed % (12 * share) == 1) {
        // From the beginning, or once one thread has done a part.
        World& two = seed / (12 * share) % 2 ? divided : joined;
        two.emulator.options().join_after = static_cast<std::int64_t>(seed % 700);
        two.clear();
        auto t = two.run(compiled.binary, qpus);
        ASSERT_EQ(t.cycles, r.cycles) << "seed " << seed;
        ASSERT_EQ(std::memcmp(two.emulator.memory().raw(two.out),
                              machine.emulator.memory().raw(machine.out), kOut * 4),
                  0)
            << "two threads differ, seed " << seed;
        parts.stop(5);
      }
      if (seed % 10 == 0) {
        oracle.clear();
        auto o = oracle.run(compiled.binary, qpus);
        ASSERT_EQ(o.cycles, r.cycles) << "seed " << seed;
        ASSERT_EQ(std::memcmp(oracle.emulator.memory().raw(oracle.out),
                              machine.emulator.memory().raw(machine.out), kOut * 4),
                  0)
            << "engines differ, seed " << seed;
        parts.stop(4);
      }
    } catch (const Error& e) {
      FAIL() << "seed " << seed << ": " << e.what() << "\n" << compiled.binary.source;
    }
    for (unsigned i = 0; i < kOut; ++i) {
      std::uint32_t a, b;
      std::memcpy(&a, source.emulator.memory().raw(source.out + 4 * i), 4);
      std::memcpy(&b, machine.emulator.memory().raw(machine.out + 4 * i), 4);
      ASSERT_EQ(hex(a), hex(b)) << "seed " << seed << " word " << i << " row " << i / 16 % 8
                                << " lane " << i % 16;
      checksum = (checksum ^ b) * 1099511628211u;
    }
    instructions += static_cast<std::int64_t>(compiled.instructions);
  }
  std::printf("%llu random kernels: %lld instructions, %lld clocks, checksum %s\n",
              static_cast<unsigned long long>(to - from + 1), static_cast<long long>(instructions),
              static_cast<long long>(cycles), hex(checksum, 16).c_str());
  EXPECT_GT(instructions, static_cast<std::int64_t>(to - from + 1) * 50);
  EXPECT_EQ(compared, translate ? to / share - (from - 1) / share : 0);
  std::printf(
      "%llu kernels, %llu translated; processor seconds: compiling %.1f, source %.1f, machine code "
      "%.1f, translated %.1f, oracle %.1f, two threads %.1f\n",
      static_cast<unsigned long long>(to - from + 1), static_cast<unsigned long long>(compared),
      parts.seconds[0], parts.seconds[1], parts.seconds[2], parts.seconds[3], parts.seconds[4],
      parts.seconds[5]);
  EXPECT_FALSE(machine.emulator.stats().check_books());
}

}  // namespace
}  // namespace weft::qpu
