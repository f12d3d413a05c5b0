// SPDX-License-Identifier: Apache-2.0
// What is not whole and not in order on a fabric, and what is all the same.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

Words all(std::uint64_t value) {
  Words words;
  words.fill(value);
  return words;
}

Faults torn() {
  Faults faults;
  faults.tear = 1;
  return faults;
}

bool mixed(const Words& words) {
  for (const std::uint64_t word : words) {
    if (word != words[0]) return true;
  }
  return false;
}

TEST(SimTorn, AReadSeesSomeLinesBeforeAndSomeAfterAWrite) {
  bool seen = false;
  bool later_line_first = false;
  std::uint64_t counted = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoEnds ends(seed, torn());
    ASSERT_TRUE(ends.connect());
    End c(*ends.a_endpoint);
    End at_b(*ends.b_endpoint);
    ASSERT_TRUE(connect(ends.world, c, at_b, "b"));
    for (std::uint64_t round = 1; round <= 20; ++round) {
      const Words out = all(round);
      Words in = all(0);
      ends.a.pair->post(WorkRequest::write(1, std::as_bytes(std::span(out)), ends.memory.key(),
                                           ends.memory.remote(0)));
      c.pair->post(WorkRequest::read(2, std::as_writable_bytes(std::span(in)), ends.memory.key(),
                                     ends.memory.remote(0)));
      ASSERT_TRUE(ends.a.wait_completed(ends.world, round));
      ASSERT_TRUE(c.wait_completed(ends.world, round));
      for (std::size_t line = 0; line < kWords; line += 8) {
        for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(in[line + i], in[line]);
      }
      for (const std::uint64_t word : in) EXPECT_TRUE(word == round || word == round - 1);
      seen |= mixed(in);
      later_line_first |= in[0] == round - 1 && in[kWords - 1] == round;
      EXPECT_EQ(ends.memory.word(8), round);
    }
    counted += ends.world.counts().torn_reads;
    EXPECT_GT(ends.world.counts().torn_writes, 0u);
  }
  EXPECT_TRUE(seen);
  EXPECT_TRUE(later_line_first);
  EXPECT_GT(counted, 0u);
}

TEST(SimTorn, TheProcessorSeesAWriteInPieces) {
  TwoEnds ends(1, torn());
  ASSERT_TRUE(ends.connect());
  ends.world.faults().tear_ns = {10'000, 20'000};
  const Words out = all(1);
  ends.a.pair->post(WorkRequest::write(1, std::as_bytes(std::span(out)), ends.memory.key(),
                                       ends.memory.remote(0)));
  bool half = false;
  while (ends.a.completions.empty()) {
    std::uint64_t delivered = 0;
    for (std::size_t i = 0; i < kWords; ++i) delivered += ends.memory.word(i * 8);
    EXPECT_EQ(delivered % 8, 0u);
    half |= delivered != 0 && delivered != kWords;
    ASSERT_TRUE(ends.world.step());
    ends.a.poll();
  }
  EXPECT_TRUE(half);
  // Completed only when all is in place.
  for (std::size_t i = 0; i < kWords; ++i) EXPECT_EQ(ends.memory.word(i * 8), 1u);
}

TEST(SimTorn, AnImmediateIsToldAfterAllLinesAndAllEarlierWrites) {
  Faults faults = Faults::harsh();
  faults.tear = 1;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoEnds ends(seed, faults);
    if (!ends.connect()) continue;
    ends.b.pair->post_receives(std::vector<Receive>(20));
    const auto key = ends.memory.key();
    std::vector<Words> out(20);
    for (std::uint64_t i = 0; i < 10; ++i) {
      out[2 * i] = out[2 * i + 1] = all(i + 1);
      ends.a.pair->post(WorkRequest::write(i, std::as_bytes(std::span(out[2 * i])), key,
                                           ends.memory.remote(512)));
      ends.a.pair->post(WorkRequest::write_immediate(i, std::as_bytes(std::span(out[2 * i + 1])),
                                                     key, ends.memory.remote(0),
                                                     static_cast<std::uint32_t>(i)));
    }
    for (std::uint32_t i = 0; i < 10; ++i) {
      while (ends.b.received.size() <= i && ends.world.step()) {
        Completion one;
        if (ends.b.receives.waiting() != 0 && ends.b.receives.poll({&one, 1}) == 1) {
          ends.b.received.push_back(one);
        }
      }
      ASSERT_GT(ends.b.received.size(), i);
      EXPECT_EQ(ends.b.received[i].opcode, Opcode::receive_write);
      EXPECT_EQ(ends.b.received[i].immediate, i);
      EXPECT_EQ(ends.b.received[i].bytes, sizeof(Words));
      for (std::size_t word = 0; word < 2 * kWords; ++word) {
        EXPECT_GE(ends.memory.word(word * 8), i + 1) << seed;
      }
    }
  }
}

TEST(SimTorn, AReadSeesEarlierWritesOfItsPair) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoEnds ends(seed, Faults::harsh());
    if (!ends.connect()) continue;
    const auto key = ends.memory.key();
    std::vector<Words> out(20);
    std::vector<Words> in(20);
    for (std::uint64_t i = 0; i < 20; ++i) {
      out[i] = all(i + 1);
      ends.a.pair->post(
          WorkRequest::write(i, std::as_bytes(std::span(out[i])), key, ends.memory.remote(24)));
      ends.a.pair->post(WorkRequest::read(i, std::as_writable_bytes(std::span(in[i])), key,
                                          ends.memory.remote(24)));
    }
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 40));
    if (ends.a.completions.back().status != Status::success) continue;
    for (std::uint64_t i = 0; i < 20; ++i) {
      for (const std::uint64_t word : in[i]) EXPECT_GE(word, i + 1) << seed;
    }
  }
}

// The word that the processor counts up, seen by two READs of a pair: backwards if they passed each
// other. With an order it never goes backwards.
std::uint64_t times_backwards(const Faults& faults, std::uint64_t seed) {
  TwoEnds ends(seed, faults);
  if (!ends.connect()) return 0;
  std::uint64_t backwards = 0;
  for (int round = 0; round < 20; ++round) {
    std::array<std::uint64_t, 8> seen{};
    for (std::uint64_t& word : seen) {
      ends.a.pair->post(WorkRequest::read(1, std::as_writable_bytes(std::span(&word, 1)),
                                          ends.memory.key(), ends.memory.remote(0)));
    }
    ends.a.completions.clear();
    while (ends.a.completions.size() < seen.size() && ends.world.step()) {
      ends.memory.set_word(0, ends.memory.word(0) + 1);
      if (ends.a.sends.waiting() != 0) ends.a.poll();
    }
    for (std::size_t i = 1; i < seen.size(); ++i) backwards += seen[i] < seen[i - 1];
  }
  return backwards;
}

TEST(SimTorn, ReadsOfAPairPassEachOtherUnlessTheyAreInOrder) {
  Faults faults = Faults::harsh();
  faults.reads_in_order = true;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(times_backwards(faults, seed), 0u);
  faults.reads_in_order = false;
  EXPECT_GT(times_backwards(faults, 1), 0u);
  EXPECT_GT(times_backwards(faults, 2), 0u);
}

TEST(SimTorn, ARepeatedReadDeliversLaterBytes) {
  // No READ is torn or held: only its answer is lost, and what is delivered is of the second time.
  Faults faults;
  faults.loss = 0.3;
  faults.land_ns = {0, 0};
  std::uint64_t overtaken = 0;
  std::uint64_t again = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    TwoEnds ends(seed, faults);
    if (!ends.connect()) continue;
    std::uint64_t seen = 0;
    std::uint64_t written = 1;
    const auto key = ends.memory.key();
    ends.a.pair->post(WorkRequest::read(1, std::as_writable_bytes(std::span(&seen, 1)), key,
                                        ends.memory.remote(0)));
    ends.a.pair->post(
        WorkRequest::write(2, std::as_bytes(std::span(&written, 1)), key, ends.memory.remote(0)));
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
    again += ends.world.counts().reads_again;
    overtaken += seen;
  }
  EXPECT_GT(again, 0u);
  EXPECT_GT(overtaken, 0u);
}

TEST(SimTorn, AnAtomicIsAtomicAmongAtomicsAlone) {
  Faults faults;
  faults.split_atomic_ns = {0, 2'000};
  TwoEnds ends(4, faults);
  ASSERT_TRUE(ends.connect());
  End c(*ends.a_endpoint);
  End at_b(*ends.b_endpoint);
  ASSERT_TRUE(connect(ends.world, c, at_b, "b"));
  const auto add = [&](std::uint64_t offset) {
    return WorkRequest::fetch_add(1, ends.memory.key(), ends.memory.remote(offset), 1);
  };
  for (int i = 0; i < 50; ++i) {
    ends.a.pair->post(add(0));
    c.pair->post(add(0));
  }
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 50));
  ASSERT_TRUE(c.wait_completed(ends.world, 50));
  EXPECT_EQ(ends.memory.word(0), 100u);
  EXPECT_EQ(ends.world.counts().torn_atomics, 0u);
  // Now the processor counts the same word, and some of what it counts is lost.
  for (int i = 0; i < 50; ++i) ends.a.pair->post(add(8));
  std::uint64_t own = 0;
  for (; ends.a.completions.size() < 100 && ends.world.step(); ++own) {
    ends.memory.set_word(8, ends.memory.word(8) + 1);
    if (ends.a.sends.waiting() != 0) ends.a.poll();
  }
  EXPECT_LT(ends.memory.word(8), 50 + own);
  EXPECT_GT(ends.world.counts().torn_atomics, 0u);
}

}  // namespace
}  // namespace espalier::fabric::sim
