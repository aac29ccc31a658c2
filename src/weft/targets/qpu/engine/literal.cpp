// SPDX-License-Identifier: Apache-2.0
// What is rare goes through the oracle's own code, one instruction at a time.

#include "weft/targets/qpu/engine.h"

namespace weft::qpu::hw {

bool literal_instruction(Machine& m, Qpu& q) {
  struct Restore {
    Qpu& q;
    std::int64_t into, instructions;
    std::uint32_t pc;
    int slots, end;
    bool taken;
    ~Restore() {
      q.time -= into;
      q.instructions = instructions, q.pc = pc, q.slots_left = slots, q.end_left = end;
      q.taken = taken;
    }
  } restore{q, q.now - q.time, q.instructions, q.pc, q.slots_left, q.end_left, q.taken};
  q.time = q.now;
  q.slots_left = 0, q.end_left = -1;
  q.history[0] = q.history[1] = q.history[2] = nullptr;  // clean programs have nothing to check
  bool done = step_oracle(m, q);
  if (done) q.time -= timing::kIssue;  // the block's end accounts for it
  if (q.sfu_countdown) q.slot[kSlotAcc + 4] = q.sfu_result, q.sfu_countdown = 0;
  return done;
}

void ran_off(Machine& m, Qpu& q) {
  m.fail(q, "qpu.pc.outside",
         cat("execution reached ", hex(static_cast<std::uint64_t>(q.pc) * 8),
             ", past the end of the program"),
         "end it with thrend and two slots");
}

}  // namespace weft::qpu::hw
