// SPDX-License-Identifier: Apache-2.0
// Gets in one datagram at a switch: which get a hint, and what else of them changes.
#include "dataplane/datagram_hints.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/key_number.hpp"
#include "dataplane/packet_function.hpp"
#include "dataplane/testing/get_frame.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "dataplane/testing/row_checks.hpp"
#include "fabric/roce/testing/sample_packets.hpp"
#include "wire/ref.hpp"

namespace espalier::dataplane {
namespace {

using HintFrame = std::vector<std::byte>;

constexpr MapKeys kHintKeys{0xABCD'0021, 0xABCD'0022};
const HintTerms kHintTerms{7, 0x5000'0000'0000, "user"};

/// Tables whose addresses are those of nodes.
class HintsAtASwitch : public ::testing::Test {
 protected:
  HintsAtASwitch() {
    for (NodeNumber node = 0; node < tree_.size(); ++node) {
      tree_.set_address(node, kHintTerms.base + (node + 1) * wire::kBlockBytes);
    }
    tables_ = compile(tree_, {.ranges = 24, .sets = 2, .nodes_per_set = 24}).tables;
    function_.add(kHintKeys, tables_, {}, kHintTerms);
  }
  [[nodiscard]] std::uint64_t offset_for(std::string_view key) const {
    return find(tables_, key_number(kHintTerms.prefix, key)).address - kHintTerms.base;
  }
  /// Whether it passes, and is not touched.
  [[nodiscard]] bool passes(const HintFrame& sent, const Hop& hop = {}) const {
    HintFrame frame = sent;
    return function_.process(frame, hop).outcome == Outcome::passed && frame == sent;
  }
  [[nodiscard]] std::string draw_key() {
    std::string key = kHintTerms.prefix;
    for (std::uint64_t left = random_.below(12); left != 0; --left) {
      key += static_cast<char>(random_.below(256));
    }
    return key;
  }

  base::Random random_{base::seed_from_environment(4545)};
  TreeImage tree_ = random_tree(random_, {.levels = 4, .children_max = 12, .here = 0.05});
  IndexTables tables_;
  PacketFunction function_;
};

TEST_F(HintsAtASwitch, AGetIsToldTheNodeThatTablesKnowBest) {
  std::uint64_t with_sets = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string key = draw_key();
    const bool v6 = random_.chance(0.5);
    const bool checksum = v6 || random_.chance(0.7);
    const auto header = fabric::roce::sample::frame_header(random_, v6, random_.chance(0.3));
    const HintFrame sent = get_frame(header, kHintTerms.map, key, checksum);
    HintFrame frame = sent;
    if (random_.chance(0.3)) frame.resize(frame.size() + 7, std::byte{0x77});  // filled up
    const Processed done = function_.process(frame);
    ASSERT_EQ(done.outcome, Outcome::hinted);
    with_sets += done.sets != 0 ? 1 : 0;
    frame.resize(sent.size());
    EXPECT_EQ(hint_of(frame), wire::Ref::make(offset_for(key), 0).bits);
    const auto parsed = fabric::roce::parse_frame(
        frame, checksum ? fabric::roce::UdpChecksum::right : fabric::roce::UdpChecksum::any);
    ASSERT_TRUE(parsed) << "the checksum is wrong";
    EXPECT_EQ(parsed->udp_checksum == 0, !checksum);
    // Nothing else has changed.
    HintFrame expected = sent;
    for (HintFrame* each : {&frame, &expected}) {
      std::fill_n(hint_in(*each), sizeof(std::uint64_t), std::byte{0});
      std::fill_n(find_datagram(*each).udp + wire::kUdpChecksumOffset, 2, std::byte{0});
    }
    EXPECT_EQ(frame, expected);
  }
  EXPECT_GT(with_sets, 100u);
}

TEST_F(HintsAtASwitch, AHintOfAnotherSwitchIsReplaced) {
  HintFrame frame = get_frame(plain_frame_header(), kHintTerms.map, "user 1");
  std::fill_n(hint_in(frame), sizeof(std::uint64_t), std::byte{0xEE});
  fabric::roce::set_udp_checksum(frame);
  EXPECT_EQ(function_.process(frame).outcome, Outcome::hinted);
  EXPECT_EQ(hint_of(frame), wire::Ref::make(offset_for("user 1"), 0).bits);
  EXPECT_TRUE(fabric::roce::parse_frame(frame));
}

TEST_F(HintsAtASwitch, WhatWasDamagedStaysSo) {
  HintFrame frame = get_frame(plain_frame_header(), kHintTerms.map, "user 1");
  frame.back() ^= std::byte{1};
  EXPECT_EQ(function_.process(frame).outcome, Outcome::hinted);
  EXPECT_FALSE(fabric::roce::parse_frame(frame));
}

TEST_F(HintsAtASwitch, OtherDatagramsPassAsTheyAre) {
  const HintFrame good = get_frame(plain_frame_header(), kHintTerms.map, "user 1");
  EXPECT_FALSE(passes(good));
  EXPECT_TRUE(passes(good, {.node = 1})) << "there are no tables of that node";
  EXPECT_TRUE(passes(get_frame(plain_frame_header(), kHintTerms.map + 1, "user 1")));
  EXPECT_TRUE(passes(get_frame(plain_frame_header(), 0, "user 1")));
  EXPECT_TRUE(passes(get_frame(plain_frame_header(), kHintTerms.map, "")));
  const std::size_t udp = good.size() - wire::kDatagramRequestBytes - 6 - wire::kUdpBytes;
  const auto spoiled = [&](std::size_t at) {
    HintFrame frame = good;
    frame[at] ^= std::byte{0x40};
    return frame;
  };
  EXPECT_TRUE(passes(spoiled(udp + 3))) << "another port";
  EXPECT_TRUE(passes(spoiled(udp + 5))) << "UDP's length";
  EXPECT_TRUE(passes(spoiled(udp + 8))) << "the magic";
  EXPECT_TRUE(passes(spoiled(udp + 12))) << "the version";
  EXPECT_TRUE(passes(spoiled(udp + 13))) << "the kind";
  EXPECT_TRUE(passes(spoiled(udp + 14))) << "the length of the key";
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(passes({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}));
  }
}

TEST_F(HintsAtASwitch, TablesWithoutTermsOrNodesHintNothing) {
  PacketFunction other;
  other.add(kHintKeys, tables_);
  HintFrame frame = get_frame(plain_frame_header(), kHintTerms.map, "user 1");
  EXPECT_EQ(other.process(frame).outcome, Outcome::passed);
  // No node can begin where the tables say.
  PacketFunction odd;
  odd.add(kHintKeys, tables_, {}, {kHintTerms.map, kHintTerms.base + 8, kHintTerms.prefix});
  EXPECT_EQ(odd.process(frame).outcome, Outcome::passed);
  EXPECT_EQ(hint_of(frame), 0u);
}

// Each switch of a row goes on where the one before has ended, and what comes out is what one
// switch with all tables makes.
TEST_F(HintsAtASwitch, SwitchesInARowSayWhatOneDoes) {
  const WayBudget way{.ranges = 24, .hops = {{0, 1}, {1, 24}, {1, 24}}};
  const IndexTables tables = compile(tree_, *limits_of(way)).tables;
  PacketFunction whole;
  whole.add(kHintKeys, tables, {}, kHintTerms);
  const auto programs = cut_program(kHintKeys, tables, way, 5, kHintTerms);
  std::size_t carried = 0;
  for (int i = 0; i < 300; ++i) {
    const bool v6 = random_.chance(0.5);
    const auto header = fabric::roce::sample::frame_header(random_, v6, random_.chance(0.3));
    const HintFrame sent = get_frame(header, kHintTerms.map, draw_key(), v6 || random_.chance(0.7));
    HintFrame frame = sent;
    for (std::size_t at = 0; at < 3; ++at) {
      Processed done;
      frame = sent_on(programs[at].function(), at, 3, std::move(frame), &done);
      ASSERT_TRUE(is_whole(frame)) << "at " << at;
      carried += done.outcome == Outcome::carried ? 1 : 0;
      EXPECT_EQ(is_for_switch(find_datagram(frame)), done.outcome == Outcome::carried);
    }
    HintFrame expected = sent;
    whole.process(expected);
    EXPECT_EQ(frame, expected);
  }
  EXPECT_GT(carried, 200u);
}

// Where a switch has other tables, or none, what those before it knew stays.
TEST_F(HintsAtASwitch, InARowASwitchOfAnotherGenerationRestoresTheGet) {
  const WayBudget way{.ranges = 24, .hops = {{0, 1}, {2, 24}}};
  const IndexTables tables = compile(tree_, *limits_of(way)).tables;
  const auto programs = cut_program(kHintKeys, tables, way, 5, kHintTerms);
  const auto others = cut_program(kHintKeys, tables, way, 6, kHintTerms);
  const PacketFunction last[] = {others[1].function(), PacketFunction()};
  IndexTables root = tables;
  root.sets.clear();
  for (Way& each : root.ways) each.next = kNoNode;
  PacketFunction first;
  first.add(kHintKeys, root, {}, kHintTerms);
  std::size_t removed = 0;
  for (int i = 0; i < 100; ++i) {
    const HintFrame sent = get_frame(plain_frame_header(), kHintTerms.map, draw_key());
    Processed done;
    HintFrame frame = sent_on(programs[0].function(), 0, 2, sent, &done);
    const bool carried = done.outcome == Outcome::carried;
    frame = sent_on(last[i % 2], 1, 2, std::move(frame), &done);
    EXPECT_EQ(done.outcome, carried ? Outcome::shim_removed : Outcome::passed);
    removed += carried ? 1 : 0;
    HintFrame expected = sent;
    first.process(expected);
    EXPECT_EQ(frame, expected);
  }
  EXPECT_GT(removed, 20u);
}

// From hosts, and damaged.
TEST_F(HintsAtASwitch, ShimsThatAreNoGoodAreDropped) {
  const WayBudget way{.ranges = 24, .hops = {{0, 1}, {2, 24}}};
  const auto programs =
      cut_program(kHintKeys, compile(tree_, *limits_of(way)).tables, way, 5, kHintTerms);
  Processed done;
  HintFrame frame = get_frame(plain_frame_header(), kHintTerms.map, draw_key());
  while (done.outcome != Outcome::carried) {
    frame = get_frame(plain_frame_header(), kHintTerms.map, draw_key());
    frame = sent_on(programs[0].function(), 0, 2, std::move(frame), &done);
  }
  EXPECT_TRUE(sent_on(programs[0].function(), 0, 2, frame).empty()) << "from a host";
  const std::size_t shim = static_cast<std::size_t>(find_datagram(frame).udp - frame.data()) + 8;
  for (std::size_t at = shim; at < shim + kShimBytes; ++at) {
    HintFrame damaged = frame;
    damaged[at] ^= std::byte{0x10};
    EXPECT_TRUE(sent_on(programs[1].function(), 1, 2, damaged).empty()) << at - shim;
  }
  // A READ's shim before a get is none.
  HintFrame other = frame;
  other[shim] = std::byte{0x11};
  EXPECT_TRUE(sent_on(programs[1].function(), 1, 2, other).empty());
}

// With 16 bytes more it would be longer than a datagram may be: the first switch's word must do.
TEST_F(HintsAtASwitch, LongGetsGetNoShim) {
  const WayBudget way{.ranges = 24, .hops = {{0, 1}, {2, 24}}};
  const auto programs =
      cut_program(kHintKeys, compile(tree_, *limits_of(way)).tables, way, 5, kHintTerms);
  for (const std::size_t bytes : {wire::kDatagramKeyBytesMax, wire::kDatagramKeyBytesMax - 16}) {
    std::size_t carried = 0;
    for (int i = 0; i < 50; ++i) {
      std::string key = draw_key();
      key.resize(bytes, 'x');
      Processed done;
      HintFrame frame = get_frame(plain_frame_header(), kHintTerms.map, key);
      frame = sent_on(programs[0].function(), 0, 2, std::move(frame), &done);
      EXPECT_NE(hint_of(frame), 0u);
      carried += done.outcome == Outcome::carried ? 1 : 0;
    }
    EXPECT_EQ(carried != 0, bytes != wire::kDatagramKeyBytesMax);
  }
}

TEST_F(HintsAtASwitch, BurstsAreTheSameAsOneByOne) {
  std::vector<HintFrame> frames;
  for (int i = 0; i < 60; ++i) {
    if (random_.chance(0.4)) {
      frames.push_back(keyed_frame(random_(), kHintKeys.keyed));
    } else {
      frames.push_back(get_frame(plain_frame_header(), kHintTerms.map, draw_key()));
    }
  }
  std::vector<HintFrame> together = frames;
  std::vector<std::span<std::byte>> spans(together.begin(), together.end());
  std::vector<Processed> done(frames.size());
  function_.process(spans, done);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(done[i], function_.process(frames[i]));
    EXPECT_EQ(together[i], frames[i]);
  }
}

}  // namespace
}  // namespace espalier::dataplane
