// SPDX-License-Identifier: Apache-2.0
// Convolutions by whole tiles from the call on: choices, copies and launches of a machine that has
// the table of a card and whose programs the interpreter runs, beside sums in float64.

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "weft/autograd/gpu/convolution.h"
#include "weft/ir/interpret.h"
#include "weft/target/backend.h"

namespace weft {

namespace cpu {
Backend& backend();
}
namespace cuda {
Backend& backend();
}
namespace ref {
Backend& backend();
}

namespace {

/// What the host cannot address, as a card's memory.
class InterpretedCard final : public runtime::Device {
 public:
  InterpretedCard() {
    info_.name = "interpreted";
    info_.kind = runtime::DeviceKind::hardware;
    info_.limits = {{"threads_per_block", 1024}, {"shared_bytes", 232448},
                    {"multiprocessors", 4},      {"tensor_maps", 1},
                    {"clock_khz", 1500000},      {"memory_bytes_per_microsecond", 600000}};
  }
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<Storage> allocate(runtime::Bytes bytes, runtime::Bytes, std::string_view space) override {
    void* memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
    std::memset(memory, 0x7f, bytes);  // what nothing wrote is no number of 16 bits
    return make_ref<Storage>(Ref<runtime::Device>(this), reinterpret_cast<std::uint64_t>(memory),
                             bytes, space);
  }
  void upload(Storage& to, runtime::Bytes offset, const void* from, runtime::Bytes n) override {
    std::memcpy(at(to) + offset, from, n);
  }
  void download(void* to, const Storage& from, runtime::Bytes offset, runtime::Bytes n) override {
    std::memcpy(to, at(from) + offset, n);
  }
  void copy(Storage& to, runtime::Bytes a, const Storage& from, runtime::Bytes b,
            runtime::Bytes n) override {
    std::memmove(at(to) + a, at(from) + b, n);
  }
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    Ref<runtime::Executable> ready = ref_->load(binary);
    return make_ref<Ready>(Ref<runtime::Device>(this), std::move(binary), ready);
  }
  /// The interpreter's own device checks what is reached. Transposes are done here: only lowering
  /// puts the barriers into their program.
  runtime::Event launch(runtime::Executable& e, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override {
    if (!e.binary().kernels[kernel].name.starts_with("transpose"))
      return ref_->launch(*static_cast<Ready&>(e).inner, kernel, args, extents);
    const auto count = e.binary().source.find("H = T.allocate((");
    const std::int64_t lanes = e.binary().source.at(count + 16) - '0';
    auto* to = reinterpret_cast<std::uint16_t*>(at(*args[0].storage) + args[0].offset);
    const auto* from =
        reinterpret_cast<const std::uint16_t*>(at(*args[1].storage) + args[1].offset);
    EXPECT_NE(e.binary().source.find("\"uint16\""), std::string::npos);
    auto n = [&](std::size_t i) { return args[i].scalar; };
    EXPECT_EQ(n(4), n(9));
    for (std::int64_t b = 0; b < n(4); ++b)
      for (std::int64_t r = 0; r < n(5); ++r)
        for (std::int64_t c = 0; c < n(6); ++c)
          to[(b * n(11) + c * n(8)) * lanes + r] = from[(b * n(10) + r * n(7)) * lanes + c];
    return {};
  }

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes, std::string_view) override {
    std::free(reinterpret_cast<void*>(address));
  }

 private:
  struct Ready final : runtime::Executable {
    Ready(Ref<runtime::Device> device, runtime::Binary binary, Ref<runtime::Executable> in)
        : Executable(std::move(device), std::move(binary)), inner(std::move(in)) {}
    Ref<runtime::Executable> inner;
  };
  static char* at(const Storage& s) { return static_cast<char*>(s.host()); }
  runtime::DeviceInfo info_;
  Ref<runtime::Device> ref_ = open_device("ref");
};

/// The table of a card of sm_90; programs stay text.
class Interpreted final : public Backend {
 public:
  std::string_view name() const override { return "interpreted"; }
  TargetInfo info(const Target&) const override {
    TargetInfo out = cuda::backend().info(Target::parse("cuda:arch=sm_90"));
    out.limits[limits::kWholeFunctions] = 1;
    return out;
  }
  Verdict accepts(const ir::PrimFunc&, const Target&) const override { return {}; }
  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target&) const override {
    return cuda::backend().default_schedule(f, Target::parse("cuda:arch=sm_90"));
  }
  pass::Pipeline pipeline(const Target&) const override {
    return ref::backend().pipeline(Target::parse("ref"));
  }
  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels, const Target&) const override {
    return ref::backend().emit(kernels, Target::parse("ref"));
  }
  std::vector<DeviceStatus> devices() const override { return {}; }
  Ref<runtime::Device> open(const Target&) const override { return nullptr; }
};

}  // namespace

/// This binary's own list (targets/registry.cpp has the library's).
const std::vector<Backend*>& backends() {
  static Interpreted own;
  static const std::vector<Backend*> all = {&cpu::backend(), &cuda::backend(), &ref::backend(),
                                            &own};
  return all;
}

namespace {

float widen(std::uint16_t v) { return std::bit_cast<float>(std::uint32_t{v} << 16); }
std::uint16_t narrow(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Four axes of small numbers, whose sums are exact.
struct Values {
  Dims shape;
  std::vector<double> v;
  explicit Values(const Dims& n)
      : shape(n), v(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3])) {}
  double& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return v[static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d)];
  }
  void fill(std::mt19937& rng) {
    for (double& x : v) x = static_cast<double>(static_cast<int>(rng() % 9) - 4);
  }
  NDArray on(const Ref<Device>& device, Elem elem) const {
    const NDArray out = NDArray::empty(device, elem, shape);
    std::vector<std::uint16_t> halves;
    std::vector<float> singles;
    for (double x : v)
      halves.push_back(narrow(static_cast<float>(x))), singles.push_back(static_cast<float>(x));
    const void* from =
        elem == Elem::float32 ? static_cast<const void*>(singles.data()) : halves.data();
    device->upload(*out.handle(), static_cast<std::size_t>(out.offset() * elem_bytes(elem)), from,
                   static_cast<std::size_t>(out.nbytes()));
    return out;
  }
};

std::int64_t differences(const NDArray& got, const Values& want) {
  const NDArray x = got.contiguous();
  std::vector<char> bytes(static_cast<std::size_t>(x.nbytes()));
  x.device()->download(bytes.data(), *x.handle(),
                       static_cast<std::size_t>(x.offset() * elem_bytes(x.elem())), bytes.size());
  std::int64_t wrong = x.shape() == want.shape ? 0 : 1;
  for (std::size_t i = 0; i < want.v.size(); ++i) {
    const float value = static_cast<float>(want.v[i]);
    const bool same =
        x.elem() == Elem::float32
            ? reinterpret_cast<const float*>(bytes.data())[i] == value
            : reinterpret_cast<const std::uint16_t*>(bytes.data())[i] == narrow(value) ||
                  (value == 0 &&
                   widen(reinterpret_cast<const std::uint16_t*>(bytes.data())[i]) == 0);
    wrong += !same;
  }
  return wrong;
}

struct Case {
  std::int64_t n = 1, c = 1, o = 1;  // channels of all groups
  Pair image{1, 1}, window{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};

/// All three, each by tiles.
void check(const Case& p, Elem elem = Elem::bfloat16) {
  SCOPED_TRACE(cat(p.n, " ", p.c, " ", p.o, " image ", p.image[0], " ", p.image[1], " window ",
                   p.window[0], " ", p.window[1], " step ", p.stride[0], " ", p.stride[1], " gap ",
                   p.dilation[0], " ", p.dilation[1], " groups ", p.groups));
  static Ref<Device> device = make_ref<InterpretedCard>();
  std::mt19937 rng(5);
  const std::int64_t ins = p.c / p.groups, outs = p.o / p.groups;
  device::Images images;
  Pair out{};
  for (std::size_t i = 0; i < 2; ++i) {
    images.step[i] = p.stride[i], images.before[i] = p.padding[i], images.gap[i] = p.dilation[i];
    out[i] =
        (p.image[i] + 2 * p.padding[i] - (p.window[i] - 1) * p.dilation[i] - 1) / p.stride[i] + 1;
  }
  images.groups = p.groups;
  Values x(Dims{p.n, p.c, p.image[0], p.image[1]}), w(Dims{p.o, ins, p.window[0], p.window[1]}),
      g(Dims{p.n, p.o, out[0], out[1]}), y(g.shape), dx(x.shape), dw(w.shape);
  x.fill(rng), w.fill(rng), g.fill(rng);
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t o = 0; o < p.o; ++o)
      for (std::int64_t r = 0; r < out[0]; ++r)
        for (std::int64_t s = 0; s < out[1]; ++s)
          for (std::int64_t i = 0; i < p.window[0]; ++i)
            for (std::int64_t j = 0; j < p.window[1]; ++j) {
              const std::int64_t row = r * p.stride[0] + i * p.dilation[0] - p.padding[0],
                                 column = s * p.stride[1] + j * p.dilation[1] - p.padding[1];
              if (row < 0 || row >= p.image[0] || column < 0 || column >= p.image[1]) continue;
              for (std::int64_t c = 0; c < ins; ++c) {
                const std::int64_t from = o / outs * ins + c;
                y.at(n, o, r, s) += x.at(n, from, row, column) * w.at(o, c, i, j);
                dx.at(n, from, row, column) += g.at(n, o, r, s) * w.at(o, c, i, j);
                dw.at(o, c, i, j) += g.at(n, o, r, s) * x.at(n, from, row, column);
              }
            }
  const NDArray X = x.on(device, elem), W = w.on(device, elem), G = g.on(device, elem);
  const NDArray Y = NDArray::empty(device, elem, y.shape),
                DX = NDArray::empty(device, elem, x.shape),
                DW = NDArray::empty(device, elem, w.shape);
  device::warp_specialized_conv(Y, X, W, images);
  EXPECT_EQ(differences(Y, y), 0) << "results";
  device::warp_specialized_conv_gradients(&DX, &DW, G, X, W, images);
  EXPECT_EQ(differences(DX, dx), 0) << "towards images";
  EXPECT_EQ(differences(DW, dw), 0) << "towards weights";
}

TEST(ArrayTiles, windows_with_gaps) {
  check({1, 9, 17, {7, 6}, {3, 2}, {1, 1}, {2, 1}, {2, 3}, 1});
  check({2, 8, 5, {9, 8}, {1, 3}, {2, 3}, {0, 2}, {1, 2}, 1});
  check({1, 16, 8, {9, 7}, {2, 3}, {3, 2}, {1, 0}, {3, 2}, 1});
}

TEST(ArrayTiles, groups) {
  check({2, 10, 6, {5, 4}, {3, 2}, {1, 1}, {1, 0}, {1, 1}, 2});
  check({1, 21, 14, {5, 6}, {1, 3}, {1, 1}, {0, 2}, {2, 2}, 7});
  check({2, 16, 24, {6, 5}, {2, 2}, {2, 2}, {1, 0}, {1, 1}, 8});
  check({2, 6, 9, {5, 5}, {1, 1}, {2, 1}, {0, 0}, {1, 1}, 3});
  check({1, 16, 16, {7, 9}, {3, 3}, {3, 2}, {2, 1}, {2, 3}, 2});
}

TEST(ArrayTiles, drawn_ones) {
  std::mt19937 rng(3);
  auto one_of = [&](std::initializer_list<std::int64_t> v) { return v.begin()[rng() % v.size()]; };
  auto pair = [&](std::initializer_list<std::int64_t> v) {
    const std::int64_t first = one_of(v);
    return Pair{first, one_of(v)};
  };
  for (int turn = 0; turn < 30; ++turn) {
    Case p;
    p.groups = one_of({1, 1, 2, 7, 8});
    p.c = p.groups * one_of({1, 3, 5, 8, 9, 70}), p.o = p.groups * one_of({1, 3, 6, 8, 17});
    p.n = one_of({1, 2, 3});
    p.window = pair({1, 2, 3}), p.stride = pair({1, 1, 2, 3}), p.dilation = pair({1, 1, 2, 3});
    p.padding = pair({0, 1, 2, 4}), p.image = pair({7, 8, 9});
    check(p);
  }
}

}  // namespace
}  // namespace weft
