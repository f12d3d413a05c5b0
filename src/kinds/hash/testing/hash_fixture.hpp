// SPDX-License-Identifier: Apache-2.0
// A store with one hash map, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_map.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {

/// A store, for tests that use its hash maps by their own threads.
class StoreParts : public tree::StoreCore {
 public:
  explicit StoreParts(std::uint64_t bytes_max)
      : StoreCore(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false}), 32) {}

  HashStore& store = hash_store_of(catalog);
};

/// A map, and one thread that uses it.
class HashFixture {
 public:
  explicit HashFixture(const HashOptions& options = {.partitions = 4},
                       std::uint64_t bytes_max = std::uint64_t{128} << 20)
      : parts(bytes_max),
        map(create_hash_map(parts.store, "map", options).value()),
        thread(HashThread::join(parts.store).value()) {}

  [[nodiscard]] HashThread another_thread() { return HashThread::join(parts.store).value(); }
  HashWritten put(std::string_view key, std::string_view value) {
    return map->put(thread, key, value).value();
  }
  [[nodiscard]] std::optional<std::string> get(std::string_view key) {
    return map->get(thread, key).value();
  }
  /// What is wrong with the map, and with the memory of its store; empty: nothing.
  [[nodiscard]] std::string faults() {
    thread.cache->flush();
    map->records().trim();
    const HashAudit audited = audit(*map);
    std::string all;
    for (const std::string& one : audited.wrong) all += one + "\n";
    for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
      const memory::ClassStats stats = parts.pool.stats(cls);
      if (stats.in_use != audited.buffers[cls]) {
        all += "of the class of " + std::to_string(memory::class_bytes(cls)) + " bytes " +
               std::to_string(stats.in_use) + " buffers are in use, and " +
               std::to_string(audited.buffers[cls]) + " known\n";
      }
      if (stats.in_use + stats.free != stats.taken) all += "buffers are lost\n";
    }
    return all;
  }

  StoreParts parts;
  std::shared_ptr<HashMap> map;
  HashThread thread;
};

/// A key of 16 bytes that has this hash, made by the seed: of the two factors of its
/// product one is 1.
inline std::string key_of_hash(const HashSeed& seed, std::uint64_t bits) {
  const auto inverse = [](std::uint64_t odd) {  // by Newton's method: each turn doubles the bits
    std::uint64_t x = odd;
    for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
    return x;
  };
  std::uint64_t x = bits ^ bits >> 31 ^ bits >> 62;
  x *= inverse(0x94d049bb133111eb);
  x = (x ^ x >> 27 ^ x >> 54) * inverse(0xbf58476d1ce4e5b9);
  x ^= x >> 30 ^ x >> 60;
  const std::uint64_t words[2] = {seed.second ^ 1, x ^ 16 * 0x9e37'79b9'7f4a'7c15};
  std::string key(sizeof words, '\0');
  std::memcpy(key.data(), words, sizeof words);
  return key;
}

/// Keys of one bin, whatever the depth, for a map of one partition and a known seed.
inline std::vector<std::string> keys_of_one_bin(const HashMap& map, std::size_t count,
                                                std::uint32_t bin, std::uint32_t depth = 0) {
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = "crafted" + std::to_string(i);
    const KeyHash hash = map.hash(key);
    if (hash.bin() == bin && hash.prefix(depth) == 0) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace espalier::hash
