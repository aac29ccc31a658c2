// SPDX-License-Identifier: Apache-2.0
// Simple matrix multiply on VTA in C++, step by step as in matmul.py: declare, schedule, print,
// build, save, upload to a device that another process serves, run, compare.
//   example_vta_matmul [m n]      m = n = 4 is the tutorial's size, 16 its sibling
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include <weft/weft.h>

#include "weft/runtime/rpc/rpc.h"
#include "weft/target/rules.h"
#include "weft/targets/vta/simulator.h"

namespace {

using namespace weft;

/// RPC setup: a process of its own that serves a simulated VTA until `stop` closes; its port.
struct Served {
  Served() {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) std::exit(1);
    pid = fork();
    if (pid == 0) {
      close(to[1]);
      close(from[0]);
      rpc::ServerOptions options;
      options.port = 0;
      options.device_name = "vta";
      rpc::Server server(options, [](std::string_view config) {
        return vta::open_simulator(config.empty() ? vta::Config() : vta::Config::parse(config));
      });
      int number = server.port();
      if (write(from[1], &number, sizeof number) != sizeof number) _exit(1);
      char c;
      while (read(to[0], &c, 1) > 0) {
      }
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    stop = to[1];
    if (read(from[0], &port, sizeof port) != sizeof port) port = 0;
    close(from[0]);
  }
  ~Served() {
    close(stop);
    waitpid(pid, nullptr, 0);
  }
  pid_t pid = 0;
  int stop = -1, port = 0;
};

ir::Exprs shape(std::initializer_list<std::int64_t> extents) {
  ir::Exprs out;
  for (std::int64_t e : extents) out.push_back(ir::make_int(e));
  return out;
}

/// Computation declaration: data in the machine's own tiles.
PrimFunc declare(const vta::Config& env, int o, int m, int n) {
  const std::int64_t B = env.batch(), K = env.block_in(), O = env.block_out();
  te::Tensor A = te::placeholder(shape({o, n, B, K}), dtypes::int8, "A");
  te::Tensor W = te::placeholder(shape({m, n, O, K}), dtypes::int8, "B");
  auto copy = [](const te::Tensor& t) {
    return [&t](const std::vector<ir::Var>& i) { return t(i[0], i[1], i[2], i[3]); };
  };
  te::Tensor A_buf = te::compute(shape({o, n, B, K}), copy(A), "A_buf");
  te::Tensor B_buf = te::compute(shape({m, n, O, K}), copy(W), "B_buf");
  ir::IterVar ko = te::reduce_axis(n, "ko"), ki = te::reduce_axis(K, "ki");
  te::Tensor C_buf = te::compute(
      shape({o, m, B, O}),
      [&](const std::vector<ir::Var>& i) {
        return te::sum(ir::cast(dtypes::int32, A_buf(i[0], ko.var, i[2], ki.var)) *
                           ir::cast(dtypes::int32, B_buf(i[1], ko.var, i[3], ki.var)),
                       {ko, ki});
      },
      "C_buf");
  te::Tensor C = te::compute(
      shape({o, m, B, O}),
      [&](const std::vector<ir::Var>& i) {
        return ir::cast(dtypes::int8, C_buf(i[0], i[1], i[2], i[3]));
      },
      "C");
  return te::create_prim_func({A, W, C});
}

int run(int o, int m, int n) {
  Served served;  // before anything of this process starts threads
  vta::Config env;
  std::printf("%s\n%s", env.values().target.c_str(), vta::describe(env).c_str());

  Schedule s(declare(env, o, m, n), all_target_info());
  std::printf("---- the default schedule\n%s\n", s.show().c_str());
  BlockRef A_buf = s.get_block("A_buf"), B_buf = s.get_block("B_buf"), C_buf = s.get_block("C_buf"),
           C = s.get_block("C");
  s.set_scope(A_buf, 0, "vta.inp");
  s.set_scope(B_buf, 0, "vta.wgt");
  s.set_scope(C_buf, 0, "vta.acc");
  std::vector<LoopRef> l = s.get_loops(C_buf);  // bo, co, bi, ci, ko, ki
  s.reorder({l[4], l[0], l[1], l[2], l[3], l[5]});
  s.compute_at(A_buf, l[4]);
  s.compute_at(B_buf, l[4]);
  for (BlockRef block : {A_buf, B_buf, C}) s.annotate(s.get_loops(block).back(), "dma_copy", 1);
  s.decompose_reduction(C_buf, l[4]);
  s.tensorize(l[2], "vta.gemm");
  std::printf("---- tensorized\n%s\n", s.show().c_str());

  Module module = build(s, "vta");
  std::printf("---- instructions, micro-operations and tokens\n%s\n", module.source().c_str());
  char path[] = "/tmp/weft-vta-XXXXXX";
  if (!mkdtemp(path)) return 1;
  std::string folder = path, file = folder + "/gemm.weft-mod";
  module.save(file);

  int wrong = 0;
  {
    Ref<rpc::Session> remote = rpc::Session::connect("127.0.0.1", served.port);
    remote->upload_file(file);
    Ref<rpc::RemoteModule> f = remote->load_module("gemm.weft-mod");
    Ref<runtime::Device> device = remote->device("vta");
    std::mt19937 rng(1);
    const std::int64_t B = env.batch(), K = env.block_in(), O = env.block_out();
    auto random = [&](std::int64_t count) {
      std::vector<std::int8_t> out(static_cast<std::size_t>(count));
      for (auto& v : out) v = static_cast<std::int8_t>(rng() & 0xff);
      return out;
    };
    std::vector<std::int8_t> a = random(o * n * B * K), b = random(m * n * O * K),
                             c(static_cast<std::size_t>(o * m * B * O));
    std::vector<Ref<runtime::Storage>> storage;
    std::vector<runtime::CallArg> args;
    auto add = [&](const std::vector<std::int8_t>& data, std::vector<std::int64_t> extents) {
      storage.push_back(device->allocate(data.size(), 4096));
      device->upload(*storage.back(), 0, data.data(), data.size());
      runtime::CallArg arg;
      arg.storage = storage.back().get(), arg.dtype = dtypes::int8, arg.shape = std::move(extents);
      args.push_back(arg);
    };
    add(a, {o, n, B, K});
    add(b, {m, n, O, K});
    add(c, {o, m, B, O});
    f->call("main", args);
    device->download(c.data(), *storage[2], 0, c.size());
    for (std::int64_t i = 0; i < o * m * B * O; ++i) {
      std::int64_t q = i % O, p = i / O % B, j = i / O / B % m, t = i / O / B / m, sum = 0;
      for (std::int64_t k = 0; k < n * K; ++k)
        sum += a[static_cast<std::size_t>(((t * n + k / K) * B + p) * K + k % K)] *
               b[static_cast<std::size_t>(((j * n + k / K) * O + q) * K + k % K)];
      wrong += c[static_cast<std::size_t>(i)] != static_cast<std::int8_t>(sum & 0xff);
    }
    TimeResult time = f->time("main", args, 1, 1);
    std::printf("%s: %.0f cycles, %.2f us\n", wrong ? "WRONG" : "Successful matrix multiply test!",
                time.cycles, time.mean * 1e6);
  }
  std::remove(file.c_str());
  rmdir(path);
  return wrong ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(1, argc > 2 ? std::atoi(argv[1]) : 4, argc > 2 ? std::atoi(argv[2]) : 4);
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
