// SPDX-License-Identifier: Apache-2.0
// Arrays and autograd from C++ alone.
#include <gtest/gtest.h>

#include <cmath>

#include "../expect_error.h"
#include "weft/array/random.h"
#include "weft/autograd/tensor.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

Ref<Device> host() {
  for (const DeviceStatus& status : all_devices()) {
    if (!status.available) continue;
    Ref<Device> device = open_device(status.name);
    if (device->info().host_accessible) return device;
  }
  return nullptr;
}

float at(const NDArray& a, std::int64_t i) {
  float v;
  a.read_element(i, &v);
  return v;
}

TEST(Array, views_share_storage_and_stay_inside) {
  NDArray a = arange(host(), Elem::float32, 0, 1, 12).reshape(Dims{3, 4});
  NDArray t = a.transpose(0, 1).slice(0, 3, 2, -2);  // columns 3 and 1
  EXPECT_EQ(at(t, 0), 3);
  EXPECT_EQ(at(t, 3), 1);
  assign(t, full(host(), Elem::float32, Dims{}, Scalar(7)));
  EXPECT_EQ(at(a, 3), 7);
  EXPECT_EQ(at(a, 2), 2);
  try {
    a.as_strided(Dims{4, 4}, Dims{4, 1}, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "array.make.outside");
    EXPECT_NE(error.message().find("holds 12"), std::string::npos);
  }
}

TEST(Array, operations_need_an_array) {
  testing::expect_error(ErrorKind::dtype, "array.exp.array", {"exp needs an array, got a number"},
                        [] { apply(Op::exp, Arg(Scalar(2.0))); });
  testing::expect_error(ErrorKind::dtype, "array.add.array",
                        {"add needs an array, got two numbers"},
                        [] { apply(Op::add, Arg(Scalar(2.0)), Arg(Scalar(3.0))); });
}

TEST(Array, a_multilayer_perceptron_learns_exclusive_or) {
  Ref<Device> device = host();
  const float points[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
  NDArray x = NDArray::empty(device, Elem::float32, Dims{4, 2}),
          y = NDArray::empty(device, Elem::float32, Dims{4, 1});
  device->upload(*x.handle(), 0, points, sizeof points);
  device->upload(*y.handle(), 0, targets, sizeof targets);
  Tensor w1(random_normal(device, 1, 0, 32, Elem::float32).reshape(Dims{2, 16}), true);
  Tensor b1(full(device, Elem::float32, Dims{16}, Scalar(0.0)), true);
  Tensor w2(
      arrays::multiply(random_normal(device, 2, 0, 16, Elem::float32), 0.5).reshape(Dims{16, 1}),
      true);
  Tensor b2(full(device, Elem::float32, Dims{1}, Scalar(0.0)), true);
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    Tensor out = matmul(tanh(matmul(Tensor(x), w1) + b1), w2) + b2;
    Tensor error = out - Tensor(y);
    Tensor loss = mean(error * error);
    backward(loss);
    last = at(loss.data(), 0);
    if (step == 0) first = last;
    for (Tensor* p : {&w1, &b1, &w2, &b2}) {
      p->set_data(arrays::subtract(p->data(), arrays::multiply(p->grad().data(), 0.2)));
      p->set_grad(Tensor());
    }
  }
  EXPECT_GT(first, 0.2f);
  EXPECT_LT(last, 0.01f);
}

TEST(Array, second_derivatives) {
  Tensor x(full(host(), Elem::float64, Dims{}, Scalar(1.5)), true);
  const Tensor xs[1] = {x};
  const Tensor y[1] = {sin(x) * x};
  std::vector<Tensor> first = gradients(y, {}, xs, Graph::create);
  std::vector<Tensor> second = gradients(first, {}, xs, Graph::discard);
  double v;
  second[0].data().read_element(0, &v);
  EXPECT_NEAR(v, 2 * std::cos(1.5) - 1.5 * std::sin(1.5), 1e-12);
}

TEST(Array, memory_of_another_machine_has_no_host_pointer) {
  for (const DeviceStatus& status : all_devices()) {
    if (!status.available) continue;
    Ref<Device> device = open_device(status.name);
    if (device->info().host_accessible) continue;
    NDArray a = NDArray::empty(device, Elem::float32, Dims{4});
    try {
      (void)a.host();
      FAIL() << status.name << " gave a pointer";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "array.host.access");
      EXPECT_NE(std::string(error.what()).find(status.name), std::string::npos) << error.what();
    }
    return;
  }
  GTEST_SKIP() << "every device of this build shares the host's memory";
}

}  // namespace
}  // namespace weft
