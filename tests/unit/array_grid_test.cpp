// SPDX-License-Identifier: Apache-2.0
// The grid kernels of arrays are built for a card that is not there: every program must pass the
// CUDA pipeline and its compiler. Launches of this device do nothing, so the same device measures
// the host's part of a small operation (ARRAY_GRID_TIME=1 prints it). ARRAY_GRID_DUMP=folder writes
// the kernels' texts.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "paper_card.h"
#include "weft/autograd/gpu/convolution.h"
#include "weft/autograd/tensor.h"
#include "weft/devices/grid.h"
#include "weft/devices/kept_choices.h"
#include "weft/devices/pieces.h"
#include "weft/devices/place_convolution.h"
#include "weft/devices/transpose.h"
#include "weft/devices/warp_specialized.h"
#include "weft/linalg/linalg.h"
#include "weft/linalg/linalg_device.h"
#include "weft/rules/product_choice.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

/// Why there is no OpenCL device; empty where there is one. One that is there and does not open is
/// a failure.
std::string opencl_missing() {
  for (const DeviceStatus& s : all_devices()) {
    if (s.name.starts_with("opencl")) return s.available ? "" : s.reason;
  }
  return "built without the target opencl";
}

TEST(ArrayGrid, every_kind_of_map_compiles) {
  NEED_CARD();
  int before = paper->launched;
  NDArray x = NDArray::empty(device, Elem::float32, Dims{37, 53});
  NDArray row = NDArray::empty(device, Elem::float32, Dims{53});
  arrays::add(x, x);
  // Few elements: one to a thread, so that more processors have work.
  EXPECT_EQ(paper->last_extents[0], (37 * 53 + 255) / 256);
  arrays::add(x, row);
  arrays::multiply(x, 2.0);
  arrays::exp(x.transpose(0, 1));
  arrays::maximum(x, 0.0);
  arrays::greater(x, row);
  NDArray h = NDArray::empty(device, Elem::float16, Dims{5, 7});
  arrays::add(h, h);
  x.transpose(0, 1).copy();
  EXPECT_EQ(paper->launched - before, 8);
  int built = paper->built;
  arrays::add(x, x);
  EXPECT_EQ(paper->built, built) << "a kernel was built twice";
}

TEST(ArrayGrid, reductions_compile_and_long_ones_are_cut) {
  NEED_CARD();
  NDArray x = NDArray::empty(device, Elem::float32, Dims{1 << 15, 1 << 10});
  int before = paper->launched;
  reduce(ReduceOp::sum, x);
  EXPECT_EQ(paper->launched - before, 2);
  reduce(ReduceOp::sum, x, {false, Dims{0}});
  reduce(ReduceOp::max, x, {false, Dims{1}});
  NDArray y = NDArray::empty(device, Elem::float32, Dims{128, 64, 8, 8});
  reduce(ReduceOp::sum, y, {false, Dims{0, 2, 3}});
  EXPECT_GE(paper->launched - before, 6);
}

TEST(ArrayGrid, row_kernels_compile) {
  NEED_CARD();
  for (std::int64_t n : {10, 1000, 1024, 16384}) {
    NDArray x = NDArray::empty(device, Elem::float32, Dims{64, n});
    int before = paper->launched;
    softmax(x, -1);
    log_softmax(x, -1);
    NDArray w = NDArray::empty(device, Elem::float32, Dims{n});
    layer_norm(x, w, w, 1e-5);
    const NDArray* two[2] = {&x, &x};
    apply_rows(RowKernel::softmax_gradient, two);
    apply_rows(RowKernel::log_softmax_gradient, two);
    apply_rows(RowKernel::layer_norm_gradient, two, 1e-5);
    EXPECT_EQ(paper->launched - before, 6) << n;
  }
}

/// Scans, sorting, selection, gather and scatter; the card says that no flag was set and that no
/// element was selected.
TEST(ArrayGrid, algorithms_compile) {
  NEED_CARD();
  for (Elem elem : {Elem::float32, Elem::int64, Elem::uint8, Elem::bfloat16}) {
    SCOPED_TRACE(name_of(elem));
    NDArray x = NDArray::empty(device, elem, Dims{3, 100'000});
    scan(ReduceOp::sum, x, 1);
    scan(ReduceOp::max, x, 0);
    sort(x, 1, false);
    argsort(x.slice(1, 0, 1000, 1), 1, true);
    searchsorted(x.select(0, 0), x, true);
    NDArray at[1] = {NDArray::empty(device, Elem::int64, Dims{500})};
    gather(x.transpose(0, 1), at);
    scatter(x.transpose(0, 1), at, NDArray::empty(device, elem, Dims{500, 3}), true);
    scatter(x.transpose(0, 1), at, NDArray::empty(device, elem, Dims{500, 3}), false);
  }
  const int before = paper->launched;
  nonzero(NDArray::empty(device, Elem::boolean, Dims{300, 500}));
  EXPECT_GE(paper->launched - before, 2);
}

/// Arrays side by side, whatever their number, steps and axis, are one launch where copies of each
/// would wait for theirs; running sums of a line are two, however many parts it has.
TEST(ArrayGrid, what_lies_side_by_side_takes_one_launch) {
  NEED_CARD();
  NDArray x = NDArray::empty(device, Elem::float32, Dims{40, 33});
  auto launches = [&](const auto& f) {
    const int before = paper->launched;
    f();
    return paper->launched - before;
  };
  const NDArray parts[3] = {x, x.slice(0, 1, 39, 1), x.slice(0, 3, 1, 1)}, views[2] = {x, x},
                turned[2] = {x.slice(1, 2, 30, 1), x};
  EXPECT_EQ(launches([&] { roll(x, 3, 0); }), 1);
  EXPECT_EQ(launches([&] { roll(x, 3, 1); }), 1);
  EXPECT_EQ(launches([&] { concat(parts, 0); }), 1);
  EXPECT_EQ(launches([&] { concat(turned, 1); }), 1);
  EXPECT_EQ(launches([&] { stack(views, 2); }), 1);
  const std::vector<NDArray> many(20, x);
  EXPECT_EQ(launches([&] { concat(many, 1); }), 3);
  NDArray line = NDArray::empty(device, Elem::float32, Dims{10'000'000});
  EXPECT_EQ(launches([&] { scan(ReduceOp::sum, line, 0); }), 2);
}

/// Few searches collect their table themselves; for many one is made.
TEST(ArrayGrid, many_searches_have_a_long_table) {
  NEED_CARD();
  for (const Elem elem : {Elem::float32, Elem::float64}) {
    const NDArray sorted = NDArray::empty(device, elem, Dims{100'000});
    for (const std::int64_t count : {1'000, 1'000'000}) {
      const int before = paper->launched;
      searchsorted(sorted, NDArray::empty(device, elem, Dims{count}), false);
      EXPECT_EQ(paper->launched - before, count > 1'000 ? 2 : 1);
    }
    EXPECT_NE(paper->last_source.find(elem == Elem::float32 ? "16384" : "8192"), std::string::npos);
  }
}

/// Branches between the loads of unrolled steps would make each wait for the one before.
TEST(ArrayGrid, positions_of_extremes_have_no_branches) {
  NEED_CARD();
  for (const Elem elem : {Elem::float64, Elem::float32, Elem::int64, Elem::bfloat16}) {
    for (const bool largest : {false, true}) {
      paper->last_source.clear();
      arg_reduce(largest, NDArray::empty(device, elem, Dims{1013, 9871}), 1, false);
      EXPECT_NE(paper->last_source.find("a0["), std::string::npos);
      EXPECT_EQ(paper->last_source.find("||"), std::string::npos) << name_of(elem);
    }
  }
}

/// One launch for each factorisation of a stack, whatever the type and up to the largest size.
TEST(ArrayGrid, factorisations_of_small_matrices_compile) {
  NEED_CARD();
  for (const Elem elem : {Elem::float32, Elem::float64, Elem::complex64, Elem::complex128}) {
    for (const std::int64_t n : {5, 16, 64, 128}) {
      if (elem == Elem::complex128 && n == 128) continue;  // no room in shared memory
      const NDArray a = NDArray::empty(device, elem, Dims{10, n, n});
      auto launches = [&](auto&& f) {
        const int before = paper->launched;
        f();
        return paper->launched - before;
      };
      EXPECT_EQ(launches([&] { linalg::solve(a, a); }), 1) << n;
      EXPECT_EQ(launches([&] { linalg::slogdet(a); }), 1) << n;
      EXPECT_EQ(launches([&] { linalg::cholesky(a, n == 16); }), 1) << n;
      if (n == 128 && elem != Elem::float32) continue;  // nor for two of these
      EXPECT_EQ(launches([&] { linalg::qr(a, true); }), 1) << n;
      EXPECT_EQ(launches([&] { linalg::small::eigh(a); }), 1) << n;
      EXPECT_EQ(launches([&] { linalg::small::svd(a, linalg::SvdPart::thin); }), 1) << n;
    }
  }
}

TEST(ArrayGrid, products_compile_for_every_tile) {
  NEED_CARD();
  for (auto [m, n, k] : {std::array<std::int64_t, 3>{4096, 4096, 64},
                         {256, 1024, 784},
                         {256, 10, 1024},
                         {5, 7, 3},
                         {64, 64, 100000}}) {
    NDArray a = NDArray::empty(device, Elem::float32, Dims{m, k});
    NDArray b = NDArray::empty(device, Elem::float32, Dims{n, k});
    int before = paper->launched;
    matmul(a, b.transpose(0, 1));
    EXPECT_GE(paper->launched - before, 1);
    EXPECT_LE(paper->launched - before, 3);  // a sum over many parts takes two
  }
}

TEST(ArrayGrid, convolutions_without_tiles_compile) {
  NEED_CARD();
  for (Elem elem : {Elem::float32, Elem::bfloat16}) {
    for (std::int64_t k : {3, 5, 7}) {
      const int before = paper->launched;
      NDArray x = NDArray::empty(device, elem, Dims{8, 96, 28, 28});
      NDArray w = NDArray::empty(device, elem, Dims{96, 1, k, k});
      Conv conv{{1, 1}, {k / 2, k / 2}, {1, 1}, {0, 0}, 96};
      Window window{{k, k}, {1, 1}, {1, 1}, {28, 28}};
      card_conv2d(x, w, conv, window);
      card_conv2d_input(x, w, conv, window, 28, 28);
      card_conv2d_weight(x, x, w.shape(), conv, window);
      EXPECT_LE(paper->launched - before, 4);
    }
  }
}

TEST(ArrayGrid, convolutions_of_images_and_of_many_channels_compile) {
  NEED_CARD();
  const Conv conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
  const Window window{{3, 3}, {1, 1}, {1, 1}, {28, 28}};
  NDArray image = NDArray::empty(device, Elem::float32, Dims{8, 3, 28, 28}),
          x = NDArray::empty(device, Elem::float32, Dims{8, 512, 28, 28}),
          first = NDArray::empty(device, Elem::float32, Dims{512, 3, 3, 3}),
          w = NDArray::empty(device, Elem::float32, Dims{512, 512, 3, 3});
  int before = paper->launched;
  card_conv2d(image, first, conv, window);
  card_conv2d_input(x, first, conv, window, 28, 28);
  EXPECT_EQ(paper->launched - before, 3);  // sums of 512 channels in parts, which are added up
  before = paper->launched;
  card_conv2d(x, w, conv, window);
  card_conv2d_input(x, w, conv, window, 28, 28);
  card_conv2d_weight(x, x, w.shape(), conv, window);
  EXPECT_NE(paper->last_source.find("sums"), std::string::npos);  // of the products of tiles
  EXPECT_LE(paper->launched - before, 15);
  // 16-bit ones of an image are whole products of windows that are laid out.
  NDArray narrow = NDArray::empty(device, Elem::bfloat16, Dims{8, 3, 28, 28}),
          taps = NDArray::empty(device, Elem::bfloat16, Dims{64, 3, 3, 3});
  before = paper->launched;
  const NDArray y = card_conv2d(narrow, taps, conv, window);
  EXPECT_NE(paper->last_source.find("weft_tile_multiply_"), std::string::npos);
  card_conv2d_weight(y, narrow, taps.shape(), conv, window);
  EXPECT_LE(paper->launched - before, 6);
}

/// Vectors, and one barrier for a step.
TEST(ArrayGrid, products_read_vectors_and_wait_once_a_step) {
  NEED_CARD();
  for (auto [m, n, k] : {std::array<std::int64_t, 3>{300, 300, 300}, {100000, 64, 64}}) {
    matmul(NDArray::empty(device, Elem::float32, Dims{m, k}),
           NDArray::empty(device, Elem::float32, Dims{k, n}));
    const std::string& text = paper->last_source;
    const std::string loop = text.substr(text.find("wait_group 1"));
    EXPECT_NE(loop.find("weft_copy_16("), std::string::npos) << n;
    EXPECT_EQ(loop.find("__syncthreads()"), loop.rfind("__syncthreads()")) << n;
  }
}

/// Where the terms of several summed axes lie is tabulated ahead, in the width of positions, and
/// costs a step no barrier of its own.
TEST(ArrayGrid, convolutions_by_threads_wait_once_a_step) {
  NEED_CARD();
  const auto tensor = [&](Dims shape) {
    return Tensor(NDArray::empty(device, Elem::float32, shape));
  };
  paper->sources.clear();
  conv2d(tensor({2, 16, 9, 9}), tensor({16, 16, 3, 3}), Conv{{2, 2}, {1, 1}, {1, 1}, {0, 0}, 1});
  const std::string& text = paper->sources;
  const std::size_t begin = text.find("< ((int)steps); ++"),
                    wait = text.find("wait_group 0", begin);
  ASSERT_NE(wait, std::string::npos);
  const std::string loop = text.substr(begin, wait - begin);
  EXPECT_NE(loop.find("A_place["), std::string::npos);
  EXPECT_NE(loop.find("__syncthreads()"), std::string::npos);
  EXPECT_EQ(loop.find("__syncthreads()"), loop.rfind("__syncthreads()"));
  EXPECT_EQ(loop.find("_i64("), std::string::npos);
}

/// Large products of float32 are made of pieces, small ones by threads.
TEST(ArrayGrid, large_float32_products_go_by_pieces) {
  NEED_CARD();
  auto product = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    paper->sources.clear();
    matmul(NDArray::empty(device, Elem::float32, Dims{m, k}),
           NDArray::empty(device, Elem::float32, Dims{k, n}));
    return paper->sources.find("weft_tile_multiply_") != std::string::npos;
  };
  EXPECT_FALSE(product(256, 256, 256));
  EXPECT_FALSE(product(4, 8192, 8192));
  EXPECT_FALSE(product(8192, 16, 8192));
  EXPECT_TRUE(product(4096, 4096, 4096));
}

TEST(ArrayGrid, turned_copies_are_exact) {
  const std::string missing = opencl_missing();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  for (auto [rows, columns] : {std::pair<std::int64_t, std::int64_t>{70, 66}, {65, 131}, {1, 64}}) {
    constexpr std::int64_t kBatch = 3;
    std::vector<float> values(static_cast<std::size_t>(kBatch * rows * columns));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
    NDArray x = NDArray::empty(device, Elem::float32, Dims{kBatch, rows, columns});
    device->upload(*x.handle(), 0, values.data(), values.size() * 4);
    for (Elem elem : {Elem::float32, Elem::bfloat16}) {  // even extents of 16 bits go in pairs
      NDArray out = NDArray::empty(device, elem, Dims{kBatch, columns, rows});
      device::grid_transpose(out, elem == Elem::float32 ? x : x.astype(elem));
      NDArray back = out.astype(Elem::float32);
      std::vector<float> got(values.size());
      device->download(got.data(), *back.handle(), 0, got.size() * 4);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c)
            ASSERT_EQ(got[static_cast<std::size_t>((b * columns + c) * rows + r)],
                      values[static_cast<std::size_t>((b * rows + r) * columns + c)]);
        }
      }
    }
  }
}

/// The places that windows with steps name, and zeros around them: even extents in whole words.
TEST(ArrayGrid, places_that_windows_name_are_exact) {
  const std::string missing = opencl_missing();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  struct Case {
    Elem elem;
    std::int64_t h, w, step[2];
  };
  for (const Case& c : {Case{Elem::bfloat16, 6, 8, {2, 2}}, Case{Elem::bfloat16, 7, 12, {1, 4}},
                        Case{Elem::float32, 9, 10, {3, 2}}, Case{Elem::float32, 5, 7, {2, 2}},
                        Case{Elem::bfloat16, 9, 4, {3, 1}}, Case{Elem::float16, 5, 9, {2, 3}}}) {
    SCOPED_TRACE(cat(name_of(c.elem), " ", c.h, " x ", c.w, " / ", c.step[0], ", ", c.step[1]));
    constexpr std::int64_t kPlanes = 5;
    const std::int64_t high = (c.h - 1) / c.step[0] + 1, wide = (c.w - 1) / c.step[1] + 1;
    std::vector<float> values(static_cast<std::size_t>(kPlanes * c.h * c.w));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 127 + 1);
    NDArray x = NDArray::empty(device, Elem::float32, Dims{1, kPlanes, c.h, c.w});
    device->upload(*x.handle(), 0, values.data(), values.size() * 4);
    const NDArray named = device::named_places(x.astype(c.elem), c.step, high, wide);
    EXPECT_EQ(named.shape(), (Dims{1, kPlanes, high, wide}));
    // What was there before is written over.
    const NDArray out = full(device, c.elem, x.shape(), Scalar(9.0));
    device::spread_places(out, named, c.step);
    const NDArray back = out.astype(Elem::float32);
    std::vector<float> got(values.size());
    device->download(got.data(), *back.handle(), 0, got.size() * 4);
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
      const bool here = i / c.w % c.h % c.step[0] == 0 && i % c.w % c.step[1] == 0;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], here ? values[static_cast<std::size_t>(i)] : 0)
          << i;
    }
  }
}

/// Three pieces add up to the number; what is not finite is in the first one alone.
TEST(ArrayGrid, pieces_of_turned_matrices_are_exact) {
  const std::string missing = opencl_missing();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  for (auto [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{70, 66}, {65, 131}, {2, 64}, {130, 1}}) {
    constexpr std::int64_t kBatch = 3;
    std::mt19937 random(5);
    std::vector<float> values(static_cast<std::size_t>(kBatch * rows * columns));
    for (float& v : values) v = std::normal_distribution<float>()(random);
    values[1] = INFINITY, values[2] = NAN, values[3] = std::numeric_limits<float>::max();
    NDArray x = NDArray::empty(device, Elem::float32, Dims{kBatch, rows, columns});
    device->upload(*x.handle(), 0, values.data(), values.size() * 4);
    const NDArray planes = device::turned_piece_planes(x);
    const std::int64_t pitch = planes.shape()[3];
    EXPECT_EQ(planes.shape(), (Dims{device::kPiecePlanes, kBatch, columns, pitch}));
    EXPECT_EQ(pitch % 16, 0);
    const NDArray wide = planes.astype(Elem::float32);
    std::vector<float> got(static_cast<std::size_t>(wide.size()));
    device->download(got.data(), *wide.handle(), 0, got.size() * 4);
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const float v = values[static_cast<std::size_t>((b * rows + r) * columns + c)];
          float piece[device::kPiecePlanes];
          for (std::int64_t k = 0; k < device::kPiecePlanes; ++k)
            piece[k] = got[static_cast<std::size_t>(((k * kBatch + b) * columns + c) * pitch + r)];
          if (std::isfinite(v)) {
            ASSERT_EQ(piece[0] + (piece[1] + piece[2]), v);
            ASSERT_EQ(piece[3], piece[0]);
            continue;
          }
          ASSERT_TRUE(std::isnan(v) ? std::isnan(piece[0]) : piece[0] == v);
          for (int k : {1, 2, 3}) ASSERT_EQ(piece[k], 0);
        }
      }
    }
  }
}

/// The product of one tile of the list on a device that is here, beside sums on the host.
template <typename T>
double worst_of_tile(const Ref<Device>& device, Elem elem, std::size_t tile, bool instruction,
                     std::int64_t kK = 77) {
  constexpr std::int64_t kM = 132, kN = 138;
  const int layout = static_cast<int>(tile % 2);
  std::mt19937 random(static_cast<unsigned>(tile));
  std::vector<T> va, vb;
  auto numbers = [&](std::int64_t rows, std::int64_t columns, std::vector<T>& v) {
    for (std::int64_t i = 0; i < rows * columns; ++i)
      v.push_back(std::uniform_real_distribution<T>(-1, 1)(random));
    NDArray x = NDArray::empty(device, elem, Dims{rows, columns});
    device->upload(*x.handle(), 0, v.data(), v.size() * sizeof(T));
    return x;
  };
  NDArray a = layout ? numbers(kK, kM, va).transpose(0, 1) : numbers(kM, kK, va);
  NDArray b = layout ? numbers(kN, kK, vb).transpose(0, 1) : numbers(kK, kN, vb);
  device::Contraction c;
  c.m = Dims{kM}, c.n = Dims{kN}, c.k = Dims{kK};
  c.a = {{}, Dims{a.strides()[0]}, Dims{a.strides()[1]}};
  c.b = {{}, Dims{b.strides()[0]}, Dims{b.strides()[1]}};
  c.out = {{}, Dims{kN}, Dims{1}};
  c.tile = static_cast<int>(tile), c.parts = 1 + layout;
  c.variant = 2 | (instruction ? 4 : 0);
  NDArray out = NDArray::empty(device, elem, Dims{kM, kN});
  device::grid_contract(out, a, b, c);
  std::vector<T> got(static_cast<std::size_t>(kM * kN));
  device->download(got.data(), *out.handle(), 0, got.size() * sizeof(T));
  double worst = 0;
  for (std::int64_t y = 0; y < kM; ++y) {
    for (std::int64_t x = 0; x < kN; ++x) {
      double want = 0;
      for (std::int64_t z = 0; z < kK; ++z)
        want += static_cast<double>(
                    va[static_cast<std::size_t>(y * a.strides()[0] + z * a.strides()[1])]) *
                static_cast<double>(
                    vb[static_cast<std::size_t>(z * b.strides()[0] + x * b.strides()[1])]);
      worst = std::max(
          worst, std::abs(want - static_cast<double>(got[static_cast<std::size_t>(y * kN + x)])));
    }
  }
  return worst;
}

/// Each tile; operands of either layout and parts take turns.
TEST(ArrayGrid, every_tile_multiplies_right) {
  const std::string missing = opencl_missing();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  for (std::size_t i = 0; i < rules::rated_tiles(4).size(); ++i)
    EXPECT_LT(worst_of_tile<float>(device, Elem::float32, i, false), 1e-5) << "tile " << i;
  for (const bool instruction : {false, true}) {
    for (std::size_t i = 0; i < rules::rated_tiles(8, instruction).size(); ++i) {
      for (const std::int64_t k : {77, 78})  // vectors along the terms of even ones
        EXPECT_LT(worst_of_tile<double>(device, Elem::float64, i, instruction, k), 1e-13)
            << "tile " << i << (instruction ? " of an instruction, " : ", ") << k;
    }
  }
}

/// Warps multiply float64 by an instruction: all tiles, no thread's own sums.
TEST(ArrayGrid, products_of_float64_go_to_tensor_cores) {
  NEED_CARD();
  for (auto [m, n, k] : {std::array<std::int64_t, 3>{2048, 2048, 2048},
                         {4096, 512, 512},
                         {1000, 999, 1001},
                         {300, 500, 700},
                         {48, 40, 5000}}) {
    NDArray a = NDArray::empty(device, Elem::float64, Dims{m, k});
    matmul(a, NDArray::empty(device, Elem::float64, Dims{k, n}));
    matmul(a, NDArray::empty(device, Elem::float64, Dims{n, k}).transpose(0, 1));
  }
  EXPECT_NE(paper->last_source.find("mma.sync.aligned.m16n8k8.row.col.f64"), std::string::npos);
}

TEST(ArrayGrid, products_of_16_bits_go_to_tensor_cores) {
  NEED_CARD();
  for (auto [elem, batch, m, n, k] :
       {std::tuple{Elem::float16, 1, 4096, 4096, 4096}, {Elem::bfloat16, 3, 2000, 1001, 1500}}) {
    SCOPED_TRACE(cat(batch, " x ", m, " x ", n, " x ", k));
    NDArray a = NDArray::empty(device, elem, Dims{batch, m, k});
    NDArray b = NDArray::empty(device, elem, Dims{batch, n, k});
    NDArray out = matmul(a, b.transpose(1, 2));
    EXPECT_EQ(out.elem(), elem);
    EXPECT_NE(paper->last_source.find("wgmma.mma_async"), std::string::npos);
    EXPECT_NE(paper->last_source.find("cp.async.bulk.tensor"), std::string::npos);
  }
  // More batch axes than the program knows: operands in order have one.
  const Ref<PaperCard> plain = make_ref<PaperCard>("cuda:arch=sm_90");
  NDArray heads = NDArray::empty(plain, Elem::bfloat16, Dims{3, 64, 5, 64, 7, 64});
  const int order[] = {0, 2, 4, 1, 3, 5};
  NDArray left = heads.permute(order).slice(0, 0, 2, 1);
  left = left.as_strided(Dims{2, 5, 7, 64, 64},
                         Dims{64 * 5 * 64 * 7 * 64, 64 * 7 * 64, 64, 5 * 64 * 7 * 64, 1}, 0);
  NDArray right = NDArray::empty(plain, Elem::bfloat16, Dims{64, 64});
  matmul(left.transpose(3, 4), right.broadcast_to(Dims{2, 5, 7, 64, 64}));
  EXPECT_NE(plain->last_source.find("cp.async.bulk.tensor"), std::string::npos);
  // Another type, another card, two types: by threads.
  EXPECT_FALSE(device::has_warp_specialized_product(device, Elem::float32));
  Ref<Device> older = make_ref<PaperCard>("cuda:arch=sm_80");
  EXPECT_FALSE(device::has_warp_specialized_product(older, Elem::float16));
  const NDArray h = NDArray::empty(device, Elem::float16, Dims{512, 512}),
                f = NDArray::empty(device, Elem::bfloat16, Dims{512, 512});
  EXPECT_FALSE(device::prefers_product(h, h, f));
}

/// What the program of a product is told: sizes, parts, batch axes, strides in units of 16 bytes.
TEST(ArrayGrid, products_of_16_bits_say_what_they_read) {
  NEED_CARD();
  constexpr std::int64_t kM = 300, kN = 520, kK = 2048;
  NDArray a = NDArray::empty(device, Elem::bfloat16, Dims{2, 1, kK, kM + 4});
  NDArray b = NDArray::empty(device, Elem::bfloat16, Dims{3, kK, kN});
  matmul(a.slice(3, 0, kM, 1).transpose(2, 3), b);
  std::vector<std::int64_t> told;
  for (std::size_t i = 3; i < paper->last_args.size(); ++i)
    told.push_back(paper->last_args[i].scalar);
  // a is read as it lies, transposed; each operand moves along one batch axis.
  for (std::int64_t size : {kM, kN, kK, kK * (kM + 4), kM + 4, kK * kN})
    EXPECT_NE(std::find(told.begin(), told.end(), size), told.end()) << size;
  EXPECT_NE(paper->last_source.find("_11_bf16(&sums[0]"), std::string::npos);
  EXPECT_NE(paper->last_source.find("weft_bulk_store_4(&out_map"), std::string::npos);
  EXPECT_LE(paper->last_extents[0], 132);
  // Few tiles and a long sum: parts, added up by another kernel.
  const int before = paper->launched;
  matmul(NDArray::empty(device, Elem::float16, Dims{64, 65536}),
         NDArray::empty(device, Elem::float16, Dims{65536, 64}));
  EXPECT_GE(paper->launched - before, 2);
  // Rows that are no multiples of 16 bytes: stored by threads.
  matmul(NDArray::empty(device, Elem::float16, Dims{256, 256}),
         NDArray::empty(device, Elem::float16, Dims{51, 256}).transpose(0, 1));
  EXPECT_EQ(paper->last_source.find("weft_bulk_store"), std::string::npos);
  EXPECT_NE(paper->last_source.find("weft_tile_multiply_"), std::string::npos);
}

TEST(ArrayGrid, convolutions_of_16_bits_read_windows_in_place) {
  NEED_CARD();
  NDArray x = NDArray::empty(device, Elem::bfloat16, Dims{4, 24, 30, 28});
  NDArray w = NDArray::empty(device, Elem::bfloat16, Dims{40, 24, 3, 5});
  NDArray y = NDArray::empty(device, Elem::bfloat16, Dims{4, 40, 15, 28});
  device::Images images;
  images.step[0] = 2, images.before[0] = 1, images.before[1] = 2;
  const int before = paper->launched;
  device::warp_specialized_conv(y, x, w, images);
  EXPECT_EQ(paper->launched - before, 4);  // images and weights in order, the product, the result
  device::warp_specialized_conv_gradients(&x, &w, y, x, w, images);
  // Few places and a long sum: in parts, which a second kernel adds up.
  NDArray small = NDArray::empty(device, Elem::bfloat16, Dims{2, 512, 7, 7});
  device::Images around;
  around.before[0] = around.before[1] = 1;
  const int earlier = paper->launched;
  device::warp_specialized_conv(NDArray::empty(device, Elem::bfloat16, Dims{2, 512, 7, 7}), small,
                                NDArray::empty(device, Elem::bfloat16, Dims{512, 512, 3, 3}),
                                around);
  EXPECT_EQ(paper->launched - earlier, 5);
  // Few results: tiles as the kernel has them.
  device::warp_specialized_conv(NDArray::empty(device, Elem::bfloat16, Dims{32, 64, 56, 56}),
                                NDArray::empty(device, Elem::bfloat16, Dims{32, 64, 56, 56}),
                                NDArray::empty(device, Elem::bfloat16, Dims{64, 64, 3, 3}), around);
}

/// The products of a layer's gradients have its extents in other places.
TEST(ArrayGrid, choices_of_a_step_are_kept_side_by_side) {
  device::KeptChoices<int> kept;
  int chosen = 0;
  for (int step = 0; step < 2; ++step) {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{6272, 1024, 256},
                                  {6272, 256, 1024},
                                  {256, 1024, 6272},
                                  {1024, 256, 6272}}) {
      device::ProductAsked asked;
      asked.shape.m = m, asked.shape.n = n, asked.shape.k = k;
      EXPECT_EQ(kept.find(asked, [&] { return ++chosen, static_cast<int>(m); }), m);
    }
  }
  EXPECT_EQ(chosen, 4);
}

/// 64 places of one image rather than a few of many.
TEST(ArrayGrid, patches_of_convolutions_lie_together) {
  NEED_CARD();
  auto bits = [&](Dims shape) { return NDArray::empty(device, Elem::bfloat16, shape); };
  device::Images images;
  images.step[0] = images.step[1] = 2, images.before[0] = images.before[1] = 1;
  const NDArray x = bits({32, 64, 64, 64}), g = bits({32, 72, 32, 32});
  device::warp_specialized_conv_gradients(&x, nullptr, g, x, bits({72, 64, 3, 3}), images);
  // Of 32 x 32 places of each remainder: four patches of 8 x 8 along both axes.
  // They follow the extents of the results as a matrix; what a program does not read has no
  // argument.
  const std::int64_t wanted[] = {32 * 64 * 64, 64, 4, 4};
  const auto same = [](const runtime::KernelArg& a, std::int64_t b) { return a.scalar == b; };
  EXPECT_NE(std::search(paper->last_args.begin(), paper->last_args.end(), std::begin(wanted),
                        std::end(wanted), same),
            paper->last_args.end());
}

/// Windows of one place: products of planes as they lie or of pixels, of named places with steps.
TEST(ArrayGrid, convolutions_of_one_place_are_products) {
  NEED_CARD();
  auto bits = [&](Dims shape) { return NDArray::empty(device, Elem::bfloat16, shape); };
  auto launches = [&](const std::function<void()>& f) {
    const int before = paper->launched;
    f();
    return paper->launched - before;
  };
  device::Images steps;
  steps.step[0] = steps.step[1] = 2;
  NDArray x = bits({4, 64, 28, 32}), w = bits({96, 64, 1, 1}), g = bits({4, 96, 14, 16});
  EXPECT_EQ(launches([&] { device::warp_specialized_conv(g, x, w, steps); }), 2);
  EXPECT_EQ(launches([&] { device::warp_specialized_conv_gradients(&x, nullptr, g, x, w, steps); }),
            2);
  // Named places, a sum for each image, and all of them added up.
  EXPECT_EQ(launches([&] { device::warp_specialized_conv_gradients(nullptr, &w, g, x, w, steps); }),
            3);
  NDArray small = bits({4, 640, 7, 7}), wide = bits({512, 640, 1, 1}), y = bits({4, 512, 7, 7});
  EXPECT_EQ(launches([&] { device::warp_specialized_conv(y, small, wide, {}); }), 3);
  EXPECT_EQ(
      launches([&] { device::warp_specialized_conv_gradients(&small, &wide, y, small, wide, {}); }),
      5);
}

/// Windows with steps, of enough work: pieces of images and weights once, then tiles.
TEST(ArrayGrid, convolutions_of_float32_go_by_pieces) {
  NEED_CARD();
  auto tensor = [&](Dims shape) {
    return Tensor(NDArray::empty(device, Elem::float32, shape), true);
  };
  auto by_tiles = [&](const Tensor& x, const Tensor& w, const Conv& conv) {
    paper->sources.clear();
    const Tensor y = conv2d(x, w, conv);
    const bool forward = paper->sources.find("weft_tile_multiply_") != std::string::npos;
    const Tensor results[1] = {y}, upper[1] = {Tensor(y.data())}, wanted[2] = {x, w};
    gradients(results, upper, wanted, Graph::discard);
    return forward;
  };
  const Conv steps{{2, 2}, {1, 1}, {1, 1}, {0, 0}, 1};
  EXPECT_FALSE(by_tiles(tensor({2, 16, 9, 9}), tensor({16, 16, 3, 3}), steps));
  const int before = paper->launched;
  EXPECT_TRUE(by_tiles(tensor({32, 128, 56, 56}), tensor({128, 128, 3, 3}), steps));
  // Images, weights turned and in pieces, the product; upper gradients, weights again, the product
  // of all remainders of the steps; images, the product and its parts, the weights' order.
  EXPECT_EQ(paper->launched - before, 4 + 3 + 1 + 4);
  EXPECT_TRUE(by_tiles(tensor({64, 192, 35, 35}), tensor({128, 192, 5, 5}),
                       {{1, 1}, {2, 2}, {1, 1}, {0, 0}, 1}));
}

/// Of 16 bits all with enough channels; groups and few channels where that is expected to take less
/// time than threads.
TEST(ArrayGrid, gaps_and_groups_go_by_tiles) {
  NEED_CARD();
  auto tensor = [&](Dims shape) {
    return Tensor(NDArray::empty(device, Elem::bfloat16, shape), true);
  };
  auto by_tiles = [&](const Tensor& x, const Tensor& w, const Conv& conv) {
    auto tiles = [&] {
      const auto& names = paper->names;
      const bool found =
          std::find(names.begin(), names.end(), "convolution_tiles_kernel0") != names.end();
      paper->names.clear();
      return found;
    };
    paper->names.clear();
    const Tensor y = conv2d(x, w, conv);
    const bool forward = tiles();
    const Tensor results[1] = {y}, upper[1] = {Tensor(y.data())}, wanted[2] = {x, w};
    gradients(results, upper, wanted, Graph::discard);
    return std::array{forward, tiles()};
  };
  using Both = std::array<bool, 2>;
  EXPECT_EQ(by_tiles(tensor({8, 40, 28, 31}), tensor({17, 40, 3, 5}), {{1, 1}, {0, 1}, {2, 3}}),
            (Both{true, true}));
  EXPECT_EQ(by_tiles(tensor({8, 511, 15, 56}), tensor({511, 73, 3, 3}),
                     {{2, 1}, {2, 0}, {1, 1}, {0, 0}, 7}),
            (Both{true, true}));
  // Sums over three channels are of rows of windows, over 512 results of tiles.
  EXPECT_TRUE(by_tiles(tensor({8, 3, 57, 56}), tensor({512, 3, 3, 3}), {})[1]);
  EXPECT_EQ(by_tiles(tensor({32, 120, 28, 28}), tensor({120, 1, 5, 5}),
                     {{1, 1}, {2, 2}, {1, 1}, {0, 0}, 120}),
            (Both{false, false}));
}

TEST(ArrayGrid, a_device_is_known_by_its_value) {
  Ref<Device> one = make_ref<PaperCard>("cuda:arch=sm_90"), other = make_ref<PaperCard>("cpu");
  EXPECT_TRUE(device::grid_of(one).present());
  EXPECT_EQ(device::grid_of(one).processors(), 132);
  EXPECT_FALSE(device::grid_of(other).present());
  // A device of another kind where one has been.
  const Device* place = one.get();
  one = nullptr;
  for (int i = 0; i < 64; ++i) {
    Ref<Device> next = make_ref<PaperCard>("cpu");
    EXPECT_FALSE(device::grid_of(next).present()) << (next.get() == place);
  }
}

TEST(ArrayGrid, host_time_of_a_small_operation) {
  NEED_CARD();
  NDArray x = NDArray::empty(device, Elem::float32, Dims{16});
  int before = paper->launched;
  constexpr int kTimes = 20000;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) arrays::add(x, x);
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTimes;
  EXPECT_EQ(paper->launched - before, kTimes);
  if (std::getenv("ARRAY_GRID_TIME"))
    std::printf("host part of a small add: %.3f us\n", seconds * 1e6);
}

}  // namespace
}  // namespace weft
