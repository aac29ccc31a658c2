// SPDX-License-Identifier: Apache-2.0
#pragma once
// The analyser: one lazy walk over syntax trees that evaluates what is known at compile time,
// checks types and emits bytecode for the rest. A module-level name is resolved at its first use; a
// function body is compiled once per set of compile-time arguments; branches whose condition is
// known are never visited.

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>

#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/csl/parser.h"
#include "weft/targets/wse/csl/value.h"

namespace weft {
class Json;
}

namespace weft::wse::csl {

struct Global {
  Symbol name = 0, link_name = 0;
  TypeRef type = nullptr;
  Value init;  // undefined: zero
  bool is_const = false, exported = false;
  std::int32_t address = -1;  // assigned at the first use by code
  std::uint32_t align = 1;
  std::int32_t section = -1;  // of CompileOptions::sections
  Module* module = nullptr;
  Pos pos;
};

struct Decl {
  Symbol name = 0;
  Node* node = nullptr;
  Module* module = nullptr;
  enum State : std::uint8_t { fresh, busy, ready, failed } state = fresh;
  bool bound = false;  // param with a value from the importer
  Value value;         // const, param, and the bound value before conversion
  Global* global = nullptr;
};

struct Module {
  const Source* source = nullptr;
  Node* root = nullptr;
  std::string label;  // base name without extension
  std::unordered_map<Symbol, Decl*> decls;
  bool is_root = false;
  int serial = 0;  // order of instantiation
  Pos imported;    // where, unless it is a root
};

inline constexpr std::uint16_t kNoReg = 0xffff;

/// The result of an expression.
struct Operand {
  enum Where : std::uint8_t { nothing, known, reg, dreg, memory, parts };
  enum Base : std::uint8_t { absolute, frame, pointer };
  Where
    where = nothing;
    Base base = absolute;
    bool is_const = false;  // memory that may not be written
    bool temp = false;      // reg: nobody else reads it
    TypeRef type = nullptr;
    Value value;                   // known
    std::uint16_t r = kNoReg;      // reg, dreg; memory: register of base `pointer`
    std::uint16_t index = kNoReg;  // memory: register scaled by the element size
    Global* global = nullptr;      // memory, absolute
    std::int32_t offset = 0;
    std::int32_t bit = -1;    // memory: a field of the packed object there, at this bit of it
    std::uint32_t whole = 0;  // bytes of that object
    std::shared_ptr<std::vector<Operand>> fields;  // parts of a struct or array

    bool is_known() const { return where == known; }
};

/// Something that can be assigned to.
struct Place {
  enum Kind : std::uint8_t { cell, reg, dreg, memory, value } kind = value;
  bool is_const = false;
  TypeRef type = nullptr;
  Ref<Cell> cell_ref;
  std::vector<std::int64_t> path;
  Operand operand;
};

struct Local {
  Symbol name = 0;
  Place place;
  bool used = false;
};

enum class Flow : std::uint8_t { normal, brk, cont, ret, ended };

struct LoopLabel {
  Symbol name = 0;
  bool known = false;  // executed at compile time
  bool is_block = false;
  bool unrolled = false;
  int branches = 0;  // run-time control flow around it
  std::vector<std::size_t> breaks, continues;
  // Labelled block that yields a value.
  Operand result;
  TypeRef hint = nullptr;  // what its place wants
  bool has_result = false, has_void = false;
  std::vector<std::pair<Int128, Pos>> integers;  // results before one that has a type
};

/// A function being emitted.
struct Builder {
  Function out;
  std::uint16_t next = 0, dnext = 0;
  int index = -1;
  std::set<Symbol> addressed;                              // locals whose address is taken
  std::vector<std::pair<int, std::pair<int, int>>> calls;  // callee, windows: for frame sizes
  std::uint32_t last_line = 0, last_file = 0;
};

/// One activation: of a function at compile time, of a function being compiled, or of a module's
/// block.
struct Frame {
  Module* module = nullptr;
  Frame* parent = nullptr;
  Builder* builder = nullptr;  // null: everything is known at compile time
  int known = 0;               // > 0: inside `comptime`
  TypeRef result_type = nullptr;
  Operand result;  // of a compile-time or inlined call
  bool inlined = false;
  int runtime_branches = 0;  // depth of run-time control flow
  int inline_branches = 0;   // inlined: the depth at its call
  std::uint16_t result_reg = kNoReg;
  std::vector<std::size_t> result_jumps;
  std::vector<Local> locals;
  std::vector<LoopLabel> loops;
  Flow pending = Flow::normal;
  Symbol pending_label = 0;
  Operand break_value;
  Pos call_pos{0xffffffffu, 0, 1};
};

struct FunctionInstance {
  Decl* decl = nullptr;
  std::vector<Value> known_args;  // one per parameter; undefined: run-time
  std::vector<TypeRef> types;     // of all parameters
  TypeRef type = nullptr;         // fn type of the run-time parameters
  int index = 0;
  bool done = false;
  Pos called{0xffffffffu, 0, 1};             // where it was called first, ...
  const FunctionInstance* caller = nullptr;  // ... and in which function
};

struct BoundTask {
  Decl* decl = nullptr;
  TaskSpace space = TaskSpace::local;
  std::uint16_t id = 0;
  bool data = false;
};

/// Everything that belongs to one distinct PE program.
/// Where a named object is declared: module in the order of instantiation, file, offset.
using DeclaredAt = std::array<std::uint32_t, 3>;

/// A fabric descriptor that an operation or a DSR uses, as far as it is known at compile time.
struct FabricUse {
  bool output = false;
  std::uint8_t queue = kNone8, color = kNone8;
  Pos pos;
};
/// A DSR that an operation uses.
struct DsrUse {
  T file;
  int index = 0;
  Pos pos;
};

/// A register or queue that a program uses and does not prepare.
struct Unprepared {
  std::pair<int, int> what;  // its kind and number
  Pos pos;
  std::string_view code;
  std::string message, note;
};

struct ProgramState {
  Program out;
  std::deque<Module> modules;
  std::deque<Decl> decls;
  std::deque<Global> globals;
  std::deque<FunctionInstance> functions;
  std::map<std::string, FunctionInstance*> by_key;
  std::deque<Builder> builders;
  std::vector<BoundTask> tasks;
  std::map<std::string, int> strings, constants, dsds, bulks;
  std::vector<std::pair<int, std::pair<Global*, int>>> dsd_bases;
  std::uint32_t data_end = 16;              // address 0 stays free: no object has it
  std::vector<std::uint32_t> section_ends;  // of CompileOptions::sections
  std::map<int, Pos> configured_colors;
  std::set<std::pair<bool, int>> queues;
  std::vector<FabricUse> fabric_uses;
  std::vector<DsrUse> dsr_uses;
  std::set<std::pair<T, int>> dsrs_loaded;
  bool changes_queues = false;  // at run time: what the queues hold then is not known here
  std::map<std::string, std::set<std::string>> exported;
  std::map<int, Place> export_places;     // by export id: the function, or the pointer variable
  std::map<const void*, int> export_ids;  // by function or variable
  bool has_rpc = false;
  std::vector<Global*> used;  // with an address
  /// Addresses of named objects in the order of their declaration, from an earlier compilation;
  /// by module and place in the source.
  std::map<DeclaredAt, std::int32_t> placed;
  std::map<const void*, int> file_index;
  std::vector<std::function<void()>> deferred;  // run when all tasks are bound
  std::set<int> pointed;                        // functions whose address is taken
  bool broken = false;                          // an error was reported: no code is kept
};

struct LayoutState;

class Analyzer {
 public:
  Analyzer(const CompileOptions& options, CompileResult& result);
  ~Analyzer();
  void run();

 private:
  friend struct KnownScope;
  using BuiltinFn = Operand (Analyzer::*)(Node*, TypeRef);
  struct BuiltinRow {
    std::string_view name;
    BuiltinFn fn;
    int low, high;
  };
  static const std::vector<BuiltinRow>& builtin_rows();

  // -- diagnostics (analyzer.cpp)
  [[noreturn]] void fail(Pos pos, std::string_view code, std::string message);
  [[noreturn]] void fail(Pos pos, std::string_view code, std::string message, std::string note);
  void report(Pos pos, std::string_view code, std::string message);
  /// Notes of the calls that led to `pos`: those at compile time and inlined ones; for a place in
  /// the library those of functions, too, up to the user's.
  void add_callers(Diagnostic& d, Pos pos) const;
  void warn(Pos pos, std::string_view code, std::string message);
  /// Warns once where a program that is compiled with memcpy takes what memcpy uses on the machine.
  void warn_reserved(Pos pos, std::string_view what, std::int64_t id,
                     std::initializer_list<std::int64_t> reserved);
  /// The program uses what only this version of the SDK has.
  void only_in(Sdk sdk, Pos pos, std::string_view what, std::string_view instead);
  std::string text(TypeRef t) const { return types_.text(t); }
  const std::string& name(Symbol s) const { return names_.text(s); }
  std::string show(const Value& v, int depth = 0) const;
  std::string key_of(const Value& v) const;
  void append_key(std::string& out, const Value& v) const;
  void spend(Pos pos);  // one step of compile-time work
  struct DepthGuard;

  // -- modules and declarations (modules.cpp)
  const Source* load(const std::string& path, Pos pos, bool required);
  Node* parse_file(const Source* source);
  std::string resolve_import(const std::string& spec, Pos pos);
  Module* instantiate(const Source* source, const Value* params, Pos pos, bool is_root);
  void run_module(Module* module, bool layout);
  Decl* find_decl(Module* module, Symbol name);
  Symbol link_symbol(const Decl* decl);
  /// The section's number in CompileOptions::sections; -1 where it has no address of its own.
  std::int32_t link_section(Node* name);
  /// Where the next object of the section lies; -1: among the rest.
  std::uint32_t& section_end(ProgramState& program, std::int32_t section) const;
  Decl* find_export(const Decl* decl);
  void resolve_extern(Decl* decl, Pos use);
  void resolve(Decl* decl, Pos use);
  Place decl_place(Decl* decl, Pos use);
  bool mentions_import(const Node* node) const;

  // -- expressions (expr.cpp, ops.cpp)
  bool known() const { return frame_->builder == nullptr || frame_->known > 0; }
  Operand eval(Node* node, TypeRef hint = nullptr);
  Operand eval_inner(Node* node, TypeRef hint);
  Value eval_known(Node* node, TypeRef hint = nullptr);
  Value need_known(const Operand& op, Pos pos, std::string_view what);
  TypeRef eval_type(Node* node);
  Operand eval_ident(Node* node);
  Operand member_of(const Operand& base, Node* node);
  Operand eval_binary(Node* node, TypeRef hint);
  Operand eval_logic(Node* node);
  Operand eval_unary(Node* node, TypeRef hint);
  Operand eval_if(Node* node, TypeRef hint);
  Operand eval_switch(Node* node, TypeRef hint, bool is_statement, Flow* flow);
  Operand eval_struct(Node* node, TypeRef hint);
  Operand eval_typed_init(Node* node);
  Operand eval_access(Node* node);
  Operand eval_block_value(Node* node, TypeRef hint);
  Operand block_result(const LoopLabel& block, Pos pos);
  TypeRef struct_type_of(Node* node);
  TypeRef enum_type_of(Node* node);
  Operand divide_by_constant(Pos pos, Tok op, const Operand& a, Int128 divisor);
  Operand arithmetic(Pos pos, Tok op, Operand a, Operand b);
  Value fold(Pos pos, Tok op, const Value& a, const Value& b);
  Operand equal_peers(Pos pos, Operand& a, Operand& b);
  TypeRef peer_type(Pos pos, const Operand& a, const Operand& b);
  Operand coerce(Operand op, TypeRef target, Pos pos, std::string_view what = {});
  bool coerce_known(Value& v, TypeRef target, std::string* why = nullptr);
  Value known_part(const Value& v, std::int64_t k, Pos pos);
  Operand load_to_dsr(Node* node, std::size_t at);
  void expect_known(Node* node, std::size_t k, T kind);
  FifoAction fifo_action(const Operand& v, const std::string& setting, Pos pos);
  Operand range_part(Node* node, std::size_t k);
  Operand set_fifo_length(Node* node, Op op, const char* builtin);
  Operand convert(Pos pos, TypeRef target, Operand op);  // @as
  Operand computed(TypeRef type, std::uint16_t r, Pos pos);
  TypeRef integer_named(const std::string& word, Pos pos);
  /// Integers, or arrays of them, that neither the host nor descriptors have.
  static bool narrow(TypeRef t) {
    if (t->kind == T::array) t = t->elem;
    return t->is_int() && t->width >= 0;
  }
  [[noreturn]] void refuse_narrow(TypeRef type, Pos pos);

  // -- fields of packed types (packed.cpp)
  struct Window {
    Operand mem;  // an unsigned integer around the field
    std::uint32_t shift = 0, bits = 0;
    bool exact = false;  // it is the field
  };
  Window window(const Operand& field, Pos pos);
  void extend(std::uint16_t r, std::uint32_t shift, std::uint32_t bits, bool is_signed, Pos pos);
  Operand load_field(const Operand& field, Pos pos);
  void store_field(const Operand& field, Operand v, Pos pos);
  void write_bits(std::string& out, std::uint64_t at, const Value& v, Pos pos);
  Value read_bits(const std::string& bytes, std::uint64_t at, TypeRef type);
  void refuse_packed_address(Pos pos);

  // -- values
  Value make_int(TypeRef type, Int128 v) const;
  Value make_float(TypeRef type, double v) const;
  Value make_bool(bool b) const { return make_int(types_.bool_, b); }
  Value make_type(TypeRef t) const;
  Value make_string(std::string_view s);
  Value make_struct(std::vector<FieldType> fields, std::vector<Value> items);
  Value void_value() const;
  Value zero_of(TypeRef type, Pos pos);
  Operand known_operand(Value v) const;
  Operand void_operand() const { return known_operand(void_value()); }
  const Value* field_of(const Value& v, std::string_view field) const;
  int field_index(TypeRef type, Symbol field) const;
  std::string field_problem(TypeRef from, TypeRef target);

  // -- places and memory (place.cpp)
  Place place(Node* node);
  Place place_of_operand(Operand op) const;
  Operand load(const Place& p, Pos pos);
  void store(const Place& p, Operand v, Pos pos);
  [[noreturn]] void refuse_store(const Place& p, Pos pos);
  Place index_place(Place base, const std::vector<Node*>& indices, Pos pos);
  Place field_place(Place base, Symbol field, Pos pos);
  Place deref_place(Operand ptr, Pos pos);
  Place pointee(const Value& ptr, Pos pos);
  Operand address_of(const Place& p, Pos pos);
  Value* cell_slot(const Place& p, bool write, Pos pos);
  Value read_path(const Value& v, const std::vector<std::int64_t>& path, std::size_t depth,
                  Pos pos);
  void store_memory(const Operand& mem, Operand v, Pos pos);
  Operand load_memory(const Operand& mem, Pos pos);
  Operand materialize(Operand op, Pos pos);  // aggregate into memory
  Operand parts_of(Operand op, Pos pos);
  Operand part(const Operand& op, std::size_t k, Pos pos);
  Operand frame_slot(TypeRef type, Pos pos);
  std::uint16_t address_reg(const Operand& mem, Pos pos);
  Operand collapse(const Operand& mem, Pos pos);  // no index register
  void copy_memory(const Operand& to, const Operand& from, std::uint32_t bytes, Pos pos);
  int address(Global* global, Pos pos);
  static DeclaredAt declared_at(const Global& g);
  Global* global_for_cell(Cell& cell, Pos pos);
  Global* anonymous_global(Value v, bool is_const, Pos pos);
  void write_bytes(std::string& out, std::uint32_t at, const Value& v, Pos pos);
  std::uint64_t scalar_bits(const Value& v, Pos pos);

  // -- code (emit.cpp)
  Builder& b() { return *frame_->builder; }
  std::uint16_t new_reg(Pos pos);
  std::uint16_t new_dreg(Pos pos);
  std::size_t emit(Insn insn, Pos pos);
  std::size_t emit_jump(Op op, std::uint16_t reg, Pos pos);
  void patch_here(std::size_t at);
  void patch_to(std::size_t at, std::size_t target);
  std::size_t here() { return b().out.code.size(); }
  std::uint16_t to_reg(const Operand& op, Pos pos);
  std::uint16_t to_new_reg(const Operand& op, Pos pos);
  void to_reg_at(const Operand& op, std::uint16_t reg, Pos pos);
  std::uint16_t to_dreg(const Operand& op, Pos pos);
  void to_dreg_at(const Operand& op, std::uint16_t reg, Pos pos);
  Operand in_reg(TypeRef type, std::uint16_t reg) const;
  Operand in_dreg(TypeRef type, std::uint16_t reg) const;
  void load_constant(std::uint16_t reg, std::uint64_t bits, TypeRef type, Pos pos);
  int string_index(const std::string& s);
  int dsd_index(const Value& v, Pos pos);
  int dsd_row(const Dsd& d, Global* base);

  // -- statements (stmt.cpp)
  Flow exec(Node* node);
  Flow exec_inner(Node* node);
  Flow exec_block(Node* node);
  Flow exec_body(Node* node);
  Flow exec_var(Node* node);
  Flow exec_assign(Node* node);
  Flow exec_if(Node* node);
  Flow exec_while(Node* node);
  Flow exec_for(Node* node);
  Flow exec_return(Node* node);
  void check_label(Symbol label, Pos pos);
  Operand chosen_value(TypeRef type, Pos pos);
  void choose(const Operand& place, Operand v, Pos pos);
  Flow exec_break(Node* node);
  bool loop_step(Flow flow, Symbol label, Flow& out, bool& stop);
  void declare(Symbol name, Place place, Pos pos);
  void collect_addressed(const Node* node, std::set<Symbol>& out) const;

  // -- calls (call.cpp)
  Operand eval_call(Node* node, TypeRef hint);
  /// Binds arguments to parameters: evaluates those in `node` (or takes `given`), converts, finds
  /// the types.
  struct Signature {
    std::vector<Operand> args;  // one per parameter
    std::vector<TypeRef> types;
    std::vector<bool> known;  // passed at compile time
    TypeRef result = nullptr;
  };
  /// Argument k for a parameter declared with a type, or (null) as anytype.
  using Giver = std::function<Operand(std::size_t k, TypeRef declared)>;
  Signature bind(Decl* decl, const std::vector<Node*>* nodes, std::vector<Operand> given, Pos pos);
  Signature bind_each(Decl* decl, std::size_t count, const std::vector<Node*>* nodes,
                      const Giver& give, Pos pos);
  Operand call_decl(Decl* decl, const std::vector<Node*>* nodes, std::vector<Operand> given,
                    Pos pos);
  Operand call_known(Decl* decl, Signature& sig, Pos pos);
  Operand call_inline(Decl* decl, Signature& sig, Pos pos);
  void refuse_arrays(const Decl& decl, const Signature& sig, const std::vector<Node*>* nodes,
                     Pos pos);
  Operand emit_call(int index, std::uint16_t callee_reg, TypeRef fn,
                    const std::vector<Operand>& args, Pos pos);
  FunctionInstance* instance(Decl* decl, const Signature& sig, Pos pos);
  FunctionInstance* plain_instance(Decl* decl, Pos pos);
  void protect(const Operand& op);
  TypeRef function_type(Decl* decl, Pos pos);
  void compile_function(FunctionInstance& fn);
  void compile_pending();
  std::uint16_t function_pointer(Decl* decl, Pos pos);

  // -- built-ins
  Operand eval_builtin(Node* node, TypeRef hint);
  Operand arg(Node* node, std::size_t k, TypeRef hint = nullptr);
  Value known_arg(Node* node, std::size_t k, TypeRef hint = nullptr);
  Int128 int_arg(Node* node, std::size_t k, std::string_view what);
  std::string string_arg(Node* node, std::size_t k);
  TypeRef type_arg(Node* node, std::size_t k);
#define WEFT_CSL_BUILTIN(name, fn, low, high) Operand fn(Node* node, TypeRef hint);
#include "weft/targets/wse/csl/builtins.def"
#undef WEFT_CSL_BUILTIN
  // -- their helpers
  Operand make_id(Node* node, T kind, int low, int high);
  struct TaskRef {
    TaskSpace space = TaskSpace::local;
    bool known = true;
    std::uint16_t id = 0, reg = 0;
  };
  TaskRef task_ref(const Operand& op, Pos pos, bool for_blocking);
  Operand task_control(Node* node, Op known_op, Op reg_op);
  Operand bind_task(Node* node, T kind);
  void bind_task(Node* node, const Value& task, Pos task_pos, Value id, Pos id_pos, T kind);
  bool route_from(const Value& config, Route& route, int color, Pos pos);
  std::uint8_t port_set(const Value& v, Pos pos, bool out);
  int color_of(const Value& v, Pos pos);
  struct AccessInfo;
  Operand dsd_from_fields(T kind, const Operand& fields, Pos pos);
  void parse_settings(const Operand& config, OpSettings& settings, SettingRegs* regs, Pos pos);
  TypeRef element_of(const Operand& op) const;
  Priority priority_from(const Value& v, Pos pos);
  Completion completion(const Operand& what, Completion::Kind kind, Pos pos,
                        std::uint16_t* reg = nullptr);
  /// Warns where an operation of `bytes` wide elements leaves the object of a known descriptor.
  void check_reach(const Operand& op, std::int64_t bytes, Pos pos);
  // -- check_uses.cpp
  bool flag_of(const Value& v, Pos pos, std::string_view what);
  void check_route(const Value& config, const Route& route, Pos pos);
  void check_destination(const Operand& dst, TypeRef type, bool moves, Pos pos,
                         std::string_view what);
  void check_element(const Operand& op, TypeRef type, bool bits, Pos pos, std::string_view what);
  void check_operands(const BulkInfo& info, const std::vector<Operand>& args,
                      const std::vector<Node*>& nodes, std::string_view what);
  void check_lengths(const std::vector<Operand>& args, std::size_t sources,
                     const std::vector<Node*>& nodes, std::string_view what);
  void note_fabric_use(const Operand& op, Pos pos);
  void need_bound_task(TaskSpace space, std::uint16_t id, Pos pos);
  void check_uses(std::size_t program);
  void fail_unless_prepared(std::pair<int, int> what, Pos pos, std::string_view code,
                            std::string message, std::string note);
  void report_unprepared();
  void check_local_routes(std::size_t program);
  wse::Operand bulk_operand(Operand op, TypeRef scalar, bool is_dst, Pos pos,
                            std::string_view what);
  Operand bulk(Node* node, TypeRef hint, Bulk code);
  static bool is_builtin(std::string_view word);
  void need_runtime(Pos pos, std::string_view what);
  void need_program(Pos pos, std::string_view what);
  void need_layout(Pos pos, std::string_view what);
  void need_wse3(Pos pos, std::string_view what);
  Value value_from_json(const Json& json, TypeRef t, Pos pos, const std::string& where);
  Operand emit_config(ConfigFn fn, std::vector<Operand> args, TypeRef result, Pos pos);
  TypeRef type_from_text(std::string_view text, Pos pos, const std::string& where);
  const void* exported_symbol(const Place& p, Pos pos);
  void check_ranges(Node* node, std::size_t k, const Operand& address);
  Operand set_config(Node* node, bool checked);
  std::uint16_t queue_number(const Value& q, Pos pos);
  void check_task_ids();
  int export_id(Node* node, std::string_view what);
  int fp16_kind() const;

  // -- layout and finishing (layout.cpp, finish.cpp)
  void run_layout();
  void compile_program(std::size_t tile_program);
  void compile_once(std::size_t tile_program);
  std::map<DeclaredAt, std::int32_t> declaration_order(std::uint32_t* end) const;
  std::uint32_t check_sections();
  void finish_program();
  void mark_inlined(const std::vector<bool>& recursive);
  void finish_functions();
  void finish_memory();

  const CompileOptions& options_;
  CompileResult& result_;
  std::set<std::string> reserved_;  // warned of
  Names names_;
  Types types_;
  std::deque<Source> sources_;
  Diagnostics diagnostics_;
  std::unordered_map<std::string, const Source*> source_by_path_;
  std::unordered_map<const Source*, Ast> asts_;
  std::unordered_map<Symbol, Value> builtin_names_;
  std::map<std::pair<const Node*, std::string>, TypeRef> nominal_;
  std::unique_ptr<LayoutState> layout_;
  std::unique_ptr<ProgramState> program_;
  Frame* frame_ = nullptr;
  const FunctionInstance* compiling_ = nullptr;
  int depth_ = 0;
  const char* stack_base_ = nullptr;  // of the outermost guard
  std::int64_t steps_ = 0;
  // Of all programs of the layout.
  std::vector<Unprepared> unprepared_;
  std::set<std::pair<int, int>> prepared_;
  Symbol sym_tensor_access_ = 0;
  int module_nesting_ = 0;
  Flow expression_flow_ = Flow::normal;  // how an expression of type noreturn left
  bool in_layout_ = false;
  bool jump_lands_here_ = false;  // the next instruction is a jump target
};

struct TileProgram {
  const Source* source = nullptr;
  Value params;
  std::string key;
  Pos pos;
};

struct LayoutState {
  bool has_rectangle = false;
  int width = 0, height = 0;
  std::vector<TileProgram> programs;
  std::unordered_map<std::string, int> by_key;
  std::vector<std::uint32_t> tile_program;  // program + 1; 0: none yet
  std::vector<std::uint32_t> tile_routes;   // index in route_sets
  std::vector<RouteSet> route_sets;
  std::vector<std::set<std::uint32_t>> route_sets_of_program;  // made when first asked for
  std::map<std::string, std::uint32_t> route_set_by_key;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> route_step;
  std::vector<Export> exports;
  std::vector<TypeRef> export_types;
  std::deque<Module> modules;
  std::deque<Decl> decls;
  std::deque<Global> globals;
};

}  // namespace weft::wse::csl
