// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of one float32 or float64 matrix on the host: blocks for the caches and threads around
// the kernels of vector_kernels.h.

#include <cstdint>
#include <memory>

#include "weft/host/kernels.h"

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

/// C = A A': what gemm computes, of which half is work.
template <typename T>
void gram(std::int64_t m, std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col, T* c,
          std::int64_t ldc);
extern template void gram(std::int64_t, std::int64_t, const float*, std::int64_t, std::int64_t,
                          float*, std::int64_t);
extern template void gram(std::int64_t, std::int64_t, const double*, std::int64_t, std::int64_t,
                          double*, std::int64_t);

/// A right operand that is packed from where it is computed: windows of images, say.
template <typename T>
class ColumnPanels {
 public:
  virtual ~ColumnPanels() = default;
  /// out[p * width() + r] = B(from + p, column + r) for p < depth and r < columns; other elements
  /// of a row of `out` may be anything.
  virtual void fill(std::int64_t column, std::int64_t columns, std::int64_t from,
                    std::int64_t depth, T* out) const = 0;
  /// Columns of a panel, of which the last may have less.
  static std::int64_t width();
};
template <typename T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const ColumnPanels<T>& b, T* c, std::int64_t ldc, bool add);

/// Panels of a matrix in memory.
template <typename T>
class StridedPanels final : public ColumnPanels<T> {
 public:
  StridedPanels(const T* b, std::int64_t row, std::int64_t column)
      : b_(b), row_(row), column_(column) {}
  void fill(std::int64_t column, std::int64_t columns, std::int64_t from, std::int64_t depth,
            T* out) const override;

 private:
  const T* b_;
  std::int64_t row_, column_;
};

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

/// C = A B where A has a few rows and those of B are contiguous: B is not packed.
inline constexpr std::int64_t kThinRows = 16;
template <typename T>
void thin_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
               std::int64_t a_col, const T* b, std::int64_t b_row, T* c, std::int64_t ldc);
/// The same where columns of B are contiguous, `b_col` apart; C has any steps.
template <typename T>
void thin_dots(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
               std::int64_t a_col, const T* b, std::int64_t b_col, T* c, std::int64_t c_row,
               std::int64_t c_col);
/// thin_gemm of complex numbers; steps count complex numbers. Real and imaginary parts of A are
/// rows of their own of a product of reals, so that B is read where it lies.
template <typename T>
void thin_complex_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                       std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row, T* c,
                       std::int64_t ldc);

/// y = A x for one matrix whose rows or columns are contiguous, y without gaps; false (and nothing
/// done) for other layouts.
template <typename T>
bool gemv(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, std::int64_t col,
          const T* x, std::int64_t step, T* y);
extern template bool gemv(std::int64_t, std::int64_t, const float*, std::int64_t, std::int64_t,
                          const float*, std::int64_t, float*);
extern template bool gemv(std::int64_t, std::int64_t, const double*, std::int64_t, std::int64_t,
                          const double*, std::int64_t, double*);
/// y = A x and z = A w for a matrix with contiguous rows, which is read once.
template <typename T>
void gemv_two(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, const T* x, const T* w,
              T* y, T* z);
/// gemv for a matrix of 16-bit floats, which become float32 in registers or block by block, so that
/// the matrix is read once and never written.
bool narrow_gemv(std::int64_t m, std::int64_t k, Elem held, const void* a, std::int64_t row,
                 std::int64_t col, const float* x, std::int64_t step, float* y);

}  // namespace weft
