// SPDX-License-Identifier: Apache-2.0
// Which host thread visits which PE. Shares are runs of PEs in row-major order, so that neighbours
// mostly have one owner; at first of equal numbers of PEs with a program, later of equal numbers of
// visits. Results do not depend on the shares.
#include <algorithm>

#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

void Fabric::share_tiles() {
  std::size_t n = workers_.size();
  auto last = static_cast<std::uint32_t>(pes_.size());
  share_end_.assign(n, last);
  if (n == 1) return;
  std::uint64_t total = 0;
  for (const Tile& t : layout_.tiles) total += t.program != kNoProgram;
  // Routers without a program get a share as well, or one worker would own them all.
  if (total == 0) total = last;
  std::uint64_t seen = 0;
  std::size_t w = 0;
  for (std::uint32_t i = 0; i < last && w + 1 < n; ++i) {
    seen += total == last || layout_.tiles[i].program != kNoProgram;
    if (seen * n >= total * (w + 1)) share_end_[w++] = i + 1;
  }
}

// Called while no thread runs and all letters have been read. Makes shares of equal numbers of
// visits; false: the shares that are would stay nearly as they are.
bool Fabric::share_anew() {
  std::size_t n = workers_.size();
  std::uint64_t total = 0;
  std::vector<std::uint64_t> held(n), fresh(n);
  for (auto& slot : pes_) {
    if (Pe* pe = slot.load(std::memory_order_relaxed)) {
      total += pe->visits;
      held[pe->worker] += pe->visits;
    }
  }
  std::vector<std::uint32_t> ends(n, static_cast<std::uint32_t>(pes_.size()));
  std::uint64_t seen = 0;
  std::size_t w = 0;
  for (std::uint32_t i = 0; i < pes_.size(); ++i) {
    Pe* pe = pes_[i].load(std::memory_order_relaxed);
    if (!pe) continue;
    // A PE goes where its middle falls.
    std::uint64_t middle = seen + pe->visits / 2;
    while (w + 1 < n && middle * n >= total * (w + 1)) ends[w++] = i;
    seen += pe->visits;
    fresh[w] += pe->visits;
    pe->visits = 0;
  }
  std::uint64_t before = *std::max_element(held.begin(), held.end());
  std::uint64_t after = *std::max_element(fresh.begin(), fresh.end());
  if (after * 20 >= before * 19) return false;
  share_end_ = ends;
  Cycle base = kNever;
  for (auto& worker : workers_) {
    base = std::min(base, worker->base);
    worker->clear();
  }
  for (auto& worker : workers_) worker->base = base;
  for (auto& slot : pes_) {
    Pe* pe = slot.load(std::memory_order_relaxed);
    if (!pe) continue;
    pe->worker = worker_of(pe->index);
    if (pe->wake_at != kNever) workers_[pe->worker]->put(pe->wake_at, pe->index);
  }
  return true;
}

}  // namespace weft::wse
