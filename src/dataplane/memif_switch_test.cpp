// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif_switch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "base/random.hpp"
#include "dataplane/testing/switch_line.hpp"
#include "fabric/memif/port.hpp"

namespace espalier::dataplane {
namespace {

using fabric::Status;
using End = SwitchLine::End;
using Block = std::array<std::byte, SwitchLine::kBlockBytes>;

constexpr std::uint64_t kStep = SwitchLine::kStep;

bool is_block(std::span<const std::byte> bytes, std::uint64_t i) {
  return std::ranges::all_of(bytes,
                             [&](std::byte each) { return each == SwitchLine::block_byte(i); });
}

TEST(MemifSwitch, WhatIsForNoTableGoesThrough) {
  SwitchLine line;
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  Block block;
  for (std::uint64_t i = 0; i < SwitchLine::kBlocks; ++i) {
    ASSERT_EQ(line.read(client, block, line.key(), line.block_address(i)), Status::success);
    EXPECT_TRUE(is_block(block, i));
  }
  const SwitchCounters counters = line.the_switch().counters();
  EXPECT_GE(counters.to_node, SwitchLine::kBlocks);
  EXPECT_GE(counters.to_clients, SwitchLine::kBlocks);
  EXPECT_EQ(counters.lost, 0u);
  EXPECT_EQ(counters.redirected, SwitchCounters{}.redirected);
  EXPECT_GE(counters.reads_passed, SwitchLine::kBlocks);
  EXPECT_EQ(line.the_switch().links(), 1u);
}

TEST(MemifSwitch, AReadOfANumberComesBackFromItsBlock) {
  SwitchLine line;
  line.function().install(line.program().function());
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  base::Random random(base::seed_from_environment(7));
  Block block;
  for (int n = 0; n < 500; ++n) {
    const std::uint64_t number =
        random.below(4) == 0 ? random.below(65) * kStep - random.below(2) : random();
    ASSERT_EQ(line.read(client, block, SwitchLine::kKeyedKey, number), Status::success);
    ASSERT_TRUE(is_block(block, number / kStep)) << number;
  }
  EXPECT_GE(line.the_switch().counters().redirected_in_all(), 500u);  // what is late is sent again
}

// As before: the node alone decides what a key opens.
TEST(MemifSwitch, WithoutTablesTheNodeRefusesAKeyThatItDoesNotKnow) {
  SwitchLine line;
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  Block block;
  EXPECT_EQ(line.read(client, block, SwitchLine::kKeyedKey, 0), Status::remote_access);
  ASSERT_TRUE(line.connect(client)) << "once more";
  EXPECT_EQ(line.read(client, block, line.key(), line.block_address(1)), Status::success);
}

// The frame is for a port that the node has not, so it is lost there, and the READ is sent again.
TEST(MemifSwitch, ANodeDropsAShimThatArrives) {
  SwitchLine line(SwitchLine::Switches::two_middle);
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  line.function().install(line.programs_of_two(1)[0].function());
  Block block{};
  const auto read = fabric::WorkRequest::read(1, block, SwitchLine::kKeyedKey, 5 * kStep);
  ASSERT_EQ(client.pairs.front()->post(read).taken, 1u);
  ASSERT_TRUE(line.run_until([&] { return line.the_switch().counters().carried >= 3; }));
  fabric::Completion completion;
  EXPECT_EQ(client.queue.poll({&completion, 1}), 0u) << "the node has taken a shim";
  EXPECT_EQ(block, Block{});
  EXPECT_EQ(client.pairs.front()->state(), fabric::QueuePair::State::connected);
  line.function().install(line.program().function());
  ASSERT_TRUE(line.run_until([&] { return client.queue.poll({&completion, 1}) == 1; }));
  EXPECT_EQ(completion.status, Status::success);
  EXPECT_TRUE(is_block(block, 5));
}

TEST(MemifSwitch, TwoInARowShareTheTables) {
  SwitchLine line(SwitchLine::Switches::two);
  auto programs = line.programs_of_two(1);
  line.function().install(programs[0].function());
  line.function_behind().install(programs[1].function());
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  base::Random random(base::seed_from_environment(9));
  Block block;
  for (int n = 0; n < 300; ++n) {
    const std::uint64_t number = random();
    ASSERT_EQ(line.read(client, block, SwitchLine::kKeyedKey, number), Status::success);
    ASSERT_TRUE(is_block(block, number / kStep)) << number;
  }
  EXPECT_GE(line.the_switch().counters().carried, 300u);
  EXPECT_EQ(line.the_switch().counters().redirected_in_all(), 0u);
  EXPECT_GE(line.the_switch_behind().counters().redirected_in_all(), 300u);
  // Of another generation in the first: the READ comes to the node as it was sent, and this one
  // does not know its key.
  line.function().install(line.programs_of_two(2)[0].function());
  EXPECT_EQ(line.read(client, block, SwitchLine::kKeyedKey, 0), Status::remote_access);
  const SwitchCounters behind = line.the_switch_behind().counters();
  EXPECT_GE(behind.shims_removed, 1u);
  EXPECT_EQ(behind.shims_dropped + behind.lost, 0u);
}

TEST(MemifSwitch, TablesChangeWhileReadsAreUnderWay) {
  SwitchLine line;
  const SwitchProgram programs[] = {line.program(0), line.program(1)};
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  base::Random random(base::seed_from_environment(8));
  constexpr std::size_t kReads = 8;
  std::array<Block, kReads> blocks;
  std::array<std::uint64_t, kReads> numbers;
  std::uint64_t of_each[2] = {};
  line.function().install(programs[0].function());
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < kReads; ++i) {
      numbers[i] = random();
      const auto read = fabric::WorkRequest::read(i, blocks[i], SwitchLine::kKeyedKey, numbers[i]);
      ASSERT_EQ(client.pairs.front()->post(read).taken, 1u);
    }
    line.function().install(programs[random.below(2)].function());
    for (std::size_t done = 0; done < kReads;) {
      line.turn();
      fabric::Completion completion;
      if (client.queue.poll({&completion, 1}) == 0) continue;
      ASSERT_EQ(completion.status, Status::success);
      const std::uint64_t block = numbers[completion.work_id] / kStep;
      const bool shifted = is_block(blocks[completion.work_id], (block + 1) % SwitchLine::kBlocks);
      ASSERT_TRUE(shifted || is_block(blocks[completion.work_id], block));
      ++of_each[shifted ? 1 : 0];
      ++done;
    }
  }
  EXPECT_GT(of_each[0], 0u);
  EXPECT_GT(of_each[1], 0u);
}

TEST(MemifSwitch, ClientsComeAndGo) {
  SwitchLine line;
  line.function().install(line.program().function());
  Block block;
  for (int round = 0; round < 5; ++round) {
    End& a = line.add_client(3);
    End& b = line.add_client(4);
    ASSERT_TRUE(line.connect(a));
    ASSERT_TRUE(line.connect(b));
    EXPECT_EQ(line.read(a, block, SwitchLine::kKeyedKey, 5 * kStep), Status::success);
    EXPECT_TRUE(is_block(block, 5));
    line.remove_client(a);
    EXPECT_EQ(line.read(b, block, SwitchLine::kKeyedKey, 6 * kStep), Status::success);
    EXPECT_TRUE(is_block(block, 6));
    line.remove_client(b);
    EXPECT_TRUE(line.run_until([&] { return line.the_switch().links() == 0; }));
  }
  EXPECT_EQ(line.the_switch().counters().links_up, 10u);
  EXPECT_EQ(line.the_switch().counters().links_down, 10u);
}

TEST(MemifSwitch, ANodeThatComesAgainIsReached) {
  SwitchLine line;
  Block block;
  End& client = line.add_client(3);
  ASSERT_TRUE(line.connect(client));
  line.stop_node();
  EXPECT_TRUE(line.run_until([&] { return line.the_switch().links() == 0; }));
  line.start_node();
  EXPECT_TRUE(line.run_until([&] { return line.the_switch().links() == 1; }));
  ASSERT_TRUE(line.connect(client));
  EXPECT_EQ(line.read(client, block, line.key(), line.block_address(2)), Status::success);
  EXPECT_TRUE(is_block(block, 2));
}

// A client that asks for any link gets another one.
TEST(MemifSwitch, ANumberThatSomebodyHasAtTheNodeIsRefused) {
  SwitchLine line;
  End& direct = line.add_client(5, "node");
  ASSERT_TRUE(line.connect(direct));
  fabric::memif::MemifPortOptions options{.path = line.path("clients"), .link = 5};
  const auto refused = *fabric::memif::MemifPort::open(options);
  for (int i = 0; i < 200'000; ++i) {
    line.turn();
    static_cast<void>(refused->receive());
  }
  EXPECT_EQ(line.the_switch().links(), 0u);
  options.link.reset();
  std::atomic<bool> open{false};
  std::unique_ptr<fabric::memif::MemifPort> port;
  std::thread other([&] {
    port = *fabric::memif::MemifPort::open(options);
    open = true;
  });
  const bool came = line.run_until([&] { return open.load(); });
  other.join();
  ASSERT_TRUE(came);
  EXPECT_NE(port->address(), fabric::memif::connector_address(5));
  EXPECT_TRUE(line.run_until([&] {
    static_cast<void>(port->receive());
    return line.the_switch().links() == 1;
  }));
  Block block;
  EXPECT_EQ(line.read(direct, block, line.key(), line.block_address(3)), Status::success);
}

TEST(MemifSwitch, NobodyElseCanListenThere) {
  SwitchLine line;
  InstalledFunction function;
  const auto second = MemifSwitch::open({line.path("clients"), line.path("node")}, function);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists);
  const auto nowhere = MemifSwitch::open({"", line.path("node")}, function);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace espalier::dataplane
