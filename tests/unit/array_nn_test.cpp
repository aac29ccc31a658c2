// SPDX-License-Identifier: Apache-2.0
// Training from C++: layers, loss, optimizers; convolutions and structured operations on Tensors.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/array/random.h"
#include "weft/autograd/convolution.h"
#include "weft/autograd/nn.h"
#include "weft/autograd/structured.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

Ref<Device> host() { return open_device("cpu"); }

double at(const NDArray& a, std::int64_t i) {
  double v;
  a.astype(Elem::float64).read_element(i, &v);
  return v;
}

NDArray draw(Dims shape, std::uint64_t seed) {
  return random_normal(host(), seed, 0, checked_size(shape), Elem::float64).reshape(shape);
}

TEST(Nn, cross_entropy_is_minus_the_log_of_the_share) {
  NDArray logits = draw(Dims{3, 4}, 5);
  NDArray labels = arange(host(), Elem::int32, 1, 1, 3);
  double expected = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    double total = 0;
    for (std::int64_t j = 0; j < 4; ++j) total += std::exp(at(logits, 4 * i + j));
    expected -= (at(logits, 4 * i + i + 1) - std::log(total)) / 3;
  }
  EXPECT_NEAR(at(nn::cross_entropy(Tensor(logits), labels).data(), 0), expected, 1e-12);
  try {
    nn::cross_entropy(Tensor(logits), arange(host(), Elem::int32, 2, 1, 3));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "nn.cross_entropy.label");
    EXPECT_NE(error.message().find("outside [0, 4)"), std::string::npos);
  }
  try {
    nn::cross_entropy(Tensor(logits), arange(host(), Elem::int32, 0, 1, 2));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "nn.cross_entropy.shape");
  }
}

TEST(Nn, optimizers_follow_their_formulas) {
  // f = x^2 / 2, so the gradient is x; two steps by hand.
  auto two_steps = [](auto make) {
    Tensor x(full(host(), Elem::float64, Dims{1}, Scalar(2.0)), true);
    auto optimizer = make(std::vector<Tensor>{x});
    for (int i = 0; i < 2; ++i) {
      optimizer.zero_grad();
      sum(x * x * 0.5).backward();
      optimizer.step();
    }
    return at(x.data(), 0);
  };
  double plain = two_steps([](std::vector<Tensor> p) { return optim::SGD(std::move(p), 0.1); });
  EXPECT_NEAR(plain, 2 * 0.9 * 0.9, 1e-12);
  double heavy =
      two_steps([](std::vector<Tensor> p) { return optim::SGD(std::move(p), 0.1, 0.5, 0.2); });
  double v = 2 + 0.2 * 2, x = 2 - 0.1 * v;
  v = 0.5 * v + x + 0.2 * x;
  EXPECT_NEAR(heavy, x - 0.1 * v, 1e-12);
  double adam = two_steps([](std::vector<Tensor> p) { return optim::Adam(std::move(p), 0.1); });
  double m = 0, s = 0, y = 2;
  for (int t = 1; t <= 2; ++t) {
    m = 0.9 * m + 0.1 * y;
    s = 0.999 * s + 0.001 * y * y;
    y -= 0.1 / (1 - std::pow(0.9, t)) * m / (std::sqrt(s / (1 - std::pow(0.999, t))) + 1e-8);
  }
  EXPECT_NEAR(adam, y, 1e-12);
}

TEST(Convolution, agrees_with_loops_and_with_its_transpose) {
  const Conv conv{{2, 1}, {1, 2}, {1, 2}, {1, 0}, 2};
  const Dims image{2, 4, 6, 5}, kernel{6, 2, 3, 2};
  NDArray x = draw(image, 1), w = draw(kernel, 2);
  Tensor y = conv2d(Tensor(x), Tensor(w), conv);
  const std::int64_t oh = y.shape()[2], ow = y.shape()[3];
  EXPECT_EQ(oh, (6 + 2 - 3) / 2 + 1);
  EXPECT_EQ(ow, 5 + 4 - 3 + 1);
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t o = 0; o < 6; ++o)
      for (std::int64_t i = 0; i < oh; ++i)
        for (std::int64_t j = 0; j < ow; ++j) {
          double s = 0;
          for (std::int64_t c = 0; c < 2; ++c)
            for (std::int64_t a = 0; a < 3; ++a)
              for (std::int64_t b = 0; b < 2; ++b) {
                std::int64_t h = i * 2 + a - 1, k = j + 2 * b - 2;
                if (h < 0 || h >= 6 || k < 0 || k >= 5) continue;
                s += at(x, ((n * 4 + o / 3 * 2 + c) * 6 + h) * 5 + k) *
                     at(w, ((o * 2 + c) * 3 + a) * 2 + b);
              }
          EXPECT_NEAR(at(y.data(), ((n * 6 + o) * oh + i) * ow + j), s, 1e-12);
        }
  // <conv(x), g> = <x, conv_transpose(g)>: the transpose is the adjoint. One row was cut off by the
  // stride; output_padding brings it back.
  NDArray g = draw(y.shape(), 3);
  Tensor back = conv_transpose2d(Tensor(g), Tensor(w), conv);
  ASSERT_EQ(back.shape(), image);
  double left = at(sum(y * Tensor(g)).data(), 0), right = at(sum(Tensor(x) * back).data(), 0);
  EXPECT_NEAR(left, right, 1e-10);
}

TEST(Convolution, refuses_what_does_not_fit) {
  Tensor x(draw(Dims{1, 2, 4, 4}, 1)), w(draw(Dims{2, 3, 3, 3}, 2));
  auto code = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rule:"), std::string::npos);
      return std::string(error.code());
    }
    return "none";
  };
  EXPECT_EQ(code([&] { conv2d(x, w, Conv{}); }), "array.conv2d.shape");
  EXPECT_EQ(code([&] { conv2d(x, w, Conv{{0, 1}, {}, {1, 1}, {}, 1}); }), "array.conv2d.option");
  Conv far;
  far.padding = {3, 0};
  EXPECT_EQ(code([&] { conv_transpose2d(x, w, far); }), "array.conv_transpose2d.shape");
  Conv wide;
  wide.output_padding = {1, 0};
  EXPECT_EQ(code([&] { conv_transpose2d(x, w, wide); }), "array.conv_transpose2d.option");
  EXPECT_EQ(code([&] { windows(x, 5, 1, 1); }), "array.windows.shape");
}

TEST(Structured, gradients_reach_the_entries_that_were_taken) {
  Tensor x(draw(Dims{2, 5}, 7), true);
  backward(sum(sort(x, -1, true) * Tensor(arange(host(), Elem::float64, 1, 1, 5))));
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t i = 0; i < 5; ++i) {
      double rank = 1;
      for (std::int64_t j = 0; j < 5; ++j)
        rank += at(x.data(), r * 5 + j) > at(x.data(), r * 5 + i);
      EXPECT_EQ(at(x.grad().data(), r * 5 + i), rank);
    }
  }
  Tensor y(draw(Dims{5}, 8), true);
  backward(sum(cumulative_sum(y, 0)));
  EXPECT_EQ(at(y.grad().data(), 0), 5);
  EXPECT_EQ(at(y.grad().data(), 4), 1);
}

}  // namespace
}  // namespace weft
