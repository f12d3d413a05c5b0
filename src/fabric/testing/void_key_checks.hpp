// SPDX-License-Identifier: Apache-2.0
// What void keys promise, as checks that say what was wrong: empty, if nothing was. Tests run them,
// and those with planted bugs want them to fail.
//
// Thread: each has threads of its own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/region_table.hpp"
#include "fabric/shared_copy.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric {

/// Threads look up and copy, while the owner makes keys void and immediately writes by plain
/// stores, which ThreadSanitizer reports if a reader is still in progress. Each copy must be of one
/// round, whole, or zeros.
inline std::string void_keys_under_readers(std::uint64_t seed, std::uint64_t rounds) {
  const auto table = *RegionTable::create(seed);
  std::array<std::uint64_t, 512> words{};
  std::atomic<RegionKey> key{0};
  std::atomic<std::uint64_t> address{0};
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> zeros{0};
  std::atomic<bool> torn{false};
  std::atomic<bool> late{false};
  // A key that was void when the copy began, by the owner's word.
  std::atomic<RegionKey> is_void{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      RegionTable::Reader reader(*table);
      while (!stop.load()) {
        const RegionKey now = key.load();
        const bool void_before = is_void.load() == now && now != 0;
        reader.enter();
        const ReadSource from = reader.find_source(now, address.load(), sizeof words, 0);
        if (from.kind == ReadSource::Kind::zeros) zeros.fetch_add(1);
        if (from.kind == ReadSource::Kind::bytes) {
          if (void_before) late = true;
          const auto first = base::load_plain<std::uint64_t>(from.at);
          for (std::size_t w = 1; w < words.size(); ++w) {
            if (base::load_plain<std::uint64_t>(from.at + 8 * w) != first) torn = true;
          }
          copies.fetch_add(1);
        }
        reader.leave();
        if (from.kind != ReadSource::Kind::bytes) std::this_thread::yield();
      }
    });
  }
  for (std::uint64_t round = 1; round <= rounds && !torn && !late; ++round) {
    words.fill(round);
    auto region = *table->offer({reinterpret_cast<std::byte*>(words.data()), sizeof words},
                                RemoteRights::read);
    const std::uint64_t copies_before = copies.load();
    key.store(0);
    address.store(region.remote().base);
    key.store(region.remote().key);
    while (copies.load() == copies_before) std::this_thread::yield();
    region.make_void();
    is_void.store(region.remote().key);
    for (std::uint64_t& word : words) word = ~round;
    const std::uint64_t zeros_before = zeros.load();
    while (zeros.load() == zeros_before && !late.load()) std::this_thread::yield();
    is_void.store(0);
  }
  stop.store(true);
  readers.clear();
  if (late) return "a void key brought bytes";
  return torn ? "bytes changed under a reader" : "";
}

/// READs over `shm` run while the owner makes their key void, and immediately writes something
/// else.
inline std::string void_keys_over_shm(std::uint64_t seed, int rounds) {
  constexpr std::uint64_t kGood = 0x600D600D600D600D;
  constexpr std::size_t kBytes = 1 << 18;
  base::Random random(seed);
  std::vector<std::uint64_t> local(kBytes / 8);
  for (int round = 0; round < rounds; ++round) {
    shm::Connected two(kBytes);
    const auto fill = [&](std::uint64_t word) {
      for (std::size_t i = 0; i < kBytes; i += 8) base::store_shared(two.memory.at(i), word);
    };
    fill(kGood);
    const auto read = WorkRequest::read(1, std::as_writable_bytes(std::span(local)),
                                        two.remote().key, two.remote().base);
    if (two.run(read).status != Status::success) return "a READ failed";
    std::atomic<std::uint64_t> reads{0};
    std::atomic<bool> is_void{false};
    std::jthread owner([&, wanted = random.below(6)] {
      while (reads.load(std::memory_order_relaxed) < wanted) std::this_thread::yield();
      two.region.make_void();
      is_void.store(true);
      fill(0xBAD);
    });
    std::string wrong;
    for (bool last = false; !last && wrong.empty();) {
      last = is_void.load();
      two.client.pair->post(read);
      const auto completion = two.client.take(two.client.sends);
      reads.fetch_add(1, std::memory_order_relaxed);
      const auto all = [&](std::uint64_t word) {
        return std::all_of(local.begin(), local.end(), [&](auto w) { return w == word; });
      };
      if (!completion || completion->status != Status::success) {
        wrong = "a READ by a void key failed";
      } else if (!all(0) && (last || !all(kGood))) {
        wrong = "a READ brought what was written after its key was made void";
      }
    }
    reads.store(1'000'000);
    owner.join();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace espalier::fabric
