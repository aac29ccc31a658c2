// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running kernels from C++: arrays that both sides see, and kernels compiled once and called like
// functions.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "weft/runtime/device.h"
#include "weft/targets/qpu/language/language.h"

namespace weft::qpu {

/// The device called `name`; opened at the first use and kept. "qpu" here notes reads outside
/// arrays instead of stopping at them, because kernels in this style prefetch past ends;
/// "qpu:reads=fault" stops. "qpu:hw" is the chip of a Raspberry Pi.
Ref<runtime::Device> device(std::string_view name = "qpu");

/// Something a kernel did that the device notes without stopping (reads outside arrays).
struct Note {
  std::string code, message, source;
  std::int64_t count = 0;
};
std::vector<Note> takeNotes(std::string_view name = "qpu");
/// Where Print goes; standard output when unset (given back to the previous when empty).
void setPrint(std::function<void(std::string_view)> print, std::string_view name = "qpu");

namespace hw {
class Emulator;
}
namespace detail {
/// The emulator of a device that has one; a chip throws Error(device, "qpu.hw.emulator_only").
hw::Emulator& only_emulator(hw::Emulator* emulator, std::string_view name, const char* what);
struct Memory {
  Memory(runtime::Bytes bytes, std::string_view device);
  void write(std::size_t offset, const void* from, std::size_t bytes);
  void read(std::size_t offset, void* to, std::size_t bytes) const;
  Ref<runtime::Storage> storage;
  void* host = nullptr;
};
}  // namespace detail

/// An array of int, unsigned, float or pointers (32 bits each), visible to the host and to kernels.
template <typename T>
class SharedArray {
  using Word = std::conditional_t<std::is_pointer_v<T>, std::uint32_t, T>;
  static_assert(sizeof(Word) == 4, "kernels see words of 32 bits");

 public:
  explicit SharedArray(std::size_t n, std::string_view device = "qpu")
      : memory_(std::make_shared<detail::Memory>(runtime::Bytes{n} * 4, device)), size_(n) {}
  std::size_t size() const { return size_; }
  /// Throws Error(index, "qpu.array.index").
  Word& operator[](std::size_t i) const {
    if (i >= size_) [[unlikely]]
      throw Error(ErrorKind::index, "qpu.array.index",
                  cat("element ", i, " of a SharedArray of ", size_));
    return data()[i];
  }
  /// On the chip this memory is uncached and takes aligned accesses only: copy by write() and
  /// read(), which memcpy may not do.
  Word* data() const { return static_cast<Word*>(memory_->host); }
  /// Copies n elements in, from element `first` on. Throws Error(index, "qpu.array.index").
  void write(const Word* from, std::size_t n, std::size_t first = 0) const {
    check(first, n);
    memory_->write(first * 4, from, n * 4);
  }
  /// Copies n elements out, from element `first` on. Throws Error(index, "qpu.array.index").
  void read(Word* to, std::size_t n, std::size_t first = 0) const {
    check(first, n);
    memory_->read(first * 4, to, n * 4);
  }
  std::uint32_t getAddress() const {
    return static_cast<std::uint32_t>(memory_->storage->address());
  }
  runtime::Storage& storage() const { return *memory_->storage; }

 private:
  void check(std::size_t first, std::size_t n) const {
    if (first > size_ || n > size_ - first)
      throw Error(ErrorKind::index, "qpu.array.index",
                  cat(n, " elements from ", first, " on of a SharedArray of ", size_));
  }

  std::shared_ptr<detail::Memory> memory_;
  std::size_t size_;
};

struct KernelArgument {
  bool pointer = false;
  std::int64_t scalar = 0;
  runtime::Storage* storage = nullptr;
};

/// A compiled kernel, independent of parameter types. Cheap to copy.
class AnyKernel {
 public:
  AnyKernel(std::unique_ptr<ast::Program> program, std::string_view device);
  void setNumQPUs(int n);
  /// "qpu" and its options are emulators.
  void setDevice(std::string_view name);
  /// The program in assembly, with addresses.
  const std::string& asm_() const;
  std::vector<std::uint64_t> words() const;
  std::size_t instructions() const;
  /// Stops a launch after so many clocks ("qpu.limit.cycles").
  void setCycleLimit(std::int64_t cycles);
  /// Simulated clocks of the last call.
  std::int64_t cycles() const;
  const ast::Program& program() const;
  const runtime::Binary& binary() const;
  void launch(const std::vector<KernelArgument>& arguments);
  /// The same on the source interpreter, for tests.
  void interpret_with(const std::vector<KernelArgument>& arguments);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace detail {
template <typename T>
struct Parameter;
template <>
struct Parameter<Int> {
  static constexpr ast::Param::Kind kind = ast::Param::Kind::integer;
  template <typename A>
  requires std::is_integral_v<A>
  static KernelArgument pass(A x) { return {false, static_cast<std::int64_t>(x), nullptr}; }
};
template <>
struct Parameter<Uint> {
  static constexpr ast::Param::Kind kind = ast::Param::Kind::uinteger;
  template <typename A>
  requires std::is_integral_v<A>
  static KernelArgument pass(A x) { return {false, static_cast<std::int64_t>(x), nullptr}; }
};
template <>
struct Parameter<Float> {
  static constexpr ast::Param::Kind kind = ast::Param::Kind::real;
  template <typename A>
  requires std::is_arithmetic_v<A>
  static KernelArgument pass(A x) {
    return {false, std::bit_cast<std::int64_t>(static_cast<double>(x)), nullptr};
  }
};
template <typename T>
struct HostOf;
template <>
struct HostOf<Int> {
  using type = int;
};
template <>
struct HostOf<Uint> {
  using type = unsigned;
};
template <>
struct HostOf<Float> {
  using type = float;
};
template <typename T>
struct HostOf<Ptr<T>> {
  using type = typename HostOf<T>::type*;
};
template <typename T>
struct Parameter<Ptr<T>> {
  static constexpr ast::Param::Kind kind = ast::Param::Kind::pointer;
  static KernelArgument pass(const SharedArray<typename HostOf<T>::type>* a) {
    if (!a)
      throw Error(ErrorKind::value, "qpu.launch.null",
                  cat("a kernel's argument is a null ", "SharedArray"));
    return {true, 0, &a->storage()};
  }
};
template <typename T>
T bind_parameter() {
  T v;
  std::uint32_t uniform = b("a parameter").parameter(Parameter<T>::kind);
  assign(v.var, b("a parameter").expr(ast::Op::uniform, nullptr, nullptr, uniform));
  return v;
}
}  // namespace detail

template <typename... Ts>
class Kernel : public AnyKernel {
 public:
  using AnyKernel::AnyKernel;
  template <typename... Us>
  void operator()(Us&&... args) {
    call(args...);
  }
  template <typename... Us>
  void call(Us&&... args) {
    static_assert(sizeof...(Us) == sizeof...(Ts),
                  "a kernel is called with as many arguments as it has parameters");
    launch({detail::Parameter<Ts>::pass(args)...});
  }
  template <typename... Us>
  void interpret(Us&&... args) {
    interpret_with({detail::Parameter<Ts>::pass(args)...});
  }
};

/// Builds and compiles a kernel: once per program, however often it is asked for.
template <typename... Ts>
Kernel<Ts...> compile(void (*f)(Ts...), std::string name = "kernel",
                      std::string_view device = "qpu") {
  Builder builder;
  std::tuple<Ts...> parameters{detail::bind_parameter<Ts>()...};  // braces: in order
  std::apply([&](auto&... p) { f(p...); }, parameters);
  return Kernel<Ts...>(builder.finish(std::move(name)), device);
}

}  // namespace weft::qpu
