// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one error type. A check builds a Refusal (why not, what was found, what is legal, one
// repair); throwing wraps it in Error. Invariant: `code` is a stable dotted slug, `message` is one
// line, lower case, without full stop, and names at least one value of the case at hand.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/text.h"

namespace weft {

/// Who went wrong, coarse: decides the Python exception class.
enum class ErrorKind : std::uint8_t {
  value,     // an argument outside its domain
  shape,     // extents do not fit (ShapeError, ValueError)
  dtype,     // element type does not fit (DTypeError, TypeError)
  index,     // index outside an extent (IndexError)
  memory,    // out of memory (OutOfMemoryError, MemoryError)
  schedule,  // a schedule step is illegal (ScheduleError, ValueError)
  parse,     // text that is not of the language
  verify,    // ill-formed program
  lower,     // program cannot be lowered for a target
  emit,      // code generation or the vendor's compiler refused
  device,    // device absent, lost, or of the wrong kind (DeviceError, RuntimeError)
  fault,     // a machine's own error (Fault, RuntimeError)
  rpc,       // remote call failed
  io,        // file or network
  internal,  // our mistake
};

std::string_view to_string(ErrorKind kind);

/// Where something is: a source line, a step, an operand, a machine pc. `text` prints itself;
/// `line`/`column` are 1-based and 0 when they do not apply.
struct Place {
  std::string label;  // "step 7", "left", "qpu 2 pc 0x110", "pe (3, 4)"
  std::string text;   // the thing itself, possibly several lines
  int line = 0;
  int column = 0;
};

/// Why something is refused. Built only on failure.
struct Refusal {
  std::string code;     // "schedule.compute_at.not_covered"
  std::string message;  // one line
  std::vector<Place> places;
  std::vector<std::string> notes;  // what was found; which choices are legal
  std::string help;                // a repair that was checked, or empty

  Refusal& at(std::string label, std::string text, int line = 0, int column = 0);
  Refusal& note(std::string text);
  Refusal& repair(std::string text);
};

/// Empty means legal.
using Verdict = std::optional<Refusal>;

class Error : public std::exception {
 public:
  Error(ErrorKind kind, Refusal refusal);
  /// Short form: Error(ErrorKind::shape, "array.add.broadcast", cat(...)).
  Error(ErrorKind kind, std::string_view code, std::string message);

  ErrorKind kind() const { return state_->kind; }
  const std::string& code() const { return state_->refusal.code; }
  const std::string& message() const { return state_->refusal.message; }
  const Refusal& refusal() const { return state_->refusal; }
  /// Builder style, for `throw Error(...).note(...).help(...)`.
  Error& note(std::string text);
  Error& help(std::string text);
  Error& at(std::string label, std::string text, int line = 0, int column = 0);
  /// Adds "while ..." context during unwinding.
  Error& context(std::string text);
  const char* what() const noexcept override;

 private:
  struct State {
    ErrorKind kind;
    Refusal refusal;
    std::vector<std::string> context;
    mutable std::string rendered;
  };
  std::shared_ptr<State> state_;  // shared: exceptions are copied
};

/// The multi-line text of a refusal: first line `error[slug]: message`, then places, notes, help.
std::string render(const Refusal& refusal);

/// Throws Error(ErrorKind::internal): an invariant of ours is broken.
[[noreturn]] void internal_error(const char* file, int line, const char* condition,
                                 std::string message);

#define WEFT_CHECK(condition, ...) \
  (static_cast<bool>(condition)    \
       ? static_cast<void>(0)      \
       : ::weft::internal_error(__FILE__, __LINE__, #condition, ::weft::cat(__VA_ARGS__)))

}  // namespace weft
