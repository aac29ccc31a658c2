// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/opencl/device.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>

#include <dlfcn.h>

#include "weft/base/error.h"
#include "weft/base/patient_lock.h"
#include "weft/runtime/at_end.h"
#include "weft/runtime/recording.h"
#include "weft/targets/opencl/declarations.h"

namespace weft::opencl {

using runtime::Bytes;
using runtime::Event;
using runtime::KernelArg;
using runtime::KernelSignature;
using runtime::Storage;

namespace {

using Handle = void*;
using Int = std::int32_t;
using UInt = std::uint32_t;
using ULong = std::uint64_t;

// Numbers of the interface.
constexpr UInt kPlatformName = 0x0902, kDeviceName = 0x102B, kDeviceMaxWorkGroup = 0x1004,
               kDeviceMaxItemSizes = 0x1005, kDeviceUnits = 0x1002, kDeviceLocalMem = 0x1023,
               kDeviceGlobalMem = 0x101F, kDeviceDoubleConfig = 0x1032, kBuildLog = 0x1183;
constexpr ULong kAllDevices = 0xFFFFFFFF, kReadWrite = 1;
constexpr UInt kTrue = 1;

struct Loader {
  void* library = nullptr;
  std::string reason;
  Int (*platforms)(UInt, Handle*, UInt*) = nullptr;
  Int (*platform_info)(Handle, UInt, std::size_t, void*, std::size_t*) = nullptr;
  Int (*devices)(Handle, ULong, UInt, Handle*, UInt*) = nullptr;
  Int (*device_info)(Handle, UInt, std::size_t, void*, std::size_t*) = nullptr;
  Handle (*create_context)(const std::intptr_t*, UInt, const Handle*, void*, void*, Int*) = nullptr;
  Handle (*create_queue)(Handle, Handle, ULong, Int*) = nullptr;
  Handle (*create_buffer)(Handle, ULong, std::size_t, void*, Int*) = nullptr;
  Int (*release_buffer)(Handle) = nullptr;
  Int (*write)(Handle, Handle, UInt, std::size_t, std::size_t, const void*, UInt, const Handle*,
               Handle*) = nullptr;
  Int (*read)(Handle, Handle, UInt, std::size_t, std::size_t, void*, UInt, const Handle*,
              Handle*) = nullptr;
  Int (*copy)(Handle, Handle, Handle, std::size_t, std::size_t, std::size_t, UInt, const Handle*,
              Handle*) = nullptr;
  Handle (*create_program)(Handle, UInt, const char**, const std::size_t*, Int*) = nullptr;
  Int (*build_program)(Handle, UInt, const Handle*, const char*, void*, void*) = nullptr;
  Int (*build_info)(Handle, Handle, UInt, std::size_t, void*, std::size_t*) = nullptr;
  Int (*release_program)(Handle) = nullptr;
  Handle (*create_kernel)(Handle, const char*, Int*) = nullptr;
  Int (*release_kernel)(Handle) = nullptr;
  Int (*set_arg)(Handle, UInt, std::size_t, const void*) = nullptr;
  Int (*run)(Handle, Handle, UInt, const std::size_t*, const std::size_t*, const std::size_t*, UInt,
             const Handle*, Handle*) = nullptr;
  Int (*finish)(Handle) = nullptr;

  Loader() {
    // PoCL's hwloc finds no processors then, and PoCL ends the process.
    if (access("/sys/devices/system/cpu", F_OK) != 0) {
      reason =
          "OpenCL drivers look for processors in /sys, which is not mounted: mount -t sysfs sys "
          "/sys";
      return;
    }
    for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) {
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library) break;
    }
    if (!library) {
      reason =
          "searched libOpenCL.so.1, libOpenCL.so on the loader's path: no OpenCL loader is "
          "installed";
      return;
    }
    bool good =
        find("clGetPlatformIDs", platforms) && find("clGetPlatformInfo", platform_info) &&
        find("clGetDeviceIDs", devices) && find("clGetDeviceInfo", device_info) &&
        find("clCreateContext", create_context) && find("clCreateCommandQueue", create_queue) &&
        find("clCreateBuffer", create_buffer) && find("clReleaseMemObject", release_buffer) &&
        find("clEnqueueWriteBuffer", write) && find("clEnqueueReadBuffer", read) &&
        find("clEnqueueCopyBuffer", copy) && find("clCreateProgramWithSource", create_program) &&
        find("clBuildProgram", build_program) && find("clGetProgramBuildInfo", build_info) &&
        find("clReleaseProgram", release_program) && find("clCreateKernel", create_kernel) &&
        find("clReleaseKernel", release_kernel) && find("clSetKernelArg", set_arg) &&
        find("clEnqueueNDRangeKernel", run) && find("clFinish", finish);
    if (!good) {
      reason = "the OpenCL loader lacks a function of version 1.2";
      library = nullptr;
    }
  }
  template <typename F>
  bool find(const char* symbol, F& f) {
    f = reinterpret_cast<F>(dlsym(library, symbol));
    return f != nullptr;
  }
};

const Loader& cl() {
  static const Loader instance;
  return instance;
}

void check(Int code, std::string_view what) {
  if (code == 0) return;
  if (code == -4 || code == -61)
    throw Error(ErrorKind::memory, "device.memory.exhausted", cat(what, ": OpenCL error ", code));
  throw Error(ErrorKind::device, "opencl.driver", cat(what, " failed: OpenCL error ", code));
}

struct Found {
  Handle platform, device;
  Adapter adapter;
};

std::vector<Found> find_all(std::string* reason) {
  std::vector<Found> out;
  const Loader& l = cl();
  if (!l.library) {
    *reason = l.reason;
    return out;
  }
  UInt n = 0;
  if (l.platforms(0, nullptr, &n) != 0 || n == 0) {
    *reason =
        "the OpenCL loader is installed but finds no platform (no driver in /etc/OpenCL/vendors)";
    return out;
  }
  std::vector<Handle> platforms(n);
  l.platforms(n, platforms.data(), nullptr);
  for (Handle p : platforms) {
    UInt count = 0;
    if (l.devices(p, kAllDevices, 0, nullptr, &count) != 0 || count == 0) continue;
    std::vector<Handle> devices(count);
    l.devices(p, kAllDevices, count, devices.data(), nullptr);
    for (Handle d : devices) {
      Found f{p, d, {}};
      char text[512] = {};
      l.platform_info(p, kPlatformName, sizeof(text) - 1, text, nullptr);
      f.adapter.platform = text;
      std::memset(text, 0, sizeof(text));
      l.device_info(d, kDeviceName, sizeof(text) - 1, text, nullptr);
      f.adapter.name = text;
      std::size_t group = 256, sizes[8] = {256, 256, 256};
      ULong local = 32768, global = 0, doubles = 0;
      l.device_info(d, kDeviceMaxWorkGroup, sizeof(group), &group, nullptr);
      l.device_info(d, kDeviceMaxItemSizes, sizeof(sizes), sizes, nullptr);
      UInt units = 1;
      l.device_info(d, kDeviceUnits, sizeof(units), &units, nullptr);
      f.adapter.processors = std::max<std::int64_t>(1, units);
      l.device_info(d, kDeviceLocalMem, sizeof(local), &local, nullptr);
      l.device_info(d, kDeviceGlobalMem, sizeof(global), &global, nullptr);
      l.device_info(d, kDeviceDoubleConfig, sizeof(doubles), &doubles, nullptr);
      f.adapter.threads = static_cast<std::int64_t>(group);
      f.adapter.shared_bytes = static_cast<std::int64_t>(local);
      f.adapter.memory = global;
      f.adapter.doubles = doubles != 0;
      for (int i = 0; i < 3; ++i) f.adapter.sizes[i] = static_cast<std::int64_t>(sizes[i]);
      out.push_back(f);
    }
  }
  if (out.empty())
    *reason =
        cat(n == 1 ? "an OpenCL platform is installed but has no device"
                   : cat(n, " OpenCL platforms are installed but none has a device"),
            "; PoCL has none where it cannot write its cache: POCL_CACHE_DIR names another folder");
  return out;
}

class ClDevice final : public runtime::Device, public runtime::RecordsWork {
 public:
  ClDevice(int index, const Found& found) : adapter_(found.adapter), device_(found.device) {
    Int code = 0;
    context_ = cl().create_context(nullptr, 1, &device_, nullptr, nullptr, &code);
    check(code, "making a context");
    queue_ = cl().create_queue(context_, device_, 0, &code);
    check(code, "making a queue");
    info_.name = cat("opencl:", index);
    info_.description = cat(adapter_.name, " (", adapter_.platform, ")");
    info_.dl_type = 4;
    info_.dl_id = index;
    info_.memory_bytes = adapter_.memory;
    info_.limits = {{"threads_per_block", adapter_.threads},
                    {"shared_bytes", adapter_.shared_bytes},
                    {"multiprocessors", adapter_.processors}};
  }

  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<Storage> allocate(Bytes bytes, Bytes, std::string_view space) override {
    if (runtime::MemoryPool* pool = runtime::MemoryPool::current(this))
      return pool->allocate(bytes, space);
    Int code = 0;
    if (bytes > adapter_.memory) code = -61;
    Handle b =
        code ? nullptr
             : cl().create_buffer(context(), kReadWrite, std::max<Bytes>(bytes, 1), nullptr, &code);
    if (code != 0) {
      throw Error(ErrorKind::memory, "device.memory.exhausted",
                  cat(info_.name, " cannot allocate ", human_bytes(bytes), " (OpenCL error ", code,
                      "); it has ", human_bytes(adapter_.memory)));
    }
    {
      std::lock_guard lock(mutex_);
      live_ += bytes;
      peak_ = std::max(peak_, live_);
      ++allocations_;
    }
    return make_ref<Storage>(Ref<runtime::Device>(this), reinterpret_cast<std::uint64_t>(b), bytes,
                             space);
  }

  void upload(Storage& dst, Bytes offset, const void* src, Bytes bytes) override {
    check_range(dst, offset, bytes);
    if (recording()) runtime::refuse_while_recording(*this, "a copy from the host");
    if (!bytes) return;
    wait_patiently([&] {
      check(cl().write(queue(), handle(dst), kTrue, offset, bytes, src, 0, nullptr, nullptr),
            "copy to the device");
    });
  }
  void download(void* dst, const Storage& src, Bytes offset, Bytes bytes) override {
    check_range(src, offset, bytes);
    if (recording()) runtime::refuse_while_recording(*this, "a copy to the host");
    if (!bytes) return;
    wait_patiently([&] {
      check(cl().read(queue(), handle(src), kTrue, offset, bytes, dst, 0, nullptr, nullptr),
            "copy from the device");
    });
  }
  void copy(Storage& dst, Bytes to, const Storage& src, Bytes from, Bytes bytes) override {
    if (&dst == &src)
      return Device::copy(dst, to, src, from,
                          bytes);  // overlapping ranges are refused by clEnqueueCopyBuffer
    check_range(dst, to, bytes);
    check_range(src, from, bytes);
    if (recording()) return recorded()->add_copy(dst, to, const_cast<Storage&>(src), from, bytes);
    if (bytes)
      check(cl().copy(queue(), handle(src), handle(dst), from, to, bytes, 0, nullptr, nullptr),
            "copy on the device");
  }

  Ref<runtime::Executable> load(runtime::Binary binary) override;
  Event launch(runtime::Executable& executable, std::size_t kernel, std::span<const KernelArg> args,
               std::span<const std::int64_t> extents) override;
  void synchronize() override {
    if (recording()) runtime::refuse_while_recording(*this, "a wait");
    wait_patiently([&] { check(cl().finish(queue()), "waiting for the device"); });
  }

  Ref<runtime::Recording> record(const std::function<void()>& work,
                                 const Ref<runtime::MemoryPool>& pool) override {
    if (recorded()) runtime::refuse_while_recording(*this, "another recording");
    auto list = make_ref<runtime::LaunchList>(pool);
    struct Current {
      ~Current() { recorded() = nullptr; }
    } until_return;
    recorded() = list.get();
    runtime::MemoryPool::Scope scope(pool);
    work();
    return list;
  }
  runtime::Course swap_course(const runtime::Course& course) override {
    if (course.stream == 0 && !course.recording) return {};
    throw Error(
        ErrorKind::device, "opencl.stream",
        cat(info_.name, " has one queue and was asked to work on stream ", hex(course.stream)))
        .note("legal: 0, the device's own");
  }
  runtime::Recording* recording() const override {
    runtime::LaunchList* list = recorded();
    return list && list->pool()->device().get() == this ? list : nullptr;
  }

  runtime::StatReport stats() const override {
    std::lock_guard lock(mutex_);
    runtime::StatReport out;
    out.add("bytes.live", "bytes", "in use by storages", static_cast<std::int64_t>(live_));
    out.add("bytes.peak", "bytes", "most in use at once", static_cast<std::int64_t>(peak_));
    out.add("allocations", "1", "storages made", allocations_);
    return out;
  }
  void clear_stats() override {
    std::lock_guard lock(mutex_);
    peak_ = live_;
    allocations_ = 0;
  }

 protected:
  void free_storage(std::uint64_t address, Bytes bytes, std::string_view) override {
    if (forked()) return;
    cl().release_buffer(
        reinterpret_cast<Handle>(address));  // kept by the runtime until queued work is done
    std::lock_guard lock(mutex_);
    live_ -= bytes;
  }

 private:
  /// What this thread records into.
  static runtime::LaunchList*& recorded() {
    thread_local runtime::LaunchList* list = nullptr;
    return list;
  }
  /// The driver's threads and locks are not there in a child that was forked: calls would hang.
  bool forked() const { return owner_ != getpid(); }
  void same_process() const {
    if (!forked()) return;
    throw Error(
        ErrorKind::device, "opencl.fork",
        cat(info_.name, " was opened by process ", owner_, " and is used by its child ", getpid()))
        .help("start processes by \"spawn\" or \"forkserver\", or open the device after the fork");
  }
  Handle queue() const {
    same_process();
    return queue_;
  }
  Handle context() const {
    same_process();
    return context_;
  }
  static Handle handle(const Storage& s) { return reinterpret_cast<Handle>(s.address()); }

  runtime::DeviceInfo info_;
  Adapter adapter_;
  Handle device_ = nullptr, context_ = nullptr, queue_ = nullptr;
  mutable std::mutex mutex_;
  Bytes live_ = 0, peak_ = 0;
  std::int64_t allocations_ = 0;
  const pid_t owner_ = getpid();
};

class ClExecutable final : public runtime::Executable {
 public:
  ClExecutable(Ref<runtime::Device> device, runtime::Binary binary, Handle program,
               std::vector<Handle> kernels)
      : Executable(std::move(device), std::move(binary)),
        kernels(std::move(kernels)),
        program_(program) {}
  ~ClExecutable() override {
    if (owner_ != getpid()) return;
    for (Handle k : kernels) cl().release_kernel(k);
    cl().release_program(program_);
  }
  std::vector<Handle> kernels;
  std::mutex mutex;  // arguments are state of the kernel object

 private:
  Handle program_;
  const pid_t owner_ = getpid();
};

Ref<runtime::Executable> ClDevice::load(runtime::Binary binary) {
  if (binary.format != "opencl-c") {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat(info_.name, " loads \"opencl-c\", not \"", binary.format, "\" (built for ",
                    binary.target, ")"));
  }
  Int code = 0;
  Handle program = nullptr;
  const auto build = [&](bool declared) {
    const std::string& ours = declarations();
    const char* texts[] = {ours.data(), binary.bytes.data()};
    const std::size_t lengths[] = {ours.size(), binary.bytes.size()};
    const int first = declared ? 0 : 1;
    program = cl().create_program(context(), static_cast<UInt>(2 - first), texts + first,
                                  lengths + first, &code);
    check(code, "making a program");
    const std::string options = declared ? cat("-cl-std=CL1.2 ", kSkipHeader) : "-cl-std=CL1.2";
    code = cl().build_program(program, 1, &device_, options.c_str(), nullptr, nullptr);
  };
  const bool clang = adapter_.platform == "Portable Computing Language";
  build(clang);
  if (code != 0 && clang) {  // a user's own function may call what we do not declare
    cl().release_program(program);
    build(false);
  }
  if (code != 0) {
    std::size_t size = 0;
    cl().build_info(program, device_, kBuildLog, 0, nullptr, &size);
    std::string log(size, '\0');
    if (size) cl().build_info(program, device_, kBuildLog, size, log.data(), nullptr);
    cl().release_program(program);
    throw Error(ErrorKind::emit, "opencl.compiler.refused",
                cat(info_.description, " refused the generated OpenCL C (error ", code, ")"))
        .note(log.substr(0, 4000));
  }
  // The driver compiles a kernel when it is first launched, on a thread of its own.
  runtime::wait_at_end(queue_, [queue = queue_] { cl().finish(queue); });
  std::vector<Handle> kernels;
  for (const KernelSignature& k : binary.kernels) {
    kernels.push_back(cl().create_kernel(program, k.name.c_str(), &code));
    check(code, cat("finding kernel ", k.name));
  }
  return make_ref<ClExecutable>(Ref<runtime::Device>(this), std::move(binary), program,
                                std::move(kernels));
}

Event ClDevice::launch(runtime::Executable& executable, std::size_t kernel,
                       std::span<const KernelArg> args, std::span<const std::int64_t> extents) {
  auto& ready = static_cast<ClExecutable&>(executable);
  const KernelSignature& k = executable.binary().kernels.at(kernel);
  std::size_t group[3] = {1, 1, 1}, global[3] = {1, 1, 1};
  for (std::size_t i = 0; i < k.axes.size(); ++i) {
    auto dim = static_cast<std::size_t>(k.axes[i].back() - 'x');
    (k.axes[i].starts_with("thread") ? group : global)[dim] = static_cast<std::size_t>(extents[i]);
  }
  for (int d = 0; d < 3; ++d) global[d] *= group[d];
  if (static_cast<std::int64_t>(group[0] * group[1] * group[2]) > adapter_.threads) {
    throw Error(ErrorKind::device, "opencl.launch.threads",
                cat("kernel \"", k.name, "\" asks for ", group[0] * group[1] * group[2],
                    " work-items in a group; ", adapter_.name, " has ", adapter_.threads));
  }
  const Json* shared = executable.binary().metadata.is_object()
                           ? executable.binary().metadata.find("shared_bytes")
                           : nullptr;
  const Json* mine = shared ? shared->find(k.name) : nullptr;
  if (mine && mine->as_int() > adapter_.shared_bytes) {
    throw Error(ErrorKind::device, "opencl.launch.shared",
                cat("kernel \"", k.name, "\" needs ", mine->as_int(), " bytes of local memory; ",
                    adapter_.name, " has ", adapter_.shared_bytes));
  }
  if (recording()) {
    recorded()->add_launch(executable, kernel, args, extents);
    return {};
  }
  std::lock_guard lock(ready.mutex);
  Handle f = ready.kernels[kernel];
  UInt at = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    DType t = k.params[i].dtype;
    std::string what = cat("argument \"", k.params[i].name, "\" of ", k.name);
    if (args[i].storage) {
      Handle b = handle(*args[i].storage);
      auto offset = static_cast<std::int64_t>(args[i].offset / static_cast<Bytes>(t.bytes()));
      if (args[i].offset % static_cast<Bytes>(t.bytes()) != 0) {
        throw Error(ErrorKind::value, "opencl.launch.offset",
                    cat(what, " begins at byte ", args[i].offset, ", inside an element"));
      }
      check(cl().set_arg(f, at++, sizeof(b), &b), what);
      check(cl().set_arg(f, at++, sizeof(offset), &offset), what);
      continue;
    }
    double real = std::bit_cast<double>(args[i].scalar);
    auto narrow = static_cast<float>(real);
    if (t.is_float() && t.bits <= 32) check(cl().set_arg(f, at++, 4, &narrow), what);
    else if (t.is_float()) check(cl().set_arg(f, at++, 8, &real), what);
    else
      check(cl().set_arg(f, at++, static_cast<std::size_t>(t.is_bool() ? 4 : t.bytes()),
                         &args[i].scalar),
            what);
  }
  runtime::wait_when_thread_ends();
  check(cl().run(queue(), f, 3, nullptr, global, group, 0, nullptr, nullptr),
        cat("launching ", k.name));
  Ref<ClDevice> self(this);
  return Event([self] { self->synchronize(); });
}

}  // namespace

std::vector<Adapter> adapters(std::string* reason) {
  std::vector<Adapter> out;
  for (const Found& f : find_all(reason)) out.push_back(f.adapter);
  return out;
}

Ref<runtime::Device> open_adapter(int index) {
  static std::mutex mutex;
  static auto& open = *new std::map<int, Ref<runtime::Device>>;  // outlives every storage
  std::lock_guard lock(mutex);
  Ref<runtime::Device>& device = open[index];
  if (device) return device;
  std::string reason;
  std::vector<Found> all = find_all(&reason);
  if (index < 0 || index >= static_cast<int>(all.size())) {
    if (all.empty())
      throw Error(ErrorKind::device, "opencl.absent",
                  cat("device opencl:", index, " is absent: ", reason));
    throw Error(ErrorKind::device, "opencl.absent",
                cat("device opencl:", index, " is absent: ", all.size(), " devices are present"));
  }
  device = make_ref<ClDevice>(index, all[static_cast<std::size_t>(index)]);
  return device;
}

}  // namespace weft::opencl
