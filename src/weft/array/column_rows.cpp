// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax and their gradients along an axis that is not the last in memory, on the
// host.
// Blocks of columns are brought into a buffer that stays in the second cache, so memory is read once and
// written once and nothing is transposed; each step is a kernel over a row of the block.

#include "weft/array/column_rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Fewer columns than these are rows after a transposition.
constexpr std::int64_t kFewestColumns = 16;
/// A block's buffers, in bytes; at least kNarrow and at most kWide columns of every row.
constexpr std::int64_t kBlockBytes = 1 << 18, kNarrow = 64, kWide = 1024;

/// Rows of `width` columns in memory, `pitch` elements apart, and their copies in a buffer.
class Block {
 public:
  Block(const NDArray& x, Elem compute, std::int64_t n, std::int64_t width, std::int64_t pitch)
      : from_(x.elem()), compute_(compute), n_(n), width_(width), pitch_(pitch),
        held_(NDArray::empty(x.device(), compute, Dims{n, width})) {}

  char* row(std::int64_t r) const { return held_.host() + r * width_ * elem_bytes(compute_); }
  void bring(const NDArray& x, std::int64_t first, std::int64_t columns) const {
    each(x, first, [&](char* memory, char* copy) {
      if (from_ == compute_) std::memcpy(copy, memory, bytes_of(columns));
      else cast(from_, compute_)(columns, memory, copy);
    });
  }
  void put(const NDArray& out, std::int64_t first, std::int64_t columns) const {
    each(out, first, [&](char* memory, char* copy) {
      if (from_ == compute_) std::memcpy(memory, copy, bytes_of(columns));
      else cast(compute_, from_)(columns, copy, memory);
    });
  }

 private:
  static CastFn cast(Elem from, Elem to) {
    return kernels().cast[static_cast<int>(from)][static_cast<int>(to)];
  }
  std::size_t bytes_of(std::int64_t columns) const {
    return static_cast<std::size_t>(columns) * static_cast<std::size_t>(elem_bytes(compute_));
  }
  template <typename F>
  void each(const NDArray& array, std::int64_t first, F f) const {
    const std::int64_t bytes = elem_bytes(from_);
    for (std::int64_t r = 0; r < n_; ++r) f(array.host() + (first + r * pitch_) * bytes, row(r));
  }

  Elem from_, compute_;
  std::int64_t n_, width_, pitch_;
  NDArray held_;
};

/// The kernels of one type, over runs of columns.
struct Steps {
  const int e;
  const std::int64_t columns;

  std::size_t bytes() const {
    return static_cast<std::size_t>(columns * elem_bytes(static_cast<Elem>(e)));
  }
  void accumulate(ReduceOp op, const char* x, char* acc) const {
    kernels().accumulate[static_cast<int>(op)][e](columns, x, acc);
  }
  void apply(Op op, const char* x, char* out) const {
    const void* in[1] = {x};
    kernels().elementwise[static_cast<int>(op)][e](columns, in, out);
  }
  void apply(Op op, const char* x, const char* y, char* out) const {
    const void* in[2] = {x, y};
    kernels().elementwise[static_cast<int>(op)][e](columns, in, out);
  }
};

/// The sum of many rows, by sums of kGroup: long ones lose fewer digits.
class Sum {
 public:
  Sum(const Steps& steps, char* total, char* part) : steps_(steps), total_(total), part_(part) {
    std::memset(total, 0, steps.bytes());
  }
  void add(const char* row) {
    if (count_ == kGroup) join();
    if (count_++ == 0) std::memcpy(part_, row, steps_.bytes());
    else steps_.accumulate(ReduceOp::sum, row, part_);
  }
  /// What was added is in the total.
  void join() {
    steps_.accumulate(ReduceOp::sum, part_, total_);
    count_ = 0;
  }

 private:
  static constexpr std::int64_t kGroup = 32;
  const Steps& steps_;
  char *const total_, *const part_;
  std::int64_t count_ = 0;
};

/// The rows of `x`, and `g` of a gradient, become the result's; each of `held` is a row.
void compute(RowKernel kind, const Steps& steps, const Block& x, const Block* g, std::int64_t n,
             char* const (&held)[4]) {
  char *const a = held[0], *const b = held[1], *const c = held[2];
  auto each = [n](const auto& f) {
    for (std::int64_t r = 0; r < n; ++r) f(r);
  };
  auto largest = [&] {
    std::memcpy(a, x.row(0), steps.bytes());
    each([&](std::int64_t r) { steps.accumulate(ReduceOp::max, x.row(r), a); });
  };
  auto exponentials = [&](bool keep) {  // b = sum of exp(x - a); x becomes its terms
    Sum sum(steps, b, held[3]);
    each([&](std::int64_t r) {
      char* const to = keep ? x.row(r) : c;
      steps.apply(Op::subtract, x.row(r), a, to);
      steps.apply(Op::exp, to, to);
      sum.add(to);
    });
    sum.join();
  };
  switch (kind) {
    case RowKernel::softmax:
      largest();
      exponentials(true);
      steps.apply(Op::reciprocal, b, b);
      return each([&](std::int64_t r) { steps.apply(Op::multiply, x.row(r), b, x.row(r)); });
    case RowKernel::log_softmax:
      largest();
      exponentials(false);
      steps.apply(Op::log, b, b);
      return each([&](std::int64_t r) {
        steps.apply(Op::subtract, x.row(r), a, x.row(r));
        steps.apply(Op::subtract, x.row(r), b, x.row(r));
      });
    case RowKernel::softmax_gradient: {  // y (g - sum of g y)
      Sum sum(steps, a, held[3]);
      each([&](std::int64_t r) {
        steps.apply(Op::multiply, g->row(r), x.row(r), b);
        sum.add(b);
      });
      sum.join();
      return each([&](std::int64_t r) {
        steps.apply(Op::subtract, g->row(r), a, b);
        steps.apply(Op::multiply, x.row(r), b, x.row(r));
      });
    }
    default: {  // log_softmax_gradient: g - exp(y) times the sum of g
      Sum sum(steps, a, held[3]);
      each([&](std::int64_t r) { sum.add(g->row(r)); });
      sum.join();
      return each([&](std::int64_t r) {
        steps.apply(Op::exp, x.row(r), b);
        steps.apply(Op::multiply, b, a, b);
        steps.apply(Op::subtract, g->row(r), b, x.row(r));
      });
    }
  }
}

NDArray columns(RowKernel kind, std::span<const NDArray* const> operands, std::int64_t n,
                std::int64_t inner) {
  const NDArray& x = *operands[0];
  const Elem compute_elem = kernel_elem(x.elem());
  const std::int64_t bytes = elem_bytes(compute_elem);
  const std::int64_t fit = kBlockBytes / static_cast<std::int64_t>(operands.size()) / bytes / n;
  const std::int64_t width = std::min(inner, std::clamp(fit / 16 * 16, kNarrow, kWide));
  const std::int64_t blocks = (inner + width - 1) / width;
  NDArray in[2];
  for (std::size_t k = 0; k < operands.size(); ++k) in[k] = operands[k]->contiguous();
  const NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  runtime::Pool::shared().parallel_for(
      x.size() / n / inner * blocks, std::max<std::int64_t>(1, kParallelGrain / 4 / (n * width)),
      [&](std::int64_t begin, std::int64_t end) {
        const Block first(x, compute_elem, n, width, inner);
        std::optional<Block> second;
        if (operands.size() > 1) second.emplace(x, compute_elem, n, width, inner);
        const NDArray rows = NDArray::empty(x.device(), compute_elem, Dims{4, width});
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t column = task % blocks * width;
          const std::int64_t at = task / blocks * n * inner + column;
          const Steps steps{static_cast<int>(compute_elem), std::min(width, inner - column)};
          first.bring(in[0], at, steps.columns);
          if (second) second->bring(in[1], at, steps.columns);
          char* const a = rows.host();
          const std::int64_t row = width * bytes;
          compute(kind, steps, first, second ? &*second : nullptr, n,
                  {a, a + row, a + 2 * row, a + 3 * row});
          first.put(out, at, steps.columns);
        }
      });
  return out;
}

/// The axis whose neighbours lie nearest to each other in memory.
int nearest_axis(const NDArray& x) {
  int nearest = x.ndim() - 1;
  for (int i = nearest; i >= 0; --i) {
    const auto step = [&](int a) {
      return x.shape()[a] > 1 ? std::abs(x.strides()[a]) : std::numeric_limits<std::int64_t>::max();
    };
    if (step(i) < step(nearest)) nearest = i;
  }
  return nearest;
}

}  // namespace

std::optional<NDArray> rows_by_columns(RowKernel kind, std::span<const NDArray* const> operands) {
  if (kind != RowKernel::softmax && kind != RowKernel::log_softmax &&
      kind != RowKernel::softmax_gradient && kind != RowKernel::log_softmax_gradient)
    return std::nullopt;
  const NDArray& x = *operands[0];
  for (const NDArray* a : operands) {
    if (!a->on_host() || !is_real_float(a->elem()) || a->elem() != x.elem() ||
        !(a->shape() == x.shape()))
      return std::nullopt;
  }
  const int last = x.ndim() - 1, axis = x.size() > 0 ? nearest_axis(x) : last;
  if (axis == last) return std::nullopt;
  NDArray turned[2];
  const NDArray* in[2];
  for (std::size_t k = 0; k < operands.size(); ++k) {
    turned[k] = operands[k]->transpose(axis, last);
    in[k] = &turned[k];
  }
  std::int64_t inner = 1;
  for (int i = axis + 1; i <= last; ++i) inner *= turned[0].shape()[i];
  if (inner < kFewestColumns) return std::nullopt;
  return columns(kind, {in, operands.size()}, x.shape()[last], inner).transpose(axis, last);
}

}  // namespace weft
