// SPDX-License-Identifier: Apache-2.0
#pragma once
// LAPACK and BLAS, opened at run time by their Fortran names, and stacks of matrices as they want
// them. Used by the host's factorisations only.

#include <dlfcn.h>

#include <complex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/array/ops.h"

namespace weft::linalg {

using C = std::complex<float>;
using Z = std::complex<double>;
using Int = int;

/// The library's handle; null where there is none.
void* lapack();
/// Throws Error(device, "array.lapack.absent") for a name that no library offers.
[[noreturn]] void lapack_absent(const char* name);

/// While one lives the library takes one thread, if matrices have few rows: its others cost more
/// than they do.
class OneThread {
 public:
  explicit OneThread(std::int64_t rows);
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  bool counted_ = false;
};

template <typename F>
F* routine(const char* name) {
  void* symbol = lapack() ? dlsym(lapack(), name) : nullptr;
  if (!symbol) lapack_absent(name);
  return reinterpret_cast<F*>(symbol);
}

template <typename T>
constexpr bool kComplex = std::is_same_v<T, Z> || std::is_same_v<T, C>;
template <typename T>
using Real = std::conditional_t<std::is_same_v<T, C> || std::is_same_v<T, float>, float, double>;
template <typename T>
std::string spelled(const char* stem, const char* complex_stem = nullptr) {
  const bool narrow = std::is_same_v<Real<T>, float>;
  return kComplex<T> ? cat(narrow ? "c" : "z", complex_stem ? complex_stem : stem, "_")
                     : cat(narrow ? "s" : "d", stem, "_");
}

/// Throws Error(shape, "array.<name>.shape") or (dtype, "array.<name>.dtype").
void need_matrix(const NDArray& a, std::string_view name, bool square);

/// What LAPACK computes in: the type itself; 16-bit floats in float32.
inline Elem wide_of(Elem e) { return arithmetic_elem(e); }

/// Matrices one after the other, each column by column, in memory of their own.
NDArray columns(const NDArray& a);
std::int64_t batch_of(const NDArray& a);
Dims batch_shape(const NDArray& a, std::initializer_list<std::int64_t> tail);

template <typename T>
T* data(const NDArray& a) {
  return reinterpret_cast<T*>(a.host());
}

template <typename F>
auto by_type(Elem e, F&& f) {
  switch (e) {
    case Elem::complex64: return f(C{});
    case Elem::complex128: return f(Z{});
    case Elem::float32: return f(float{});
    default: return f(double{});
  }
}

}  // namespace weft::linalg
