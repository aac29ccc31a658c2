// SPDX-License-Identifier: Apache-2.0
#include "weft/array/bits.h"

#include <algorithm>
#include <vector>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/array/pad.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Without gaps, and where words of eight bytes may be read.
NDArray in_words(const NDArray& x) {
  if (!x.is_contiguous()) return x.contiguous();
  return reinterpret_cast<std::uintptr_t>(x.host()) % 8 == 0 ? x : x.copy();
}

/// kernel(n, in, out) over n elements of so many bytes on both sides, on all threads.
void run(BitFn kernel, std::int64_t n, const NDArray& in, int in_bytes, const NDArray& out,
         int out_bytes) {
  runtime::Pool::shared().parallel_for(n, kParallelGrain, [&](std::int64_t i, std::int64_t end) {
    kernel(end - i, in.host() + i * in_bytes, out.host() + i * out_bytes);
  });
}

BitFn bit_kernel(BitKernel row, Elem e) {
  return loop_kernels().bits[static_cast<int>(row)][static_cast<int>(e)];
}

}  // namespace

NDArray packed_bits(const NDArray& x, bool highest_first) {
  const int last = x.ndim() - 1;
  Dims shape = x.shape();
  const std::int64_t more = (8 - shape[last] % 8) % 8;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(static_cast<std::size_t>(x.ndim()));
  widths.back().second = more;
  const NDArray bytes = in_words(more && x.size() ? pad(x, widths, Scalar(false)) : x);
  shape[last] = (shape[last] + more) / 8;
  const NDArray out = NDArray::empty(x.device(), Elem::uint8, shape);
  run(bit_kernel(highest_first ? BitKernel::pack_big : BitKernel::pack_little, Elem::uint8),
      out.size(), bytes, 8, out, 1);
  return out;
}

NDArray unpacked_bits(const NDArray& x, bool highest_first) {
  const NDArray bytes = x.contiguous();
  Dims shape = x.shape();
  shape[x.ndim() - 1] *= 8;
  const NDArray out = NDArray::empty(x.device(), Elem::uint8, shape);
  run(bit_kernel(highest_first ? BitKernel::unpack_big : BitKernel::unpack_little, Elem::uint8),
      x.size(), bytes, 1, out, 8);
  return out;
}

NDArray counted_bits(const NDArray& x) {
  static constexpr Elem words[] = {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64};
  const int bytes = elem_bytes(x.elem());
  const Elem e = words[width_of(bytes)];
  // The magnitude of the least number is its own word.
  NDArray sizes = is_signed_int(x.elem()) ? apply(Op::abs, Arg(x)) : x;
  const NDArray out = NDArray::empty(x.device(), Elem::uint8, x.shape());
  const BitFn kernel = bit_kernel(BitKernel::count_bits, e);
  if (bytes > 1) {
    run(kernel, x.size(), sizes.contiguous(), bytes, out, 1);
    return out;
  }
  sizes = in_words(sizes);
  const std::int64_t n = x.size() / 8, rest = x.size() % 8;
  run(kernel, n, sizes, 8, out, 8);
  alignas(8) char word[8] = {}, counts[8];
  std::copy_n(sizes.host() + n * 8, rest, word);
  kernel(1, word, counts);
  std::copy_n(counts, rest, out.host() + n * 8);
  return out;
}

std::pair<NDArray, NDArray> parts_of_floats(const NDArray& x) {
  const NDArray from = x.contiguous();
  const NDArray m = NDArray::empty(x.device(), x.elem(), x.shape()),
                e = NDArray::empty(x.device(), Elem::int32, x.shape());
  const FrexpFn kernel = loop_kernels().frexp[static_cast<int>(x.elem())];
  const int bytes = elem_bytes(x.elem());
  runtime::Pool::shared().parallel_for(
      x.size(), kParallelGrain, [&](std::int64_t i, std::int64_t end) {
        kernel(end - i, from.host() + i * bytes, m.host() + i * bytes, e.host() + i * 4);
      });
  return {m, e};
}

NDArray with_elements_of(const NDArray& x, Elem elem) {
  const std::int64_t from = elem_bytes(x.elem()), to = elem_bytes(elem);
  Dims shape = x.shape(), steps = x.strides();
  std::int64_t offset = x.offset();
  if (from != to) {
    const int last = x.ndim() - 1;
    bool whole = last >= 0 && (shape[last] <= 1 || steps[last] == 1) &&
                 shape[last] * from % to == 0 && offset * from % to == 0;
    for (int i = 0; i < last; ++i) {
      whole = whole && (shape[i] <= 1 || steps[i] * from % to == 0);
      steps[i] = steps[i] * from / to;
    }
    if (!whole) {
      throw Error(ErrorKind::shape, "array.view.size",
                  cat("a view of ", describe(x), " as ", name_of(elem), " of ", to, " bytes"))
          .note(cat("found strides ", to_string(x.strides()), " and offset ", x.offset(),
                    " in elements of ", from, " bytes"))
          .note(
              "legal: types of one size; other sizes where the last axis has no gaps and rows "
              "begin "
              "and end at whole elements of the new type");
    }
    shape[last] = shape[last] * from / to;
    steps[last] = 1;
    offset = offset * from / to;
  }
  return NDArray::make(x.handle(), elem, shape, &steps, offset);
}

}  // namespace weft
