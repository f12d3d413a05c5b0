// SPDX-License-Identifier: Apache-2.0
// Hash maps of a node that a client, or a device, reads by READs: how often it waits, what goes
// through the rings instead, and reads during writes.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "node/metrics.hpp"
#include "tests/hash_maps/hash_map_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

std::string read_key(std::uint64_t number) { return "key" + std::to_string(number); }

/// What gets of a pipeline came to.
class GetSink final : public Handler {
 public:
  void done(const Completion& completion) override {
    ++answers;
    if (!completion.ok) ++failures;
    if (completion.ok && completion.found) values[completion.tag] = std::string(completion.value);
  }
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
  std::map<std::uint64_t, std::string> values;
};

class HashMapReads : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  [[nodiscard]] tree::WalkTraffic traffic() const {
    return client::StoreImpl::of(*store_).read_traffic();
  }
  /// How many such requests the node has had.
  [[nodiscard]] std::uint64_t requests_of(wire::OffloadId call) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == call) return offload.requests;
    }
    return 0;
  }
  std::optional<Store> store_;
};

TEST_P(HashMapReads, AGetWaitsTwiceAndThenOnceWhereReadsKeepTheirOrder) {
  auto map = store_->create_hash_map("h", {.partitions = 1});
  ASSERT_TRUE(map);
  constexpr std::uint64_t kKeys = 150;  // fewer than bins
  for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(map->put(read_key(i), "value"));
  std::string value;
  ASSERT_TRUE(map->get(read_key(0), value).value());
  const bool in_order = std::string(GetParam()).starts_with("shm");
  for (const bool warm : {false, true}) {
    const tree::WalkTraffic before = traffic();
    for (std::uint64_t i = 1; i < kKeys; ++i) {
      ASSERT_TRUE(map->get(read_key(i), value).value());
      ASSERT_EQ(value, "value");
    }
    const std::uint64_t waits = traffic().round_trips - before.round_trips;
    EXPECT_EQ(traffic().by_rings, 0u);
    if (in_order && !warm) {
      // Keys that share a bin find it cached.
      EXPECT_LE(waits, 2 * (kKeys - 1));
      EXPECT_GT(waits, 3 * (kKeys - 1) / 2);
    } else if (in_order) {
      EXPECT_EQ(waits, kKeys - 1);
    } else {
      EXPECT_LE(waits, (warm ? 3 : 4) * (kKeys - 1));
    }
  }
}

TEST_P(HashMapReads, WhatCannotBeReadSoGoesByTheRings) {
  auto map = store_->create_hash_map("h", {.versions = false});
  ASSERT_TRUE(map && map->put("a", "1"));
  EXPECT_EQ((*map->get("a"))->value, "1");
  EXPECT_EQ(traffic().round_trips, 0u);
  EXPECT_EQ(traffic().by_rings, 1u);
}

TEST_P(HashMapReads, PipelinesReadAloneAndWriteByTheRings) {
  auto map = store_->create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  constexpr std::uint64_t kKeys = 3'000;
  GetSink written;
  GetSink read;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    keys.push_back(read_key(i));
    values.emplace_back(i % 50 == 0 ? 3'000 : i % 100, static_cast<char>('a' + i % 26));
  }
  std::vector<Request> requests(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    requests[i].op = Op::put;
    requests[i].tag = i;
    requests[i].key = keys[i];
    requests[i].value = values[i];
  }
  {
    auto pipeline = Pipeline::open(*map, 64);
    ASSERT_TRUE(pipeline);
    pipeline->run(requests, written);
    for (Request& request : requests) request.op = Op::get;
    pipeline->run(requests, read);
  }
  EXPECT_EQ(written.answers, kKeys);
  EXPECT_EQ(written.failures + read.failures, 0u);
  ASSERT_EQ(read.values.size(), kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(read.values[i] == values[i]) << i;
  EXPECT_GE(traffic().round_trips, kKeys);
  EXPECT_EQ(traffic().by_rings, 0u);
}

TEST_P(HashMapReads, ADroppedMapIsNotFound) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("a", "1"));
  EXPECT_EQ((*map->get("a"))->value, "1");
  ASSERT_TRUE(store_->drop_hash_map("h"));
  EXPECT_EQ(map->get("a").error().code, Code::not_found);
  auto other = store_->create_hash_map("h");
  ASSERT_TRUE(other && other->put("a", "2"));
  EXPECT_EQ((*other->get("a"))->value, "2");
  EXPECT_EQ(map->get("a").error().code, Code::not_found);
}

TEST_P(HashMapReads, ADroppedMapLeavesReadsOfOthersAlone) {
  auto dropped = store_->create_hash_map("h");
  auto other = store_->create_hash_map("other");
  ASSERT_TRUE(dropped && dropped->put("a", "1") && other && other->put("a", "2"));
  EXPECT_EQ((*dropped->get("a"))->value, "1");
  EXPECT_EQ((*other->get("a"))->value, "2");
  ASSERT_TRUE(store_->drop_hash_map("h"));
  EXPECT_EQ(dropped->get("a").error().code, Code::not_found);
  const std::uint64_t opened = requests_of(wire::OffloadId::one_sided_hash);
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*other->get("a"))->value, "2");
  EXPECT_EQ(requests_of(wire::OffloadId::one_sided_hash), opened) << "it is read as before";
}

// Their leases are given back, so that others have them and nothing begins anew.
TEST_P(HashMapReads, MapsThatWereDroppedLeaveNoLeases) {
  auto other = store_->create_hash_map("other", {.partitions = 1});
  ASSERT_TRUE(other && other->put("a", "2"));
  EXPECT_EQ((*other->get("a"))->value, "2");
  constexpr std::uint64_t kDropped = 70;  // a session has 64 leases
  const std::uint64_t opened = requests_of(wire::OffloadId::one_sided_hash);
  for (std::uint64_t i = 0; i < kDropped; ++i) {
    auto dropped = store_->create_hash_map("h", {.partitions = 1});
    ASSERT_TRUE(dropped && dropped->put("a", "1"));
    EXPECT_EQ((*dropped->get("a"))->value, "1");
    ASSERT_TRUE(store_->drop_hash_map("h"));
    EXPECT_EQ(dropped->get("a").error().code, Code::not_found);
    EXPECT_EQ((*other->get("a"))->value, "2");
  }
  EXPECT_EQ(requests_of(wire::OffloadId::one_sided_hash) - opened, kDropped);
  EXPECT_EQ(node_->store().leases.size(), 1u);
}

TEST_P(HashMapReads, MoreMapsThanASessionHasLeasesForAreNotAskedForEachTime) {
  constexpr std::size_t kLeases = 64;
  constexpr std::size_t kMaps = kLeases + 20;
  std::vector<HashMap> maps;
  for (std::size_t i = 0; i < kMaps; ++i) {
    auto map = store_->create_hash_map("h" + std::to_string(i), {.partitions = 1});
    ASSERT_TRUE(map && map->put("a", std::to_string(i)));
    maps.push_back(std::move(*map));
    EXPECT_EQ((*maps[i].get("a"))->value, std::to_string(i));
  }
  EXPECT_EQ(node_->store().leases.size(), kLeases);
  const std::uint64_t before = requests_of(wire::OffloadId::one_sided_hash);
  constexpr std::size_t kRounds = 20;
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = kLeases; i < kMaps; ++i) {
      EXPECT_EQ((*maps[i].get("a"))->value, std::to_string(i));
    }
  }
  // Now and then one is: it may take long on a busy machine.
  EXPECT_LT(requests_of(wire::OffloadId::one_sided_hash) - before, kRounds * (kMaps - kLeases) / 2);
}

TEST_P(HashMapReads, MapsThatCannotBeReadSoAreNotAskedForEachTime) {
  auto one = store_->create_hash_map("one", {.versions = false});
  auto two = store_->create_hash_map("two", {.versions = false});
  ASSERT_TRUE(one && one->put("a", "1") && two && two->put("a", "2"));
  constexpr std::uint64_t kGets = 200;
  const std::uint64_t before = requests_of(wire::OffloadId::one_sided_hash);
  for (std::uint64_t i = 0; i < kGets; ++i) {
    EXPECT_EQ((*one->get("a"))->value, "1");
    EXPECT_EQ((*two->get("a"))->value, "2");
  }
  // Now and then they are: it may take long on a busy machine.
  EXPECT_LT(requests_of(wire::OffloadId::one_sided_hash) - before, kGets);
}

TEST_P(HashMapReads, OrderedMapsAndHashMapsAreReadByOneThread) {
  auto hash = store_->create_hash_map("h");
  auto ordered = store_->create_map("m");
  ASSERT_TRUE(hash && ordered);
  ASSERT_TRUE(hash->put("a", "1") && ordered->put("a", "2"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ((*hash->get("a"))->value, "1");
    EXPECT_EQ((*ordered->get("a"))->value, "2");
  }
  EXPECT_EQ(traffic().by_rings, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, HashMapReads, ::testing::Values("shm_one_sided", "roce_one_sided"),
                         way_name);

class HashMapsOfADevice : public NodeFixture {
 protected:
  void SetUp() override {
    reach_by("device");
    start();
  }
  /// That its host has done.
  [[nodiscard]] std::uint64_t gets_of_host() const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == wire::OffloadId::hash_get) return offload.requests;
    }
    return 0;
  }
};

TEST_F(HashMapsOfADevice, AreReadWithoutTheHostsHelp) {
  Store store = connect();
  auto map = store.create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  constexpr std::uint64_t kKeys = 200;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(map->put(read_key(i), std::string(i * 20, 'v')));
  }
  const std::uint64_t before = gets_of_host();
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const auto found = map->get(read_key(i));
    ASSERT_TRUE(found && *found) << i;
    EXPECT_EQ((*found)->value.size(), i * 20);
    EXPECT_NE((*found)->version, 0u);
  }
  EXPECT_FALSE(map->get("absent")->has_value());
  // Reads may end and begin anew on a busy machine; then the host answers some.
  EXPECT_LT(gets_of_host() - before, kKeys / 2);
}

// They are not brought to the device before.
TEST_F(HashMapsOfADevice, HaveTheirHostAnswerWhatIsLong) {
  Store store = connect();
  auto map = store.create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  constexpr std::size_t kLengths[] = {70'000, 300'000, 2'000'000};
  for (const std::size_t length : kLengths) {
    ASSERT_TRUE(map->put(std::to_string(length), std::string(length, 'l')));
  }
  const std::uint64_t before = gets_of_host();
  for (int i = 0; i < 3; ++i) {
    for (const std::size_t length : kLengths) {
      const auto found = map->get(std::to_string(length));
      ASSERT_TRUE(found && *found) << length;
      EXPECT_TRUE((*found)->value == std::string(length, 'l')) << length;
    }
  }
  EXPECT_GE(gets_of_host() - before, 6u);
}

// A device has 48 places for maps that it reads.
TEST_F(HashMapsOfADevice, ThatWereDroppedLeaveTheirPlaces) {
  Store store = connect();
  for (int i = 0; i < 60; ++i) {
    auto dropped = store.create_hash_map("h", {.partitions = 1});
    ASSERT_TRUE(dropped && dropped->put("a", "1"));
    EXPECT_EQ((*dropped->get("a"))->value, "1");
    ASSERT_TRUE(store.drop_hash_map("h"));
    EXPECT_EQ(dropped->get("a").error().code, Code::not_found);
  }
  auto map = store.create_hash_map("last", {.partitions = 1});
  ASSERT_TRUE(map && map->put("a", "2"));
  constexpr std::uint64_t kGets = 200;
  const std::uint64_t before = gets_of_host();
  for (std::uint64_t i = 0; i < kGets; ++i) EXPECT_EQ((*map->get("a"))->value, "2");
  EXPECT_LT(gets_of_host() - before, kGets / 2);
}

// Its answers are longer than its ring, and wait until it takes them; others have theirs meanwhile.
TEST_F(HashMapsOfADevice, AreReadByAClientThatTakesItsAnswersSlowly) {
  Store slow = connect();
  auto map = slow.create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  constexpr std::uint64_t kKeys = 64;
  const auto value_of = [](std::uint64_t i) {
    return std::string(150'000 + i, static_cast<char>('a' + i % 26));
  };
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    keys.push_back(read_key(i));
    ASSERT_TRUE(map->put(keys[i], value_of(i)));
  }
  ASSERT_TRUE(map->put("short", "value"));
  std::vector<Request> requests(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    requests[i].op = Op::get;
    requests[i].tag = i;
    requests[i].key = keys[i];
  }
  Store quick = connect();
  auto same = quick.open_hash_map("h");
  ASSERT_TRUE(same);
  auto pipeline = Pipeline::open(*map, kKeys);
  ASSERT_TRUE(pipeline);
  const std::uint64_t before = gets_of_host();
  GetSink read;
  pipeline->submit(requests, read);
  // By then the device has had many turns, and has no room for more.
  for (int i = 0; i < 300; ++i) EXPECT_EQ((*same->get("short"))->value, "value");
  for (std::uint64_t answers = 0; pipeline->poll() != 0; answers = read.answers) {
    ASSERT_GT(read.answers, answers);
    EXPECT_EQ((*same->get("short"))->value, "value");
  }
  EXPECT_EQ(read.failures, 0u);
  ASSERT_EQ(read.values.size(), kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) EXPECT_TRUE(read.values[i] == value_of(i)) << i;
  EXPECT_LT(gets_of_host() - before, (kKeys + 300) / 2);
}

class HashMapReadsConcurrency : public HashMapReads {
 protected:
  static constexpr std::uint64_t kKeys = 2'600;  // segments split meanwhile
  static constexpr std::uint32_t kWriters = 2;
  /// The progress of a key's states: an odd one is a value with that number, an even one is
  /// absence.
  struct Progress {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};
  };

  /// Takes a key to its next state.
  void advance(HashMap& map, std::uint64_t number) {
    Progress& progress = progress_[number];
    const std::uint64_t next = progress.begun.load() + 1;
    progress.begun = next;
    if (next % 2 == 1) {
      std::string value = std::to_string(next) + ";";
      if (number % 7 == 0) value.append(number % 14 == 0 ? 2'000 : 300, '.');
      ASSERT_TRUE(map.put(read_key(number), value));
    } else {
      ASSERT_TRUE(map.erase(read_key(number)));
    }
    progress.done = next;
  }
  /// Whether a key was that at some moment between two.
  static bool could_be(const std::optional<std::string>& value, std::uint64_t done_before,
                       std::uint64_t begun_after) {
    if (!value) return done_before % 2 == 0 || begun_after > done_before;
    const std::uint64_t state = std::stoull(*value);
    return state % 2 == 1 && done_before <= state && state <= begun_after;
  }

  std::array<Progress, kKeys> progress_{};
};

TEST_P(HashMapReadsConcurrency, GetsSeeWhatIsThereWhileOthersWrite) {
  const std::uint64_t seed = seed_from_environment(73);
  SCOPED_TRACE(seed_text(seed));
  auto map = store_->create_hash_map("h", {.partitions = 1});
  ASSERT_TRUE(map);
  std::atomic<bool> ended{false};
  struct AtEnd {
    std::atomic<bool>& flag;
    ~AtEnd() { flag = true; }
  };
  {
    std::vector<std::jthread> writing;
    for (std::uint32_t i = 0; i < kWriters; ++i) {
      writing.emplace_back([&, i, own = *map]() mutable {
        Random random(seed + i);
        std::uint64_t known = kKeys / 3;
        while (!ended) {
          known = std::min(known + 1, kKeys / kWriters);
          advance(own, random.below(known) * kWriters + i);
        }
      });
    }
    const AtEnd at_end{ended};  // before the threads are waited for
    Random random(seed + 100);
    const std::uint64_t gets = steps_or(scaled(6'000));
    for (std::uint64_t i = 0; i < gets; ++i) {
      const std::uint64_t number = random.below(kKeys);
      const std::uint64_t before = progress_[number].done;
      const auto found = map->get(read_key(number));
      ASSERT_TRUE(found) << message(found.error());
      std::optional<std::string> value;
      if (*found) value = (*found)->value;
      const std::uint64_t after = progress_[number].begun;
      ASSERT_TRUE(could_be(value, before, after))
          << number << ": " << value.value_or("nothing") << " of " << before << " to " << after;
    }
  }
  EXPECT_GT(traffic().round_trips, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, HashMapReadsConcurrency, ::testing::Values("shm_one_sided"),
                         way_name);

}  // namespace
}  // namespace espalier::test
