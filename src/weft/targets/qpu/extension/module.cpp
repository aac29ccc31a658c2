// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/extension/module.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"

namespace weft::qpu {

struct ModuleTable::State {
  struct Entry {
    std::string name, doc;
    std::vector<std::int32_t> kinds;
    Call call;
  };
  std::string name, doc;
  std::deque<Entry> entries;
  std::vector<weft_qpu_operator> operators;
  weft_qpu_table table{};
};

namespace {
char* copy_text(std::string_view text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) return nullptr;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = 0;
  return out;
}

void release(weft_qpu_value* v) {
  if (v->kind == WEFT_QPU_FLOATS) delete static_cast<Tensor*>(v->owner);
  if (v->kind == WEFT_QPU_INTS) delete static_cast<IntTensor*>(v->owner);
  v->owner = nullptr;
}
void release_text(char* text) { std::free(text); }

void watch(std::int32_t (*check)()) {
  thread_local std::optional<InterruptScope> scope;
  scope.reset();
  if (!check) return;
  scope.emplace([check] {
    if (const std::int32_t answer = check(); answer != 0)
      throw Error(ErrorKind::device, "qpu.module.stopped",
                  cat("the caller's check, with the answer ", answer, ", stopped the call at work"))
          .help("call again: the device is usable");
  });
}
}  // namespace

ModuleTable::ModuleTable(std::string name, std::string doc) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->doc = std::move(doc);
}
ModuleTable::~ModuleTable() = default;

void ModuleTable::add(std::string name, std::string doc, std::vector<std::int32_t> kinds,
                      Call call) {
  for (const State::Entry& e : state_->entries) {
    if (e.name == name)
      throw Error(ErrorKind::value, "qpu.module.twice",
                  cat("module ", state_->name, " defines \"", name, "\" twice"));
  }
  State::Entry& e = state_->entries.emplace_back(
      State::Entry{std::move(name), std::move(doc), std::move(kinds), std::move(call)});
  weft_qpu_operator o{};
  o.name = e.name.c_str();
  o.doc = e.doc.c_str();
  o.kinds = e.kinds.data();
  o.arguments = static_cast<std::int32_t>(e.kinds.size()) - 1;
  o.closure = &e;
  o.call = [](void* closure, const weft_qpu_value* in, weft_qpu_value* out, char** error) {
    // Nothing may leave through C: every exception becomes its text.
    try {
      static_cast<State::Entry*>(closure)->call(in, out);
      return 0;
    } catch (const std::exception& failure) {
      *error = copy_text(failure.what());
    } catch (...) {
      *error = copy_text("error[qpu.module.unknown]: an exception of an unknown type");
    }
    return 1;
  };
  state_->operators.push_back(o);
}

const weft_qpu_table* ModuleTable::table() const {
  weft_qpu_table& t = state_->table;
  t.version = WEFT_QPU_MODULE_VERSION;
  t.count = static_cast<std::int32_t>(state_->operators.size());
  t.name = state_->name.c_str();
  t.doc = state_->doc.c_str();
  t.operators = state_->operators.data();
  t.release = release;
  t.release_text = release_text;
  t.watch = watch;
  return &t;
}

}  // namespace weft::qpu
