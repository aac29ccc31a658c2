// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device of plain memory for tests of what lies above devices. Its kernels: "double" (every byte
// doubled), "wait" (sleeps for its scalar, in milliseconds; of less than 0, until `waits_end`),
// "fail".

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "weft/runtime/device.h"

namespace weft::rpc {

inline std::atomic<bool> waits_end = false;

class MemoryDevice final : public runtime::Device {
 public:
  explicit MemoryDevice(std::string_view config) {
    info_.name = config.empty() ? "memory" : "memory:" + std::string(config);
    info_.kind = runtime::DeviceKind::simulator;
    info_.clock_hz = 1e6;
    info_.limits["answer"] = 42;
  }
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<runtime::Storage> allocate(runtime::Bytes bytes, runtime::Bytes,
                                 std::string_view space) override {
    if (bytes > (256u << 20))
      throw Error(ErrorKind::memory, "device.memory.exhausted", cat("no ", bytes, " bytes here"))
          .note("256 MiB in all");
    auto data = std::make_unique<std::string>(bytes, '\0');
    auto address = reinterpret_cast<std::uint64_t>(data->data());
    blocks_[address] = std::move(data);
    return make_ref<runtime::Storage>(Ref<runtime::Device>(this), address, bytes, space);
  }
  void upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
              runtime::Bytes bytes) override {
    runtime::check_range(dst, offset, bytes);
    std::memcpy(static_cast<char*>(dst.host()) + offset, src, bytes);
  }
  void download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                runtime::Bytes bytes) override {
    runtime::check_range(src, offset, bytes);
    std::memcpy(dst, static_cast<char*>(src.host()) + offset, bytes);
  }
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    if (binary.format != "memory")
      throw Error(ErrorKind::emit, "device.binary.format", cat("format \"", binary.format, "\""));
    return make_ref<runtime::Executable>(Ref<runtime::Device>(this), std::move(binary));
  }
  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t>) override {
    const std::string& name = executable.binary().kernels.at(kernel).name;
    if (name == "fail")
      throw Error(ErrorKind::fault, "memory.fault", "kernel \"fail\" failed")
          .at("unit 3", "at pc 7")
          .note("as it should")
          .help("do not run it");
    if (name == "wait") {
      const std::chrono::milliseconds time(args[0].scalar);
      std::this_thread::sleep_for(time);
      while (time.count() < 0 && !waits_end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (name == "double") {
      char* data = static_cast<char*>(args[0].storage->host());
      for (runtime::Bytes i = 0; i < args[0].storage->bytes(); ++i)
        data[i] = static_cast<char>(data[i] * 2);
    }
    cycles_ += 1000;
    return {};
  }
  runtime::Span measure(const std::function<void()>& work) override {
    std::int64_t before = cycles_;
    work();
    return {static_cast<double>(cycles_ - before) * 1e-6, 0.5, cycles_ - before};
  }
  runtime::StatReport stats() const override {
    runtime::StatReport r;
    r.add("cycles", "cycles", "simulated time", cycles_);
    return r;
  }
  void clear_stats() override { cycles_ = 0; }

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes, std::string_view) override {
    blocks_.erase(address);
  }

 private:
  runtime::DeviceInfo info_;
  std::map<std::uint64_t, std::unique_ptr<std::string>> blocks_;
  std::int64_t cycles_ = 0;
};

inline Ref<runtime::Device> memory_device(std::string_view config) {
  if (config == "bad")
    throw Error(ErrorKind::value, "memory.config", "configuration \"bad\" is bad");
  return make_ref<MemoryDevice>(config);
}

inline runtime::Binary memory_binary() {
  runtime::Binary b;
  b.target = "memory";
  b.format = "memory";
  b.bytes = std::string("\0\1\2", 3);
  runtime::KernelParam data{"data", runtime::ParamKind::pointer, dtypes::int8, "global"};
  b.kernels = {{"double", {data}, {}, 0},
               {"wait", {{"ms", runtime::ParamKind::scalar, dtypes::int64, "global"}}, {}, 0},
               {"fail", {}, {}, 0}};
  return b;
}

}  // namespace weft::rpc
