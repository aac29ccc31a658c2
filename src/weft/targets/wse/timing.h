// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every number of the cycle model, in one place. Values marked P are published figures, D
// documented ones, F fitted to the published measurements listed in docs/targets/wse.md; the rest
// are choices.

#include <array>
#include <cstdint>

#include "weft/targets/wse/program.h"

namespace weft::wse {

/// Which of several ready tasks of one priority goes first. No document says; in turn is what
/// happens unless a run asks for another: a task that activates itself lets others run.
enum class TaskOrder : std::uint8_t {
  local_first,    // local tasks before data and control tasks, the lowest id first
  round_robin,    // the next id after that of the task before
  highest_first,  // the highest id
  lowest_first,   // the lowest id
  random,         // drawn from a seed
};

struct Timing {
  double clock_hz = 850e6;               // D (WSE-2), P (WSE-3: 875 MHz)
  int hop = 1;                           // P: cycles per router hop
  int ramp_in = 2;                       // P: router to input queue (T_R)
  int ramp_out = 2;                      // P: output queue to router (T_R)
  int task_start = 0;                    // F: from runnable to the first instruction
  int completion = 3;                    // P: last element to the completion's effect
  int bulk_setup = 0;                    // F: of an operation on memory over loaded registers
  int fabric_setup = 3;                  // F: dispatch to the first wavelet (ramp included)
  int main_async = 1;                    // to issue an asynchronous operation: an instruction
  int dsr_load = 1;                      // F: of a descriptor into its register
  int dsr_use = 4;                       // P (WSE-3): from the load to an operation that uses it
  int branch_taken = 6, branch_not = 3;  // P (WSE-3)
  int folded = 0;  // constants and copies: operands of the instruction that uses them
  int alu = 1, mem = 1, call = 6, div = 50, math = 60, task_op = 2;  // D/E; math is a choice
  int fp_dependent = 2;                                              // P: dependent floating point
  bool stride_conflicts = true;  // D: word strides of 0 mod 8 read one operand at a time
  bool bank_conflicts = true;    // D: two reads of one bank take turns; P: see bulk.cpp
  int router_depth = 4;          // wavelets per colour and input port
  int stream_latency = 100;      // host stream to the first wavelet
  int command_latency = 200;     // host command to its start on the PEs
  int channel_word = 1;          // D: cycles per word of a copy's channel, as of any link
  std::array<int, 8> in_depth{6, 6, 4, 4, 2, 2, 2, 2};   // D
  std::array<int, 8> out_depth{2, 2, 6, 6, 2, 2, 2, 2};  // D

  static Timing of(Arch arch) {
    Timing t;
    if (arch == Arch::wse3) {
      t.clock_hz = 875e6;
      t.hop = 2;
      t.task_start = 2;
      t.bulk_setup = 1;
      t.in_depth = {8, 8, 4, 4, 4, 4, 4, 4};
      t.out_depth = {8, 8, 8, 8, 8, 8, 8, 8};
      t.stride_conflicts = false;  // the public simulator does not show them there
    }
    return t;
  }
};

}  // namespace weft::wse
