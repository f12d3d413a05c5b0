// SPDX-License-Identifier: Apache-2.0
// SENDs, and WRITEs with immediate: their order, their length, and a receiver that has no receive.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

// Posts one receive at the target.
void post_target_receive(Connected& two, std::span<std::byte> into, std::uint64_t work_id = 1) {
  const Receive receive{work_id, into};
  ASSERT_EQ(two.target.pair->post_receives({&receive, 1}), 1u);
}

TEST(ShmMessageConcurrency, ASendIsReceived) {
  Connected two;
  std::array<std::byte, 100> into;
  post_target_receive(two, into, 77);
  const auto message = bytes_of("what is said");
  two.client.pair->post(WorkRequest::send(5, message));
  const Completion received = two.next(two.target.receives);
  EXPECT_EQ(received.work_id, 77u);
  EXPECT_EQ(received.opcode, Opcode::receive);
  EXPECT_EQ(received.bytes, message.size());
  EXPECT_FALSE(received.with_immediate);
  EXPECT_EQ(received.pair, two.target.pair->number());
  EXPECT_EQ(text_of(std::span(into).first(received.bytes)), "what is said");
  const Completion sent = two.next(two.client.sends);
  EXPECT_EQ(sent.work_id, 5u);
  EXPECT_EQ(sent.status, Status::success);
  EXPECT_EQ(sent.opcode, Opcode::send);
}

TEST(ShmMessageConcurrency, NumbersAreToldWithSendsAndWrites) {
  Connected two;
  std::array<std::byte, 8> into{};
  for (int i = 0; i < 4; ++i) post_target_receive(two, into);
  const auto data = bytes_of("abcdefgh");
  const RegionKey key = two.remote().key;
  const std::uint64_t at = two.remote().at(40);
  const WorkRequest requests[] = {WorkRequest::send_immediate(1, data, 0xFFFFFFFF),
                                  WorkRequest::write_immediate(2, data, key, at, 0),
                                  WorkRequest::send_immediate(3, {}, 9),
                                  WorkRequest::write_immediate(4, {}, 0, 0, 10)};
  two.client.pair->post(requests);
  const std::uint32_t numbers[] = {0xFFFFFFFF, 0, 9, 10};
  for (int i = 0; i < 4; ++i) {
    const Completion received = two.next(two.target.receives);
    EXPECT_TRUE(received.with_immediate);
    EXPECT_EQ(received.immediate, numbers[i]);
    EXPECT_EQ(received.opcode, i % 2 == 0 ? Opcode::receive : Opcode::receive_write);
    EXPECT_EQ(received.bytes, i < 2 ? 8u : 0u);
    if (i == 1) {
      EXPECT_EQ(std::memcmp(two.memory.at(40), data.data(), 8), 0);
    }
    EXPECT_EQ(two.next(two.client.sends).work_id, static_cast<std::uint64_t>(i) + 1);
  }
}

TEST(ShmMessageConcurrency, MessagesOfAnyLengthComeWhole) {
  Connected two;
  base::Random random(base::seed_from_environment(2));
  for (const std::size_t bytes : {0u, 1u, 31u, 32u, 33u, 95u, 96u, 97u, 4096u, 16351u, 16352u,
                                  16353u, 65536u, 100001u, 16u << 20}) {
    std::vector<std::byte> message(bytes);
    std::vector<std::byte> into(bytes);
    random.fill(message);
    post_target_receive(two, into);
    two.client.pair->post(WorkRequest::send(1, message));
    ASSERT_EQ(two.next(two.client.sends).status, Status::success);
    ASSERT_EQ(two.next(two.target.receives).bytes, bytes);
    ASSERT_EQ(into, message);
  }
}

TEST(ShmMessageConcurrency, ALongWriteWithImmediateIsInPlaceBeforeItsNumber) {
  Connected two(1 << 20);
  std::vector<std::byte> data(1 << 20);
  base::Random(base::seed_from_environment(3)).fill(data);
  post_target_receive(two, {});
  two.client.pair->post(
      WorkRequest::write_immediate(1, data, two.remote().key, two.remote().base, 4));
  EXPECT_EQ(two.next(two.target.receives).bytes, data.size());
  EXPECT_EQ(std::memcmp(two.memory.at(0), data.data(), data.size()), 0);
}

TEST(ShmMessageConcurrency, ManyMessagesBothWaysKeepTheirOrder) {
  Connected two;
  base::Random random(base::seed_from_environment(4));
  struct Way {
    Side& from;
    Side& to;
    std::uint64_t posted = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t offered = 0;
    std::vector<std::vector<std::byte>> buffers{64, std::vector<std::byte>(3000)};
    std::vector<std::byte> data = std::vector<std::byte>(3000);
    std::vector<std::byte> few = std::vector<std::byte>(8);
  };
  constexpr std::uint64_t kMessages = 5000;
  const auto length = [](std::uint64_t number) { return 8 + base::mix64(number) % 2900; };
  Way ways[2] = {{two.client, two.target}, {two.target, two.client}};
  const auto step = [&](Way& way) {
    while (way.offered < way.received + 64 && random.chance(0.7)) {
      const Receive receive{way.offered, way.buffers[way.offered % 64]};
      ASSERT_EQ(way.to.pair->post_receives({&receive, 1}), 1u);
      ++way.offered;
    }
    while (way.posted < kMessages && random.chance(0.7)) {
      // A long message stays in use until it completes, so only an inlined one can follow
      // immediately.
      const bool small = random.chance(0.5);
      if (!small && way.sent != way.posted) break;
      std::vector<std::byte>& data = small ? way.few : way.data;
      base::store_plain(data.data(), way.posted);
      const auto request =
          small ? WorkRequest::send(way.posted, data).as_inline()
                : WorkRequest::send(way.posted, std::span(data).first(length(way.posted)));
      if (way.from.pair->post(request).taken == 0) break;
      ++way.posted;
    }
    while (const auto completion = way.from.take(way.from.sends)) {
      ASSERT_EQ(completion->status, Status::success);
      ASSERT_EQ(completion->work_id, way.sent++);
    }
    while (const auto come = way.to.take(way.to.receives)) {
      ASSERT_EQ(come->work_id, way.received);
      ASSERT_TRUE(come->bytes == 8 || come->bytes == length(way.received));
      ASSERT_EQ(base::load_plain<std::uint64_t>(way.buffers[way.received % 64].data()),
                way.received);
      ++way.received;
    }
  };
  while (ways[0].sent != kMessages || ways[1].sent != kMessages) {
    for (Way& way : ways) ASSERT_NO_FATAL_FAILURE(step(way));
  }
}

TEST(ShmMessageConcurrency, WhatIsBehindASendIsToldAfterIt) {
  Connected two;
  std::uint64_t local = 1;
  const auto bytes = std::as_writable_bytes(std::span(&local, 1));
  const RegionKey key = two.remote().key;
  const WorkRequest requests[] = {
      WorkRequest::send(1, bytes), WorkRequest::write(2, bytes, key, two.remote().base),
      WorkRequest::fetch_add(3, key, two.remote().base, 1),
      WorkRequest::read(4, bytes, key, two.remote().base).after_fence()};
  two.client.pair->post(requests);
  for (int i = 0; i < 100; ++i) {
    two.client.endpoint->progress();
    two.target.endpoint->progress();
  }
  EXPECT_EQ(two.client.sends.waiting(), 0u);
  EXPECT_EQ(base::load_shared<std::uint64_t>(two.memory.at(0)), 0u);
  std::array<std::byte, 8> into;
  post_target_receive(two, into);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const Completion completion = two.next(two.client.sends);
    EXPECT_EQ(completion.work_id, i);
    EXPECT_EQ(completion.status, Status::success);
    EXPECT_EQ(completion.old_value, i == 3 ? 1u : 0u);
  }
  EXPECT_EQ(local, 2u);
}

TEST(ShmMessageConcurrency, AWriteBehindASendIsCheckedByTheTarget) {
  Connected two(4096, RemoteRights::read);
  std::array<std::byte, 8> bytes{};
  post_target_receive(two, bytes);
  const WorkRequest requests[] = {WorkRequest::send(1, bytes),
                                  WorkRequest::write(2, bytes, two.remote().key, two.remote().base),
                                  WorkRequest::send(3, bytes)};
  two.client.pair->post(requests);
  EXPECT_EQ(two.next(two.client.sends).status, Status::success);
  EXPECT_EQ(two.next(two.client.sends).status, Status::remote_access);
  EXPECT_EQ(two.next(two.client.sends).status, Status::flushed);
  two.wait_for_both_ends();
  EXPECT_EQ(two.target.pair->ended_by(), Status::remote_access);
}

TEST(ShmMessageConcurrency, AWriteWithImmediateOutsideOfTheRegionIsRefused) {
  Connected two;
  std::vector<std::byte> data(40000, std::byte{1});
  std::array<std::byte, 8> into{};
  post_target_receive(two, into, 3);
  two.client.pair->post(WorkRequest::write_immediate(
      1, data, two.remote().key, two.remote().at(two.remote().bytes - 39999), 4));
  EXPECT_EQ(two.next(two.client.sends).status, Status::remote_access);
  EXPECT_EQ(two.next(two.target.receives).status, Status::flushed);
  EXPECT_EQ(base::load_plain<std::uint8_t>(two.memory.at(two.remote().bytes - 39999)), 0u);
}

TEST(ShmMessageConcurrency, TooLongForItsReceive) {
  Connected two;
  std::array<std::byte, 8> into{};
  post_target_receive(two, into, 3);
  const auto message = bytes_of("123456789");
  two.client.pair->post(WorkRequest::send(5, message));
  const Completion received = two.next(two.target.receives);
  EXPECT_EQ(received.status, Status::local_length);
  EXPECT_EQ(received.work_id, 3u);
  EXPECT_EQ(two.next(two.client.sends).status, Status::remote_invalid);
  two.wait_for_both_ends();
}

TEST(ShmMessageConcurrency, NoReceiveIsToldWhenSoManyTriesAreOver) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  QueuePairOptions options = client.options();
  options.receive_retries = 2;
  options.timeout_ns = 1'000'000;
  connect(client, target, (folder / "s").string(), options, target.options());
  const auto message = bytes_of("x");
  client.pair->post(WorkRequest::send(5, message));
  client.pair->post(WorkRequest::send(6, message));
  // A target that is not there is none that has no receive.
  for (int i = 0; i < 1000; ++i) client.endpoint->progress();
  EXPECT_EQ(client.pair->state(), QueuePair::State::connected);
  until(client, target, [&] { return client.sends.waiting() == 2; });
  EXPECT_EQ(client.take(client.sends)->status, Status::no_receive);
  EXPECT_EQ(client.take(client.sends)->status, Status::flushed);
  until(client, target, [&] { return target.pair->state() == QueuePair::State::error; });
  EXPECT_EQ(target.pair->ended_by(), Status::no_receive);
}

TEST(ShmMessageConcurrency, InlinedBytesMayChangeAfterwards) {
  Connected two;
  std::array<std::byte, 256> message{};
  message.fill(std::byte{1});
  // The first waits in the ring, for it has no room for more; the second in the queue.
  std::vector<std::byte> much(1 << 18, std::byte{7});
  two.client.pair->post(WorkRequest::send(1, much));
  two.client.pair->post(WorkRequest::send(2, message).as_inline());
  message.fill(std::byte{2});
  std::vector<std::byte> into(1 << 18);
  std::array<std::byte, 256> last{};
  post_target_receive(two, into);
  post_target_receive(two, last);
  EXPECT_EQ(two.next(two.target.receives).bytes, much.size());
  EXPECT_EQ(two.next(two.target.receives).bytes, 256u);
  EXPECT_TRUE(std::all_of(last.begin(), last.end(), [](std::byte b) { return b == std::byte{1}; }));
}

TEST(ShmMessageConcurrency, ClosingFlushesWhatIsNotOver) {
  Connected two;
  std::array<std::byte, 8> into{};
  post_target_receive(two, into);
  post_target_receive(two, into);
  const auto message = bytes_of("x");
  two.target.pair->post(WorkRequest::send(1, message));
  two.client.pair->post(WorkRequest::send(2, message));
  EXPECT_EQ(two.next(two.client.sends).status, Status::success);
  two.client.pair->post(WorkRequest::write(3, message, two.remote().key, two.remote().base));
  two.client.pair->close();
  EXPECT_EQ(two.client.take(two.client.sends)->status, Status::flushed);
  two.wait_for_both_ends();
  EXPECT_EQ(two.client.pair->ended_by(), Status::success);
  EXPECT_EQ(two.target.pair->ended_by(), Status::success);
  EXPECT_EQ(two.next(two.target.sends).status, Status::flushed);
  EXPECT_EQ(two.next(two.target.receives).status, Status::success);
  EXPECT_EQ(two.next(two.target.receives).status, Status::flushed);
}

}  // namespace
}  // namespace espalier::fabric::shm
