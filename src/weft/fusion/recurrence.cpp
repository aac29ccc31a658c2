// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/recurrence.h"

#include "weft/devices/dispatch.h"
#include "weft/host/gemm.h"

namespace weft {

namespace {

/// Products of changing rows with one matrix, into arrays.
class Products {
 public:
  // Devices read a matrix fastest along its rows; one copy serves all steps.
  Products(const NDArray& matrix, std::int64_t rows)
      : matrix_(matrix.on_host() ? matrix : matrix.contiguous()) {
    if (!matrix.on_host() || rows < 2) return;
    const std::int64_t k = matrix.shape()[0], n = matrix.shape()[1];
    auto pack = [&]<typename T>(std::optional<PackedMatrix<T>>& out) {
      out.emplace(n, k, reinterpret_cast<const T*>(matrix.host()), matrix.strides()[0],
                  matrix.strides()[1]);
    };
    if (k * n == 0) return;
    if (matrix.elem() == Elem::float32) pack(singles_);
    if (matrix.elem() == Elem::float64) pack(doubles_);
  }
  void operator()(const NDArray& out, const NDArray& a) const {
    auto multiply = [&]<typename T>(const PackedMatrix<T>& packed) {
      packed.multiply(a.shape()[0], reinterpret_cast<const T*>(a.host()), a.strides()[0],
                      a.strides()[1], reinterpret_cast<T*>(out.host()), out.strides()[0]);
    };
    if (singles_) return multiply(*singles_);
    if (doubles_) return multiply(*doubles_);
    if (!out.on_host() && out.size() > 0 && matrix_.size() > 0)
      return device_matmul(out, a, matrix_);
    assign(out, matmul(a, matrix_));
  }

 private:
  NDArray matrix_;
  std::optional<PackedMatrix<float>> singles_;
  std::optional<PackedMatrix<double>> doubles_;
};

/// The gates of an array of two axes, or of a bias.
void add_gates(std::vector<NDArray>& out, const NDArray& x, std::size_t gates) {
  const std::int64_t n = x.shape()[x.ndim() - 1] / static_cast<std::int64_t>(gates);
  for (std::size_t k = 0; k < gates; ++k)
    out.push_back(x.slice(x.ndim() - 1, static_cast<std::int64_t>(k) * n, n, 1));
}

std::vector<Lazy> inputs_of(const std::vector<Lazy>& outputs, std::size_t count) {
  std::vector<Lazy> out(count);
  for (std::size_t k = 0; k < count; ++k)
    out[k] = Lazy::input(static_cast<int>(k), outputs[0].elem(), Dims{});
  for (const Lazy& x : topological(outputs))
    if (x->kind == LazyKind::input) out[static_cast<std::size_t>(x->index)] = x;
  return out;
}

}  // namespace

// Inputs of the gradient: those of the cell, the gradient of the output, what comes from the step
// behind through the product and, with direct_, past it, and the gradients of the other states.
Recurrence::Recurrence(std::vector<Lazy> next, int gates, bool bias)
    : gates_(static_cast<std::size_t>(gates)),
      states_(next.size()),
      bias_(bias),
      next_(next, gates * (bias ? 3 : 2) + static_cast<int>(next.size())) {
  const std::size_t first = gates_ * (bias ? 3 : 2);
  const std::vector<Lazy> inputs = inputs_of(next, first + states_);
  const Elem elem = next[0].elem();
  int more = static_cast<int>(inputs.size());
  auto input = [&] { return Lazy::input(more++, elem, Dims{}); };
  const Lazy output = input(), product = input(), past = input();
  std::vector<Lazy> seeds{apply(Op::add, output, product)};
  while (seeds.size() < states_) seeds.push_back(input());
  auto found = [&] { return gradients(next, seeds, inputs); };
  // Whether the state has other ways on than the product does not depend on the seeds.
  direct_ = found()[first].defined();
  if (direct_) seeds[0] = apply(Op::add, seeds[0], past);
  const std::vector<Lazy> of = found();
  std::vector<Lazy> wanted(of.begin() + gates, of.begin() + 2 * gates);
  for (std::size_t k = 0; k < gates_; ++k) apart_ = apart_ || of[k].node() != wanted[k].node();
  if (apart_) wanted.insert(wanted.end(), of.begin(), of.begin() + gates);
  if (direct_) wanted.push_back(of[first]);
  wanted.insert(wanted.end(), of.begin() + static_cast<std::ptrdiff_t>(first) + 1, of.end());
  for (const Lazy& x : wanted) WEFT_CHECK(x.defined(), "a cell that does not read an input");
  back_.emplace(std::move(wanted), more);
}

Recurrence::Run Recurrence::forward(bool reverse, bool keep, const NDArray& p,
                                    const NDArray& weight, const NDArray& bias,
                                    const std::vector<NDArray>& states) const {
  const std::int64_t steps = p.shape()[0], batch = p.shape()[1], width = p.shape()[2];
  const std::int64_t hidden = weight.shape()[0], others = static_cast<std::int64_t>(states_) - 1;
  auto make = [&](std::int64_t count, std::int64_t n) {
    return NDArray::empty(p.device(), p.elem(), Dims{count, batch, n});
  };
  // Outputs with the first state before the first of them, and the other states' last values.
  const NDArray all = make(steps + 1 + others, hidden);
  const std::int64_t start = reverse ? steps + others : 0, ends = reverse ? 0 : steps + 1;
  Run run{all.slice(0, reverse ? 0 : 1, steps + others, 1),
          all.slice(0, reverse ? others + 1 : 0, steps, 1),
          make(keep ? steps : 1, width),
          {}};
  // Without a gradient other states have two places in turns.
  const std::int64_t rooms = keep ? steps : std::min<std::int64_t>(2, steps);
  assign(all.select(0, start), states[0]);
  for (std::int64_t k = 0; k < others; ++k) {
    run.earlier.push_back(make(std::max<std::int64_t>(1, rooms), hidden));
    const NDArray first = run.earlier.back().select(0, keep && reverse ? rooms - 1 : 0);
    assign(steps > 0 ? first : all.select(0, ends + k), states[static_cast<std::size_t>(k) + 1]);
  }
  const Products product(weight, batch);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = reverse ? steps - 1 - i : i, then = reverse ? t - 1 : t + 1;
    const NDArray h = run.before.select(0, t), q = run.sums.select(0, keep ? t : 0);
    product(q, h);
    std::vector<NDArray> in, out{run.result.select(0, reverse ? t + others : t)};
    add_gates(in, p.select(0, t), gates_);
    add_gates(in, q, gates_);
    if (bias_) add_gates(in, bias, gates_);
    in.push_back(h);
    for (std::int64_t k = 0; k < others; ++k) {
      const NDArray& kept = run.earlier[static_cast<std::size_t>(k)];
      in.push_back(kept.select(0, keep ? t : i % rooms));
      out.push_back(i + 1 == steps ? all.select(0, ends + k)
                                   : kept.select(0, keep ? then : (i + 1) % rooms));
    }
    next_(out, in);
  }
  return run;
}

Recurrence::Gradients Recurrence::backward(bool reverse, const NDArray& g, const NDArray& p,
                                           const NDArray& weight, const NDArray& bias,
                                           const Run& run) const {
  const std::int64_t steps = p.shape()[0], others = static_cast<std::int64_t>(states_) - 1;
  const std::int64_t outputs = reverse ? others : 0, ends = reverse ? 0 : steps;
  const Dims state{p.shape()[1], weight.shape()[0]};
  auto like = [&](const Dims& shape) { return NDArray::empty(p.device(), p.elem(), shape); };
  auto zeros = [&] { return full(p.device(), p.elem(), state, Scalar(0)); };
  Gradients out;
  out.q = like(p.shape());
  out.p = apart_ ? like(p.shape()) : out.q;
  NDArray through = zeros(), past, past_next;
  if (direct_) past = zeros(), past_next = like(state);
  std::vector<NDArray> carried, carried_next;
  for (std::int64_t k = 0; k < others; ++k) {
    carried.push_back(g.select(0, ends + k));
    carried_next.push_back(like(state));
  }
  const Products product(weight.transpose(0, 1), state[0]);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = reverse ? i : steps - 1 - i;
    std::vector<NDArray> in, to;
    add_gates(in, p.select(0, t), gates_);
    add_gates(in, run.sums.select(0, t), gates_);
    if (bias_) add_gates(in, bias, gates_);
    in.push_back(run.before.select(0, t));
    for (const NDArray& x : run.earlier) in.push_back(x.select(0, t));
    in.insert(in.end(), {g.select(0, outputs + t), through, direct_ ? past : through});
    in.insert(in.end(), carried.begin(), carried.end());
    const NDArray dq = out.q.select(0, t);
    add_gates(to, dq, gates_);
    if (apart_) add_gates(to, out.p.select(0, t), gates_);
    if (direct_) to.push_back(past_next);
    to.insert(to.end(), carried_next.begin(), carried_next.end());
    (*back_)(to, in);
    product(through, dq);
    // The gradients of the last step's other states lie in g, which is not written.
    std::swap(past, past_next);
    carried.swap(carried_next);
    if (i == 0)
      for (NDArray& x : carried_next) x = like(state);
  }
  if (direct_) through = apply(Op::add, through, past);
  out.states.push_back(through);
  out.states.insert(out.states.end(), carried.begin(), carried.end());
  return out;
}

}  // namespace weft
