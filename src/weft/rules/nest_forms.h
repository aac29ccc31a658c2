// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nests scheduled apart from the rest of their function, once for each form of their own and each
// set of answers: another candidate that answers the same takes what became of them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/rules/choices.h"
#include "weft/schedule/part.h"

namespace weft::rules {

class NestForms {
 public:
  /// What a rule says of the nest that it scheduled.
  struct Notes {
    std::vector<std::string> applied;
    std::string with;  // the block that was scheduled with it, "" where none was
  };
  using Steps = std::function<Notes(Schedule& part, const Questions& questions)>;

  /// Takes `steps` for the statement with `block`, which must ask for all that they depend on, by
  /// names that begin with `prefix`. Throws what they throw. `choices` null: nobody is asked.
  Notes schedule(Schedule& whole, BlockRef block, Choices* choices, const std::string& prefix,
                 const Steps& steps);

 private:
  /// A question, or where no more are asked.
  struct Entry {
    std::string name;
    std::vector<std::int64_t> numbers;
    std::vector<std::string> words;
    std::optional<Schedule> made;
    std::optional<Error> refused;
    std::vector<double> expected;
    Notes notes;
  };
  /// What follows the answers so far, by the prefix and their text.
  struct Group {
    Schedule begun;  // keeps the nodes of the key
    std::unordered_map<std::string, Entry> entries;
  };
  class Asked;
  std::mutex mutex_;
  schedule::Accesses accesses_;
  std::map<schedule::Part::Key, std::shared_ptr<Group>> groups_;
  std::size_t count_ = 0;
};

}  // namespace weft::rules
