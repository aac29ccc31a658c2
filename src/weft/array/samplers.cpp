// SPDX-License-Identifier: Apache-2.0
#include "weft/array/samplers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "weft/array/random_stream.h"
#include "weft/base/error.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

const Ziggurat<128>& normal_strips() {
  static const Ziggurat<128> strips(
      3.442619855899, 9.91256303526217e-3, [](double x) { return std::exp(-0.5 * x * x); },
      [](double y) { return std::sqrt(-2 * std::log(y)); });
  return strips;
}
const Ziggurat<256>& exponential_strips() {
  static const Ziggurat<256> strips(
      7.69711747013104972, 0.0039496598225815571993, [](double x) { return std::exp(-x); },
      [](double y) { return -std::log(y); });
  return strips;
}

namespace {

constexpr double kMust = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kDraws = Sampler::kBlock;

// -- Blocks of numbers that kernels of the tables change in place ---------------------------------

template <typename T>
class Numbers {
 public:
  explicit Numbers(const SampleBlock& block) : block_(block) {}

  /// Uniform numbers in (0, 1], or in (0, 1).
  Numbers& open(bool below_one = false) {
    constexpr std::int64_t per = 16 / static_cast<std::int64_t>(sizeof(T));
    constexpr RandomKernel kind = sizeof(T) == 4 ? RandomKernel::uniform : RandomKernel::uniform64;
    kernels().random[static_cast<int>(kind)]((block_.n + per - 1) / per, block_.seed, block_.first,
                                             x_);
    const T most = below_one ? 1 - std::numeric_limits<T>::epsilon() / 2 : T{1};
    for (std::int64_t i = 0; i < block_.n; ++i) x_[i] = std::min(1 - x_[i], most);
    return *this;
  }
  Numbers& normal() {
    if constexpr (sizeof(T) == 4) {
      kernels().random[static_cast<int>(RandomKernel::normal)]((block_.n + 3) / 4, block_.seed,
                                                               block_.first, x_);
    } else {
      const std::int64_t pairs = (block_.n + 1) / 2;
      kernels().random[static_cast<int>(RandomKernel::uniform64)](pairs, block_.seed, block_.first,
                                                                  x_);
      const void* in[1] = {x_};
      loop_kernels().normal_pairs(pairs, in, x_);
    }
    return *this;
  }
  Numbers& with(Op op) {
    const void* in[1] = {x_};
    kernels().elementwise[static_cast<int>(op)][kElem](block_.n, in, x_);
    return *this;
  }
  Numbers& with(Op op, T number) {
    const void* in[2] = {x_, &number};
    if (const ElementwiseFn fn = one_kernel(1, op, static_cast<Elem>(kElem))) {
      fn(block_.n, in, x_);
      return *this;
    }
    T all[kDraws];
    std::fill_n(all, block_.n, number);
    return with(op, all);
  }
  Numbers& with(Op op, const T* y) {
    const void* in[2] = {x_, y};
    kernels().elementwise[static_cast<int>(op)][kElem](block_.n, in, x_);
    return *this;
  }
  /// With f of the k-th parameter.
  template <typename F>
  Numbers& with(Op op, int k, const F& f) {
    const SampleParameter& p = block_.parameter[k];
    if (p.step == 0) return with(op, static_cast<T>(f(*p.at)));
    T all[kDraws];
    for (std::int64_t i = 0; i < block_.n; ++i) all[i] = static_cast<T>(f(p.at[i]));
    return with(op, all);
  }
  Numbers& with(Op op, int k) {
    return with(op, k, [](double p) { return p; });
  }
  /// x = f(x, i).
  template <typename F>
  Numbers& each(const F& f) {
    for (std::int64_t i = 0; i < block_.n; ++i) x_[i] = f(x_[i], i);
    return *this;
  }
  template <typename Out>
  void store(Out* out) const {
    std::copy_n(x_, block_.n, out);
  }
  const T* data() const { return x_; }

 private:
  static constexpr int kElem = static_cast<int>(sizeof(T) == 4 ? Elem::float32 : Elem::float64);
  const SampleBlock& block_;
  alignas(64) T x_[kDraws];
};

constexpr auto inverse = [](double p) { return 1 / p; };

struct Exponential {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::log).with(Op::negative).with(Op::multiply, 0);
  }
};
struct StandardExponential {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::log).with(Op::negative);
  }
};
struct Laplace {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock& block) {
    x.open();
    T side[kDraws];
    std::copy_n(x.data(), block.n, side);
    constexpr T least = std::numeric_limits<T>::epsilon() / 2;
    x.each([&](T u, std::int64_t) { return std::max(1 - 2 * std::abs(u - T{0.5}), least); });
    x.with(Op::log).each([&](T v, std::int64_t i) { return side[i] < T{0.5} ? v : -v; });
    x.with(Op::multiply, 1).with(Op::add, 0);
  }
};
struct Gumbel {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open(true).with(Op::log).with(Op::negative).with(Op::log).with(Op::negative);
    x.with(Op::multiply, 1).with(Op::add, 0);
  }
};
struct Logistic {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open(true).each([](T u, std::int64_t) { return u / (1 - u); }).with(Op::log);
    x.with(Op::multiply, 1).with(Op::add, 0);
  }
};
struct Lognormal {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.normal().with(Op::multiply, 1).with(Op::add, 0).with(Op::exp);
  }
};
struct Rayleigh {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::log).with(Op::multiply, T{-2}).with(Op::sqrt).with(Op::multiply, 0);
  }
};
struct Weibull {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::log).with(Op::negative).with(Op::pow, 0, inverse);
  }
};
struct Pareto {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::log).with(Op::negative).with(Op::multiply, 0, inverse).with(Op::expm1);
  }
};
struct Power {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::pow, 0, inverse);
  }
};
struct Cauchy {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    x.open().with(Op::subtract, T{0.5}).with(Op::multiply, std::numbers::pi_v<T>).with(Op::tan);
  }
};
struct Triangular {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock& block) {
    const SampleParameter* p = block.parameter;
    x.open().each([&](T u, std::int64_t i) {
      const T low = static_cast<T>(p[0].at[i * p[0].step]);
      const T peak = static_cast<T>(p[1].at[i * p[1].step]);
      const T high = static_cast<T>(p[2].at[i * p[2].step]);
      const T wide = high - low, along = u * wide;
      const bool rising = along <= peak - low;
      const T root = std::sqrt(rising ? along * (peak - low) : (1 - u) * wide * (high - peak));
      return rising ? low + root : high - root;
    });
  }
};
struct Geometric {
  template <typename T>
  static void change(Numbers<T>& x, const SampleBlock&) {
    const auto rate = [](double p) { return 1 / std::log1p(-std::min(p, 1 - 1e-16)); };
    x.open().with(Op::log).with(Op::multiply, 0, rate).with(Op::ceil);
    x.each([](T k, std::int64_t) { return std::clamp<T>(k, 1, T{0x1p62}); });
  }
};

// -- Numbers one by one
// ----------------------------------------------------------------------------

/// log(k!) of a whole number.
double log_factorial(double k) {
  static const auto few = [] {
    struct {
      double at[16];
    } out{};
    for (int i = 1; i < 16; ++i) out.at[i] = out.at[i - 1] + std::log(i);
    return out;
  }();
  if (k < 16) return few.at[static_cast<int>(k)];
  const double r = 1 / k, s = r * r;
  return (k + 0.5) * std::log(k) - k + 0.91893853320467274178 +
         r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260)));
}

/// Marsaglia and Tsang's method; of shapes below 1 by a power of a uniform number.
struct StandardGamma {
  double shape, d, c;
  explicit StandardGamma(const double* p)
      : shape(p[0]), d((shape < 1 ? shape + 1 : shape) - 1.0 / 3), c(1 / std::sqrt(9 * d)) {}
  double operator()(RandomWords& words) const {
    const double out = lifted(words);
    return shape < 1 ? out * std::exp(-words.exponential() / shape) : out;
  }
  double lifted(RandomWords& words) const {
    for (;;) {
      const double x = words.normal(), root = 1 + c * x;
      if (root <= 0) continue;
      const double v = root * root * root, u = words.uniform(), square = x * x;
      if (u < 1 - 0.0331 * square * square) return d * v;
      if (std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) return d * v;
    }
  }
};
struct Gamma {
  StandardGamma gamma;
  double scale;
  explicit Gamma(const double* p) : gamma(p), scale(p[1]) {}
  double operator()(RandomWords& words) const { return gamma(words) * scale; }
};
struct Chisquare {
  double half;
  StandardGamma gamma;
  explicit Chisquare(const double* p) : half(p[0] / 2), gamma(&half) {}
  double operator()(RandomWords& words) const { return 2 * gamma(words); }
};
struct StudentT {
  double df;
  Chisquare squares;
  explicit StudentT(const double* p) : df(p[0]), squares(p) {}
  double operator()(RandomWords& words) const {
    return words.normal() / std::sqrt(squares(words) / df);
  }
};
struct FisherF {
  double above, below;
  Chisquare one, two;
  explicit FisherF(const double* p) : above(p[0]), below(p[1]), one(p), two(p + 1) {}
  double operator()(RandomWords& words) const {
    const double x = one(words) / above;
    return x / (two(words) / below);
  }
};
/// A share of two gamma numbers; small parameters by Jöhnk's rejection, in logarithms.
struct Beta {
  double a, b;
  StandardGamma one, two;
  explicit Beta(const double* p) : a(p[0]), b(p[1]), one(p), two(p + 1) {}
  double operator()(RandomWords& words) const {
    if (a > 1 || b > 1) {
      const double x = one(words);
      return x / (x + two(words));
    }
    for (;;) {
      const double x = -words.exponential() / a, y = -words.exponential() / b;
      const double most = std::max(x, y);
      const double sum = most + std::log(std::exp(x - most) + std::exp(y - most));
      if (sum <= 0) return std::exp(x - sum);
    }
  }
};
/// Below a mean of 10 by inversion, above by transformed rejection (Hörmann's PTRS).
struct Poisson {
  double mean, none, b, a, alpha, limit, log_mean;
  explicit Poisson(const double* p) : mean(p[0]), none(std::exp(-mean)) {
    b = 0.931 + 2.53 * std::sqrt(mean);
    a = -0.059 + 0.02483 * b;
    alpha = 1.1239 + 1.1328 / (b - 3.4);
    limit = 0.9277 - 3.6224 / (b - 2);
    log_mean = std::log(mean);
  }
  double operator()(RandomWords& words) const {
    if (mean < 10) {
      double rest = words.uniform() - none, term = none;
      double k = 0;
      while (rest >= 0 && k < 200) {
        k += 1;
        term *= mean / k;
        rest -= term;
      }
      return k;
    }
    for (;;) {
      const double u = words.uniform() - 0.5, v = words.open(), near = 0.5 - std::abs(u);
      if (near <= 0) continue;
      const double k = std::floor((2 * a / near + b) * u + mean + 0.43);
      if (near >= 0.07 && v <= limit) return k;
      if (k < 0 || (near < 0.013 && v > near)) continue;
      if (std::log(v * alpha / (a / (near * near) + b)) <= k * log_mean - mean - log_factorial(k))
        return k;
    }
  }
};
/// Below a mean of 10 by inversion, above by transformed rejection (Hörmann's BTRS).
struct Binomial {
  double n, p, none, odds, b, a, c, alpha, limit, mode, at_mode;
  bool turned;
  explicit Binomial(const double* q) : n(q[0]), p(std::min(q[1], 1 - q[1])), turned(q[1] > 0.5) {
    none = std::exp(n * std::log1p(-p));
    odds = p / (1 - p);
    const double spread = std::sqrt(n * p * (1 - p));
    b = 1.15 + 2.53 * spread;
    a = -0.0873 + 0.0248 * b + 0.01 * p;
    c = n * p + 0.5;
    alpha = (2.83 + 5.1 / b) * spread;
    limit = 0.92 - 4.2 / b;
    mode = std::floor((n + 1) * p);
    at_mode = n * p < 10 ? 0 : log_factorial(mode) + log_factorial(n - mode);
  }
  double operator()(RandomWords& words) const {
    const double k = n * p < 10 ? few(words) : many(words);
    return turned ? n - k : k;
  }
  double few(RandomWords& words) const {
    double rest = words.uniform() - none, term = none, k = 0;
    while (rest >= 0 && k < n && k < 200) {
      term *= odds * (n - k) / (k + 1);
      k += 1;
      rest -= term;
    }
    return k;
  }
  double many(RandomWords& words) const {
    for (;;) {
      const double u = words.uniform() - 0.5, v = words.open(), near = 0.5 - std::abs(u);
      if (near <= 0) continue;
      const double k = std::floor((2 * a / near + b) * u + c);
      if (k < 0 || k > n) continue;
      if (near >= 0.07 && v <= limit) return k;
      if (std::log(v * alpha / (a / (near * near) + b)) <=
          at_mode - log_factorial(k) - log_factorial(n - k) + (k - mode) * std::log(odds))
        return k;
    }
  }
};
struct NegativeBinomial {
  double odds;
  StandardGamma gamma;
  explicit NegativeBinomial(const double* p) : odds((1 - p[1]) / p[1]), gamma(p) {}
  double operator()(RandomWords& words) const {
    const double mean = odds * gamma(words);
    return mean > 0 ? Poisson(&mean)(words) : 0;
  }
};
/// Devroye's rejection.
struct Zipf {
  double less, power;
  explicit Zipf(const double* p) : less(p[0] - 1), power(std::exp2(less)) {}
  double operator()(RandomWords& words) const {
    if (!(less < 1024)) return 1;  // the second number has no probability left
    for (;;) {
      const double x = std::floor(std::pow(words.open(), -1 / less)), v = words.uniform();
      if (!(x < 0x1p63)) continue;
      const double t = std::pow(1 + 1 / x, less);
      if (v * x * (t - 1) / (power - 1) <= t / power) return x;
    }
  }
};
/// Kemp's method.
struct Logseries {
  double r;
  explicit Logseries(const double* p) : r(std::log1p(-p[0])) {}
  double operator()(RandomWords& words) const {
    const double q = -std::expm1(r * words.open()), v = words.open();
    return std::clamp(std::floor(1 + std::log(v) / std::log(q)), 1.0, 0x1p62);
  }
};
/// Michael, Schucany and Haas.
struct Wald {
  double mean, scale;
  explicit Wald(const double* p) : mean(p[0]), scale(p[1]) {}
  double operator()(RandomWords& words) const {
    const double normal = words.normal(), y = mean * normal * normal, half = 0.5 / scale;
    const double x = mean + mean * half * (y - std::sqrt(y * (4 * scale + y)));
    return words.uniform() <= mean / (mean + x) ? x : mean * mean / x;
  }
};
/// Best and Fisher; almost a normal number where it is concentrated.
struct Vonmises {
  double mu, kappa, r;
  explicit Vonmises(const double* p) : mu(p[0]), kappa(std::max(p[1], 1e-6)) {
    const double tau = 1 + std::sqrt(1 + 4 * kappa * kappa);
    const double rho = (tau - std::sqrt(2 * tau)) / (2 * kappa);
    r = (1 + rho * rho) / (2 * rho);
  }
  double operator()(RandomWords& words) const {
    constexpr double pi = std::numbers::pi;
    const double turned = angle(words) + mu;
    return turned - 2 * pi * std::floor((turned + pi) / (2 * pi));
  }
  double angle(RandomWords& words) const {
    if (kappa > 1e6) return words.normal() / std::sqrt(kappa);
    for (;;) {
      const double z = std::cos(std::numbers::pi * words.uniform()), w = (1 + r * z) / (r + z);
      const double c = kappa * (r - w), v = words.open();
      if (c * (2 - c) - v > 0 || std::log(c / v) + 1 - c >= 0) {
        const double out = std::acos(std::clamp(w, -1.0, 1.0));
        return words.bits() >> 63 ? out : -out;
      }
    }
  }
};

// -- The table
// -------------------------------------------------------------------------------------

template <typename S, typename T, typename Out>
void by_kernels(const SampleBlock& block, Out* out) {
  Numbers<T> x(block);
  S::change(x, block);
  x.store(out);
}
template <typename S, typename Out>
void one_by_one(const SampleBlock& block, Out* out) {
  RandomWords words(block.seed, block.first, block.n);
  const SampleParameter* p = block.parameter;
  const auto at = [&](std::int64_t i) {
    double values[Sampler::kMost] = {};
    for (int k = 0; k < Sampler::kMost; ++k)
      if (p[k].at) values[k] = p[k].at[i * p[k].step];
    return S(values);
  };
  if (p[0].step == 0 && p[1].step == 0 && p[2].step == 0) {
    const S same = at(0);
    for (std::int64_t i = 0; i < block.n; ++i) out[i] = static_cast<Out>(same(words));
  } else {
    for (std::int64_t i = 0; i < block.n; ++i) out[i] = static_cast<Out>(at(i)(words));
  }
}

struct Parameters {
  int count = 0;
  const char* names[Sampler::kMost] = {};
  double defaults[Sampler::kMost] = {};
  bool (*legal)(const double*) = [](const double*) { return true; };
};
constexpr Sampler described(const char* name, const Parameters& p) {
  Sampler out{name, p.count, {}, {}, p.legal, nullptr, nullptr, nullptr};
  std::copy_n(p.names, Sampler::kMost, out.names);
  std::copy_n(p.defaults, Sampler::kMost, out.defaults);
  return out;
}
template <typename S>
constexpr Sampler kernels_of(const char* name, const Parameters& p, bool whole = false) {
  Sampler out = described(name, p);
  if (whole) {
    out.make_whole = by_kernels<S, double, std::int64_t>;
  } else {
    out.make32 = by_kernels<S, float, float>, out.make64 = by_kernels<S, double, double>;
  }
  return out;
}
template <typename S>
constexpr Sampler numbers_of(const char* name, const Parameters& p, bool whole = false) {
  Sampler out = described(name, p);
  if (whole) {
    out.make_whole = one_by_one<S, std::int64_t>;
  } else {
    out.make32 = one_by_one<S, float>, out.make64 = one_by_one<S, double>;
  }
  return out;
}

bool first_positive(const double* p) { return p[0] > 0; }
bool second_positive(const double* p) { return p[1] > 0; }
bool both_positive(const double* p) { return p[0] > 0 && p[1] > 0; }

/// "loc" and "scale" of most.
constexpr Parameters kPlaced = {2, {"loc", "scale"}, {0, 1}, second_positive};
constexpr Parameters kScaled = {1, {"scale"}, {1}, first_positive};
constexpr Parameters kOfA = {1, {"a"}, {kMust}, first_positive};
constexpr Parameters kOfDf = {1, {"df"}, {kMust}, first_positive};

constexpr Sampler kSamplers[] = {
    kernels_of<Exponential>("exponential", kScaled),
    kernels_of<StandardExponential>("standard_exponential", {}),
    kernels_of<Laplace>("laplace", kPlaced),
    kernels_of<Gumbel>("gumbel", kPlaced),
    kernels_of<Logistic>("logistic", kPlaced),
    kernels_of<Lognormal>("lognormal", {2, {"mean", "sigma"}, {0, 1}}),
    kernels_of<Rayleigh>("rayleigh", kScaled),
    kernels_of<Weibull>("weibull", kOfA),
    kernels_of<Pareto>("pareto", kOfA),
    kernels_of<Power>("power", kOfA),
    kernels_of<Cauchy>("standard_cauchy", {}),
    kernels_of<Triangular>("triangular", {3,
                                          {"left", "mode", "right"},
                                          {kMust, kMust, kMust},
                                          [](const double* p) {
                                            return p[0] <= p[1] && p[1] <= p[2] && p[0] < p[2];
                                          }}),
    kernels_of<Geometric>("geometric", {1, {"p"}, {kMust}, first_positive}, true),
    numbers_of<StandardGamma>("standard_gamma", {1, {"shape_parameter"}, {kMust}, first_positive}),
    numbers_of<Gamma>("gamma", {2, {"shape_parameter", "scale"}, {kMust, 1}, both_positive}),
    numbers_of<Chisquare>("chisquare", kOfDf),
    numbers_of<StudentT>("standard_t", kOfDf),
    numbers_of<FisherF>("f", {2, {"dfnum", "dfden"}, {kMust, kMust}, both_positive}),
    numbers_of<Beta>("beta", {2, {"a", "b"}, {kMust, kMust}, both_positive}),
    numbers_of<Poisson>(
        "poisson", {1, {"lam"}, {1}, [](const double* p) { return p[0] >= 0 && p[0] < 0x1p62; }},
        true),
    numbers_of<Binomial>("binomial",
                         {2,
                          {"n", "p"},
                          {kMust, kMust},
                          [](const double* p) {
                            return p[0] >= 0 && p[0] <= 0x1p53 && p[0] == std::floor(p[0]) &&
                                   p[1] >= 0 && p[1] <= 1;
                          }},
                         true),
    numbers_of<NegativeBinomial>(
        "negative_binomial",
        {2,
         {"n", "p"},
         {kMust, kMust},
         [](const double* p) { return p[0] > 0 && p[0] < 0x1p52 && p[1] > 0x1p-9 && p[1] <= 1; }},
        true),
    numbers_of<Zipf>("zipf", {1, {"a"}, {kMust}, [](const double* p) { return p[0] > 1; }}, true),
    numbers_of<Logseries>("logseries",
                          {1, {"p"}, {kMust}, [](const double* p) { return p[0] > 0 && p[0] < 1; }},
                          true),
    numbers_of<Wald>("wald", {2, {"mean", "scale"}, {kMust, kMust}, both_positive}),
    numbers_of<Vonmises>(
        "vonmises",
        {2, {"mu", "kappa"}, {kMust, kMust}, [](const double* p) { return p[1] >= 0; }}),
};

template <typename T>
void draw_blocks(const Sampler& sampler, const SampleBlock& from, std::int64_t count, T* to) {
  const std::int64_t blocks = (count + kDraws - 1) / kDraws;
  runtime::Pool::shared().parallel_for(blocks, 4, [&](std::int64_t b, std::int64_t end) {
    for (; b < end; ++b) {
      const std::int64_t begin = b * kDraws;
      SampleBlock block = from;
      block.first += static_cast<std::uint64_t>(b) << 32;
      block.n = std::min(kDraws, count - begin);
      for (SampleParameter& p : block.parameter)
        if (p.at) p.at += begin * p.step;
      if constexpr (std::is_same_v<T, float>) sampler.make32(block, to + begin);
      if constexpr (std::is_same_v<T, double>) sampler.make64(block, to + begin);
      if constexpr (std::is_same_v<T, std::int64_t>) sampler.make_whole(block, to + begin);
    }
  });
}

}  // namespace

const Sampler* sampler(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSamplers), std::end(kSamplers),
                                   [&](const Sampler& s) { return name == s.name; });
  return found == std::end(kSamplers) ? nullptr : found;
}

NDArray random_sample(const Sampler& sampler, const Ref<Device>& host, std::uint64_t seed,
                      std::uint64_t counter, std::int64_t count, Elem elem,
                      const SampleParameter* parameters) {
  // A stream of its own: how many words a number takes is not known before.
  std::uint64_t key[2];
  kernels().random[static_cast<int>(RandomKernel::bits)](1, seed, counter, key);
  SampleBlock from{key[0], key[1], 0, {}};
  std::copy_n(parameters, sampler.parameters, from.parameter);
  NDArray out = NDArray::empty(host, elem, Dims{count});
  WEFT_CHECK(out.on_host(), "samples of hosts only");
  if (elem == Elem::int64) {
    WEFT_CHECK(sampler.make_whole, sampler.name, " is of real numbers");
    draw_blocks(sampler, from, count, reinterpret_cast<std::int64_t*>(out.host()));
  } else {
    WEFT_CHECK(sampler.make32, sampler.name, " is of whole numbers");
    if (elem == Elem::float32)
      draw_blocks(sampler, from, count, reinterpret_cast<float*>(out.host()));
    else draw_blocks(sampler, from, count, reinterpret_cast<double*>(out.host()));
  }
  return out;
}

}  // namespace weft
