// SPDX-License-Identifier: Apache-2.0
// Factorisations of small matrices by programs, a matrix a block (operators/small_matrix.h).

#include <algorithm>
#include <limits>

#include "weft/base/integers.h"
#include "weft/devices/complex.h"
#include "weft/devices/kernel.h"
#include "weft/linalg/linalg_device.h"
#include "weft/operators/small_matrix.h"

namespace weft::linalg::small {

namespace {

using operators::SmallMatrix;

SmallMatrix spec_of(const NDArray& a, std::int64_t n, std::int64_t columns) {
  SmallMatrix s;
  s.real = std::string(name_of(real_of(a.elem())));
  s.complex = is_complex(a.elem());
  s.capacity = operators::small_capacity(n);
  if (columns <= 0 || s.capacity == 0) return s;
  // As many right-hand sides a block as there is room for.
  s.columns = s.lanes();
  while (s.columns < columns && s.columns < s.capacity) {
    SmallMatrix wider = s;
    wider.columns *= 2;
    if (operators::small_solve_bytes(wider) > weft::device::grid_of(a.device()).shared_bytes())
      break;
    s = wider;
  }
  return s;
}

ProgramKey key_of(std::string_view operation, const SmallMatrix& s, bool upper = false) {
  return {operation, {s.real == "float64", s.complex, s.capacity, s.columns, upper}};
}

NDArray reals(const NDArray& x) { return is_complex(x.elem()) ? as_reals(x) : x; }

void strides(ProgramCall& call, const NDArray& a) {
  for (const std::int64_t stride : a.strides()) call.integer(stride);
}

NDArray statuses(const NDArray& a) {
  return NDArray::empty(a.device(), Elem::int32, Dims{a.shape()[0]});
}

}  // namespace

namespace {

/// A block is alone with its matrix; the library shares a large one among all processors, one after
/// the other. From so many matrices on the program is faster where both exist: its time for one
/// matrix over the library's (NVIDIA H200, bench/gpu/linalg.py).
std::int64_t several(Program program, const SmallMatrix& s) {
  if (s.capacity <= 32) return 1;
  const bool large = s.capacity > 64;
  switch (program) {
    case Program::elimination: return large ? 3 : 1;
    // The library has a program for all matrices of a stack.
    case Program::cholesky: return large ? std::numeric_limits<std::int64_t>::max() : 1;
    case Program::qr: return large ? 2 : 1;
    case Program::eigh: return large ? 5 : 3;
    default: return large ? 3 : 2;
  }
}

std::int64_t shared_bytes(Program program, const SmallMatrix& s) {
  if (program == Program::qr) return operators::small_qr_bytes(s);
  return program == Program::eigh || program == Program::svd ? operators::small_orthogonal_bytes(s)
                                                             : operators::small_solve_bytes(s);
}

}  // namespace

bool fits(Program program, const NDArray& a, std::int64_t columns) {
  const SmallMatrix s = spec_of(a, std::max(a.shape()[1], a.shape()[2]), columns);
  const weft::device::Grid& grid = weft::device::grid_of(a.device());
  return grid.present() && s.capacity > 0 && s.threads() <= grid.threads() &&
         shared_bytes(program, s) <= grid.shared_bytes() &&
         a.shape()[0] <= std::numeric_limits<std::int32_t>::max() / 256 &&
         (a.shape()[0] >= several(program, s) || library::of(a) == nullptr);
}

Solved solve(const NDArray& a, const NDArray& b) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1], k = b.shape()[2];
  const SmallMatrix s = spec_of(a, n, k);
  const std::int64_t parts = ceil_div(k, s.columns);
  Solved out{NDArray::empty(a.device(), a.elem(), Dims{count, n, k}), statuses(a)};
  ProgramCall call(a.device());
  call.array(reals(a)).array(reals(b)).array(reals(out.x)).array(out.status);
  call.integer(count * parts).integer(parts).integer(n).integer(k);
  strides(call, a), strides(call, b);
  call.run(key_of("matrix.solve", s), [&] { return operators::small_solve(s); });
  return out;
}

SignedLog slogdet(const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const SmallMatrix s = spec_of(a, n, 0);
  auto one = [&](Elem elem) { return NDArray::empty(a.device(), elem, Dims{count}); };
  SignedLog out{one(a.elem()), one(real_of(a.elem())), one(a.elem())};
  ProgramCall call(a.device());
  call.array(reals(a)).array(reals(out.sign)).array(out.log).array(reals(out.determinant));
  call.integer(count).integer(n);
  strides(call, a);
  call.run(key_of("matrix.determinant", s), [&] { return operators::small_determinant(s); });
  return out;
}

Definite cholesky(const NDArray& a, bool upper) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const SmallMatrix s = spec_of(a, n, 0);
  Definite out{NDArray::empty(a.device(), a.elem(), a.shape()), statuses(a)};
  ProgramCall call(a.device());
  call.array(reals(a)).array(reals(out.lower)).array(out.status);
  call.integer(count).integer(n);
  strides(call, a);
  call.run(key_of("matrix.cholesky", s, upper),
           [&] { return operators::small_cholesky(s, upper); });
  return out;
}

Qr qr(const NDArray& a, bool complete) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2], k = std::min(m, n),
                     wide = complete ? m : k;
  const SmallMatrix s = spec_of(a, std::max(m, n), 0);
  Qr out{NDArray::empty(a.device(), a.elem(), Dims{count, m, wide}),
         NDArray::empty(a.device(), a.elem(), Dims{count, wide, n})};
  ProgramCall call(a.device());
  call.array(reals(a)).array(reals(out.q)).array(reals(out.r));
  call.integer(count).integer(m).integer(n).integer(k).integer(wide);
  strides(call, a);
  call.run(key_of("matrix.qr", s), [&] { return operators::small_qr(s); });
  return out;
}

namespace {

/// Jacobi's method converges quadratically: after a few sweeps each one doubles the digits.
std::int64_t sweeps_of(const SmallMatrix& s) {
  return (s.real == "float64" ? 12 : 10) + (s.capacity > 32 ? 3 : 0);
}

}  // namespace

library::Decomposed eigh(const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const SmallMatrix s = spec_of(a, n, 0);
  library::Decomposed out{NDArray::empty(a.device(), real_of(a.elem()), Dims{count, n}),
                          NDArray::empty(a.device(), a.elem(), a.shape()),
                          {},
                          statuses(a)};
  ProgramCall call(a.device());
  call.array(reals(a)).array(out.values).array(reals(out.left)).array(out.status);
  call.integer(count).integer(n).integer(sweeps_of(s));
  strides(call, a);
  call.run(key_of("matrix.eigh", s), [&] { return operators::small_eigh(s); });
  return out;
}

library::Decomposed svd(const NDArray& a, SvdPart part) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2];
  const bool vectors = part != SvdPart::values;
  const SmallMatrix s = spec_of(a, m, 0);
  auto made = [&](Elem elem, Dims shape) {
    return NDArray::empty(a.device(), elem, std::move(shape));
  };
  library::Decomposed out{made(real_of(a.elem()), Dims{count, n}),
                          made(a.elem(), Dims{vectors ? count : 0, m, n}),
                          made(a.elem(), Dims{vectors ? count : 0, n, n}), statuses(a)};
  ProgramCall call(a.device());
  call.array(reals(a)).array(reals(out.left)).array(out.values).array(reals(out.right));
  call.array(out.status);
  call.integer(count).integer(m).integer(n).integer(sweeps_of(s));
  strides(call, a);
  call.run(key_of("matrix.svd", s, vectors), [&] { return operators::small_svd(s, vectors); });
  return out;
}

}  // namespace weft::linalg::small
