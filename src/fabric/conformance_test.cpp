// SPDX-License-Identifier: Apache-2.0
// What every transport of the fabric does alike: moving bytes, order, completions.
// refusals_test.cpp has what they all refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <numeric>
#include <thread>

#include "base/atomic_bytes.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {
namespace {

class FabricConformance : public ::testing::TestWithParam<FabricTransport> {
 protected:
  FabricConformance() : seed(base::seed_from_environment(20)), scene(GetParam(), seed) {}
  [[nodiscard]] RegionKey key() const { return scene.region.remote().key; }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return scene.region.remote().at(offset);
  }
  [[nodiscard]] std::uint64_t far_word(std::uint64_t offset) const {
    return base::load_plain<std::uint64_t>(scene.far_bytes().data() + offset);
  }
  /// Lengths around the grain of everything: words, lines, packets.
  static std::vector<std::size_t> lengths() {
    return {0,   1,    2,    3,    7,    8,    9,    63,   64,   65,    127,   128,
            129, 1000, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 10000, 65536, 100003};
  }

  std::uint64_t seed;
  FabricScene scene;
};

TEST_P(FabricConformance, AReadBringsTheBytesOfTheRegion) {
  const auto pair = scene.connect();
  scene.random.fill(scene.far_bytes());
  for (const std::size_t length : lengths()) {
    for (const std::uint64_t offset : {0u, 1u, 4093u, 65535u}) {
      std::vector<std::byte> into(length + 16, std::byte{0xEE});
      const auto ended = scene.run(
          *pair.near,
          WorkRequest::read(length, std::span(into).subspan(8, length), key(), at(offset)));
      ASSERT_EQ(ended.status, Status::success) << length;
      EXPECT_EQ(ended.bytes, length);
      EXPECT_TRUE(std::equal(into.begin() + 8, into.end() - 8, scene.far_bytes().data() + offset));
      EXPECT_TRUE(std::all_of(into.begin(), into.begin() + 8,
                              [](std::byte b) { return b == std::byte{0xEE}; }));
      EXPECT_TRUE(std::all_of(into.end() - 8, into.end(),
                              [](std::byte b) { return b == std::byte{0xEE}; }));
    }
  }
}

TEST_P(FabricConformance, AWritePutsItsBytesAndNoOthers) {
  const auto pair = scene.connect();
  std::vector<std::byte> expected(scene.far_bytes().size());
  for (const std::size_t length : lengths()) {
    for (const std::uint64_t offset : {8u, 4093u, 65537u}) {
      const auto from = scene.noise(length);
      const auto ended = scene.run(*pair.near, WorkRequest::write(length, from, key(), at(offset)));
      ASSERT_EQ(ended.status, Status::success) << length;
      std::copy(from.begin(), from.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      // That it is there may be known only by asking through the same pair.
      std::vector<std::byte> back(length);
      ASSERT_EQ(scene.run(*pair.near, WorkRequest::read(1, back, key(), at(offset))).status,
                Status::success);
      EXPECT_EQ(back, from);
    }
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), scene.far_bytes().begin()));
}

TEST_P(FabricConformance, AReadBehindAWriteSeesIt) {
  const auto pair = scene.connect();
  for (int round = 0; round < 50; ++round) {
    const auto from = scene.noise(200);
    std::vector<std::byte> into(200);
    const std::array requests{WorkRequest::write(1, from, key(), at(777)).unsignalled(),
                              WorkRequest::read(2, into, key(), at(777))};
    ASSERT_EQ(pair.near->post(requests).taken, 2u);
    const auto ended = scene.near_completions(1);
    EXPECT_EQ(ended[0].work_id, 2u);
    ASSERT_EQ(into, from) << round;
  }
}

TEST_P(FabricConformance, LaterWritesWin) {
  const auto pair = scene.connect();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::byte>> from;
    std::vector<WorkRequest> requests;
    for (std::uint64_t i = 0; i < 16; ++i) {
      from.push_back(scene.noise(64));
      requests.push_back(WorkRequest::write(i, from.back(), key(), at(128)));
    }
    ASSERT_EQ(pair.near->post(requests).taken, requests.size());
    scene.near_completions(16);
    std::vector<std::byte> into(64);
    scene.run(*pair.near, WorkRequest::read(9, into, key(), at(128)));
    EXPECT_EQ(into, from.back());
  }
}

TEST_P(FabricConformance, CompletionsComeInTheOrderOfPosting) {
  QueuePairOptions options;
  options.send_depth = 256;
  const auto pair = scene.connect(options);
  std::vector<Receive> receives(64);
  std::vector<std::byte> room(64 * 64);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    receives[i] = {1000 + i, std::span(room).subspan(i * 64, 64)};
  }
  ASSERT_EQ(pair.far->post_receives(receives), 64u);
  std::vector<std::byte> memory(4096);
  std::vector<WorkRequest> requests;
  std::vector<Opcode> opcodes;
  std::uint32_t sends = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto part = std::span(memory).subspan(i * 8, 8);
    switch (scene.random.below(sends < 64 ? 4 : 3)) {
      case 0: requests.push_back(WorkRequest::read(i, part, key(), at(i * 8))); break;
      case 1: requests.push_back(WorkRequest::write(i, part, key(), at(8192 + i * 8))); break;
      case 2: requests.push_back(WorkRequest::fetch_add(i, key(), at(0), 1)); break;
      default: requests.push_back(WorkRequest::send(i, part)); ++sends;
    }
  }
  ASSERT_EQ(pair.near->post(requests).taken, requests.size());
  const auto ended = scene.near_completions(requests.size());
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_EQ(ended[i].work_id, i);
    EXPECT_EQ(ended[i].opcode, requests[i].opcode);
    EXPECT_EQ(ended[i].status, Status::success);
  }
  const auto received = scene.far_completions(sends);
  for (std::size_t i = 0; i < received.size(); ++i) EXPECT_EQ(received[i].work_id, 1000 + i);
}

TEST_P(FabricConformance, MessagesArriveOnceAndInOrder) {
  QueuePairOptions options;
  options.receive_depth = 64;
  const auto pair = scene.connect({}, options);
  const std::size_t count = 1000 / GetParam().effort;
  std::vector<std::byte> room(64 * 512);
  const auto slot = [&](std::uint64_t i) { return std::span(room).subspan(i % 64 * 512, 512); };
  std::deque<std::vector<std::byte>> sent;
  std::uint64_t posted = 0;
  std::uint64_t receives = 0;
  std::uint64_t received = 0;
  std::uint64_t ended = 0;
  Completion some[16];
  scene.await([&] {
    while (receives < count && receives - received < 64) {
      const Receive receive{receives, slot(receives)};
      if (pair.far->post_receives({&receive, 1}) == 0) break;
      ++receives;
    }
    while (posted < count && posted - ended < 32) {
      sent.push_back(scene.noise(scene.random.below(513)));
      const auto request =
          posted % 3 == 0
              ? WorkRequest::send_immediate(posted, sent.back(), static_cast<std::uint32_t>(posted))
              : WorkRequest::send(posted, sent.back());
      if (pair.near->post(request).taken == 0) break;
      ++posted;
    }
    for (const Completion& end : std::span(some, scene.near_queue.poll(some))) {
      EXPECT_EQ(end.work_id, ended++);
      EXPECT_EQ(end.status, Status::success);
    }
    for (const Completion& end : std::span(some, scene.far_queue.poll(some))) {
      EXPECT_EQ(end.work_id, received);
      EXPECT_EQ(end.opcode, Opcode::receive);
      EXPECT_EQ(end.with_immediate, received % 3 == 0);
      EXPECT_EQ(end.immediate, end.with_immediate ? received : 0);
      const auto& message = sent[received];
      EXPECT_EQ(end.bytes, message.size());
      EXPECT_TRUE(std::equal(message.begin(), message.end(), slot(received).begin()));
      ++received;
    }
    return ended == count && received == count;
  });
}

TEST_P(FabricConformance, MessagesOfAllLengthsArriveWhole) {
  const auto pair = scene.connect();
  auto all = lengths();
  all.push_back(std::size_t{1} << 20);
  all.push_back(scene.properties().message_bytes_max);
  for (const std::size_t length : all) {
    std::vector<std::byte> room(length);
    const Receive receive{7, room};
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    const auto from = scene.noise(length);
    ASSERT_EQ(pair.near->post(WorkRequest::send(8, from)).taken, 1u);
    const auto received = scene.far_completions(1);
    EXPECT_EQ(received[0].bytes, length);
    EXPECT_EQ(received[0].status, Status::success);
    EXPECT_TRUE(room == from) << length;
    scene.near_completions(1);
  }
}

TEST_P(FabricConformance, AWriteWithImmediateTellsOfWhatIsThere) {
  const auto pair = scene.connect();
  for (const std::size_t length : {0u, 8u, 100u, 5000u}) {
    const Receive receive{70 + length, {}};
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    const auto before = scene.noise(300);
    const auto from = scene.noise(length);
    const std::array requests{WorkRequest::write(1, before, key(), at(0)).unsignalled(),
                              WorkRequest::write_immediate(2, from, key(), at(1000), 0xDEADBEEF)};
    ASSERT_EQ(pair.near->post(requests).taken, 2u);
    const auto received = scene.far_completions(1);
    EXPECT_EQ(received[0].work_id, 70 + length);
    EXPECT_EQ(received[0].opcode, Opcode::receive_write);
    EXPECT_TRUE(received[0].with_immediate);
    EXPECT_EQ(received[0].immediate, 0xDEADBEEFu);
    EXPECT_EQ(received[0].bytes, length);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), scene.far_bytes().begin()));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), scene.far_bytes().begin() + 1000));
    const auto ended = scene.near_completions(1);
    EXPECT_EQ(ended[0].work_id, 2u);
    EXPECT_EQ(ended[0].status, Status::success);
  }
}

// Not only for the next request of the same pair.
TEST_P(FabricConformance, ACompletedWriteIsThere) {
  if (!scene.properties().write_is_placed) return;
  const auto pair = scene.connect();
  for (const std::size_t length : lengths()) {
    const auto from = scene.noise(length);
    scene.run(*pair.near, WorkRequest::write(1, from, key(), at(77)));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), scene.far_bytes().begin() + 77)) << length;
  }
}

// The far side's processor counts while READs, long ones among them, look at the number.
TEST_P(FabricConformance, LaterReadsSeeLaterValues) {
  if (!scene.properties().reads_in_order) return;
  const auto pair = scene.connect();
  constexpr std::size_t kReads = 8;
  std::vector<std::byte> into(kReads * 8192);
  std::uint64_t now = 0;
  std::uint64_t seen = 0;
  const auto count = [&] { base::store_plain<std::uint64_t>(scene.far_bytes().data(), ++now); };
  for (int round = 0; round < 40; ++round) {
    std::vector<WorkRequest> reads;
    for (std::size_t i = 0; i < kReads; ++i) {
      const std::size_t length = scene.random.chance(0.5) ? 8 : 8192;
      reads.push_back(
          WorkRequest::read(i, std::span(into).subspan(i * 8192, length), key(), at(0)));
    }
    ASSERT_EQ(pair.near->post(reads).taken, kReads);
    Completion some[kReads];
    std::size_t ended = 0;
    scene.await([&] {
      count();
      ended += scene.near_queue.poll(some);
      return ended == kReads;
    });
    for (std::size_t i = 0; i < kReads; ++i) {
      const auto value = base::load_plain<std::uint64_t>(into.data() + i * 8192);
      EXPECT_GE(value, seen);
      seen = value;
    }
  }
  EXPECT_GT(seen, 0u);
}

TEST_P(FabricConformance, AtomicsAnswerWithTheOldValue) {
  const auto pair = scene.connect();
  base::store_plain<std::uint64_t>(scene.far_bytes().data() + 64, 40);
  std::byte old[8];
  auto ended = scene.run(*pair.near, WorkRequest::fetch_add(1, key(), at(64), 2, old));
  EXPECT_EQ(ended.status, Status::success);
  EXPECT_EQ(ended.old_value, 40u);
  EXPECT_EQ(base::load_plain<std::uint64_t>(old), 40u);
  EXPECT_EQ(far_word(64), 42u);
  ended = scene.run(*pair.near, WorkRequest::compare_swap(2, key(), at(64), 42, 7));
  EXPECT_EQ(ended.old_value, 42u);
  EXPECT_EQ(far_word(64), 7u);
  ended = scene.run(*pair.near, WorkRequest::compare_swap(3, key(), at(64), 42, 9));
  EXPECT_EQ(ended.status, Status::success);
  EXPECT_EQ(ended.old_value, 7u);
  EXPECT_EQ(far_word(64), 7u);
  // Overflow wraps.
  ended = scene.run(*pair.near, WorkRequest::fetch_add(4, key(), at(64), ~std::uint64_t{0}));
  EXPECT_EQ(far_word(64), 6u);
}

TEST_P(FabricConformance, NoAtomicIsLostOrRepeated) {
  std::vector<ConnectedPair> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(scene.connect());
  const std::size_t each = 100;
  std::vector<std::uint64_t> tokens;
  std::size_t posted = 0;
  Completion some[64];
  scene.await([&] {
    while (posted < each * pairs.size()) {
      auto& pair = *pairs[posted % pairs.size()].near;
      if (pair.post(WorkRequest::fetch_add(posted, key(), at(8), 1)).taken == 0) break;
      ++posted;
    }
    for (const Completion& end : std::span(some, scene.near_queue.poll(some))) {
      EXPECT_EQ(end.status, Status::success);
      tokens.push_back(end.old_value);
    }
    return tokens.size() == each * pairs.size();
  });
  std::sort(tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < tokens.size(); ++i) ASSERT_EQ(tokens[i], i);
}

// And none of the processor's own: a thread of the far side adds to the same word.
TEST_P(FabricConformance, AtomicsAndTheProcessorDoNotOverwriteEachOther) {
  if (!scene.properties().atomic_with_processor) return;
  // All of a simulated world, its processors too, is one thread: torn_test.cpp has them.
  if (scene.properties().transport == "sim") return;
  const auto pair = scene.connect();
  auto& word = *reinterpret_cast<std::uint64_t*>(scene.far_bytes().data() + 8);
  std::atomic<bool> enough{false};
  std::uint64_t own = 0;
  std::thread processor([&] {
    for (; !enough; ++own) std::atomic_ref(word).fetch_add(1, std::memory_order_relaxed);
  });
  constexpr std::uint64_t kOthers = 500;
  for (std::uint64_t i = 0; i < kOthers; ++i) {
    scene.run(*pair.near, WorkRequest::fetch_add(i, key(), at(8), 1));
  }
  enough = true;
  processor.join();
  EXPECT_EQ(std::atomic_ref(word).load(), own + kOthers);
}

TEST_P(FabricConformance, OnlySignalledSuccessesAreTold) {
  const auto pair = scene.connect();
  std::vector<std::byte> from(8);
  std::vector<WorkRequest> requests;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const auto request = WorkRequest::write(i, from, key(), at(i * 8));
    requests.push_back(i % 16 == 15 ? request : request.unsignalled());
  }
  for (int round = 0; round < 40; ++round) {
    ASSERT_EQ(pair.near->post(requests).taken, requests.size()) << round;
    const auto ended = scene.near_completions(4);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ended[i].work_id, 16 * i + 15);
  }
  scene.idle();
  EXPECT_EQ(scene.near_queue.waiting(), 0u);
}

TEST_P(FabricConformance, InlinedBytesAreTakenAtOnce) {
  const auto pair = scene.connect();
  std::vector<std::byte> from(std::min(scene.properties().inline_bytes_max, 64u));
  ASSERT_GE(from.size(), 32u);
  for (std::uint64_t i = 0; i < 32; ++i) {
    std::fill(from.begin(), from.end(), static_cast<std::byte>(i + 1));
    const auto request = WorkRequest::write(i, from, key(), at(i * 64)).as_inline();
    ASSERT_EQ(pair.near->post(request).taken, 1u);
    std::fill(from.begin(), from.end(), std::byte{0xFF});
  }
  scene.near_completions(32);
  std::vector<std::byte> back(32 * 64);
  scene.run(*pair.near, WorkRequest::read(99, back, key(), at(0)));
  for (std::size_t i = 0; i < 32; ++i) {
    for (std::size_t b = 0; b < from.size(); ++b) {
      ASSERT_EQ(back[i * 64 + b], static_cast<std::byte>(i + 1)) << i;
    }
  }
}

TEST_P(FabricConformance, AsMuchAsTheTransportSaysCanBeInlined) {
  const auto pair = scene.connect();
  const std::size_t most = scene.properties().inline_bytes_max;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, most - 1, most}) {
    std::vector<std::byte> room(length);
    const Receive receive{1, room};
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    const auto wanted = scene.noise(length);
    auto from = wanted;
    const std::array requests{WorkRequest::write(1, from, key(), at(0)).as_inline(),
                              WorkRequest::send(2, from).as_inline()};
    ASSERT_EQ(pair.near->post(requests).taken, 2u);
    std::fill(from.begin(), from.end(), std::byte{0xFF});
    EXPECT_EQ(scene.far_completions(1)[0].bytes, length);
    for (const Completion& end : scene.near_completions(2)) EXPECT_EQ(end.status, Status::success);
    EXPECT_EQ(room, wanted);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), scene.far_bytes().begin()));
  }
}

TEST_P(FabricConformance, AFenceWaitsForAtomicsBeforeIt) {
  const auto pair = scene.connect();
  std::vector<std::byte> room(8);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    const Receive receive{1, room};
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    base::store_plain<std::uint64_t>(scene.far_bytes().data() + 512, round * 1000);
    std::vector<std::byte> through(8);
    const std::array requests{
        WorkRequest::fetch_add(1, key(), at(512), 1, through.data()).unsignalled(),
        WorkRequest::send(2, through).after_fence()};
    ASSERT_EQ(pair.near->post(requests).taken, 2u);
    scene.far_completions(1);
    scene.near_completions(1);
    ASSERT_EQ(base::load_plain<std::uint64_t>(room.data()), round * 1000);
  }
}

TEST_P(FabricConformance, AFenceWaitsForReadsBeforeIt) {
  const auto pair = scene.connect();
  std::vector<std::byte> room(128);
  for (int round = 0; round < 50; ++round) {
    const Receive receive{1, room};
    ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
    const auto wanted = scene.noise(128);
    std::copy(wanted.begin(), wanted.end(), scene.far_bytes().begin() + 512);
    std::vector<std::byte> through(128);
    const std::array requests{WorkRequest::read(1, through, key(), at(512)).unsignalled(),
                              WorkRequest::send(2, through).after_fence()};
    ASSERT_EQ(pair.near->post(requests).taken, 2u);
    scene.far_completions(1);
    scene.near_completions(1);
    ASSERT_EQ(room, wanted) << round;
  }
}

TEST_P(FabricConformance, SharedReceivesServeManyPairs) {
  ReceiveQueue shared(scene.far_queue, 256);
  std::vector<ConnectedPair> pairs;
  QueuePairOptions far;
  far.shared_receives = &shared;
  for (int i = 0; i < 16; ++i) pairs.push_back(scene.connect({}, far));
  std::vector<std::byte> room(160 * 8);
  for (std::uint64_t i = 0; i < 160; ++i) {
    const Receive receive{i, std::span(room).subspan(i * 8, 8)};
    ASSERT_EQ(shared.post({&receive, 1}), 1u);
  }
  std::vector<std::uint64_t> messages(160);
  for (std::uint64_t i = 0; i < 160; ++i) {
    messages[i] = i;
    const auto bytes = std::as_bytes(std::span(&messages[i], 1));
    ASSERT_EQ(pairs[i % 16].near->post(WorkRequest::send(i, bytes)).taken, 1u);
  }
  std::vector<std::uint64_t> next(16);
  std::map<std::uint32_t, std::size_t> pair_of;
  for (std::size_t i = 0; i < 16; ++i) pair_of[pairs[i].far->number()] = i;
  for (const Completion& end : scene.far_completions(160)) {
    const auto message = base::load_plain<std::uint64_t>(room.data() + end.work_id * 8);
    ASSERT_TRUE(pair_of.contains(end.pair));
    const std::size_t pair = pair_of[end.pair];
    EXPECT_EQ(message % 16, pair);
    EXPECT_EQ(message / 16, next[pair]++);  // in order within its pair
  }
  scene.near_completions(160);
  pairs.clear();
}

TEST_P(FabricConformance, BothSidesCanAsk) {
  const auto pair = scene.connect();
  const OfferedMemory near_memory = scene.link->memory(4096);
  const auto near_region = *scene.link->near().regions().offer(near_memory, kAllRights);
  const auto from = scene.noise(500);
  ASSERT_EQ(pair.far
                ->post(WorkRequest::write(5, from, near_region.remote().key,
                                          near_region.remote().at(100)))
                .taken,
            1u);
  EXPECT_EQ(scene.far_completions(1)[0].status, Status::success);
  std::vector<std::byte> back(500);
  ASSERT_EQ(
      pair.far
          ->post(WorkRequest::read(6, back, near_region.remote().key, near_region.remote().at(100)))
          .taken,
      1u);
  EXPECT_EQ(scene.far_completions(1)[0].status, Status::success);
  EXPECT_EQ(back, from);
}

TEST_P(FabricConformance, TheLongestRequestsWork) {
  const std::uint64_t bytes = scene.properties().message_bytes_max;
  const OfferedMemory memory = scene.link->memory(bytes + 64);
  const auto region = *scene.link->far().regions().offer(memory, kAllRights);
  const auto pair = scene.connect();
  const auto from = scene.noise(bytes);
  auto ended = scene.run(*pair.near,
                         WorkRequest::write(1, from, region.remote().key, region.remote().at(13)));
  ASSERT_EQ(ended.status, Status::success);
  std::vector<std::byte> back(bytes);
  ended = scene.run(*pair.near,
                    WorkRequest::read(2, back, region.remote().key, region.remote().at(13)));
  ASSERT_EQ(ended.status, Status::success);
  EXPECT_EQ(ended.bytes, bytes);
  EXPECT_TRUE(back == from);
  const Receive receive{3, {}};
  ASSERT_EQ(pair.far->post_receives({&receive, 1}), 1u);
  const auto last = scene.noise(bytes);
  const auto completion =
      WorkRequest::write_immediate(4, last, region.remote().key, region.remote().at(31), 5);
  EXPECT_EQ(scene.run(*pair.near, completion).status, Status::success);
  EXPECT_EQ(scene.far_completions(1)[0].bytes, bytes);
  EXPECT_EQ(std::memcmp(memory.at + 31, last.data(), bytes), 0);
}

TEST_P(FabricConformance, ManyPairsDoNotMix) {
  std::vector<ConnectedPair> pairs;
  for (int i = 0; i < 64; ++i) pairs.push_back(scene.connect());
  std::vector<std::vector<std::byte>> from;
  for (std::uint64_t i = 0; i < pairs.size(); ++i) {
    from.push_back(scene.noise(96));
    ASSERT_EQ(pairs[i].near->post(WorkRequest::write(i, from[i], key(), at(i * 128))).taken, 1u);
  }
  std::vector<bool> seen(pairs.size());
  for (const Completion& end : scene.near_completions(pairs.size())) {
    EXPECT_EQ(end.status, Status::success);
    EXPECT_EQ(end.pair, pairs[end.work_id].near->number());
    EXPECT_FALSE(seen[end.work_id]);
    seen[end.work_id] = true;
  }
  for (std::uint64_t i = 0; i < pairs.size(); ++i) {
    std::vector<std::byte> back(96);
    scene.run(*pairs[i].near, WorkRequest::read(i, back, key(), at(i * 128)));
    EXPECT_EQ(back, from[i]);
  }
}

// Two sides of one truth: what a random mixture of requests leaves, and what it brought back.
TEST_P(FabricConformance, RandomRequestsDoWhatTheyWouldInPlainMemory) {
  const auto pair = scene.connect();
  constexpr std::size_t kBytes = 16384;
  std::vector<std::byte> model(kBytes);
  const std::size_t rounds = 600 / GetParam().effort;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t length = scene.random.below(3000);
    const std::uint64_t offset = scene.random.below(kBytes - length);
    const auto begin = model.begin() + static_cast<std::ptrdiff_t>(offset);
    switch (scene.random.below(4)) {
      case 0: {
        const auto from = scene.noise(length);
        std::copy(from.begin(), from.end(), begin);
        ASSERT_EQ(scene.run(*pair.near, WorkRequest::write(1, from, key(), at(offset))).status,
                  Status::success);
        break;
      }
      case 1: {
        std::vector<std::byte> into(length);
        ASSERT_EQ(scene.run(*pair.near, WorkRequest::read(1, into, key(), at(offset))).status,
                  Status::success);
        ASSERT_TRUE(std::equal(into.begin(), into.end(), begin)) << round;
        break;
      }
      default: {
        const std::uint64_t word = scene.random.below(kBytes / 8) * 8;
        const auto old = base::load_plain<std::uint64_t>(model.data() + word);
        const std::uint64_t operand = scene.random();
        const bool adds = scene.random.chance(0.5);
        const std::uint64_t compare = scene.random.chance(0.5) ? old : old + 1;
        const auto ended = scene.run(
            *pair.near, adds ? WorkRequest::fetch_add(1, key(), at(word), operand)
                             : WorkRequest::compare_swap(1, key(), at(word), compare, operand));
        ASSERT_EQ(ended.old_value, old) << round;
        const std::uint64_t now = adds ? old + operand : compare == old ? operand : old;
        base::store_plain(model.data() + word, now);
      }
    }
  }
  std::vector<std::byte> back(kBytes);
  scene.run(*pair.near, WorkRequest::read(2, back, key(), at(0)));
  EXPECT_TRUE(back == model);
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricConformance, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric
