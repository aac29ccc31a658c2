// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax, their gradients and logsumexp on the host where another axis than the last
// is the one whose elements are neighbours in memory, and of rows too short for a call each, which
// are transposed before and after.
// Blocks of columns are brought into a buffer that stays in the second cache, so memory is read
// once and written once and nothing is transposed; each step is a kernel over a row of the block.

#include "weft/array/column_rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/host/kernel_lists.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Fewer columns than these are rows after a transposition; runs of fewer neighbours, too.
constexpr std::int64_t kFewestColumns = 16, kShortestRun = 4;
/// Rows of at most so many elements become columns.
constexpr std::int64_t kShortRow = 24;
/// A block's buffers, in bytes; at least kNarrowBlock and at most kWideBlock columns of every row.
constexpr std::int64_t kBlockBytes = 1 << 18, kNarrowBlock = 64, kWideBlock = 1024;

/// Elements that one call of a kernel takes, where rows are short several of them.
constexpr std::int64_t kCallRun = 1024;

/// A short row, without a call for its length.
void copy_row(char* to, const char* from, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64, kShort = 512;
  for (; bytes >= kLine && bytes <= kShort; bytes -= kLine, to += kLine, from += kLine)
    std::memcpy(to, from, kLine);
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Rows of columns in memory, `pitch` elements apart, and their copies one after the other; of
/// several slabs of such rows, one behind the other, all columns in one. 16-bit floats are copied
/// as they are and widened all at once.
class ColumnBlock {
 public:
  ColumnBlock(const NDArray& x, Elem compute, std::int64_t n, std::int64_t width,
              std::int64_t pitch)
      : from_(x.elem()),
        compute_(compute),
        n_(n),
        pitch_(pitch),
        held_(NDArray::empty(x.device(), compute, Dims{n, width})),
        narrow_(from_ == compute_ ? held_ : NDArray::empty(x.device(), from_, Dims{n, width})) {}

  char* row(std::int64_t r) const { return held_.host() + r * columns_ * elem_bytes(compute_); }
  void bring(const NDArray& x, std::int64_t first, std::int64_t columns, std::int64_t slabs) {
    columns_ = columns * slabs;
    slabs_ = slabs;
    each(x, first, n_,
         [&](char* memory, char* copy, std::int64_t row) { copy_row(copy, memory, row); });
    if (from_ != compute_) cast(from_, compute_)(n_ * columns_, narrow_.host(), held_.host());
  }
  /// The first rows.
  void put(const NDArray& out, std::int64_t first, std::int64_t rows) const {
    if (from_ != compute_) cast(compute_, from_)(rows * columns_, held_.host(), narrow_.host());
    each(out, first, rows,
         [&](char* memory, char* copy, std::int64_t row) { copy_row(memory, copy, row); });
  }

 private:
  static CastFn cast(Elem from, Elem to) {
    return kernels().cast[static_cast<int>(from)][static_cast<int>(to)];
  }
  template <typename F>
  void each(const NDArray& array, std::int64_t first, std::int64_t rows, F f) const {
    const std::int64_t bytes = elem_bytes(from_), row = columns_ / slabs_ * bytes;
    for (std::int64_t s = 0; s < slabs_; ++s) {
      char* memory = array.host() + (first + s * rows * pitch_) * bytes;
      char* copy = narrow_.host() + s * row;
      for (std::int64_t r = 0; r < rows; ++r, memory += pitch_ * bytes, copy += slabs_ * row)
        f(memory, copy, row);
    }
  }

  Elem from_, compute_;
  std::int64_t n_, pitch_, columns_ = 0, slabs_ = 1;
  NDArray held_, narrow_;
};

/// The kernels of one type over rows of so many columns, one after the other.
struct ColumnSteps {
  const int e;
  const std::int64_t columns;
  const std::int64_t group = std::max<std::int64_t>(1, kCallRun / columns);  // rows of a call

  std::int64_t bytes() const { return columns * elem_bytes(static_cast<Elem>(e)); }
  std::size_t size() const { return static_cast<std::size_t>(bytes()); }
  void apply(Op op, std::int64_t rows, const char* x, char* out) const {
    const void* in[1] = {x};
    kernels().elementwise[static_cast<int>(op)][e](rows * columns, in, out);
  }
  void apply(Op op, std::int64_t rows, const char* x, const char* y, char* out) const {
    const void* in[2] = {x, y};
    kernels().elementwise[static_cast<int>(op)][e](rows * columns, in, out);
  }
  /// Every number between the largest of the type and its negative: infinities become those.
  void hold_finite(char* x) const {
    const bool wide = e == static_cast<int>(Elem::float64);
    const double most =
        wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    for (const Op op : {Op::minimum, Op::maximum}) {
      alignas(8) char limit[8];
      write_scalar(Scalar(op == Op::minimum ? most : -most), static_cast<Elem>(e), limit);
      const void* in[2] = {x, limit};
      one_kernel(1, op, static_cast<Elem>(e))(columns, in, x);
    }
  }
  /// acc = combination of acc and all rows.
  void combine(ReduceOp op, std::int64_t rows, const char* x, char* acc) const {
    const auto k = static_cast<int>(op);
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const char* const at = x + r * bytes();
      const void* in[4] = {at, at + bytes(), at + 2 * bytes(), at + 3 * bytes()};
      kernels().fold[k][e](columns, in, acc);
    }
    for (; r < rows; ++r) kernels().accumulate[k][e](columns, x + r * bytes(), acc);
  }
  /// The row as many times as a call takes rows.
  void repeat(const char* row, char* out) const {
    for (std::int64_t r = 0; r < group; ++r) std::memcpy(out + r * bytes(), row, size());
  }
};

/// The sum of many rows, by sums of some of them: long ones lose fewer digits.
class ColumnSum {
 public:
  ColumnSum(const ColumnSteps& steps, char* total, char* part)
      : steps_(steps), total_(total), part_(part) {
    std::memset(total, 0, steps.size());
    std::memset(part, 0, steps.size());
  }
  void add(std::int64_t rows, const char* x) {
    steps_.combine(ReduceOp::sum, rows, x, part_);
    if ((count_ += rows) >= kSome) join();
  }
  /// What was added is in the total.
  void join() {
    steps_.combine(ReduceOp::sum, 1, part_, total_);
    std::memset(part_, 0, steps_.size());
    count_ = 0;
  }

 private:
  static constexpr std::int64_t kSome = 32;
  const ColumnSteps& steps_;
  char *const total_, *const part_;
  std::int64_t count_ = 0;
};

/// Room for numbers of a block: rows, and two runs of a call.
struct ColumnRoom {
  char *a, *b, *part, *repeated, *run;
};

/// The rows of `x`, and `g` of a gradient, become the result's.
void compute_block(RowKernel kind, const ColumnSteps& steps, const ColumnBlock& x,
                   const ColumnBlock* g, std::int64_t n, const ColumnRoom& room) {
  const auto [a, b, part, repeated, run] = room;
  auto each = [&](const auto& f) {  // f(first row, rows)
    for (std::int64_t r = 0; r < n; r += steps.group) f(r, std::min(steps.group, n - r));
  };
  auto shifted = [&](bool keep) {  // b = sum of exp(x - largest); x becomes its terms
    std::memcpy(a, x.row(0), steps.size());
    steps.combine(ReduceOp::max, n, x.row(0), a);
    if (kind == RowKernel::logsumexp) steps.hold_finite(a);
    steps.repeat(a, repeated);
    ColumnSum sum(steps, b, part);
    each([&](std::int64_t r, std::int64_t rows) {
      char* const to = keep ? x.row(r) : run;
      steps.apply(Op::subtract, rows, x.row(r), repeated, to);
      steps.apply(Op::exp, rows, to, to);
      sum.add(rows, to);
    });
    sum.join();
  };
  switch (kind) {
    case RowKernel::softmax:
      shifted(true);
      steps.apply(Op::reciprocal, 1, b, b);
      steps.repeat(b, repeated);
      return each([&](std::int64_t r, std::int64_t rows) {
        steps.apply(Op::multiply, rows, x.row(r), repeated, x.row(r));
      });
    case RowKernel::log_softmax: {
      shifted(false);
      steps.apply(Op::log, 1, b, b);
      char* const logarithms = run;
      steps.repeat(b, logarithms);
      return each([&](std::int64_t r, std::int64_t rows) {
        steps.apply(Op::subtract, rows, x.row(r), repeated, x.row(r));
        steps.apply(Op::subtract, rows, x.row(r), logarithms, x.row(r));
      });
    }
    case RowKernel::logsumexp:
      shifted(false);
      steps.apply(Op::log, 1, b, b);
      return steps.apply(Op::add, 1, a, b, x.row(0));
    case RowKernel::softmax_gradient: {  // y (g - sum of g y)
      ColumnSum sum(steps, a, part);
      each([&](std::int64_t r, std::int64_t rows) {
        steps.apply(Op::multiply, rows, g->row(r), x.row(r), run);
        sum.add(rows, run);
      });
      sum.join();
      steps.repeat(a, repeated);
      return each([&](std::int64_t r, std::int64_t rows) {
        steps.apply(Op::subtract, rows, g->row(r), repeated, run);
        steps.apply(Op::multiply, rows, x.row(r), run, x.row(r));
      });
    }
    default: {  // log_softmax_gradient: g - exp(y) times the sum of g
      ColumnSum sum(steps, a, part);
      each([&](std::int64_t r, std::int64_t rows) { sum.add(rows, g->row(r)); });
      sum.join();
      steps.repeat(a, repeated);
      return each([&](std::int64_t r, std::int64_t rows) {
        steps.apply(Op::exp, rows, x.row(r), run);
        steps.apply(Op::multiply, rows, run, repeated, run);
        steps.apply(Op::subtract, rows, g->row(r), run, x.row(r));
      });
    }
  }
}

NDArray by_blocks(RowKernel kind, std::span<const NDArray* const> operands, std::int64_t n,
                  int axis, std::int64_t inner) {
  const NDArray& x = *operands[0];
  const Elem compute_elem = kernel_elem(x.elem());
  const std::int64_t bytes = elem_bytes(compute_elem);
  const std::int64_t fit = kBlockBytes / static_cast<std::int64_t>(operands.size()) / bytes / n;
  const std::int64_t most = std::clamp(fit / 16 * 16, kNarrowBlock, kWideBlock);
  // Of few columns several slabs are one block.
  const std::int64_t outer = x.size() / n / inner,
                     slabs = std::clamp<std::int64_t>(most / inner, 1, outer);
  const std::int64_t width = std::min(inner * slabs, most);
  const std::int64_t blocks = slabs > 1 ? 1 : (inner + width - 1) / width;
  NDArray in[2];
  for (std::size_t k = 0; k < operands.size(); ++k) in[k] = operands[k]->contiguous();
  // One row of a block is left, or all of them.
  const std::int64_t left = kind == RowKernel::logsumexp ? 1 : n;
  Dims shape = x.shape();
  shape[axis] = left;
  const NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  runtime::Pool::shared().parallel_for(
      (outer + slabs - 1) / slabs * blocks,
      std::max<std::int64_t>(1, kParallelGrain / 4 / (n * width)),
      [&](std::int64_t begin, std::int64_t end) {
        ColumnBlock first(x, compute_elem, n, width, inner);
        std::optional<ColumnBlock> second;
        if (operands.size() > 1) second.emplace(x, compute_elem, n, width, inner);
        const NDArray numbers = NDArray::empty(x.device(), compute_elem,
                                               Dims{3 * width + 2 * std::max(width, kCallRun)});
        const auto room = [&](std::int64_t at) { return numbers.host() + at * bytes; };
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t column = task % blocks * width;
          const std::int64_t slab = task / blocks * slabs, now = std::min(slabs, outer - slab);
          const std::int64_t at = slab * n * inner + column, run = std::min(width, inner - column);
          const ColumnSteps steps{static_cast<int>(compute_elem), run * now};
          first.bring(in[0], at, run, now);
          if (second) second->bring(in[1], at, run, now);
          compute_block(kind, steps, first, second ? &*second : nullptr, n,
                        {room(0), room(width), room(2 * width), room(3 * width),
                         room(3 * width + std::max(width, kCallRun))});
          first.put(out, slab * left * inner + column, left);
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
  if (kind == RowKernel::layer_norm || kind == RowKernel::layer_norm_gradient) return std::nullopt;
  const NDArray& x = *operands[0];
  for (const NDArray* a : operands) {
    if (!a->on_host() || !is_real_float(a->elem()) || a->elem() != x.elem() ||
        !(a->shape() == x.shape()))
      return std::nullopt;
  }
  const int last = x.ndim() - 1, axis = x.size() > 0 ? nearest_axis(x) : last;
  const std::int64_t n = x.shape()[last];
  NDArray turned[2];
  const NDArray* in[2];
  if (axis == last) {
    if (n > kShortRow || n < 2 || x.size() < n * kNarrowBlock) return std::nullopt;
    const std::int64_t rows = x.size() / n;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      turned[k] = operands[k]->reshape(Dims{rows, n}).transpose(0, 1);
      in[k] = &turned[k];
    }
    const NDArray out = by_blocks(kind, {in, operands.size()}, n, 0, rows).transpose(0, 1);
    Dims shape = x.shape();
    shape[last] = out.shape()[1];
    return out.contiguous().reshape(shape);
  }
  for (std::size_t k = 0; k < operands.size(); ++k) {
    turned[k] = operands[k]->transpose(axis, last);
    in[k] = &turned[k];
  }
  std::int64_t inner = 1;
  for (int i = axis + 1; i <= last; ++i) inner *= turned[0].shape()[i];
  if (inner < kShortestRun || x.size() / n < kFewestColumns) return std::nullopt;
  return by_blocks(kind, {in, operands.size()}, n, axis, inner).transpose(axis, last);
}

}  // namespace weft
