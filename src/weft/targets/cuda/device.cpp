// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/device.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/patient_lock.h"
#include "weft/runtime/backlog.h"
#include "weft/runtime/recording.h"
#include "weft/targets/cuda/driver.h"
#include "weft/targets/cuda/math.h"
#include "weft/targets/cuda/nvrtc.h"

namespace weft::cuda {

using runtime::Bytes;
using runtime::Event;
using runtime::KernelArg;
using runtime::KernelSignature;
using runtime::Storage;

namespace {

// Attribute numbers of the driver's interface.
constexpr int kMaxThreads = 1, kSharedPerBlock = 8, kClock = 13, kProcessors = 16,
              kMemoryClock = 36, kBusWidth = 37, kMajor = 75, kMinor = 76, kSharedOptin = 97;
constexpr int kFuncDynamicShared = 8;
// Of cuTensorMapEncodeTiled.
constexpr int kMapByte = 0, kMapFloat16 = 6, kMapFloat32 = 7, kMapBfloat16 = 9, kMapSwizzle128 = 3,
              kMapPromote128 = 2;

class CudaDevice;

/// Where this thread's work goes on one card: a stream, and the recording that it is captured by.
struct Lane {
  const CudaDevice* device = nullptr;
  Handle stream = nullptr;
  runtime::Recording* recording = nullptr;
};
thread_local Lane lane;

/// A graph of the driver's, replayed on the stream that the thread has then.
class CudaGraph final : public runtime::Recording {
 public:
  CudaGraph(CudaDevice* device, const Ref<runtime::MemoryPool>& pool)
      : Recording(pool), device_(device) {}
  ~CudaGraph() override;
  void replay() override;
  std::size_t launches() const override { return nodes_; }
  void take(Handle graph);

 private:
  CudaDevice* device_;  // kept by the pool
  Handle exec_ = nullptr;
  std::size_t nodes_ = 0;
};

class CudaDevice final : public runtime::Device,
                         public runtime::HasMathLibrary,
                         public runtime::RecordsWork,
                         public runtime::DefersWork {
 public:
  CudaDevice(int index, const Card& card) : card_(card) {
    const Driver& d = driver();
    int ordinal = 0;
    d.check(d.get(&ordinal, index), "cuDeviceGet");
    d.check(d.retain(&context_, ordinal), "cuDevicePrimaryCtxRetain");
    info_.name = cat("cuda:", index);
    info_.description = card.name;
    info_.dl_type = 2;
    info_.dl_id = index;
    info_.memory_bytes = card.memory;
    info_.limits = {{"threads_per_block", card.threads},
                    {"shared_bytes", card.shared_optin},
                    {"multiprocessors", card.processors},
                    {"tensor_maps", d.encode && card.major >= 9}};
    // Two transfers a clock.
    if (card.clock_khz > 0) info_.limits["clock_khz"] = card.clock_khz;
    if (card.memory_khz > 0 && card.bus_bits > 0)
      info_.limits["memory_bytes_per_microsecond"] = card.memory_khz / 1000 * 2 * card.bus_bits / 8;
  }

  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<Storage> allocate(Bytes bytes, Bytes, std::string_view space) override {
    if (runtime::MemoryPool* pool = runtime::MemoryPool::current(this))
      return pool->allocate(bytes, space);
    const Bytes size = rounded(bytes);
    Pointer p = 0;
    if (!take(size, &p) && backlog().waits() && in_use() > card_.memory / kBacklogShare) {
      settle();  // what waits for its kernels keeps its arrays
      take(size, &p);
    }
    if (p) return make_ref<Storage>(Ref<runtime::Device>(this), p, bytes, space);
    use();
    int code = driver().alloc(&p, size);
    if (code == 2 && !recording()) {  // give the pool back and try once more
      trim();
      code = driver().alloc(&p, size);
    }
    if (code == 2) {
      throw Error(ErrorKind::memory, "device.memory.exhausted",
                  cat(info_.name, " cannot allocate ", human_bytes(bytes), ": ", human_bytes(live_),
                      " are in use of ", human_bytes(card_.memory)));
    }
    driver().check(code, "cuMemAlloc");
    std::lock_guard lock(mutex_);
    count(size);
    return make_ref<Storage>(Ref<runtime::Device>(this), p, bytes, space);
  }

  void upload(Storage& dst, Bytes offset, const void* src, Bytes bytes) override {
    check_range(dst, offset, bytes);
    if (recording()) runtime::refuse_while_recording(*this, "a copy from the host");
    if (!bytes) return;
    constexpr Bytes kHeld = 1 << 20;  // more than that is not worth a copy on the host
    if (defers() && backlog().waits() && bytes <= kHeld) {
      after_backlog([this, to = Ref<Storage>(&dst), offset,
                     held = std::string(static_cast<const char*>(src), bytes)] {
        to_card(to->address() + offset, held.data(), held.size());
      });
      return;
    }
    settle();
    wait_patiently([&] { to_card(dst.address() + offset, src, bytes); });
  }
  void download(void* dst, const Storage& src, Bytes offset, Bytes bytes) override {
    check_range(src, offset, bytes);
    if (recording()) runtime::refuse_while_recording(*this, "a copy to the host");
    settle();
    use();
    if (!bytes) return;
    wait_patiently([&] {
      driver().check(driver().to_host(dst, src.address() + offset, bytes), "copy from the card");
    });
  }
  void copy(Storage& dst, Bytes to, const Storage& src, Bytes from, Bytes bytes) override {
    check_range(dst, to, bytes);
    check_range(src, from, bytes);
    if (recording()) {
      lane.recording->hold(&dst);
      lane.recording->hold(const_cast<Storage*>(&src));
    }
    if (!bytes) return;
    const Pointer target = dst.address() + to, source = src.address() + from;
    auto run = [this, target, source, bytes](Handle on) {
      use();
      driver().check(driver().within(target, source, bytes, on), "copy on the card");
    };
    if (defers() && backlog().waits()) {
      return after_backlog([run, to = Ref<Storage>(&dst),
                            from = Ref<Storage>(const_cast<Storage*>(&src))] { run(nullptr); });
    }
    settle();
    run(stream());
  }

  Ref<runtime::Executable> load(runtime::Binary binary) override;
  Event launch(runtime::Executable& executable, std::size_t kernel, std::span<const KernelArg> args,
               std::span<const std::int64_t> extents) override;

  void synchronize() override {
    if (recording()) runtime::refuse_while_recording(*this, "a wait");
    settle();
    use();
    wait_patiently([&] { driver().check(driver().synchronize(), "synchronise"); });
  }
  /// To be called before a launch, outside of recordings. The driver's queue holds about a thousand
  /// launches, and one that finds it full waits inside the driver, where neither signals nor the
  /// embedder's other threads get a turn: the one kQueued launches back is waited for here.
  void keep_queue_short(std::size_t launches = 1) {
    const std::size_t before = launched_.fetch_add(launches, std::memory_order_relaxed);
    if (before / kQueued == (before + launches) / kQueued) return;
    // Another thread waits already, or the thread has a stream of its own, which others order.
    std::unique_lock lock(queue_mutex_, std::try_to_lock);
    if (!lock || lane.device == this) return;
    const Driver& d = driver();
    if (queued_) wait_patiently([&] { d.check(d.event_wait(queued_), "a kernel"); });
    else d.check(d.event_create(&queued_, kNoTimes), "cuEventCreate");
    d.check(d.event_record(queued_, nullptr), "cuEventRecord");
  }

  Ref<runtime::Recording> record(const std::function<void()>& work,
                                 const Ref<runtime::MemoryPool>& pool) override;
  runtime::Course swap_course(const runtime::Course& course) override;
  runtime::Recording* recording() const override {
    return lane.device == this ? lane.recording : nullptr;
  }
  Handle stream() const { return lane.device == this ? lane.stream : nullptr; }
  void stop_deferring() override {
    shared_ = true;
    wait_patiently([&] { shared_backlog_.settle(); });
  }

  runtime::Span measure(const std::function<void()>& work) override {
    settle();
    use();
    const Driver& d = driver();
    Handle start = nullptr, stop = nullptr;
    d.check(d.event_create(&start, 0), "cuEventCreate");
    d.check(d.event_create(&stop, 0), "cuEventCreate");
    auto wall = std::chrono::steady_clock::now();
    d.check(d.event_record(start, nullptr), "cuEventRecord");
    work();
    settle();
    d.check(d.event_record(stop, nullptr), "cuEventRecord");
    wait_patiently([&] { d.check(d.event_wait(stop), "a kernel"); });
    float ms = 0;
    d.check(d.event_elapsed(&ms, start, stop), "cuEventElapsedTime");
    double host = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    d.event_destroy(start);
    d.event_destroy(stop);
    return {ms / 1e3, host, 0};
  }

  runtime::StatReport stats() const override {
    std::lock_guard lock(mutex_);
    runtime::StatReport out;
    out.add("bytes.live", "bytes", "in use by storages", static_cast<std::int64_t>(live_));
    out.add("bytes.peak", "bytes", "most in use at once", static_cast<std::int64_t>(peak_));
    out.add("bytes.cached", "bytes", "kept for reuse", static_cast<std::int64_t>(cached_));
    out.add("allocations", "1", "storages made", allocations_);
    return out;
  }
  void clear_stats() override {
    std::lock_guard lock(mutex_);
    peak_ = live_;
    allocations_ = 0;
  }

  runtime::MathLibrary& math_library() override {
    if (stream()) runtime::refuse_while_recording(*this, "a routine of cuFFT or cuSOLVER");
    return math_;
  }

  void use() const { driver().check(driver().set_current(context_), "cuCtxSetCurrent"); }
  /// Runs what waits for its kernels. A thread that waits for the backlog's lock may have the
  /// embedder's, so whoever works in the backlog has not.
  void settle() {
    if (backlog().waits()) wait_patiently([&] { backlog().settle(); });
  }
  /// Of this thread alone, or of all.
  runtime::Backlog& backlog() {
    runtime::Backlog* own = runtime::OwnBacklog::of(this);
    return own ? *own : shared_backlog_;
  }

 protected:
  void free_storage(std::uint64_t address, Bytes bytes, std::string_view) override {
    // Work is ordered on one stream, so a block may be used again at once.
    Bytes size = rounded(bytes);
    std::lock_guard lock(mutex_);
    free_[size].push_back(address);
    live_ -= size;
    cached_ += size;
  }

 private:
  /// More than this part of the memory is not kept for work that waits for its kernels.
  static constexpr Bytes kBacklogShare = 16;
  static constexpr std::size_t kQueued = 400;
  static constexpr unsigned kNoTimes = 2;  // CU_EVENT_DISABLE_TIMING
  /// Only work on the stream that all threads share has one order, that of the calls.
  bool defers() const { return lane.device != this && (!shared_ || runtime::OwnBacklog::of(this)); }
  void after_backlog(std::function<void()> run) {
    wait_patiently([&] { backlog().add([] { return true; }, std::move(run)); });
  }
  void to_card(Pointer to, const void* from, Bytes bytes) const {
    use();
    driver().check(driver().to_device(to, from, bytes), "copy to the card");
  }
  /// A block that was given back; false where there is none of this size.
  bool take(Bytes size, Pointer* out) {
    std::lock_guard lock(mutex_);
    auto& list = free_[size];
    if (list.empty()) return false;
    *out = list.back();
    list.pop_back();
    cached_ -= size;
    count(size);
    return true;
  }
  Bytes in_use() const {
    std::lock_guard lock(mutex_);
    return live_;
  }
  void count(Bytes size) {
    live_ += size;
    peak_ = std::max(peak_, live_);
    ++allocations_;
  }
  /// Four classes to each doubling.
  static Bytes rounded(Bytes bytes) {
    Bytes step = std::max<Bytes>(512, std::bit_floor(std::max<Bytes>(bytes, 1)) / 4);
    return (std::max<Bytes>(bytes, 1) + step - 1) / step * step;
  }
  void trim() {
    settle();
    wait_patiently([&] { driver().synchronize(); });
    std::lock_guard lock(mutex_);
    for (auto& [size, list] : free_) {
      for (Pointer p : list) driver().free(p);
    }
    free_.clear();
    cached_ = 0;
  }

  runtime::DeviceInfo info_;
  Card card_;
  Handle context_ = nullptr;
  mutable std::mutex mutex_;
  std::map<Bytes, std::vector<Pointer>> free_;
  Bytes live_ = 0, peak_ = 0, cached_ = 0;
  std::int64_t allocations_ = 0;
  CardMath math_{*this, [this] { settle(), use(); }};
  runtime::Backlog shared_backlog_;
  std::atomic<bool> shared_{false};
  std::atomic<std::size_t> launched_{0};
  std::mutex queue_mutex_;
  Handle queued_ = nullptr;  // an event between launches
};

class CudaExecutable final : public runtime::Executable {
 public:
  CudaExecutable(Ref<CudaDevice> device, runtime::Binary binary, const Card& card);
  ~CudaExecutable() override {
    if (driver().set_current && module_) driver().unload(module_);
  }
  /// Whether launches need not wait for the compiler.
  bool ready();
  /// Waits for the compiler. Throws what it refuses, or Error(device, "cuda.load").
  void finish();
  Handle function(std::size_t kernel) const { return functions_[kernel]; }

  /// Of each kernel: where its axes go (0 to 2: the grid's x, y, z; 3 to 5: the block's).
  std::vector<std::vector<std::size_t>> places;
  /// Of each kernel: its parameters that are tensors, which stand first.
  std::vector<std::size_t> tensors;
  /// Of each kernel: whether it may begin before the launch ahead of it has ended.
  std::vector<bool> early;

 private:
  void open(const std::string& cubin);

  Ref<CudaDevice> cuda_;
  const Card& card_;
  Handle module_ = nullptr;
  std::vector<Handle> functions_;
  std::shared_future<std::string> compiled_;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
};

CudaGraph::~CudaGraph() {
  if (exec_) driver().graph_exec_destroy(exec_);
}

void CudaGraph::take(Handle graph) {
  const Driver& d = driver();
  int code = d.graph_nodes(graph, nullptr, &nodes_);
  if (code == 0) code = d.graph_instantiate(&exec_, graph, 0);
  d.graph_destroy(graph);
  d.check(code, "instantiating a graph");
}

void CudaGraph::replay() {
  if (device_->recording()) runtime::refuse_while_recording(*device_, "another recording");
  device_->settle();
  device_->use();
  device_->keep_queue_short(nodes_);
  driver().check(driver().graph_launch(exec_, device_->stream()), "launching a graph");
}

Ref<runtime::Recording> CudaDevice::record(const std::function<void()>& work,
                                           const Ref<runtime::MemoryPool>& pool) {
  const Driver& d = driver();
  if (lane.recording) runtime::refuse_while_recording(*this, "another recording");
  settle();
  use();
  auto out = make_ref<CudaGraph>(this, pool);
  // Not ordered with the stream of all other work, which other threads may use meanwhile; modules
  // may be loaded and memory be allocated while it records.
  constexpr unsigned kNonBlocking = 1;
  constexpr int kRelaxed = 2;
  Handle captured = nullptr;
  d.check(d.stream_create(&captured, kNonBlocking), "cuStreamCreate");
  Handle graph = nullptr;
  int code = d.capture_begin(captured, kRelaxed);
  if (code == 0) {
    const Lane before = std::exchange(lane, Lane{this, captured, out.get()});
    try {
      runtime::MemoryPool::Scope scope(pool);
      work();
    } catch (...) {
      lane = before;
      d.capture_end(captured, &graph);  // the work's error is the one to tell
      if (graph) d.graph_destroy(graph);
      d.stream_destroy(captured);
      throw;
    }
    lane = before;
    code = d.capture_end(captured, &graph);
  }
  d.stream_destroy(captured);
  d.check(code, "recording a graph");
  out->take(graph);
  return out;
}

runtime::Course CudaDevice::swap_course(const runtime::Course& course) {
  settle();
  const runtime::Course before{reinterpret_cast<std::uint64_t>(stream()), recording()};
  lane = {this, reinterpret_cast<Handle>(course.stream), course.recording};
  return before;
}

CudaExecutable::CudaExecutable(Ref<CudaDevice> device, runtime::Binary from, const Card& card)
    : Executable(device, std::move(from)), cuda_(std::move(device)), card_(card) {
  for (const KernelSignature& k : binary().kernels) {
    std::vector<std::size_t>& at = places.emplace_back();
    for (const std::string& axis : k.axes)
      at.push_back((axis.starts_with("block") ? 0u : 3u) +
                   static_cast<std::size_t>(axis.back() - 'x'));
    tensors.push_back(static_cast<std::size_t>(std::count_if(
        k.params.begin(), k.params.end(),
        [](const runtime::KernelParam& p) { return p.kind == runtime::ParamKind::tensor; })));
    if (k.scratch_bytes > card_.shared_optin) {
      throw Error(ErrorKind::device, "cuda.launch.shared",
                  cat("kernel \"", k.name, "\" needs ", k.scratch_bytes,
                      " bytes of shared memory; ", card_.name, " has ", card_.shared_optin));
    }
    const Json* waits = binary().metadata.find("waits_for_earlier");
    bool found = false;
    for (const Json& name : waits ? waits->as_array() : Json::Array{})
      found = found || name.as_string() == k.name;
    early.push_back(found);
  }
  if (binary().format == "cubin") {
    open(binary().bytes);
  } else {
    const std::string arch = binary().metadata.at("arch").as_string();
    if (auto cubin = kept_cubin(binary().source, arch)) open(*cubin);
    else compiled_ = compile_beside(binary().source, arch);
  }
}

void CudaExecutable::open(const std::string& cubin) {
  cuda_->use();
  const Driver& d = driver();
  if (int code = d.load(&module_, cubin.data()); code != 0) {
    throw Error(ErrorKind::device, "cuda.load",
                cat("the module built for ", binary().target, " cannot be loaded on ", card_.name,
                    " (", card_.arch, "): ", d.text(code)))
        .help(cat("build it for cuda:arch=", card_.arch));
  }
  for (const KernelSignature& k : binary().kernels) {
    Handle f = nullptr;
    d.check(d.function(&f, module_, k.name.c_str()), cat("finding kernel ", k.name));
    if (k.scratch_bytes > 0)
      d.check(d.set_attribute(f, kFuncDynamicShared, static_cast<int>(k.scratch_bytes)),
              "asking for shared memory");
    functions_.push_back(f);
  }
  open_.store(true, std::memory_order_release);
}

bool CudaExecutable::ready() {
  return open_.load(std::memory_order_acquire) ||
         compiled_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void CudaExecutable::finish() {
  if (open_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  if (open_.load(std::memory_order_relaxed)) return;
  try {
    open(compiled_.get());
  } catch (const Error& e) {
    throw Error(e.kind(), e.refusal());  // each of the threads that wait adds to its own
  }
}

Ref<runtime::Executable> CudaDevice::load(runtime::Binary binary) {
  if (binary.format != "cubin" && binary.format != kTextFormat) {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat(info_.name, " loads \"cubin\", not \"", binary.format, "\" (built for ",
                    binary.target, ")"));
  }
  return make_ref<CudaExecutable>(Ref<CudaDevice>(this), std::move(binary), card_);
}

/// What a kernel's copies need to know of an array. Takes its arguments from the front of `args`.
TensorMap tensor_map(const KernelSignature& k, const runtime::KernelParam& p,
                     std::span<const KernelArg>& args) {
  constexpr std::size_t kMost = 5;
  const std::size_t rank = p.box.size();
  WEFT_CHECK(rank <= kMost && args.size() >= 2 * rank, "tensor ", p.name, " of ", k.name);
  const auto bytes = static_cast<std::uint64_t>(p.dtype.bytes());
  std::uint64_t extents[kMost], strides[kMost];
  unsigned box[kMost], steps[kMost];
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = static_cast<std::uint64_t>(args[1 + i].scalar);
    if (i + 1 < rank) strides[i] = static_cast<std::uint64_t>(args[1 + rank + i].scalar) * bytes;
    box[i] = static_cast<unsigned>(p.box[i]), steps[i] = static_cast<unsigned>(p.steps[i]);
  }
  const int type = p.dtype == dtypes::float16    ? kMapFloat16
                   : p.dtype == dtypes::bfloat16 ? kMapBfloat16
                   : p.dtype.bytes() == 1        ? kMapByte
                                                 : kMapFloat32;
  TensorMap out;
  driver().check(driver().encode(&out, type, static_cast<unsigned>(rank),
                                 args[0].storage->address() + args[0].offset, extents, strides, box,
                                 steps, 0, kMapSwizzle128, kMapPromote128, 0),
                 cat("describing tensor \"", p.name, "\" of ", k.name));
  args = args.subspan(2 * rank);
  return out;
}

/// A launch with the arguments as the kernel's parameter space has them: each at its own alignment.
struct Packed {
  static constexpr std::size_t kMost = 4096;  // bytes of parameters that every card takes
  static constexpr std::size_t kMostTensors = 8, kMostParams = 64;

  Packed(const CudaExecutable& cuda, std::size_t number, const std::int64_t (&extents)[6])
      : signature(cuda.binary().kernels[number]), kernel(number), tensors(cuda.tensors[number]) {
    for (int i = 0; i < 6; ++i) shape[i] = static_cast<unsigned>(extents[i]);
    WEFT_CHECK(tensors <= kMostTensors && (tensors == 0 || signature.params.size() <= kMostParams),
               "kernel ", signature.name, " has too many tensors");
  }

  void pack(std::span<const KernelArg> args) {
    for (std::size_t i = 0; i < tensors; ++i)
      maps[i] = tensor_map(signature, signature.params[i], args);
    for (std::size_t i = 0; i < args.size(); ++i) {
      std::uint64_t value = 0;
      std::size_t width = 8;
      if (args[i].storage) {
        value = args[i].storage->address() + args[i].offset;
      } else {
        const DType t = signature.params[tensors + i].dtype;
        // bool and 16-bit floats are words of 32 bits in a kernel's interface.
        width = t.is_bool() || t.is_float()
                    ? (t.bits == 64 ? 8u : 4u)
                    : static_cast<std::size_t>(std::max(8, int{t.bits}) / 8);
        if (t.is_float() && t.bits <= 32)
          value = std::bit_cast<std::uint32_t>(
              static_cast<float>(std::bit_cast<double>(args[i].scalar)));
        else
          value = static_cast<std::uint64_t>(
              args[i].scalar);  // little-endian: narrow integers are the low bytes
      }
      used = (used + width - 1) / width * width;
      WEFT_CHECK(used + width <= kMost, "kernel ", signature.name, " has more than ", kMost,
                 " bytes of parameters");
      std::memcpy(bytes + used, &value, width);
      if (tensors > 0) places[i] = used;
      used += width;
    }
    count = args.size();
  }

  void launch(const CudaExecutable& cuda, Handle stream, bool recorded) {
    // Tensors are at an offset that only the driver knows: arguments are handed over one by one.
    void* each[kMostParams];
    if (tensors > 0) {
      for (std::size_t i = 0; i < tensors; ++i) each[i] = &maps[i];
      for (std::size_t i = 0; i < count; ++i) each[tensors + i] = bytes + places[i];
    }
    // CU_LAUNCH_PARAM_BUFFER_POINTER 1, CU_LAUNCH_PARAM_BUFFER_SIZE 2, CU_LAUNCH_PARAM_END 0.
    void* extra[] = {reinterpret_cast<void*>(1), bytes, reinterpret_cast<void*>(2), &used, nullptr};
    if (cuda.early[kernel] && driver().launch_early && (!recorded || driver().records_early)) {
      LaunchAttribute attribute;
      LaunchConfig config{};
      for (int i = 0; i < 3; ++i) config.grid[i] = shape[i], config.block[i] = shape[i + 3];
      config.shared = static_cast<unsigned>(signature.scratch_bytes), config.stream = stream;
      config.attributes = &attribute, config.count = 1;
      driver().check(
          driver().launch_early(&config, cuda.function(kernel), tensors > 0 ? each : nullptr,
                                tensors > 0 ? nullptr : extra),
          "launching a kernel");
      return;
    }
    driver().check(
        driver().launch(cuda.function(kernel), shape[0], shape[1], shape[2], shape[3], shape[4],
                        shape[5], static_cast<unsigned>(signature.scratch_bytes), stream,
                        tensors > 0 ? each : nullptr, tensors > 0 ? nullptr : extra),
        "launching a kernel");
  }

  const KernelSignature& signature;  // of the executable, which outlives this
  std::size_t kernel, tensors, used = 0, count = 0;
  unsigned shape[6];
  std::size_t places[kMostParams];
  TensorMap maps[kMostTensors];
  alignas(16) char bytes[kMost];
};

Event CudaDevice::launch(runtime::Executable& executable, std::size_t kernel,
                         std::span<const KernelArg> args, std::span<const std::int64_t> extents) {
  auto& cuda = static_cast<CudaExecutable&>(executable);
  const KernelSignature& k = executable.binary().kernels.at(kernel);
  if (recording()) {
    for (const KernelArg& a : args) lane.recording->hold(a.storage);
    lane.recording->hold(executable);
  }
  std::int64_t shape[6] = {1, 1, 1, 1, 1, 1}, *grid = shape, *block = shape + 3;
  const std::vector<std::size_t>& places = cuda.places[kernel];
  for (std::size_t i = 0; i < places.size(); ++i) shape[places[i]] = extents[i];
  if (block[0] * block[1] * block[2] > card_.threads) {
    throw Error(ErrorKind::device, "cuda.launch.threads",
                cat("kernel \"", k.name, "\" asks for ", block[0] * block[1] * block[2],
                    " threads in a block; ", card_.name, " has ", card_.threads));
  }
  if (grid[0] > 2147483647 || grid[1] > 65535 || grid[2] > 65535) {
    throw Error(ErrorKind::device, "cuda.launch.blocks",
                cat("kernel \"", k.name, "\" asks for ", grid[0], " x ", grid[1], " x ", grid[2],
                    " blocks; legal: 2147483647 x 65535 x 65535"));
  }
  Packed call(cuda, kernel, shape);
  use();  // descriptions of tensors need the card's context in this thread
  call.pack(args);
  runtime::Backlog& waiting = backlog();
  if (defers() && (waiting.waits() || !cuda.ready())) {
    std::vector<Ref<Storage>> arrays;
    if (runtime::OwnBacklog::of(this))
      for (const KernelArg& a : args)
        if (a.storage) arrays.emplace_back(a.storage);
    auto run = [this, needs = Ref<CudaExecutable>(&cuda), held = std::make_shared<Packed>(call),
                arrays = std::move(arrays)] {
      needs->finish();
      use();
      keep_queue_short();
      held->launch(*needs, nullptr, false);
    };
    wait_patiently([&] {
      waiting.add([needs = Ref<CudaExecutable>(&cuda)] { return needs->ready(); }, std::move(run));
      waiting.advance();
    });
  } else {
    settle();
    if (!cuda.ready()) wait_patiently([&] { cuda.finish(); });
    cuda.finish();
    if (!recording()) keep_queue_short();
    call.launch(cuda, stream(), static_cast<bool>(recording()));
  }
  // Devices stay open as long as the process, so the event needs no handle (and no allocation).
  return Event([this] { synchronize(); });
}

struct Found {
  std::vector<Card> cards;
  std::string reason;  // where there are none
};
Found find_cards() {
  const Driver& d = driver();
  Found found;
  std::vector<Card>& out = found.cards;
  int n = 0;
  if (!d.library) {
    found.reason = d.reason;
    return found;
  }
  if (int code = d.count(&n); code != 0 || n == 0) {
    found.reason = code ? d.text(code) : "the NVIDIA driver is installed but reports no card";
    return found;
  }
  for (int i = 0; i < n; ++i) {
    int ordinal = 0, major = 0, minor = 0, threads = 1024, shared = 49152, optin = 49152,
        processors = 1, clock = 0, memory_clock = 0, bus = 0;
    char name[256] = {};
    std::size_t memory = 0;
    if (d.get(&ordinal, i) != 0) continue;
    d.name(name, sizeof(name) - 1, ordinal);
    d.attribute(&major, kMajor, ordinal);
    d.attribute(&minor, kMinor, ordinal);
    d.attribute(&threads, kMaxThreads, ordinal);
    d.attribute(&shared, kSharedPerBlock, ordinal);
    d.attribute(&optin, kSharedOptin, ordinal);
    d.attribute(&processors, kProcessors, ordinal);
    d.attribute(&clock, kClock, ordinal);
    d.attribute(&memory_clock, kMemoryClock, ordinal);
    d.attribute(&bus, kBusWidth, ordinal);
    d.memory(&memory, ordinal);
    out.push_back({name, cat("sm_", major, minor), major, threads, shared, std::max(shared, optin),
                   processors, clock, memory_clock, bus, memory});
  }
  return found;
}

}  // namespace

const std::vector<Card>& cards(std::string* reason) {
  // The driver asks its kernel module for clocks, one thread after the other, in milliseconds; each
  // build asks for the cards.
  static const Found& found = *new Found(find_cards());
  *reason = found.reason;
  return found.cards;
}

Ref<runtime::Device> open_card(int index) {
  static std::mutex mutex;
  static auto& open = *new std::map<int, Ref<runtime::Device>>;  // outlives every storage
  std::string reason;
  const std::vector<Card>& all = cards(&reason);
  if (index < 0 || index >= static_cast<int>(all.size())) {
    if (all.empty())
      throw Error(ErrorKind::device, "cuda.absent",
                  cat("device cuda:", index, " is absent: ", reason));
    throw Error(ErrorKind::device, "cuda.absent",
                cat("device cuda:", index, " is absent: ", all.size(),
                    " cards are present, cuda:0 to cuda:", all.size() - 1));
  }
  std::lock_guard lock(mutex);
  Ref<runtime::Device>& device = open[index];
  if (!device) device = make_ref<CudaDevice>(index, all[static_cast<std::size_t>(index)]);
  return device;
}

}  // namespace weft::cuda
