// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factorisations of stacks of small matrices: a block has one matrix in shared memory and its
// threads share each step. Strides of operands are arguments, in elements; results are compact.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"
#include "weft/operators/number_text.h"

namespace weft::operators {

struct SmallMatrix {
  std::string real;  // "float32" or "float64"
  bool complex = false;
  int capacity = 16;  // most rows and columns, a power of two from 8 to 128
  int columns = 0;    // of right-hand sides that a block has, a multiple of lanes()

  int lanes() const { return capacity < 32 ? capacity : 32; }  // threads along a row
  int rows_at_once() const { return capacity == 8 ? 4 : capacity <= 32 ? 8 : capacity / 4; }
  int threads() const { return lanes() * rows_at_once(); }
};

/// The smallest capacity for matrices of n rows and columns; 0 where none is large enough.
int small_capacity(std::int64_t n);

/// Bytes of shared memory of the programs below; `columns` as in the specification.
std::int64_t small_solve_bytes(const SmallMatrix& spec);

/// (a, b, x, status, blocks, parts, n, k, a0, a1, a2, b0, b1, b2): a x = b by elimination with row
/// exchanges. Blocks of one matrix have `columns` of the k right-hand sides each. status[matrix] is
/// 0, or 1 + the column of a pivot that is 0.
ir::PrimFunc small_solve(const SmallMatrix& spec);

/// (a, sign, log, det, blocks, n, a0, a1, a2): the determinant, its sign and the logarithm of its
/// magnitude.
ir::PrimFunc small_determinant(const SmallMatrix& spec);

/// (a, out, status, blocks, n, a0, a1, a2): the lower factor of the lower triangle, or with `upper`
/// the upper one of the upper; status[matrix] is 0, or 1 + the column whose pivot is not positive.
ir::PrimFunc small_cholesky(const SmallMatrix& spec, bool upper);

/// (a, q, r, blocks, m, n, steps, wide, a0, a1, a2): q of `wide` orthogonal columns and r of `wide`
/// rows by `steps` = min(m, n) Householder reflectors.
ir::PrimFunc small_qr(const SmallMatrix& spec);

/// (a, values, vectors, status, blocks, n, sweeps, a0, a1, a2): eigenvalues of the lower triangle,
/// ascending, and eigenvectors, by Jacobi's rotations of disjoint pairs. status[matrix] is 1 where
/// the last sweep still turned something.
ir::PrimFunc small_eigh(const SmallMatrix& spec);

/// (a, u, values, vh, status, blocks, m, n, sweeps, a0, a1, a2): of m >= n, singular values,
/// descending, by rotations of pairs of columns. u is (m, n) with columns of zeros where a value is
/// as small as rounding errors. status[matrix]: 1 for such columns, 2 where the last sweep still
/// turned something.
ir::PrimFunc small_svd(const SmallMatrix& spec, bool vectors);

/// Bytes of shared memory of small_qr; of small_eigh and small_svd, which keep two matrices.
std::int64_t small_qr_bytes(const SmallMatrix& spec);
std::int64_t small_orthogonal_bytes(const SmallMatrix& spec);

/// The head of a program of one matrix a block, for the files of these operators.
class SmallMatrixText : public NumberText {
 public:
  SmallMatrixText(const SmallMatrix& spec, int rows, int columns);

  /// Loops over a matrix's elements: `row` and `col`, of `columns` from `first`. Each thread keeps
  /// its elements from step to step.
  void elements(int first, int columns, const std::function<void()>& body);
  /// `e` over `count` places, a place a thread.
  void places(std::string_view e, int count, const std::function<void()>& body);
  /// Statements after which MOST[0] is the largest part of an element of `buffer` in all threads.
  /// RED, FOUND and MOST must have been allocated by allocate_largest().
  void largest(std::string_view buffer);
  void allocate_largest();
  /// Statements after which FACTOR is 1, or brings elements whose largest part is MOST[0] to where
  /// squares neither overflow nor vanish; BACK undoes it.
  void let_factor();
  /// LINES[ty, col] = sum over the thread's rows of what `term` gives for `row` and `col`.
  void column_sums(std::string_view lines, const std::function<Number()>& term);
  /// The sum of LINES[., col].
  Number column_sum(std::string_view name, std::string_view lines, std::string_view col);
  /// The program: blocks, threads, what was written.
  std::string program() const;
  int groups() const { return spec_.capacity <= 16 ? 4 : spec_.capacity <= 64 ? 8 : 16; }
  std::string shape(int rows, int columns) const { return cat(rows, ", ", columns + 1); }

 private:
  const SmallMatrix spec_;
  int rows_;
};

}  // namespace weft::operators
