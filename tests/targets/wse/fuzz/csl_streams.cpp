// SPDX-License-Identifier: Apache-2.0
// `wse_csl_streams FIRST LAST [threads]`: the random programs of stream_programs.h, ahead of the
// calendar beside cycle by cycle and, if asked for, on 2 to so many threads. Prints what differs;
// the exit code says whether anything does.
#include <cstdio>
#include <cstdlib>

#include "../csl/stream_programs.h"

using namespace weft::wse;
using namespace weft::wse::testing;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: wse_csl_streams FIRST LAST [threads]\n");
    return 2;
  }
  const int first = std::atoi(argv[1]), last = std::atoi(argv[2]);
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  int bad = 0;
  for (int seed = first; seed <= last; ++seed) {
    for (Arch arch : {Arch::wse2, Arch::wse3}) {
      StreamPrograms programs(static_cast<unsigned>(seed));
      const Layout layout = csl::compile(programs.options(arch));
      const StreamOutcome slow = run_streams(layout, {.fast = false});
      for (int n = 1; n <= threads; ++n) {
        const StreamOutcome fast = run_streams(layout, {.threads = n});
        const bool memory = fast.memory == slow.memory, counters = fast.counters == slow.counters;
        if (memory && counters && fast.cycles == slow.cycles) continue;
        ++bad;
        std::printf("seed %d, %s, %d threads: cycles %lld and %lld, memory %s, counters %s\n", seed,
                    arch == Arch::wse3 ? "wse3" : "wse2", n, static_cast<long long>(slow.cycles),
                    static_cast<long long>(fast.cycles), memory ? "same" : "differs",
                    counters ? "same" : "differ");
      }
    }
  }
  std::printf("%d differ\n", bad);
  return bad != 0;
}
