// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/execute.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "weft/base/interrupt.h"
#include "weft/targets/vta/tokens.h"

namespace weft::vta {

Prepared::Prepared(Stream given) : stream(std::move(given)) {
  WEFT_CHECK(stream.insns.size() == stream.base.size(), "a stream has a base for each instruction");
  for (std::size_t i = 0; i < stream.insns.size(); ++i) {
    queue[static_cast<int>(stream.insns[i].stage())].push_back(static_cast<std::uint32_t>(i));
  }
}

Error deadlock(const Prepared& program, const Isa& isa, const std::size_t head[3],
               const std::int64_t tokens[4], std::size_t fetched) {
  Error error(ErrorKind::fault, "vta.deadlock", "no stage can go on");
  int blocked = 0;
  for (int s = 0; s < 3; ++s) {
    if (head[s] >= program.queue[s].size()) continue;
    std::uint32_t at = program.queue[s][head[s]];
    const Insn& n = program.stream.insns[at];
    if (at >= fetched) {
      error.note(cat(to_string(static_cast<Stage>(s)), " waits for instruction ", at,
                     ", which cannot be fetched: the queue before it is full"));
      continue;
    }
    TokenUse use = token_use(n);
    std::vector<std::string> missing;
    for (int t = 0; t < 4; ++t) {
      if ((use.pops >> t & 1) && tokens[t] == 0) missing.emplace_back(kTokenNames[t]);
    }
    ++blocked;
    error.at(cat(to_string(static_cast<Stage>(s)), "  instruction ", at),
             cat(isa.print(n), "   lacks a token ", join(missing, " and ")));
  }
  error.note(cat("tokens: ", kTokenNames[0], " ", tokens[0], ", ", kTokenNames[1], " ", tokens[1],
                 ", ", kTokenNames[2], " ", tokens[2], ", ", kTokenNames[3], " ", tokens[3]));
  error.help(cat(blocked,
                 " of the 3 stages are blocked; each pop needs a push by the other stage that can "
                 "run before it"));
  return error;
}

namespace {

/// Refuses what the RTL of VTA does not do although the functional model would.
class StrictRules {
 public:
  StrictRules(const Engine& engine, const Config& config)
      : engine_(engine),
        config_(config),
        written_(static_cast<std::size_t>(config.depth(MemType::acc)), true),
        reset_(written_.size(), false) {}

  void check(const Insn& n) {
    switch (n.op) {
      case Opcode::load:
        if (n.mem == MemType::acc8)
          refuse("acc8",
                 "loads of signed bytes into the accumulator exist in the functional model only");
        if (const bool pads = (n.x_pad_0 | n.x_pad_1 | n.y_pad_0 | n.y_pad_1) != 0; n.x_size == 0) {
          if (pads && n.mem != MemType::wgt && n.mem != MemType::uop)
            refuse("empty_pad",
                   "a LOAD of no columns writes its padding on the hardware, and nothing in the "
                   "functional model",
                   "write zeros by a LOAD of no rows");
        } else if (n.mem == MemType::wgt && pads) {
          refuse("wgt_pad", "the hardware ignores the padding of weights");
        } else if (n.mem == MemType::uop && (pads || n.y_size != 1)) {
          refuse("uop_shape",
                 cat("the hardware loads micro-operations as one row of x, and ignores y = ",
                     n.y_size, " and padding"),
                 "use y = 1 without padding");
        }
        if (n.mem == MemType::acc) mark(n.sram, n.sram_elements(), false);
        break;
      case Opcode::store:
        for (std::int64_t i = n.sram;
             i < n.sram + std::int64_t{n.y_size} * n.x_size && i < config_.depth(MemType::acc);
             ++i) {
          if (!written_[static_cast<std::size_t>(i)]) {
            refuse("stale_out",
                   cat("element ", i, " was ",
                       reset_[static_cast<std::size_t>(i)] ? "reset" : "loaded",
                       " but not computed: the output memory, which STORE reads, does not hold "
                       "its value"),
                   "put an ALU operation such as a shift right by 0 between LOAD and STORE");
          }
        }
        break;
      case Opcode::gemm:
      case Opcode::alu: {
        if (n.op == Opcode::alu && n.alu == AluOp::mul)
          refuse("mul", "the hardware's ALU has no multiplication");
        if (n.op == Opcode::alu && n.alu == AluOp::shr && n.use_imm &&
            (n.imm < -16 || n.imm > 15)) {
          refuse("shift",
                 cat("a shift by ", n.imm, " is read as a signed number of 5 bits by the hardware"),
                 "legal: -16 to 15");
        }
        if (n.op == Opcode::alu && n.reset)
          refuse("alu_reset", "reset has no effect on ALU instructions");
        Lanes written;
        std::int64_t last = -1;
        for (std::uint32_t y = 0; y < n.iter_out; ++y) {
          for (std::uint32_t x = 0; x < n.iter_in; ++x) {
            for (std::uint32_t u = n.uop_begin; u < n.uop_end && u < config_.depth(MemType::uop);
                 ++u) {
              const Uop uop = engine_.isa().decode_uop(engine_.uop_word(u));
              std::int64_t dst = uop.dst + std::int64_t{y} * n.dst_out + std::int64_t{x} * n.dst_in;
              if (dst == last) {
                refuse("hazard",
                       cat("accumulator element ", dst,
                           " is written by two micro-operations in a row, faster than the pipeline "
                           "can read it back"),
                       "order the loops so that another element comes between");
              }
              last = dst;
              mark(dst, 1, !n.reset, n.reset);
              if (n.op == Opcode::alu && n.alu == AluOp::shr && !n.use_imm)
                shift(dst, uop.src + std::int64_t{y} * n.src_out + std::int64_t{x} * n.src_in,
                      written);
            }
          }
        }
        break;
      }
      case Opcode::finish: break;
    }
  }

 private:
  using Lanes = std::map<std::int64_t, std::vector<std::int32_t>>;  // by accumulator element

  void mark(std::int64_t first, std::int64_t n, bool written, bool reset = false) {
    for (std::int64_t i = first; i < std::min(first + n, config_.depth(MemType::acc)); ++i) {
      written_[static_cast<std::size_t>(i)] = written;
      reset_[static_cast<std::size_t>(i)] = reset;
    }
  }
  /// A shift by another element's lanes, as this instruction meets them: `written` has what its
  /// earlier micro-operations wrote.
  void shift(std::int64_t dst, std::int64_t src, Lanes& written) const {
    if (std::max(dst, src) >= config_.depth(MemType::acc)) return;  // the engine's fault
    auto lanes = [&](std::int64_t element) {
      const auto found = written.find(element);
      return found == written.end() ? engine_.acc(static_cast<std::uint32_t>(element))
                                    : found->second;
    };
    const std::vector<std::int32_t> by = lanes(src);
    std::vector<std::int32_t> value = lanes(dst);
    for (std::size_t l = 0; l < by.size(); ++l) {
      if (by[l] < -16 || by[l] > 15)
        refuse("shift",
               cat("a shift by ", by[l], ", lane ", l, " of accumulator element ", src,
                   ", is read as a signed number of 5 bits by the hardware"),
               "legal: -16 to 15");
      value[l] = by[l] >= 0
                     ? value[l] >> by[l]
                     : static_cast<std::int32_t>(static_cast<std::uint32_t>(value[l]) << -by[l]);
    }
    written[dst] = std::move(value);
  }
  [[noreturn]] static void refuse(const char* slug, std::string message, std::string help = {}) {
    Error error(ErrorKind::fault, cat("vta.strict.", slug), std::move(message));
    if (!help.empty()) error.help(help);
    throw error;
  }
  const Engine& engine_;
  const Config& config_;
  std::vector<bool> written_;  // the output memory has the element's value
  std::vector<bool> reset_;    // it was a reset that left it without
};

/// What each stage knows to be done, through tokens: instructions of each queue.
class KnownDone {
 public:
  void pop(Stage stage, unsigned token) {
    Clock& mine = clock_[static_cast<std::size_t>(stage)];
    const Clock& other = sent_[token].front();
    for (std::size_t s = 0; s < 3; ++s) mine[s] = std::max(mine[s], other[s]);
    sent_[token].pop_front();
  }
  void ran(Stage stage) {
    const auto s = static_cast<std::size_t>(stage);
    ++clock_[s][s];
  }
  void push(Stage stage, unsigned token) {
    sent_[token].push_back(clock_[static_cast<std::size_t>(stage)]);
  }
  std::size_t of(Stage who, Stage what) const {
    return clock_[static_cast<std::size_t>(who)][static_cast<std::size_t>(what)];
  }

 private:
  using Clock = std::array<std::size_t, 3>;
  std::array<Clock, 3> clock_{};
  std::array<std::deque<Clock>, 4> sent_;  // with tokens that nobody has popped yet
};

class Executor {
 public:
  Executor(const Prepared& program, std::span<const std::uint64_t> bases, std::uint64_t uop_base,
           Engine& engine, sim::Memory& dram, const ExecuteOptions& options, Work& work)
      : program_(program),
        bases_(bases),
        uop_base_(uop_base),
        engine_(engine),
        config_(engine.isa().config()),
        dram_(dram),
        options_(options),
        work_(work),
        known_(bases.size() + 2),
        strict_(engine, config_) {
    for (int m = 0; m < 6; ++m)
      elem_[m] = static_cast<std::uint64_t>(config_.elem_bytes(static_cast<MemType>(m)));
    lanes_macs_ = config_.macs_per_uop();
  }

  void run() {
    const auto& insns = program_.stream.insns;
    if (insns.empty() || insns.back().op != Opcode::finish) {
      throw Error(ErrorKind::fault, "vta.finish.missing",
                  cat("the program of ", insns.size(), " instructions does not end with FINISH"));
    }
    if (options_.order.empty()) {
      in_turns();
    } else {
      for (std::uint32_t at : options_.order) {
        if (!ready(insns.at(at)))
          throw place(Error(ErrorKind::fault, "vta.order",
                            "the given order runs an instruction before its tokens"),
                      at);
        one(at);
      }
    }
    for (int t = 0; t < 4; ++t) {
      if (tokens_[t] == 0) continue;
      throw Error(ErrorKind::fault, "vta.token.leftover",
                  cat(tokens_[t], " tokens ", kTokenNames[t], " are left when the program ends"))
          .note(cat("tokens: ", kTokenNames[0], " ", tokens_[0], ", ", kTokenNames[1], " ",
                    tokens_[1], ", ", kTokenNames[2], " ", tokens_[2], ", ", kTokenNames[3], " ",
                    tokens_[3]))
          .help(
              "they would release the next program's instructions too early; pop them before "
              "FINISH");
    }
  }

 private:
  void in_turns() {
    const std::size_t n = program_.stream.insns.size();
    std::size_t head[3] = {}, waiting[3] = {}, fetched = 0;
    for (bool progress = true; progress;) {
      progress = false;
      while (fetched < n) {  // in program order; a full queue holds up everything behind it
        int s = static_cast<int>(program_.stream.insns[fetched].stage());
        if (static_cast<std::int64_t>(waiting[s]) >= options_.command_depth) break;
        ++waiting[s];
        ++fetched;
        progress = true;
      }
      for (int s = 0; s < 3; ++s) {
        while (waiting[s] > 0) {
          std::uint32_t at = program_.queue[s][head[s]];
          if (!ready(program_.stream.insns[at])) break;
          one(at);
          ++head[s];
          --waiting[s];
          progress = true;
        }
      }
    }
    for (int s = 0; s < 3; ++s) {
      if (head[s] < program_.queue[s].size())
        throw deadlock(program_, engine_.isa(), head, tokens_, fetched);
    }
  }

  /// Sets have four bits: one for each counter that must not be, or is, empty.
  bool ready(const Insn& n) const { return (token_use(n).pops & empty_) == 0; }

  void one(std::uint32_t at) {
    poll_interrupt();
    const Insn& n = program_.stream.insns[at];
    if (options_.before) options_.before(at);
    try {
      TokenUse use = token_use(n);
      if (use.illegal) {
        throw Error(ErrorKind::fault, "vta.token.stage",
                    cat("the ", to_string(n.stage()), " stage has no ",
                        to_string(n.stage()) == "load" ? "previous" : "next",
                        " stage to exchange tokens with"));
      }
      for (unsigned set = use.pops, t = 0; set; ++t, set >>= 1) {
        if (!(set & 1)) continue;
        if (--tokens_[t] == 0) empty_ |= 1u << t;
        if (options_.strict) known_done_.pop(n.stage(), t);
      }
      if (options_.strict) {
        if (n.op == Opcode::finish) check_finish(at);
        strict_.check(n);
        known_done_.ran(n.stage());
      }
      act(n, program_.stream.base[at]);
      for (unsigned set = use.pushes, t = 0; set; ++t, set >>= 1) {
        if (!(set & 1)) continue;
        ++tokens_[t];
        empty_ &= ~(1u << t);
        if (options_.strict) known_done_.push(n.stage(), t);
        if (options_.token_limit && tokens_[t] > options_.token_limit) {
          throw Error(ErrorKind::fault, "vta.token.overflow",
                      cat(tokens_[t], " tokens ", kTokenNames[t], " are outstanding"))
              .note(cat("legal: at most ", options_.token_limit,
                        "; the hardware's counter loses the rest"));
        }
      }
    } catch (Error& error) {
      throw place(std::move(error), at);
    }
  }

  /// The hardware tells the host that the program is done when FINISH runs, whatever else goes on.
  void check_finish(std::uint32_t at) const {
    if (at + 1 < program_.stream.insns.size())
      throw Error(ErrorKind::fault, "vta.strict.finish",
                  cat(program_.stream.insns.size() - at - 1,
                      " instructions follow FINISH: the host is told too early that all is done"))
          .help("put FINISH last");
    const auto& stores = program_.queue[static_cast<std::size_t>(Stage::store)];
    const std::size_t known = known_done_.of(Stage::compute, Stage::store);
    if (known < stores.size())
      throw Error(ErrorKind::fault, "vta.strict.undrained",
                  cat("FINISH does not wait for the store stage: ", known, " of its ",
                      stores.size(), " instructions are known to be done"))
          .help(
              "let the last STORE push a token to compute, and an instruction before FINISH pop "
              "it");
  }

  Error place(Error error, std::uint32_t at) const {
    const Insn& n = program_.stream.insns[at];
    return error.at(cat(to_string(n.stage()), "  instruction ", at), engine_.isa().print(n));
  }

  void act(const Insn& n, std::uint16_t base) {
    ++work_.instructions;
    work_.bytes_fetched += 16;
    switch (n.op) {
      case Opcode::load: {
        if (n.is_nop()) {
          ++work_.nops;
          return;
        }
        ++work_.loads;
        work_.bytes_read[static_cast<int>(n.mem)] +=
            std::int64_t{n.y_size} * n.x_size *
            static_cast<std::int64_t>(elem_[static_cast<int>(n.mem)]);
        engine_.load(n, dram_.raw(address(n, base)));
        return;
      }
      case Opcode::store:
        if (n.is_nop()) {
          ++work_.nops;
          return;
        }
        if (n.x_pad_0 | n.x_pad_1 | n.y_pad_0 | n.y_pad_1)
          throw Error(ErrorKind::fault, "vta.store.pad", "STORE cannot pad");
        ++work_.stores;
        work_.bytes_written +=
            std::int64_t{n.y_size} * n.x_size * static_cast<std::int64_t>(elem_[4]);
        engine_.store(n, dram_.raw(address(n, base)));
        return;
      case Opcode::gemm:
        ++work_.gemms;
        if (std::int64_t runs = std::max<std::int64_t>(n.uop_runs(), 0); n.reset) {
          work_.reset_uops += runs;
        } else {
          work_.gemm_uops += runs;
          work_.macs += runs * lanes_macs_;
        }
        engine_.gemm(n);
        return;
      case Opcode::alu:
        ++work_.alus;
        work_.alu_uops += std::max<std::int64_t>(n.uop_runs(), 0);
        engine_.alu(n);
        return;
      case Opcode::finish: ++work_.finishes; return;
    }
  }

  /// Byte address of a transfer; all of it has been found to lie in one allocation, or row by row.
  std::uint64_t address(const Insn& n, std::uint16_t base) {
    std::uint64_t bytes = elem_[static_cast<int>(n.mem)];
    std::uint64_t first = n.dram * bytes, slot;
    if (base == kAbsolute) {
      slot = bases_.size();
    } else if (base == kUopArena) {
      slot = bases_.size() + 1;
      first += uop_base_;
    } else {
      slot = base;
      if (base >= bases_.size())
        throw Error(ErrorKind::fault, "vta.dram.parameter",
                    cat("parameter ", base, " of ", bases_.size()));
      first += bases_[base];
    }
    if (n.y_size == 0) return dram_.base();  // only zeros are written
    std::uint64_t row = n.x_size * bytes;
    std::uint64_t span = (n.y_size - 1) * (n.x_stride * bytes) + row;
    auto& [begin, end] = known_[slot];
    if (first >= begin && first + span <= end) return first;
    if (auto [start, size] = dram_.allocation(first); size && first + span <= start + size) {
      begin = start, end = start + size;
      return first;
    }
    for (std::uint64_t y = 0; y < n.y_size; ++y) {
      std::uint64_t at = first + y * n.x_stride * bytes;
      if (!dram_.allocated(at, row)) {
        throw Error(ErrorKind::fault, "vta.dram.bounds",
                    cat("row ", y, " of the transfer, ", row, " bytes at ", hex(at), ", is ",
                        dram_.describe(at, row)));
      }
    }
    return first;
  }

  const Prepared& program_;
  std::span<const std::uint64_t> bases_;
  std::uint64_t uop_base_;
  Engine& engine_;
  const Config& config_;
  sim::Memory& dram_;
  const ExecuteOptions& options_;
  Work& work_;
  std::int64_t tokens_[4] = {};
  unsigned empty_ = 15;  // counters that are zero
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      known_;  // last allocation seen per parameter
  std::uint64_t elem_[6];
  std::int64_t lanes_macs_ = 0;
  StrictRules strict_;
  KnownDone known_done_;  // strict only
};

}  // namespace

void execute(const Prepared& program, std::span<const std::uint64_t> bases, std::uint64_t uop_base,
             Engine& engine, sim::Memory& dram, const ExecuteOptions& options, Work& work) {
  Executor(program, bases, uop_base, engine, dram, options, work).run();
}

}  // namespace weft::vta
