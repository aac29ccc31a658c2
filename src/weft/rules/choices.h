// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decisions of rules that somebody else takes: a tuner answers each question, and the answers by
// name give the same schedule again.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::rules {

class Choices {
 public:
  virtual ~Choices() = default;
  /// One of `options`; the first is what the rule would take.
  virtual std::int64_t number(const std::string& name,
                              const std::vector<std::int64_t>& options) = 0;
  virtual std::string word(const std::string& name, const std::vector<std::string>& options) = 0;
  /// What a rule with a model of its own expects of one statement under the answers so far.
  virtual void expected(double microseconds) = 0;
};

/// The questions of one statement: names begin with its position, "b0.threads".
class Questions {
 public:
  Questions() = default;
  Questions(Choices* choices, std::string prefix) : choices_(choices), prefix_(std::move(prefix)) {}
  bool open() const { return choices_ != nullptr; }
  /// Replaces `value` by one of `options`, of which it need not be one.
  void ask(const char* name, std::int64_t& value, const std::vector<std::int64_t>& options) const {
    if (!choices_) return;
    std::vector<std::int64_t> all{value};
    for (std::int64_t o : options)
      if (std::find(all.begin(), all.end(), o) == all.end()) all.push_back(o);
    if (all.size() > 1) value = choices_->number(prefix_ + name, all);
  }
  void ask(const char* name, bool& value) const {
    std::int64_t number = value;
    ask(name, number, {1, 0});
    value = number != 0;
  }
  void expect(double microseconds) const {
    if (choices_) choices_->expected(microseconds);
  }
  std::string word(const char* name, const std::vector<std::string>& options) const {
    return choices_ && options.size() > 1 ? choices_->word(prefix_ + name, options) : options[0];
  }

 private:
  Choices* choices_ = nullptr;
  std::string prefix_;
};

/// 1, 2, 4 … up to `most`.
inline std::vector<std::int64_t> powers_up_to(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= most; n *= 2) out.push_back(n);
  return out;
}

}  // namespace weft::rules
