// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/nest_forms.h"

#include "weft/base/text.h"

namespace weft::rules {

namespace {

constexpr std::size_t kMostForms = 1024;  // about 20 kB each

std::string after(const std::string& answers, const std::string& name, const std::string& value) {
  return cat(answers, name, "=", value, ";");
}

}  // namespace

/// Answers from those that are given already, then from the choices; notes the questions.
class NestForms::Asked final : public Choices {
 public:
  Asked(Choices* choices, std::string prefix, std::vector<std::string> given)
      : choices_(choices), given_(std::move(given)), answers_(std::move(prefix)) {}

  std::int64_t number(const std::string& name, const std::vector<std::int64_t>& options) override {
    note(name).numbers = options;
    if (at_ < given_.size()) return std::stoll(take(name, given_[at_]));
    const std::int64_t value = choices_->number(name, options);
    take(name, cat(value));
    return value;
  }
  std::string word(const std::string& name, const std::vector<std::string>& options) override {
    note(name).words = options;
    return take(name, at_ < given_.size() ? given_[at_] : choices_->word(name, options));
  }
  void expected(double microseconds) override {
    last.expected.push_back(microseconds);
    if (choices_) choices_->expected(microseconds);
  }

  std::vector<std::pair<std::string, Entry>> questions;
  Entry last;  // what all answers lead to
  const std::string& answers() const { return answers_; }

 private:
  Entry& note(const std::string& name) {
    questions.emplace_back(answers_, Entry());
    questions.back().second.name = name;
    return questions.back().second;
  }
  std::string take(const std::string& name, std::string value) {
    ++at_;
    answers_ = after(answers_, name, value);
    return value;
  }

  Choices* choices_;
  std::vector<std::string> given_;
  std::string answers_;
  std::size_t at_ = 0;
};

NestForms::Notes NestForms::schedule(Schedule& whole, BlockRef block, Choices* choices,
                                     const std::string& prefix, const Steps& steps) {
  std::unique_lock lock(mutex_);
  if (count_ >= kMostForms) {
    groups_.clear();
    accesses_ = {};
    count_ = 0;
  }
  const schedule::Part part(whole, block, accesses_);
  std::shared_ptr<Group>& known = groups_[part.key()];
  if (!known) known = std::make_shared<Group>(Group{part.begin(whole), {}});
  const std::shared_ptr<Group> group = known;
  std::vector<std::string> given;
  std::string answers = prefix;
  for (auto at = group->entries.find(answers); at != group->entries.end();
       at = group->entries.find(answers)) {
    const Entry& entry = at->second;
    lock.unlock();  // an entry stays as it is; who is asked may take another lock
    if (entry.refused) throw Error(*entry.refused);
    if (entry.made) {
      for (const double each : entry.expected)
        if (choices) choices->expected(each);
      part.join(whole, *entry.made);
      return entry.notes;
    }
    given.push_back(entry.words.empty() ? cat(choices->number(entry.name, entry.numbers))
                                        : choices->word(entry.name, entry.words));
    answers = after(answers, entry.name, given.back());
    lock.lock();
  }
  lock.unlock();
  Asked asked(choices, prefix, std::move(given));
  Schedule made = group->begun;
  try {
    asked.last.notes = steps(made, Questions(choices ? &asked : nullptr, prefix));
    asked.last.made = made;
  } catch (const Error& refused) {
    asked.last.refused = refused;
  }
  lock.lock();
  for (auto& [before, question] : asked.questions)
    group->entries.emplace(before, std::move(question));
  // Another thread may have come to the same; both are alike.
  const Entry& entry = group->entries.emplace(asked.answers(), std::move(asked.last)).first->second;
  ++count_;
  lock.unlock();
  if (entry.refused) throw Error(*entry.refused);
  part.join(whole, *entry.made);
  return entry.notes;
}

}  // namespace weft::rules
