// SPDX-License-Identifier: Apache-2.0
// Words from outside the routers: what waits at a PE, and messages from PE to PE.
#include <algorithm>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

void Fabric::deliver(std::uint32_t index, HostSource message) {
  Pe& pe = make(index);
  if (!pe.io) pe.io = std::make_unique<HostIo>();
  auto& sources = pe.io->sources;
  auto at = sources.end();
  while (at != sources.begin()) {  // by arrival, then by sender: the threads' order must not show
    const HostSource& before = *(at - 1);
    if (before.color != message.color || before.next > 0 ||
        std::pair(before.from, before.sender) <= std::pair(message.from, message.sender))
      break;
    --at;
  }
  Cycle from = message.from;
  sources.insert(at, std::move(message));
  schedule_core(pe, from);
}

void Fabric::post(Worker& w, Pe& pe, HostSink& sink, Cycle now) {
  while (sink.got.size() >= 2 && sink.got.size() >= 2 + std::size_t{sink.got[1]}) {
    auto x = static_cast<std::int32_t>(sink.got[0] & 0xffffu);
    auto y = static_cast<std::int32_t>(sink.got[0] >> 16);
    if (x >= width_ || y >= height_)
      throw pe_fault(pe, "wse.message.destination",
                     cat("a message goes to PE (", x, ", ", y, "); the rectangle is ", width_,
                         " x ", height_));
    HostSource message;
    message.color = pe.program->post_in;
    message.sender = pe.index;
    message.message = true;
    auto n = static_cast<std::ptrdiff_t>(sink.got[1]);
    message.data.assign(sink.got.begin() + 1,
                        sink.got.begin() + 2 + n);  // the length is its header
    sink.got.erase(sink.got.begin(), sink.got.begin() + 2 + n);
    // The first word has come n words ago; the way takes a hop per PE. Never in this cycle or the
    // next, in which other threads may not see it yet.
    Cycle way = std::abs(x - pe.x) + std::abs(y - pe.y);
    message.from = now + std::max<Cycle>(2, way * timing_.hop - n);
    auto index = static_cast<std::uint32_t>(y * width_ + x);
    w.hops += way * n;
    std::size_t worker = worker_of(index);
    if (n == 0) continue;
    if (static_cast<int>(worker) == w.id) {
      deliver(index, std::move(message));
    } else {
      w.letter_min = std::min(w.letter_min, message.from);
      w.mail[static_cast<std::size_t>(w.parity)][worker].push_back({index, std::move(message)});
    }
  }
}

}  // namespace weft::wse
