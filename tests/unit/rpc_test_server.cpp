// SPDX-License-Identifier: Apache-2.0
// A process that serves a device of plain memory until it is killed or its input ends; prints its
// port.
#include <cstdio>

#include "rpc_test_device.h"
#include "weft/runtime/rpc/rpc.h"

int main() {
  weft::rpc::ServerOptions options;
  options.port = 0;
  options.device_name = "memory";
  weft::rpc::Server server(
      options, [](std::string_view config) { return weft::rpc::memory_device(config); });
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
