// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/redo_record.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::sequencer {
namespace {

using catalog::RedoFault;

class SequencerRedo : public ::testing::Test {
 protected:
  SequencerRedo() { catalog_.record_to(&sink_); }

  std::shared_ptr<Sequencer> create(std::uint64_t first) {
    return create_sequencer(catalog_, "n", first).value();
  }
  /// Applies all records to what the first of them makes.
  std::shared_ptr<Sequencer> applied() { return applied_in(others_); }
  std::shared_ptr<Sequencer> applied_in(catalog::Catalog& catalog) {
    const auto records = sink_.records();
    auto other = restore_sequencer(catalog, *catalog::read_created(records[0])).value();
    for (std::size_t i = 1; i < records.size(); ++i) {
      EXPECT_TRUE(other->apply_redo(records[i])) << "record " << i;
    }
    return other;
  }
  [[nodiscard]] std::string last() const { return catalog::hex_of(sink_.records().back()); }

  catalog::RecordingSink sink_;
  catalog::Catalog catalog_;
  catalog::Catalog others_;
};

// What numbers of requests and adds there were is no part of it.
void expect_same(const Sequencer& one, const Sequencer& other) {
  const wire::SequencerFacts a = one.facts();
  const wire::SequencerFacts b = other.facts();
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.flags, b.flags);
}

TEST_F(SequencerRedo, GoldenBytes) {
  const auto numbers = create(7);
  EXPECT_EQ(last(), "2100000000000000 0100000003010000 0800000001000000 6e07000000000000 00");
  ASSERT_TRUE(numbers->take(1, 3));
  EXPECT_EQ(last(),
            "2800000000000000 0100000003100000 0700000000000000 0a00000000000000 0100000000000000");
  ASSERT_TRUE(numbers->seal(1));
  EXPECT_EQ(last(),
            "2800000000000000 0100000003110000 0700000000000000 0a00000000000000 0100000001000000");
  ASSERT_TRUE(numbers->advance(1, 20));
  EXPECT_EQ(last(),
            "2800000000000000 0100000003120000 1400000000000000 1400000000000000 0200000000000000");
}

TEST_F(SequencerRedo, WhatTakesNothingIsNotRecorded) {
  const auto numbers = create(wire::kSequencerEnd - 2);
  EXPECT_EQ(numbers->take(1, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(numbers->take(2, 1).error().code, Code::sealed);
  EXPECT_EQ(numbers->take(1, 3).error().code, Code::exhausted);
  EXPECT_EQ(numbers->seal(2).error().code, Code::sealed);
  EXPECT_EQ(numbers->advance(1, wire::kSequencerEnd + 1).error().code, Code::invalid_argument);
  EXPECT_EQ(sink_.count(), 1u);
  EXPECT_EQ(sink_.rooms(), 0u);
}

TEST_F(SequencerRedo, WithoutRoomNothingIsTakenOrEnded) {
  const auto numbers = create(0);
  sink_.refuse(true);
  EXPECT_EQ(numbers->take(1, 1).error().code, Code::busy);
  EXPECT_EQ(numbers->seal(1).error().code, Code::busy);
  EXPECT_EQ(numbers->advance(1, 0).error().code, Code::busy);
  EXPECT_EQ(numbers->facts().next, 0u);
  EXPECT_EQ(numbers->facts().epoch, 1u);
  EXPECT_EQ(numbers->facts().flags, 0u);
  sink_.refuse(false);
  EXPECT_EQ(numbers->take(1, 1)->first, 0u);
}

// An epoch that an advance has ended stays ended where that could not go on.
TEST_F(SequencerRedo, AnAdvanceThatGoesNoFurtherThanTheSealIsRecordedAsOne) {
  const auto numbers = create(0);
  EXPECT_EQ(numbers->advance(1, wire::kSequencerEnd).error().code, Code::exhausted);
  const auto other = applied();
  expect_same(*numbers, *other);
  EXPECT_EQ(other->take(1, 1).error().code, Code::sealed);
}

TEST_F(SequencerRedo, AWordThatWasOverwrittenStaysSealed) {
  const auto numbers = create(0);
  ASSERT_TRUE(numbers->take(1, 10));
  numbers->window()->page->word().store(wire::sequencer_word(1, 3));
  EXPECT_EQ(numbers->take(1, 1).error().code, Code::sealed);
  const auto other = applied();
  expect_same(*numbers, *other);
  EXPECT_EQ(other->advance(1, 9).error(), (Error{Code::invalid_argument, 0, 1}));
  EXPECT_TRUE(other->advance(1, 10));
}

// Numbers that a client got from a run whose records are lost are never issued again, however many.
TEST_F(SequencerRedo, AfterALossNoNumberAndNoEpochComesAgain) {
  const auto numbers = create(7);
  ASSERT_TRUE(numbers->take(1, 3));
  const auto other = applied();  // what follows is lost
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(numbers->take(1, 0xffff'ffff));
  for (int i = 0; i < 17; ++i) ASSERT_TRUE(numbers->advance(wire::kAnyEpoch, 0));
  const wire::SequencerFacts lost = *numbers->seal(wire::kAnyEpoch);
  catalog::RecordingSink sink;
  other->record_to(&sink);
  ASSERT_TRUE(other->go_on_after_loss());
  EXPECT_GT(other->facts().epoch, lost.epoch);
  EXPECT_EQ(other->take(wire::kAnyEpoch, 1).error().code, Code::sealed);
  EXPECT_EQ(other->advance(wire::kAnyEpoch, 0).error(), (Error{Code::invalid_argument, 0, 1}));
  catalog::Catalog thirds;
  const auto third = applied_in(thirds);
  ASSERT_TRUE(third->apply_redo(sink.records().front()));
  expect_same(*other, *third);
  EXPECT_EQ(third->take(wire::kAnyEpoch, 1).error().code, Code::sealed);
  ASSERT_TRUE(third->advance(wire::kAnyEpoch, lost.next));
  EXPECT_EQ(third->take(lost.epoch, 1).error().code, Code::sealed);
  EXPECT_EQ(third->take(wire::kAnyEpoch, 1)->first, lost.next);
}

// So often that there are no more epochs: then it gives none, rather than one again.
TEST_F(SequencerRedo, ManyLossesEndIt) {
  const auto numbers = create(0);
  std::uint32_t last = 1;
  int losses = 0;
  for (; losses < 1000; ++losses) {
    ASSERT_TRUE(numbers->go_on_after_loss());
    const auto advanced = numbers->advance(wire::kAnyEpoch, 1 + numbers->facts().next);
    if (!advanced) {
      EXPECT_EQ(advanced.error().code, Code::exhausted);
      break;
    }
    ASSERT_GT(advanced->epoch, last + Sequencer::kEpochsLeftOut);
    last = advanced->epoch;
  }
  EXPECT_EQ(losses, 127);
  EXPECT_EQ(numbers->take(wire::kAnyEpoch, 1).error().code, Code::sealed);
  expect_same(*numbers, *applied());
}

TEST(CountersRedo, AfterALossNoNumberComesAgain) {
  catalog::RecordingSink sink;
  Counters counters;
  ASSERT_TRUE(counters.take("a", 10, &sink));
  Counters after;
  ASSERT_TRUE(after.apply_redo(sink.records().front()));
  constexpr std::uint32_t kMost = Counters::kMostAtOnce;
  EXPECT_EQ(counters.take("a", kMost + 1, &sink).error(),
            (Error{Code::invalid_argument, 0, kMost}));
  for (int i = 0; i < 70'000; ++i) {  // these are lost, more than 2^40
    ASSERT_TRUE(counters.take("a", kMost, &sink));
  }
  const std::uint64_t a = *counters.take("a", kMost, &sink);
  const std::uint64_t b = *counters.take("b", kMost, &sink);
  catalog::RecordingSink next;
  ASSERT_TRUE(after.go_on_after_loss(&next));
  Counters third;  // as a later start makes them again, of a copy or of the log
  ASSERT_TRUE(third.apply_redo(next.records().front()));
  ASSERT_TRUE(third.apply_redo(sink.records().front()));
  for (Counters* const each : {&after, &third}) {
    EXPECT_GE(*each->take("a", 1), a + kMost);
    EXPECT_GE(*each->take("b", 1), b + kMost);
    EXPECT_EQ(each->floor(), after.floor());
  }
  next.refuse(true);
  EXPECT_EQ(after.go_on_after_loss(&next).error().code, Code::busy);
}

TEST_F(SequencerRedo, NumbersAreReservedForThoseWhoAddAndNotGivenAgain) {
  const auto numbers = create(7);
  ASSERT_TRUE(numbers->take(1, 3));
  const std::size_t before = sink_.count();
  const auto window = numbers->window();
  ASSERT_EQ(sink_.count(), before + 1);
  EXPECT_EQ(window->mark, 10 + Sequencer::kReservedAhead);
  EXPECT_EQ(numbers->window()->mark, window->mark);
  EXPECT_EQ(sink_.count(), before + 1) << "there are enough";
  window->page->word().fetch_add(Sequencer::kReservedAhead / 2 + 1);  // no other thread sees it
  const auto more = numbers->window();
  EXPECT_EQ(sink_.count(), before + 2);
  EXPECT_EQ(more->mark, window->mark + Sequencer::kReservedAhead / 2 + 1);
  window->page->word().fetch_add(100);
  const auto other = applied();
  EXPECT_EQ(other->facts().epoch, 1u);
  EXPECT_EQ(other->facts().next, 10u);
  catalog::RecordingSink sink;
  others_.record_to(&sink);
  EXPECT_EQ(other->facts().epoch, 2u) << "who has added in the first one finds it ended";
  EXPECT_EQ(other->facts().first, more->mark);
  EXPECT_EQ(other->take(wire::kAnyEpoch, 1)->first, more->mark);
  others_.record_to(nullptr);
}

TEST_F(SequencerRedo, NoMoreNumbersAreReservedThanThereAre) {
  const auto numbers = create(wire::kSequencerEnd - 5);
  EXPECT_EQ(numbers->window()->mark, wire::kSequencerEnd);
  const auto other = applied();
  catalog::RecordingSink sink;
  others_.record_to(&sink);
  EXPECT_EQ(other->take(wire::kAnyEpoch, 1).error().code, Code::sealed);
  others_.record_to(nullptr);
}

// seal() reads the word: reserved numbers that were not taken are free.
TEST_F(SequencerRedo, ASealMakesReservationsVoid) {
  const auto numbers = create(0);
  numbers->window()->page->word().fetch_add(10);
  ASSERT_TRUE(numbers->seal(1));
  const auto other = applied();
  expect_same(*numbers, *other);
  catalog::RecordingSink sink;
  others_.record_to(&sink);
  EXPECT_EQ(other->facts().epoch, 1u);
  EXPECT_EQ(other->advance(1, 0)->first, 10u);
  others_.record_to(nullptr);
}

TEST_F(SequencerRedo, RandomCallsMakeTheSameSequencer) {
  base::Random random(base::seed_from_environment(51));
  for (int round = 0; round < 50; ++round) {
    const std::string name = std::to_string(round);
    const std::size_t before = sink_.count();
    const auto numbers = create_sequencer(catalog_, name, random.below(1000)).value();
    for (std::uint64_t i = random.below(40); i != 0; --i) {
      switch (random.below(10)) {
        case 0: static_cast<void>(numbers->seal(wire::kAnyEpoch)); break;
        case 1: static_cast<void>(numbers->advance(wire::kAnyEpoch, random.below(5000))); break;
        default:
          static_cast<void>(
              numbers->take(wire::kAnyEpoch, static_cast<std::uint32_t>(1 + random.below(9))));
      }
    }
    const auto records = sink_.records();
    for (int times = 0; times < 2; ++times) {
      ASSERT_TRUE(restore_sequencer(others_, *catalog::read_created(records[before])));
      const auto other = others_.find<Sequencer>(numbers->id());
      // The second time from one on that it has seen.
      const std::size_t from =
          times == 0 ? before + 1 : before + 1 + random.below(records.size() - before);
      for (std::size_t i = from; i < records.size(); ++i) {
        ASSERT_TRUE(other->apply_redo(records[i]));
      }
      expect_same(*numbers, *other);
    }
    const auto taken = others_.find<Sequencer>(numbers->id())->take(wire::kAnyEpoch, 1);
    if (taken) {
      EXPECT_EQ(taken->first, numbers->facts().next);
    }
  }
}

// It stays sealed, for clients that may still add to its word.
TEST_F(SequencerRedo, ADroppedSequencerTakesNoRecord) {
  const auto numbers = create(0);
  const auto other = applied();
  ASSERT_TRUE(numbers->take(1, 5));
  ASSERT_TRUE(numbers->advance(1, 100));
  const auto page = other->window()->page;
  ASSERT_TRUE(*others_.drop_again({ObjectKind::sequencer, numbers->id()}));
  for (const std::string_view record : sink_.records()) {
    if (!read_sequencer_redo(record)) continue;  // it was made
    EXPECT_TRUE(other->apply_redo(record));
  }
  EXPECT_TRUE(wire::sequencer_sealed(page->word().load()));
  EXPECT_EQ(other->take(wire::kAnyEpoch, 1).error().code, Code::not_found);
  EXPECT_EQ(other->facts().epoch, 1u);
}

TEST_F(SequencerRedo, SaysWhatIsWrongAndChangesNothing) {
  const auto numbers = create(0);
  const auto other = applied();
  ASSERT_TRUE(numbers->take(1, 5));
  const std::string good(sink_.records().back());
  const auto fault = [&](std::size_t at, auto value) {
    std::string changed = good;
    std::memcpy(changed.data() + at, &value, sizeof value);
    const auto done = other->apply_redo(changed);
    return done ? RedoFault::invalid : static_cast<RedoFault>(done.error().detail);
  };
  EXPECT_EQ(fault(8, std::uint32_t{2}), RedoFault::object);
  EXPECT_EQ(fault(8, std::uint32_t{0}), RedoFault::object);
  EXPECT_EQ(fault(12, std::uint8_t{1}), RedoFault::kind);
  EXPECT_EQ(fault(13, std::uint8_t{19}), RedoFault::type);
  EXPECT_EQ(fault(16, std::uint64_t{6}), RedoFault::value);  // the first above the next
  EXPECT_EQ(fault(24, wire::kSequencerEnd + 1), RedoFault::value);
  EXPECT_EQ(fault(32, std::uint32_t{0}), RedoFault::value);
  EXPECT_EQ(fault(32, wire::kSequencerEpochMax + 1), RedoFault::value);
  EXPECT_EQ(fault(36, std::uint32_t{2}), RedoFault::value);
  EXPECT_EQ(fault(36, std::uint32_t{4}), RedoFault::value);
  EXPECT_EQ(other->apply_redo(good + "x").error().detail,
            static_cast<std::uint32_t>(RedoFault::bytes));
  EXPECT_EQ(other->facts().next, 0u);
  const auto form = [this](std::string_view bytes) {
    return restore_sequencer(others_, {ObjectKind::sequencer, 9, "x", bytes}).has_value();
  };
  EXPECT_FALSE(form({}));
  EXPECT_FALSE(form("1234567"));
  EXPECT_FALSE(form("12345678"));  // no number that there is
}

}  // namespace
}  // namespace espalier::sequencer
