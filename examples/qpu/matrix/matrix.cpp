// SPDX-License-Identifier: Apache-2.0
// A matrix times a vector on the QPUs, as a Python module: every QPU takes three rows at a time,
// its lanes 16 columns, and they join at the end of the rows. Any height and width.

#include <weft/qpu.h>
#include <weft/qpu_module.h>

#include <cstring>
#include <memory>
#include <string>

#include "weft/targets/qpu/kernels/kernels.h"

using namespace weft::qpu;

namespace {

constexpr int kQpus = 12;
const char* const kDevice = "qpu:reads=fault";

struct Cursor {
  Ptr<Float> addr;
  Float current;

  /// Asks for the first 16 elements.
  void prime(PtrExpr<Float> p) {
    addr = p;
    gather(addr);
  }

  /// Takes what was asked for and asks for the next 16.
  void advance() {
    receive(current);
    addr = addr + 16;
    gather(addr);
  }

  /// Takes what was asked for last.
  void finish() { receive(current); }
};

constexpr int kRows = 3;  // with the vector's, as many requests as a TMU holds

/// Three rows share what is read of the vector. Rows end anywhere: whole vectors stream through
/// cursors, the rest of a row is read lane by lane with the lanes beyond its end kept on its last
/// element and multiplied by zero. The last rows may be fewer than three: the others repeat the
/// last.
void step(Ptr<Float> map, Ptr<Float> weight, Ptr<Float> mapOut, Int width, Int height) {
  Cursor row[kRows], weights;
  Int whole = (width >> 4) << 4, rest = width - whole;
  Int lane = min(index(), rest - 1);
  For(Int y = me() * kRows, y < height, y = y + numQPUs() * kRows)
    Ptr<Float> line[kRows];
    Float accumulate[kRows];
    for (int k = 0; k < kRows; k++) {
      line[k] = map + min(y + k, height - 1) * width;
      accumulate[k] = 0;
    }
    auto add = [&] {
      for (int k = 0; k < kRows; k++)
        accumulate[k] = accumulate[k] + row[k].current * weights.current;
    };
    If(any(whole > 0))
      weights.prime(weight + index());
      for (int k = 0; k < kRows; k++) row[k].prime(line[k] + index());
      For(Int x = 16, x < whole, x = x + 16)
        weights.advance();
        for (int k = 0; k < kRows; k++) row[k].advance();
        add();
      End
      weights.finish();
      for (int k = 0; k < kRows; k++) row[k].finish();
      add();
    End
    If(any(rest > 0))
      Float w = fetch(weight + (whole + lane));
      for (int k = 0; k < kRows; k++) {
        Float product = fetch(line[k] + (whole + lane)) * w;
        accumulate[k] = accumulate[k] + select(index() < rest, product, Float(0));
      }
    End
    Float sums = 0;
    for (int k = 0; k < kRows; k++) {
      Float total = sumLanes(accumulate[k]);
      Where(index() == k)
        sums = total;
      End
    }
    store(sums, mapOut + y, min(height - y, kRows));
  End
}

SharedArray<float>& array(std::unique_ptr<SharedArray<float>>& kept, std::int64_t n) {
  if (!kept || kept->size() < static_cast<std::size_t>(n))
    kept = std::make_unique<SharedArray<float>>(static_cast<std::size_t>(n), kDevice);
  return *kept;
}

std::int64_t cycles = 0;

/// input: width * height elements in any shape; weight: width elements. height elements come back.
Tensor product(Tensor input, Tensor weight) {
  static auto kernel = compile(step, "step", kDevice);
  static std::unique_ptr<SharedArray<float>> a, x, y;
  std::int64_t width = weight.numel();
  if (width == 0 || input.numel() % width)
    throw weft::Error(weft::ErrorKind::shape, "matrix_cpp.shape",
                      "a matrix of " + std::to_string(input.numel()) + " elements has no rows of " +
                          std::to_string(width));
  std::int64_t height = input.numel() / width;
  Tensor out = Tensor::zeros({height});
  if (height == 0) return out;
  std::memcpy(array(a, input.numel()).data(), input.data(),
              static_cast<std::size_t>(input.numel()) * 4);
  std::memcpy(array(x, width).data(), weight.data(), static_cast<std::size_t>(width) * 4);
  array(y, height);
  kernel.setNumQPUs(kQpus);
  kernel(a.get(), x.get(), y.get(), static_cast<int>(width), static_cast<int>(height));
  cycles = kernel.cycles();
  std::memcpy(out.data(), y->data(), static_cast<std::size_t>(height) * 4);
  return out;
}

/// The same by the kernel library: every QPU takes a slice of the columns, eight rows share a read
/// of the vector, four requests are in flight.
Tensor library(Tensor input, Tensor weight) {
  std::int64_t width = weight.numel(), height = width ? input.numel() / width : 0;
  if (width == 0 || height * width != input.numel())
    throw weft::Error(weft::ErrorKind::shape, "matrix_cpp.shape",
                      "a matrix of " + std::to_string(input.numel()) + " elements has no rows of " +
                          std::to_string(width));
  SharedArray<float> a(static_cast<std::size_t>(input.numel())), x(static_cast<std::size_t>(width)),
      y(static_cast<std::size_t>(height)),
      scratch(static_cast<std::size_t>(kQpus * ((height + 15) / 16 * 16)));
  std::memcpy(a.data(), input.data(), static_cast<std::size_t>(input.numel()) * 4);
  std::memcpy(x.data(), weight.data(), static_cast<std::size_t>(width) * 4);
  cycles =
      kernels::gemv(a, x, y, scratch, static_cast<int>(height), static_cast<int>(width), kQpus);
  Tensor out = Tensor::empty({height});
  std::memcpy(out.data(), y.data(), static_cast<std::size_t>(height) * 4);
  return out;
}

std::int64_t last_cycles() { return cycles; }

}  // namespace

WEFT_QPU_MODULE(matrix_cpp, m) {
  m.def("gpu", &product, "matrix (width * height elements) times vector (width elements)");
  m.def("library", &library, "the same by the kernel library");
  m.def("cycles", &last_cycles, "clocks of the last product, at 300 MHz");
}
