// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/language/builder.h"

#include "weft/base/error.h"

namespace weft::qpu {

namespace {
// The one piece of state behind the language: which kernel this thread is building. QPULib's
// vocabulary has no place to pass it.
thread_local Builder* active = nullptr;
}  // namespace

Builder::Builder() : program_(std::make_unique<ast::Program>()), outer_(active) { active = this; }
Builder::~Builder() { active = outer_; }

Builder& Builder::current(const char* what) {
  if (!active) {
    throw Error(ErrorKind::value, "qpu.language.outside",
                cat("\"", what, "\" is used outside of a kernel"))
        .help("kernels are functions given to weft::qpu::compile");
  }
  return *active;
}

const ast::Expr* Builder::expr(ast::Op op, const ast::Expr* a, const ast::Expr* b,
                               std::uint32_t value) {
  return &program_->exprs.emplace_back(ast::Expr{op, a, b, value, nullptr});
}

const ast::Expr* Builder::select(const ast::Bool* cond, const ast::Expr* a, const ast::Expr* b) {
  return &program_->exprs.emplace_back(ast::Expr{ast::Op::select, a, b, 0, cond});
}

const ast::Bool* Builder::boolean(ast::Bool b) { return &program_->bools.emplace_back(b); }

ast::Stmt& Builder::append(ast::Stmt::Op op) {
  ast::Stmt& s = program_->stmts.emplace_back();
  s.op = op;
  s.place = place_;
  for (const Open& o : open_) {
    if (o.stmt->op == ast::Stmt::Op::where && op != ast::Stmt::Op::assign &&
        op != ast::Stmt::Op::where) {
      throw Error(ErrorKind::value, "qpu.language.where",
                  cat("line ", place_.line, ": only assignments and Where may stand inside Where"))
          .help("close the Where first, or use select(condition, a, b)");
    }
  }
  list_.push_back(&s);
  return s;
}

void Builder::open(ast::Stmt::Op op, const ast::Bool* cond, bool all) {
  ast::Stmt& s = append(op);
  s.cond = cond;
  s.all = all;
  open_.push_back({&s, std::move(list_), {}});
  list_.clear();
}

void Builder::open_for(const ast::Bool* cond, bool all) {
  open(ast::Stmt::Op::while_, cond, all);
  open_.back().is_for = open_.back().in_step = true;
}

void Builder::for_body() {
  Open& o = open_.back();
  o.step = std::move(list_);
  o.in_step = false;
  list_.clear();
}

void Builder::otherwise() {
  if (open_.empty() || open_.back().stmt->op == ast::Stmt::Op::while_ || open_.back().has_else) {
    throw Error(ErrorKind::value, "qpu.language.control",
                cat("line ", place_.line, ": Else without If or Where"));
  }
  open_.back().stmt->body = std::move(list_);
  open_.back().has_else = true;
  list_.clear();
}

void Builder::close() {
  if (open_.empty())
    throw Error(ErrorKind::value, "qpu.language.control",
                cat("line ", place_.line, ": End without If, Where, While or For"));
  Open o = std::move(open_.back());
  open_.pop_back();
  if (o.is_for) list_.insert(list_.end(), o.step.begin(), o.step.end());
  (o.has_else ? o.stmt->other : o.stmt->body) = std::move(list_);
  list_ = std::move(o.saved);
}

std::uint32_t Builder::parameter(ast::Param::Kind kind) {
  program_->params.push_back({kind});
  return static_cast<std::uint32_t>(program_->params.size()) + 1;
}

std::unique_ptr<ast::Program> Builder::finish(std::string name) {
  if (!open_.empty()) {
    throw Error(ErrorKind::value, "qpu.language.control",
                cat("line ", open_.back().stmt->place.line, " of kernel \"", name,
                    "\" opens a block that no End closes"));
  }
  program_->body = std::move(list_);
  program_->name = std::move(name);
  return std::move(program_);
}

}  // namespace weft::qpu
