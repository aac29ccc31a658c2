// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/checker.h"

#include <algorithm>
#include <array>
#include <deque>

#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/tokens.h"

namespace weft::vta {

namespace {

constexpr std::int64_t kMaxOutstanding = 255;  // 8-bit counters of the Chisel design
constexpr std::int64_t kCommandDepth = 512;

using Clock = std::array<std::int64_t, 3>;  // instructions of each stage known to have finished

/// Last writer and last readers of the elements of one on-chip memory, as positions in their stage
/// plus one.
struct Touch {
  std::int64_t written = 0, read = 0;
};

struct Interval {
  std::int64_t first, end, position;
};

class Checker {
 public:
  Checker(const Program& program, std::size_t kernel)
      : program_(program),
        kernel_(program.kernels[kernel]),
        config_(program.config),
        isa_(config_),
        prepared_(kernel_.stream) {
    inp_.resize(static_cast<std::size_t>(config_.depth(MemType::inp)));
    wgt_.resize(static_cast<std::size_t>(config_.depth(MemType::wgt)));
    acc_.resize(static_cast<std::size_t>(config_.depth(MemType::acc)));
    uop_.resize(static_cast<std::size_t>(config_.depth(MemType::uop)));
    uop_known_.resize(uop_.size());
    std::size_t params = kernel_.signature.params.size();
    read_.resize(params), written_.resize(params);
    for (std::size_t i = 0; i < kernel_.stream.insns.size(); ++i) {
      std::uint16_t base = kernel_.stream.base[i];
      const Insn& n = kernel_.stream.insns[i];
      if (base < params && n.is_dma() && !n.is_nop())
        (n.op == Opcode::store ? written_ : read_)[base] = true;
    }
    intervals_.resize(params);
  }

  Verdict run() {
    const auto& insns = kernel_.stream.insns;
    if (insns.empty() || insns.back().op != Opcode::finish)
      return refuse("finish", "the program does not end with FINISH", -1);
    for (std::size_t i = 0; i < insns.size(); ++i) {
      if (insns[i].op == Opcode::finish && i + 1 < insns.size())
        return refuse("finish", "instructions follow FINISH", static_cast<std::int64_t>(i));
      if (token_use(insns[i]).illegal) {
        return refuse(
            "stage",
            cat(to_string(insns[i].stage()), " exchanges tokens with a stage that is not there"),
            static_cast<std::int64_t>(i));
      }
    }
    std::size_t head[3] = {}, waiting[3] = {}, fetched = 0;
    std::deque<Clock> tokens[4];
    Clock clock[3] = {};
    for (bool progress = true; progress;) {
      progress = false;
      while (fetched < insns.size()) {
        int s = static_cast<int>(insns[fetched].stage());
        if (static_cast<std::int64_t>(waiting[s]) >= kCommandDepth) break;
        ++waiting[s], ++fetched;
        progress = true;
      }
      for (int s = 0; s < 3; ++s) {
        while (waiting[s] > 0) {
          std::uint32_t at = prepared_.queue[s][head[s]];
          const Insn& n = insns[at];
          TokenUse use = token_use(n);
          bool ready = true;
          for (int t = 0; t < 4; ++t) ready &= !(use.pops >> t & 1) || !tokens[t].empty();
          if (!ready) break;
          for (int t = 0; t < 4; ++t) {
            if (!(use.pops >> t & 1)) continue;
            for (int k = 0; k < 3; ++k)
              clock[s][static_cast<std::size_t>(k)] =
                  std::max(clock[s][static_cast<std::size_t>(k)],
                           tokens[t].front()[static_cast<std::size_t>(k)]);
            tokens[t].pop_front();
          }
          ++head[s], --waiting[s];
          clock_ = &clock[s];
          position_ = static_cast<std::int64_t>(head[s]);  // 1-based
          at_ = at;
          if (Verdict refusal = access(n)) return refusal;
          clock[s][static_cast<std::size_t>(s)] = position_;
          for (int t = 0; t < 4; ++t) {
            if (!(use.pushes >> t & 1)) continue;
            tokens[t].push_back(clock[s]);
          }
          progress = true;
        }
      }
    }
    for (int s = 0; s < 3; ++s) {
      if (head[s] >= prepared_.queue[s].size()) continue;
      std::int64_t counts[4];
      for (int t = 0; t < 4; ++t) counts[t] = static_cast<std::int64_t>(tokens[t].size());
      Refusal r = deadlock(prepared_, isa_, head, counts, fetched).refusal();
      r.code = "vta.check.deadlock";
      return r;
    }
    for (int t = 0; t < 4; ++t) {
      if (!tokens[t].empty())
        return refuse("leftover",
                      cat(tokens[t].size(), " tokens ", kTokenNames[t], " are left at the end"),
                      -1);
    }
    if (Verdict refusal = outstanding()) return refusal;
    const Clock& last = clock[1];
    for (std::size_t s : {std::size_t{0}, std::size_t{2}}) {
      if (last[s] < static_cast<std::int64_t>(prepared_.queue[s].size())) {
        return refuse("undrained",
                      cat("FINISH does not wait for the ", to_string(static_cast<Stage>(s)),
                          " stage: ", last[s], " of its ", prepared_.queue[s].size(),
                          " instructions are known to be done"),
                      static_cast<std::int64_t>(insns.size()) - 1);
      }
    }
    return std::nullopt;
  }

 private:
  Refusal refuse(const char* slug, std::string message, std::int64_t at) const {
    Refusal r;
    r.code = cat("vta.check.", slug);
    r.message = std::move(message);
    if (at >= 0) {
      const Insn& n = kernel_.stream.insns[static_cast<std::size_t>(at)];
      r.at(cat(to_string(n.stage()), "  instruction ", at), isa_.print(n));
    }
    return r;
  }

  /// The most tokens of each kind that can be outstanding: the consumer runs only when nothing else
  /// can.
  Verdict outstanding() const {
    for (int t = 0; t < 4; ++t) {
      int lazy = t == kLoadToCompute || t == kStoreToCompute ? 1 : t == kComputeToLoad ? 0 : 2;
      std::size_t head[3] = {};
      std::int64_t tokens[4] = {};
      for (;;) {
        int ran = -1;
        for (int s : {lazy == 0 ? 1 : 0, lazy == 2 ? 1 : 2, lazy}) {
          if (head[s] >= prepared_.queue[s].size()) continue;
          const Insn& n = kernel_.stream.insns[prepared_.queue[s][head[s]]];
          TokenUse use = token_use(n);
          bool ready = true;
          for (int k = 0; k < 4; ++k) ready &= !(use.pops >> k & 1) || tokens[k] > 0;
          if (!ready) continue;
          for (int k = 0; k < 4; ++k) tokens[k] += (use.pushes >> k & 1) - (use.pops >> k & 1);
          if (tokens[t] > kMaxOutstanding) {
            Refusal r = refuse("outstanding",
                               cat("more than ", kMaxOutstanding, " tokens ", kTokenNames[t],
                                   " can be outstanding"),
                               static_cast<std::int64_t>(prepared_.queue[s][head[s]]));
            r.note("the hardware's counters have 8 bits and lose the rest");
            return r;
          }
          ++head[s];
          ran = s;
          break;
        }
        if (ran < 0) break;
      }
    }
    return std::nullopt;
  }

  std::int64_t known(Stage s) const { return (*clock_)[static_cast<std::size_t>(s)]; }

  /// Two accesses, one of them a write, that may happen in either order. Shown in program order.
  Verdict hazard(std::string_view memory, std::int64_t element, Stage other,
                 std::int64_t position) const {
    std::uint32_t first =
                      prepared_
                          .queue[static_cast<int>(other)][static_cast<std::size_t>(position - 1)],
                  second = at_;
    if (second < first) std::swap(first, second);
    const Insn& a = kernel_.stream.insns[first];
    const Insn& b = kernel_.stream.insns[second];
    Refusal r =
        refuse("hazard",
               cat(to_string(a.stage()), " and ", to_string(b.stage()), " both use ", memory,
                   " element ", element, ", one of them writes, and no token orders them"),
               first);
    r.at(cat(to_string(b.stage()), "  instruction ", second), isa_.print(b));
    r.note(cat("needed: a token ", to_string(a.stage()), "->", to_string(b.stage()),
               " between the two"));
    return r;
  }

  Verdict access(const Insn& n) {
    if (n.is_nop()) return std::nullopt;
    switch (n.op) {
      case Opcode::load: {
        MemType mem = n.mem == MemType::acc8 ? MemType::acc : n.mem;
        std::int64_t first = n.sram, last = first + n.sram_elements();
        if (last > config_.depth(mem))
          return refuse("sram",
                        cat("LOAD fills elements ", first, " to ", last - 1, " of ", to_string(mem),
                            ", which has ", config_.depth(mem)),
                        at_);
        for (std::int64_t i = first; i < last; ++i) {
          if (mem == MemType::uop) {
            std::int64_t from = n.dram + (i - first);
            bool known = kernel_.stream.base[at_] == kUopArena && n.y_size == 1 && n.x_pad_0 == 0;
            if (known && from >= static_cast<std::int64_t>(program_.uops.size()))
              return refuse("uop",
                            cat("LOAD reads micro-operation ", from, " of ", program_.uops.size()),
                            at_);
            uop_known_[static_cast<std::size_t>(i)] = known;
            if (known)
              uop_[static_cast<std::size_t>(i)] = program_.uops[static_cast<std::size_t>(from)];
          } else if (mem == MemType::acc) {
            if (Verdict v = write_acc(i)) return v;
          } else {
            Touch& touch = (mem == MemType::inp ? inp_ : wgt_)[static_cast<std::size_t>(i)];
            if (touch.read > known(Stage::compute))
              return hazard(to_string(mem), i, Stage::compute, touch.read);
            touch.written = position_;
          }
        }
        return dram(n, false);
      }
      case Opcode::store: {
        std::int64_t first = n.sram, last = first + n.sram_elements();
        if (last > config_.depth(MemType::acc))
          return refuse("sram",
                        cat("STORE reads elements ", first, " to ", last - 1, " of acc, which has ",
                            config_.depth(MemType::acc)),
                        at_);
        for (std::int64_t i = first; i < last; ++i) {
          Touch& touch = acc_[static_cast<std::size_t>(i)];
          if (touch.written > known(Stage::compute))
            return hazard("acc", i, Stage::compute, touch.written);
          touch.read = position_;
        }
        return dram(n, true);
      }
      case Opcode::gemm:
      case Opcode::alu: return compute(n);
      case Opcode::finish: return std::nullopt;
    }
    return std::nullopt;
  }

  Verdict write_acc(std::int64_t i) {
    Touch& touch = acc_[static_cast<std::size_t>(i)];
    if (touch.read > known(Stage::store)) return hazard("acc", i, Stage::store, touch.read);
    touch.written = position_;
    return std::nullopt;
  }

  Verdict compute(const Insn& n) {
    if (n.uop_runs() <= 0) return std::nullopt;
    if (n.uop_end > config_.depth(MemType::uop))
      return refuse("sram",
                    cat("micro-operations ", n.uop_begin, " to ", n.uop_end - 1, " of ",
                        config_.depth(MemType::uop)),
                    at_);
    if (n.op == Opcode::alu && n.alu == AluOp::shr && n.use_imm && (n.imm < -31 || n.imm > 31))
      return refuse("shift", cat("shift by ", n.imm), at_);
    for (std::uint32_t u = n.uop_begin; u < n.uop_end; ++u) {
      if (!uop_known_[u])
        return refuse(
            "uop", cat("micro-operation ", u, " is used but was not loaded by this program"), at_);
      Uop uop = isa_.decode_uop(uop_[u]);
      for (std::int64_t y = 0; y < n.iter_out; ++y) {
        for (std::int64_t x = 0; x < n.iter_in; ++x) {
          std::int64_t dst = uop.dst + y * n.dst_out + x * n.dst_in;
          std::int64_t src = uop.src + y * n.src_out + x * n.src_in,
                       wgt = uop.wgt + y * n.wgt_out + x * n.wgt_in;
          if (dst >= config_.depth(MemType::acc))
            return refuse(
                "sram", cat("writes acc element ", dst, " of ", config_.depth(MemType::acc)), at_);
          if (Verdict v = write_acc(dst)) return v;
          if (n.op == Opcode::alu) {
            if (!n.use_imm && src >= config_.depth(MemType::acc))
              return refuse(
                  "sram", cat("reads acc element ", src, " of ", config_.depth(MemType::acc)), at_);
            continue;
          }
          if (n.reset) continue;
          if (src >= config_.depth(MemType::inp))
            return refuse("sram",
                          cat("reads inp element ", src, " of ", config_.depth(MemType::inp)), at_);
          if (wgt >= config_.depth(MemType::wgt))
            return refuse("sram",
                          cat("reads wgt element ", wgt, " of ", config_.depth(MemType::wgt)), at_);
          Touch& inp = inp_[static_cast<std::size_t>(src)];
          if (inp.written > known(Stage::load)) return hazard("inp", src, Stage::load, inp.written);
          inp.read = position_;
          Touch& w = wgt_[static_cast<std::size_t>(wgt)];
          if (w.written > known(Stage::load)) return hazard("wgt", wgt, Stage::load, w.written);
          w.read = position_;
        }
      }
    }
    return std::nullopt;
  }

  /// DRAM that one kernel both reads and writes: intervals of bytes per parameter, by stage.
  Verdict dram(const Insn& n, bool write) {
    std::uint16_t base = kernel_.stream.base[at_];
    if (base >= read_.size() || !read_[base] || !written_[base]) return std::nullopt;
    std::int64_t bytes = config_.elem_bytes(n.mem);
    for (std::int64_t y = 0; y < n.y_size; ++y) {
      std::int64_t first = (std::int64_t{n.dram} + y * n.x_stride) * bytes,
                   end = first + n.x_size * bytes;
      for (int s = 0; s < 3; ++s) {
        bool other_writes = s == static_cast<int>(Stage::store);
        if (s == static_cast<int>(n.stage()) || (!write && !other_writes)) continue;
        for (const Interval& i : intervals_[base][static_cast<std::size_t>(s)]) {
          if (i.first < end && first < i.end && i.position > known(static_cast<Stage>(s))) {
            return hazard(kernel_.signature.params[base].name, std::max(first, i.first) / bytes,
                          static_cast<Stage>(s), i.position);
          }
        }
      }
      intervals_[base][static_cast<std::size_t>(n.stage())].push_back({first, end, position_});
    }
    return std::nullopt;
  }

  const Program& program_;
  const Kernel& kernel_;
  const Config& config_;
  Isa isa_;
  Prepared prepared_;
  std::vector<Touch> inp_, wgt_, acc_;
  std::vector<std::uint32_t> uop_;
  std::vector<bool> uop_known_, read_, written_;
  std::vector<std::array<std::vector<Interval>, 3>> intervals_;
  const Clock* clock_ = nullptr;
  std::int64_t position_ = 0;
  std::uint32_t at_ = 0;
};

}  // namespace

Verdict check(const Program& program, std::size_t kernel) { return Checker(program, kernel).run(); }

}  // namespace weft::vta
