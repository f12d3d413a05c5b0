// SPDX-License-Identifier: Apache-2.0
// Threads that read, write, hold and grow one hash map: no value goes back, none is torn, none is
// lost, and all memory is found in the end.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kinds/hash/hash_pipeline.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

constexpr bool kSlow = base::kThreadSanitizer;

std::string key_of(std::uint64_t i) { return "key" + std::to_string(i); }

/// A number eight times over, so that a torn value shows.
std::string value_of(std::uint64_t number) {
  std::string value(64, 0);
  for (int i = 0; i < 8; ++i) base::store_le(value.data() + 8 * i, number);
  return value;
}
std::uint64_t number_in(std::string_view value) {
  EXPECT_EQ(value.size(), 64u);
  const auto number = base::load_le<std::uint64_t>(value.data());
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(base::load_le<std::uint64_t>(value.data() + 8 * i), number);
  }
  return number;
}

// What a queue has found of a key may be gone when it looks at it.
TEST(HashConcurrency, GetsOfAQueueMeetKeysThatAreErased) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 1, .versions = versions});
    const int rounds = kSlow ? 2000 : 100'000;
    std::atomic<bool> writing{true};
    std::thread writer([&] {
      HashThread thread = f.another_thread();
      for (int i = 0; i < rounds; ++i) {
        EXPECT_TRUE(f.map->put(thread, "key", value_of(7)));
        EXPECT_TRUE(f.map->erase(thread, "key"));
      }
      f.map->give_back(thread);
      writing = false;
    });
    HashPipeline pipeline(*f.map, f.thread);
    const std::vector<Request> gets(64, Request{Op::get, 0, 0, "key", {}, {}});
    do {
      pipeline.run(gets, [&](const Completion& done) {
        EXPECT_TRUE(done.ok);
        EXPECT_TRUE(!done.found || number_in(done.value) == 7u);
      });
    } while (writing);
    writer.join();
    f.map->give_back(f.thread);
    EXPECT_EQ(f.faults(), "");
  }
}

// Writers own keys and count them up; readers see each count rise, whatever moves meanwhile.
TEST(HashConcurrency, ReadersSeeNoValueGoBackWhileTheMapGrows) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 2, .versions = versions});
    constexpr std::uint64_t kWatched = 300;
    constexpr std::uint64_t kWriters = 2;
    const std::uint64_t rounds = kSlow ? 6 : 40;
    std::atomic<std::uint64_t> writing{kWriters};
    std::vector<std::thread> threads;
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      threads.emplace_back([&, w] {
        HashThread thread = f.another_thread();
        for (std::uint64_t round = 1; round <= rounds; ++round) {
          for (std::uint64_t i = w; i < kWatched; i += kWriters) {
            ASSERT_TRUE(f.map->put(thread, key_of(i), value_of(round)));
            // What makes it grow.
            ASSERT_TRUE(f.map->put(thread, "more" + std::to_string(round * kWatched + i), "m"));
          }
        }
        --writing;
      });
    }
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&] {
        HashThread thread = f.another_thread();
        std::vector<std::uint64_t> seen(kWatched);
        do {
          for (std::uint64_t i = 0; i < kWatched; ++i) {
            HashReader reader(*f.map, thread);
            const HashAnswer answer = reader.get(key_of(i));
            ASSERT_TRUE(answer.found || seen[i] == 0) << i;
            if (!answer.found) continue;
            const std::uint64_t number = number_in(answer.value);
            ASSERT_GE(number, seen[i]);
            seen[i] = number;
          }
        } while (writing.load() != 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::uint64_t i = 0; i < kWatched; ++i) ASSERT_EQ(f.get(key_of(i)), value_of(rounds));
    EXPECT_EQ(f.map->numbers().entries, kWatched * (rounds + 1));
    EXPECT_EQ(f.faults(), "");
  }
}

TEST(HashConcurrency, AddsToOneKeyAreAllThere) {
  for (const bool versions : {true, false}) {
    HashFixture f({.partitions = 1, .versions = versions});
    const int adds = kSlow ? 500 : 5000;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        HashThread thread = f.another_thread();
        for (int i = 0; i < adds; ++i) ASSERT_TRUE(f.map->add(thread, "n", 1));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(*f.map->add(f.thread, "n", 0), 3u * static_cast<std::uint64_t>(adds));
    EXPECT_EQ(f.faults(), "");
  }
}

// Two keys are written in order; a snapshot never has the second without the first.
TEST(HashConcurrency, SnapshotsAreOfOneMoment) {
  HashFixture f({.partitions = 4});
  const std::uint64_t rounds = kSlow ? 300 : 4000;
  std::atomic<bool> writing{true};
  std::thread writer([&] {
    HashThread thread = f.another_thread();
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      for (std::uint64_t key = 0; key < 8; ++key) {
        ASSERT_TRUE(f.map->put(thread, key_of(key), value_of(i)));
      }
      if (i % 7 == 0) {
        ASSERT_TRUE(f.map->erase(thread, key_of(8)));
      }
      if (i % 7 == 3) {
        ASSERT_TRUE(f.map->put(thread, key_of(8), value_of(i)));
      }
    }
    writing = false;
  });
  while (writing) {
    const HashSnapshot snapshot = f.map->hold(f.thread).value();
    std::vector<std::uint64_t> first;
    for (int time = 0; time < 3; ++time) {
      HashReader reader(*f.map, f.thread, snapshot);
      std::vector<std::uint64_t> numbers;
      for (std::uint64_t key = 0; key <= 8; ++key) {
        const HashAnswer answer = reader.get(key_of(key));
        numbers.push_back(answer.found ? number_in(answer.value) : 0);
      }
      if (reader.expired()) break;
      for (std::size_t i = 1; i < 8; ++i) {
        ASSERT_LE(numbers[i], numbers[i - 1]);
        ASSERT_LE(numbers[0], numbers[i] + 1);
      }
      if (time == 0) first = numbers;
      ASSERT_EQ(numbers, first);
    }
    f.map->drop(snapshot);
  }
  writer.join();
  f.map->give_back(f.thread);
  f.map->give_back(f.thread);
  EXPECT_EQ(audit(*f.map).links, 0u);
  EXPECT_EQ(f.faults(), "");
}

TEST(HashConcurrency, ManyWritersAndErasesLeaveWhatTheySay) {
  const std::uint64_t seed = base::seed_from_environment(5);
  HashFixture f({.partitions = 8});
  constexpr std::uint64_t kThreads = 3;
  const int steps = kSlow ? 2000 : 30'000;
  std::vector<std::vector<bool>> there(kThreads, std::vector<bool>(500));
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      HashThread thread = f.another_thread();
      base::Random random(seed + t);
      for (int i = 0; i < steps; ++i) {
        const std::uint64_t k = random.below(500);
        const std::string key = std::to_string(t) + ":" + std::to_string(k);
        if (random.below(3) == 0) {
          const auto erased = f.map->erase(thread, key);
          ASSERT_TRUE(erased);
          ASSERT_EQ(erased->applied, there[t][k]);
          there[t][k] = false;
        } else {
          const auto put = f.map->put(thread, key, std::string(random.below(200), 'v'));
          ASSERT_TRUE(put);
          ASSERT_EQ(put->existed, there[t][k]);
          there[t][k] = true;
        }
        ASSERT_EQ(f.map->get(thread, key)->has_value(), there[t][k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.faults(), "");
}

// What erases need, and what they give back, is as long as the pairs that others put.
TEST(HashConcurrency, ErasesOfAFullStoreGoOnAmongPutsOfTinyPairs) {
  HashFixture f({.partitions = 2}, std::uint64_t{8} << 20);
  const std::uint64_t erases = kSlow ? 300 : 2000;
  for (std::uint64_t i = 0; i < erases; ++i) f.put(key_of(i), "tiny");
  for (int i = 0; f.map->put(f.thread, "long" + std::to_string(i), std::string(600, 'v')); ++i) {
  }
  std::atomic<bool> erasing{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      HashThread thread = f.another_thread();
      for (int i = 0; erasing; ++i) {
        const std::string key = std::to_string(t) + ":" + std::to_string(i);
        const auto put = f.map->put(thread, key, "tiny");
        if (!put) {
          EXPECT_EQ(put.error().code, Code::out_of_memory);
        }
      }
    });
  }
  std::uint64_t erased = 0;
  for (std::uint64_t i = 0; i < erases; ++i) {
    const auto gone = f.map->erase(f.thread, key_of(i));
    EXPECT_TRUE(gone) << i;
    if (gone && gone->applied) ++erased;
  }
  erasing = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(erased, erases);
  EXPECT_EQ(f.faults(), "");
}

TEST(PartitionLockConcurrency, OneThreadIsInside) {
  LockHolders holders;
  PartitionLock lock;
  std::uint64_t count = 0;
  const std::uint64_t turns = kSlow ? 3000 : 30'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      LockHolder& self = holders.take();
      for (std::uint64_t i = 0; i < turns; ++i) {
        {
          const PartitionGuard guard(lock, self);
          ++count;
        }
        // By turns, and long enough alone to own it.
        for (int j = 0; i % 1000 == 0 && j < 50 * t; ++j) std::this_thread::yield();
      }
      holders.give(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 3 * turns);
}

}  // namespace
}  // namespace espalier::hash
