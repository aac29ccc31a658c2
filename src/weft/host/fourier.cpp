// SPDX-License-Identifier: Apache-2.0
// Many lines side by side are one transform of whole vectors: neighbours along an inner axis lie so
// already, rows are transposed on their way in and out. One long line is a matrix: its columns are
// transformed, turned by roots of the whole, transposed, and transformed again.

#include "weft/host/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "weft/host/kernel_lists.h"
#include "weft/host/vector_kernels.h"
#include "weft/operators/fft.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;
using runtime::Pool;

I up(I v, I to) { return (v + to - 1) / to * to; }

/// Numbers in planes of real and imaginary parts.
template <typename T>
struct Planes {
  T *re, *im;
  Planes swapped() const { return {im, re}; }
  Planes operator+(I at) const { return {re + at, im + at}; }
};

template <typename T>
struct Kernels {
  PassFn pass[14] = {};
  SplitFn split;
  JoinFn join;
  TurnFn turn;
  PartFn part;
  PairFn pair;
  TransposeFn transpose;
  ElementwiseFn scale;
};
template <typename T>
const Kernels<T>& kernels_of() {
  static const Kernels<T> all = [] {
    const VectorTable& t = vector_kernels();
    const Elem e = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
    using K = VectorKernel;
    Kernels<T> out;
    for (const int radix : operators::kFftRadices)
      out.pass[radix] = t.get<PassFn>(static_cast<K>(static_cast<int>(K::fft_pass) + radix), e);
    out.split = t.get<SplitFn>(K::fft_split, e);
    out.join = t.get<JoinFn>(K::fft_join, e);
    out.turn = t.get<TurnFn>(K::fft_turn, e);
    out.part = t.get<PartFn>(K::fft_part, e);
    out.pair = t.get<PairFn>(K::fft_pair, e);
    out.transpose =
        t.get<TransposeFn>(K::transpose, sizeof(T) == 8 ? Elem::uint64 : Elem::uint32);
    out.scale = one_kernel(1, Op::multiply, e);
    return out;
  }();
  return all;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
/// Space of a thread, kept between transforms and full of numbers: places of no line are computed
/// too.
template <typename T>
T* scratch(int which, I count) {
  struct Space {
    std::unique_ptr<T[], Free> data;
    I size = 0;
  };
  static thread_local Space spaces[3];
  Space& s = spaces[which];
  if (s.size < count) {
    s.data.reset();
    void* p = std::aligned_alloc(64, static_cast<std::size_t>(up(count * I{sizeof(T)}, 64)));
    if (!p) throw std::bad_alloc();
    std::memset(p, 0, static_cast<std::size_t>(count) * sizeof(T));
    s.data.reset(static_cast<T*>(p));
    s.size = count;
  }
  return s.data.get();
}

/// Roots of one, exp(-2 pi i k / n): any of them from two short tables.
class Roots {
 public:
  explicit Roots(I n) : n_(n) {
    for (I k = 0; k < std::min(n, kFine); ++k) fine_.push_back(root(k));
    for (I k = 0; k < n; k += kFine) coarse_.push_back(root(k));
  }
  std::complex<double> operator()(I k) const {
    const std::complex<double> a = coarse_[static_cast<std::size_t>(k / kFine)],
                               b = fine_[static_cast<std::size_t>(k % kFine)];
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

 private:
  static constexpr I kFine = 1024;
  std::complex<double> root(I k) const {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n_);
    return {std::cos(angle), std::sin(angle)};
  }
  I n_;
  std::vector<std::complex<double>> fine_, coarse_;
};

/// What passes of a length need.
template <typename T>
struct Passes {
  I n;
  std::vector<int> radices;
  std::vector<T> roots;  // pairs
  explicit Passes(I length) : n(length), radices(operators::fft_radices(length)) {
    const Roots all(n);
    for (I k = 0; k < n; ++k) {
      const std::complex<double> w = all(k);
      roots.push_back(static_cast<T>(w.real())), roots.push_back(static_cast<T>(w.imag()));
    }
  }
  /// n rows of s numbers: from `a`, by way of `b`, to the one that is given back.
  Planes<T> run(Planes<T> a, Planes<T> b, I s, bool inverse) const {
    if (inverse) return run(a.swapped(), b.swapped(), s, false).swapped();
    I stride = 1;
    for (const int radix : radices) {
      kernels_of<T>().pass[radix](a.re, a.im, roots.data(), b.re, b.im, n / radix / stride,
                                  stride * s, stride);
      std::swap(a, b);
      stride *= radix;
    }
    return a;
  }
};

constexpr I kLine = 64;  // bytes; widths are multiples of it
/// Bytes of both copies of what is transformed at once: they stay in the second cache.
constexpr I kGroupBytes = I{3} << 16;
template <typename T>
I width_of(I n, I lines) {
  constexpr I unit = kLine / I{sizeof(T)};
  const I most = kGroupBytes / (4 * n * I{sizeof(T)}) / unit * unit;
  return std::min(std::max(most, unit), up(lines, unit));
}

/// One long line as n1 rows of n2 numbers.
template <typename T>
struct Long {
  I n, n1, n2, width;
  Passes<T> rows, columns;  // along n1, along n2
  Roots all;
  std::vector<T> turn_re, turn_im;  // exp(-2 pi i k l / n), n1 rows of `width`
  static I shorter(I n) {
    I d = static_cast<I>(std::sqrt(static_cast<double>(n)));
    while (n % d) --d;
    return d;
  }
  explicit Long(I length)
      : n(length),
        n1(length / shorter(length)),
        n2(shorter(length)),
        width(width_of<T>(n1, n2)),
        rows(n1),
        columns(n2),
        all(n) {
    for (I k = 0; k < n1; ++k) {
      for (I l = 0; l < width; ++l) {
        const std::complex<double> w = all(k * l % n);
        turn_re.push_back(static_cast<T>(w.real())), turn_im.push_back(static_cast<T>(w.imag()));
      }
    }
  }
  I step() const { return up(n1, kLine / I{sizeof(T)}); }
};

/// Tables of the lengths used last.
template <typename P>
std::shared_ptr<const P> kept(I n) {
  constexpr std::size_t kMost = 16;
  static auto& all = *new std::list<std::shared_ptr<const P>>;
  static auto& mutex = *new std::mutex;
  {
    std::lock_guard lock(mutex);
    for (auto it = all.begin(); it != all.end(); ++it) {
      if ((*it)->n != n) continue;
      all.splice(all.begin(), all, it);
      return all.front();
    }
  }
  auto made = std::make_shared<const P>(n);
  std::lock_guard lock(mutex);
  all.push_front(made);
  if (all.size() > kMost) all.pop_back();
  return made;
}

/// Lines side by side. Two real lines are the parts of a complex one.
template <typename T>
class Group {
 public:
  Group(const Fourier& f, const Passes<T>& passes, const T* in, T* out)
      : f_(f),
        passes_(passes),
        in_(in),
        out_(out),
        real_(f.kind != FourierKind::complex),
        half_(f.n / 2 + 1),
        lines_(f.inner > 1 ? f.inner : f.outer),
        width_(width_of<T>(f.n, real_ ? (lines_ + 1) / 2 : lines_)),
        scale_(static_cast<T>(f.scale)) {}
  I each() const { return real_ ? 2 * width_ : width_; }
  I count() const { return (lines_ + each() - 1) / each() * (f_.inner > 1 ? f_.outer : 1); }

  void run(I which) const {
    const I per = (lines_ + each() - 1) / each(), first = which % per * each();
    const I outer = f_.inner > 1 ? which / per : 0, n = f_.n, size = n * width_;
    const I some = std::min(each(), lines_ - first), one = std::min(some, width_);
    T* space = scratch<T>(0, 4 * size);
    const Planes<T> a{space, space + size}, b{space + 2 * size, space + 3 * size};
    const auto& k = kernels_of<T>();
    switch (f_.kind) {
      case FourierKind::complex:
        load(outer, first, one, n, a, 2);
        store(outer, first, one, n, passes_.run(a, b, width_, f_.inverse), 2);
        break;
      case FourierKind::real_forward: {
        load(outer, first, one, n, {a.re, nullptr}, 1);
        load(outer, first + one, some - one, n, {a.im, nullptr}, 1);
        const Planes<T> z = passes_.run(a, b, width_, false);
        const Planes<T> x = halves(0), y = halves(1);
        k.part(z.re, z.im, x.re, x.im, y.re, y.im, n, width_);
        store(outer, first, one, half_, x, 2);
        store(outer, first + one, some - one, half_, y, 2);
        break;
      }
      case FourierKind::real_inverse: {
        const Planes<T> x = halves(0), y = halves(1);
        load(outer, first, one, half_, x, 2);
        load(outer, first + one, some - one, half_, y, 2);
        for (const I row : {I{0}, n % 2 ? I{0} : n / 2}) {  // real of a real line
          std::fill_n(x.im + row * width_, width_, T(0));
          std::fill_n(y.im + row * width_, width_, T(0));
        }
        k.pair(x.re, x.im, y.re, y.im, a.re, a.im, n, width_);
        const Planes<T> z = passes_.run(a, b, width_, true);
        store(outer, first, one, n, {z.re, nullptr}, 1);
        store(outer, first + one, some - one, n, {z.im, nullptr}, 1);
        break;
      }
    }
  }

 private:
  Planes<T> halves(int which) const {
    const I size = half_ * width_;
    T* space = scratch<T>(1, 4 * size) + which * 2 * size;
    return {space, space + size};
  }
  /// Rows of a line each, on the way between memory and planes.
  Planes<T> rows(I n) const {
    T* space = scratch<T>(2, 2 * width_ * n);
    return {space, space + width_ * n};
  }
  /// `parts`: 2 of complex numbers, 1 of real ones, which take the first plane.
  void load(I outer, I first, I count, I n, const Planes<T>& to, I parts) const {
    const auto& k = kernels_of<T>();
    if (count <= 0) return;
    if (f_.inner > 1) {
      const T* from = in_ + parts * (outer * n * f_.inner + first);
      if (parts == 2) return k.split(from, to.re, to.im, n, count, f_.inner, width_);
      for (I r = 0; r < n; ++r) std::copy_n(from + r * f_.inner, count, to.re + r * width_);
      return;
    }
    const T* from = in_ + parts * first * n;
    if (parts == 1) return k.transpose(from, to.re, n, count, n, width_);
    const Planes<T> lines = rows(n);
    k.split(from, lines.re, lines.im, 1, count * n, 0, 0);
    k.transpose(lines.re, to.re, n, count, n, width_);
    k.transpose(lines.im, to.im, n, count, n, width_);
  }
  void store(I outer, I first, I count, I n, const Planes<T>& from, I parts) const {
    const auto& k = kernels_of<T>();
    if (count <= 0) return;
    auto scale = [&](T* at, I many) {
      const void* in[2] = {at, &scale_};
      k.scale(many, in, at);
    };
    if (f_.inner > 1) {
      T* to = out_ + parts * (outer * n * f_.inner + first);
      if (parts == 2)
        return k.join(from.re, from.im, &scale_, to, n, count, width_, f_.inner);
      for (I r = 0; r < n; ++r) {
        std::copy_n(from.re + r * width_, count, to + r * f_.inner);
        scale(to + r * f_.inner, count);
      }
      return;
    }
    T* to = out_ + parts * first * n;
    if (parts == 1) {
      k.transpose(from.re, to, count, n, width_, n);
      return scale(to, count * n);
    }
    const Planes<T> lines = rows(n);
    k.transpose(from.re, lines.re, count, n, width_, n);
    k.transpose(from.im, lines.im, count, n, width_, n);
    k.join(lines.re, lines.im, &scale_, to, 1, count * n, 0, 0);
  }

  const Fourier& f_;
  const Passes<T>& passes_;
  const T* in_;
  T* out_;
  bool real_;
  I half_, lines_, width_;
  T scale_;
};

/// One line of many numbers.
template <typename T>
class Line {
 public:
  Line(const Fourier& f, const Long<T>& plan, T* space)
      : f_(f), p_(plan), middle_{space, space + plan.n2 * plan.step()} {}

  void run(const T* in, T* out) const {
    const I first = (p_.n2 + p_.width - 1) / p_.width;
    Pool::shared().parallel_for(first, grain(p_.n1), [&](I c, I end) {
      for (; c < end; ++c) columns(in, c * p_.width);
    });
    const I width = width_of<T>(p_.n2, p_.n1), second = (p_.n1 + width - 1) / width;
    Pool::shared().parallel_for(second, grain(p_.n2), [&](I c, I end) {
      for (; c < end; ++c) rows(out, c * width, width);
    });
  }

 private:
  static I grain(I n) { return std::max<I>(1, 4096 / n); }
  /// Column chunks of the matrix, turned, to rows of the middle.
  void columns(const T* in, I c) const {
    const auto& k = kernels_of<T>();
    const I width = p_.width, n = std::min(width, p_.n2 - c), size = p_.n1 * width;
    T* space = scratch<T>(0, 4 * size);
    const Planes<T> a{space, space + size}, b{space + 2 * size, space + 3 * size};
    if (f_.kind == FourierKind::complex) {
      k.split(in + 2 * c, a.re, a.im, p_.n1, n, p_.n2, width);
    } else if (f_.kind == FourierKind::real_forward) {
      for (I r = 0; r < p_.n1; ++r) std::copy_n(in + r * p_.n2 + c, n, a.re + r * width);
      std::fill_n(a.im, size, T(0));
    } else {
      mirrored(in, c, n, a);
    }
    const Planes<T> x = p_.rows.run(a, b, width, f_.inverse);
    T* roots = scratch<T>(1, 2 * p_.n1);
    for (I r = 0, at = 0; r < p_.n1; ++r, at = (at + c) % p_.n) {
      const std::complex<double> w = p_.all(at);
      roots[2 * r] = static_cast<T>(w.real()), roots[2 * r + 1] = static_cast<T>(w.imag());
    }
    const Planes<T> turned = f_.inverse ? x.swapped() : x;
    k.turn(turned.re, turned.im, p_.turn_re.data(), p_.turn_im.data(), roots, p_.n1, width);
    const Planes<T> to = middle_ + c * p_.step();
    k.transpose(x.re, to.re, n, p_.n1, width, p_.step());
    k.transpose(x.im, to.im, n, p_.n1, width, p_.step());
  }
  /// Of the whole spectrum of a real line memory holds the first half.
  void mirrored(const T* in, I c, I n, const Planes<T>& to) const {
    for (I r = 0; r < p_.n1; ++r) {
      for (I l = 0; l < n; ++l) {
        const I at = r * p_.n2 + c + l, other = at <= p_.n / 2 ? at : p_.n - at;
        const bool real = at == 0 || 2 * at == p_.n;
        to.re[r * p_.width + l] = in[2 * other];
        to.im[r * p_.width + l] = real ? T(0) : other == at ? in[2 * at + 1] : -in[2 * other + 1];
      }
    }
  }
  void rows(T* out, I c, I width) const {
    const auto& k = kernels_of<T>();
    const I n = std::min(width, p_.n1 - c), size = p_.n2 * width;
    T* space = scratch<T>(0, 4 * size);
    const Planes<T> a{space, space + size}, b{space + 2 * size, space + 3 * size};
    const Planes<T> from = middle_ + c;
    for (I r = 0; r < p_.n2; ++r) {
      std::copy_n(from.re + r * p_.step(), n, a.re + r * width);
      std::copy_n(from.im + r * p_.step(), n, a.im + r * width);
    }
    const Planes<T> x = p_.columns.run(a, b, width, f_.inverse);
    const T scale = static_cast<T>(f_.scale);
    if (f_.kind == FourierKind::real_inverse) {
      for (I r = 0; r < p_.n2; ++r) {
        const void* in[2] = {x.re + r * width, &scale};
        k.scale(n, in, out + r * p_.n1 + c);
      }
      return;
    }
    const I wanted = f_.kind == FourierKind::complex ? p_.n : p_.n / 2 + 1;
    const I whole = wanted / p_.n1, rest = std::min(n, wanted % p_.n1 - c);
    k.join(x.re, x.im, &scale, out + 2 * c, whole, n, width, p_.n1);
    if (rest <= 0) return;
    k.join(x.re + whole * width, x.im + whole * width, &scale, out + 2 * (whole * p_.n1 + c), 1,
           rest, 0, 0);
  }

  const Fourier& f_;
  const Long<T>& p_;
  Planes<T> middle_;
};

/// Rows long enough, or too few, to lie side by side.
template <typename T>
bool by_lines(const Fourier& f) {
  constexpr I unit = kLine / I{sizeof(T)};
  return f.inner == 1 && f.n >= 64 && (f.n > 2048 || f.outer < unit / 2);
}
/// Lines up to here are shared among threads whole.
constexpr I kShort = 1 << 16;

}  // namespace

template <typename T>
std::int64_t fourier_space(const Fourier& f) {
  if (!by_lines<T>(f) || f.n <= kShort) return 0;
  const I n2 = Long<T>::shorter(f.n);
  return 2 * n2 * up(f.n / n2, kLine / I{sizeof(T)});
}

template <typename T>
void fourier(const Fourier& f, const T* in, T* out, T* space) {
  if (!by_lines<T>(f)) {
    const auto passes = kept<Passes<T>>(f.n);
    const Group<T> group(f, *passes, in, out);
    const I grain = std::max<I>(1, 16384 / (f.n * group.each()));
    Pool::shared().parallel_for(group.count(), grain, [&](I at, I end) {
      for (; at < end; ++at) group.run(at);
    });
    return;
  }
  const auto plan = kept<Long<T>>(f.n);
  const I half = 2 * (f.n / 2 + 1);
  const I in_step = f.kind == FourierKind::complex ? 2 * f.n : f.kind == FourierKind::real_forward ? f.n : half;
  const I out_step = f.kind == FourierKind::complex ? 2 * f.n : f.kind == FourierKind::real_forward ? half : f.n;
  auto lines = [&](I at, I end, T* middle) {
    const Line<T> line(f, *plan, middle);
    for (; at < end; ++at) line.run(in + at * in_step, out + at * out_step);
  };
  if (f.n > kShort) return lines(0, f.outer, space);
  Pool::shared().parallel_for(f.outer, std::max<I>(1, 16384 / f.n), [&](I at, I end) {
    lines(at, end, scratch<T>(2, 2 * plan->n2 * plan->step()));
  });
}

template std::int64_t fourier_space<float>(const Fourier&);
template std::int64_t fourier_space<double>(const Fourier&);
template void fourier(const Fourier&, const float*, float*, float*);
template void fourier(const Fourier&, const double*, double*, double*);

}  // namespace weft
