// SPDX-License-Identifier: Apache-2.0
#pragma once
// What training a network from C++ takes beside Tensor: linear layers, a loss, optimizers. The
// names and formulas are those of weft.nn and weft.optim in Python.

#include <span>
#include <vector>

#include "weft/autograd/tensor.h"

namespace weft::nn {

/// x W + b. Weights are Kaiming-uniform, the bias uniform in +-1/sqrt(in); both are drawn from the
/// Philox stream of `seed`.
class Linear {
 public:
  Linear(const Ref<Device>& device, std::int64_t in_features, std::int64_t out_features,
         std::uint64_t seed);
  Tensor operator()(const Tensor& x) const { return matmul(x, weight) + bias; }
  Tensor weight, bias;  // (in, out), (out)
};

/// -log softmax(row)[label] for each row of logits (n, classes) with its label, an integer. Throws
/// `outside` where a label is no class, on devices with a grid when the host next waits for them;
/// while work is recorded for a device the loss of such a label is no number. On those devices the
/// losses are one reduction and the gradients one map: logarithms of all classes are not written.
Tensor label_losses(const Tensor& logits, const NDArray& labels, const Error& outside);

/// Mean of -log softmax(logits)[label] over the rows of logits (n, classes); labels are n integers.
/// Throws Error(shape, "nn.cross_entropy.shape"), Error(index, "nn.cross_entropy.label").
Tensor cross_entropy(const Tensor& logits, const NDArray& labels);

}  // namespace weft::nn

namespace weft::optim {

/// Holds parameters; step() changes the data of those that have a gradient.
class Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {}
  virtual ~Optimizer() = default;
  virtual void step() = 0;
  void zero_grad();

 protected:
  std::vector<Tensor> parameters_;
};

/// v = momentum v + g + weight_decay p; p -= lr v.
class SGD final : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, double lr = 0.01, double momentum = 0,
               double weight_decay = 0);
  void step() override;

 private:
  double lr_, momentum_, weight_decay_;
  std::vector<NDArray> velocity_;
};

/// Adam with bias correction (Kingma and Ba 2015); weight decay is added to the gradient.
class Adam final : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, double lr = 0.001, double beta1 = 0.9,
                double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0);
  void step() override;

 private:
  double lr_, beta1_, beta2_, eps_, weight_decay_;
  std::int64_t t_ = 0;
  std::vector<NDArray> m_, v_;
};

}  // namespace weft::optim
