// SPDX-License-Identifier: Apache-2.0
// The checkers against the definition: for thousands of random short histories, correct and
// damaged, they must agree with a search of all orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/reference_map.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"

namespace espalier::test {
namespace {

const std::string kFewKeys[] = {"a", "b", "c"};

const std::string& random_key(Random& random) { return random.pick(kFewKeys); }

Operation random_question(Random& random, std::string value) {
  Operation operation;
  operation.kind = static_cast<Kind>(random.below(10));
  const bool ranged = operation.kind == Kind::scan || operation.kind == Kind::count;
  if (operation.kind == Kind::batch) {
    WriteBatch batch;
    batch.put(random_key(random), value);
    random.one_in(2) ? batch.erase(random_key(random)) : batch.put(random_key(random), value);
    if (random.one_in(3)) batch.only_if_absent(random_key(random));
    if (random.one_in(3)) batch.only_if_present(random_key(random));
    operation.writes = batch.writes();
    operation.conditions = batch.conditions();
    return operation;
  }
  operation.key = ranged && random.one_in(2) ? "" : random_key(random);
  if (ranged) operation.high = random.one_in(2) ? "" : random_key(random);
  if (operation.kind == Kind::scan) {
    const auto kind = random.below(3);
    operation.options = {random.below(3), kind == 1, kind == 2};
  }
  const bool takes_value = operation.kind == Kind::put || operation.kind == Kind::insert ||
                           operation.kind == Kind::update ||
                           (operation.kind == Kind::modify && !random.one_in(3));
  if (takes_value) operation.value = std::move(value);
  return operation;
}

// A history that is correct by construction: operations take effect in sequence, each within its
// time.
History random_history(Random& random, std::size_t operations) {
  History history;
  history.initial = {{"b", "0"}};
  ReferenceMap map(history.initial);
  std::set<std::uint64_t> stamps;
  const auto stamp = [&](std::uint64_t wanted) {
    while (!stamps.insert(wanted).second) ++wanted;
    return wanted;
  };
  Version version = 0;
  for (std::size_t i = 0; i < operations; ++i) {
    Operation operation = map.answered(random_question(random, std::to_string(i + 1)));
    map.apply(operation);
    // Stamps before the moment of effect are even, after it odd, so they stay on their sides.
    const std::uint64_t moment = (i + 4) * 1000;
    operation.invoked = stamp(moment - random.below(3000));
    operation.responded = stamp(moment + 100 + random.below(3000));
    if (operation.applied) operation.version = ++version;
    history.operations.push_back(std::move(operation));
  }
  return history;
}

// Makes one answer or one time wrong, or perhaps only different.
void damage(History& history, Random& random) {
  Operation& operation = history.operations[random.below(history.operations.size())];
  switch (random.below(4)) {
    case 0:
      if (!operation.items.empty()) operation.items.pop_back();
      break;
    case 1:
      if (!operation.items.empty()) {
        operation.items.back().value = std::to_string(random.below(history.operations.size()));
      }
      break;
    case 2:
      if (operation.kind >= Kind::put && operation.kind <= Kind::modify) {
        operation.existed = !operation.existed;
      }
      break;
    default: {
      Operation& other = history.operations[random.below(history.operations.size())];
      std::swap(operation.invoked, other.invoked);
      std::swap(operation.responded, other.responded);
      break;
    }
  }
}

// Tries all orders that respect real time and, if asked for, the order of versions.
class AllOrders {
 public:
  AllOrders(const History& history, bool by_version)
      : operations_(history.operations),
        by_version_(by_version),
        taken_(history.operations.size()) {}

  bool find(const ReferenceMap& map, std::size_t done = 0) {
    if (done == operations_.size()) return true;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (taken_[i] || !may_be_next(i)) continue;
      if (!same_answer(map.answered(operations_[i]), operations_[i])) continue;
      ReferenceMap after = map;
      after.apply(operations_[i]);
      taken_[i] = true;
      const bool found = find(after, done + 1);
      taken_[i] = false;
      if (found) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool may_be_next(std::size_t index) const {
    const Operation& next = operations_[index];
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (taken_[i] || i == index) continue;
      if (precedes(operations_[i], next)) return false;
      const bool earlier =
          next.applied && operations_[i].applied && operations_[i].version < next.version;
      if (by_version_ && earlier) return false;
    }
    return true;
  }

  const std::vector<Operation>& operations_;
  bool by_version_;
  std::vector<bool> taken_;
};

bool all_well_formed(const History& history) {
  return std::none_of(history.operations.begin(), history.operations.end(),
                      [](const Operation& o) { return malformed(o).has_value(); });
}

std::string history_text(const History& history) {
  std::string text;
  for (const Operation& operation : history.operations) text += describe(operation) + "\n";
  return text;
}

TEST(CheckerRandom, AcceptsHistoriesThatAreRight) {
  const std::uint64_t seed = seed_from_environment(11);
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  for (std::uint64_t round = 0; round < scaled(300); ++round) {
    const History history = random_history(random, 60);
    ASSERT_EQ(replay_versions(history).value_or(""), "");
    const CheckResult result = check_linearizable(history);
    ASSERT_EQ(result.answer, Answer::yes) << result.why;
  }
}

TEST(CheckerRandom, AgreesWithAllOrders) {
  const std::uint64_t seed = seed_from_environment(12);
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  std::uint64_t refused = 0;
  std::uint64_t refused_by_version_only = 0;
  const std::uint64_t rounds = scaled(8000);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    History history = random_history(random, random.between(2, 6));
    damage(history, random);
    const bool well_formed = all_well_formed(history);
    const ReferenceMap initial(history.initial);
    const bool any = well_formed && AllOrders(history, false).find(initial);
    const bool by_version = well_formed && AllOrders(history, true).find(initial);
    const CheckResult result = check_linearizable(history);
    ASSERT_EQ(result.answer, any ? Answer::yes : Answer::no) << result.why << "in\n"
                                                             << history_text(history);
    const auto wrong = replay_versions(history);
    ASSERT_EQ(!wrong.has_value(), by_version) << wrong.value_or("") << "in\n"
                                              << history_text(history);
    if (!any) ++refused;
    if (any && !by_version) ++refused_by_version_only;
  }
  // Damage that never shows would test nothing.
  EXPECT_GT(refused, rounds / 20);
  EXPECT_GT(refused_by_version_only, 0u);
}

}  // namespace
}  // namespace espalier::test
