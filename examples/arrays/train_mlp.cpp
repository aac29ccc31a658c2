// SPDX-License-Identifier: Apache-2.0
// A multilayer perceptron learns to tell three spirals apart, in C++ alone.
//   train_mlp [device] [steps]
// Prints the loss as it falls; exit status 1 when the net has not learnt, 2 when the device is not
// there.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/array/random.h"
#include "weft/autograd/nn.h"
#include "weft/target/backend.h"

namespace {

constexpr int kClasses = 3, kPoints = 300;

struct Data {
  weft::NDArray points, labels;  // (kPoints, 2), (kPoints)
};

Data spirals(const weft::Ref<weft::Device>& device) {
  std::vector<float> points(2 * kPoints);
  std::vector<std::int32_t> labels(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    const int label = i % kClasses;
    const double t = 0.2 + 1.0 * i / kPoints;
    const double angle = 4 * t + label * 2 * 3.14159265358979 / kClasses;
    points[static_cast<std::size_t>(2 * i)] = static_cast<float>(t * std::cos(angle));
    points[static_cast<std::size_t>(2 * i + 1)] = static_cast<float>(t * std::sin(angle));
    labels[static_cast<std::size_t>(i)] = label;
  }
  Data data{weft::NDArray::empty(device, weft::Elem::float32, weft::Dims{kPoints, 2}),
            weft::NDArray::empty(device, weft::Elem::int32, weft::Dims{kPoints})};
  device->upload(*data.points.handle(), 0, points.data(), points.size() * sizeof(float));
  device->upload(*data.labels.handle(), 0, labels.data(), labels.size() * sizeof(std::int32_t));
  return data;
}

int train(const std::string& name, int steps) {
  weft::Ref<weft::Device> device = weft::open_device(name);
  Data data = spirals(device);
  weft::Tensor x(data.points);
  weft::nn::Linear first(device, 2, 64, 1), second(device, 64, 64, 2), third(device, 64, 3, 3);
  weft::optim::Adam optimizer(
      {first.weight, first.bias, second.weight, second.bias, third.weight, third.bias}, 0.01);
  float loss_now = 0, loss_first = 0;
  for (int step = 0; step < steps; ++step) {
    weft::Tensor logits = third(weft::relu(second(weft::relu(first(x)))));
    weft::Tensor loss = weft::nn::cross_entropy(logits, data.labels);
    optimizer.zero_grad();
    weft::backward(loss);
    optimizer.step();
    loss.data().read_element(0, &loss_now);
    if (step == 0) loss_first = loss_now;
    if (step % (steps / 10 + 1) == 0) std::printf("step %4d  loss %.4f\n", step, loss_now);
  }
  std::printf("step %4d  loss %.4f on %s\n", steps, loss_now, device->info().name.c_str());
  return loss_now < 0.1f * loss_first ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? argv[1] : "cpu", argc > 2 ? std::atoi(argv[2]) : 150);
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
