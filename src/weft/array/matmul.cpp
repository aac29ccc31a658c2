// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <complex>
#include <cstring>

#include "weft/array/device_ops.h"
#include "weft/array/gemm.h"
#include "weft/array/loop_kernels.h"
#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Types without a blocked kernel, by size: multiples of B's rows, which are contiguous, are added
/// up.
template <typename T>
void plain(AddProductsFn add, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
           std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row, T* c,
           std::int64_t ldc) {
  runtime::Pool::shared().parallel_for(
      m, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, n * k)),
      [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          T* row = c + i * ldc;
          std::memset(static_cast<void*>(row), 0, static_cast<std::size_t>(n) * sizeof(T));
          for (std::int64_t p = 0; p < k; ++p)
            add(n, a + i * a_row + p * a_col, b + p * b_row, row);
        }
      });
}

/// A single row or column is a product with a vector.
template <typename T>
void real(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
          std::int64_t ldc) {
  if (n == 1 && ldc == 1 && gemv<T>(m, k, a, a_row, a_col, b, b_row, c)) return;
  if (m == 1 && gemv<T>(n, k, b, b_col, b_row, a, a_col, c)) return;
  gemm<T>(m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc, false);
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
  if (device_has_contraction(a)) kernel = e;  // rounded once, by the kernel
  NDArray out = NDArray::empty(a.device(), kernel, shape);
  if (!out.on_host()) {
    if (k == 0) out = full(out.device(), kernel, shape, Scalar(0));
    else if (out.size() > 0) device_matmul(out, a.broadcast_to(shape_a), b.broadcast_to(shape_b));
  } else if (out.size() > 0 && k == 0) {
    std::memset(out.host(), 0, static_cast<std::size_t>(out.nbytes()));
  } else if (out.size() > 0) {
    if (a.elem() != kernel) a = a.astype(kernel);
    if (b.elem() != kernel) b = b.astype(kernel);
    a = a.broadcast_to(shape_a);
    b = b.broadcast_to(shape_b);
    if (kernel == Elem::float32) {
      batches<float>(real<float>, a, b, out, m, n, k);
    } else if (kernel == Elem::float64) {
      batches<double>(real<double>, a, b, out, m, n, k);
    } else {
      // A single column is a row of the transposed product.
      std::int64_t rows = m, columns = n;
      if (n == 1) {
        std::swap(a, b);
        std::swap(rows, columns);
        a = a.transpose(-1, -2);
        b = b.transpose(-1, -2);
      }
      if (b.strides()[b.ndim() - 1] != 1) b = b.contiguous();
      const AddProductsFn add = loop_kernels().add_products[static_cast<int>(kernel)];
      auto run = [&]<typename T>(T) {
        batches<T>(
            [add](std::int64_t height, std::int64_t width, std::int64_t depth, const T* left,
                  std::int64_t row, std::int64_t column, const T* right, std::int64_t b_row,
                  std::int64_t, T* c, std::int64_t ldc) {
              plain<T>(add, height, width, depth, left, row, column, right, b_row, c, ldc);
            },
            a, b, out, rows, columns, k);
      };
      switch (elem_bytes(kernel)) {
        case 1: run(std::uint8_t{}); break;
        case 2: run(std::uint16_t{}); break;
        case 4: run(std::uint32_t{}); break;
        case 8: run(std::uint64_t{}); break;
        default: run(std::complex<double>{}); break;
      }
    }
  }
  Dims final_shape = batch;
  if (a_in.ndim() > 1) final_shape.push_back(m);
  if (b_in.ndim() > 1) final_shape.push_back(n);
  if (final_shape.size() != shape.size()) out = out.reshape(final_shape);
  return kernel == e ? out : out.astype(e);
}

}  // namespace weft
