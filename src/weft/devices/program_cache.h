// SPDX-License-Identifier: Apache-2.0
#pragma once
// Built programs of devices. A program is known by its structural hash and its device; the launch
// path finds it by a key of named fields without making it. A program is built once for each
// device, under the checks of every user's program.

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "weft/array/ops.h"
#include "weft/ir/node.h"
#include "weft/runtime/module.h"

namespace weft {

/// Whether the array's first element lies at a multiple of so many bytes.
inline bool begins_at(const NDArray& a, std::int64_t bytes) {
  return (a.handle()->address() + static_cast<std::uint64_t>(a.offset() * elem_bytes(a.elem()))) %
             static_cast<std::uint64_t>(bytes) ==
         0;
}

/// What a program is specialised on. Equal keys must mean equal programs. An operator describes
/// itself by a struct of named fields and lists them here in one place.
struct ProgramKey {
  static constexpr std::size_t kMost = 28;
  std::string_view operation;  // a literal: "radix_sort.count"
  std::array<std::int32_t, kMost> facts{};
  std::size_t count = 0;

  ProgramKey(std::string_view name, std::initializer_list<std::int64_t> values);
  /// One fact more, after those that the constructor got.
  void add(std::int64_t value);
  bool operator==(const ProgramKey&) const = default;
};

/// Finds, or makes and builds, the function "main" of a program for the device. Throws what
/// building throws, with the operation and the device in its context. Threads may call it at once;
/// each gets the same function.
Ref<runtime::Function> built_program(const Ref<Device>& device, const ProgramKey& key,
                                     const std::function<ir::PrimFunc()>& make);

/// Arguments in the order of the program's parameters, then a launch. Nothing is checked and
/// hardware is not waited for.
class ProgramCall {
 public:
  explicit ProgramCall(const Ref<Device>& device) : device_(device) {}
  /// The buffer begins at the array's first element.
  ProgramCall& array(const NDArray& a) {
    return pointer(a.handle().get(), static_cast<std::uint64_t>(a.offset() * elem_bytes(a.elem())));
  }
  ProgramCall& pointer(Storage* storage, std::uint64_t offset);
  ProgramCall& integer(std::int64_t value);
  ProgramCall& real(double value);
  ProgramCall& number(const Scalar& value, Elem elem);
  std::size_t count() const { return count_; }
  void run(const ProgramKey& key, const std::function<ir::PrimFunc()>& make);

 protected:
  void launch(runtime::Function& function);
  static constexpr std::size_t kMost = 160;
  const Ref<Device>& device_;
  runtime::KernelArg args_[kMost];
  std::size_t count_ = 0;
};

}  // namespace weft
