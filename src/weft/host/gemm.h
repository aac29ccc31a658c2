// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of one float32 or float64 matrix on the host: blocks for the caches and threads around
// the kernels of vector_kernels.h.

#include <cstdint>
#include <memory>

namespace weft {

/// C (+)= A B, any strides of A and B, C row-major with row step ldc; `add`: to what C holds.
/// Packed and blocked; the order of the sum over k is fixed by the sizes alone.
template <typename T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
          std::int64_t ldc, bool add);
extern template void gemm(std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                          std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                          std::int64_t, bool);
extern template void gemm(std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t,
                          std::int64_t, const double*, std::int64_t, std::int64_t, double*,
                          std::int64_t, bool);

/// A matrix B of k rows and n columns for many products A B: packed once, for any number of rows
/// of A.
template <typename T>
class PackedMatrix {
 public:
  PackedMatrix(std::int64_t n, std::int64_t k, const T* b, std::int64_t b_row, std::int64_t b_col);
  ~PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  /// C = A B as gemm computes it, bit for bit.
  void multiply(std::int64_t m, const T* a, std::int64_t a_row, std::int64_t a_col, T* c,
                std::int64_t ldc) const;

 private:
  struct Panels;
  std::unique_ptr<Panels> panels_;
};
extern template class PackedMatrix<float>;
extern template class PackedMatrix<double>;

/// C = A B of complex numbers (pairs of T), by the product of reals: rows of A and C are rows of
/// twice as many reals, and a row b of B stands for the two rows b and i b. Steps count complex
/// numbers; A has unit steps along its rows.
template <typename T>
void complex_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
                  const T* b, std::int64_t b_row, std::int64_t b_col, T* c, std::int64_t ldc);
extern template void complex_gemm(std::int64_t, std::int64_t, std::int64_t, const float*,
                                  std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                                  std::int64_t);
extern template void complex_gemm(std::int64_t, std::int64_t, std::int64_t, const double*,
                                  std::int64_t, const double*, std::int64_t, std::int64_t, double*,
                                  std::int64_t);

/// y = A x for one matrix whose rows or columns are contiguous, y without gaps; false (and nothing
/// done) for other layouts.
template <typename T>
bool gemv(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, std::int64_t col,
          const T* x, std::int64_t step, T* y);
extern template bool gemv(std::int64_t, std::int64_t, const float*, std::int64_t, std::int64_t,
                          const float*, std::int64_t, float*);
extern template bool gemv(std::int64_t, std::int64_t, const double*, std::int64_t, std::int64_t,
                          const double*, std::int64_t, double*);

}  // namespace weft
