// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <complex>
#include <cstring>

#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/host/gemm.h"
#include "weft/host/loop_kernels.h"
#include "weft/host/small_gemm.h"
#include "weft/host/tile_gemm.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Extents up to here make a small product.
constexpr std::int64_t kSmallest = 8;

/// Types without a blocked kernel, by size: multiples of B's rows, which are contiguous, are added
/// up, to a few rows of C at once that stay in the caches.
template <typename T>
void plain(AddProductsFn add, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
           std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row, T* c,
           std::int64_t ldc) {
  constexpr std::int64_t kRows = 8;
  // One row of C alone has nothing to keep: B's rows are read as they stand.
  const bool whole = m == 1 && runtime::Pool::shared().threads() == 1;
  const std::int64_t kept = whole ? n : 8192 / sizeof(T);
  const std::int64_t strips = (n + kept - 1) / kept, groups = (m + kRows - 1) / kRows;
  const std::int64_t work = std::min(n, kept) * std::min(m, kRows) * k;
  runtime::Pool::shared().parallel_for(
      groups * strips, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, work)),
      [&](std::int64_t at, std::int64_t end) {
        for (; at < end; ++at) {
          const std::int64_t i = at / strips * kRows, j = at % strips * kept;
          const std::int64_t rows = std::min(kRows, m - i), width = std::min(kept, n - j);
          T* out = c + i * ldc + j;
          for (std::int64_t r = 0; r < rows; ++r)
            std::memset(static_cast<void*>(out + r * ldc), 0,
                        static_cast<std::size_t>(width) * sizeof(T));
          for (std::int64_t p = 0; p < k; ++p) {
            for (std::int64_t r = 0; r < rows; ++r)
              add(width, a + (i + r) * a_row + p * a_col, b + p * b_row + j, out + r * ldc);
          }
        }
      });
}

/// One sum of products, of types without a kernel of its own: by blocks that stay in the cache.
template <typename T>
void dot_by_blocks(Elem e, std::int64_t k, const T* a, const T* b, T* out) {
  const auto row = [&](Op op) {
    return kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)];
  };
  const ElementwiseFn multiply = row(Op::multiply), add = row(Op::add);
  const ReduceFn sum = kernels().reduce[static_cast<int>(ReduceOp::sum)][static_cast<int>(e)];
  alignas(64) T products[kChunk];
  for (std::int64_t p = 0; p < k; p += kChunk) {
    const std::int64_t n = std::min(kChunk, k - p);
    const void* in[2] = {a + p, b + p};
    multiply(n, in, products);
    T part{};
    sum(n, products, p ? &part : out);
    const void* both[2] = {out, &part};
    if (p) add(1, both, out);
  }
}

/// Products of a few numbers, for which packing costs more than multiplying.
template <typename T>
void small_product(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
                   std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
                   std::int64_t ldc) {
  T sums[kSmallest];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) sums[j] = T(0);
    for (std::int64_t p = 0; p < k; ++p) {
      const T x = a[i * a_row + p * a_col];
      const T* const row = b + p * b_row;
      if (b_col == 1) {
        for (std::int64_t j = 0; j < n; ++j) sums[j] += x * row[j];
      } else {
        for (std::int64_t j = 0; j < n; ++j) sums[j] += x * row[j * b_col];
      }
    }
    for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = sums[j];
  }
}

/// Elements of B from which on reading it in place pays for a few rows of A.
constexpr std::int64_t kThinWork = 16384;

/// A single row or column is a product with a vector.
template <typename T>
void real(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
          std::int64_t ldc) {
  if (m <= kSmallest && n <= kSmallest && k <= kSmallest)
    return small_product<T>(m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc);
  if (n == 1 && ldc == 1 && gemv<T>(m, k, a, a_row, a_col, b, b_row, c)) return;
  if (m == 1 && gemv<T>(n, k, b, b_col, b_row, a, a_col, c)) return;
  if (small_gemm<T>(m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc)) return;
  // Columns behind the last whole vector are added up one by one: of few they are too many.
  const std::int64_t lanes = vector_kernels().shape.lanes(static_cast<int>(sizeof(T)));
  if (m <= kThinRows && b_col == 1 && n >= 2 * lanes && n * k >= kThinWork)
    return thin_gemm<T>(m, n, k, a, a_row, a_col, b, b_row, c, ldc);
  // Few rows or columns by one whose own are read from end to end; of more, tiles cost less.
  constexpr std::int64_t kLeast = 64, kMost = kThinRows * 4 / static_cast<std::int64_t>(sizeof(T));
  if (m <= kMost && n >= kLeast && b_row == 1 && n * k >= kThinWork)
    return thin_dots<T>(m, n, k, a, a_row, a_col, b, b_col, c, ldc, 1);
  if (n <= kMost && m >= kLeast && a_col == 1 && m * k >= kThinWork)
    return thin_dots<T>(n, m, k, b, b_col, b_row, a, a_row, c, 1, ldc);
  // A matrix by its own transpose.
  constexpr std::int64_t kLeastGram = 33;
  if (a == b && m == n && a_row == b_col && a_col == b_row && m >= kLeastGram)
    return gram<T>(m, k, a, a_row, a_col, c, ldc);
  gemm<T>(m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc, false);
}

template <typename T>
void thin_complex(std::int64_t m, std::int64_t n, std::int64_t k, const std::complex<T>* a,
                  std::int64_t a_row, std::int64_t a_col, const std::complex<T>* b,
                  std::int64_t b_row, std::int64_t, std::complex<T>* c, std::int64_t ldc) {
  thin_complex_gemm<T>(m, n, k, reinterpret_cast<const T*>(a), a_row, a_col,
                       reinterpret_cast<const T*>(b), b_row, reinterpret_cast<T*>(c), ldc);
}

template <typename T>
void complex(std::int64_t m, std::int64_t n, std::int64_t k, const std::complex<T>* a,
             std::int64_t a_row, std::int64_t, const std::complex<T>* b, std::int64_t b_row,
             std::int64_t b_col, std::complex<T>* c, std::int64_t ldc) {
  complex_gemm<T>(m, n, k, reinterpret_cast<const T*>(a), a_row, reinterpret_cast<const T*>(b),
                  b_row, b_col, reinterpret_cast<T*>(c), ldc);
}

template <typename T, typename F>
void batches(F fn, const NDArray& a, const NDArray& b, const NDArray& out, std::int64_t m,
             std::int64_t n, std::int64_t k) {
  const int nd = out.ndim();
  Dims batch(out.shape().data(), nd - 2);
  std::int64_t count = 1;
  for (std::int64_t extent : batch) count *= extent;
  auto run = [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) {
      std::int64_t at_a = 0, at_b = 0, rest = begin;
      for (int i = nd - 3; i >= 0; --i) {
        std::int64_t x = rest % batch[i];
        rest /= batch[i];
        at_a += x * a.strides()[i];
        at_b += x * b.strides()[i];
      }
      fn(m, n, k, reinterpret_cast<const T*>(a.host()) + at_a, a.strides()[nd - 2],
         a.strides()[nd - 1], reinterpret_cast<const T*>(b.host()) + at_b, b.strides()[nd - 2],
         b.strides()[nd - 1], reinterpret_cast<T*>(out.host()) + begin * m * n, n);
    }
  };
  // Many small products are shared out whole; a few large ones are parallel inside.
  if (count >= 4 && m * n * k <= 64 * 64 * 64) {
    runtime::Pool::shared().parallel_for(
        count, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, m * n * k)), run);
  } else {
    run(0, count);
  }
}

/// fn(T{}) of a type as wide as elements of `e`.
template <typename F>
void with_width(Elem e, const F& fn) {
  switch (elem_bytes(e)) {
    case 1: return fn(std::uint8_t{});
    case 2: return fn(std::uint16_t{});
    case 4: return fn(std::uint32_t{});
    case 8: return fn(std::uint64_t{});
    default: return fn(std::complex<double>{});
  }
}

/// Rows by columns, both without gaps: one sum of k products for each entry of the batch.
void batches_of_dots(Elem kernel, const NDArray& a, const NDArray& b, const NDArray& out,
                     std::int64_t k) {
  if (is_real_float(kernel)) {
    const DotFn dot = vector_kernels().get<DotFn>(VectorKernel::dot_one, kernel);
    return with_width(kernel, [&]<typename T>(T) {
      batches<T>([dot](std::int64_t, std::int64_t, std::int64_t depth, const T* left, std::int64_t,
                       std::int64_t, const T* right, std::int64_t, std::int64_t, T* c,
                       std::int64_t) { dot(left, right, c, depth, depth); },
                 a, b, out, 1, 1, k);
    });
  }
  with_width(kernel, [&]<typename T>(T) {
    batches<T>([kernel](std::int64_t, std::int64_t, std::int64_t depth, const T* left, std::int64_t,
                        std::int64_t, const T* right, std::int64_t, std::int64_t, T* c,
                        std::int64_t) { dot_by_blocks<T>(kernel, depth, left, right, c); },
               a, b, out, 1, 1, k);
  });
}

/// The product with a vector of a matrix of 16-bit floats, without a float32 copy of the matrix.
/// False, and nothing done, for other operands.
bool narrow_vector_product(const NDArray& a, const NDArray& b, const NDArray& out) {
  if (out.ndim() != 2) return false;
  const std::int64_t m = out.shape()[0], n = out.shape()[1], k = a.shape()[1];
  if ((m > 1 && n > 1) || k < 2) return false;
  const NDArray matrix = n == 1 ? a : b.transpose(0, 1);
  if (!is_narrow_float(matrix.elem()) || elem_bytes(matrix.elem()) != 2) return false;
  const NDArray& held = n == 1 ? b : a;
  const std::int64_t step = held.strides()[n == 1 ? 0 : 1];
  if (matrix.elem() == Elem::bfloat16 && held.elem() == Elem::bfloat16 && step == 1 &&
      matrix.strides()[1] == 1 &&
      pair_gemv(m * n, k, reinterpret_cast<const std::uint16_t*>(matrix.host()),
                matrix.strides()[0], reinterpret_cast<const std::uint16_t*>(held.host()),
                reinterpret_cast<float*>(out.host())))
    return true;
  const NDArray vector = held.elem() == Elem::float32 ? held : convert(held, Elem::float32);
  return narrow_gemv(m * n, k, matrix.elem(), matrix.host(), matrix.strides()[0],
                     matrix.strides()[1], reinterpret_cast<const float*>(vector.host()),
                     vector.strides()[n == 1 ? 0 : 1], reinterpret_cast<float*>(out.host()));
}

/// out = a b, of the kernel's type and not empty, for operands that broadcast to these shapes.
void host_product(Elem kernel, NDArray a, NDArray b, const NDArray& out, const Dims& shape_a,
                  const Dims& shape_b) {
  const int last = out.ndim() - 1;
  std::int64_t m = out.shape()[last - 1], n = out.shape()[last], k = shape_a[last];
  if (kernel == Elem::float32 && narrow_vector_product(a, b, out)) return;
  if (a.elem() != kernel) a = convert(a, kernel);
  if (b.elem() != kernel) b = convert(b, kernel);
  const bool a_runs = a.strides()[a.ndim() - 1] == 1, b_runs = b.strides()[b.ndim() - 2] == 1;
  if (is_complex(kernel) && m < n && k > 1 && b_runs) {
    // B is expanded: of C' = B' A' it is the smaller operand.
    Dims turned_a = shape_a, turned_b = shape_b, turned = out.shape();
    for (Dims* shape : {&turned_a, &turned_b, &turned})
      std::swap((*shape)[last - 1], (*shape)[last]);
    const NDArray c = NDArray::empty(out.device(), kernel, turned);
    host_product(kernel, b.transpose(-1, -2), a.transpose(-1, -2), c, turned_b, turned_a);
    return assign(out, c.transpose(-1, -2));
  }
  // Sums of products: many short ones, or of types without kernels of products.
  const bool dots = m == 1 && n == 1 && a_runs && b_runs && kernel != Elem::boolean &&
                    (!is_real_float(kernel) || (out.size() > 1 && k > 0 && k <= kChunk));
  const bool vector = is_complex(kernel) && n == 1 && m > 1 && a_runs && k > 1;
  // What expanding takes has to be earned by enough rows.
  const bool thin = is_complex(kernel) && m <= 64 && m < n && b.strides()[b.ndim() - 1] == 1 &&
                    n * k >= kThinWork / 2;
  const bool blocked = is_complex(kernel) && n > 1 && !thin && (m >= 16 || (m >= 8 && n <= m));
  if (blocked && !a_runs) a = a.contiguous();
  a = a.broadcast_to(shape_a);
  b = b.broadcast_to(shape_b);
  if (dots) return batches_of_dots(kernel, a, b, out, k);
  if (kernel == Elem::float32) return batches<float>(real<float>, a, b, out, m, n, k);
  if (kernel == Elem::float64) return batches<double>(real<double>, a, b, out, m, n, k);
  if ((blocked || vector) && kernel == Elem::complex64)
    return batches<std::complex<float>>(complex<float>, a, b, out, m, n, k);
  if (blocked || vector) return batches<std::complex<double>>(complex<double>, a, b, out, m, n, k);
  if (n == 1) {  // a single column is a row of the transposed product
    std::swap(a, b);
    std::swap(m, n);
    a = a.transpose(-1, -2);
    b = b.transpose(-1, -2);
  }
  if (b.strides()[last] != 1) b = b.contiguous();
  if (thin || (is_complex(kernel) && m < 16 && n * k >= kThinWork / 2)) {
    if (kernel == Elem::complex64)
      return batches<std::complex<float>>(thin_complex<float>, a, b, out, m, n, k);
    return batches<std::complex<double>>(thin_complex<double>, a, b, out, m, n, k);
  }
  const AddProductsFn add = loop_kernels().add_products[static_cast<int>(kernel)];
  with_width(kernel, [&]<typename T>(T) {
    batches<T>(
        [add](std::int64_t height, std::int64_t width, std::int64_t depth, const T* left,
              std::int64_t row, std::int64_t column, const T* right, std::int64_t b_row,
              std::int64_t, T* c, std::int64_t ldc) {
          plain<T>(add, height, width, depth, left, row, column, right, b_row, c, ldc);
        },
        a, b, out, m, n, k);
  });
}

/// Products of two bfloat16 operands by tile registers, rounded once.
void tile_product(const NDArray& a, const NDArray& b, const NDArray& out, const Dims& shape_a,
                  const Dims& shape_b) {
  const int last = out.ndim() - 1;
  const std::int64_t m = out.shape()[last - 1], n = out.shape()[last], k = shape_a[last];
  using Word = std::uint16_t;
  batches<Word>(tile_gemm, a.broadcast_to(shape_a), b.broadcast_to(shape_b), out, m, n, k);
}

}  // namespace

NDArray matmul(const NDArray& a_in, const NDArray& b_in) {
  check_same_device(a_in, b_in, "matmul");
  auto refuse_rank = [&](const NDArray& x, const char* side) {
    if (x.ndim() > 0) return;
    throw Error(
        ErrorKind::shape, "array.matmul.rank",
        cat("matmul needs at least one dimension on either side, but the ", side, " is 0-d"))
        .help("multiply by a number with *");
  };
  refuse_rank(a_in, "left");
  refuse_rank(b_in, "right");
  Elem e = promote(a_in.elem(), b_in.elem());
  Elem kernel = arithmetic_elem(e);
  NDArray a = a_in.ndim() == 1 ? a_in.expand_dims(0) : a_in;
  NDArray b = b_in.ndim() == 1 ? b_in.expand_dims(1) : b_in;
  std::int64_t m = a.shape()[a.ndim() - 2], k = a.shape()[a.ndim() - 1],
               n = b.shape()[b.ndim() - 1];
  if (b.shape()[b.ndim() - 2] != k) {
    throw Error(
        ErrorKind::shape, "array.matmul.inner_extent",
        cat("matmul needs equal inner extents, but they are ", k, " and ", b.shape()[b.ndim() - 2]))
        .at("left", describe(a_in))
        .at("right", describe(b_in))
        .note("rule: [.., m, k] by [.., k, n] gives [.., m, n]");
  }
  if (NDArray rows; b_in.ndim() == 2 && a.ndim() > 2 && a.size() > 0 &&
                    a.reshape_view(Dims{a.size() / k, k}, rows)) {  // one product, not many
    Dims shape = a.shape();
    shape[a.ndim() - 1] = n;
    return matmul(rows, b_in).reshape(shape);
  }
  Dims batch_a(a.shape().data(), a.ndim() - 2), batch_b(b.shape().data(), b.ndim() - 2);
  const Dims* shapes[2] = {&batch_a, &batch_b};
  Dims batch = broadcast_shapes(shapes, "matmul");
  Dims shape = batch, shape_a = batch, shape_b = batch;
  shape.push_back(m), shape.push_back(n);
  shape_a.push_back(m), shape_a.push_back(k);
  shape_b.push_back(k), shape_b.push_back(n);
  // A product that is its own rounding: by the device's kernel, or by the processor's tiles.
  const bool tiles = a.on_host() && a.elem() == Elem::bfloat16 && b.elem() == Elem::bfloat16 &&
                     m > 1 && n > 1 && tile_products();
  if (tiles || (!a.on_host() && on_device().has_products(a))) kernel = e;
  // A column by a row has no sums.
  const bool outer = k == 1 && m > 1 && n > 1 && a.on_host() && e != Elem::boolean;
  if (outer) kernel = e;
  NDArray out =
      outer ? apply(Op::multiply, Arg(a), Arg(b)) : NDArray::empty(a.device(), kernel, shape);
  if (outer) {
    WEFT_CHECK(out.shape() == shape, "outer product of ", describe(a), " and ", describe(b));
  } else if (!out.on_host()) {
    if (k == 0) out = full(out.device(), kernel, shape, Scalar(0));
    else if (out.size() > 0)
      on_device().matmul(out, a.broadcast_to(shape_a), b.broadcast_to(shape_b));
  } else if (out.size() > 0 && k == 0) {
    std::memset(out.host(), 0, static_cast<std::size_t>(out.nbytes()));
  } else if (out.size() > 0 && tiles) {
    tile_product(a, b, out, shape_a, shape_b);
  } else if (out.size() > 0) {
    host_product(kernel, a, b, out, shape_a, shape_b);
  }
  Dims final_shape = batch;
  if (a_in.ndim() > 1) final_shape.push_back(m);
  if (b_in.ndim() > 1) final_shape.push_back(n);
  if (final_shape.size() != shape.size()) out = out.reshape(final_shape);
  return kernel == e ? out : out.astype(e);
}

}  // namespace weft
