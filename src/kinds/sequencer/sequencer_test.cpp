// SPDX-License-Identifier: Apache-2.0
// Sequencers: ranges, seals, epochs, the ends of counters, and clients that write over the word.
#include "kinds/sequencer/sequencer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kinds/sequencer/answer.hpp"

namespace espalier::sequencer {
namespace {

using wire::kAnyEpoch;
using wire::kSequencerEnd;
using wire::sequencer_word;

Error sealed_in(std::uint32_t epoch) { return {Code::sealed, 0, epoch}; }

std::uint64_t first_of(Sequencer& from, std::uint32_t count = 1, std::uint32_t epoch = kAnyEpoch) {
  const auto taken = from.take(epoch, count);
  EXPECT_TRUE(taken.has_value()) << message(taken.error());
  return taken ? taken->first : ~std::uint64_t{0};
}

TEST(SequencerAnswers, CountOnlyOfTheEpochWithoutASealAndWithinTheCounter) {
  EXPECT_EQ(check_answer(sequencer_word(3, 7), 3, 5), (Range{7, 5, 3}));
  EXPECT_EQ(check_answer(sequencer_word(3, 7), 2, 5).error(), NoAnswer::other_epoch);
  EXPECT_EQ(check_answer(sequencer_word(4, 0), 3, 1).error(), NoAnswer::other_epoch);
  EXPECT_EQ(check_answer(sequencer_word(3, 7) | wire::kSequencerSeal, 3, 5).error(),
            NoAnswer::sealed);
  EXPECT_EQ(check_answer(sequencer_word(3, kSequencerEnd - 5), 3, 5),
            (Range{kSequencerEnd - 5, 5, 3}));
  EXPECT_EQ(check_answer(sequencer_word(3, kSequencerEnd - 5), 3, 6).error(), NoAnswer::exhausted);
  EXPECT_EQ(check_answer(sequencer_word(3, kSequencerEnd), 3, 1).error(), NoAnswer::exhausted);
  EXPECT_EQ(check_answer(sequencer_word(3, kSequencerEnd), 3, ~std::uint32_t{0}).error(),
            NoAnswer::exhausted);
}

TEST(Sequencer, GivesRangesOneBehindTheOther) {
  Sequencer numbers(1, "n", 10);
  EXPECT_EQ(first_of(numbers), 10u);
  EXPECT_EQ(first_of(numbers, 16), 11u);
  EXPECT_EQ(first_of(numbers, 1, 1), 27u);
  EXPECT_EQ(numbers.take(kAnyEpoch, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(numbers.take(2, 1).error(), sealed_in(1));
  const auto facts = numbers.facts();
  EXPECT_EQ(facts.first, 10u);
  EXPECT_EQ(facts.next, 28u);
  EXPECT_EQ(facts.requests, 3u);
  EXPECT_EQ(facts.adds, 3u);
  EXPECT_EQ(facts.flags, 0u);
  EXPECT_EQ(numbers.numbers().entries, 18u);
  EXPECT_EQ(numbers.description().size(), sizeof facts);
}

TEST(Sequencer, ASealIsForGoodAndTheNextEpochBeginsAbove) {
  Sequencer numbers(1, "n", 0);
  first_of(numbers, 100);
  const auto sealed = numbers.seal(1);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(sealed->next, 100u);
  EXPECT_EQ(sealed->flags, wire::kSequencerIsSealed);
  EXPECT_EQ(numbers.take(1, 1).error(), sealed_in(1));
  EXPECT_EQ(numbers.seal(1)->next, 100u);
  EXPECT_EQ(numbers.advance(1, 0)->epoch, 2u);
  EXPECT_EQ(numbers.take(1, 1).error(), sealed_in(2));
  EXPECT_EQ(numbers.seal(1).error(), sealed_in(2));
  EXPECT_EQ(numbers.advance(1, 0).error(), sealed_in(2));
  EXPECT_EQ(numbers.take(2, 1), (Range{100, 1, 2}));
  // Without a seal before it.
  EXPECT_EQ(numbers.advance(2, 500)->first, 500u);
  EXPECT_EQ(first_of(numbers), 500u);
  EXPECT_EQ(numbers.advance(3, 7)->first, 501u);
}

TEST(Sequencer, EndsWithItsNumbersAndItsEpochs) {
  Sequencer numbers(1, "n", kSequencerEnd - 10);
  EXPECT_EQ(numbers.take(kAnyEpoch, 11).error().code, Code::exhausted);
  EXPECT_EQ(first_of(numbers, 9), kSequencerEnd - 10);
  EXPECT_EQ(first_of(numbers, 1), kSequencerEnd - 1);
  EXPECT_EQ(numbers.take(kAnyEpoch, 1).error().code, Code::exhausted);
  EXPECT_EQ(numbers.advance(1, 0).error().code, Code::exhausted);
  EXPECT_EQ(numbers.facts().epoch, 1u);
  Sequencer epochs(2, "e", 0);
  for (std::uint32_t epoch = 1; epoch < wire::kSequencerEpochMax; ++epoch) {
    ASSERT_TRUE(epochs.advance(epoch, 0).has_value());
  }
  EXPECT_EQ(first_of(epochs), 0u);
  EXPECT_EQ(epochs.advance(wire::kSequencerEpochMax, 0).error().code, Code::exhausted);
  EXPECT_EQ(epochs.advance(wire::kSequencerEpochMax, kSequencerEnd + 1).error().code,
            Code::invalid_argument);
}

TEST(Sequencer, WhatOthersAddToItsPageNobodyElseGets) {
  Sequencer numbers(1, "n", 5);
  first_of(numbers, 2);
  const auto window = numbers.window();
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(window->epoch, 1u);
  EXPECT_EQ(numbers.numbers().memory_bytes, sizeof(Sequencer) + WordPage::kBytes);
  const auto taken = check_answer(window->page->word().fetch_add(16), 1, 16);
  EXPECT_EQ(taken, (Range{7, 16, 1}));
  EXPECT_EQ(first_of(numbers), 23u);
  window->page->word().fetch_add(1);
  EXPECT_EQ(numbers.window()->page, window->page);
  EXPECT_EQ(numbers.seal(1)->next, 25u);
  EXPECT_EQ(check_answer(window->page->word().fetch_add(1), 1, 1).error(), NoAnswer::sealed);
  EXPECT_EQ(numbers.window().error(), sealed_in(1));
  // What is added to the page of an epoch that has ended moves nothing.
  ASSERT_TRUE(numbers.advance(1, 0).has_value());
  const auto next = numbers.window();
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next->page, window->page);
  window->page->word().store(sequencer_word(2, 9999));
  EXPECT_EQ(first_of(numbers), 25u);
  EXPECT_EQ(numbers.facts().flags, 0u);
}

/// Writes over the word after 50 numbers of it were given, and looks what comes of it.
void expect_sealed_by(std::uint64_t written) {
  SCOPED_TRACE(written);
  for (const bool by_taking : {true, false}) {
    Sequencer numbers(1, "n", 0);
    const auto window = numbers.window();
    ASSERT_TRUE(window.has_value());
    EXPECT_EQ(first_of(numbers, 50), 0u);
    window->page->word().store(written);
    if (by_taking) {
      EXPECT_EQ(numbers.take(kAnyEpoch, 1).error(), sealed_in(1));
    }
    const auto facts = numbers.facts();
    EXPECT_EQ(facts.flags, wire::kSequencerIsSealed | wire::kSequencerOverwritten);
    EXPECT_GE(facts.next, 50u);
    EXPECT_EQ(numbers.take(kAnyEpoch, 1).error(), sealed_in(1));
    EXPECT_EQ(check_answer(window->page->word().load(), 1, 1).has_value(), false);
    // Only a caller that names a number can continue.
    EXPECT_EQ(numbers.advance(1, 0).error(), (Error{Code::invalid_argument, 0, 1}));
    EXPECT_EQ(numbers.advance(1, 49).error(), (Error{Code::invalid_argument, 0, 1}));
    EXPECT_EQ(numbers.take(kAnyEpoch, 1).error(), sealed_in(1));
    ASSERT_TRUE(numbers.advance(1, 1000).has_value());
    EXPECT_EQ(first_of(numbers), 1000u);
  }
}

TEST(SequencerHostile, AWordThatWasWrittenOverSealsIt) {
  expect_sealed_by(sequencer_word(1, 49));  // backwards
  expect_sealed_by(0);
  expect_sealed_by(sequencer_word(2, 60));                         // another epoch
  expect_sealed_by(sequencer_word(1, 60) | wire::kSequencerSeal);  // a seal of its own
  expect_sealed_by(~std::uint64_t{0});
  expect_sealed_by(sequencer_word(1, kSequencerEnd) + 5);  // carried into the epoch
}

TEST(SequencerHostile, ASealThatWasTakenAwayIsSetAgain) {
  Sequencer numbers(1, "n", 0);
  const auto window = numbers.window();
  first_of(numbers, 50);
  ASSERT_TRUE(numbers.seal(1).has_value());
  window->page->word().store(sequencer_word(1, 10));
  EXPECT_EQ(numbers.take(kAnyEpoch, 1).error(), sealed_in(1));
  EXPECT_EQ(numbers.seal(1)->next, 50u);
  EXPECT_TRUE(wire::sequencer_sealed(window->page->word().load()));
  EXPECT_EQ(numbers.facts().flags, wire::kSequencerIsSealed | wire::kSequencerOverwritten);
}

TEST(SequencerHostile, AWordFarAheadLeavesNoNumbersAndAnEndThatIsTold) {
  Sequencer numbers(1, "n", 0);
  const auto window = numbers.window();
  window->page->word().store(sequencer_word(1, kSequencerEnd - 1));
  EXPECT_EQ(numbers.take(kAnyEpoch, 2).error().code, Code::exhausted);
  EXPECT_EQ(first_of(numbers), kSequencerEnd - 1);
  EXPECT_EQ(numbers.advance(1, 0).error().code, Code::exhausted);
}

TEST(SequencerObjects, AreDroppedForThoseWhoHoldThemToo) {
  catalog::Catalog catalog;
  const auto made = create_sequencer(catalog, "n", 3);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(create_sequencer(catalog, "n", 0).error(), (Error{Code::already_exists, 0, 3}));
  EXPECT_EQ(create_sequencer(catalog, "m", kSequencerEnd + 1).error().code, Code::invalid_argument);
  const auto window = (*made)->window();
  ASSERT_TRUE(catalog.drop<Sequencer>("n").has_value());
  const Error gone{Code::not_found, 0, (*made)->id()};
  EXPECT_EQ((*made)->take(kAnyEpoch, 1).error(), gone);
  EXPECT_EQ((*made)->seal(kAnyEpoch).error(), gone);
  EXPECT_EQ((*made)->advance(kAnyEpoch, 0).error(), gone);
  EXPECT_EQ((*made)->window().error(), gone);
  EXPECT_EQ((*made)->known_facts().error(), gone);
  EXPECT_TRUE(wire::sequencer_sealed(window->page->word().load()));
}

TEST(SequencerObjects, AreBoundedAndSoAreTheirPages) {
  std::vector<std::unique_ptr<Sequencer>> many;
  for (std::uint32_t i = 0; i < WordPage::kMost; ++i) {
    many.push_back(std::make_unique<Sequencer>(i + 1, "n", 0));
    ASSERT_TRUE(many.back()->window().has_value()) << i;
  }
  Sequencer one_more(9999, "m", 0);
  EXPECT_EQ(one_more.window().error(), (Error{Code::out_of_memory, 0, WordPage::kMost}));
  EXPECT_EQ(first_of(one_more), 0u) << "who asks needs no page";
  many.pop_back();
  EXPECT_TRUE(one_more.window().has_value());
  catalog::Catalog catalog;
  while (Sequencer::live() < Sequencer::kMost) {
    many.push_back(std::make_unique<Sequencer>(1, "n", 0));
  }
  EXPECT_EQ(create_sequencer(catalog, "n", 0).error(),
            (Error{Code::out_of_memory, 0, Sequencer::kMost}));
  many.clear();
  EXPECT_TRUE(create_sequencer(catalog, "n", 0).has_value());
}

}  // namespace
}  // namespace espalier::sequencer
