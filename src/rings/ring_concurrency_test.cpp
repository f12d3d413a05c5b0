// SPDX-License-Identifier: Apache-2.0
// Rings with a thread at each end, or several at one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "rings/futex.hpp"
#include "rings/testing/ring_client.hpp"
#include "rings/testing/ring_memory.hpp"

namespace espalier::rings {
namespace {

constexpr std::uint64_t kMessages = base::kThreadSanitizer ? 20'000 : 300'000;

std::string numbered(std::uint64_t number, std::uint32_t writer, std::size_t payload) {
  std::string bytes = bytes_of(number);
  bytes.append(payload, static_cast<char>(number));
  return message_of(request_of(wire::OffloadId::noop, writer), {}, bytes);
}

/// What a message that numbered() made says, if it is whole.
std::optional<std::uint64_t> number_of(const MessageBuffer& message) {
  const auto header = base::load_plain<wire::RequestHeader>(message.data());
  const auto number = base::load_plain<std::uint64_t>(message.data() + sizeof header);
  for (std::size_t at = sizeof header + sizeof number; at < header.bytes; ++at) {
    if (message.data()[at] != static_cast<std::byte>(number)) return std::nullopt;
  }
  return number;
}

TEST(RingConcurrency, OneWriterAndOneReader) {
  const auto memory = std::make_unique<RingMemory>();
  const std::uint64_t seed = base::seed_from_environment(1);
  std::thread writer([&] {
    base::Random random(seed);
    SlotSpace space(memory->slots, kSlots, memory->credit);
    std::uint64_t tail = 0;
    for (std::uint64_t n = 0; n < kMessages; ++n) {
      const std::string message = numbered(n, 0, random.below(300));
      MessageStream stream(reinterpret_cast<const std::byte*>(message.data()),
                           static_cast<std::uint32_t>(message.size()), tail);
      while (stream.write(space, space.ask_room(stream.slot())), !stream.done()) {
        std::this_thread::yield();
      }
      tail = stream.slot();
    }
  });
  MessageShare share;
  MessageReader reader(SlotReader(memory->slots, kSlots, memory->credit), 32, share);
  MessageBuffer message;
  for (std::uint64_t n = 0; n < kMessages;) {
    if (reader.take(message) != Taken::message) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(number_of(message), n++);
  }
  writer.join();
}

// As the threads of a client share a request ring: slots are reserved, and publish themselves.
TEST(RingConcurrency, SeveralWritersAndOneReader) {
  constexpr std::uint32_t kWriters = 4;
  const auto memory = std::make_unique<RingMemory>();
  std::atomic<std::uint64_t> tail{0};
  std::vector<std::thread> writers;
  for (std::uint32_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      base::Random random(w + 1);
      SlotSpace space(memory->slots, kSlots, memory->credit);
      for (std::uint64_t n = 0; n < kMessages / kWriters; ++n) {
        const std::string message = numbered(n, w, random.below(100));
        const std::uint32_t slots = wire::slots_of(static_cast<std::uint32_t>(message.size()));
        std::uint64_t first = tail.load();
        for (;;) {
          if (static_cast<std::int64_t>(space.ask_room(first)) < static_cast<std::int64_t>(slots)) {
            std::this_thread::yield();
            first = tail.load();
          } else if (tail.compare_exchange_weak(first, first + slots)) {
            break;
          }
        }
        MessageStream stream(reinterpret_cast<const std::byte*>(message.data()),
                             static_cast<std::uint32_t>(message.size()), first);
        stream.write(space, slots);
      }
    });
  }
  MessageShare share;
  MessageReader reader(SlotReader(memory->slots, kSlots, memory->credit), 32, share);
  std::uint64_t next[kWriters] = {};
  MessageBuffer message;
  for (std::uint64_t taken = 0; taken < kMessages / kWriters * kWriters;) {
    if (reader.take(message) != Taken::message) {
      std::this_thread::yield();
      continue;
    }
    const auto header = base::load_plain<wire::RequestHeader>(message.data());
    ASSERT_LT(header.map, kWriters);
    EXPECT_EQ(number_of(message), next[header.map]++);
    ++taken;
  }
  for (std::thread& writer : writers) writer.join();
}

// Each side says that it sleeps, looks once more, and sleeps; the other looks whether it does after
// each message. No sleep has a limit that would help: a lost wake-up is a test that hangs.
TEST(RingConcurrency, NoWakeUpIsLost) {
  constexpr std::uint64_t kFarAway = 1'000'000'000'000;
  constexpr std::uint64_t kRounds = base::kThreadSanitizer ? 5'000 : 50'000;
  const auto to = std::make_unique<RingMemory>();
  const auto from = std::make_unique<RingMemory>();
  alignas(64) std::byte sleeping[2][64] = {};
  std::atomic<std::uint64_t> sleeps{0};
  const auto wait = [&](const SlotReader& reader, std::byte* word) {
    while (!reader.ready()) {
      base::store_shared(word, std::uint32_t{1}, std::memory_order_seq_cst);
      base::full_fence();
      if (!reader.ready()) {
        ++sleeps;
        futex_wait(word, 1, kFarAway);
      }
      base::store_shared(word, std::uint32_t{0});
    }
  };
  const auto send = [](SlotSpace& space, std::uint64_t number, std::byte* word) {
    space.publish(number);
    base::full_fence();
    if (base::load_shared<std::uint32_t>(word) == 0) return;
    base::store_shared(word, std::uint32_t{0}, std::memory_order_release);
    futex_wake(word);
  };
  std::thread other([&] {
    SlotReader reader(to->slots, kSlots, to->credit);
    SlotSpace space(from->slots, kSlots, from->credit);
    std::byte slot[wire::kRingSlotBytes];
    for (std::uint64_t n = 0; n < kRounds; ++n) {
      wait(reader, sleeping[0]);
      reader.take(slot);
      send(space, n, sleeping[1]);
    }
  });
  SlotSpace space(to->slots, kSlots, to->credit);
  SlotReader reader(from->slots, kSlots, from->credit);
  std::byte slot[wire::kRingSlotBytes];
  for (std::uint64_t n = 0; n < kRounds; ++n) {
    send(space, n, sleeping[0]);
    wait(reader, sleeping[1]);
    reader.take(slot);
  }
  other.join();
  EXPECT_GT(sleeps, 0u);
}

}  // namespace
}  // namespace espalier::rings
