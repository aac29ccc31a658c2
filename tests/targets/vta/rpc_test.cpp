// SPDX-License-Identifier: Apache-2.0
// The seed's matrix product uploaded to a VTA that another process serves.
#include <gtest/gtest.h>

#include "../../server_process.h"
#include "support.h"
#include "weft/runtime/rpc/rpc.h"

namespace weft::vta {
namespace {

runtime::HostPlan plan_of(const runtime::KernelSignature& k,
                          const std::vector<std::vector<std::int64_t>>& shapes) {
  runtime::HostPlan plan;
  plan.name = "my_gemm";
  runtime::PlanStep launch;
  launch.kind = runtime::StepKind::launch;
  launch.text = k.name;
  for (std::size_t i = 0; i < k.params.size(); ++i) {
    runtime::PlanParam p;
    p.tensor.name = k.params[i].name, p.tensor.dtype = k.params[i].dtype,
    p.tensor.written = i + 1 == k.params.size();
    for (std::int64_t n : shapes[i])
      p.tensor.shape.push_back({{runtime::PlanOp::constant, n}}), p.tensor.binds.push_back(-1);
    plan.params.push_back(p);
    runtime::PlanArg arg;
    arg.buffer = static_cast<std::int32_t>(i), arg.offset_bytes = {{runtime::PlanOp::constant, 0}};
    launch.args.push_back(arg);
  }
  plan.buffers = static_cast<std::int32_t>(k.params.size());
  plan.steps = {launch};
  return plan;
}

TEST(VtaRpc, the_seeds_product_on_a_device_of_another_process) {
  testing::ServerProcess server(WEFT_VTA_TEST_SERVER);
  ASSERT_GT(server.port, 0);
  Ref<rpc::Session> remote = rpc::Session::connect("127.0.0.1", server.port);
  for (const char* name : {"sim", "4x8x8"}) {
    Config c = Config::sample(name);
    remote->reconfigure(c.to_json().dump());
    remote->program();
    const int o = 1, m = 4, n = 4;
    runtime::Binary binary = to_binary(matmul(c, {o, m, n}, {1, 4, 1, 2}), "vta");
    runtime::HostPlan plan = plan_of(binary.kernels[0], {{o, n, c.batch(), c.block_in()},
                                                         {m, n, c.block_out(), c.block_in()},
                                                         {o, m, c.batch(), c.block_out()}});
    remote->upload("gemm.weft-mod", runtime::Module(binary, {plan}).serialize());
    Ref<rpc::RemoteModule> f = remote->load_module("gemm.weft-mod");
    Ref<runtime::Device> device = remote->device("vta");
    EXPECT_EQ(device->info().limits.at("batch"), c.batch());
    std::mt19937_64 rng(6);
    auto B = static_cast<std::size_t>(c.batch()), K = static_cast<std::size_t>(c.block_in());
    auto a = random_values<std::int8_t>(rng, o * n * B * K, -128, 127),
         w = random_values<std::int8_t>(rng, m * n * K * K, -128, 127);
    Bytes8 got(o * m * B * K);
    std::vector<Ref<runtime::Storage>> storage;
    std::vector<runtime::CallArg> args;
    auto add = [&](const Bytes8& data, std::vector<std::int64_t> shape) {
      storage.push_back(device->allocate(data.size(), 4096));
      device->upload(*storage.back(), 0, data.data(), data.size());
      runtime::CallArg arg;
      arg.storage = storage.back().get(), arg.dtype = dtypes::int8, arg.shape = std::move(shape);
      args.push_back(arg);
    };
    add(a, {o, n, c.batch(), c.block_in()});
    add(w, {m, n, c.block_out(), c.block_in()});
    add(got, {o, m, c.batch(), c.block_out()});
    f->call("my_gemm", args);
    device->download(got.data(), *storage[2], 0, got.size());
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t q = 0; q < K; ++q) {
          std::int64_t sum = 0;
          for (std::size_t k = 0; k < 4 * K; ++k)
            sum += a[(k / K * B + b) * K + k % K] * w[((j * 4 + k / K) * K + q) * K + k % K];
          ASSERT_EQ(got[(j * B + b) * K + q], static_cast<std::int8_t>(sum & 0xff));
        }
      }
    }
    runtime::TimeResult t = f->time("my_gemm", args, 2, 3);
    EXPECT_GT(t.cycles, 100);
    EXPECT_DOUBLE_EQ(t.mean, t.cycles / 100e6);
    EXPECT_EQ(device->stats().get("macs") % (16 * c.macs_per_uop()), 0);
    // A module for another configuration is refused by name.
    Config other = Config::sample("1x32x32");
    EXPECT_EQ(refused([&] {
                device->load(to_binary(matmul(other, {1, 1, 1}, {1, 1, 1, 1}), "vta"));
              }).code,
              "vta.binary.config");
  }
  EXPECT_EQ(refused([&] { remote->reconfigure("{\"TARGET\": 3}"); }).code, "vta.config.type");
}

}  // namespace
}  // namespace weft::vta
