// SPDX-License-Identifier: Apache-2.0
// Sum and product of two vectors on the QPUs of a Raspberry Pi, checked against its processor:
//
//   weft-qpu-vector [--device qpu:hw] [--n 100000] [--qpus 12]
//
// "qpu:hw" is the chip; "qpu" is the emulator, which runs anywhere.

#include <weft/qpu.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace weft::qpu;

namespace {

/// Requests run one vector ahead and stay inside the arrays; the last vector is stored exactly.
template <typename F>
void elementwise(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out, F combine) {
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

void add(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out) {
  elementwise(n, x, y, out, [](FloatExpr a, FloatExpr b) { return a + b; });
}

void multiply(Int n, Ptr<Float> x, Ptr<Float> y, Ptr<Float> out) {
  elementwise(n, x, y, out, [](FloatExpr a, FloatExpr b) { return a * b; });
}

struct Options {
  std::string device = "qpu:hw";
  int n = 100000, qpus = 12;
};

/// Two numbers' distance in steps of float32.
long long steps(float a, float b) {
  auto order = [](float f) {
    std::int32_t i;
    std::memcpy(&i, &f, 4);
    return i < 0 ? -static_cast<long long>(i & 0x7fffffff) : static_cast<long long>(i);
  };
  return std::llabs(order(a) - order(b));
}

double seconds() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/// False where the chip's results are not the processor's, up to the last bit (the QPUs' adder
/// rounds toward zero).
bool run(const Options& o, const char* name, void (*f)(Int, Ptr<Float>, Ptr<Float>, Ptr<Float>),
         float (*reference)(float, float), int n) {
  auto k = compile(f, name, o.device);
  k.setNumQPUs(o.qpus);
  auto size = static_cast<std::size_t>(n);
  std::vector<float> x(size), y(size), out(size), want(size);
  std::uint32_t random = 1;
  auto next = [&random] {  // in -1 .. 1
    random = random * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<std::int32_t>(random) >> 8) / 8388608.0f;
  };
  for (std::size_t i = 0; i < size; ++i) x[i] = next(), y[i] = next();
  SharedArray<float> a(size, o.device), b(size, o.device), c(size, o.device);
  a.write(x.data(), size);
  b.write(y.data(), size);
  k(n, &a, &b, &c);  // the first call also brings the program to the device
  double start = seconds();
  k(n, &a, &b, &c);
  double qpu_ms = (seconds() - start) * 1e3;
  c.read(out.data(), size);
  start = seconds();
  for (std::size_t i = 0; i < size; ++i) want[i] = reference(x[i], y[i]);
  double cpu_ms = (seconds() - start) * 1e3;
  long long worst = 0;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    worst = std::max(worst, steps(out[i], want[i]));
    std::uint32_t bits;
    std::memcpy(&bits, &out[i], 4);
    sum = (sum << 1 | sum >> 31) ^ bits;
  }
  std::printf("%-8s n %-7d %2d QPUs  worst difference %lld last bits  checksum %08x  ", name, n,
              o.qpus, worst, static_cast<unsigned>(sum));
  if (k.cycles()) std::printf("%lld clocks\n", static_cast<long long>(k.cycles()));
  else std::printf("%.3f ms, processor %.3f ms\n", qpu_ms, cpu_ms);
  return worst <= 1;
}

int usage() {
  std::fprintf(stderr, "usage: weft-qpu-vector [--device qpu:hw|qpu] [--n N] [--qpus 1..12]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string key = argv[i];
    if (i + 1 == argc) return usage();
    std::string value = argv[++i];
    if (key == "--device") o.device = value;
    else if (key == "--n") o.n = std::atoi(value.c_str());
    else if (key == "--qpus") o.qpus = std::atoi(value.c_str());
    else return usage();
  }
  if (o.n < 0) return usage();
  try {
    bool right = true;
    for (int n : {0, 1, 15, 17, o.n}) {
      right &= run(
          o, "add", add, [](float a, float b) { return a + b; }, n);
      right &= run(
          o, "multiply", multiply, [](float a, float b) { return a * b; }, n);
    }
    std::printf(right ? "all as the processor has them, to the last bit or one beside it\n"
                      : "WRONG\n");
    return right ? 0 : 1;
  } catch (const weft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
