// SPDX-License-Identifier: Apache-2.0
// A ten-instruction machine built from the kits alone: proves that `isa` and `sim` suffice for a
// target.

#include <gtest/gtest.h>

#include <random>

#include "weft/isa/isa.h"
#include "weft/runtime/trace.h"
#include "weft/sim/fault.h"
#include "weft/sim/simulator.h"

namespace weft {
namespace {

using isa::FieldKind;
using isa::Format;
using isa::Instruction;
using isa::InstructionSet;
using isa::Word;

const InstructionSet& toy() {
  auto reg = [](const char* name, unsigned at) {
    return isa::Field{name, at, 4, FieldKind::unsigned_, {}, "register"};
  };
  isa::Field imm{"imm", 16, 16, FieldKind::signed_, {}, "constant"};
  auto op = [](unsigned code) { return std::vector<isa::Fixed>{{0, 4, code}}; };
  static const InstructionSet set(
      "toy", 32,
      {
          {"halt", {{0, 32, 0}}, {}, "", "stops"},
          {"ldi", {{0, 4, 1}, {8, 8, 0}}, {reg("rd", 4), imm}, "{rd}, {imm}", "rd = imm"},
          {"add",
           {{0, 4, 2}, {16, 16, 0}},
           {reg("rd", 4), reg("ra", 8), reg("rb", 12)},
           "{rd}, {ra}, {rb}",
           "rd = ra + rb"},
          {"sub",
           {{0, 4, 3}, {16, 16, 0}},
           {reg("rd", 4), reg("ra", 8), reg("rb", 12)},
           "{rd}, {ra}, {rb}",
           "rd = ra - rb"},
          {"mul",
           {{0, 4, 4}, {16, 16, 0}},
           {reg("rd", 4), reg("ra", 8), reg("rb", 12)},
           "{rd}, {ra}, {rb}",
           "rd = ra * rb"},
          {"ld",
           op(5),
           {reg("rd", 4), reg("ra", 8), {"pad", 12, 4, FieldKind::named, {{"w", 0}}, "width"}, imm},
           "{rd}, [{ra}+{imm}].{pad}",
           "rd = mem[ra + imm]"},
          {"st",
           op(6),
           {reg("rd", 4), reg("ra", 8), {"pad", 12, 4, FieldKind::named, {{"w", 0}}, "width"}, imm},
           "{rd}, [{ra}+{imm}].{pad}",
           "mem[ra + imm] = rd"},
          {"bnz",
           {{0, 4, 7}, {8, 8, 0}},
           {reg("ra", 4), imm},
           "{ra}, {imm}",
           "if ra != 0: pc += imm"},
          {"arg", {{0, 4, 8}, {8, 8, 0}}, {reg("rd", 4), imm}, "{rd}, {imm}", "rd = argument imm"},
          {"nop", {{0, 4, 9}, {4, 28, 0}}, {}, "", "nothing"},
      });
  return set;
}

class ToyMachine final : public sim::Simulator {
 public:
  sim::Memory& memory() override { return memory_; }
  std::size_t load(const runtime::Binary& binary) override {
    program_.clear();
    for (std::size_t at = 0; at + 4 <= binary.bytes.size(); at += 4) {
      std::uint32_t word;
      std::memcpy(&word, binary.bytes.data() + at, 4);
      program_.push_back(toy().decode({word, 0}));
    }
    return 0;
  }
  void begin(std::size_t, const sim::Launch& launch) override {
    launch_ = launch;
    pc_ = 0;
    cycles_ = busy_ = stall_ = 0;
    std::fill(std::begin(r_), std::end(r_), 0);
  }
  bool step() override {
    if (pc_ >= static_cast<std::int64_t>(program_.size())) {
      throw sim::fault("toy.pc.outside",
                       cat("the program ends at ", program_.size(), " without halt"),
                       {"core", pc_, cycles_, "", ""});
    }
    const Instruction& i = program_[static_cast<std::size_t>(pc_)];
    const auto& v = i.values;
    ++cycles_;
    ++busy_;
    ++instructions_;
    std::int64_t next = pc_ + 1;
    auto address = [&] {
      std::uint64_t a = static_cast<std::uint64_t>(r_[v[1]] + v[3]);
      if (!memory_.allocated(a, 8)) {
        throw sim::fault("toy.memory.bounds",
                         cat("an access of 8 bytes at ", hex(a), " is ", memory_.describe(a, 8)),
                         {"core", pc_, cycles_, toy().print(i), ""});
      }
      cycles_ += 3;
      stall_ += 3;
      return a;
    };
    switch (i.format) {
      case 0: return false;
      case 1: r_[v[0]] = v[1]; break;
      case 2: r_[v[0]] = r_[v[1]] + r_[v[2]]; break;
      case 3: r_[v[0]] = r_[v[1]] - r_[v[2]]; break;
      case 4: r_[v[0]] = r_[v[1]] * r_[v[2]]; break;
      case 5: r_[v[0]] = memory_.load<std::int64_t>(address()); break;
      case 6: memory_.store<std::int64_t>(address(), r_[v[0]]); break;
      case 7:
        if (r_[v[0]]) next = pc_ + v[1];
        break;
      case 8: {
        auto n = static_cast<std::size_t>(v[1]);
        r_[v[0]] = n < launch_.pointers.size() ? static_cast<std::int64_t>(launch_.pointers[n])
                                               : launch_.scalars.at(n - launch_.pointers.size());
        break;
      }
      default: break;
    }
    if (trace_)
      trace_->span(trace_->track("toy", "core"), toy().formats()[i.format].name,
                   static_cast<double>(pc_), 1);
    pc_ = next;
    return true;
  }
  sim::RunResult run(std::size_t program, const sim::Launch& launch,
                     const sim::RunLimits& limits) override {
    begin(program, launch);
    while (step()) {
      if (cycles_ > limits.cycles) {
        throw sim::fault("toy.limit.cycles",
                         cat("the program ran longer than ", limits.cycles, " cycles"),
                         {"core", pc_, cycles_, "", ""});
      }
    }
    total_ += cycles_;
    return {cycles_, sim::StopReason::finished};
  }
  runtime::StatReport stats() const override {
    runtime::StatReport report;
    report.add("cycles", "cycles", "simulated time", cycles_);
    report.add("instructions", "1", "instructions executed", instructions_);
    report.add("busy.core", "cycles", "executing", busy_);
    report.add("stall.core.memory", "cycles", "waiting for memory", stall_);
    report.add("idle.core", "cycles", "nothing to do", cycles_ - busy_ - stall_);
    return report;
  }
  void clear_stats() override { instructions_ = 0; }
  void trace_to(runtime::TraceSink* sink) override { trace_ = sink; }
  std::vector<sim::NamedValue> state() const override {
    return {{"pc", std::to_string(pc_)}, {"r0", std::to_string(r_[0])}};
  }

 private:
  sim::Memory memory_{"toy memory", 1 << 20, 4096};
  std::vector<Instruction> program_;
  sim::Launch launch_;
  std::int64_t r_[16] = {}, pc_ = 0, cycles_ = 0, busy_ = 0, stall_ = 0, instructions_ = 0,
               total_ = 0;
  runtime::TraceSink* trace_ = nullptr;
};

runtime::Binary assemble(std::string_view text) {
  runtime::Binary binary;
  binary.format = "toy";
  for (const Instruction& i : toy().assemble(text)) {
    auto word = static_cast<std::uint32_t>(toy().encode(i).lo);
    binary.bytes.append(reinterpret_cast<const char*>(&word), 4);
  }
  binary.kernels.push_back({"main",
                            {{"a", runtime::ParamKind::pointer, dtypes::int64, "global"},
                             {"n", runtime::ParamKind::scalar, dtypes::int64, "global"}},
                            {},
                            0});
  return binary;
}

// sum of a[0..n) into a[0]
constexpr const char* kSum =
    "arg 1, 0\narg 2, 1      # pointer, count\nldi 3, 0\nldi 5, 8\nldi 6, 1\nadd 7, 1, 3\n"
    "ld 4, [7+0].w\nadd 3, 3, 4\nadd 7, 7, 5\nsub 2, 2, 6\nbnz 2, -4\nst 3, [1+0].w\nhalt\n";

Ref<runtime::Device> toy_device() {
  runtime::DeviceInfo info;
  info.name = "toy";
  info.clock_hz = 1e6;
  return make_ref<sim::SimDevice>(std::make_unique<ToyMachine>(), info, "toy");
}

TEST(ToyMachine, sums_through_the_device_interface) {
  Ref<runtime::Device> device = toy_device();
  Ref<runtime::Executable> program = device->load(assemble(kSum));
  std::vector<std::int64_t> data{5, 6, 7, 8};
  Ref<runtime::Storage> storage = device->allocate(32);
  device->upload(*storage, 0, data.data(), 32);
  runtime::TraceSink trace;
  device->trace_to(&trace);
  runtime::KernelArg args[] = {runtime::KernelArg::pointer(storage.get()),
                               runtime::KernelArg::integer(4)};
  runtime::Span span = device->measure([&] { device->launch(*program, 0, args, {}).wait(); });
  device->download(data.data(), *storage, 0, 32);
  EXPECT_EQ(data[0], 26);
  EXPECT_EQ(span.cycles, 6 + 4 * 5 + 1 + 1 + 5 * 3);
  EXPECT_DOUBLE_EQ(span.seconds, static_cast<double>(span.cycles) / 1e6);
  EXPECT_FALSE(device->stats().check_books()) << device->stats().table();
  EXPECT_EQ(device->stats().get("instructions"), 28);
  EXPECT_EQ(trace.size(), 27u);
  Json json = Json::parse(trace.to_json());
  EXPECT_EQ(json.at("traceEvents").size(), 27u + 2u);
}

TEST(ToyMachine, a_read_past_the_end_is_a_fault_and_the_device_lives_on) {
  Ref<runtime::Device> device = toy_device();
  Ref<runtime::Executable> program = device->load(assemble(kSum));
  Ref<runtime::Storage> storage = device->allocate(32);
  runtime::KernelArg bad[] = {runtime::KernelArg::pointer(storage.get()),
                              runtime::KernelArg::integer(5)};
  try {
    device->launch(*program, 0, bad, {}).wait();
    FAIL() << "no fault";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::fault);
    EXPECT_EQ(error.code(), "toy.memory.bounds");
    std::string text = error.what();
    EXPECT_NE(text.find("8 bytes past the end of the 32-byte allocation"), std::string::npos)
        << text;
    EXPECT_NE(text.find("ld 4, [7+0].w"), std::string::npos) << text;
  }
  runtime::KernelArg good[] = {runtime::KernelArg::pointer(storage.get()),
                               runtime::KernelArg::integer(4)};
  EXPECT_NO_THROW(device->launch(*program, 0, good, {}).wait());
  static_cast<sim::SimDevice&>(*device).limits.cycles = 10;
  EXPECT_THROW(device->launch(*program, 0, good, {}).wait(), Error);
}

TEST(ToyMachine, steps_and_shows_its_state) {
  ToyMachine machine;
  machine.load(assemble("ldi 0, 41\nldi 1, 1\nadd 0, 0, 1\nhalt\n"));
  machine.begin(0, {});
  int steps = 0;
  while (machine.step()) ++steps;
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(machine.state()[1].value, "42");
}

TEST(Isa, every_row_survives_encode_decode_print_assemble) {
  std::mt19937_64 rng(11);
  for (std::size_t f = 0; f < toy().formats().size(); ++f) {
    for (int round = 0; round < 200; ++round) {
      Instruction i{f, {}};
      for (const isa::Field& field : toy().formats()[f].fields) {
        std::int64_t value = static_cast<std::int64_t>(rng() & ((1ull << field.width) - 1));
        if (field.kind == FieldKind::signed_) value -= 1ll << (field.width - 1);
        if (field.kind == FieldKind::named)
          value = static_cast<std::int64_t>(field.names[rng() % field.names.size()].code);
        i.values.push_back(value);
      }
      Word word = toy().encode(i);
      EXPECT_EQ(toy().decode(word), i);
      std::vector<Instruction> again = toy().assemble(toy().print(i));
      ASSERT_EQ(again.size(), 1u);
      EXPECT_EQ(again[0], i);
    }
  }
}

TEST(Isa, refuses_what_does_not_fit) {
  Instruction too_big{toy().find("ldi"), {3, 0xffffffff}};
  try {
    toy().encode(too_big);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "toy.encode.range");
    EXPECT_NE(error.message().find("4294967295"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("-32768 to 32767"), std::string::npos);
  }
  EXPECT_THROW(toy().decode({0xf, 0}), Error);
  EXPECT_THROW(toy().decode({0x10002 | 9, 0}), Error);
  for (const char* bad : {"ldx 1, 2", "ldi 1", "ldi 1, 2 3", "ldi 1, x", "ldi 16, 0",
                          "ldi 1, 40000", "ld 1, [2+0].q"}) {
    EXPECT_THROW(toy().assemble(bad), Error) << bad;
  }
  EXPECT_NE(toy().manual().find("rd = ra + rb"), std::string::npos);
}

TEST(Isa, a_named_field_without_the_code_tells_two_formats_apart) {
  isa::Field signal{"signal", 4, 4, FieldKind::named, {{"none", 1}, {"end", 3}}, "signal"};
  InstructionSet set("split", 8,
                     {{"alu", {{0, 4, 0}}, {signal}, "{signal}", "a row with a signal"},
                      {"imm", {{0, 4, 0}, {4, 4, 13}}, {}, "", "the same bits, signal 13"}});
  EXPECT_EQ(set.decode({0xd0, 0}).format, 1u);
  EXPECT_EQ(set.decode({0x30, 0}).format, 0u);
  signal.names.push_back({"imm", 13});
  EXPECT_THROW(InstructionSet("same", 8,
                              {{"alu", {{0, 4, 0}}, {signal}, "", ""},
                               {"imm", {{0, 4, 0}, {4, 4, 13}}, {}, "", ""}}),
               Error);
}

TEST(Isa, words_wider_than_64_bits) {
  Word word;
  word.set_bits(60, 10, 0x2a5);
  EXPECT_EQ(word.bits(60, 10), 0x2a5u);
  EXPECT_EQ(word.lo, 0x5ull << 60);
  EXPECT_EQ(word.hi, 0x2au);
  word.set_bits(100, 28, 0xfffffff);
  EXPECT_EQ(word.bits(100, 28), 0xfffffffu);
}

TEST(Memory, guards_keep_allocations_apart) {
  sim::Memory memory("guarded", 4096, 1024);
  memory.set_guard(64);
  std::uint64_t a = memory.allocate(100, 4), b = memory.allocate(100, 4),
                c = memory.allocate(100, 4);
  EXPECT_GE(b, a + 164);
  EXPECT_GE(c, b + 164);
  EXPECT_EQ(memory.allocation(a + 100).second, 0u);
  EXPECT_EQ(memory.allocation(b + 99), std::make_pair(b, std::uint64_t{100}));
  memory.release(b);
  EXPECT_EQ(memory.allocate(100, 4), b);  // the gap is taken again, guards kept
}

TEST(Stats, unbalanced_books_are_found) {
  runtime::StatReport report;
  report.add("cycles", "cycles", "", 10);
  report.add("busy.alu", "cycles", "", 4);
  report.add("stall.alu.memory", "cycles", "", 5);
  Verdict verdict = report.check_books();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->code, "sim.stats.unbalanced");
  report.add("idle.alu", "cycles", "", 1);
  EXPECT_FALSE(report.check_books());
}

}  // namespace
}  // namespace weft
