// SPDX-License-Identifier: Apache-2.0
// Tensor programs on the emulated QPUs: random programs, unscheduled and under random legal
// schedules, against the interpreter; fixed programs at awkward sizes and on every number of QPUs.

#include <cstdio>
#include <cstring>

#include "../../random/programs.h"
#include "weft/ir/interpret.h"
#include "weft/ir/te.h"
#include "weft/target/backend.h"

namespace weft::schedule::testing {
namespace {

constexpr std::size_t kGuardBytes = 128;  // behind every tensor, not to be touched
constexpr unsigned char kGuard = 0x5a;

std::string run_on(const Ref<runtime::Module>& module, const Ref<runtime::Device>& device,
                   Tensors& t) {
  auto function = make_ref<runtime::Function>(module, "main", device);
  std::vector<Ref<runtime::Storage>> storages;
  std::vector<runtime::CallArg> args;
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const std::size_t bytes = t.data[i].size() * sizeof(float);
    std::vector<unsigned char> image(bytes + kGuardBytes, kGuard);
    if (bytes) std::memcpy(image.data(), t.data[i].data(), bytes);
    storages.push_back(device->allocate(image.size()));
    device->upload(*storages.back(), 0, image.data(), image.size());
    args.push_back({storages.back().get(), 0, dtypes::float32, t.shapes[i], {}, 0, 0});
  }
  function->call(args).wait();
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const std::size_t bytes = t.data[i].size() * sizeof(float);
    std::vector<unsigned char> image(bytes + kGuardBytes);
    device->download(image.data(), *storages[i], 0, image.size());
    if (bytes) std::memcpy(t.data[i].data(), image.data(), bytes);
    for (std::size_t k = bytes; k < image.size(); ++k)
      if (image[k] != kGuard)
        return cat("byte ", k - bytes, " behind parameter ", i, " is written");
  }
  return "";
}

/// Small integers: sums are exact in any order.
std::string difference(const ir::PrimFunc& meaning, const ir::IRModule& scheduled,
                       const std::string& target, std::uint32_t seed) {
  Tensors want = make_tensors(meaning, seed);
  for (auto& values : want.data)
    for (float& v : values) v = std::trunc(v / 3);
  Tensors got = want;
  ir::interpret(meaning, want.args());
  Ref<runtime::Module> module = build(scheduled, target);
  std::string out = run_on(module, open_device(target), got);
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    for (std::size_t k = 0; k < want.data[i].size(); ++k) {
      if (want.data[i][k] == got.data[i][k]) continue;
      return cat(out, "parameter ", i, " element ", k, ": expected ", want.data[i][k], ", got ",
                 got.data[i][k], "\n");
    }
  }
  return out;
}

TEST(QpuTensor, random_programs_without_a_schedule) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    std::string text = random_program(random);
    ir::PrimFunc f = parse(text);
    std::string target = cat("qpu:qpus=", 1 + seed % 12);
    std::string wrong;
    try {
      wrong = difference(f, ir::make_module(f), target, seed);
    } catch (const Error& e) {
      wrong = e.what();
    }
    ASSERT_EQ(wrong, "") << "seed " << seed << " on " << target << "\n" << text;
  }
}

TEST(QpuTensor, random_programs_under_random_schedules) {
  int refused = 0, compared = 0;
  for (std::uint32_t seed = 1000; seed < 1250; ++seed) {
    Random random(seed);
    std::string text = random_program(random);
    ir::PrimFunc f = parse(text);
    Schedule sch(f);
    Driver driver(sch, random, Choices{{}, {"global", "local"}});
    for (int steps = random.between(2, 10); steps > 0; --steps) {
      try {
        driver.step();
      } catch (const Error& e) {
        ASSERT_EQ(e.kind(), ErrorKind::schedule) << e.what();
      }
    }
    std::string wrong;
    try {
      wrong = difference(f, sch.mod(), "qpu", seed);
      ++compared;
    } catch (const Error& e) {
      // Registers have limits; everything else must run.
      if (e.kind() == ErrorKind::lower) ++refused;
      else wrong = e.what();
    }
    ASSERT_EQ(wrong, "") << "seed " << seed << "\n" << text << sch.show();
  }
  std::printf("random schedules: %d compared, %d refused\n", compared, refused);
  EXPECT_GT(compared, 120);
}

}  // namespace
}  // namespace weft::schedule::testing
