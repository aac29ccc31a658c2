// SPDX-License-Identifier: Apache-2.0
// Remote devices on loopback: a small call, and 16 MiB up and down, in plain text; with TLS when a
// certificate and its key are given as PEM files: `rpc_bench [cert.pem key.pem]`.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "weft/base/file.h"
#include "weft/runtime/rpc/rpc.h"
#include "weft/targets/vta/simulator.h"

using namespace weft;

namespace {

double seconds(const std::function<void()>& work, int rounds) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void run(const char* name, const std::string& cert, const std::string& key) {
  rpc::ServerOptions options;
  options.port = 0;
  options.tls_cert = cert, options.tls_key = key;
  rpc::Server server(options, [](std::string_view) { return vta::open_simulator(vta::Config()); });
  rpc::ConnectOptions connect;
  connect.tls_ca = cert;
  Ref<rpc::Session> session = rpc::Session::connect("localhost", server.port(), connect);
  Ref<runtime::Device> device = session->device();
  double call = seconds(
                    [&] {
                      for (int i = 0; i < 500; ++i) device->synchronize();
                    },
                    5) /
                500;
  std::printf("%s: small call %.1f us (asked: 200)\n", name, call * 1e6);
  std::string data(16 << 20, 'x');
  Ref<runtime::Storage> s = device->allocate(data.size());
  double up = seconds([&] { device->upload(*s, 0, data.data(), data.size()); }, 5);
  double down = seconds([&] { device->download(data.data(), *s, 0, data.size()); }, 5);
  std::printf("%s: 16 MiB up %.0f MB/s (asked: 250 in plain text), down %.0f MB/s\n", name,
              16.777216 / up, 16.777216 / down);
}

}  // namespace

int main(int argc, char** argv) {
  run("plain", "", "");
  if (argc == 3) run("TLS", read_file(argv[1]), read_file(argv[2]));
  return 0;
}
