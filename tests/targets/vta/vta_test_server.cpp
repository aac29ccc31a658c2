// SPDX-License-Identifier: Apache-2.0
// A process that serves simulated VTAs until its input ends; prints its port.
#include <cstdio>

#include "weft/runtime/rpc/rpc.h"
#include "weft/targets/vta/simulator.h"

int main() {
  weft::rpc::ServerOptions options;
  options.port = 0;
  options.device_name = "vta";
  weft::rpc::Server server(options, [](std::string_view config) {
    return weft::vta::open_simulator(config.empty() ? weft::vta::Config()
                                                    : weft::vta::Config::parse(config));
  });
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
