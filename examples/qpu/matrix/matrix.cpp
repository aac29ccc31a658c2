// SPDX-License-Identifier: Apache-2.0
// A matrix times a vector on the QPUs, as a Python module: every QPU takes rows, the lanes of a QPU
// take 16 columns at a time and join at the end of the row. Any height and width.

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

// clang-format off
struct Cursor
{
    Ptr<Float> addr;
    Float current;

    /// Asks for the first 16 elements.
    void prime(PtrExpr<Float> p) { addr = p; gather(addr); }

    /// Takes what was asked for and asks for the next 16.
    void advance() { receive(current); addr = addr + 16; gather(addr); }

    /// Takes what was asked for last.
    void finish() { receive(current); }
};

/// Rows end anywhere: whole vectors stream through cursors, the rest of a row is read lane by lane
/// with the lanes beyond its end kept on its last element and multiplied by zero.
void step(Ptr<Float> map, Ptr<Float> weight, Ptr<Float> mapOut, Int width, Int height)
{
    Cursor row, weights;
    Int whole = (width >> 4) << 4, rest = width - whole;
    Int lane = min(index(), rest - 1);
    For (Int y = me(), y < height, y = y + numQPUs())
        Ptr<Float> line = map + y * width;
        Float accumulate = 0;
        If (any(whole > 0))
            row.prime(line + index());
            weights.prime(weight + index());
            For (Int x = 16, x < whole, x = x + 16)
                row.advance();
                weights.advance();
                accumulate = accumulate + row.current * weights.current;
            End
            row.finish();
            weights.finish();
            accumulate = accumulate + row.current * weights.current;
        End
        If (any(rest > 0))
            Float product = fetch(line + (whole + lane)) * fetch(weight + (whole + lane));
            accumulate = accumulate + select(index() < rest, product, Float(0));
        End
        store(sumLanes(accumulate), mapOut + y, IntExpr(1));
    End
}
// clang-format on

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
                      "a matrix of " + std::to_string(input.numel()) +
                          " elements has no rows of " + std::to_string(width));
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
                      "a matrix of " + std::to_string(input.numel()) +
                          " elements has no rows of " + std::to_string(width));
  SharedArray<float> a(static_cast<std::size_t>(input.numel())), x(static_cast<std::size_t>(width)),
      y(static_cast<std::size_t>(height)),
      scratch(static_cast<std::size_t>(kQpus * ((height + 15) / 16 * 16)));
  std::memcpy(a.data(), input.data(), static_cast<std::size_t>(input.numel()) * 4);
  std::memcpy(x.data(), weight.data(), static_cast<std::size_t>(width) * 4);
  cycles = kernels::gemv(a, x, y, scratch, static_cast<int>(height), static_cast<int>(width), kQpus);
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
