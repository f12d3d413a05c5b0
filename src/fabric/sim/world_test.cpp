// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/world.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fabric/sim/lines.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

TEST(SimWorld, ActionsHappenInOrderOfTimeThenOfArrival) {
  World world(1);
  std::string seen;
  world.at(30, [&] { seen += 'c'; });
  world.at(10, [&] { seen += 'a'; });
  world.at(10, [&] {
    seen += 'b';
    world.after(5, [&] { seen += 'x'; });
  });
  world.run_until(20);
  EXPECT_EQ(seen, "abx");
  EXPECT_EQ(world.now_ns(), 20u);
  EXPECT_TRUE(world.step());
  EXPECT_EQ(seen, "abxc");
  EXPECT_EQ(world.now_ns(), 30u);
  EXPECT_FALSE(world.step());
  world.at(5, [&] { seen += 'p'; });  // past
  EXPECT_TRUE(world.step());
  EXPECT_EQ(world.now_ns(), 30u);
}

TEST(SimWorld, WaitPassesTimeAndIsEndedByWake) {
  World world(1);
  const auto a = world.add_node("a");
  a->wait(1'000);
  EXPECT_EQ(world.now_ns(), 1'000u);
  a->wake();
  a->wait(1'000);
  EXPECT_EQ(world.now_ns(), 1'000u);
  world.after(300, [&] { a->wake(); });
  a->wait(1'000);
  EXPECT_EQ(world.now_ns(), 1'300u);
  a->wait(UINT64_MAX);  // nothing will ever happen
  EXPECT_EQ(world.now_ns(), 1'300u);
}

TEST(SimWorld, AnActionMayWaitWhileOthersHappen) {
  World world(1);
  const auto a = world.add_node("a");
  std::string seen;
  world.at(10, [&] {
    seen += '(';
    a->wait(100);
    seen += ')';
  });
  world.at(20, [&] { seen += '.'; });
  world.run_until(50);
  EXPECT_EQ(seen, "(.)");
  EXPECT_EQ(world.now_ns(), 110u);
}

TEST(SimWorld, PollingAloneGetsOn) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  std::uint64_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  ends.memory.set_word(0, 77);
  ends.a.pair->post(WorkRequest::read(1, bytes, ends.memory.key(), ends.memory.remote(0)));
  while (ends.a.completions.empty()) ends.a.poll();
  EXPECT_EQ(word, 77u);
}

TEST(SimWorld, PropertiesSayWhatTheFaultsAllow) {
  Faults faults;
  World weak(1, Faults::harsh());
  EXPECT_FALSE(weak.add_node("a")->properties().reads_in_order);
  EXPECT_FALSE(weak.add_node("b")->properties().atomic_with_processor);
  faults.reads_in_order = true;
  World strong(1, faults);
  const auto endpoint = strong.add_node("a");
  EXPECT_TRUE(endpoint->properties().reads_in_order);
  EXPECT_TRUE(endpoint->properties().atomic_with_processor);
  EXPECT_EQ(endpoint->properties().transport, "sim");
}

TEST(SimWorld, PiecesAreTheLinesOfTheTargetInAnyOrder) {
  base::Random random(5);
  Faults faults;
  EXPECT_TRUE(cut_in_pieces(0, 0, faults, random).empty());
  EXPECT_EQ(cut_in_pieces(0, 5'000, faults, random).size(), 1u);
  faults.tear = 1;
  bool shuffled = false;
  for (std::uint64_t remote = 0; remote < 200; remote += 7) {
    const auto pieces = cut_in_pieces(remote, 300, faults, random);
    std::vector<int> copied(300);
    std::uint64_t before_ns = 0;
    std::uint32_t before = 0;
    for (const Piece& piece : pieces) {
      EXPECT_EQ((remote + piece.offset) / 64, (remote + piece.offset + piece.bytes - 1) / 64);
      for (std::uint32_t i = 0; i < piece.bytes; ++i) ++copied[piece.offset + i];
      EXPECT_GE(piece.after_ns, before_ns);
      shuffled |= piece.offset < before;
      before_ns = piece.after_ns;
      before = piece.offset;
    }
    EXPECT_EQ(copied, std::vector<int>(300, 1));
    EXPECT_EQ(pieces.size(), (remote + 299) / 64 - remote / 64 + 1);
  }
  EXPECT_TRUE(shuffled);
}

// A little of everything; what comes of it.
std::uint64_t trace_of(std::uint64_t seed) {
  TwoEnds ends(seed, Faults::harsh());
  if (!ends.connect()) return ends.world.trace();
  std::vector<std::byte> bytes(512);
  std::vector<std::byte> message(64);
  ends.b.pair->post_receives(std::vector<Receive>(4, Receive{0, message}));
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto key = ends.memory.key();
    ends.a.pair->post(WorkRequest::write(i, bytes, key, ends.memory.remote(i * 8)));
    ends.a.pair->post(WorkRequest::read(i, bytes, key, ends.memory.remote(0)));
    ends.a.pair->post(WorkRequest::fetch_add(i, key, ends.memory.remote(8), 1));
    ends.a.pair->post(WorkRequest::send(i, std::span(bytes).first(64)));
  }
  ends.a.wait_completed(ends.world, 16);
  return ends.world.trace();
}

TEST(SimWorld, TheSameSeedMakesTheSameEvents) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::uint64_t trace = trace_of(seed);
    EXPECT_EQ(trace, trace_of(seed)) << seed;
    EXPECT_NE(trace, trace_of(seed + 100)) << seed;
  }
}

}  // namespace
}  // namespace espalier::fabric::sim
