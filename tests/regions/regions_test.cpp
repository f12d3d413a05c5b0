// SPDX-License-Identifier: Apache-2.0
// Regions of this process and of a node through one handle: every call with the same answers and
// errors, by calls and by the client's own READs, WRITEs and atomics.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/region.hpp"
#include "espalier/sequencer.hpp"
#include "kinds/region/region_object.hpp"
#include "tests/support/node_fixture.hpp"
#include "wire/samples.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kWriteTimeoutNs = 120'000'000'000;  // only a machine that hangs
constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();
constexpr const char* kRegionWays[] = {"embedded", "unix",      "shm",   "shm_send",
                                       "roce",     "roce_send", "memif", "ofi"};

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}

std::vector<std::byte> bytes_of(const Region& region, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> read(bytes);
  const auto done = region.read(offset, read);
  EXPECT_TRUE(done) << message(done.error());
  return read;
}

class RegionsOverEachWay : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_embedded()) {
      store_.emplace(
          *Store::open({.memory_bytes_max = std::uint64_t{64} << 20, .huge_pages = false}));
      return;
    }
    config_.memory.limit = std::uint64_t{64} << 20;
    reach_by(GetParam());
    start();
    ASSERT_FALSE(HasFatalFailure());
    store_.emplace(connect());
  }
  [[nodiscard]] static bool is_embedded() { return std::string(GetParam()) == "embedded"; }
  [[nodiscard]] const catalog::Catalog& objects() const {
    return is_embedded() ? *client::StoreImpl::of(*store_).channel()->own_objects()
                         : node_->catalog();
  }
  [[nodiscard]] std::shared_ptr<region::RegionObject> object(const std::string& name) const {
    return objects().open<region::RegionObject>(name).value();
  }
  Region make(const std::string& name, std::uint64_t bytes) {
    const auto made = store_->create_region(name, bytes);
    EXPECT_TRUE(made) << message(made.error());
    return *made;
  }

  std::optional<Store> store_;
};

TEST_P(RegionsOverEachWay, AreReadAndWrittenByOffset) {
  Region made = make("r", 300'000);
  EXPECT_EQ(made.name(), "r");
  EXPECT_EQ(made.bytes(), 300'000u);
  EXPECT_EQ(bytes_of(made, 0, 300'000), std::vector<std::byte>(300'000));
  const auto opened = store_->open_region("r");
  ASSERT_TRUE(opened) << message(opened.error());
  base::Random random(base::seed_from_environment(5));
  std::vector<std::byte> model(300'000);
  for (int i = 0; i < 60; ++i) {
    const std::size_t offset = random.below(300'001);
    const std::size_t most = i % 10 == 0 ? 300'000 : 100;
    std::vector<std::byte> part(random.below(std::min(most, 300'000 - offset) + 1));
    for (std::byte& byte : part) byte = static_cast<std::byte>(random.below(256));
    const auto done = made.write(offset, part);
    ASSERT_TRUE(done) << message(done.error());
    std::copy(part.begin(), part.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
    const std::size_t from = random.below(300'001);
    const std::size_t bytes = random.below(300'001 - from);
    const auto read = bytes_of(*opened, from, bytes);
    ASSERT_TRUE(
        std::equal(read.begin(), read.end(), model.begin() + static_cast<std::ptrdiff_t>(from)));
  }
}

TEST_P(RegionsOverEachWay, HaveAtomics) {
  Region made = make("r", 24);
  EXPECT_EQ(made.fetch_add(16, 5), 0u);
  EXPECT_EQ(made.fetch_add(16, kMost64), 5u);
  EXPECT_EQ(made.compare_swap(16, 3, 9), 4u);
  EXPECT_EQ(made.compare_swap(16, 4, 9), 4u);
  EXPECT_EQ(made.fetch_add(16, 0), 9u);
  EXPECT_EQ(made.fetch_add(8, 0), 0u);
}

TEST_P(RegionsOverEachWay, SayWhichPlacesCannotBe) {
  Region made = make("r", 20);
  std::array<std::byte, 8> word{};
  const Error beyond{Code::invalid_argument, 0, Region::kBeyond};
  const Error misaligned{Code::invalid_argument, 0, Region::kMisaligned};
  for (const std::uint64_t far : {std::uint64_t{13}, std::uint64_t{20}, kMost64 - 7, kMost64}) {
    EXPECT_EQ(error_of(made.read(far, word)), beyond);
    EXPECT_EQ(error_of(made.write(far, word)), beyond);
  }
  EXPECT_EQ(error_of(made.fetch_add(16, 1)), beyond);
  EXPECT_EQ(error_of(made.compare_swap(kMost64 - 7, 0, 1)), beyond);
  EXPECT_EQ(error_of(made.fetch_add(4, 1)), misaligned);
  EXPECT_EQ(error_of(made.compare_swap(kMost64, 0, 1)), misaligned);
  EXPECT_TRUE(made.read(20, {}));
  EXPECT_EQ(bytes_of(made, 0, 20), std::vector<std::byte>(20));
}

TEST_P(RegionsOverEachWay, AreObjectsWithNamesOfAll) {
  const std::uint64_t limit = std::uint64_t{64} << 20;
  make("a", 1);
  make("b", 5000);
  ASSERT_TRUE(store_->create_sequencer("s"));
  constexpr auto kRegion = static_cast<std::uint32_t>(ObjectKind::region);
  constexpr auto kSequencer = static_cast<std::uint32_t>(ObjectKind::sequencer);
  EXPECT_EQ(error_of(store_->create_region("a", 8)), (Error{Code::already_exists, 0, kRegion}));
  EXPECT_EQ(error_of(store_->create_region("s", 8)), (Error{Code::already_exists, 0, kSequencer}));
  EXPECT_EQ(error_of(store_->open_region("s")), (Error{Code::wrong_kind, 0, kSequencer}));
  EXPECT_EQ(error_of(store_->open_sequencer("a")), (Error{Code::wrong_kind, 0, kRegion}));
  EXPECT_EQ(error_of(store_->drop_region("s")), (Error{Code::wrong_kind, 0, kSequencer}));
  EXPECT_EQ(error_of(store_->open_region("none")).code, Code::not_found);
  EXPECT_EQ(error_of(store_->drop_region("none")).code, Code::not_found);
  EXPECT_EQ(error_of(store_->create_region("", 8)).code, Code::invalid_argument);
  EXPECT_EQ(error_of(store_->create_region("empty", 0)).code, Code::invalid_argument);
  EXPECT_EQ(error_of(store_->create_region("large", limit)).code, Code::out_of_memory);
  EXPECT_EQ(error_of(store_->create_region("larger", kMost64)).code, Code::out_of_memory);
  const auto all = store_->regions();
  ASSERT_TRUE(all) << message(all.error());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "a");
  EXPECT_EQ((*all)[0].bytes, 1u);
  EXPECT_EQ((*all)[1].name, "b");
  EXPECT_EQ((*all)[1].bytes, 5000u);
  const auto sampled =
      channel::samples(*client::StoreImpl::of(*store_).channel(), {256, 0, 0, 0}, "b");
  ASSERT_TRUE(sampled && sampled->objects.size() == 1);
  EXPECT_EQ(sampled->objects[0].samples.at(0).value, 5000u);
}

TEST_P(RegionsOverEachWay, AreGoneOnceTheyAreDropped) {
  Region made = make("r", 64);
  ASSERT_TRUE(made.fetch_add(0, 7));  // so that there is a key, where there is one
  ASSERT_TRUE(store_->drop_region("r"));
  std::array<std::byte, 8> word{};
  EXPECT_EQ(error_of(made.read(0, word)).code, Code::not_found);
  EXPECT_EQ(error_of(made.write(0, word)).code, Code::not_found);
  EXPECT_EQ(error_of(made.fetch_add(0, 1)).code, Code::not_found);
  EXPECT_EQ(error_of(made.compare_swap(0, 7, 1)).code, Code::not_found);
  Region another = make("r", 64);
  EXPECT_EQ(error_of(made.fetch_add(0, 1)).code, Code::not_found) << "it is not the younger one";
  EXPECT_EQ(another.fetch_add(0, 1), 0u);
}

TEST_P(RegionsOverEachWay, TakeOfTheStoresLimitWhileTheyAreThere) {
  const auto taken = [&] {
    return is_embedded() ? store_->memory_bytes().value() : node_->memory_bytes();
  };
  const std::uint64_t before = taken();
  {
    const Region made = make("r", std::uint64_t{8} << 20);
    EXPECT_EQ(taken(), before + (std::uint64_t{8} << 20));
    ASSERT_TRUE(store_->drop_region("r"));
  }
  EXPECT_EQ(taken(), before);
}

INSTANTIATE_TEST_SUITE_P(Ways, RegionsOverEachWay, ::testing::ValuesIn(kRegionWays), way_name);

// --- several clients -----------------------------------------------------------------------------

class RegionsConcurrency : public RegionsOverEachWay {};

// All atomics go through one unit, by the client's verbs, by its calls, and by the node.
TEST_P(RegionsConcurrency, AddsOfAllWaysAreOnWordsOfOneUnit) {
  constexpr std::uint64_t kEach = 300;
  make("r", 64);
  std::vector<Store> connected;
  if (!is_embedded()) {
    connected.push_back(*Store::connect("unix:" + socket()));
    connected.push_back(connect());
  }
  std::vector<const Store*> stores{&*store_};
  for (const Store& store : connected) stores.push_back(&store);
  {
    std::vector<std::jthread> threads;
    for (const Store* const store : stores) {
      threads.emplace_back([store] {
        auto region = store->open_region("r");
        ASSERT_TRUE(region) << message(region.error());
        for (std::uint64_t i = 0; i < kEach; ++i) {
          const auto before = region->fetch_add(0, 1);
          ASSERT_TRUE(before) << message(before.error());
          for (std::uint64_t seen = 0;;) {
            const auto was = region->compare_swap(8, seen, seen + 1);
            ASSERT_TRUE(was) << message(was.error());
            if (*was == seen) break;
            seen = *was;
          }
        }
      });
    }
    const auto own = object("r");
    for (std::uint64_t i = 0; i < kEach; ++i) ASSERT_TRUE(own->fetch_add(0, 1));
  }
  EXPECT_EQ(object("r")->fetch_add(0, 0), (stores.size() + 1) * kEach);
  EXPECT_EQ(object("r")->fetch_add(8, 0), stores.size() * kEach);
}

// A client in the middle of writes when the region is dropped gets that error, and the next region
// of the name has none of its writes.
TEST_P(RegionsConcurrency, WritersOfADroppedRegionReachNoYoungerOne) {
  for (int round = 0; round < 5; ++round) {
    make("r", 4096);
    std::atomic<int> writers{0};  // that have written to the older one
    std::atomic<bool> stopping{false};
    const auto write = [&] {
      std::optional<Store> own;
      if (!is_embedded()) own.emplace(connect());
      auto region = (own ? *own : *store_).open_region("r");
      ASSERT_TRUE(region) << message(region.error());
      const std::vector<std::byte> ones(64, std::byte{1});
      for (bool first = true; !stopping; first = false) {
        const auto done = region->write(8, ones);
        if (!done) {
          EXPECT_EQ(done.error().code, Code::not_found) << message(done.error());
          return;
        }
        if (first) ++writers;
      }
    };
    std::atomic<int> writers_left{2};
    const auto write_and_end = [&] {
      write();
      --writers_left;
    };
    std::jthread first(write_and_end);
    std::jthread second(write_and_end);
    const base::Stopwatch watch;
    while (writers < 2 && watch.elapsed_ns() < kWriteTimeoutNs) std::this_thread::yield();
    EXPECT_TRUE(store_->drop_region("r"));
    make("r", 4096);
    while (writers_left != 0 && watch.elapsed_ns() < kWriteTimeoutNs) std::this_thread::yield();
    stopping = true;
    first.join();
    second.join();
    EXPECT_EQ(writers_left, 0) << "it goes on";
    EXPECT_EQ(bytes_of(*store_->open_region("r"), 0, 4096), std::vector<std::byte>(4096));
    ASSERT_TRUE(store_->drop_region("r"));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RegionsConcurrency,
                         ::testing::Values("embedded", "unix", "shm", "roce"), way_name);

}  // namespace
}  // namespace espalier::test
