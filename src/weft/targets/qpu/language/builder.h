// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects a kernel while its C++ function runs. One builder per thread is current during
// compile(); the operators of the language append to it.

#include <memory>
#include <source_location>

#include "weft/targets/qpu/language/ast.h"

namespace weft::qpu {

class Builder {
 public:
  Builder();
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Throws Error(value, "qpu.language.outside") when no kernel is being built on this thread.
  static Builder& current(const char* what);

  const ast::Expr* expr(ast::Op op, const ast::Expr* a = nullptr, const ast::Expr* b = nullptr,
                        std::uint32_t value = 0);
  const ast::Expr* constant(std::uint32_t bits) {
    return expr(ast::Op::constant, nullptr, nullptr, bits);
  }
  const ast::Expr* select(const ast::Bool* cond, const ast::Expr* a, const ast::Expr* b);
  const ast::Bool* boolean(ast::Bool b);
  std::uint32_t fresh() { return program_->vars++; }
  ast::Stmt& append(ast::Stmt::Op op);
  /// Where the kernel's author wrote what comes next; places within the language itself are passed
  /// over.
  void at(const std::source_location& place) {
    std::string_view file = place.file_name();
    if (!file.ends_with("language/language.h") && !file.ends_with("language/language.cpp"))
      place_ = {place.file_name(), static_cast<int>(place.line())};
  }

  // Control: each refuses ("qpu.language.control") what has no counterpart.
  void open(ast::Stmt::Op op, const ast::Bool* cond, bool all);
  void open_for(const ast::Bool* cond, bool all);
  void for_body();
  void otherwise();
  void close();

  std::uint32_t parameter(ast::Param::Kind kind);  // index of its uniform
  /// Throws when something was left open.
  std::unique_ptr<ast::Program> finish(std::string name);

 private:
  struct Open {
    ast::Stmt* stmt;
    std::vector<const ast::Stmt*> saved;
    std::vector<const ast::Stmt*> step;
    bool is_for = false, in_step = false, has_else = false;
  };
  std::unique_ptr<ast::Program> program_;
  std::vector<const ast::Stmt*> list_;
  std::vector<Open> open_;
  ast::Place place_;
  Builder* outer_;
};

}  // namespace weft::qpu
