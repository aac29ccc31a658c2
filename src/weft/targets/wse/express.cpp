// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/express.h"

#include <algorithm>
#include <bit>
#include <new>

#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {
bool plain(const Route& r) {
  return !r.positions[0].valid && !r.positions[1].valid && !r.positions[2].valid &&
         r.filter.kind == Filter::none && !r.teardown && !r.swap_x && !r.swap_y && r.current == 0;
}
constexpr std::uint8_t kOpposite[kPorts] = {kWest, kEast, kSouth, kNorth, kRamp};
}  // namespace

// Static route of a colour at a PE, whether the PE exists yet or not.
const Route* Fabric::static_route(std::uint32_t index, int color) const {
  const Tile& tile = layout_.tiles[index];
  const Route* found = nullptr;
  if (tile.routes < layout_.route_sets.size()) {
    for (const ColorRoute& r : layout_.route_sets[tile.routes]) {
      if (r.color == color) found = &r.route;
    }
  }
  if (tile.program != kNoProgram) {
    for (const ColorRoute& r : layout_.programs[tile.program].routes) {
      if (r.color == color) found = &r.route;
    }
  }
  return found;
}

bool Fabric::link_alone(std::uint32_t index, int color, int port) const {
  const Tile& tile = layout_.tiles[index];
  auto shares = [&](const ColorRoute& r) {
    if (r.color == color) return false;
    std::uint8_t tx = r.route.tx;
    for (const SwitchPosition& p : r.route.positions) tx |= p.tx;
    return (tx >> port & 1u) != 0;
  };
  if (tile.routes < layout_.route_sets.size()) {
    for (const ColorRoute& r : layout_.route_sets[tile.routes])
      if (shares(r)) return false;
  }
  if (tile.program != kNoProgram) {
    for (const ColorRoute& r : layout_.programs[tile.program].routes)
      if (shares(r)) return false;
  }
  return true;
}

// Follows the colour from the PE's ramp; null when its way is not fixed.
Express* Fabric::make_express(Pe& pe, ColorState& cs) {
  cs.express_known = true;
  if (!express_allowed_ || ((stream_in_ | stream_out_) >> cs.color & 1u)) return nullptr;
  for (const PortStream& p : layout_.ports) {
    if (p.color == cs.color) return nullptr;
  }
  struct At {
    std::uint32_t index;
    int port, hops;
  };  // entered `index` through `port`
  std::vector<At> todo{{pe.index, kRamp, 0}};
  struct End {
    std::uint32_t index;
    int hops;
  };
  std::vector <
End
> ends;
Placed<Express> express(arena_.make<Express>());
for (std::size_t i = 0; i < todo.size(); ++i) {
  At at = todo[i];
  const Route* r = static_route(at.index, cs.color);
  if (!r || !plain(*r) || r->rx != port_bit(at.port) || r->tx == 0 || todo.size() > 4096)
    return nullptr;
  const Route* pair = static_route(at.index, cs.color ^ 1);  // which may take what arrives
  if (pair && (pair->swap_x || pair->swap_y)) return nullptr;
  std::int32_t x = static_cast<std::int32_t>(at.index) % width_,
               y = static_cast<std::int32_t>(at.index) / width_;
  for (int o = 0; o < kPorts; ++o) {
    if (!(r->tx >> o & 1u)) continue;
    express->links.emplace_back(at.index, static_cast<std::uint8_t>(o));
    if (o == kRamp) {
      if (layout_.tiles[at.index].program == kNoProgram) return nullptr;
      ends.push_back({at.index, at.hops});
      continue;
    }
    if (!link_alone(at.index, cs.color, o)) return nullptr;
    std::int32_t nx = x + (o == kEast) - (o == kWest), ny = y + (o == kSouth) - (o == kNorth);
    if (nx < 0 || ny < 0 || nx >= width_ || ny >= height_) return nullptr;
    todo.push_back({static_cast<std::uint32_t>(ny * width_ + nx), kOpposite[o], at.hops + 1});
  }
}
for (const End& end : ends) {
  const auto capacity = static_cast<std::uint16_t>(4 + timing_.router_depth * (end.hops + 1) + 4);
  const std::size_t places = std::bit_ceil(std::size_t{capacity});
  void* memory = arena_.allocate(Channel::bytes(places), alignof(Channel));
  Placed<Channel> c(new (memory) Channel);
  std::uninitialized_value_construct_n(c->places + 1, places - 1);
  Pe& to = make(end.index);
  c->from = pe.index;
  c->to = end.index;
  c->color = cs.color;
  c->latency = static_cast<std::uint16_t>(
      options_.timed ? 1 + timing_.ramp_out + end.hops * timing_.hop + timing_.ramp_in : 0);
  c->capacity = capacity;
  c->mask = static_cast<std::uint16_t>(places - 1);
  color_state(to, cs.color)->arriving.store(c.get(), std::memory_order_release);
  express->all.push_back(c.get());
  express->to.push_back(std::move(c));
}
cs.express = std::move(express);
return cs.express.get();
}

// Readers are told of what this visit has sent.
void Fabric::announce(Worker& w, const OutQueue& q, Cycle now) {
  const auto channels = q.channels();
  const Cycle sent = channels[0]->unannounced;
  if (sent < 0) return;
  for (Channel* c : channels) {
    notify(w, *pes_[c->to].load(std::memory_order_relaxed), std::max(now + 1, sent + c->latency),
           c->color + kExpressLetter);
    w.asleep_until = std::max<Cycle>(w.asleep_until, c->last().when);  // nothing ends before
  }
  channels[0]->unannounced = -1;
}

// Books what express wavelets did to the links they passed.
void Fabric::settle() {
  for (std::size_t i = 0; i < pes_.size(); ++i) {
    Pe* pe = pes_[i].load();
    if (!pe) continue;
    for (std::size_t k = 0; k < pe->colors.size(); ++k) {
      Express* e = pe->colors[k]->express.get();
      if (!e) continue;
      const std::int64_t n = e->to[0]->sent - e->booked;
      if (n == 0) continue;
      e->booked += n;
      for (auto [index, port] : e->links) make(index).count.sent[port] += n;
      workers_[0]->hops += n * static_cast<std::int64_t>(e->links.size());
    }
  }
}

}  // namespace weft::wse
