// SPDX-License-Identifier: Apache-2.0
// What the runtime, the kits and jit refuse: kind, slug and text. Plans are made by hand, on a
// device of plain memory.

#include <elf.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>

#include "../expect_error.h"
#include "rpc_test_device.h"
#include "weft/ir/fiber.h"
#include "weft/jit/jit.h"
#include "weft/runtime/module.h"
#include "weft/sim/memory.h"
#include "weft/sim/simulator.h"
#include "weft/weft.h"

namespace weft {
namespace {

using namespace runtime;
using testing::expect_error;

/// The process may map only a little more than it has, while this lives.
struct LittleMemory {
  explicit LittleMemory(std::uint64_t more) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before);
    rlimit now = before;
    now.rlim_cur = pages * 4096 + more;
    setrlimit(RLIMIT_AS, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before); }
  rlimit before{};
};

TEST(MemoryErrors, what_the_host_does_not_give) {
  expect_error(ErrorKind::memory, "sim.memory.map", {"1 TiB", "\"huge\""}, [] {
    LittleMemory limit(64 << 20);
    sim::Memory("huge", std::uint64_t{1} << 40);
  });
  expect_error(ErrorKind::memory, "interpret.stack", {"no memory for a stack of", "bytes"}, [] {
    std::vector<std::unique_ptr<ir::Fiber>> fibers(4096);
    LittleMemory limit(64 << 20);
    for (auto& fiber : fibers) fiber = std::make_unique<ir::Fiber>();
  });
  // An object whose only section wants a gigabyte.
  std::string object(sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr), '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_type = ET_REL;
#if defined(__aarch64__)
  header.e_machine = EM_AARCH64;
#else
  header.e_machine = EM_X86_64;
#endif
  header.e_shnum = 3;
  header.e_shoff = sizeof(header);
  Elf64_Shdr sections[3] = {};
  sections[1].sh_type = SHT_NOBITS;
  sections[1].sh_flags = SHF_ALLOC | SHF_WRITE;
  sections[1].sh_size = 1 << 30;
  sections[2].sh_type = SHT_SYMTAB;
  std::memcpy(object.data(), &header, sizeof(header));
  std::memcpy(object.data() + sizeof(header), sections, sizeof(sections));
  expect_error(ErrorKind::memory, "jit.load.memory", {"bytes of code", "1073741824"}, [&] {
    LittleMemory limit(64 << 20);
    jit::load_object(object);
  });
}

TEST(SimErrors, addresses_and_steps) {
  sim::Memory memory("vpm", 4096, 256);
  expect_error(ErrorKind::value, "sim.memory.free", {"0x200", "\"vpm\""},
               [&] { memory.release(0x200); });
  expect_error(ErrorKind::fault, "sim.memory.bounds", {"8 bytes at 0x10fc", "\"vpm\"", "0x100"},
               [&] { memory.at(0x10fc, 8); });
  struct Plain final : sim::Simulator {
    sim::Memory own{"plain", 4096};
    sim::Memory& memory() override { return own; }
    std::size_t load(const Binary&) override { return 0; }
    sim::RunResult run(std::size_t, const sim::Launch&, const sim::RunLimits&) override {
      return {};
    }
    StatReport stats() const override { return {}; }
    void clear_stats() override {}
  } machine;
  expect_error(ErrorKind::value, "sim.step.unsupported", {"\"plain\"", "single-stepped"},
               [&] { machine.step(); });
  expect_error(ErrorKind::value, "sim.step.unsupported", {"\"plain\"", "single-stepped"},
               [&] { machine.begin(0, {}); });
}

TEST(RuntimeErrors, names_that_are_not_there) {
  expect_error(ErrorKind::value, "binary.kernel.unknown",
               {"\"duoble\"", "double, wait, fail", "did you mean \"double\"?"},
               [] { rpc::memory_binary().kernel("duoble"); });
  StatReport report;
  report.add("cycles", "cycles", "time", 3);
  expect_error(ErrorKind::value, "stats.unknown",
               {"\"cycle\"", "present: cycles", "did you mean \"cycles\"?"},
               [&] { report.get("cycle"); });
  expect_error(ErrorKind::value, "plan.divide", {"divides 7 by zero"}, [] {
    evaluate({{PlanOp::constant, 7}, {PlanOp::constant, 0}, {PlanOp::floordiv, 0}}, nullptr);
  });
}

PlanParam tensor_param(std::string space, int align) {
  PlanParam p;
  p.tensor.name = "A";
  p.tensor.dtype = dtypes::float32;
  p.tensor.shape = {{{PlanOp::constant, 4}}};
  p.tensor.binds = {-1};
  p.tensor.space = std::move(space);
  p.tensor.align = align;
  return p;
}

PlanParam scalar_param(DType type) {
  PlanParam p;
  p.is_tensor = false;
  p.scalar = {"n", type, 0};
  return p;
}

/// A function of one parameter on a device of plain memory.
struct OneParam {
  Ref<Device> device = rpc::memory_device("");
  Ref<Storage> storage = device->allocate(64);
  Ref<Function> function;
  explicit OneParam(PlanParam param, std::vector<PlanStep> steps = {}) {
    HostPlan plan;
    plan.name = "main";
    plan.slots = plan.buffers = 1;
    plan.params = {std::move(param)};
    plan.steps = std::move(steps);
    function = make_ref<Function>(
        make_ref<runtime::Module>(rpc::memory_binary(), std::vector<HostPlan>{plan}), "main",
        device);
  }
  void call_tensor(Bytes offset) {
    CallArg arg{storage.get(), offset, dtypes::float32, {4}, {}, 0, 0};
    function->call(std::span(&arg, 1)).wait();
  }
  void call_scalar(std::int64_t value) {
    CallArg arg;
    arg.dtype = dtypes::int64;
    arg.int_value = value;
    function->call(std::span(&arg, 1)).wait();
  }
};

TEST(CallErrors, arguments) {
  expect_error(ErrorKind::device, "call.space", {"(\"A\")", "\"vta.inp\"", "\"global\""},
               [] { OneParam(tensor_param("vta.inp", 4)).call_tensor(0); });
  expect_error(ErrorKind::value, "call.alignment", {"(\"A\")", "16 bytes", "byte offset 4"},
               [] { OneParam(tensor_param("global", 16)).call_tensor(4); });
  OneParam(tensor_param("global", 16)).call_tensor(16);
  OneParam narrow(scalar_param(dtypes::int8));
  narrow.call_scalar(-128);
  expect_error(ErrorKind::value, "call.scalar", {"(\"n\") of main is int8", "128", "-128 to 127"},
               [&] { narrow.call_scalar(128); });
  PlanStep check;
  check.kind = StepKind::assert_;
  check.value = {{PlanOp::slot, 0}, {PlanOp::constant, 3}, {PlanOp::lt, 0}};
  check.text = "n is small";
  OneParam checked(scalar_param(dtypes::int64), {check});
  checked.call_scalar(2);
  expect_error(ErrorKind::value, "call.assert", {"main", "n is small"},
               [&] { checked.call_scalar(3); });
  expect_error(ErrorKind::value, "call.time", {"got 0 and 3"},
               [&] { checked.function->time({}, 0, 3); });
}

TEST(ModuleErrors, a_plan_that_does_not_fit_its_kernels) {
  PlanStep launch;
  launch.kind = StepKind::launch;
  launch.text = "double";
  HostPlan plan;
  plan.name = "main";
  plan.steps = {launch};
  const std::string bytes = runtime::Module(rpc::memory_binary(), {plan}).serialize();
  expect_error(ErrorKind::io, "module.file.plan", {"0 arguments", "\"double\", which has 1"},
               [&] { runtime::Module::deserialize(bytes, "m.weft-mod"); });
}

TEST(JitErrors, what_llvm_does_not_take) {
  if (!jit::llvm().available) GTEST_SKIP() << jit::llvm().reason;
  auto compile = [](const char* text, const char* passes = "", const char* triple = "host") {
    jit::CompileOptions options;
    options.passes = passes;
    options.triple = triple;
    jit::compile_to_object(text, options);
  };
  const char* good = "define i32 @f() {\n ret i32 7\n}\n";
  expect_error(ErrorKind::emit, "jit.llvm.verify", {"ill-formed", "dominate"}, [&] {
    compile(
        "define i32 @f() {\n br label %b\na:\n %x = add i32 1, 2\n br label %b\nb:\n"
        " ret i32 %x\n}\n");
  });
  expect_error(ErrorKind::emit, "jit.llvm.target", {"\"loom-none-none\""},
               [&] { compile(good, "", "loom-none-none"); });
  expect_error(ErrorKind::emit, "jit.llvm.passes", {"\"function(weave)\"", "weave"},
               [&] { compile(good, "function(weave)"); });
  expect_error(ErrorKind::emit, "jit.llvm.emit", {"cannot emit code", "warp"}, [&] {
    compile("define void @f() {\n call void asm sideeffect \"warp weft\", \"\"()\n ret void\n}\n");
  });
  expect_error(ErrorKind::emit, "jit.load.format", {"cannot be loaded", "no ELF64"},
               [] { jit::load_object(std::string(256, 'x')); });
}

TEST(ArrayErrors, vectors_of_another_size_or_type) {
  auto host = rpc::memory_device("");
  expect_error(ErrorKind::shape, "array.asarray.size", {"3 values", "4 elements"}, [&] {
    asarray(std::vector<float>{1, 2, 3}, {2, 2}, host);
  });
  NDArray a = asarray(std::vector<float>{1, 2, 3, 4}, {2, 2}, host);
  expect_error(ErrorKind::dtype, "array.to_vector.dtype", {"the array is float32[2, 2]"},
               [&] { to_vector<double>(a); });
}

}  // namespace
}  // namespace weft
