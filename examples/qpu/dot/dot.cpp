// SPDX-License-Identifier: Apache-2.0
// Sum and product of two tensors, element by element, on the QPUs: a Python module and torch.ops
// entries without libtorch. Any length; nothing outside the arrays is read or written; kernels are
// compiled at the first call and arrays kept between calls.

#include <weft/qpu.h>
#include <weft/qpu_module.h>

#include <cstring>
#include <memory>
#include <string>

using namespace weft::qpu;

namespace {

constexpr int kQpus = 12;
int builds = 0;       // how often a kernel's function ran, that is, was compiled
int allocations = 0;  // of device memory

/// Visits x[0 .. n) and y[0 .. n) 16 elements at a time; requests run one vector ahead and stay
/// inside the arrays; the last vector is stored exactly.
template <typename F>
void elementwise(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, F combine) {
  ++builds;
  Int inc = numQPUs() << 4;
  Int at = me() << 4, last = n - 1;
  If(any(at < n))
    gather(x + min(at + index(), last));
    gather(y + min(at + index(), last));
    Float a, b;
    While(any(at + inc < n))
      gather(x + min(at + inc + index(), last));
      gather(y + min(at + inc + index(), last));
      receive(a);
      receive(b);
      store(combine(a, b), out + at);
      at = at + inc;
    End
    receive(a);
    receive(b);
    store(combine(a, b), out + at, n - at);
  End
}

void dotproduct(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out) {
  elementwise(n, x, y, out, [](FloatExpr a, FloatExpr b) { return a * b; });
}

void dotadd(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out) {
  elementwise(n, x, y, out, [](FloatExpr a, FloatExpr b) { return a + b; });
}

/// Device memory that grows when it must and is kept.
SharedArray<float>& array(std::unique_ptr<SharedArray<float>>& kept, std::int64_t n) {
  if (!kept || kept->size() < static_cast<std::size_t>(n)) {
    ++allocations;
    kept = std::make_unique<SharedArray<float>>(static_cast<std::size_t>(n), "qpu:reads=fault");
  }
  return *kept;
}

template <typename K>
Tensor run(K& kernel, const Tensor& x, const Tensor& y) {
  if (x.shape() != y.shape())
    throw weft::Error(weft::ErrorKind::shape, "dot_cpp.shape",
                      "tensors of " + std::to_string(x.numel()) + " and " +
                          std::to_string(y.numel()) + " elements do not have one shape");
  static std::unique_ptr<SharedArray<float>> a, b, c;
  std::int64_t n = x.numel();
  Tensor out = Tensor::empty(x.shape());
  if (n == 0) return out;
  std::memcpy(array(a, n).data(), x.data(), static_cast<std::size_t>(n) * 4);
  std::memcpy(array(b, n).data(), y.data(), static_cast<std::size_t>(n) * 4);
  array(c, n);
  kernel.setNumQPUs(kQpus);
  kernel(static_cast<int>(n), a.get(), b.get(), c.get());
  std::memcpy(out.data(), c->data(), static_cast<std::size_t>(n) * 4);
  return out;
}

Tensor dot_product(Tensor input, Tensor weight) {
  static auto kernel = compile(dotproduct, "dotproduct", "qpu:reads=fault");
  return run(kernel, input, weight);
}

Tensor dot_add(Tensor input, Tensor weight) {
  static auto kernel = compile(dotadd, "dotadd", "qpu:reads=fault");
  return run(kernel, input, weight);
}

int compiled() { return builds; }
int allocated() { return allocations; }

}  // namespace

WEFT_QPU_MODULE(dot_cpp, m) {
  m.def("add", &dot_add, "input + weight");
  m.def("product", &dot_product, "input * weight, element by element");
  m.def("allocated", &allocated, "how many arrays have been allocated on the device so far");
  m.def("compiled", &compiled, "how many kernels have been compiled so far");
}
