// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/timing.h"

#include <algorithm>

#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/tokens.h"

namespace weft::vta {

TimingParams parse_timing(std::string_view text, std::string_view file) {
  Json json = Json::parse(text, file);
  if (!json.is_object())
    throw Error(ErrorKind::value, "vta.timing.value", cat(file, " holds ", json.dump()))
        .note("needed: an object of parameters, {\"latency\": 100}");
  TimingParams out;
  std::vector<std::string> known;
#define WEFT_VTA_TIMING(name, value, unit, source) known.push_back(#name);
#include "weft/targets/vta/timing.def"
#undef WEFT_VTA_TIMING
  for (const auto& [key, value] : json.as_object()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error(ErrorKind::value, "vta.timing.key",
                  cat("\"", key, "\" is no parameter of the timing model"))
          .note(cat("known: ", join(known)))
          .help(did_you_mean(key, known));
    }
    if (!value.is_int() || value.as_int() < 0 || value.as_int() > 1'000'000 ||
        (key == "bus_bytes" && value.as_int() == 0)) {
      throw Error(ErrorKind::value, "vta.timing.value", cat(key, " is ", value.dump()))
          .note("legal: integers from 0 to 1000000; bus_bytes at least 1");
    }
#define WEFT_VTA_TIMING(name, value_, unit, source) \
  if (key == #name) out.name = value.as_int();
#include "weft/targets/vta/timing.def"
#undef WEFT_VTA_TIMING
  }
  return out;
}

std::string timing_table() {
  std::string out = "| parameter | value | unit | source |\n|---|---|---|---|\n";
#define WEFT_VTA_TIMING(name, value, unit, source) \
  out += cat("| ", #name, " | ", value, " | ", unit, " | ", source, " |\n");
#include "weft/targets/vta/timing.def"
#undef WEFT_VTA_TIMING
  return out;
}

namespace {

/// Time stamps of the tokens of one counter, oldest first.
class TokenTimes {
 public:
  bool empty() const { return first_ == times_.size(); }
  std::int64_t front() const { return times_[first_]; }
  void pop() {
    if (++first_ == times_.size()) times_.clear(), first_ = 0;
  }
  void push(std::int64_t t) { times_.push_back(t); }
  std::int64_t count() const { return static_cast<std::int64_t>(times_.size() - first_); }

 private:
  std::vector<std::int64_t> times_;
  std::size_t first_ = 0;
};

class Model {
 public:
  Model(const Prepared& program, const Config& config, const TimingParams& params,
        const TimingOptions& options)
      : program_(program), config_(config), p_(params), options_(options) {
    for (int m = 0; m < 6; ++m) elem_[m] = config.elem_bytes(static_cast<MemType>(m));
    for (int s = 0; s < 3; ++s)
      fetched_[s].reserve(program.queue[s].size()), started_[s].reserve(program.queue[s].size());
    if (options.keep_order) out_.order.reserve(program.stream.insns.size());
    if (options.times) {
      const std::size_t n = program.stream.insns.size();
      for (auto* times : {&options.times->fetched, &options.times->start, &options.times->end})
        times->assign(n, -1);
    }
    if (options.trace) {
      track_[3] = options.trace->track("vta", "fetch");
      for (int s = 0; s < 3; ++s)
        track_[s] = options.trace->track("vta", to_string(static_cast<Stage>(s)));
    }
  }

  Timing run() {
    const auto& insns = program_.stream.insns;
    for (;;) {
      fetch();
      // The head that can start first; a start depends only on what has already been decided.
      int best = -1;
      std::int64_t best_start = 0;
      for (int s = 0; s < 3; ++s) {
        if (head_[s] >= fetched_[s].size()) continue;
        std::int64_t start;
        if (!start_of(insns[program_.queue[s][head_[s]]], s, start)) continue;
        if (best < 0 || start < best_start) best = s, best_start = start;
      }
      if (best < 0) break;
      go(best, best_start);
    }
    for (int s = 0; s < 3; ++s) {
      if (head_[s] < program_.queue[s].size()) {
        std::int64_t tokens[4];
        for (int t = 0; t < 4; ++t) tokens[t] = tokens_[t].count();
        throw deadlock(program_, Isa(config_), head_, tokens, fetched_count_);
      }
    }
    for (int s = 0; s < 3; ++s) out_.cycles = std::max(out_.cycles, clock_[s]);
    for (int s = 0; s < 3; ++s) out_.stage[s].idle = out_.cycles - clock_[s];
    return std::move(out_);
  }

 private:
  void fetch() {
    const auto& insns = program_.stream.insns;
    while (fetched_count_ < insns.size()) {
      int s = static_cast<int>(insns[fetched_count_].stage());
      std::size_t k = fetched_[s].size();
      std::int64_t at = fetch_clock_;
      if (static_cast<std::int64_t>(k) >= options_.command_depth) {
        std::size_t leaves = k - static_cast<std::size_t>(options_.command_depth);
        if (leaves >= started_[s].size()) break;
        at = std::max(at, started_[s][leaves]);
      }
      std::int64_t beats = (p_.fetch_bytes + p_.bus_bytes - 1) / p_.bus_bytes;
      fetch_clock_ = at + beats;
      if (options_.trace) {
        const double us = 1e6 / options_.clock_hz;
        Json args = Json::object();
        args["instruction"] = static_cast<std::int64_t>(fetched_count_);
        options_.trace->span(track_[3], to_string(insns[fetched_count_].op),
                             static_cast<double>(options_.start_cycle + at) * us,
                             static_cast<double>(beats) * us, std::move(args));
      }
      fetch_pending_ += beats;  // charged to the read port at the next transfer
      out_.fetch_busy += beats;
      fetched_[s].push_back(fetch_clock_);
      if (options_.times) options_.times->fetched[fetched_count_] = fetch_clock_;
      ++fetched_count_;
    }
  }

  bool start_of(const Insn& n, int s, std::int64_t& start) const {
    start = std::max(clock_[s], fetched_[s][head_[s]]);
    unsigned pops = token_use(n).pops;
    for (int t = 0; pops; ++t, pops >>= 1) {
      if (!(pops & 1)) continue;
      if (tokens_[t].empty()) return false;
      start = std::max(start, tokens_[t].front());
    }
    return true;
  }

  void go(int s, std::int64_t start) {
    std::uint32_t at = program_.queue[s][head_[s]];
    const Insn& n = program_.stream.insns[at];
    StageTime& books = out_.stage[s];
    std::int64_t arrived = std::max(clock_[s], fetched_[s][head_[s]]);
    books.stall_fetch += arrived - clock_[s];
    books.stall_token += start - arrived;
    TokenUse use = token_use(n);
    for (int t = 0; t < 4; ++t) {
      if (use.pops >> t & 1) tokens_[t].pop();
    }
    std::int64_t waited = 0, end = start + p_.issue;
    if (n.is_dma() && !n.is_nop()) {
      std::int64_t row =
          (n.x_size * elem_[static_cast<int>(n.mem)] + p_.bus_bytes - 1) / p_.bus_bytes +
          p_.row_cycles;
      std::int64_t rows = n.y_size;
      if (n.x_size == n.x_stride)
        row = (n.y_size * std::int64_t{n.x_size} * elem_[static_cast<int>(n.mem)] + p_.bus_bytes -
               1) /
                  p_.bus_bytes +
              p_.row_cycles,
        rows = 1;
      std::int64_t beats = n.y_size ? rows * row : 0;
      std::int64_t& port = n.op == Opcode::store ? write_free_ : read_free_;
      if (n.op == Opcode::load) port += std::exchange(fetch_pending_, 0);
      std::int64_t wanted = end + p_.latency, begin = std::max(wanted, port);
      waited = begin - wanted;
      port = begin + beats;
      (n.op == Opcode::store ? out_.write_busy : out_.read_busy) += beats;
      std::int64_t pads = n.sram_elements() - std::int64_t{n.y_size} * n.x_size;
      end = port + pads * p_.pad_cycles;
    } else if (n.op == Opcode::gemm) {
      std::int64_t runs = std::max<std::int64_t>(n.uop_runs(), 0) * p_.gemm_uop;
      if (!n.reset) out_.gemm_cycles += runs;
      end += runs + p_.gemm_fill;
    } else if (n.op == Opcode::alu) {
      end +=
          std::max<std::int64_t>(n.uop_runs(), 0) * (n.use_imm ? p_.alu_imm_uop : p_.alu_acc_uop) +
          p_.alu_fill;
    }
    books.stall_bus += waited;
    books.busy += end - start - waited;
    for (int t = 0; t < 4; ++t) {
      if (use.pushes >> t & 1) tokens_[t].push(end);
    }
    clock_[s] = end;
    started_[s].push_back(start);
    ++head_[s];
    if (options_.keep_order) out_.order.push_back(at);
    if (options_.times) options_.times->start[at] = start, options_.times->end[at] = end;
    if (options_.trace && end > start) {
      double us = 1e6 / options_.clock_hz;
      Json args = Json::object();
      args["instruction"] = static_cast<std::int64_t>(at);
      args["cycle"] = options_.start_cycle + start;
      args["cycles"] = end - start;
      std::string name = n.is_nop()            ? "tokens"
                         : n.is_dma()          ? cat(to_string(n.op), " ", to_string(n.mem))
                         : n.op == Opcode::alu ? cat("alu ", to_string(n.alu))
                                               : std::string(n.reset ? "reset" : to_string(n.op));
      options_.trace->span(track_[s], name, static_cast<double>(options_.start_cycle + start) * us,
                           static_cast<double>(end - start) * us, std::move(args));
    }
  }

  const Prepared& program_;
  const Config& config_;
  const TimingParams& p_;
  const TimingOptions& options_;
  Timing out_;
  std::int64_t elem_[6];
  std::int64_t clock_[3] = {}, read_free_ = 0, write_free_ = 0, fetch_clock_ = 0,
               fetch_pending_ = 0;
  std::size_t head_[3] = {}, fetched_count_ = 0;
  std::vector<std::int64_t> fetched_[3], started_[3];
  TokenTimes tokens_[4];
  int track_[4] = {};
};

}  // namespace

Timing estimate(const Prepared& program, const Config& config, const TimingParams& params,
                const TimingOptions& options) {
  return Model(program, config, params, options).run();
}

}  // namespace weft::vta
