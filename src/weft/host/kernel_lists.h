// SPDX-License-Identifier: Apache-2.0
#pragma once
// What generated text (generate/) and the tables agree on: the lists of kernels that it ends with,
// and the kernels of one element against many.

#include "weft/host/kernels.h"
#include "weft/host/loop_kernels.h"

namespace weft {

/// A row of the lists. Plain: C writes it. A list ends with table -1.
struct KernelEntry {
  enum Table : std::int16_t {
    elementwise,
    reduce,
    accumulate,
    scan,
    cast,
    select,
    row_kernel,
    fold,
    reduce_four,
    known,
    random,
    vector,   // row: VectorKernel
    sorting,  // row: SortKernel
    copying,  // row: CopyKernel
    find,
    place,
    resolve,
    along,
    pick,
    put,
    count,
    compress,
    places,
    steps,
    add_products,
    normal_pairs,
    put_add,
    random_integers,
    plane,       // row: PlaneKernel
    polynomial,  // row: the base-2 logarithm of how many numbers
    bits,        // row: BitKernel
    frexp,
    between,
    expand
  };
  std::int16_t table, row, elem, layout;
  void (*function)();
};

/// Ways to values of a row whose second operand is a known number (known.h).
enum class Known : std::int16_t {
  cube,          // x * x * x
  root,          // what pow gives for 0.5
  inverse_root,  // and for -0.5
  quotient,      // floor_divide and remainder by constants of known.cpp
  rest,
  at_least,  // maximum and minimum with a number that is not NaN, constants[0]
  at_most,
  count_,
};
inline constexpr int kKnown = static_cast<int>(Known::count_);

/// Rows of two operands of which the first (0) or the second (1) is one element for all; null where
/// there is none.
struct OneKernels {
  ElementwiseFn one[2][kMostOps][kElems] = {};
  ElementwiseFn known[kKnown][kElems] = {};
};
const OneKernels& one_kernels();
inline ElementwiseFn one_kernel(int operand, Op op, Elem e) {
  return one_kernels().one[operand][static_cast<int>(op)][static_cast<int>(e)];
}

}  // namespace weft
