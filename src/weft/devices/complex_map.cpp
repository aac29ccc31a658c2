// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/complex_map.h"

#include <vector>

#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/elements/complex_row.h"
#include "weft/elements/row_ir.h"

namespace weft::gpu {

using complex_ir::Complex;
using ir::Expr;
using ir::Exprs;

namespace {

/// How an argument or the result takes part in a map of real arrays. complex64 is one word of 64
/// bits, re in its lower half; complex128 is two arrays of float64.
enum class Form : std::uint8_t { number, real, word, pair };

Form form_of(Elem e) {
  return e == Elem::complex64 ? Form::word : is_complex(e) ? Form::pair : Form::real;
}
void add_parts(std::vector<NDArray>& to, const NDArray& z) {
  switch (form_of(z.elem())) {
    case Form::word:
      to.emplace_back(z.handle(), Elem::uint64, z.shape(), z.strides(), z.offset());
      break;
    case Form::pair:
      for (int k : {0, 1}) to.push_back(as_reals(z).select(z.ndim(), k));
      break;
    default: to.push_back(z);
  }
}

Expr half_of(const Expr& word, int which) {
  const Expr half =
      which ? ir::call("shift_right", {word, ir::make_const(32, dtypes::uint64)}) : word;
  return ir::call_typed(dtypes::float32, "reinterpret", {ir::cast(dtypes::uint32, half)});
}
Expr word_of(const Exprs& parts) {
  auto bits = [](const Expr& x) {
    return ir::cast(dtypes::uint64, ir::call_typed(dtypes::uint32, "reinterpret", {x}));
  };
  return ir::call("bitwise_or",
                  {bits(parts[0]),
                   ir::call("shift_left", {bits(parts[1]), ir::make_const(32, dtypes::uint64)})});
}

}  // namespace

void complex_map(const NDArray& out, Op op, Elem compute, std::span<const Arg> args) {
  const Elem real = real_of(compute);
  std::vector<NDArray> results, arrays;
  std::vector<Scalar> numbers;
  std::vector<Form> forms;
  add_parts(results, out);
  std::uint64_t key =
      static_cast<std::uint64_t>(op) * 4 + static_cast<unsigned>(form_of(out.elem()));
  for (const Arg& arg : args) {
    forms.push_back(arg.array ? form_of(arg.array->elem()) : Form::number);
    key = key * 4 + static_cast<unsigned>(forms.back());
    if (arg.array) {
      add_parts(arrays, *arg.array);
      continue;
    }
    const Scalar& s = arg.scalar;
    const bool whole = s.kind <= Kind::integer;
    numbers.emplace_back(whole ? static_cast<double>(s.i) : s.z.real());
    numbers.emplace_back(whole ? 0.0 : s.z.imag());
  }
  const device::MapValues values = [&](const Exprs& loads, const Exprs& constants) -> Exprs {
    auto load = loads.begin();
    auto constant = constants.begin();
    const Expr zero = ir::make_const(0, dtype_of(real));
    std::vector<Complex> in;
    for (const Form form : forms) {
      if (form == Form::number) {
        in.push_back({constant[0], constant[1], true});
        constant += 2;
        continue;
      }
      Complex z{load[0], zero};
      if (form == Form::word) z = {half_of(load[0], 0), half_of(load[0], 1)};
      else if (form == Form::pair) z.im = load[1];
      load += form == Form::pair ? 2 : 1;
      in.push_back({convert_value(z.re, real), convert_value(z.im, real), true});
    }
    const Complex z = row_value(op, in);
    if (!is_complex(out.elem())) return {z.re};
    Exprs parts{z.re, z.im ? z.im : ir::make_const(0, z.re->dtype)};
    for (Expr& e : parts) e = convert_value(e, real_of(out.elem()));
    return form_of(out.elem()) == Form::word ? Exprs{word_of(parts)} : parts;
  };
  std::vector<const NDArray*> operands;
  for (const NDArray& a : arrays) operands.push_back(&a);
  device::Map map;
  map.family = "complex.map";
  map.key = key * 4 + args.size();
  map.arrays = operands;
  map.numbers = numbers;
  map.compute = real;
  device::grid_map(results, map, values);
}

}  // namespace weft::gpu
