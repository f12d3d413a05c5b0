// SPDX-License-Identifier: Apache-2.0
// Switches in a row, each with its part of a map's tables: what they make of READs and of shims.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/frame_corpus.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "dataplane/testing/row_checks.hpp"

namespace espalier::dataplane {
namespace {

using FrameOfARow = std::vector<std::byte>;

constexpr MapKeys kThreeKeys{0xABCD'0021, 0xABCD'0022};
constexpr std::uint32_t kGeneration = 0x5EED'0001;

/// Three switches before a tree of 4096 leaves in four levels: the fat root alone, one set, and
/// two.
struct Three {
  Three() {
    const TreeImage tree = even_tree(4, 8, 1000, std::vector<std::uint64_t>(4096, 1));
    const WayBudget way{.ranges = 8, .hops = {{0, 1}, {1, 100}, {2, 1000}}};
    const IndexTables tables = compile(tree, *limits_of(way)).tables;
    whole.add(kThreeKeys, tables);
    programs = cut_program(kThreeKeys, tables, way, kGeneration);
    for (const SwitchProgram& each : programs) parts.push_back(each.function());
  }
  static FrameOfARow read(std::uint64_t number = 1'234'567) {
    return keyed_frame(number, kThreeKeys.keyed);
  }
  [[nodiscard]] FrameOfARow redirected(FrameOfARow frame = read()) const {
    EXPECT_EQ(whole.process(frame).outcome, Outcome::redirected);
    return frame;
  }
  /// As it comes to switch number `at`.
  [[nodiscard]] FrameOfARow at(std::size_t at, FrameOfARow frame = read()) const {
    for (std::size_t i = 0; i < at; ++i) frame = sent_on(parts[i], i, 3, std::move(frame));
    return frame;
  }
  PacketFunction whole;
  std::vector<SwitchProgram> programs;
  std::vector<PacketFunction> parts;
};

FrameOfARow changed(FrameOfARow frame, const std::function<void(Shim&)>& change) {
  const Datagram datagram = find_datagram(frame);
  auto shim = find_shim(datagram);
  EXPECT_TRUE(shim);
  if (!shim) return frame;
  change(*shim);
  write_shim(datagram.udp + wire::kUdpBytes, *shim);
  return frame;
}

Outcome outcome_of(const PacketFunction& by, std::size_t at, std::size_t count,
                   FrameOfARow& frame) {
  Processed done;
  frame = sent_on(by, at, count, std::move(frame), &done);
  return done.outcome;
}

TEST(SwitchRow, FramesComeOutAsOfOneSwitch) {
  EXPECT_EQ(frames_through_a_row(base::seed_from_environment(3), 60), "");
}

TEST(SwitchRow, FramesToTwoNodesComeOutAsOfOneSwitch) {
  EXPECT_EQ(frames_to_two_nodes(base::seed_from_environment(6), 60), "");
}

TEST(SwitchRow, AShimSaysHowFarTheWalkHasCome) {
  const Three row;
  FrameOfARow frame = Three::read();
  EXPECT_EQ(outcome_of(row.parts[0], 0, 3, frame), Outcome::carried);
  const auto first = find_shim(find_datagram(frame));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->generation, kGeneration);
  EXPECT_EQ(first->hops, 2u);
  EXPECT_EQ(first->cursor, 1'234'567u / 512'000);
  EXPECT_EQ(outcome_of(row.parts[1], 1, 3, frame), Outcome::carried);
  const auto second = find_shim(find_datagram(frame));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->hops, 1u);
  EXPECT_EQ(second->cursor, 1'234'567u / 64'000);
  EXPECT_EQ(outcome_of(row.parts[2], 2, 3, frame), Outcome::redirected);
  EXPECT_EQ(frame, row.redirected());
}

TEST(SwitchRow, NoShimIsTakenFromAHost) {
  const Three row;
  for (std::size_t part = 0; part < 3; ++part) {
    FrameOfARow frame = row.at(1);
    EXPECT_EQ(outcome_of(row.parts[part], 0, 3, frame), Outcome::shim_dropped);
    FrameOfARow one = row.at(1);
    EXPECT_EQ(outcome_of(row.parts[part], 0, 1, one), Outcome::shim_dropped) << "alone";
  }
  // Nor what is none, but goes to its port.
  FrameOfARow other = row.at(1);
  other[udp_offset(other) + 8] ^= std::byte{1};
  EXPECT_EQ(outcome_of(row.parts[0], 0, 3, other), Outcome::shim_dropped);
  std::optional<Shim> shim = Shim{kGeneration, 0, 0, 2};
  std::uint32_t key = kThreeKeys.keyed;
  std::uint64_t address = 5;
  EXPECT_EQ(row.parts[1].redirect(key, address, shim, {.first = true, .last = false}).outcome,
            Outcome::shim_dropped);
}

// Another generation, server or node, or a map that the switch does not have: the READ goes on as
// its client sent it.
TEST(SwitchRow, AShimThatMeansNothingIsCarriedOnAndRemovedAtLast) {
  const Three row;
  const PacketFunction empty;
  const std::function<void(Shim&)> changes[] = {
      [](Shim& shim) { ++shim.generation; },  [](Shim& shim) { shim.server = 1; },
      [](Shim& shim) { shim.cursor = 5000; }, [](Shim& shim) { shim.cursor = kNoNode; },
      [](Shim& shim) { shim.hops = 3; },      [](Shim& shim) { shim.hops = 0; }};
  for (const auto& change : changes) {
    const FrameOfARow sent = changed(row.at(1), change);
    FrameOfARow frame = sent;
    EXPECT_EQ(outcome_of(row.parts[1], 1, 3, frame), Outcome::shim_passed);
    EXPECT_EQ(frame, sent);
    EXPECT_EQ(outcome_of(row.parts[2], 2, 3, frame), Outcome::shim_removed);
    EXPECT_EQ(frame, Three::read());
  }
  FrameOfARow frame = row.at(1);
  EXPECT_EQ(outcome_of(empty, 1, 3, frame), Outcome::shim_passed);
  EXPECT_EQ(frame, row.at(1));
  EXPECT_EQ(outcome_of(empty, 2, 3, frame), Outcome::shim_removed);
  EXPECT_EQ(frame, Three::read());
  // What an empty switch has let pass is no cursor of the next one's.
  frame = row.at(1);
  EXPECT_EQ(outcome_of(empty, 1, 3, frame), Outcome::shim_passed);
  EXPECT_EQ(outcome_of(row.parts[2], 2, 3, frame), Outcome::shim_removed);
  EXPECT_EQ(frame, Three::read());
  // A switch that has the fat root takes no cursor.
  frame = row.at(1);
  EXPECT_EQ(outcome_of(row.whole, 2, 3, frame), Outcome::shim_removed);
  EXPECT_EQ(frame, Three::read());
}

TEST(SwitchRow, AShimThatIsNotWholeIsDroppedAtLast) {
  const Three row;
  const FrameOfARow good = row.at(2);
  const std::size_t udp = udp_offset(good);
  for (const std::size_t place : {udp + 8, udp + 9, udp + 15, udp + 20, udp + 23, udp + 24}) {
    FrameOfARow bad = good;
    bad[place] ^= std::byte{1};
    FrameOfARow frame = bad;
    EXPECT_EQ(outcome_of(row.parts[1], 1, 3, frame), Outcome::shim_passed);
    EXPECT_EQ(frame, bad);
    EXPECT_EQ(outcome_of(row.parts[2], 2, 3, frame), Outcome::shim_dropped);
  }
}

// Where the row ends before the walk does, or a frame has no room, the best node so far counts.
TEST(SwitchRow, AReadThatCannotBeCarriedIsRedirected) {
  const Three row;
  const IndexTables& first = row.programs[0].maps()[0].tables;
  const auto address_of = [](FrameOfARow& frame) {
    const auto parts = find_read_request(frame);
    return parts.ib.empty() ? 0 : base::load_be<std::uint64_t>(parts.ib.data() + 12);
  };
  FrameOfARow frame = Three::read();
  EXPECT_EQ(outcome_of(row.parts[0], 0, 1, frame), Outcome::redirected) << "the last one";
  EXPECT_EQ(address_of(frame), find(first, 1'234'567).address);
  frame = Three::read();
  EXPECT_EQ(row.parts[0].process(frame, {true, false, kShimBytes - 1}).outcome,
            Outcome::redirected);
  EXPECT_EQ(address_of(frame), find(first, 1'234'567).address);
  // A middle one that is the last.
  const IndexTables& second = row.programs[1].maps()[0].tables;
  const std::uint64_t expected = find_from(second, 1'234'567 / 512'000, 1'234'567).address;
  frame = row.at(1);
  EXPECT_EQ(outcome_of(row.parts[1], 1, 2, frame), Outcome::redirected);
  EXPECT_EQ(address_of(frame), expected);
  // No switch adds a shim behind the first one that had tables.
  frame = Three::read();
  EXPECT_EQ(outcome_of(row.parts[1], 1, 3, frame), Outcome::read_passed);
}

TEST(SwitchRow, BurstsAreProcessedAsEachFrameAlone) {
  const Three row;
  base::Random random(base::seed_from_environment(5));
  for (int round = 0; round < 200; ++round) {
    const std::size_t at = random.below(3);
    std::vector<FrameOfARow> alone;
    for (std::size_t left = 1 + random.below(80); left != 0; --left) {
      FrameOfARow frame = row.at(random.below(3), Three::read(random.below(4'096'000)));
      if (random.chance(0.1)) frame[udp_offset(frame) + 11] ^= std::byte{1};
      alone.push_back(std::move(frame));
    }
    std::vector<FrameOfARow> together = alone;
    std::vector<std::span<std::byte>> frames;
    for (FrameOfARow& frame : together) {
      const std::size_t bytes = frame.size();
      frame.resize(bytes + kShimBytes);
      frames.push_back(std::span(frame).first(bytes));
    }
    std::vector<Processed> done(alone.size());
    row.parts[at].process(frames, done, {at == 0, at == 2, kShimBytes});
    for (std::size_t i = 0; i < alone.size(); ++i) {
      Processed by_itself;
      const FrameOfARow expected = sent_on(row.parts[at], at, 3, alone[i], &by_itself);
      ASSERT_EQ(done[i], by_itself);
      if (by_itself.outcome == Outcome::shim_dropped) continue;
      together[i].resize(expected.size());
      ASSERT_EQ(together[i], expected);
    }
  }
}

// What transports do that have no packets.
TEST(SwitchRow, AReadWithoutAPacketGoesTheSameWay) {
  const Three row;
  base::Random random(base::seed_from_environment(6));
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t number = random.below(4'200'000);
    std::uint32_t key = kThreeKeys.keyed;
    std::uint64_t address = number;
    std::optional<Shim> shim;
    for (std::size_t at = 0; at < 3; ++at) {
      row.parts[at].redirect(key, address, shim, {at == 0, at == 2, kShimBytes});
    }
    EXPECT_FALSE(shim);
    FrameOfARow frame = row.redirected(Three::read(number));
    const auto parts = find_read_request(frame);
    EXPECT_EQ(address, base::load_be<std::uint64_t>(parts.ib.data() + 12));
    EXPECT_EQ(key, kThreeKeys.redirect);
  }
}

}  // namespace
}  // namespace espalier::dataplane
