// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs written as words, on an emulator of their own.

#include <string>
#include <utility>
#include <vector>

#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/engine/translate.h"

namespace weft::qpu::hw {

inline constexpr const char* kEnd = "nop; nop; thrend\nnop\nnop\n";

inline runtime::Binary binary_of(const std::string& text, std::vector<std::string> uniforms = {}) {
  runtime::Binary b;
  b.format = "qpu";
  for (const Instr& i : assemble(text)) {
    Code word = encode(i);
    b.bytes.append(reinterpret_cast<const char*>(&word), 8);
  }
  b.metadata = Json::object();
  b.metadata["uniforms"] = Json::array();
  for (std::string& u : uniforms) b.metadata["uniforms"].push_back(u);
  return b;
}

struct Bench {
  explicit Bench(EmulatorOptions o = {}) : emulator(o) {}
  std::uint64_t array(std::size_t words) { return emulator.memory().allocate(words * 4, 64); }
  std::uint32_t& word(std::uint64_t base, std::size_t i) {
    return *reinterpret_cast<std::uint32_t*>(emulator.memory().raw(base + 4 * i));
  }
  sim::RunResult run(const runtime::Binary& b, std::vector<std::uint64_t> pointers = {},
                     int qpus = 1, std::int64_t limit = 10'000'000) {
    std::size_t p = emulator.load(b);
    sim::Launch launch;
    launch.pointers = std::move(pointers);
    launch.extents = {qpus};
    sim::RunLimits limits;
    limits.cycles = limit;
    auto result = emulator.run(p, launch, limits);
    emulator.unload(p);
    return result;
  }
  Emulator emulator;
};

inline EmulatorOptions with(Engine e) {
  EmulatorOptions o;
  o.engine = e;
  o.keep_registers = true;
  o.file_cache = false;
  o.optimisation = 0;
  o.memory_bytes = 16 << 20;
  return o;
}

/// All three; the translated one where the host can run it (its own test says when not).
inline std::vector<Engine> engines() {
  std::vector<Engine> out{Engine::oracle, Engine::interpreted};
  if (translation_missing().empty()) out.push_back(Engine::translated);
  return out;
}

// One row of 16 words: uniform pointer p0 in ra0, lanes' addresses in r0.
inline const std::string kAddresses =
    "mov ra0, unif\nmov r0, elem\nshl r0, r0, #2\nadd r0, ra0, r0\n";

// Stores r1 as one row at ra0 through VPM row 0.
inline const std::string kStore =
    "ldi vw_setup, 0x00001a00\nmov vpm, r1\nldi vw_setup, 0x80904000\nldi vw_setup, "
    "0xc0000000\nmov vw_addr, ra0\nnop; nop; raddr_b=50\n";

}  // namespace weft::qpu::hw
