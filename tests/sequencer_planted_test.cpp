// SPDX-License-Identifier: Apache-2.0
// The rules of sequencers: each is broken once, and the checks must detect it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/sequencer/planted_sequencer_bugs.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "tests/support/sequencer_world.hpp"

namespace espalier::test {
namespace {

using sequencer::Sequencer;

// What is wrong in the first seed in which something is.
std::string any_sequencer_seed() {
  SequencerCounts counts;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::string wrong = run_sequencer_world(seed, {}, counts);
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return "";
}

// A client writes an old value back; callers may get no number, but none twice.
std::string word_written_back() {
  Sequencer numbers(1, "n", 0);
  const auto window = numbers.window();
  const auto first = numbers.take(wire::kAnyEpoch, 50);
  window->page->word().store(wire::sequencer_word(1, 10));
  const auto second = numbers.take(wire::kAnyEpoch, 5);
  if (!second || second->first >= first->end()) return "";
  return "number " + std::to_string(second->first) + " was given twice";
}

// A client that has the page of an epoch that is over writes there.
std::string page_of_an_epoch_before() {
  Sequencer numbers(1, "n", 0);
  const auto before = numbers.window();
  static_cast<void>(numbers.advance(1, 0));
  const auto now = numbers.window();
  before->page->word().store(wire::sequencer_word(2, 77));
  const auto taken = numbers.take(2, 1);
  if (taken && taken->first == 0) return "";
  return "a client of epoch 1 moved the numbers of epoch 2";
}

// A client has added below the mark, and used what it got; then the node ends, and its records make
// the sequencer again.
std::string number_of_an_adder_given_again() {
  catalog::RecordingSink sink;
  catalog::Catalog before;
  before.record_to(&sink);
  const auto numbers = sequencer::create_sequencer(before, "n", 0).value();
  const auto window = numbers->window();
  const std::uint64_t end = wire::sequencer_counter(window->page->word().fetch_add(10)) + 10;
  if (end > window->mark) return "numbers are not reserved";
  catalog::RecordingSink records_after;
  catalog::Catalog after;
  for (const std::string_view record : sink.records()) {
    if (const auto created = catalog::read_created(record)) {
      static_cast<void>(sequencer::restore_sequencer(after, *created));
    } else {
      static_cast<void>(after.find<Sequencer>(numbers->id())->apply_redo(record));
    }
  }
  after.record_to(&records_after);
  const auto taken = after.find<Sequencer>(numbers->id())->take(wire::kAnyEpoch, 1);
  if (taken && taken->first >= end) return "";
  return "a number that a client has used was given again";
}

void expect_noticed(sequencer::Bug bug, std::string (*check)()) {
  ASSERT_EQ(check(), "") << "without a bug";
  const base::Planted planted(bug);
  const std::string wrong = check();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  ::testing::Test::RecordProperty("rejected_because", wrong);
}

TEST(SequencerPlanted, ANumberOfASealedEpochTakenAsGoodIsNoticed) {
  expect_noticed(sequencer::Bug::seal_ignored, any_sequencer_seed);
}

TEST(SequencerPlanted, AWordThatIsBelievedIsNoticed) {
  expect_noticed(sequencer::Bug::word_believed, word_written_back);
}

TEST(SequencerPlanted, APageOfAnotherEpochUsedAgainIsNoticed) {
  expect_noticed(sequencer::Bug::page_used_again, page_of_an_epoch_before);
}

TEST(SequencerPlanted, AMarkThatIsForgottenIsNoticed) {
  expect_noticed(sequencer::Bug::mark_forgotten, number_of_an_adder_given_again);
}

}  // namespace
}  // namespace espalier::test
