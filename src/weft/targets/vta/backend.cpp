// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "weft/base/file.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/inject_virtual_threads.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/simplify.h"
#include "weft/target/accepts.h"
#include "weft/target/backend.h"
#include "weft/target/open_schedules.h"
#include "weft/target/pipeline.h"
#include "weft/target/rules.h"
#include "weft/targets/vta/board.h"
#include "weft/targets/vta/chip_memory.h"
#include "weft/targets/vta/default_schedule.h"
#include "weft/targets/vta/lower.h"
#include "weft/targets/vta/nest.h"
#include "weft/targets/vta/reuse_buffers.h"
#include "weft/targets/vta/simulator.h"
#include "weft/targets/vta/split_stages.h"
#include "weft/targets/vta/trim_loops.h"

namespace weft::vta {

namespace {

/// "vta", "vta:config.json", "vta:4x8x8": a file when the name has a dot or a slash, else a sample.
Config config_of(const Target& target) {
  std::string text = target.option("", target.option("config", ""));
  if (text == "hw") text = target.option("config", "");
  if (text.empty()) return Config();
  if (text.find('.') == std::string::npos && text.find('/') == std::string::npos)
    return Config::sample(text);
  return Config::load(text);
}

/// "timing=": a JSON file of parameters of the cycle model, over the defaults.
TimingParams timing_of(const Target& target) {
  const std::string file(target.option("timing", ""));
  return file.empty() ? TimingParams() : parse_timing(read_file(file), file);
}

/// "debug=": which parts the listing shows, as a number ("0x6" is upstream's debug_flag) or by
/// name, joined by "+".
unsigned debug_parts(const Target& target) {
  std::string text(target.option("debug", ""));
  if (!text.empty() && text.find_first_not_of("0123456789abcdefxABCDEFX") == std::string::npos &&
      text[0] >= '0' && text[0] <= '9') {
    auto bits = std::strtoul(text.c_str(), nullptr, 0);
    if (bits && (bits & ~14ul) == 0) return static_cast<unsigned>(bits);
  } else {
    unsigned bits = 0;
    bool known = true;
    for (std::size_t at = 0; at <= text.size();) {
      std::size_t end = std::min(text.find('+', at), text.size());
      std::string_view word = std::string_view(text).substr(at, end - at);
      unsigned bit = word == "insn" ? 2 : word == "uop" ? 4 : word == "barrier" ? 8 : 0;
      known = known && bit;
      bits |= bit;
      at = end + 1;
    }
    if (known) return bits;
  }
  throw Error(ErrorKind::value, "vta.option.debug", cat("debug is \"", text, "\""))
      .note(
          "legal: 2 instructions, 4 micro-operations, 8 tokens also where there are none; their "
          "sum (0x6), or insn, uop, barrier joined by +");
}

/// "vta:hw": the chip, whatever its configuration.
bool names_chip(const Target& target) {
  return target.option("", "") == std::string_view("hw") || target.option("hw", "") != "";
}

ir::PrimFunc gemm_meaning(int batch, int in, int out) {
  std::string text = cat(
      "@T.prim_func\ndef gemm(A: T.Buffer((", batch, ", ", in,
      "), \"int8\", scope=\"vta.inp\"), B: T.Buffer((", out, ", ", in,
      "), \"int8\", scope=\"vta.wgt\"), C: T.Buffer((", batch, ", ", out,
      "), \"int32\", scope=\"vta.acc\")):\n    for b, o, k in T.grid(", batch, ", ", out, ", ", in,
      "):\n        with T.block(\"gemm\"):\n            vb, vo, vk = T.axis.remap(\"SSR\", [b, o, "
      "k])\n",
      "            C[vb, vo] = C[vb, vo] + T.cast(A[vb, vk], \"int32\") * T.cast(B[vo, vk], "
      "\"int32\")\n");
  return ir::parse_func(text, "<vta.gemm>");
}

ir::PrimFunc alu_meaning(const Config& c, std::string_view name, std::string_view expression) {
  std::string shape =
      cat("T.Buffer((", c.batch(), ", ", c.block_out(), "), \"int32\", scope=\"vta.acc\")");
  std::string text =
      cat("@T.prim_func\ndef ", name, "(X: ", shape, ", Y: ", shape, "):\n    for b, o in T.grid(",
          c.batch(), ", ", c.block_out(), "):\n        with T.block(\"", name,
          "\"):\n            vb, vo = T.axis.remap(\"SS\", [b, o])\n            X[vb, vo] = ",
          expression, "\n");
  return ir::parse_func(text, cat("<vta.alu.", name, ">"));
}

class VtaBackend final : public Backend, public OpenSchedules {
 public:
  std::string_view name() const override { return "vta"; }

  TargetInfo info(const Target& target) const override {
    static const std::vector<std::string> known{"config", "engine", "strict",    "memory", "mode",
                                                "timing", "hw",     "bitstream", "debug"};
    for (const auto& [key, value] : target.options) {
      if (key.empty() || std::find(known.begin(), known.end(), key) != known.end()) continue;
      throw Error(ErrorKind::value, "vta.option.unknown",
                  cat("target vta has no option \"", key, "\" (given: ", value, ")"))
          .note(cat("options: ", join(known)))
          .help(did_you_mean(key, known));
    }
    if (target.option("debug", "") != "") debug_parts(target);
    Config c = config_of(target);
    TargetInfo out;
    out.name = "vta";
    auto memory = [&](const char* scope, std::int64_t bytes, std::int64_t smallest,
                      const char* access) {
      MemoryInfo m;
      m.scope = scope, m.bytes = bytes, m.min_transfer_bytes = static_cast<int>(smallest),
      m.access = access;
      if (m.scope.starts_with("vta.")) m.private_to = {"vthread"};  // a place for each thread
      out.memories.push_back(m);
    };
    memory("global", 0, 1, "dma");
    memory("vta.inp", c.buffer_bytes(MemType::inp), c.elem_bytes(MemType::inp), "dma");
    memory("vta.wgt", c.buffer_bytes(MemType::wgt), c.elem_bytes(MemType::wgt), "dma");
    memory("vta.acc", c.buffer_bytes(MemType::acc), c.elem_bytes(MemType::acc), "instruction");
    AxisInfo vthread;
    vthread.name = "vthread", vthread.kind = AxisKind::virtual_;
    out.axes.push_back(vthread);
    for (const char* queue : {"load", "compute", "store"})
      out.queues.push_back({queue, true, "token", 255});
    InstructionInfo gemm;
    gemm.name = "vta.gemm";
    gemm.meaning = gemm.implementation = gemm_meaning(c.batch(), c.block_in(), c.block_out());
    out.instructions.push_back(gemm);
    // By shape too, so that programs for another configuration can be scheduled before a target is
    // named.
    for (int batch : {1, 2, 4}) {
      for (int block : {8, 16, 32}) {
        gemm.name = cat("vta.gemm.", batch, "x", block, "x", block);
        gemm.meaning = gemm.implementation = gemm_meaning(batch, block, block);
        out.instructions.push_back(gemm);
      }
    }
    for (auto [name, expression] : {std::pair{"max", "T.max(X[vb, vo], Y[vb, vo])"},
                                    {"min", "T.min(X[vb, vo], Y[vb, vo])"},
                                    {"add", "X[vb, vo] + Y[vb, vo]"},
                                    {"mul", "X[vb, vo] * Y[vb, vo]"},
                                    {"shr", "T.shift_right(X[vb, vo], Y[vb, vo])"}}) {
      InstructionInfo row;
      row.name = cat("vta.alu.", name),
      row.meaning = row.implementation = alu_meaning(c, name, expression);
      out.instructions.push_back(row);
    }
    // Narrow integers are widened on the way in and cut on the way out.
    out.dtypes = {dtypes::int8, dtypes::int32, dtypes::int16, dtypes::uint8, dtypes::uint16};
    out.limits = {{limits::kLanes, c.lanes()},
                  {"block_in", c.block_in()},
                  {"block_out", c.block_out()},
                  {"batch", c.batch()},
                  {"inp_width", c.inp_width()},
                  {"wgt_width", c.wgt_width()},
                  {"acc_width", c.acc_width()},
                  {"out_width", c.out_width()},
                  {"uop_bytes", c.buffer_bytes(MemType::uop)},
                  {"inp_bytes", c.buffer_bytes(MemType::inp)},
                  {"wgt_bytes", c.buffer_bytes(MemType::wgt)},
                  {"acc_bytes", c.buffer_bytes(MemType::acc)},
                  {"clock_hz", static_cast<std::int64_t>(c.board().clock_hz)}};
    out.symbolic_shapes = false;
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    if (Verdict no = accepts_rows(f, info(target))) return no;
    for (const ir::Param& p : f->params) {
      Refusal r;
      r.code = "vta.accepts.static";
      if (!p.buffer) {
        r.message = cat("parameter \"", p.var->name, "\" is a scalar");
        return r.note(
            "kernels of this machine take arrays only; constants belong into the program");
      }
      for (const ir::Expr& e : p.buffer->shape) {
        if (ir::is_const_int(e)) continue;
        r.message =
            cat("the extent ", ir::print(e), " of \"", p.buffer->name, "\" is not constant");
        return r.note("programs for this machine are made for one shape");
      }
    }
    return accepts_default(f, config_of(target));
  }

  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const override {
    return is_scheduled(f) ? f : default_steps(f, target, Json())->func();
  }

  /// Options: tiles, an object of whole elements by axis, and threads.
  std::unique_ptr<schedule::Schedule> default_steps(const ir::PrimFunc& f, const Target& target,
                                                    const Json& options) const override {
    ScheduleOptions given;
    given.timing = timing_of(target);
    if (options.is_object()) {
      for (const auto& [key, value] : options.as_object()) {
        if (key == "tiles") {
          for (const auto& [axis, n] : value.as_object()) {
            if (!n.is_int())
              throw Error(ErrorKind::value, "vta.option.schedule",
                          cat("tiles[\"", axis, "\"] is ", n.dump()))
                  .note("legal: whole numbers, elements of the machine along that iterator");
            given.tiles[axis] = n.as_int();
          }
        } else if (key == "threads") {
          given.threads = value.as_int();
        } else {
          throw Error(ErrorKind::value, "vta.option.schedule",
                      cat("the default schedule has no option \"", key, "\""))
              .note("options: tiles, threads");
        }
      }
    }
    return with_options(f, target, given);
  }

  std::unique_ptr<const OpenedSchedule> open_schedule(const ir::PrimFunc& f,
                                                      const Target& target) const override {
    struct Opened final : OpenedSchedule {
      const VtaBackend* backend;
      ir::PrimFunc f;
      Target target;
      Opened(const VtaBackend* b, ir::PrimFunc func, Target t)
          : backend(b), f(std::move(func)), target(std::move(t)) {}
      schedule::Schedule made(rules::Choices& choices) const override {
        ScheduleOptions given;
        given.timing = timing_of(target);
        given.choose = [&](const std::string& name, const std::vector<std::int64_t>& options) {
          return choices.number(name, options);
        };
        return *backend->with_options(f, target, given);
      }
    };
    if (is_scheduled(f)) return nullptr;
    return std::make_unique<Opened>(this, f, target);
  }

  pass::Pipeline pipeline(const Target& target) const override {
    const auto machine = std::make_shared<const TargetInfo>(info(target));
    pass::Pipeline p;
    p.push_back({"lower_init", pass::lower_init});
    p.push_back({"place_allocations", [machine](const ir::PrimFunc& f) {
                   return pass::place_allocations(f, *machine);
                 }});
    p.push_back({"convert_blocks", pass::convert_blocks});
    p.push_back({"compact_buffers",
                 [machine](const ir::PrimFunc& f) { return pass::compact_buffers(f, *machine); }});
    p.push_back({"trim_loops", trim_loops});
    // Places are found while recording, so shapes may vary.
    p.push_back({"compact_tiles", [machine](const ir::PrimFunc& f) {
                   return pass::compact_buffers(f, *machine, true);
                 }});
    p.push_back({"lower_match_buffers", pass::lower_match_buffers});
    p.push_back({"inject_virtual_threads", [machine](const ir::PrimFunc& f) {
                   return pass::inject_virtual_threads(keep_places(f), *machine, is_nest);
                 }});
    p.push_back({"flatten_buffers", pass::flatten_buffers});
    p.push_back({"simplify", pass::simplify});
    p.push_back({"reuse_buffers", reuse_buffers});
    p.push_back({"split_stages", split_stages});
    return p;
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    Program program = lower(kernels, config_of(target));
    runtime::Binary out = to_binary(program, target.text());
    if (target.option("debug", "") != "") out.source = listing(program, debug_parts(target));
    return out;
  }

  void check_kernels(const std::vector<ir::PrimFunc>& kernels,
                     const Target& target) const override {
    lower(kernels, config_of(target));
  }

  std::vector<DeviceStatus> devices() const override {
    DeviceStatus simulated{"vta", runtime::DeviceKind::simulator, true, "",
                           cat("simulated VTA ", Config().model())};
    DeviceStatus chip{"vta:hw", runtime::DeviceKind::hardware, false, "", ""};
    try {
      open_linux_bus(Config());
      chip.available = true;
      chip.description = cat("VTA ", Config().model(), " through /dev/mem");
    } catch (const Error& error) {
      chip.reason = error.message();
    }
    return {simulated, chip};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    if (names_chip(target)) {
      BoardOptions options;
      options.bitstream = std::string(target.option("bitstream", ""));
      Config config = config_of(target);
      return open_board(config, open_linux_bus(config), options, target.text());
    }
    info(target);
    SimOptions options;
    std::string engine(target.option("engine", "fast"));
    if (engine != "fast" && engine != "oracle")
      throw Error(ErrorKind::value, "vta.option.engine", cat("engine is \"", engine, "\""))
          .note("legal: fast, oracle");
    options.engine = engine == "oracle" ? EngineKind::oracle : EngineKind::fast;
    options.strict = target.integer("strict", 0) != 0;
    options.timing = timing_of(target);
    std::string mode(target.option("mode", "full"));
    if (mode != "full" && mode != "cycles")
      throw Error(ErrorKind::value, "vta.option.mode", cat("mode is \"", mode, "\""))
          .note("legal: full, cycles");
    options.mode = mode == "cycles" ? Mode::cycles : Mode::full;
    std::int64_t bytes = target.integer("memory", std::int64_t{1} << 30);
    if (bytes < (1 << 16) || bytes > (std::int64_t{1} << 36))
      throw Error(ErrorKind::value, "vta.option.memory", cat("memory is ", bytes, " bytes"))
          .note("legal: 65536 to 68719476736");
    options.memory_bytes = static_cast<std::uint64_t>(bytes);
    return open_simulator(config_of(target), std::move(options), target.text());
  }

  bool client_may_set(std::string_view key, std::string_view value) const override {
    if (key.empty()) return value != "hw";
    return key == "engine" || key == "strict" || key == "mode";
  }

  bool has_assembler() const override { return true; }

  std::string assemble(std::string_view text, std::string_view file,
                       const Target& target) const override {
    std::string out;
    for (const isa::Word& word : Isa(config_of(target)).assemble(text, file)) {
      for (std::uint64_t half : {word.lo, word.hi}) {
        for (unsigned at = 0; at < 64; at += 8) out.push_back(static_cast<char>(half >> at));
      }
    }
    return out;
  }

  std::string disassemble(std::string_view words, const Target& target) const override {
    if (words.size() % 16)
      throw Error(ErrorKind::value, "vta.words.size",
                  cat(words.size(), " bytes are no whole number of instructions"))
          .note("an instruction has 16 bytes");
    Isa isa(config_of(target));
    std::string out;
    for (std::size_t at = 0; at < words.size(); at += 16) {
      std::uint64_t half[2] = {0, 0};
      for (unsigned i = 0; i < 16; ++i)
        half[i / 8] |= std::uint64_t{static_cast<unsigned char>(words[at + i])} << (8 * (i % 8));
      isa::Word word;
      word.lo = half[0], word.hi = half[1];
      out += cat(isa.print(isa.decode(word)), "\n");
    }
    return out;
  }

 private:
  std::unique_ptr<schedule::Schedule> with_options(const ir::PrimFunc& f, const Target& target,
                                                   const ScheduleOptions& options) const {
    auto machine = std::make_shared<TargetInfo>(*schedule_target_info());
    machine->merge(info(target));
    return std::make_unique<schedule::Schedule>(
        vta::default_schedule(f, config_of(target), machine, options));
  }
};

}  // namespace

Backend& backend() {
  static VtaBackend instance;
  return instance;
}

}  // namespace weft::vta
