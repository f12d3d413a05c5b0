// SPDX-License-Identifier: Apache-2.0
// Sessions are fenced while threads read by the keys that they share.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "fabric/region_table.hpp"

namespace espalier::fabric {
namespace {

class NoReads final : public SharedReads {
 public:
  void read_keyed(std::uint64_t, std::span<std::byte>) override {}
  void read_at(std::uint64_t, std::span<std::byte>) override {}
};

TEST(SharedKeysConcurrency, NoReadBeginsOnceTheOwnKeyIsGone) {
  const auto table = *RegionTable::create(3);
  const auto map = std::make_shared<SharedMap>(std::make_shared<NoReads>());
  const auto keyed = *table->offer_shared(map, SharedKind::keyed);
  std::vector<std::byte> bytes(64);
  // How often the session was fenced, twice: odd while its key is gone for certain.
  std::atomic<std::uint64_t> fenced{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      RegionTable::Reader reader(*table);
      while (!over.load()) {
        reader.enter();
        const std::uint64_t before = fenced.load();
        const bool answers = reader.find_shared(keyed.remote().key, 1, 4).answers();
        const bool gone = before % 2 == 1 && fenced.load() == before;
        reader.leave();
        if (answers) ++reads;
        if (answers && gone) ++wrong;
      }
    });
  }
  for (int i = 0; i < 300 || (reads.load() == 0 && i < 1'000'000); ++i) {
    auto own = *table->offer({bytes.data(), bytes.size()}, RemoteRights::read, 4);
    ASSERT_TRUE(table->admit(*map, own.remote().key));
    own.revoke();
    ++fenced;
    std::this_thread::yield();
    ++fenced;
  }
  over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(reads.load(), 0u);
}

}  // namespace
}  // namespace espalier::fabric
