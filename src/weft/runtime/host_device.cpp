// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "weft/runtime/pool.h"

namespace weft::runtime {

namespace {

std::int32_t run_parallel(const weft_context*, std::int64_t n, weft_parallel_body body,
                          void* closure) {
  std::atomic<std::int32_t> result{0};
  Pool& pool = Pool::shared();
  std::int64_t grain = std::max<std::int64_t>(1, n / (4 * pool.threads()));
  pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    if (std::int32_t code = body(begin, end, closure)) {
      std::int32_t none = 0;
      result.compare_exchange_strong(none, code);
    }
  });
  return result;
}

/// Large blocks ask for huge pages: first use costs a five-hundredth of the faults.
constexpr Bytes kHugePage = Bytes{2} << 20;

void* take(Bytes bytes, Bytes align) {
  void* block = nullptr;
  const bool large = bytes >= 2 * kHugePage;
  align = std::max<Bytes>(align, large ? kHugePage : 64);
  if (posix_memalign(&block, align, std::max<Bytes>(bytes, 64)) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (large) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // refusal does no harm
#endif
  return block;
}

void* workspace_alloc(const weft_context*, std::uint64_t bytes, std::uint64_t align) {
  return take(bytes, align);
}
void workspace_free(const weft_context*, void* pointer) { std::free(pointer); }

class HostExecutable final : public Executable {
 public:
  HostExecutable(Ref<Device> device, Binary binary, std::vector<weft_kernel> kernels,
                 Ref<RefCounted> keep)
      : Executable(std::move(device), std::move(binary)),
        kernels(std::move(kernels)),
        keep_(std::move(keep)) {}
  std::vector<weft_kernel> kernels;

 private:
  Ref<RefCounted> keep_;
};

}  // namespace

const weft_context& host_context() {
  static const weft_context context = {sizeof(weft_context), run_parallel, workspace_alloc,
                                       workspace_free,       nullptr,      nullptr};
  return context;
}

HostDevice::HostDevice(std::string name, std::string description, std::string binary_format)
    : format_(std::move(binary_format)) {
  info_.name = std::move(name);
  info_.description = std::move(description);
  info_.host_accessible = true;
}

HostDevice::~HostDevice() { trim(); }

std::size_t HostDevice::size_class(Bytes bytes) {
  if (bytes <= 64) return 0;
  auto log = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
  std::size_t quarter = ((bytes - 1) >> (log - 2)) & 3;
  return (log - 6) * 4 + quarter + 1;
}

Bytes HostDevice::class_bytes(std::size_t c) {
  if (c == 0) return 64;
  std::size_t log = (c - 1) / 4 + 6, quarter = (c - 1) % 4;
  return (Bytes{1} << log) + ((quarter + 1) << (log - 2));
}

Ref<Storage> HostDevice::allocate(Bytes bytes, Bytes align, std::string_view space) {
  std::size_t c = size_class(bytes);
  Bytes size = c < kClasses ? class_bytes(c) : bytes;
  void* block = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (limit_ == 0 || (size <= limit_ && live_ <= limit_ - size)) {
      if (align <= 64 && c < kClasses && !free_[c].empty()) {
        block = free_[c].back();
        free_[c].pop_back();
        cached_ -= size;
      } else {
        block = take(size, align);
      }
    }
    if (block) {
      live_ += size;
      peak_ = std::max(peak_, live_);
      ++allocations_;
    }
  }
  if (!block && limit_ == 0) {
    trim();
    block = take(size, align);
    if (block) {
      std::lock_guard lock(mutex_);
      live_ += size;
      peak_ = std::max(peak_, live_);
      ++allocations_;
    }
  }
  if (!block) {
    throw Error(ErrorKind::memory, "device.memory.exhausted",
                cat(info_.name, " cannot give ", human_bytes(bytes), " (", bytes, " bytes)"))
        .note(cat(human_bytes(live_), " are in use",
                  limit_ ? cat(", the limit is ", human_bytes(limit_)) : std::string(),
                  "; cached blocks were given back first"));
  }
  return make_ref<Storage>(Ref<Device>(this), reinterpret_cast<std::uint64_t>(block), bytes, space);
}

void HostDevice::free_storage(std::uint64_t address, Bytes bytes, std::string_view) {
  std::size_t c = size_class(bytes);
  Bytes size = c < kClasses ? class_bytes(c) : bytes;
  void* block = reinterpret_cast<void*>(address);
  {
    std::lock_guard lock(mutex_);
    live_ -= size;
    if (c < kClasses && cached_ + size <= kKeep) {
      try {
        free_[c].push_back(block);
        cached_ += size;
        return;
      } catch (const std::bad_alloc&) {  // the list cannot grow: the host needs the block
      }
    }
  }
  std::free(block);
}

void HostDevice::trim() {
  std::lock_guard lock(mutex_);
  for (auto& list : free_) {
    for (void* block : list) std::free(block);
    list.clear();
  }
  cached_ = 0;
}

void HostDevice::upload(Storage& dst, Bytes offset, const void* src, Bytes bytes) {
  check_range(dst, offset, bytes);
  if (bytes) std::memcpy(static_cast<char*>(dst.host()) + offset, src, bytes);
}

void HostDevice::download(void* dst, const Storage& src, Bytes offset, Bytes bytes) {
  check_range(src, offset, bytes);
  if (bytes) std::memcpy(dst, static_cast<const char*>(src.host()) + offset, bytes);
}

void HostDevice::copy(Storage& dst, Bytes dst_offset, const Storage& src, Bytes src_offset,
                      Bytes bytes) {
  check_range(src, src_offset, bytes);
  check_range(dst, dst_offset, bytes);
  if (bytes)
    std::memmove(static_cast<char*>(dst.host()) + dst_offset,
                 static_cast<const char*>(src.host()) + src_offset, bytes);
}

HostDevice::Ready HostDevice::make_ready(const Binary& binary) {
  throw Error(
      ErrorKind::emit, "device.binary.format",
      cat(info_.name, " as plain host memory runs no binary of format \"", binary.format, "\""));
}

Ref<Executable> HostDevice::load(Binary binary) {
  if (binary.format != format_) {
    throw Error(
        ErrorKind::emit, "device.binary.format",
        cat(info_.name, " runs binaries of format \"", format_, "\", not \"", binary.format, "\""))
        .note(cat("the binary was built for target \"", binary.target, "\""));
  }
  Ready ready = make_ready(binary);
  return make_ref<HostExecutable>(Ref<Device>(this), std::move(binary), std::move(ready.kernels),
                                  std::move(ready.keep));
}

Event HostDevice::launch(Executable& executable, std::size_t kernel,
                         std::span<const KernelArg> args, std::span<const std::int64_t> extents) {
  auto& host = static_cast<HostExecutable&>(executable);
  const KernelSignature& signature = host.binary().kernels.at(kernel);
  WEFT_CHECK(extents.size() == signature.axes.size(), signature.name, " has ",
             signature.axes.size(), " launch axes");
  constexpr std::size_t kInline = 32;
  void* pointer_room[kInline];
  std::int64_t scalar_room[kInline];
  std::vector<void*> more_pointers;
  std::vector<std::int64_t> more_scalars;
  void** pointers = pointer_room;
  std::int64_t* scalars = scalar_room;
  if (args.size() + extents.size() > kInline) {
    more_pointers.resize(args.size());
    more_scalars.resize(args.size() + extents.size());
    pointers = more_pointers.data();
    scalars = more_scalars.data();
  }
  std::size_t np = 0, ns = 0;
  for (const KernelArg& arg : args) {
    if (arg.storage) pointers[np++] = static_cast<char*>(arg.storage->host()) + arg.offset;
    else scalars[ns++] = arg.scalar;
  }
  for (std::int64_t extent : extents) scalars[ns++] = extent;
  if (std::int32_t code = host.kernels[kernel](pointers, scalars, &host_context())) {
    std::string text = "an assertion failed";
    if (const Json* all = host.binary().metadata.is_object()
                              ? host.binary().metadata.find("assertions")
                              : nullptr) {
      const Json* mine = all->is_object() ? all->find(signature.name) : nullptr;
      if (mine && code >= 1 && static_cast<std::size_t>(code) <= mine->size())
        text = mine->at(static_cast<std::size_t>(code - 1)).as_string();
    }
    throw Error(ErrorKind::fault, "kernel.assertion",
                cat("kernel \"", signature.name, "\": ", text));
  }
  return {};
}

StatReport HostDevice::stats() const {
  std::lock_guard lock(mutex_);
  StatReport report;
  report.add("bytes.live", "bytes", "in use by storages", static_cast<std::int64_t>(live_));
  report.add("bytes.peak", "bytes", "most in use at once", static_cast<std::int64_t>(peak_));
  report.add("bytes.cached", "bytes", "kept for reuse", static_cast<std::int64_t>(cached_));
  report.add("allocations", "1", "storages made", allocations_);
  return report;
}

void HostDevice::clear_stats() {
  std::lock_guard lock(mutex_);
  peak_ = live_;
  allocations_ = 0;
}

}  // namespace weft::runtime
