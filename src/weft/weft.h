// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor programs from C++, with the names of the Python package: parse or te, Schedule, build,
// arrays on devices, calls and their times. Link weft::weft.
//
//   weft::Schedule sch(weft::script::from_source(text));
//   auto m = weft::build(sch, "cpu");
//   m["main"](a, b, c);                        // weft::NDArray, destination passing
//   m.time_evaluator("main", 100, 3)(a, b, c).median;

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/array/ndarray.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/te.h"
#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"

namespace weft {

using ir::IRModule;
using ir::PrimFunc;
using runtime::TimeResult;
using schedule::BlockRef;
using schedule::LoopRef;
using schedule::Schedule;

/// "No factor": the one that split finds itself, Python's None.
inline constexpr std::nullopt_t None = std::nullopt;

namespace script {
/// A program in T-script text. Throws Error(parse, "parse.*") with line, column and caret.
inline IRModule from_source(std::string_view text, std::string_view file = "<text>") {
  return ir::parse_module(text, file);
}
}  // namespace script

/// The device of a name. Throws Error(device, ...) when it is absent, saying what was searched.
inline Ref<runtime::Device> device(std::string_view name) { return open_device(name); }
inline std::vector<DeviceStatus> devices() { return all_devices(); }

/// Kernels for one target and the host plans of their functions.
class Module {
 public:
  explicit Module(Ref<runtime::Module> module) : module_(std::move(module)) {}

  class Function {
   public:
    Function(Ref<runtime::Module> module, std::string name)
        : module_(std::move(module)), name_(std::move(name)) {
      module_->plan(name_);  // throws when unknown, listing the functions
    }
    /// Checks the arguments, runs, waits. Outputs are arguments.
    template <typename... Arrays>
    void operator()(const NDArray& first, const Arrays&... rest) const {
      std::vector<runtime::CallArg> args = {arg(first), arg(rest)...};
      runtime::Function(module_, name_, first.device()).call(args).wait();
    }
    /// Seconds of a call; on simulators simulated, with cycles.
    template <typename... Arrays>
    TimeResult time(int number, int repeat, const NDArray& first, const Arrays&... rest) const {
      std::vector<runtime::CallArg> args = {arg(first), arg(rest)...};
      return runtime::Function(module_, name_, first.device()).time(args, number, repeat);
    }

   private:
    static runtime::CallArg arg(const NDArray& a) {
      runtime::CallArg out;
      out.storage = a.handle().get();
      out.dtype = a.dtype();
      out.byte_offset = static_cast<runtime::Bytes>(a.offset() * elem_bytes(a.elem()));
      for (int i = 0; i < a.ndim(); ++i) {
        out.shape.push_back(a.shape()[i]);
        out.strides.push_back(a.strides()[i]);
      }
      return out;
    }
    static runtime::CallArg arg(std::integral auto value) {
      runtime::CallArg out;
      out.dtype = dtypes::int64, out.int_value = static_cast<std::int64_t>(value);
      return out;
    }
    static runtime::CallArg arg(double value) {
      runtime::CallArg out;
      out.dtype = dtypes::float64, out.float_value = value;
      return out;
    }
    Ref<runtime::Module> module_;
    std::string name_;
  };

  Function operator[](std::string name) const { return {module_, std::move(name)}; }
  const std::string& source() const { return module_->source(); }
  void save(const std::string& path) const { module_->save(path); }
  auto time_evaluator(std::string name, int number = 10, int repeat = 3) const {
    return [f = Function(module_, std::move(name)), number, repeat](const auto&... arrays) {
      return f.time(number, repeat, arrays...);
    };
  }
  const Ref<runtime::Module>& core() const { return module_; }

 private:
  Ref<runtime::Module> module_;
};

inline Module build(const Schedule& sch, std::string_view target) {
  return Module(build(sch.mod(), target, BuildOptions{}));
}
inline Module build(const PrimFunc& f, std::string_view target) {
  return Module(build(ir::make_module(f), target, BuildOptions{}));
}
inline Module load(const std::string& path) { return Module(runtime::Module::load(path)); }

namespace detail {
template <typename T>
constexpr DType dtype_of_type() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8);
  TypeCode code = std::is_floating_point_v<T> ? TypeCode::float_
                  : std::is_signed_v<T>       ? TypeCode::int_
                                              : TypeCode::uint_;
  return {code, static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}
}  // namespace detail

/// A compact array on a device holding `data`. T: float, double, std::int8_t ... std::int64_t.
template <typename T>
NDArray asarray(const std::vector<T>& data, Dims shape, const Ref<runtime::Device>& device) {
  NDArray out = NDArray::empty(device, elem_of(detail::dtype_of_type<T>()), std::move(shape));
  if (out.size() != static_cast<std::int64_t>(data.size()))
    throw Error(ErrorKind::shape, "array.asarray.size",
                cat(data.size(), " values were given for ", out.size(), " elements"));
  device->upload(*out.handle(), 0, data.data(), data.size() * sizeof(T));
  return out;
}
/// The elements, row-major, brought to the host.
template <typename T>
std::vector<T> to_vector(const NDArray& a) {
  if (a.elem() != elem_of(detail::dtype_of_type<T>()))
    throw Error(ErrorKind::dtype, "array.to_vector.dtype", cat("the array is ", describe(a)));
  std::vector<T> out(static_cast<std::size_t>(a.size()));
  a.read(out.data());
  return out;
}

}  // namespace weft
