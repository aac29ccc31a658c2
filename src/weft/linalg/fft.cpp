// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/fft.h"

#include <list>
#include <mutex>
#include <numbers>
#include <utility>

#include "weft/base/fork_safe_mutex.h"
#include "weft/devices/complex.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/program_cache.h"
#include "weft/operators/fft.h"
#include "weft/runtime/backlog.h"
#include "weft/runtime/math_library.h"

namespace weft {

namespace {

using runtime::MathLibrary;

/// exp(i angle) of float64 angles.
NDArray unit_numbers(const NDArray& angles, Elem elem) {
  NDArray out = NDArray::empty(angles.device(), elem, angles.shape());
  const NDArray reals = as_reals(out);
  const int last = angles.ndim();
  assign(reals.select(last, 0), apply(Op::cos, angles));
  assign(reals.select(last, 1), apply(Op::sin, angles));
  return out;
}

/// Arrays that depend on a length alone, for the next transform of that length.
class Tables {
 public:
  using Make = std::function<NDArray()>;
  NDArray get(const Ref<Device>& device, Elem elem, std::int64_t n, int kind, const Make& make) {
    const Key key{device.get(), elem, n, kind};
    {
      std::lock_guard lock(mutex_);
      for (auto it = kept_.begin(); it != kept_.end(); ++it) {
        if (!(it->first == key)) continue;
        kept_.splice(kept_.begin(), kept_, it);
        return it->second;
      }
    }
    NDArray made = make();
    runtime::OwnBacklog::settle_of(device.get());
    std::lock_guard lock(mutex_);
    kept_.emplace_front(key, made);
    if (kept_.size() > kMost) kept_.pop_back();
    return made;
  }

 private:
  static constexpr std::size_t kMost = 16;
  struct Key {
    const Device* device;  // held by the array
    Elem elem;
    std::int64_t n;
    int kind;
    bool operator==(const Key&) const = default;
  };
  ForkSafeMutex mutex_;
  std::list<std::pair<Key, NDArray>> kept_;
};

Tables& tables() {
  static auto& all = *new Tables;
  return all;
}

constexpr int kRoots = 0, kChirp = 1, kChirpSpectrum = 2, kChirpBack = 3, kChirpSpectrumBack = 4;

NDArray real(const Ref<Device>& device, std::int64_t n) {
  return arange(device, Elem::int64, 0, 1, n);
}

/// exp(-2 pi i k / n) for k < n.
NDArray roots(const Ref<Device>& device, Elem elem, std::int64_t n) {
  return tables().get(device, elem, n, kRoots, [&] {
    const double step = -2 * std::numbers::pi / static_cast<double>(n);
    return unit_numbers(apply(Op::multiply, real(device, n).astype(Elem::float64), Scalar(step)),
                        elem);
  });
}

/// exp(-+ pi i k^2 / n) for k < n.
NDArray chirp(const Ref<Device>& device, Elem elem, std::int64_t n, bool inverse) {
  return tables().get(device, elem, n, inverse ? kChirpBack : kChirp, [&] {
    const NDArray k = real(device, n);
    const NDArray square = apply(Op::remainder, apply(Op::multiply, k, k), Scalar(2 * n));
    const double step = (inverse ? 1 : -1) * std::numbers::pi / static_cast<double>(n);
    return unit_numbers(apply(Op::multiply, square.astype(Elem::float64), Scalar(step)), elem);
  });
}

NDArray fft_rows(const NDArray& x, bool inverse, double scale);

/// Bluestein: k j = (k^2 + j^2 - (k - j)^2) / 2 makes the transform a convolution, of a length that
/// has passes.
NDArray by_chirp(const NDArray& x, bool inverse, double scale) {
  const std::int64_t rows = x.shape()[0], n = x.shape()[1];
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const Ref<Device>& device = x.device();
  const Elem elem = x.elem();
  const NDArray c = chirp(device, elem, n, inverse);
  const NDArray spectrum =
      tables().get(device, elem, n, inverse ? kChirpSpectrumBack : kChirpSpectrum, [&] {
        NDArray b = full(device, elem, Dims{1, m}, Scalar(0));
        const NDArray back = apply(Op::conj, c);
        assign(b.slice(1, 0, n, 1), back);
        if (n > 1) {
          const int axis[1] = {0};
          assign(b.slice(1, m - n + 1, n - 1, 1), back.slice(0, 1, n - 1, 1).flip(axis));
        }
        return fft_rows(b, false, 1);
      });
  NDArray a = full(device, elem, Dims{rows, m}, Scalar(0));
  const NDArray head = a.slice(1, 0, n, 1);
  apply_into(Op::multiply, head, x, c);
  a = fft_rows(a, false, 1);
  apply_into(Op::multiply, a, a, spectrum);
  a = fft_rows(a, true, scale / static_cast<double>(m));
  return apply(Op::multiply, a.slice(1, 0, n, 1), c);
}

NDArray by_passes(const NDArray& x, const std::vector<int>& radices, bool inverse, double scale) {
  const std::int64_t n = x.shape()[1], count = x.size();
  const Elem elem = x.elem(), part = real_of(elem);
  const NDArray table = roots(x.device(), elem, n);
  NDArray from = x, to = NDArray::empty(x.device(), elem, x.shape()), spare;
  std::int64_t stride = 1;
  for (std::size_t k = 0; k < radices.size(); ++k) {
    const operators::FftSpec spec{std::string(name_of(part)), radices[k], inverse};
    const bool last = k + 1 == radices.size();
    const std::int64_t points = count / radices[k];
    ProgramCall call(x.device());
    call.array(as_reals(from)).array(as_reals(table)).array(as_reals(to));
    call.integer((points + operators::kFftThreads - 1) / operators::kFftThreads);
    call.integer(count).integer(n).integer(stride).real(last ? scale : 1.0);
    call.run({"fft.pass", {static_cast<int>(part), radices[k], inverse}},
             [&] { return operators::fft_pass(spec); });
    stride *= radices[k];
    if (last) break;
    if (k == 0) spare = NDArray::empty(x.device(), elem, x.shape());  // x stays as it is
    from = to;
    std::swap(to, spare);
  }
  return to;
}

MathLibrary* library(const NDArray& x) {
  MathLibrary* found = runtime::math_library_of(*x.device());
  return found && found->transforms() ? found : nullptr;
}

constexpr std::int64_t points_in(MathLibrary::Fft kind, std::int64_t n) {
  return kind == MathLibrary::Fft::real_inverse ? n / 2 + 1 : n;
}
constexpr std::int64_t points_out(MathLibrary::Fft kind, std::int64_t n) {
  return kind == MathLibrary::Fft::real_forward ? n / 2 + 1 : n;
}

MathLibrary::Place place(const NDArray& x, std::int64_t skipped = 0) {
  return {x.handle().get(), (x.offset() + skipped) * elem_bytes(x.elem())};
}
/// Whether the library may read or write the elements from the given one on: pairs at multiples of
/// pairs.
bool begins_at_pair(const NDArray& x, std::int64_t skipped = 0) {
  return is_complex(x.elem()) ||
         place(x, skipped).address() % static_cast<std::uint64_t>(2 * elem_bytes(x.elem())) == 0;
}

/// Runs the library's transform of rows: `out` has what each row gives.
void by_library(MathLibrary& lib, const NDArray& x_in, const NDArray& out, MathLibrary::Fft kind,
                std::int64_t n) {
  const NDArray x = begins_at_pair(x_in) ? x_in : x_in.copy();
  MathLibrary::Transform t;
  t.kind = kind, t.wide = real_of(x.elem()) == Elem::float64;
  t.n[0] = n, t.count = x.shape()[0];
  t.in_next = points_in(kind, n), t.out_next = points_out(kind, n);
  lib.fft(t, place(x), place(out));
}

/// Bytes of a transform that is worth a call of its own.
constexpr std::int64_t kWorthCall = 4 << 20;
constexpr std::int64_t kFewCalls = 4;

/// The library's transforms to real numbers, and long ones from them, are slow along an axis whose
/// neighbours lie apart (an H200, cuFFT 12).
bool slow_with_steps(MathLibrary::Fft kind, std::int64_t n) {
  constexpr std::int64_t kLong = 2048;
  return kind == MathLibrary::Fft::real_inverse ||
         (kind == MathLibrary::Fft::real_forward && n > kLong);
}

/// Transforms along an axis that is not the last, where it lies: a call for each index before the
/// axis. Undefined where moving the axis is faster, or the library cannot.
NDArray by_library_in_place(MathLibrary& lib, const NDArray& x, std::int64_t n, int axis,
                            MathLibrary::Fft kind, Elem elem) {
  std::int64_t before = 1, behind = 1;
  for (int i = 0; i < x.ndim(); ++i) (i < axis ? before : behind) *= i == axis ? 1 : x.shape()[i];
  const std::int64_t in = points_in(kind, n), out_points = points_out(kind, n);
  if (slow_with_steps(kind, n)) return {};
  if (x.size() == 0 || behind == 1 || x.shape()[axis] != in || !x.is_contiguous()) return {};
  if (before > kFewCalls && n * behind * elem_bytes(elem) < kWorthCall) return {};
  const Elem read = kind == MathLibrary::Fft::real_forward ? real_of(elem) : elem;
  const NDArray from = x.elem() != read ? x.astype(read) : x;
  Dims shape = x.shape();
  shape[axis] = out_points;
  NDArray out = NDArray::empty(x.device(), elem, shape);
  MathLibrary::Transform t;
  t.kind = kind, t.wide = real_of(elem) == Elem::float64;
  t.n[0] = n, t.count = behind;
  t.in_step = t.out_step = behind, t.in_next = t.out_next = 1;
  for (std::int64_t k = 0; k < before; ++k) {
    if (!begins_at_pair(from, k * in * behind) || !begins_at_pair(out, k * out_points * behind))
      return {};
  }
  for (std::int64_t k = 0; k < before; ++k)
    lib.fft(t, place(from, k * in * behind), place(out, k * out_points * behind));
  return out;
}

NDArray scaled(const NDArray& x, double scale) {
  if (scale != 1) apply_into(Op::multiply, x, x, Scalar(scale));
  return x;
}

/// Rows of compact complex numbers.
NDArray fft_rows(const NDArray& x, bool inverse, double scale) {
  const std::int64_t n = x.shape()[1];
  if (x.size() == 0) return x;
  if (MathLibrary* lib = library(x)) {
    const NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
    by_library(*lib, x, out, inverse ? MathLibrary::Fft::inverse : MathLibrary::Fft::forward, n);
    return scaled(out, scale);
  }
  if (n == 1) return apply(Op::multiply, x, Scalar(scale));
  const std::vector<int> radices = operators::fft_radices(n);
  return radices.empty() ? by_chirp(x, inverse, scale) : by_passes(x, radices, inverse, scale);
}

void need_grid(const NDArray& x, std::string_view name) {
  if (has_grid(x)) return;
  throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
              cat("no kernel of ", name, " for arrays on ", x.device()->info().name))
      .note("devices that have it: cpu, and those with a grid of thread blocks")
      .help("move the array to the host's device with to(...)");
}

/// Rows of n elements of the type, the axis moved to the end.
NDArray rows_of(const NDArray& x, std::int64_t n, int axis, Elem elem, Dims& lead) {
  std::vector<int> order;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != axis) order.push_back(i), lead.push_back(x.shape()[i]);
  }
  order.push_back(axis);
  NDArray moved = x.permute(order);
  const int last = x.ndim() - 1;
  const std::int64_t have = std::min(n, moved.shape()[last]);
  moved = moved.slice(last, 0, have, 1);
  std::int64_t rows = 1;
  for (std::int64_t extent : lead) rows *= extent;
  if (have == n) {
    if (moved.elem() != elem) return moved.astype(elem).reshape(Dims{rows, n});
    return moved.contiguous().reshape(Dims{rows, n});
  }
  Dims shape = lead;
  shape.push_back(n);
  NDArray wide = full(x.device(), elem, shape, Scalar(0));
  assign(wide.slice(last, 0, have, 1), moved);
  return wide.reshape(Dims{rows, n});
}

NDArray axis_back(const NDArray& rows, Dims lead, int axis) {
  const int last = lead.size();
  lead.push_back(rows.shape()[1]);
  std::vector<int> order;
  for (int i = 0; i < last; ++i) order.push_back(i);
  order.insert(order.begin() + axis, last);
  return rows.reshape(lead).permute(order);
}

Elem complex_for(Elem e) {
  return e == Elem::complex64 || e == Elem::float32 || is_narrow_float(e) ? Elem::complex64
                                                                          : Elem::complex128;
}

}  // namespace

NDArray fft(const NDArray& x, std::int64_t n, int axis, bool inverse, double scale) {
  need_grid(x, inverse ? "ifft" : "fft");
  if (MathLibrary* lib = library(x)) {
    const NDArray out = by_library_in_place(
        *lib, x, n, axis, inverse ? MathLibrary::Fft::inverse : MathLibrary::Fft::forward,
        complex_for(x.elem()));
    if (out.defined()) return scaled(out, scale);
  }
  Dims lead;
  const NDArray rows = rows_of(x, n, axis, complex_for(x.elem()), lead);
  return axis_back(fft_rows(rows, inverse, scale), lead, axis);
}

NDArray rfft(const NDArray& x, std::int64_t n, int axis, double scale) {
  need_grid(x, "rfft");
  Dims lead;
  const Elem elem = complex_for(x.elem());
  if (MathLibrary* lib = library(x)) {
    const NDArray here =
        by_library_in_place(*lib, x, n, axis, MathLibrary::Fft::real_forward, elem);
    if (here.defined()) return scaled(here, scale);
    const NDArray rows = rows_of(x, n, axis, real_of(elem), lead);
    NDArray out = NDArray::empty(x.device(), elem, Dims{rows.shape()[0], n / 2 + 1});
    if (out.size() > 0) by_library(*lib, rows, out, MathLibrary::Fft::real_forward, n);
    return axis_back(scaled(out, scale), lead, axis);
  }
  const NDArray rows = rows_of(x, n, axis, elem, lead);
  return axis_back(fft_rows(rows, false, scale).slice(1, 0, n / 2 + 1, 1), lead, axis);
}

NDArray irfft(const NDArray& x, std::int64_t n, int axis, double scale) {
  need_grid(x, "irfft");
  Dims lead;
  const Elem elem = complex_for(x.elem());
  const std::int64_t half = n / 2 + 1;
  const NDArray rows = rows_of(x, half, axis, elem, lead);
  if (MathLibrary* lib = library(x)) {
    NDArray out = NDArray::empty(x.device(), real_of(elem), Dims{rows.shape()[0], n});
    // The library may use its input as a workspace.
    const NDArray own = rows.handle() == x.handle() ? rows.copy() : rows;
    if (out.size() > 0) by_library(*lib, own, out, MathLibrary::Fft::real_inverse, n);
    return axis_back(scaled(out, scale), lead, axis);
  }
  NDArray whole = NDArray::empty(x.device(), elem, Dims{rows.shape()[0], n});
  assign(whole.slice(1, 0, half, 1), rows);
  if (n > half) {
    const int axes[1] = {1};
    assign(whole.slice(1, half, n - half, 1),
           apply(Op::conj, rows.slice(1, 1, n - half, 1)).flip(axes));
  }
  const NDArray out = fft_rows(whole, true, scale);
  return axis_back(as_reals(out).select(2, 0).contiguous(), lead, axis);
}

NDArray fft_last_axes(const NDArray& x, int count, FftKind kind, std::int64_t n, double scale) {
  const int last = x.ndim() - 1, first = x.ndim() - count;
  const bool inverse = kind == FftKind::inverse || kind == FftKind::real_inverse;
  const Elem elem = complex_for(x.elem());
  MathLibrary* lib = has_grid(x) ? library(x) : nullptr;
  if (!lib || count > 3 || x.size() == 0) {
    NDArray out = x;
    double left = scale;
    auto rest = [&] {
      for (int axis = first; axis < last; ++axis)
        out = fft(out, out.shape()[axis], axis, inverse, std::exchange(left, 1.0));
    };
    if (kind != FftKind::real_forward) rest();
    if (kind == FftKind::real_forward) out = rfft(out, n, last, std::exchange(left, 1.0));
    else if (kind == FftKind::real_inverse) out = irfft(out, n, last, std::exchange(left, 1.0));
    else out = fft(out, n, last, inverse, std::exchange(left, 1.0));
    if (kind == FftKind::real_forward) rest();
    return out;
  }
  const bool back = kind == FftKind::real_inverse;
  const Elem read = kind == FftKind::real_forward ? real_of(elem) : elem;
  NDArray from = x.elem() != read ? x.astype(read).contiguous() : x.contiguous();
  // The library may use its input as a workspace on the way to real numbers.
  if ((back || !begins_at_pair(from)) && from.handle() == x.handle()) from = x.copy();
  Dims shape = x.shape();
  shape[last] = points_out(kind, n);
  NDArray out = NDArray::empty(x.device(), back ? real_of(elem) : elem, shape);
  MathLibrary::Transform t;
  t.kind = kind, t.wide = real_of(elem) == Elem::float64, t.rank = count;
  t.in_next = t.out_next = 1;
  for (int axis = first; axis <= last; ++axis) {
    t.n[static_cast<std::size_t>(axis - first)] = axis == last ? n : x.shape()[axis];
    t.in_next *= x.shape()[axis], t.out_next *= shape[axis];
  }
  t.count = x.size() / t.in_next;
  lib->fft(t, place(from), place(out));
  return scaled(out, scale);
}

}  // namespace weft
