// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/device.h"

#include <bit>
#include <chrono>

namespace weft::runtime {

std::string_view to_string(DeviceKind kind) {
  static constexpr std::string_view names[] = {"hardware", "simulator", "interpreter"};
  return names[static_cast<std::size_t>(kind)];
}

const KernelSignature& Binary::kernel(std::string_view name) const {
  std::vector<std::string> known;
  for (const KernelSignature& kernel : kernels) {
    if (kernel.name == name) return kernel;
    known.push_back(kernel.name);
  }
  throw Error(ErrorKind::value, "binary.kernel.unknown",
              cat("the binary has no kernel \"", name, "\""))
      .note(cat("kernels: ", join(known)))
      .help(did_you_mean(name, known));
}

Storage::Storage(Ref<Device> device, std::uint64_t address, Bytes bytes, std::string_view space)
    : device_(std::move(device)), address_(address), bytes_(bytes), space_(space) {}

Storage::Storage(Ref<Device> device, std::uint64_t address, Bytes bytes, std::string_view space,
                 std::function<void()> release)
    : device_(std::move(device)),
      address_(address),
      bytes_(bytes),
      space_(space),
      release_(std::move(release)) {}

Storage::~Storage() {
  if (release_) {
    release_();
  } else {
    device_->free_storage(address_, bytes_, space_);
  }
}

KernelArg KernelArg::real(double value) { return {nullptr, 0, std::bit_cast<std::int64_t>(value)}; }

void Device::copy(Storage& dst, Bytes dst_offset, const Storage& src, Bytes src_offset,
                  Bytes bytes) {
  std::string through(bytes, '\0');
  download(through.data(), src, src_offset, bytes);
  upload(dst, dst_offset, through.data(), bytes);
}

Span Device::measure(const std::function<void()>& work) {
  synchronize();
  auto start = std::chrono::steady_clock::now();
  work();
  synchronize();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {seconds, seconds, 0};
}

void check_range(const Storage& storage, Bytes offset, Bytes bytes) {
  if (offset <= storage.bytes() && bytes <= storage.bytes() - offset) return;
  throw Error(ErrorKind::index, "device.access",
              cat("bytes ", offset, " to ", offset + bytes, " lie outside a storage of ",
                  storage.bytes(), " bytes on ", storage.device()->info().name));
}

}  // namespace weft::runtime
