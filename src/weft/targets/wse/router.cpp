// SPDX-License-Identifier: Apache-2.0
// The router of one PE for one cycle: each colour moves at most one wavelet, each outgoing link
// carries at most one. A multicast wavelet leaves when all of its outputs can take it.
#include <bit>
#include <span>

#include "weft/base/error.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {
constexpr int opposite(int port) {
  constexpr int table[kAllPorts] = {kWest, kEast, kSouth, kNorth, kRamp, kHostPort};
  return table[port];
}

// Control payload: command 0 in bits 22..23 with its no-CE bit 24, command 1 in 25..26 and 27,
// command 2 in 28..29 and 0, then 1..2 and 3, 4..5 and 6, ... 13..14 and 15. Bits 16..21 name a
// control task.
constexpr int kCommand0 = 22;

// Removes command 0: each following command moves up by one place, NOP comes in at the end.
std::uint32_t pop_command(std::uint32_t payload) {
  std::uint32_t entry = payload & 0x003f0000u;
  // The list as 24 bits, command 0 lowest: bits 22..31 hold 10 bits (the top two unused), 0..15 the
  // rest, where bit 0 continues bit 29.
  std::uint32_t list = (payload >> kCommand0 & 0xffu) | (payload & 0xffffu) << 8;
  list >>= 3;
  return entry | (list & 0xffu) << kCommand0 | (list >> 8 & 0xffffu);
}
}  // namespace

InQueue* Fabric::queue_for(Pe& pe, int color) {
  std::uint8_t q = pe.color_queue[static_cast<std::size_t>(color)];
  return q == kNone8 ? nullptr : &pe.in[q];
}

bool Fabric::pass_filter(ColorState& cs, const Wavelet& wavelet) {
  if (cs.filter_disabled) return true;
  const Filter& f = cs.route.filter;
  bool is_control = wavelet.control != 0;
  switch (f.kind) {
    case Filter::none: return true;
    case Filter::range: {
      if (is_control) return true;
      std::uint32_t index = wavelet.data >> 16;
      return index >= f.min_index && index <= f.max_index;
    }
    case Filter::counter:
    case Filter::sparse_counter: {
      const bool sparse = f.kind == Filter::sparse_counter;
      if (cs.filter_off || (sparse && cs.limit == 0)) return true;
      bool counted = is_control ? f.count_control : f.count_data;
      bool pass = !is_control        ? cs.counter <= f.max_counter
                  : f.filter_control ? cs.counter == f.max_counter
                                     : true;
      if (counted) {
        if (cs.counter >= cs.limit) {
          cs.counter = 0;
          if (sparse) {  // limit1, then limit2 where there is one, then no filter
            cs.filter_off = cs.second_limit || f.limit2 == 0;
            cs.second_limit = true;
            cs.limit = f.limit2;
          }
        } else {
          ++cs.counter;
        }
      }
      return pass;
    }
  }
  return true;
}

// What a control wavelet that has just been routed does to this router; may rewrite the payload.
void Fabric::control(Pe& pe, ColorState& cs, std::uint32_t& payload, Cycle) {
  std::uint32_t command = payload >> kCommand0 & 3u;
  bool pop = cs.route.pop == PopMode::always;
  int last = 0;
  while (last < 3 && cs.route.positions[static_cast<std::size_t>(last)].valid) ++last;
  switch (command) {
    case 1:  // advance
      if (last > 0 && (cs.position < last || cs.route.ring)) {
        cs.position = cs.position < last ? static_cast<std::uint8_t>(cs.position + 1) : 0;
        enforce(cs);
        // A switch that stays where it is leaves the command to the next router.
        if (cs.route.pop == PopMode::on_advance || cs.route.pop == PopMode::on_advance_nop)
          pop = true;
      }
      break;
    case 2:  // reset
      cs.position = 0;
      enforce(cs);
      break;
    case 3:  // teardown
      cs.down = true;
      cs.pending_teardown = true;
      pe.teardown_pending |= 1u << cs.color;
      pe.local_pending |= 1u << 29;
      pe.core_at = 0;
      break;
    default:
      if (cs.route.pop == PopMode::on_advance_nop) pop = true;
      break;
  }
  if (pop) payload = pop_command(payload);
}

// The color that a neighbour knows a wavelet by which goes there through port o, where it swaps
// colors; where only one color of a pair swaps, the other one, which receives it too.
ColorState* Fabric::swapped(Pe& to, int o, std::uint8_t& color) {
  if (!to.any_swap) return nullptr;
  ColorState *own = color_state(to, color), *other = color_state(to, color ^ 1);
  auto swaps = [&](const ColorState& c) {
    return o == kEast || o == kWest ? c.route.swap_x : c.route.swap_y;
  };
  if (!other || !swaps(*other)) return nullptr;
  color ^= 1;
  const bool receives = own && own->configured && !swaps(*own) && (own->rx & port_bit(opposite(o)));
  return receives ? own : nullptr;
}

bool Fabric::route_color(Worker& w, Pe& pe, ColorState& cs, Cycle now, Cycle& next,
                         std::uint8_t& links) {
  int from = -1;
  bool any = false;
  std::uint8_t enabled = static_cast<std::uint8_t>(cs.rx | 1u << kHostPort);
  for (int p = 0; p < kAllPorts; ++p) {
    Ring* r = cs.in[static_cast<std::size_t>(p)].load(std::memory_order_relaxed);
    if (!r || r->empty()) continue;
    any = true;
    if (!(enabled >> p & 1u)) continue;  // waits for a switch
    Cycle ready = r->front().ready;
    if (ready > now) {
      next = std::min(next, ready);
      continue;
    }
    if (from >= 0) {
      if (options_.two_inputs_fault) {
        throw pe_fault(pe, "wse.route.two_inputs",
                       cat("wavelets of colour ", static_cast<int>(cs.color), " arrive from ",
                           from < kPorts ? port_name(from) : "host", " and ",
                           p < kPorts ? port_name(p) : "host", " at the same time"))
            .help(
                "give each stream a colour of its own, or let a switch admit one input at a time");
      }
      next = std::min(next, now + 1);
      continue;
    }
    from = p;
  }
  if (!any) pe.busy_colors &= ~(1u << cs.color);
  if (from < 0 || cs.down) return false;
  Ring& source = *cs.in[static_cast<std::size_t>(from)].load(std::memory_order_relaxed);
  Wavelet wavelet = source.front();
  std::uint8_t tx = from == kHostPort ? port_bit(kRamp) : cs.tx;
  if (from == kHostPort && cs.configured && (cs.tx & ~port_bit(kRamp))) tx = cs.tx;
  if (tx == 0) {
    throw pe_fault(
        pe, "wse.route.none",
        cat("a wavelet of colour ", static_cast<int>(cs.color), " arrived from ",
            from < kPorts ? port_name(from) : "host", " but the colour has no output here"));
  }

  // Filters and the no-CE bit decide about the ramp only.
  std::uint8_t out = tx;
  bool to_ramp = (tx & port_bit(kRamp)) != 0;
  bool ramp_refused = false;
  if (to_ramp) {
    if ((wavelet.control & 1u) && (wavelet.data >> (kCommand0 + 2) & 1u)) ramp_refused = true;
    else if (cs.route.filter.kind != Filter::none) {
      std::uint16_t counter = cs.counter,
                    limit = cs.limit;  // undone when the wavelet cannot leave yet
      const bool off = cs.filter_off, second = cs.second_limit;
      ramp_refused = !pass_filter(cs, wavelet);
      cs.counter = counter;
      cs.limit = limit;
      cs.filter_off = off;
      cs.second_limit = second;
    }
    if (ramp_refused) out = static_cast<std::uint8_t>(out & ~port_bit(kRamp));
  }

  InQueue* queue = nullptr;
  struct Way {
    int port;
    Ring* ring;  // null: to the ramp, the host, or off the edge
    Ring* also;
    Pe* pe;
    std::uint8_t color;
  };
  Way ways[kPorts];
  std::size_t count = 0;
  constexpr std::uint32_t kInside = (1u << kPorts) - 1;
  for (std::uint32_t left = out & kInside; left; left &= left - 1) {
    const int o = std::countr_zero(left);
    Way& way = ways[count++];
    way = {o, nullptr, nullptr, nullptr, cs.color};
    if (options_.timed && (links >> o & 1u)) {
      next = std::min(next, now + 1);
      return false;
    }
    if (o == kRamp) {
      queue = queue_for(pe, cs.color);
      if (!queue || queue->count >= queue->depth) return false;  // the consumer wakes us
      continue;
    }
    int n = neighbor_index(pe, o);
    HostSink* sink = pe.io ? sink_of(pe, cs.color, o) : nullptr;
    if (sink) continue;
    if (n < 0) {
      // No router beyond the edge has a route: a few wavelets find a place at its entrance.
      if (cs.outside < timing_.router_depth) continue;
      throw pe_fault(pe, "wse.route.edge",
                     cat("colour ", static_cast<int>(cs.color), " sends a wavelet ", port_name(o),
                         " off the edge of the ", width_, " x ", height_, " rectangle, where ",
                         static_cast<int>(cs.outside), " wait already and nobody takes them"));
    }
    Pe& nb = make(static_cast<std::uint32_t>(n));
    way.pe = &nb;
    Ring*& known = cs.onward[static_cast<std::size_t>(o)];
    if (known && !nb.any_swap) {
      way.ring = known;
    } else {
      ColorState* both = swapped(nb, o, way.color);
      ColorState* ncs = color_state(nb, way.color);
      if (!ncs) {
        throw pe_fault(pe, "wse.route.none",
                       cat("colour ", static_cast<int>(way.color), " is sent ", port_name(o),
                           " to PE (", nb.x, ", ", nb.y, "), which has no route for it"))
            .help("configure the colour there with @set_color_config");
      }
      way.ring = &ring(*ncs, opposite(o));
      if (!nb.any_swap) known = way.ring;
      if (both) {
        way.also = &ring(*both, opposite(o));
        if (way.also->held(now) >= timing_.router_depth) {
          next = std::min(next, now + 1);
          return false;
        }
      }
    }
    if (way.ring->held(now) >= timing_.router_depth) {
      if (static_cast<std::uint32_t>(way.ring->pop.load(std::memory_order_relaxed) >> 32) ==
          static_cast<std::uint32_t>(now)) {
        next = std::min(next, now + 1);  // room from the next cycle on
      }
      return false;
    }
  }

  if (options_.timed && (tx >> kHostPort & 1u) && pe.io) {  // the channel's turn of this PE
    const HostSink* sink = sink_of(pe, cs.color, kHostPort);
    if (sink && sink->wanted && sink->gap && sink->from > now) {
      next = std::min(next, sink->from);
      return false;
    }
  }

  // Everything can go.
  bool was_full = source.held(now) >= timing_.router_depth;
  source.take(now);
  if (to_ramp && !((wavelet.control & 1u) && (wavelet.data >> (kCommand0 + 2) & 1u))) {
    if (cs.route.filter.kind != Filter::none) pass_filter(cs, wavelet);
  }
  std::uint32_t payload = wavelet.data;
  if (wavelet.control & 1u) control(pe, cs, payload, now);
  for (const Way& way : std::span(ways, count)) {
    const int o = way.port;
    links |= port_bit(o);
    ++pe.count.sent[static_cast<std::size_t>(o)];
    ++w.hops;
    if (trace_ && options_.trace_links && o != kRamp) {
      double us = 1e6 / timing_.clock_hz;
      int track = trace_->track(cat("link ", pe.x, ",", pe.y), port_name(o));
      trace_->span(track, cat(wavelet.control ? "control " : "", "colour ", cs.color),
                   static_cast<double>(now) * us, us);
    }
    if (o == kRamp) {
      Cycle ready = now + timing_.ramp_in;
      queue->slot[(queue->head + queue->count) % 8u] = {payload, wavelet.control, ready};
      ++queue->count;
      next = std::min(next, ready);
      pe.core_at = std::min(pe.core_at, ready);
      pe.busy_in |= 1u << (queue - pe.in.data());
    } else if (way.ring) {
      Cycle ready = now + timing_.hop;
      way.ring->push({payload, wavelet.control, ready});
      notify(w, *way.pe, ready, way.color);
      if (way.also) {
        way.also->push({payload, wavelet.control, ready});
        notify(w, *way.pe, ready, cs.color);
      }
    } else if (HostSink* sink = pe.io ? sink_of(pe, cs.color, o) : nullptr) {
      if (wavelet.control) continue;  // the host takes data only
      sink->got.push_back(payload);
      if (sink->wanted && --sink->wanted == 0 && sink->left->fetch_sub(1) == 1) host_event_ = true;
    } else {
      ++cs.outside;
    }
  }
  if ((tx >> kHostPort & 1u) && !wavelet.control) {
    HostSink& sink = make_sink(pe, cs.color, kHostPort);
    ++pe.count.sent[kHostPort];
    sink.got.push_back(payload);
    sink.from = std::max(sink.from, now) + sink.gap;
    if (pe.program && pe.program->post_out == cs.color) post(w, pe, sink, now);
    if (sink.wanted && --sink.wanted == 0 && sink.left->fetch_sub(1) == 1) host_event_ = true;
  }
  if (was_full && from < kRamp) {
    int n = neighbor_index(pe, from);
    if (n >= 0) {
      if (Pe* up = pes_[static_cast<std::size_t>(n)].load(std::memory_order_acquire))
        notify(w, *up, now + 1, -1);
    }
  }
  // Another wavelet may follow here in the next cycle; the ramp and the host find their room
  // themselves.
  if (!source.empty()) next = std::min(next, std::max(now + 1, source.front().ready));
  else if (from >= kRamp) next = std::min(next, now + 1);
  for (int p = 0; wavelet.control && p < kAllPorts;
       ++p) {  // the switch may have admitted another input
    Ring* r = cs.in[static_cast<std::size_t>(p)].load(std::memory_order_relaxed);
    if (r && !r->empty()) next = std::min(next, std::max(now + 1, r->front().ready));
  }
  return true;
}

void Fabric::route(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  std::uint8_t links = 0;
  // Round robin: colours from rr_color upwards, then the rest.
  const std::uint32_t above = ~0u << pe.rr_color;
  bool first = true;
  for (std::uint32_t part : {above, ~above}) {
    for (std::uint32_t mask = pe.busy_colors & part; mask; mask &= mask - 1) {
      int c = std::countr_zero(mask);
      ColorState& cs = *color_state(pe, c);
      bool moved = route_color(w, pe, cs, now, next, links);
      if (moved && first) {
        pe.rr_color = static_cast<std::uint8_t>((c + 1) % kColors);
        first = false;
      }
      while (moved && !options_.timed) moved = route_color(w, pe, cs, now, next, links);
    }
  }
}

void Fabric::inject(Pe& pe, Cycle now, Cycle& next) {
  auto& sources = pe.io->sources;
  std::uint64_t seen = 0;  // colours and ports whose turn an earlier source has
  for (std::size_t i = 0; i < sources.size();) {
    HostSource& s = sources[i];
    std::uint64_t key = 1ull << (s.color + (s.port == kHostPort ? 0 : 32));
    if (seen & key) {
      ++i;
      continue;
    }
    seen |= key;
    const Cycle due = s.from + static_cast<Cycle>(s.next) * s.gap;
    if (due > now) {
      next = std::min(next, due);
      ++i;
      continue;
    }
    ColorState* cs = color_state(pe, s.color);
    if (!cs) cs = &add_color(pe, s.color);
    Ring& r = ring(*cs, s.port);
    int room = timing_.router_depth - r.held(now);
    if (options_.timed && room > 1) room = 1;
    while (room > 0 && s.next < s.data.size()) {
      const bool end = s.message && s.next + 1 == s.data.size();
      r.push({s.data[s.next++], end ? kMessageEnd : 0, now});
      --room;
    }
    pe.busy_colors |= 1u << s.color;
    if (s.next < s.data.size()) {
      // Wakes with this PE's own pops; a full ring is looked at again when something moved.
      if (r.held(now) < timing_.router_depth) next = std::min(next, now + 1);
      ++i;
      continue;
    }
    if (s.left && s.left->fetch_sub(1) == 1) host_event_ = true;
    sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Fabric::drain_out(Worker&, Pe& pe, Cycle now, Cycle& next) {
  // One wavelet per cycle climbs the ramp; queues take turns.
  std::uint32_t mask = pe.busy_out;
  bool moved = false;
  for (std::uint32_t k = 0; k < 8 && mask; ++k) {
    std::uint32_t q = (pe.rr_out + k) % 8u;
    if (!(mask >> q & 1u)) continue;
    OutQueue& out = pe.out[q];
    while (out.count) {
      const Wavelet& front = out.slot[out.head % 8u].wavelet;
      if (front.ready > now) {
        next = std::min(next, front.ready);
        break;
      }
      if (moved && options_.timed) {
        next = std::min(next, now + 1);
        break;
      }
      int color = out.slot[out.head % 8u].color;
      if (pe.any_swap) {
        ColorState* other = color_state(pe, color ^ 1);
        if (other && other->route.swap_x && other->route.swap_y) color ^= 1;
      }
      ColorState* cs = ramp_color(pe, color);
      if (!cs) {
        throw pe_fault(
            pe, "wse.route.none",
            cat("output queue ", q, " sends on colour ", color, ", which has no route at this PE"))
            .help("configure the colour with @set_color_config or @set_local_color_config");
      }
      Ring& r = ring(*cs, kRamp);
      if (r.held(now) >= timing_.router_depth) break;  // looked at again when the router has moved
      r.push({front.data, front.control, now + timing_.ramp_out});
      pe.busy_colors |= 1u << color;
      next = std::min(next, now + timing_.ramp_out);
      ++out.head;
      if (--out.count == 0) pe.busy_out &= ~(1u << q);
      else next = std::min(next, now + 1);
      moved = true;
      pe.rr_out = static_cast<std::uint8_t>((q + 1) % 8u);
    }
  }
  if (moved && pe.live_ops) next = std::min(next, now + 1);  // room for whoever waits for it
  if (moved && pe.main != MainState::idle) next = std::min(next, now + 1);
}

HostSink* Fabric::sink_of(Pe& pe, int color, int port) {
  if (!pe.io) return nullptr;
  for (HostSink& s : pe.io->sinks) {
    if (s.color == color && s.port == port) return &s;
  }
  return nullptr;
}

HostSink& Fabric::make_sink(Pe& pe, std::uint8_t color, std::uint8_t port) {
  if (HostSink* s = sink_of(pe, color, port)) return *s;
  if (!pe.io) pe.io = std::make_unique<HostIo>();
  HostSink s;
  s.color = color;
  s.port = port;
  pe.io->sinks.push_back(std::move(s));
  return pe.io->sinks.back();
}

}  // namespace weft::wse
