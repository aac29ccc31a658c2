// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/device.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/patient_lock.h"
#include "weft/runtime/signature.h"
#include "weft/sim/measure.h"
#include "weft/targets/wse/check_plan.h"
#include "weft/targets/wse/csl/compile.h"

namespace weft::wse {

WseDevice::~WseDevice() = default;

WseDevice::WseDevice(std::string name, std::int32_t width, std::int32_t height, Arch arch,
                     int threads)
    : threads_(threads) {
  info_.name = std::move(name);
  info_.kind = runtime::DeviceKind::simulator;
  info_.description =
      cat(width, " x ", height, " simulated PEs of a ", arch == Arch::wse2 ? "WSE-2" : "WSE-3");
  info_.clock_hz = Timing::of(arch).clock_hz;
  // Its memory lies on the host, and only its programs compute with what is there.
  info_.host_accessible = false;
  info_.dl_type = 14;  // an extension device
  info_.limits = {{"width", width},
                  {"height", height},
                  {"pe_bytes", kMemoryBytes},
                  {"arch", arch == Arch::wse2 ? 2 : 3}};
}

Ref<runtime::Storage> WseDevice::allocate(runtime::Bytes bytes, runtime::Bytes align,
                                          std::string_view space) {
  void* block = nullptr;
  if (posix_memalign(&block, std::max<runtime::Bytes>(align, 64),
                     std::max<runtime::Bytes>(bytes, 64)) != 0) {
    throw Error(ErrorKind::memory, "device.memory.exhausted",
                cat(info_.name, " cannot give ", bytes, " bytes"));
  }
  return make_ref<runtime::Storage>(Ref<runtime::Device>(this),
                                    reinterpret_cast<std::uint64_t>(block), bytes, space);
}

void WseDevice::free_storage(std::uint64_t address, runtime::Bytes bytes, std::string_view) {
  {
    std::lock_guard lock(mutex_);
    forget({address, address + bytes});
  }
  std::free(reinterpret_cast<void*>(address));
}

void WseDevice::upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
                       runtime::Bytes bytes) {
  runtime::check_range(dst, offset, bytes);
  if (bytes == 0) return;
  const Range range{dst.address() + offset, dst.address() + offset + bytes};
  {
    std::lock_guard lock(mutex_);
    forget(range);
  }
  bring_back(range);
  std::memcpy(static_cast<char*>(dst.host()) + offset, src, bytes);
}

void WseDevice::download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                         runtime::Bytes bytes) {
  runtime::check_range(src, offset, bytes);
  if (bytes == 0) return;
  bring_back({src.address() + offset, src.address() + offset + bytes});
  std::memcpy(dst, static_cast<const char*>(src.host()) + offset, bytes);
}

Ref<runtime::Executable> WseDevice::load(runtime::Binary binary) {
  if (binary.format != "csl") {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat("device ", info_.name, " loads CSL, not \"", binary.format, "\""));
  }
  std::vector<WseKernel> kernels;
  Json all = Json::parse(binary.bytes, "<csl>");
  if (all.size() != binary.kernels.size())
    damaged_plan(
        cat("the module states ", binary.kernels.size(), " kernels and holds ", all.size()));
  for (const Json& k : all.as_array()) {
    const Json& plan = k.at("plan");
    const std::vector<bool> pointers = runtime::pointer_arguments(binary.kernels[kernels.size()]);
    if (std::find(pointers.begin(), pointers.end(), false) != pointers.end())
      damaged_plan(cat("kernel \"", binary.kernels[kernels.size()].name, "\" takes a number"));
    check_plan(plan, pointers.size());
    if (plan.at("width").as_int() != info_.limits.at("width") ||
        plan.at("height").as_int() != info_.limits.at("height")) {
      throw Error(ErrorKind::emit, "wse.binary.size",
                  cat("the module was built for ", plan.at("width").as_int(), " x ",
                      plan.at("height").as_int(), " PEs, device ", info_.name, " has others"));
    }
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.arch = info_.limits.at("arch") == 2 ? Arch::wse2 : Arch::wse3;
    o.memcpy = true;
    o.read_disk = false;
    o.files = {{"layout.csl", k.at("layout").as_string()}, {"pe.csl", k.at("pe").as_string()}};
    o.fabric_width = static_cast<int>(plan.at("width").as_int()) + 7;
    o.fabric_height = static_cast<int>(plan.at("height").as_int()) + 2;
    o.offset_x = 4;
    o.offset_y = 1;
    Layout layout = csl::compile(o);
    layout.sources =
        std::make_shared<std::map<std::string, std::string>>(o.files.begin(), o.files.end());
    kernels.push_back({std::move(layout), plan});
  }
  return make_ref<WseExecutable>(Ref<runtime::Device>(this), std::move(binary), std::move(kernels));
}

std::uint64_t WseExecutable::next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void WseDevice::forget(const Range& range) {
  for (auto& [thread, held] : resident_)
    std::erase_if(held->left, [&](const Left& left) { return range.covers(left.range); });
}

void WseDevice::settle(Resident& held, const Which& which, bool peek) {
  while (true) {
    std::optional<Left> left;
    {
      std::lock_guard lock(mutex_);
      const auto it = std::find_if(held.left.begin(), held.left.end(), which);
      if (it == held.left.end()) return;
      left = *it;
    }
    const std::vector<std::uint32_t> words = peek ? held.peek(*left) : held.copy_back(*left);
    // Unless its memory has been freed or written meanwhile.
    std::lock_guard lock(mutex_);
    if (std::erase_if(held.left, [&](const Left& l) { return l.id == left->id; }))
      left->put_back(words);
  }
}

void WseDevice::bring_back(const Range& range, const Resident* except) {
  const Which wanted = [&](const Left& left) { return left.range.overlaps(range); };
  while (true) {
    std::shared_ptr<Resident> home;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [thread, held] : resident_)
        if (held.get() != except && std::any_of(held->left.begin(), held->left.end(), wanted))
          home = held;
    }
    if (!home) return;
    const auto busy = patient_lock(home->busy);
    Fabric& fabric = home->runtime->fabric();
    const Cycle from = fabric.now();
    {
      std::lock_guard lock(mutex_);
      fabric.trace_to(trace_);
    }
    settle(*home, wanted);
    fabric.trace_to(nullptr);
    sim::count_cycles(*this, fabric.now() - from);
    std::lock_guard lock(mutex_);
    if (reported_ == home.get()) stats_ = home->report();
  }
}

void WseDevice::retire(const std::shared_ptr<Resident>& held, bool peek) {
  const auto busy = patient_lock(held->busy);
  const Cycle from = held->runtime->fabric().now();
  settle(
      *held, [](const Left&) { return true; }, peek);
  sim::count_cycles(*this, held->runtime->fabric().now() - from);
  std::lock_guard lock(mutex_);
  std::erase_if(resident_, [&](const auto& entry) { return entry.second == held; });
  if (reported_ == held.get()) reported_ = nullptr;
}

runtime::StatReport WseDevice::stats() const {
  std::lock_guard lock(mutex_);
  return stats_.rows().empty() ? report_of({}) : stats_;
}

void WseDevice::clear_stats() {
  std::lock_guard lock(mutex_);
  stats_ = {};
  reported_ = nullptr;
}

void WseDevice::trace_to(runtime::TraceSink* sink) {
  std::lock_guard lock(mutex_);
  trace_ = sink;
}

runtime::Span WseDevice::measure(const std::function<void()>& work) {
  return sim::measure_cycles(*this, info_.clock_hz, work);
}

}  // namespace weft::wse
