// SPDX-License-Identifier: Apache-2.0
#pragma once
// A card that is not there: programs pass the CUDA pipeline and its compiler, launches do nothing.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "weft/autograd/tensor.h"
#include "weft/target/backend.h"

namespace weft {

class PaperCard : public runtime::Device {
 public:
  explicit PaperCard(std::string target) {
    info_.name = std::move(target);
    info_.kind = runtime::DeviceKind::hardware;
    info_.limits = {{"threads_per_block", 1024}, {"shared_bytes", 232448},
                    {"multiprocessors", 132},    {"tensor_maps", 1},
                    {"clock_khz", 1500000},      {"memory_bytes_per_microsecond", 600000}};
  }
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<Storage> allocate(runtime::Bytes bytes, runtime::Bytes, std::string_view space) override {
    return make_ref<Storage>(Ref<runtime::Device>(this), 4096, bytes, space);
  }
  void upload(Storage&, runtime::Bytes, const void*, runtime::Bytes) override {}
  void download(void* to, const Storage&, runtime::Bytes, runtime::Bytes bytes) override {
    std::memset(to, 0, bytes);
  }
  void copy(Storage&, runtime::Bytes, const Storage&, runtime::Bytes, runtime::Bytes) override {}
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    ++built;
    last_source = binary.source;
    sources += binary.source;
    largest = std::max(largest, binary.source.size());
    if (const char* folder = std::getenv("ARRAY_GRID_DUMP"))
      std::ofstream(cat(folder, "/kernel_", built, ".cu")) << binary.source;
    return make_ref<runtime::Executable>(Ref<runtime::Device>(this), std::move(binary));
  }
  runtime::Event launch(runtime::Executable& program, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override {
    ++launched;
    names.push_back(program.binary().kernels.at(kernel).name);
    last_args.assign(args.begin(), args.end());
    last_extents.assign(extents.begin(), extents.end());
    return {};
  }
  int built = 0, launched = 0;
  std::size_t largest = 0;
  std::string sources;  // of all modules
  std::string last_source;
  std::vector<std::string> names;  // of what was launched
  std::vector<runtime::KernelArg> last_args;
  std::vector<std::int64_t> last_extents;

 protected:
  void free_storage(std::uint64_t, runtime::Bytes, std::string_view) override {}

 private:
  runtime::DeviceInfo info_;
};

/// Null when no compiler for the card is found here.
inline Ref<PaperCard> card() {
  for (const DeviceStatus& status : all_devices()) {
    if (status.name.starts_with("cuda") && status.reason.find("NVRTC") != std::string::npos)
      return nullptr;
  }
  static Ref<PaperCard> one = make_ref<PaperCard>("cuda:arch=sm_90");
  try {
    Ref<Device> device = one;
    NDArray x = NDArray::empty(device, Elem::float32, Dims{4});
    arrays::add(x, x);
  } catch (const Error& e) {
    if (e.code().find("nvrtc") != std::string::npos) return nullptr;
    throw;
  }
  return one;
}

#define NEED_CARD()                                                             \
  Ref<PaperCard> paper = card();                                                \
  if (!paper) GTEST_SKIP() << "NVRTC, the compiler for cuda, is not installed"; \
  Ref<Device> device = paper

}  // namespace weft
