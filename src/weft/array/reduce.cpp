// SPDX-License-Identifier: Apache-2.0
// Reductions. The order of combination depends on shape and layout alone, never on the
// number of threads: long runs are cut at fixed places and the parts joined in order, pairwise.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include "weft/array/complex_order.h"
#include "weft/array/extreme_of_numbers.h"
#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/elements/rows.h"
#include "weft/host/kernel_lists.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;
constexpr ReduceInfo kInfo[] = {
#define REDUCE(name, rule, types, value, identity, sentence) \
  {#name, Rule::rule, types, std::string_view(#identity) != "none", sentence},
#include "weft/elements/reduce.def"
#undef REDUCE
};
constexpr std::string_view kIdentity[] = {
#define REDUCE(name, rule, types, value, identity, sentence) #identity,
#include "weft/elements/reduce.def"
#undef REDUCE
};

Elem accumulate_elem(ReduceOp op, Elem e, std::optional<Elem> dtype) {
  const ReduceInfo& row = info(op);
  if (row.rule == Rule::boolean) return Elem::boolean;
  if (dtype) return *dtype;
  if (row.rule == Rule::widen) {
    if (e == Elem::boolean || is_signed_int(e)) return Elem::int64;
    if (is_unsigned_int(e)) return Elem::uint64;
  }
  return e;
}

void need_type(const ReduceInfo& row, Elem e) {
  int bit = e == Elem::boolean   ? B
            : is_signed_int(e)   ? I
            : is_unsigned_int(e) ? U
            : is_complex(e)      ? C
                                 : F;
  if (row.types & bit) return;
  throw Error(ErrorKind::dtype, cat("array.", row.name, ".dtype"),
              cat(row.name, " is not defined for ", name_of(e)));
}

/// Elements of a nest as a stream of kernel-typed chunks.
class Stream {
 public:
  /// `cast`: to the kernel's type; null where the elements are what the kernel reads.
  Stream(const Nest& nest, CastFn cast, std::int64_t begin)
      : walker_(nest),
        base_(nest.base),
        direct_(nest.contiguous()),
        bytes_(nest.bytes),
        at_(begin),
        cast_(cast) {
    if (!direct_) walker_.seek(begin);
  }
  const void* next(std::int64_t n) {
    const char* in = base_ + at_ * bytes_;
    at_ += n;
    if (!direct_) {
      walker_.gather(n, raw_.data);
      in = raw_.data;
    }
    if (!cast_) return in;
    cast_(n, in, cooked_.data);
    return cooked_.data;
  }
  bool free() const { return direct_ && !cast_; }

 private:
  Walker walker_;
  const char* base_;
  bool direct_;
  int bytes_;
  std::int64_t at_;
  CastFn cast_;
  Slot raw_, cooked_;
};

struct Split {
  Dims kept_shape, kept_strides, gone_shape, gone_strides;
};

/// Reduced axes in the order of memory, so that those of any permutation are walked as one.
Split split_axes(const NDArray& x, std::uint64_t mask) {
  Split s;
  std::vector<int> gone;
  for (int i = 0; i < x.ndim(); ++i) {
    if (mask >> i & 1) {
      gone.push_back(i);
      continue;
    }
    s.kept_shape.push_back(x.shape()[i]);
    s.kept_strides.push_back(x.strides()[i]);
  }
  std::stable_sort(gone.begin(), gone.end(), [&](int a, int b) {
    return std::abs(x.strides()[a]) > std::abs(x.strides()[b]);
  });
  for (int i : gone) {
    s.gone_shape.push_back(x.shape()[i]);
    s.gone_strides.push_back(x.strides()[i]);
  }
  return s;
}

std::int64_t product(const Dims& dims) {
  std::int64_t p = 1;
  for (std::int64_t d : dims) p *= d;
  return p;
}

/// Combines n > 0 elements of `nest` from `begin` on; `acc` is written. Cut at kPart, joined
/// pairwise.
constexpr std::int64_t kPart = 4096;
struct Combine {
  ReduceFn reduce;
  ReduceFourFn reduce_four;  // null for complex numbers
  AccumulateFn join;         // of two results
  std::optional<bool> ends;  // the truth value after which nothing changes
  CastFn cast = nullptr;     // of elements to what is reduced; null: they are it
};
/// Truth values up to the first that decides.
void any_of(std::int64_t n, const void* in, void* out) {
  *static_cast<bool*>(out) = std::memchr(in, 1, static_cast<std::size_t>(n)) != nullptr;
}
void all_of(std::int64_t n, const void* in, void* out) {
  *static_cast<bool*>(out) = std::memchr(in, 0, static_cast<std::size_t>(n)) == nullptr;
}
void reduce_run(const Nest& nest, Elem kernel, const Combine& fn, std::int64_t begin,
                std::int64_t n, void* acc) {
  if ((n <= kPart || fn.ends) && !fn.cast && nest.contiguous()) {
    return fn.reduce(n, nest.base + begin * nest.bytes, acc);
  }
  const auto bytes = static_cast<std::size_t>(elem_bytes(kernel));
  // A binary counter of partial results: level l holds a sum of 2^l parts.
  alignas(16) char levels[48][16];
  std::int64_t parts = 0;
  auto add = [&](char* part) {
    int level = 0;
    for (std::int64_t p = parts; p & 1; p >>= 1, ++level) {
      alignas(16) char joined[16];
      std::memcpy(joined, levels[level], bytes);
      fn.join(1, part, joined);
      std::memcpy(part, joined, bytes);
    }
    std::memcpy(levels[level], part, bytes);
    ++parts;
  };
  std::int64_t at = 0;
  if (fn.reduce_four && !fn.cast && nest.contiguous()) {
    for (; at + 4 * kPart <= n; at += 4 * kPart) {
      const void* rows[4];
      for (int k = 0; k < 4; ++k) rows[k] = nest.base + (begin + at + k * kPart) * nest.bytes;
      alignas(16) char four[4 * 16];
      fn.reduce_four(kPart, rows, four);
      for (std::size_t k = 0; k < 4; ++k) {
        alignas(16) char part[16];
        std::memcpy(part, four + k * bytes, bytes);
        add(part);
      }
    }
  }
  if (at < n) {
    Stream stream(nest, fn.cast, begin + at);
    for (; at < n; at += kPart) {
      std::int64_t m = std::min(kPart, n - at);
      alignas(16) char part[16], piece[16];
      for (std::int64_t done = 0; done < m;) {
        std::int64_t c = stream.free() ? m : std::min(kChunk, m - done);
        fn.reduce(c, stream.next(c), done ? piece : part);
        if (done) fn.join(1, piece, part);
        done += c;
      }
      if (fn.ends && (part[0] != 0) == *fn.ends) {
        std::memcpy(acc, part, bytes);
        return;
      }
      add(part);
    }
  }
  bool first = true;
  for (int level = 47; level >= 0; --level) {
    if (!(parts >> level & 1)) continue;
    if (first) {
      std::memcpy(acc, levels[level], bytes);
      first = false;
    } else {
      fn.join(1, levels[level], acc);
    }
  }
}

/// Rows of fewer bytes, which fill less than two rounds of a kernel's running results, are reduced
/// four at a time; of longer ones memory is read faster as one stream than as four.
constexpr std::int64_t kShortSum = 256, kShortExtreme = 512;

/// out[k] of rows of n elements, `step` bytes apart, four at a time; the last four may overlap
/// those before, so that every row is combined in one order.
void reduce_fours(const char* base, std::int64_t step, std::int64_t rows, std::int64_t n,
                  ReduceFourFn fn, char* out, int bytes) {
  const std::int64_t fours = (rows + 3) / 4;
  const std::int64_t grain = std::max<std::int64_t>(1, kParallelGrain / (4 * n));
  runtime::Pool::shared().parallel_for(fours, grain, [&](std::int64_t f, std::int64_t end) {
    for (; f < end; ++f) {
      const std::int64_t first = std::min(f * 4, rows - 4), skip = f * 4 - first;
      const void* in[4];
      for (int k = 0; k < 4; ++k) in[k] = base + (first + k) * step;
      alignas(16) char four[4 * 16];
      fn(n, in, four);
      std::memcpy(out + f * 4 * bytes, four + skip * bytes,
                  static_cast<std::size_t>((4 - skip) * bytes));
    }
  });
}

/// out[k] of adjacent rows of n elements of another type: some rows are converted at once.
void reduce_converted(const char* base, int in_bytes, std::int64_t rows, std::int64_t n,
                      const Combine& fn, char* out, int bytes) {
  const std::int64_t most = std::max<std::int64_t>(1, kPart / n);
  const std::int64_t blocks = (rows + most - 1) / most;
  runtime::Pool::shared().parallel_for(
      blocks, std::max<std::int64_t>(1, kParallelGrain / kPart),
      [&](std::int64_t b, std::int64_t end) {
        alignas(64) char converted[kPart * 16];
        for (; b < end; ++b) {
          const std::int64_t first = b * most, count = std::min(most, rows - first);
          fn.cast(count * n, base + first * n * in_bytes, converted);
          char* to = out + first * bytes;
          if (fn.reduce_four && count >= 4) {
            reduce_fours(converted, n * bytes, count, n, fn.reduce_four, to, bytes);
            continue;
          }
          for (std::int64_t k = 0; k < count; ++k)
            fn.reduce(n, converted + k * n * bytes, to + k * bytes);
        }
      });
}

void write_identity(ReduceOp op, Elem kernel, void* out) {
  write_scalar(Scalar(kIdentity[row_of(op)] == "one" ? 1 : 0), kernel, out);
}

/// Starts of rows, one after the other.
class RowWalk {
 public:
  RowWalk(const Nest& steps, char* base, std::int64_t from) : steps_(&steps), base_(base) {
    for (int i = steps.ndim - 1; i >= 0; --i) {
      count_[i] = from % steps.shape[i];
      from /= steps.shape[i];
      offset_ += count_[i] * steps.stride[i];
    }
  }
  char* next() {
    char* row = base_ + offset_;
    for (int i = steps_->ndim - 1; i >= 0; --i) {
      offset_ += steps_->stride[i];
      if (++count_[i] < steps_->shape[i]) break;
      offset_ -= steps_->stride[i] * steps_->shape[i];
      count_[i] = 0;
    }
    return row;
  }

 private:
  const Nest* steps_;
  char* base_;
  std::int64_t count_[kMaxDims];  // of the axes there are
  std::int64_t offset_ = 0;
};

/// Adjacent elements that are worth a run of their own, where few rows are joined and where many
/// are, or where there are few elements, which are joined before memory for gathering is found.
constexpr std::int64_t kLeastRun = 32, kLeastLongRun = 8, kManyRows = 16, kFewElements = 4096;

/// Kept axes innermost: whole rows are accumulated, for each place of the kept axes before a
/// reduced one. Many rows of few columns are cut into parts that threads share; the cut depends on
/// the shape alone.
void reduce_rows(const Split& s, const NDArray& x, Elem kernel, const Combine& combine, FoldFn fold,
                 char* out) {
  const AccumulateFn fn = combine.join;
  const std::int64_t kept = product(s.kept_shape), gone = product(s.gone_shape);
  const int bytes = elem_bytes(kernel), in_bytes = elem_bytes(x.elem());
  const Nest steps = make_nest(x.host(), s.gone_shape, s.gone_strides, in_bytes);
  Nest first = make_nest(x.host(), s.kept_shape, s.kept_strides, in_bytes), places;
  std::int64_t run = kept;
  if (const int last = first.ndim - 1;
      last > 0 && first.stride[last] == in_bytes &&
      first.shape[last] >=
          (gone < kManyRows && kept * gone > kFewElements ? kLeastRun : kLeastLongRun)) {
    places = first;
    places.ndim = last;
    run = first.shape[last];
    first.shape[0] = run, first.stride[0] = in_bytes, first.ndim = 1;
  }
  const bool direct = first.contiguous() && !combine.cast;
  const CastFn cast = first.contiguous() ? combine.cast : nullptr;
  // What is accumulated and what is read stay in the first cache together.
  const std::int64_t width = direct ? 16 * kChunk / bytes : kChunk,
                     cuts = (run + width - 1) / width, chunks = kept / run * cuts;
  const std::int64_t parts =
      chunks >= 16 || kept * gone < 4 * kParallelGrain
          ? 1
          : std::clamp<std::int64_t>(gone / 64, 1, std::max<std::int64_t>(1, 32 / chunks));
  std::string partial(parts > 1 ? static_cast<std::size_t>((parts - 1) * kept * bytes) : 0, '\0');
  auto accumulate = [&](std::int64_t part, std::int64_t chunk) {
    const std::int64_t begin = gone * part / parts, end = gone * (part + 1) / parts;
    const std::int64_t place = chunk / cuts, at = chunk % cuts * width;
    const std::int64_t n = std::min(width, run - at);
    char* origin = RowWalk(places, x.host(), place).next();
    char* acc = (part ? &partial[static_cast<std::size_t>((part - 1) * kept * bytes)] : out) +
                (place * run + at) * bytes;
    std::unique_ptr<Stream> stream;  // an optional would set its 34 KB to zero each time
    Slot converted[4];
    auto element = [&](char* base, int k = 0) -> const void* {
      if (direct) return base + at * in_bytes;
      if (cast) {
        cast(n, base + at * in_bytes, converted[k].data);
        return converted[k].data;
      }
      Nest row = first;
      row.base = base;
      stream = std::make_unique<Stream>(row, combine.cast, at);
      return stream->next(n);
    };
    RowWalk one(steps, origin, begin);
    std::memcpy(acc, element(one.next()), static_cast<std::size_t>(n * bytes));
    std::int64_t r = begin + 1;
    // Four rows at a time, what is accumulated is read and written a quarter as often; a quarter of
    // the rows apart, each is a stream that goes on where its last row ended.
    if (const std::int64_t quarter = (direct || cast) && fold ? (end - r) / 4 : 0) {
      RowWalk walks[4] = {{steps, origin, r},
                          {steps, origin, r + quarter},
                          {steps, origin, r + 2 * quarter},
                          {steps, origin, r + 3 * quarter}};
      for (std::int64_t i = 0; i < quarter; ++i) {
        const void* rows[4];
        for (int k = 0; k < 4; ++k) rows[k] = element(walks[k].next(), k);
        fold(n, rows, acc);
      }
      r += 4 * quarter;
      one = RowWalk(steps, origin, r);
    }
    for (; r < end; ++r) fn(n, element(one.next()), acc);
  };
  const std::int64_t tasks = parts * chunks;
  const std::int64_t grain = std::clamp<std::int64_t>(
      kParallelGrain * tasks / std::max<std::int64_t>(kept * gone, 1), 1, tasks);
  runtime::Pool::shared().parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) accumulate(begin / chunks, begin % chunks);
  });
  for (std::int64_t part = 1; part < parts; ++part)
    fn(kept, &partial[static_cast<std::size_t>((part - 1) * kept * bytes)], out);
}

/// x with one element along each axis that repeats it, where the result can be had from it: equal
/// elements have an extreme or a truth value of one, a sum of one times their number, and results
/// along a repeated kept axis repeat. Undefined where there is no such axis.
struct Repeats {
  NDArray x;
  std::int64_t times = 1;  // a sum is to be multiplied by
};
Repeats without_repeats(ReduceOp op, const NDArray& x, std::uint64_t mask, Elem kernel) {
  Repeats out;
  if (x.size() == 0 || !x.on_host()) return out;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.strides()[i] != 0 || x.shape()[i] < 2) continue;
    if (mask >> i & 1) {
      const bool exact = is_real_float(kernel) || elem_bytes(kernel) == 8;
      if (op == ReduceOp::prod || (op == ReduceOp::sum && (is_complex(kernel) || !exact))) continue;
      if (op == ReduceOp::sum) out.times *= x.shape()[i];
    }
    out.x = (out.x.defined() ? out.x : x).slice(i, 0, 1, 1);
  }
  return out;
}

/// The same elements with reduced axes that run backwards in memory turned round: only rounding
/// depends on their order.
NDArray forwards(const NDArray& x, std::uint64_t mask) {
  Dims steps = x.strides();
  std::int64_t offset = x.offset();
  for (int i = 0; i < x.ndim(); ++i) {
    if (!(mask >> i & 1) || steps[i] >= 0) continue;
    offset += steps[i] * (x.shape()[i] - 1);
    steps[i] = -steps[i];
  }
  return x.as_strided(x.shape(), steps, offset);
}

/// Of reduced axes that are not one run in memory those of the innermost run, where it is long
/// enough for a pass of its own; 0 otherwise.
std::uint64_t inner_axes(const NDArray& x, std::uint64_t mask) {
  constexpr std::int64_t kLeast = 16;
  std::uint64_t inner = 0;
  std::int64_t run = 1;
  for (bool grows = true; grows;) {
    grows = false;
    for (int i = 0; i < x.ndim(); ++i) {
      if (!(mask >> i & 1) || (inner >> i & 1) || x.shape()[i] == 1 || x.strides()[i] != run)
        continue;
      inner |= std::uint64_t{1} << i;
      run *= x.shape()[i];
      grows = true;
    }
  }
  std::uint64_t rest = 0;
  for (int i = 0; i < x.ndim(); ++i)
    if (mask >> i & 1 && !(inner >> i & 1) && x.shape()[i] > 1) rest |= std::uint64_t{1} << i;
  return run >= kLeast && rest ? inner : 0;
}

/// Does a kept axis run backwards in memory?
bool kept_backwards(const NDArray& x, std::uint64_t mask) {
  for (int i = 0; i < x.ndim(); ++i)
    if (!(mask >> i & 1) && x.strides()[i] < 0 && x.shape()[i] > 1) return true;
  return false;
}

/// An array with the axes of x turned round that run backwards in it.
/// It may lack the reduced axes.
NDArray turned_round(const NDArray& array, const NDArray& x, std::uint64_t mask) {
  NDArray out = array;
  for (int i = 0, at = 0; i < x.ndim(); ++i) {
    const bool kept = !(mask >> i & 1);
    if (kept && x.strides()[i] < 0 && x.shape()[i] > 1)
      out = out.slice(at, x.shape()[i] - 1, x.shape()[i], -1);
    if (kept || array.ndim() == x.ndim()) ++at;
  }
  return out;
}

/// The elements without gaps, axes in the same order in memory: rows of a copy are read by vectors,
/// and copying costs less than a walk from element to element.
NDArray without_gaps(const NDArray& x) {
  std::vector<int> order(static_cast<std::size_t>(x.ndim()));
  for (int i = 0; i < x.ndim(); ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::abs(x.strides()[a]) > std::abs(x.strides()[b]);
  });
  Dims shape, from, to = x.strides();
  std::int64_t step = 1;
  for (int i : order) shape.push_back(x.shape()[i]), from.push_back(x.strides()[i]);
  for (auto i = order.rbegin(); i != order.rend(); step *= x.shape()[*i++]) to[*i] = step;
  return x.as_strided(shape, from, x.offset()).copy().as_strided(x.shape(), to, 0);
}

/// Fewer elements are walked.
constexpr std::int64_t kGapped = 256;

/// Has every axis gaps between its elements, or does it run backwards?
bool gaps_everywhere(const NDArray& x) {
  for (int i = 0; i < x.ndim(); ++i)
    if (x.shape()[i] > 1 && std::abs(x.strides()[i]) <= 1) return false;
  return true;
}

void reduce_on_host(ReduceOp op, const NDArray& x, std::uint64_t mask, Elem kernel, CastFn prepare,
                    const NDArray& out);

/// The same of elements with gaps, a part of the outermost axis in memory at a time.
void reduce_with_gaps(ReduceOp op, const NDArray& x, std::uint64_t mask, Elem kernel,
                      CastFn prepare, const NDArray& out) {
  constexpr std::int64_t kMost = 1 << 16;
  int outer = 0, first_kept = -1;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.shape()[i] > 1 &&
        (x.shape()[outer] == 1 || std::abs(x.strides()[i]) > std::abs(x.strides()[outer])))
      outer = i;
    if (first_kept < 0 && !(mask >> i & 1) && x.shape()[i] > 1) first_kept = i;
  }
  const bool gone = mask >> outer & 1;
  const std::int64_t extent = x.shape()[outer], each = x.size() / extent;
  if (x.size() <= kMost || each > kMost || (!gone && outer != first_kept))
    return reduce_on_host(op, without_gaps(x), mask, kernel, prepare, out);
  const std::int64_t step = kMost / each;
  const AccumulateFn join = kernels().accumulate[static_cast<int>(op)][static_cast<int>(kernel)];
  const NDArray rest = gone ? NDArray::empty(x.device(), kernel, out.shape()) : out;
  const NDArray flat = rest.reshape(Dims{rest.size()});
  for (std::int64_t at = 0; at < extent; at += step) {
    const std::int64_t n = std::min(step, extent - at);
    const NDArray part = without_gaps(x.slice(outer, at, n, 1));
    if (!gone) {
      const std::int64_t of_one = out.size() / extent;
      reduce_on_host(op, part, mask, kernel, prepare, flat.slice(0, at * of_one, n * of_one, 1));
      continue;
    }
    reduce_on_host(op, part, mask, kernel, prepare, at ? rest : out);
    if (at) join(out.size(), rest.host(), out.host());
  }
}

/// out, of the kernel's type, from elements of a type that `prepare` or the table of conversions
/// brings to it.
void reduce_on_host(ReduceOp op, const NDArray& x, std::uint64_t mask, Elem kernel, CastFn prepare,
                    const NDArray& out) {
  for (int i = 0; i < x.ndim() && x.size() > 0; ++i) {
    if (mask >> i & 1 && x.strides()[i] < 0 && x.shape()[i] > 1)
      return reduce_on_host(op, forwards(x, mask), mask, kernel, prepare, out);
  }
  if (x.size() >= kGapped && kept_backwards(x, mask)) {
    const NDArray back = NDArray::empty(x.device(), kernel, out.shape());
    reduce_on_host(op, turned_round(x, x, mask), mask, kernel, prepare, back);
    return assign(out, turned_round(back, x, mask));
  }
  if (x.size() >= kGapped && gaps_everywhere(x))
    return reduce_with_gaps(op, x, mask, kernel, prepare, out);
  if (const std::uint64_t inner = x.size() >= kPart ? inner_axes(x, mask) : 0) {
    Dims shape = x.shape();
    for (int i = 0; i < x.ndim(); ++i)
      if (inner >> i & 1) shape[i] = 1;
    const NDArray few = NDArray::empty(x.device(), kernel, shape);
    reduce_on_host(op, x, inner, kernel, prepare, few);
    return reduce_on_host(op, few, mask & ~inner, kernel, nullptr, out);
  }
  const auto o = static_cast<int>(op), e = static_cast<int>(kernel);
  Combine fn = {kernels().reduce[o][e], kernels().reduce_four[o][e], kernels().accumulate[o][e],
                std::nullopt, prepare};
  if (!prepare && x.elem() != kernel) fn.cast = kernels().cast[static_cast<int>(x.elem())][e];
  if (out.size() == 1 && x.size() > 0 && x.size() <= kPart && !fn.cast && x.is_contiguous()) {
    return fn.reduce(x.size(), x.host(), out.host());
  }
  const ReduceInfo& row = info(op);
  Split s = split_axes(x, mask);
  const std::int64_t gone = product(s.gone_shape), kept = out.size();
  const int bytes = elem_bytes(kernel);
  if (row.rule == Rule::boolean && gone >= 64)
    fn = {op == ReduceOp::any ? any_of : all_of, nullptr, fn.join, op == ReduceOp::any, fn.cast};
  if (kept == 0) return;
  if (gone == 0) {
    if (!row.has_identity) {
      throw Error(
          ErrorKind::value, cat("array.", row.name, ".empty"),
          cat(row.name, " of no elements: shape ", to_string(x.shape()), " has an empty axis"));
    }
    alignas(16) char one[16];
    write_identity(op, kernel, one);
    for (std::int64_t i = 0; i < kept; ++i)
      std::memcpy(out.host() + i * bytes, one, static_cast<std::size_t>(bytes));
    return;
  }
  // Which axis has the smallest step? Runs along a reduced axis are reduced, along a kept one
  // accumulated.
  std::int64_t kept_step = INT64_MAX, gone_step = INT64_MAX;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.shape()[i] == 1) continue;
    std::int64_t step = std::abs(x.strides()[i]);
    std::int64_t& least = mask >> i & 1 ? gone_step : kept_step;
    least = std::min(least, step);
  }
  // Few elements to each of many results, such as windows: a run would be shorter than its call.
  const Nest gone_nest = make_nest(x.host(), s.gone_shape, s.gone_strides, elem_bytes(x.elem()));
  const bool short_runs = kept >= kChunk && gone <= 64 && !gone_nest.contiguous();
  if ((kept_step < gone_step && kept >= 8) || short_runs) {
    reduce_rows(s, x, kernel, fn, kernels().fold[o][e], out.host());
    return;
  }
  Nest kept_nest = make_nest(x.host(), s.kept_shape, s.kept_strides, elem_bytes(x.elem()));
  auto origin = [&](std::int64_t k) {
    char* at = kept_nest.base;
    for (int i = kept_nest.ndim - 1; i >= 0; --i) {
      at += k % kept_nest.shape[i] * kept_nest.stride[i];
      k /= kept_nest.shape[i];
    }
    return at;
  };
  constexpr std::int64_t kBlock = kPart * 64;  // fixed cut of one long reduction among threads
  if (kept <= 4 && gone > 2 * kBlock) {
    const std::int64_t blocks = (gone + kBlock - 1) / kBlock;
    std::string partial(static_cast<std::size_t>(blocks * bytes), '\0');
    Combine results = fn;
    results.cast = nullptr;
    for (std::int64_t k = 0; k < kept; ++k) {
      Nest nest = make_nest(origin(k), s.gone_shape, s.gone_strides, elem_bytes(x.elem()));
      runtime::Pool::shared().parallel_for(blocks, 1, [&](std::int64_t b, std::int64_t b_end) {
        for (; b < b_end; ++b) {
          reduce_run(nest, kernel, fn, b * kBlock, std::min(kBlock, gone - b * kBlock),
                     &partial[static_cast<std::size_t>(b * bytes)]);
        }
      });
      Nest joined;
      joined.base = partial.data();
      joined.ndim = 1;
      joined.bytes = bytes;
      joined.shape[0] = blocks;
      joined.stride[0] = bytes;
      reduce_run(joined, kernel, results, 0, blocks, out.host() + k * bytes);
    }
  } else {
    std::int64_t grain = std::max<std::int64_t>(1, kParallelGrain / gone);
    const Nest run = make_nest(x.host(), s.gone_shape, s.gone_strides, elem_bytes(x.elem()));
    if (gone <= kPart && !fn.cast && run.contiguous() && kept_nest.ndim <= 1) {
      const std::int64_t step = kept_nest.ndim ? kept_nest.stride[0] : 0;
      const bool adds = op == ReduceOp::sum || op == ReduceOp::prod;
      const bool brief = gone * bytes < (adds ? kShortSum : kShortExtreme);
      if (fn.reduce_four && kept >= 4 && brief) {
        reduce_fours(kept_nest.base, step, kept, gone, fn.reduce_four, out.host(), bytes);
        return;
      }
      runtime::Pool::shared().parallel_for(kept, grain, [&](std::int64_t k, std::int64_t end) {
        for (; k < end; ++k) fn.reduce(gone, kept_nest.base + k * step, out.host() + k * bytes);
      });
      return;
    }
    if (gone <= kPart / 2 && fn.cast && run.contiguous() && kept_nest.ndim == 1 &&
        kept_nest.stride[0] == gone * kept_nest.bytes) {
      reduce_converted(kept_nest.base, kept_nest.bytes, kept, gone, fn, out.host(), bytes);
      return;
    }
    runtime::Pool::shared().parallel_for(kept, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        Nest nest = run;
        nest.base = origin(k);
        reduce_run(nest, kernel, fn, 0, gone, out.host() + k * bytes);
      }
    });
  }
}

/// The axes as bits.
std::uint64_t mask_of(const Axes& axes, int ndim, std::string_view name) {
  if (axes.all) return ndim == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ndim) - 1;
  std::uint64_t mask = 0;
  for (std::int64_t axis : axes.axes) {
    const int a = normalize_axis(static_cast<int>(axis), ndim, name);
    if (mask >> a & 1) {
      throw Error(ErrorKind::value, cat("array.", name, ".repeated"),
                  cat(name, " names axis ", a, " twice"));
    }
    mask |= std::uint64_t{1} << a;
  }
  return mask;
}

Dims reduced_shape(const NDArray& x, std::uint64_t mask, bool keepdims) {
  Dims shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (!(mask >> i & 1)) shape.push_back(x.shape()[i]);
    else if (keepdims) shape.push_back(1);
  }
  return shape;
}

/// Elements with an infinity in place of NaN.
template <bool largest, Elem e>
void without_nan(std::int64_t n, const void* in, void* out) {
  using T = std::conditional_t<e == Elem::float64, double, float>;
  constexpr T kNothing = std::numeric_limits<T>::infinity() * (largest ? -1 : 1);
  const void* both[2] = {in, &kNothing};
  one_kernel(1, op_of(Row::replace_nan), e)(n, both, out);
}

}  // namespace

NDArray extreme_of_numbers(bool largest, const NDArray& x, const Axes& axes, bool keepdims) {
  const ReduceOp op = largest ? ReduceOp::max : ReduceOp::min;
  const std::uint64_t mask = mask_of(axes, x.ndim(), info(op).name);
  const NDArray out = NDArray::empty(x.device(), x.elem(), reduced_shape(x, mask, keepdims));
  const bool wide = x.elem() == Elem::float64;
  const CastFn prepare =
      largest ? wide ? without_nan<true, Elem::float64> : without_nan<true, Elem::float32>
      : wide ? without_nan<false, Elem::float64>
              : without_nan<false, Elem::float32>;
  reduce_on_host(op, x, mask, x.elem(), prepare, out);
  return out;
}

int reduce_op_count() { return kReduceOps; }
const ReduceInfo& info(ReduceOp op) { return kInfo[row_of(op)]; }

Elem reduced_elem(ReduceOp op, Elem x, std::optional<Elem> dtype) {
  Elem e = accumulate_elem(op, x, dtype);
  need_type(info(op), e);
  return e;
}

NDArray reduce(ReduceOp op, const NDArray& x, const Axes& axes, bool keepdims,
               std::optional<Elem> dtype) {
  // The extremes of truth values are found as soon as one decides.
  if (x.elem() == Elem::boolean && x.size() > 0 && !dtype && x.on_host() &&
      (op == ReduceOp::max || op == ReduceOp::min))
    return reduce(op == ReduceOp::max ? ReduceOp::any : ReduceOp::all, x, axes, keepdims);
  const ReduceInfo& row = info(op);
  const std::uint64_t mask = mask_of(axes, x.ndim(), row.name);
  Elem acc = accumulate_elem(op, x.elem(), dtype);
  if (is_complex(acc) && (op == ReduceOp::max || op == ReduceOp::min))
    return complex_extreme(op == ReduceOp::max, x.elem() == acc ? x : x.astype(acc), mask,
                           keepdims);
  need_type(row, acc);
  Elem kernel = kernel_elem(acc);
  const Dims shape = reduced_shape(x, mask, keepdims);
  if (Repeats once = without_repeats(op, x, mask, kernel); once.x.defined()) {
    const Elem wide = info(op).rule == Rule::boolean ? Elem::boolean : kernel;
    NDArray few = reduce(op, once.x, axes, keepdims,
                         wide == Elem::boolean ? std::nullopt : std::optional<Elem>(wide));
    if (once.times > 1) few = apply(Op::multiply, few, Scalar(once.times));
    if (few.elem() != acc) few = few.astype(acc);
    return few.shape() == shape ? few : few.broadcast_to(shape).copy();
  }
  // Programs of grids convert their results themselves.
  const bool converts = has_grid(x) && !is_complex(kernel) && !is_complex(acc);
  NDArray out = NDArray::empty(x.device(), converts ? acc : kernel, shape);
  if (!x.on_host()) {
    if (x.size() == 0 && out.size() > 0) {
      if (!row.has_identity) {
        throw Error(
            ErrorKind::value, cat("array.", row.name, ".empty"),
            cat(row.name, " of no elements: shape ", to_string(x.shape()), " has an empty axis"));
      }
      return full(x.device(), acc, shape, Scalar(kIdentity[row_of(op)] == "one" ? 1 : 0));
    }
    if (out.size() > 0) on_device().reduce(op, kernel, out, x, mask);
    return out.elem() == acc ? out : out.astype(acc);
  }
  reduce_on_host(op, x, mask, kernel, nullptr, out);
  return acc == kernel ? out : out.astype(acc);
}

}  // namespace weft
