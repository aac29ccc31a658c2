// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host's eager kernels as programs of the IR, one for each row of the operation tables, element
// type and layout. The generator schedules and compiles them to C at build time; kernels.h of
// `array` says what they are called with.

#include <functional>
#include <string>
#include <vector>

#include "weft/host/kernel_lists.h"
#include "weft/ir/node.h"

namespace weft::generate {

struct Kernel {
  KernelEntry entry;  // without the pointer
  std::string name;
  ir::PrimFunc func;
  /// Runs on whole blocks of kBlock elements (n of them, or one block), the rest as a padded copy,
  /// so that every element goes through the same vector code. Types of operands and result.
  bool blocks = false;
  std::vector<Elem> operands = {};
  Elem result = Elem::boolean;
  /// Of the C function, named as the program's parameters; null: those of the entry's table.
  const char* parameters = nullptr;
  /// The kernel whose code this one is, with its two operands in the other order where `swapped`:
  /// no program of its own. Empty: `func` is.
  std::string code = {};
  bool swapped = false;
};

inline constexpr std::int64_t kBlock = 16;

/// The types' column of the tables' rows, and a type's letter there.
namespace types {
inline constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;
}
inline int type_bit(Elem e) {
  return e == Elem::boolean   ? types::B
         : is_signed_int(e)   ? types::I
         : is_unsigned_int(e) ? types::U
         : is_complex(e)      ? types::C
                              : types::F;
}
/// The signed integers whose kernels serve a type where the sign is not seen: sums, products and
/// bits, comparisons for equality.
inline Elem signless(Elem e) {
  switch (e) {
    case Elem::uint8: return Elem::int8;
    case Elem::uint16: return Elem::int16;
    case Elem::uint32: return Elem::int32;
    case Elem::uint64: return Elem::int64;
    default: return e;
  }
}
inline KernelEntry entry(KernelEntry::Table table, int row, Elem e, int layout = 0) {
  KernelEntry out{};
  out.table = table;
  out.row = static_cast<std::int16_t>(row);
  out.elem = static_cast<std::int16_t>(e);
  out.layout = static_cast<std::int16_t>(layout);
  return out;
}

/// Kernels of one group of element types: "integers", "reals", "others" (bool).
std::vector<Kernel> table_kernels(const std::vector<Elem>& elems);
/// Those of reductions and running combinations of one type.
std::vector<Kernel> reduction_kernels(Elem e);
/// Conversions of all pairs of types, and `where` of the types that have no other kernels.
std::vector<Kernel> cast_kernels();
/// Softmax, layer norm and their like.
std::vector<Kernel> row_kernels(const std::vector<Elem>& elems);
/// Moments, norms and their gradients of planes.
std::vector<Kernel> plane_kernels(const std::vector<Elem>& elems);

/// Positions of extremes; index arrays and masks.
std::vector<Kernel> extreme_kernels();
std::vector<Kernel> index_kernels();
/// Evenly spaced numbers, rows of products, normal numbers in pairs.
std::vector<Kernel> loop_kernels();
/// Rows and reductions of complex numbers; `products`: those of the rows that are products.
std::vector<Kernel> complex_kernels(bool products);

/// Is the expression a call of a function that the C library has as vector code, which may differ
/// from its scalar code in the last place? Does it have such calls in it?
bool is_library_call(const ir::Expr& e);
bool calls_library(const ir::Expr& e);

/// Random numbers, and the C function that they take their words from, `kCounters` counters a call.
inline constexpr std::int64_t kCounters = 16;
std::vector<Kernel> random_kernels();
const char* philox_text();

/// Sorting by digits.
std::vector<Kernel> sort_kernels();
/// Rows of keys in three parts about two bounds; their functions as C text.
std::vector<Kernel> parting_kernels();
std::string parting_text();
/// Bits as bytes, counts of bits, parts of floats.
std::vector<Kernel> bit_kernels();
/// Copies between two steps.
std::vector<Kernel> copy_kernels();

/// A row's value over elements as expressions.
using RowValue = std::function<ir::Expr(const std::vector<ir::Expr>&)>;
/// A truth value of elements of 4 or 8 bytes, 32 at a time; layout as in KernelEntry.
ir::PrimFunc truth_function(int arity, Elem e, int layout, const RowValue& value);
/// float16 to another type or back, 32 at a time by way of float32, since no loop becomes the
/// processor's conversions; `value` is between float32 and the other type.
ir::PrimFunc half_cast_function(Elem from, Elem to, const RowValue& value);
/// floor_divide or remainder of float32 and float64.
ir::PrimFunc remainder_function(Elem e, int layout, const RowValue& value);

/// One C file: the kernels' text through target c, functions with the tables' signatures, and the
/// list `weft_kernels_<group>_<WEFT_LEVEL>`. `helpers`: C text that the kernels call.
std::string library_text(const std::string& group, const std::vector<Kernel>& kernels,
                         const std::string& target = "c:library=1",
                         const std::string& helpers = "");

}  // namespace weft::generate
