// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the CSL compiler produces and the fabric runs: the bytecode of each distinct PE program, its
// bulk DSD operations, tasks, queues, memory image and symbols, and the layout that maps a
// rectangle of PEs to programs and route templates. Plain data; program_io.h writes and reads it.
// Addresses are bytes in the 48 KB of a PE; pointers are 16 bits; little-endian.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::wse {

inline constexpr int kMemoryBytes = 49152;
inline constexpr int kColors = 24;
inline constexpr int kUnboundedLength = 0x7fff;  // length of an endless descriptor
inline constexpr std::uint8_t kNone8 = 0xff;
inline constexpr std::uint16_t kNone16 = 0xffff;

enum class Arch : std::uint8_t { wse2 = 2, wse3 = 3 };

/// Scalar types of the bytecode.
enum class Ty : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, cb16, f32, b1 };
inline constexpr int kTypes = 13;
inline constexpr std::uint8_t kTypeBytes[kTypes] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 2, 4, 1};
constexpr int size_of(Ty t) { return kTypeBytes[static_cast<int>(t)]; }
std::string_view to_string(Ty t);

/// Cost classes; timing.h gives their cycles.
enum class Cost : std::uint8_t {
  none,
  alu,
  div,
  math,
  mem,
  block,
  jump,
  branch,
  call,
  task,
  dsr,
  bulk
};

enum class Op : std::uint8_t {
#define WEFT_WSE_OP(name, cost, meaning) name,
#include "weft/targets/wse/code.def"
#undef WEFT_WSE_OP
};
std::string_view to_string(Op op);

/// One instruction: 8 bytes.
struct Insn {
  Op op = Op::nop;
  std::uint8_t ty = 0;  // Ty, or TaskSpace for task instructions
  std::uint16_t a = 0, b = 0, c = 0;
  constexpr std::int32_t imm() const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(b) | static_cast<std::uint32_t>(c)
                                                                         << 16);
  }
  static constexpr Insn with_imm(Op op, std::uint8_t ty, std::uint16_t a, std::int32_t imm) {
    return {op, ty, a, static_cast<std::uint16_t>(imm),
            static_cast<std::uint16_t>(static_cast<std::uint32_t>(imm) >> 16)};
  }
};

/// `ty` of a call, and of the returns of its function, that a compiler puts in place: it takes no
/// cycles.
inline constexpr std::uint8_t kInlined = 1;

/// Scalar functions of math1 / math2, computed in double and rounded once to the type.
enum class MathFn : std::uint8_t {
  sqrt,
  rsqrt,
  inv,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  exp,
  exp2,
  log,
  log2,
  log10,
  floor,
  ceil,
  round,
  trunc,
  abs,
  sign,
  is_nan,
  is_inf,
  is_finite,
  erf,
  cbrt,
  pow,
  atan2,
  fmin,
  fmax,
  fscale,
  fmod,
  copysign,  // two operands
  sigmoid,   // one
};

enum class PrintKind : std::uint8_t { text, character, decimal, hex, real, line, binary };

/// Where a task id lives. WSE-2 data tasks are named by colour, WSE-3 ones by input queue.
enum class TaskSpace : std::uint8_t { local, color, queue, control, microthread };

// ---------------------------------------------------------------- descriptors

enum class DsdKind : std::uint8_t { none, mem1d, mem4d, fabin, fabout, fifo, circbuf };

/// A descriptor value: 24 bytes in a PE's memory, alignment 2.
/// Memory: element k of dimension sizes extent[0..3] (innermost last; unused leading extents are 1)
/// lies at base + sum(index[i] * stride[i]); strides are true strides (not the deltas that
/// mem4d_dsd spells). mem1d uses extent[3] and stride[3] only. Fabric: extent[3] is the length in
/// wavelets; color, queue, flags as below. fifo: queue is the fifo's index. circbuf: extent[3] is
/// the length, extent[2] the elements after which it begins anew, stride[2] the element it is at.
struct Dsd {
  enum Flag : std::uint8_t {
    kControl = 1,      // fabout: control wavelets; fabin: one message, whose header has its length
    kIndexOffset = 2,  // mem: base += 2 * op index (bytes); fabout: high half = op index
    kAdvanceSwitch = 4,  // fabout: the last wavelet carries a switch advance
    kSimd32 = 8,         // fabric: two 16-bit elements per wavelet
    kControlTransform = 16,
    kZeroFirst = 32,  // fabout: the first source's elements become 0 when the operation ends
    kZeroSecond = 64,
    kSimdOff = 128,  // fabric: one 16-bit element per wavelet
  };
  DsdKind kind = DsdKind::none;
  std::uint8_t flags = 0;
  std::uint16_t base = 0;                       // byte address
  std::uint8_t color = kNone8, queue = kNone8;  // fabric
  std::uint8_t priority = 0;                    // Priority
  std::uint8_t reserved = 0;
  std::array<std::uint16_t, 4> extent{1, 1, 1, 0};
  std::array<std::int16_t, 4> stride{};  // in elements of the operation that uses it
};
static_assert(sizeof(Dsd) == 24);

/// Fields that dset and dget name.
enum class DsdField : std::uint8_t {
  base,    // also what @set_dsd_base_addr sets: base is absolute, the offset is folded in
  length,  // extent[3]
  stride,  // stride[3]
  color,
  queue,
  extent0,
  extent1,
  extent2,
  stride0,
  stride1,
  stride2,
};

enum class DsrFile : std::uint8_t { dest, src0, src1 };
enum class Priority : std::uint8_t { unset, low, medium, high };

/// What an operation does when it has finished.
struct Completion {
  enum Kind : std::uint8_t { none, activate, unblock };
  Kind kind = none;
  TaskSpace space = TaskSpace::local;
  std::uint16_t id = 0;
};

/// Settings that travel with an operation or with a DSR.
struct OpSettings {
  bool async = false;
  bool save_address = false;  // DSR: base moves past the end after each operation
  bool single_step = false;   // DSR for @map: one element per use
  bool terminate_on_control = false;
  Completion done, on_control;
  std::uint8_t ut_id = kNone8;
  Priority priority = Priority::unset;
};

/// Registers with what only the run knows of an operation's settings: `.index`, and the tasks of
/// `.activate`, `.unblock` and `.on_control`.
struct SettingRegs {
  std::uint16_t index = kNone16, done = kNone16, on_control = kNone16;
};

enum class Bulk : std::uint8_t {
#define WEFT_WSE_BULK(name, d, s, n, k, w2, w3) name,
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
};
std::string_view to_string(Bulk bulk);

struct BulkInfo {
  std::string_view name;
  std::uint8_t dst_bytes, src_bytes, sources;
  bool scalar;                // a multiplier follows the sources
  std::uint8_t simd2, simd3;  // elements per cycle
};
const BulkInfo& bulk_info(Bulk bulk);

struct Operand {
  enum Kind : std::uint8_t {
    none,
    dsd,      // descriptor register d[index]
    dsr,      // register index of file `file`
    value,    // scalar register r[index], bits of the operation's source type
    pointer,  // address in r[index]: a zero-stride destination (or running source)
    fifo,     // fifo number index
  };
  Kind kind = none;
  DsrFile file = DsrFile::dest;
  std::uint16_t index = 0;
  bool loaded = false;  // a constant descriptor in a loop: in its register since before the loop
};

struct BulkOp {
  Bulk code = Bulk::mov16;
  Operand dst, src0, src1;
  Operand scalar;  // fmac*: a value, or none
  OpSettings settings;
  SettingRegs regs;
  bool fp_bf16 = false;  // 16-bit floats are bfloat16 rather than f16
  bool fp_cb16 = false;
};

struct MapOp {
  std::uint16_t function = 0;  // called with r[0..] = inputs in order, result in r[0]
  std::uint16_t window = 0;    // first caller register that the callee may overwrite
  struct In {
    Operand operand;
    Ty ty = Ty::u32;
  };
  std::vector<In> inputs;  // `value` inputs are constant over the loop
  Operand out;             // none: result dropped
  Ty out_ty = Ty::u32;
  OpSettings settings;
};

struct DsrLoad {
  DsrFile file = DsrFile::dest;
  std::uint8_t index = 0;
  std::uint16_t dsd = 0;  // d[dsd] at run time; Program::dsds[dsd] in Program::initial_dsrs
  OpSettings settings;
  SettingRegs regs;
};

/// What an operation does that finds a FIFO empty or full.
enum class FifoAction : std::uint8_t {
  test_or_suspend,  // a synchronous one ends and gives false, others wait
  terminate,        // ends and gives true
  suspend,          // waits
  fault,
};

struct Fifo {
  std::uint16_t base = 0, bytes = 0;  // circular buffer in memory
  std::uint8_t elem_bytes = 4;        // of the buffer's element type
  Completion on_push, on_pop;         // activate_push / activate_pop
  Priority priority = Priority::unset;
  FifoAction on_empty = FifoAction::test_or_suspend, on_full = FifoAction::test_or_suspend;
};

// ---------------------------------------------------------------- programs

struct LineEntry {
  std::uint32_t pc = 0, file = 0, line = 0;
};  // from pc on

struct Function {
  std::string name;
  std::vector<Insn> code;
  std::uint16_t regs = 1, dsds = 0;  // registers the frame needs (callee windows included)
  std::uint16_t frame_bytes = 0;     // stack bytes in memory
  std::vector<Ty> params;            // scalar parameters r[0..]
  std::vector<LineEntry> lines;
};

struct TaskBinding {
  TaskSpace space = TaskSpace::local;  // local, color or queue (data), control
  std::uint16_t id = 0;
  std::uint16_t function = 0;
  std::vector<Ty> args;  // data: one 32-bit, one 16-bit (low half) or two 16-bit (low, high)
};

struct TaskState {
  TaskSpace space = TaskSpace::local;
  std::uint16_t id = 0;
  bool active = false, blocked = false, unblocked = false;
};  // effect of comptime @activate / @block / @unblock

struct QueueInit {
  bool output = false;
  std::uint8_t queue = 0;  // input queues >= 8: made for a data task without an explicit queue
  std::uint8_t color = kNone8;
  Priority priority = Priority::unset;
  std::uint8_t control_table = 0;  // WSE-3: .ctrl_table_id
};

struct Segment {
  std::uint16_t address = 0;
  std::string bytes;
};

struct Symbol {
  std::string name;  // "A", or "module.name" for imported modules
  std::uint16_t address = 0;
  std::uint32_t bytes = 0;
  Ty elem = Ty::u8;
};

/// Binds an exported name of the layout to this program's variable or function.
struct ExportBinding {
  std::uint16_t id = 0;        // index in Layout::exports
  std::uint16_t address = 0;   // data: address of the 16-bit pointer variable
  std::uint16_t function = 0;  // Func
};

// Ports as bits and as indices.
enum Port : std::uint8_t { kEast = 0, kWest = 1, kNorth = 2, kSouth = 3, kRamp = 4 };
inline constexpr int kPorts = 5;
constexpr std::uint8_t port_bit(int port) { return static_cast<std::uint8_t>(1u << port); }
std::string_view port_name(int port);

enum class PopMode : std::uint8_t { none, always, on_advance, on_advance_nop };

struct Filter {
  enum Kind : std::uint8_t { none, range, counter, sparse_counter };
  Kind kind = none;
  bool count_data = false, count_control = false, filter_control = false;
  std::uint16_t min_index = 0, max_index = 0;  // range, inclusive
  std::uint16_t init_counter = 0, limit1 = 0, limit2 = 0, max_counter = 0;
};

struct SwitchPosition {
  bool valid = false;
  std::uint8_t rx = 0, tx = 0;  // port bits; 0: as in the position before
};

/// How a router treats one colour.
struct Route {
  std::uint8_t rx = 0, tx = 0;                // position 0
  std::array<SwitchPosition, 3> positions{};  // pos1..pos3
  std::uint8_t current = 0;
  bool ring = false, teardown = false, swap_x = false, swap_y = false;
  PopMode pop = PopMode::none;
  Filter filter;
};

struct ColorRoute {
  std::uint8_t color = 0;
  Route route;
};

/// @bind_rotating_tasks: every `limit` starts of an input queue's data task its control task
/// `entry` starts instead.
struct Rotation {
  std::uint8_t queue = 0, entry = 0;
  std::uint32_t limit = 0, init = 0;
};

/// A call of ConfigFn that a program makes before anything runs.
struct StartConfig {
  std::uint8_t fn = 0;
  std::array<std::uint32_t, 3> args{};
};

struct Program {
  std::string name;                // "pe_program.csl (3)"
  std::vector<std::string> files;  // named by LineEntry::file
  std::vector<std::string> strings;
  std::vector<std::uint64_t> constants;
  std::vector<Function> functions;
  std::vector<Dsd> dsds;
  std::vector<BulkOp> bulks;
  std::vector<MapOp> maps;
  std::vector<DsrLoad> dsr_loads, initial_dsrs;
  std::vector<Fifo> fifos;
  std::vector<TaskBinding> tasks;
  std::vector<TaskState> states;
  std::vector<QueueInit> queues;
  std::vector<ColorRoute> routes;                                         // @set_local_color_config
  std::vector<std::pair<std::uint8_t, std::uint16_t>> teardown_handlers;  // colour, function
  // Queue (output queues are 8 more), function: called when the queue has run empty.
  std::vector<std::pair<std::uint8_t, std::uint16_t>> empty_handlers;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> registers;  // @set_config: address, value
  std::vector<StartConfig> start_config;                           // after the registers
  std::vector<Rotation> rotations;
  // <message_passing>: the colour on which messages leave the PE and the one on which they come.
  std::uint8_t post_out = kNone8, post_in = kNone8;
  std::uint8_t control_stride = 0;  // @set_control_task_table: entries per table; 0: no own table
  std::vector<Segment> image;       // initial memory; the rest is zero
  std::uint32_t data_bytes = 0;     // static data ends here; the stack grows down to it
  std::uint32_t code_bytes = 0;     // estimate of the machine code, counted against the 48 KB
  std::vector<Symbol> symbols;
  std::vector<ExportBinding> exports;
  std::uint8_t fp16 = static_cast<std::uint8_t>(Ty::f16);
  bool pairs =
      false;  // SDK 2.10: a wavelet carries two 16-bit elements unless a descriptor says no
};

// ---------------------------------------------------------------- layout

struct Export {
  enum Kind : std::uint8_t { var, func, stream };
  Kind kind = var;
  std::string name, type;  // type as CSL text: "[*]f32", "fn(u16)void"
  bool mutable_ = false;
  std::uint8_t elem_bytes = 4;  // var: of the pointee's element
  std::vector<Ty> inputs;       // func
  std::uint8_t color = kNone8;  // stream
};

/// Routes of one PE that come from the layout block; shared by all PEs with equal ones.
using RouteSet = std::vector<ColorRoute>;

struct Tile {
  std::uint32_t program = 0;  // index in Layout::programs, or kNoProgram
  std::uint32_t routes = 0;   // index in Layout::route_sets
  bool operator==(const Tile&) const = default;
};
inline constexpr std::uint32_t kNoProgram = 0xffffffffu;

/// A host stream: wavelets of `color` enter (or leave) each PE at its ramp, natively.
struct HostStream {
  std::uint8_t color = 0;
  bool to_device = true;
};

/// A stream port of an SdkLayout program: one place at the edge of the rectangle.
struct PortStream {
  std::string name;
  std::uint8_t color = 0;
  bool to_device = true;
  std::int32_t x = 0, y = 0;  // of the PE in the rectangle
  std::uint8_t port = kRamp;  // router port at which wavelets enter or leave
};

/// Initial data of one PE beyond its program's image (SdkLayout's set_symbol).
struct Preset {
  std::int32_t x = 0, y = 0;
  std::string symbol, bytes;
};

struct Layout {
  Arch arch = Arch::wse2;
  std::int32_t width = 0, height = 0;  // program rectangle
  std::int32_t fabric_width = 0, fabric_height = 0;
  std::int32_t offset_x = 0, offset_y = 0;
  std::int32_t channels = 1;
  bool memcpy = false;
  std::vector<Program> programs;
  std::vector<RouteSet> route_sets;
  std::vector<Tile> tiles;      // height * width, row-major
  std::vector<Export> exports;  // index = symbol id
  std::vector<HostStream> streams;
  std::vector<PortStream> ports;
  std::vector<Preset> presets;
  std::vector<std::pair<std::string, std::string>> params;  // for out.json
  std::vector<std::pair<std::string, std::string>> colors;  // those of --colors, too
  /// Text of source files that are on no disk, by name; not in the artifact.
  std::shared_ptr<const std::map<std::string, std::string>> sources;
};

// Configuration registers of @get_config and @set_config: what a PE has of them here. Others hold
// what was written.
inline constexpr std::uint16_t kRegRoutes = 0;     // + colour: rx bits | tx bits << 5
inline constexpr std::uint16_t kRegSwitch = 32;    // + colour: position | ring << 2 | pop << 3
inline constexpr std::uint16_t kRegCounter = 64;   // + colour: the counter of its filter
inline constexpr std::uint16_t kRegTeardown = 96;  // colours in teardown, low word; 97 high word

// Functions of the `config` instruction; operands r[b], r[b + 1], ...
inline constexpr int kTimerTask = 30;  // local task of the timer
enum class ConfigFn : std::uint8_t {
  reset_routes,          // colour, rx bits, tx bits
  clear_position,        // colour: current switch position = 0
  invalidate_positions,  // colour: no switch positions
  set_rx_position,       // colour, position 1..3, rx bits
  set_tx_position,       // colour, position 1..3, tx bits
  set_ring,              // colour, 0/1
  set_pop,               // colour, PopMode
  teardown_pending,      // -> bits of colours in teardown that wait for a handler
  teardown_exit,         // colour
  teardown_is_pending,   // colour -> 0/1
  set_task_priority,     // TaskSpace, id, 0 low / 1 high
  set_main_priority,     // Priority of the main thread
  set_queue_color,       // 0 in / 1 out, queue, colour
  set_counter,           // colour, filter counter value
  queue_empty,           // input queue -> 0/1
  teardown_enter,        // colour
  get_register,          // address -> value
  set_register,          // address, value
  filter_id,             // colour -> number of its filter among the PE's filters
  set_filter,            // filter id, 0 counter 1 limit1 2 limit2 3 max_counter, value
  flush,                 // queue (output: + 8): task 29 once it is empty
  flush_pending,         // queue -> 0/1: task 29 was raised for it
  flush_exit,            // queue
  set_timer,             // cycles until local task 30 is activated, 0: never
  timer_left,            // -> cycles until then, 0: not set
  change_route,          // colour, 0 set / 1 toggle / 2 clear, bit (0..4 rx, 5..9 tx)
  set_position,          // colour, current switch position
  queue_bits,            // 0 in / 1 out, 0 empty / 1 full -> a bit per queue
  transform_mask,        // bits by which .control_transform changes the entry of a control wavelet
};

}  // namespace weft::wse
