// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host tensors and the list of functions of an extension module.
//
//   Tensor add(Tensor a, Tensor b) { ... return out; }
//   WEFT_QPU_MODULE(dot_cpp, m) { m.def("add", &add, "a + b on the QPUs"); }
//
// Arguments and results: Tensor (float32), IntTensor (int32), integers, floating-point numbers.
// Tensors arrive contiguous and row-major whatever the caller had; what a function throws reaches
// Python as weft.Error.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/targets/qpu/extension/abi.h"

namespace weft::qpu {

/// A contiguous row-major tensor in host memory: an argument's own memory, or storage of its own.
template <typename T>
class HostTensor {
 public:
  HostTensor() = default;
  static HostTensor empty(std::vector<std::int64_t> shape) {
    HostTensor out;
    out.shape_ = std::move(shape);
    out.own_ = std::make_shared<std::vector<T>>(static_cast<std::size_t>(out.numel()));
    out.data_ = out.own_->data();
    return out;
  }
  static HostTensor zeros(std::vector<std::int64_t> shape) { return empty(std::move(shape)); }
  /// Somebody else's memory, which must outlive the tensor.
  static HostTensor over(T* data, std::vector<std::int64_t> shape) {
    HostTensor out;
    out.data_ = data;
    out.shape_ = std::move(shape);
    return out;
  }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size(std::size_t d) const { return shape_.at(d); }
  std::size_t dim() const { return shape_.size(); }
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t e : shape_) n *= e;
    return n;
  }
  const T* data() const { return data_; }
  T* data() { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  bool owns() const { return own_ != nullptr; }

 private:
  std::vector<std::int64_t> shape_;
  std::shared_ptr<std::vector<T>> own_;
  T* data_ = nullptr;
};
using Tensor = HostTensor<float>;
using IntTensor = HostTensor<std::int32_t>;

namespace detail {
template <typename T>
constexpr std::int32_t kind_of_argument() {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) return WEFT_QPU_FLOATS;
  else if constexpr (std::is_same_v<U, IntTensor>) return WEFT_QPU_INTS;
  else if constexpr (std::is_integral_v<U>) return WEFT_QPU_INTEGER;
  else if constexpr (std::is_floating_point_v<U>) return WEFT_QPU_REAL;
  else {
    static_assert(std::is_void_v<U>, "arguments and results: Tensor, IntTensor, numbers, void");
    return WEFT_QPU_NONE;
  }
}

template <typename T>
std::remove_cvref_t<T> from_value(const weft_qpu_value& v) {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, Tensor> || std::is_same_v<U, IntTensor>) {
    using E = std::conditional_t<std::is_same_v<U, Tensor>, float, std::int32_t>;
    return U::over(static_cast<E*>(v.data), {v.shape, v.shape + v.ndim});
  } else if constexpr (std::is_integral_v<U>) {
    return static_cast<U>(v.integer);
  } else {
    return static_cast<U>(v.real);
  }
}

template <typename T>
void to_value(const T& result, weft_qpu_value* out) {
  out->kind = kind_of_argument<T>();
  if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, IntTensor>) {
    T* kept = new T(result);
    out->owner = kept;
    out->data = kept->data();
    out->ndim = static_cast<std::int32_t>(kept->dim());
    out->shape = kept->shape().data();
  } else if constexpr (std::is_integral_v<T>) {
    out->integer = static_cast<std::int64_t>(result);
  } else {
    out->real = static_cast<double>(result);
  }
}
}  // namespace detail

/// The functions of one extension module; lives as long as the process.
class ModuleTable {
 public:
  ModuleTable(std::string name, std::string doc = "");
  ~ModuleTable();
  ModuleTable(const ModuleTable&) = delete;
  ModuleTable& operator=(const ModuleTable&) = delete;

  template <typename R, typename... A>
  ModuleTable& def(std::string name, R (*function)(A...), std::string doc = "") {
    add(std::move(name), std::move(doc),
        {detail::kind_of_argument<A>()..., detail::kind_of_argument<R>()},
        [function](const weft_qpu_value* in, weft_qpu_value* out) {
          call(function, in, out, std::index_sequence_for<A...>());
        });
    return *this;
  }
  const weft_qpu_table* table() const;

 private:
  using Call = std::function<void(const weft_qpu_value*, weft_qpu_value*)>;
  template <typename R, typename... A, std::size_t... I>
  static void call(R (*function)(A...), const weft_qpu_value* in, weft_qpu_value* out,
                   std::index_sequence<I...>) {
    (void)in;
    if constexpr (std::is_void_v<R>) {
      function(detail::from_value<A>(in[I])...);
      out->kind = WEFT_QPU_NONE;
    } else {
      detail::to_value(function(detail::from_value<A>(in[I])...), out);
    }
  }
  void add(std::string name, std::string doc, std::vector<std::int32_t> kinds, Call call);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::qpu

// The import function, where Python's headers are at hand; the table is there in any case, for
// weft.qpu.load().
#if defined(WEFT_QPU_PYTHON)
#include <Python.h>
#define WEFT_QPU_IMPORT(name)                                                                     \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##name() {                   \
    static PyModuleDef definition = {                                                             \
        PyModuleDef_HEAD_INIT, #name, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};  \
    PyObject* module = PyModule_Create(&definition);                                              \
    PyObject* weft = module ? PyImport_ImportModule("weft.qpu") : nullptr;                        \
    PyObject* done =                                                                              \
        weft ? PyObject_CallMethod(weft, "_attach", "OK", module,                                 \
                                   reinterpret_cast<unsigned long long>(weft_qpu_table_##name())) \
             : nullptr;                                                                           \
    Py_XDECREF(weft);                                                                             \
    if (!done) {                                                                                  \
      Py_XDECREF(module);                                                                         \
      return nullptr;                                                                             \
    }                                                                                             \
    Py_DECREF(done);                                                                              \
    return module;                                                                                \
  }
#else
#define WEFT_QPU_IMPORT(name)
#endif

#define WEFT_QPU_MODULE(name, m)                                   \
  static void weft_qpu_define_##name(::weft::qpu::ModuleTable& m); \
  extern "C" __attribute__((visibility("default")))                \
  const weft_qpu_table* weft_qpu_table_##name() {                  \
    static ::weft::qpu::ModuleTable* table = [] {                  \
      auto* made = new ::weft::qpu::ModuleTable(#name);            \
      weft_qpu_define_##name(*made);                               \
      return made;                                                 \
    }();                                                           \
    return table->table();                                         \
  }                                                                \
  WEFT_QPU_IMPORT(name)                                            \
  static void weft_qpu_define_##name(::weft::qpu::ModuleTable& m)
