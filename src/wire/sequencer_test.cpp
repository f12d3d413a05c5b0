// SPDX-License-Identifier: Apache-2.0
// Golden bytes of sequencers: the word, and what is said of one.
#include "wire/sequencer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"
#include "wire/message.hpp"

namespace espalier::wire {
namespace {

TEST(SequencerFormat, TheWordHasItsBitsWhereTheDocumentDrawsThem) {
  EXPECT_EQ(sequencer_word(1, 0), 0x0001'0000'0000'0000u);
  EXPECT_EQ(sequencer_word(kSequencerEpochMax, kSequencerEnd), 0x7FFF'FFFF'FFFF'FFFFu);
  const std::uint64_t word = 0x8123'4567'89AB'CDEFu;
  EXPECT_TRUE(sequencer_sealed(word));
  EXPECT_FALSE(sequencer_sealed(word & ~kSequencerSeal));
  EXPECT_EQ(sequencer_epoch(word), 0x0123u);
  EXPECT_EQ(sequencer_counter(word), 0x4567'89AB'CDEFu);
}

TEST(SequencerFormat, FieldsLieWhereTheDocumentDrawsThem) {
  const SequencerFacts facts{1, 2, 3, 4, 5, kSequencerIsSealed | kSequencerOverwritten};
  EXPECT_EQ(base::bytes_of(facts), std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                                               "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
                                               "\5\0\0\0\3\0\0\0",
                                               40));
  const SequencerAdvance advance{7, 0, 9};
  EXPECT_EQ(base::bytes_of(advance), std::string("\7\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0", 16));
  const SequencerGrant grant{0x0102, 3, 4, 0x0506};
  EXPECT_EQ(base::bytes_of(grant),
            std::string("\2\1\0\0\0\0\0\0\3\0\0\0\4\0\0\0\6\5\0\0\0\0\0\0", 24));
}

TEST(SequencerFormat, NumbersOfCalls) {
  EXPECT_EQ(static_cast<int>(OffloadId::sequencer_create), 46);
  EXPECT_EQ(static_cast<int>(OffloadId::sequencer_open), 47);
  EXPECT_EQ(static_cast<int>(OffloadId::sequencer_take), 48);
  EXPECT_EQ(static_cast<int>(OffloadId::sequencer_seal), 49);
  EXPECT_EQ(static_cast<int>(OffloadId::sequencer_advance), 50);
  EXPECT_EQ(static_cast<int>(OffloadId::one_sided_sequencer), 51);
}

}  // namespace
}  // namespace espalier::wire
