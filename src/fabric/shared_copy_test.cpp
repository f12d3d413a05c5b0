// SPDX-License-Identifier: Apache-2.0
#include "fabric/shared_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace espalier::fabric {
namespace {

constexpr std::size_t kRoom = 512;

struct Memory {
  alignas(64) std::byte bytes[kRoom];
};

using Copy = void (*)(std::byte*, const std::byte*, std::size_t);

// All alignments of both sides, and lengths around those at which the way changes.
void expect_copies(Copy copy) {
  base::Random random(base::seed_from_environment(11));
  Memory from;
  Memory to;
  Memory expected;
  random.fill(from.bytes);
  for (std::size_t to_offset = 0; to_offset < 17; ++to_offset) {
    for (std::size_t from_offset = 0; from_offset < 17; ++from_offset) {
      for (std::size_t bytes = 0; bytes < 300; bytes += bytes < 100 ? 1 : 13) {
        random.fill(to.bytes);
        expected = to;
        std::copy_n(from.bytes + from_offset, bytes, expected.bytes + to_offset);
        copy(to.bytes + to_offset, from.bytes + from_offset, bytes);
        ASSERT_TRUE(std::equal(to.bytes, to.bytes + kRoom, expected.bytes))
            << to_offset << ' ' << from_offset << ' ' << bytes;
      }
    }
  }
}

TEST(SharedCopy, MovesJustTheseBytes) {
  expect_copies(copy_from_shared);
  expect_copies(copy_to_shared);
  expect_copies(copy_few_from_shared);
}

TEST(SharedCopy, ByWordsToo) {
  expect_copies(detail::copy_by_words<detail::FromShared>);
  expect_copies(detail::copy_by_words<detail::ToShared>);
}

TEST(SharedCopyConcurrency, NoWordIsTorn) {
  static Memory shared;
  for (std::byte& byte : shared.bytes) byte = std::byte{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Memory from;
    for (std::uint8_t value = 0; !stop.load(std::memory_order_relaxed); ++value) {
      std::fill_n(from.bytes, kRoom, std::byte{value});
      copy_to_shared(shared.bytes, from.bytes, kRoom);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    // At every alignment of the near side.
    Memory to;
    const std::size_t offset = static_cast<std::size_t>(i) % 17;
    const std::size_t bytes = kRoom - 64 - static_cast<std::size_t>(i) % 5 * 8;
    copy_from_shared(to.bytes + offset, shared.bytes, bytes);
    for (std::size_t at = 0; at < bytes; at += 8) {
      const std::byte* const word = to.bytes + offset + at;
      ASSERT_TRUE(std::all_of(word, word + 8, [&](std::byte b) { return b == word[0]; }));
    }
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
}

}  // namespace
}  // namespace espalier::fabric
