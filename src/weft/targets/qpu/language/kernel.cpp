// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/language/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "weft/sim/simulator.h"
#include "weft/targets/qpu/compiler/compile.h"
#include "weft/targets/qpu/driver/device.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/language/interpret.h"

namespace weft::qpu {

namespace {
struct Opened {
  Ref<runtime::Device> device;
  hw::Emulator* emulator = nullptr;  // one of the two
  hw::HwDevice* chip = nullptr;
  std::function<void(std::string_view)> print;
};

void to_standard_output(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}  // what Print means

Opened& open(std::string_view name) {
  // Programs in QPULib's style name no device: the ones opened so far are kept here.
  static std::mutex mutex;
  static std::map<std::string, Opened, std::less<>> opened;
  std::lock_guard lock(mutex);
  auto found = opened.find(name);
  if (found == opened.end()) {
    if (name != "qpu" && !name.starts_with("qpu:")) {
      throw Error(ErrorKind::device, "qpu.device.unknown", cat("\"", name, "\" is no QPU device"))
          .note("legal: \"qpu\", \"qpu:<options>\", \"qpu:hw\"");
    }
    Opened o;
    if (hw::names_chip(name)) {
      auto chip =
          make_ref<hw::HwDevice>(std::string(name), hw::parse_hw_options(name), hw::this_board());
      o.chip = chip.get();
      o.device = chip;
      return opened.emplace(std::string(name), std::move(o)).first->second;
    }
    o.device = hw::make_device(name == "qpu" ? "qpu:reads=report" : name);
    o.emulator = static_cast<hw::Emulator*>(&static_cast<sim::SimDevice&>(*o.device).simulator());
    o.emulator->on_print = to_standard_output;
    found = opened.emplace(std::string(name), std::move(o)).first;
  }
  return found->second;
}

/// What only the emulator can do.
hw::Emulator& emulator(std::string_view name, const char* what) {
  return detail::only_emulator(open(name).emulator, name, what);
}
}  // namespace

hw::Emulator& detail::only_emulator(hw::Emulator* emulator, std::string_view name,
                                    const char* what) {
  if (!emulator)
    throw Error(ErrorKind::device, "qpu.hw.emulator_only",
                cat("device \"", name, "\" cannot ", what))
        .help("use the emulator: \"qpu\"");
  return *emulator;
}

Ref<runtime::Device> device(std::string_view name) { return open(name).device; }

std::vector<Note> takeNotes(std::string_view name) {
  std::vector<Note> out;
  if (!open(name).emulator) return out;  // a chip notes nothing
  for (hw::Finding& f : open(name).emulator->take_findings()) {
    out.push_back(
        {f.code,
         cat("qpu ", f.qpu, "  pc ", hex(static_cast<std::uint64_t>(f.pc) * 8), ": ", f.message),
         f.source, f.count});
  }
  return out;
}

void setPrint(std::function<void(std::string_view)> print, std::string_view name) {
  emulator(name, "show what kernels print").on_print =
      print ? std::move(print) : std::function<void(std::string_view)>(to_standard_output);
}

namespace detail {
Memory::Memory(runtime::Bytes bytes, std::string_view name) {
  Opened& o = open(name);
  storage = o.device->allocate(bytes, 64);
  host = o.chip ? o.chip->host(*storage) : o.emulator->memory().raw(storage->address());
  if (!o.chip) {
    std::memset(host, 0, static_cast<std::size_t>(bytes));
    return;
  }
  const std::string zeros(65536, '\0');  // memset may use accesses that uncached memory refuses
  for (runtime::Bytes at = 0; at < bytes; at += zeros.size())
    o.device->upload(*storage, at, zeros.data(),
                     std::min<runtime::Bytes>(zeros.size(), bytes - at));
}

void Memory::write(std::size_t offset, const void* from, std::size_t bytes) {
  storage->device()->upload(*storage, offset, from, bytes);
}

void Memory::read(std::size_t offset, void* to, std::size_t bytes) const {
  storage->device()->download(to, *storage, offset, bytes);
}
}  // namespace detail

struct AnyKernel::State {
  std::unique_ptr<ast::Program> program;
  Compiled compiled;
  std::string device;
  Ref<runtime::Executable> executable;  // on `device`
  int qpus = 1;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max(), cycles = 0;
};

AnyKernel::AnyKernel(std::unique_ptr<ast::Program> program, std::string_view device)
    : state_(std::make_shared<State>()) {
  state_->program = std::move(program);
  state_->compiled = compile_program(*state_->program);
  state_->device = device;
}

void AnyKernel::setNumQPUs(int n) {
  if (n < 1 || n > hw::kMaxQpus)
    throw Error(ErrorKind::value, "qpu.launch.qpus", cat("a launch on ", n, " QPUs"))
        .note(cat("legal: 1 to ", hw::kMaxQpus));
  state_->qpus = n;
}

void AnyKernel::setDevice(std::string_view name) {
  open(name);
  if (name != state_->device) state_->executable = nullptr;
  state_->device = name;
}

const std::string& AnyKernel::asm_() const { return state_->compiled.binary.source; }
std::size_t AnyKernel::instructions() const { return state_->compiled.instructions; }
void AnyKernel::setCycleLimit(std::int64_t cycles) { state_->limit = cycles; }
std::int64_t AnyKernel::cycles() const { return state_->cycles; }
const ast::Program& AnyKernel::program() const { return *state_->program; }
const runtime::Binary& AnyKernel::binary() const { return state_->compiled.binary; }

std::vector<std::uint64_t> AnyKernel::words() const {
  const std::string& bytes = state_->compiled.binary.bytes;
  std::vector<std::uint64_t> out(bytes.size() / 8);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

void AnyKernel::launch(const std::vector<KernelArgument>& arguments) {
  State& s = *state_;
  Opened& o = open(s.device);
  if (!s.executable) s.executable = o.device->load(s.compiled.binary);
  std::vector<runtime::KernelArg> args;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& a = arguments[i];
    if (!a.pointer) continue;
    if (a.storage->device().get() != o.device.get()) {
      throw Error(ErrorKind::device, "qpu.launch.device",
                  cat("argument ", i, " is an array on ", a.storage->device()->info().name,
                      ", the kernel runs on ", o.device->info().name))
          .help(cat("give the arrays and the kernel one device name: \"", s.device, "\""));
    }
    args.push_back(runtime::KernelArg::pointer(a.storage));
  }
  for (const KernelArgument& a : arguments)
    if (!a.pointer) args.push_back(runtime::KernelArg::integer(a.scalar));
  std::int64_t extents[] = {s.qpus};
  if (o.chip) {
    o.device->launch(*s.executable, 0, args, extents).wait();
    s.cycles = 0;  // a chip does not tell
    return;
  }
  auto& sim_device = static_cast<sim::SimDevice&>(*o.device);
  sim::RunLimits bounds = sim_device.limits;
  bounds.cycles = std::min(bounds.cycles, s.limit);
  auto work = [&] { sim_device.launch_within(bounds, *s.executable, 0, args, extents).wait(); };
  s.cycles = sim_device.measure(work).cycles;
}

void AnyKernel::interpret_with(const std::vector<KernelArgument>& arguments) {
  State& s = *state_;
  hw::Emulator& machine = emulator(s.device, "interpret a kernel's source");
  std::vector<std::uint32_t> params;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& a = arguments[i];
    if (a.pointer) params.push_back(static_cast<std::uint32_t>(a.storage->address()));
    else if (s.program->params[i].kind == ast::Param::Kind::real)
      params.push_back(
          std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(a.scalar))));
    else params.push_back(static_cast<std::uint32_t>(a.scalar));
  }
  InterpretOptions options;
  options.qpus = s.qpus;
  options.print = machine.on_print;
  interpret(*s.program, params, machine.memory(), options);
}

}  // namespace weft::qpu
