// SPDX-License-Identifier: Apache-2.0
// A kernel as a whole: its uniforms and set-up words, its statements, its end.

#include "weft/targets/qpu/compiler/lowerer.h"

namespace weft::qpu::mir {

Function Lowerer::run() {
  f_.vregs = p_.vars;
  f_.needs_acc.assign(p_.vars, false);
  patterns();
  start_block();
  // Uniforms are read in order at the start.
  f_.uniforms = {"me", "count"};
  unsigned pointers = 0, scalars = 0;
  for (const ast::Param& param : p_.params) {
    if (param.kind == ast::Param::Kind::pointer) f_.uniforms.push_back(cat("p", pointers++));
    else f_.uniforms.push_back(cat(param.kind == ast::Param::Kind::real ? "f" : "s", scalars++));
  }
  if (f_.may_spill) spill_setup();
  for (std::size_t u = f_.may_spill ? 1 : 0; u < f_.uniforms.size(); ++u) {
    uniform_.push_back(temp());
    move(Dst::of(uniform_.back()), Src::read(kRUniform));
  }
  scan(p_.body);
  if (uses_store_ || uses_load_) {
    Src first = first_row();
    auto plus = [&](std::uint32_t base, unsigned shift, unsigned extra) {
      return row_setup(first, base, shift, extra);
    };
    if (uses_store_) {
      if (f_.may_spill) {
        vpm_write_setup_ = plus(0x00001a00, 0, 0);  // spilling writes other rows
      } else {
        // Stride 64 wraps to the same row: one set-up serves all stores.
        move(Dst::write(kWVpmSetup, 1), plus(0x00000a00, 0, 0));
      }
      store_setup_ = plus(write_strided_ ? 0x88010000 : 0x80904000, 7, 0);
      if (uses_count_)
        count_setup_ = plus(write_strided_ ? 0x80010000 : 0x80804000, 7, 0);  // plus depth or units
      emit_ldi(Dst::write(kWVpmSetup, 1), 0xc0000000);
    }
    if (uses_load_) {
      load_setup_ = plus(0x83010000, 4, 1);
      vpm_read_setup_ = plus(0x00101a00, 0, 1);
    }
  }
  if (uses_lanes_) {
    Src element = fresh_move(Src::read(kRElementA, 0));
    lane4_ = temp();
    add_to(kShl, Dst::of(lane4_), element, Src::constant(2));
  }
  statements(p_.body);
  finish();
  return std::move(f_);
}

Function lower(const ast::Program& program, bool may_spill) {
  return Lowerer(program, may_spill).run();
}

}  // namespace weft::qpu::mir
