// SPDX-License-Identifier: Apache-2.0
// What arrays ask of a vendor's library of transforms and factorisations: a library that records
// its calls, on a card that is not there.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "../expect_error.h"
#include "paper_card.h"
#include "weft/linalg/fft.h"
#include "weft/linalg/linalg.h"
#include "weft/linalg/linalg_device.h"
#include "weft/runtime/math_library.h"

namespace weft {
namespace {

using runtime::MathLibrary;

class RecordingLibrary final : public MathLibrary {
 public:
  struct Fft {
    Transform transform;
    std::int64_t in, out;  // offsets in bytes
  };
  std::vector<Fft> transforms_;
  std::vector<std::string> calls;

  bool transforms() const override { return true; }
  bool factorisations() const override { return true; }
  bool batches() const override { return true; }
  void fft(const Transform& t, Place in, Place out) override {
    transforms_.push_back({t, in.offset, out.offset});
  }
  void cholesky(Number, std::int64_t, Place, Place) override { calls.push_back("cholesky"); }
  void lu(Number, std::int64_t, Place, Place, Place) override { calls.push_back("lu"); }
  void lu_solve(Number, std::int64_t, std::int64_t, Place, Place, Place, Place) override {
    calls.push_back("lu_solve");
  }
  void qr(Number, std::int64_t, std::int64_t, Place, Place, Place) override {
    calls.push_back("qr");
  }
  void orthogonal(Number, std::int64_t, std::int64_t, std::int64_t, Place, Place, Place) override {
    calls.push_back("orthogonal");
  }
  void eigh(Number, bool, std::int64_t, Place, Place, Place) override { calls.push_back("eigh"); }
  void svd(Number, std::int64_t, std::int64_t, bool, Place, Place, Place, Place, Place) override {
    calls.push_back("svd");
  }
  void svd_jacobi(Number, std::int64_t, std::int64_t, Place, Place, Place, Place, Place) override {
    calls.push_back("svd_jacobi");
  }
  void lu_of_all(Number, std::int64_t n, std::int64_t count, Place, Place, Place) override {
    calls.push_back(cat("lu ", n, " of ", count));
  }
  void lu_solve_all(Number, std::int64_t n, std::int64_t k, std::int64_t count, Place, Place,
                    Place) override {
    calls.push_back(cat("solve ", n, " ", k, " of ", count));
  }
  void cholesky_of_all(Number, std::int64_t n, std::int64_t count, Place, Place) override {
    calls.push_back(cat("cholesky ", n, " of ", count));
  }
};

class LibraryCard final : public PaperCard, public runtime::HasMathLibrary {
 public:
  LibraryCard() : PaperCard("cuda:arch=sm_90") {}
  MathLibrary& math_library() override { return library; }
  /// What the library's words of status hold; truth values, of which here are fewer than four,
  /// hold.
  void download(void* to, const Storage&, runtime::Bytes, runtime::Bytes bytes) override {
    if (bytes % sizeof status != 0) return void(std::memset(to, 1, bytes));
    std::fill_n(static_cast<std::int32_t*>(to), bytes / sizeof status, status);
  }
  RecordingLibrary library;
  std::int32_t status = 0;
};

#define NEED_LIBRARY()                                                           \
  if (!card()) GTEST_SKIP() << "NVRTC, the compiler for cuda, is not installed"; \
  Ref<LibraryCard> with = make_ref<LibraryCard>();                               \
  RecordingLibrary& library = with->library;                                     \
  Ref<Device> device = with

NDArray of(const Ref<Device>& device, Elem elem, Dims shape) {
  return NDArray::empty(device, elem, std::move(shape));
}

TEST(MathLibrary, an_axis_is_transformed_where_it_lies) {
  NEED_LIBRARY();
  // The first axis: one call, neighbours 30 apart.
  fft(of(device, Elem::complex64, Dims{20, 5, 6}), 20, 0, false, 1);
  ASSERT_EQ(library.transforms_.size(), 1u);
  const MathLibrary::Transform& t = library.transforms_[0].transform;
  EXPECT_EQ(t.kind, MathLibrary::Fft::forward);
  EXPECT_EQ(t.n[0], 20);
  EXPECT_EQ(t.count, 30);
  EXPECT_EQ(t.in_step, 30);
  EXPECT_EQ(t.out_step, 30);
  EXPECT_EQ(t.in_next, 1);
  // A call for each of few indices before the axis, at its place.
  library.transforms_.clear();
  rfft(of(device, Elem::float64, Dims{3, 20, 6}), 20, 1, 1);
  ASSERT_EQ(library.transforms_.size(), 3u);
  EXPECT_EQ(library.transforms_[2].in, 2 * 20 * 6 * 8);
  EXPECT_EQ(library.transforms_[2].out, 2 * 11 * 6 * 16);
  EXPECT_EQ(library.transforms_[2].transform.count, 6);
  // Many: the axis is moved.
  library.transforms_.clear();
  fft(of(device, Elem::complex128, Dims{100, 20, 6}), 20, 1, true, 0.05);
  ASSERT_EQ(library.transforms_.size(), 1u);
  EXPECT_EQ(library.transforms_[0].transform.count, 600);
  EXPECT_EQ(library.transforms_[0].transform.in_step, 1);
  EXPECT_EQ(library.transforms_[0].transform.in_next, 20);
  // To real numbers, and cut ones: moved as well.
  library.transforms_.clear();
  irfft(of(device, Elem::complex64, Dims{11, 50}), 20, 0, 1);
  fft(of(device, Elem::complex64, Dims{30, 50}), 20, 0, false, 1);
  ASSERT_EQ(library.transforms_.size(), 2u);
  for (const auto& call : library.transforms_) EXPECT_EQ(call.transform.in_step, 1);
}

TEST(MathLibrary, real_operands_begin_at_pairs) {
  NEED_LIBRARY();
  const NDArray x = of(device, Elem::float32, Dims{101});
  rfft(x.slice(0, 1, 100, 1), 100, 0, 1);
  fft_last_axes(x.slice(0, 1, 100, 1).reshape(Dims{10, 10}), 2, FftKind::real_forward, 10, 1);
  ASSERT_EQ(library.transforms_.size(), 2u);
  for (const auto& call : library.transforms_) EXPECT_EQ(call.in % 8, 0);
}

TEST(MathLibrary, last_axes_are_one_plan) {
  NEED_LIBRARY();
  fft_last_axes(of(device, Elem::complex64, Dims{4, 6, 10}), 2, FftKind::forward, 10, 1);
  fft_last_axes(of(device, Elem::float64, Dims{4, 6, 10}), 3, FftKind::real_forward, 10, 1);
  fft_last_axes(of(device, Elem::complex64, Dims{4, 6, 10}), 2, FftKind::real_inverse, 19, 1);
  ASSERT_EQ(library.transforms_.size(), 3u);
  const auto at = [&](std::size_t k) { return library.transforms_[k].transform; };
  EXPECT_EQ(at(0).rank, 2);
  EXPECT_EQ(at(0).n[0], 6);
  EXPECT_EQ(at(0).n[1], 10);
  EXPECT_EQ(at(0).count, 4);
  EXPECT_EQ(at(0).in_next, 60);
  EXPECT_EQ(at(1).rank, 3);
  EXPECT_EQ(at(1).count, 1);
  EXPECT_EQ(at(1).out_next, 4 * 6 * 6);
  EXPECT_EQ(at(2).n[1], 19);
  EXPECT_EQ(at(2).in_next, 60);
  EXPECT_EQ(at(2).out_next, 6 * 19);
}

TEST(MathLibrary, stacks_of_large_matrices_go_at_once) {
  NEED_LIBRARY();
  const NDArray many = of(device, Elem::float32, Dims{8, 200, 200}),
                few = of(device, Elem::float32, Dims{2, 200, 200}),
                small = of(device, Elem::float32, Dims{8, 64, 64}),
                one = of(device, Elem::float64, Dims{1, 100, 100});
  auto calls = [&](auto&& f) {
    library.calls.clear();
    f();
    return library.calls;
  };
  using Calls = std::vector<std::string>;
  EXPECT_EQ(calls([&] { linalg::solve(many, many.slice(2, 0, 3, 1)); }),
            (Calls{"lu 200 of 8", "solve 200 3 of 8"}));
  EXPECT_EQ(calls([&] { linalg::solve(few, few); }), (Calls{"lu", "lu", "lu_solve", "lu_solve"}));
  EXPECT_EQ(calls([&] { linalg::slogdet(many); }), (Calls{"lu 200 of 8"}));
  EXPECT_EQ(calls([&] { linalg::cholesky(many, false); }), (Calls{"cholesky 200 of 8"}));
  // Programs for what fits a block; a single matrix above 64 is the library's.
  EXPECT_EQ(calls([&] { linalg::solve(small, small); }), (Calls{}));
  EXPECT_EQ(calls([&] { linalg::qr(small, false); }), (Calls{}));
  EXPECT_EQ(calls([&] { linalg::cholesky(one, false); }), (Calls{"cholesky"}));
  EXPECT_EQ(calls([&] { linalg::qr(one, false); }), (Calls{"qr", "orthogonal"}));
}

TEST(MathLibrary, singular_vectors_come_from_rotations) {
  NEED_LIBRARY();
  const NDArray a = of(device, Elem::complex64, Dims{1, 300, 200});
  auto calls = [&](linalg::SvdPart part) {
    library.calls.clear();
    linalg::library::svd(library, a, part);
    return library.calls;
  };
  using Calls = std::vector<std::string>;
  EXPECT_EQ(calls(linalg::SvdPart::thin), (Calls{"svd_jacobi"}));
  EXPECT_EQ(calls(linalg::SvdPart::full), (Calls{"svd"}));
  // Values alone: rotations above 32 columns, a bidiagonal form below.
  EXPECT_EQ(calls(linalg::SvdPart::values), (Calls{"svd_jacobi"}));
  library.calls.clear();
  linalg::library::svd(library, of(device, Elem::complex64, Dims{1, 300, 32}),
                       linalg::SvdPart::values);
  EXPECT_EQ(library.calls, (Calls{"svd"}));
}

TEST(MathLibrary, what_a_library_did_not_end_is_refused) {
  NEED_LIBRARY();
  const NDArray a = of(device, Elem::float32, Dims{2, 300, 200}),
                square = of(device, Elem::float32, Dims{2, 200, 200});
  struct Case {
    std::string code;
    std::function<void()> call;
  };
  const std::vector<Case> cases = {
      {"array.svd.divergent", [&] { linalg::svd(a, linalg::SvdPart::thin); }},
      {"array.svd.divergent", [&] { linalg::svd(a, linalg::SvdPart::values); }},
      {"array.cholesky.indefinite", [&] { linalg::cholesky(square, false); }},
      {"array.solve.singular", [&] { linalg::solve(square, square); }},
      {"array.eigh.divergent", [&] { linalg::eigh(square); }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.code);
    with->status = 0;
    EXPECT_NO_THROW(each.call());
    for (const std::int32_t status : {1, -3}) {
      with->status = status;
      testing::expect_error(ErrorKind::value, each.code, {"matrix 0 of float32[2, "}, each.call);
    }
  }
}

}  // namespace
}  // namespace weft
