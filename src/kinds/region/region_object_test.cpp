// SPDX-License-Identifier: Apache-2.0
// Regions of one store: their bytes, what keeps an access from being made, what they take of the
// store's limit, keys, and drops beside writers.
#include "kinds/region/region_object.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "catalog/apply_record.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/region/calls.hpp"
#include "kinds/region/region_files.hpp"
#include "store/store_core.hpp"

namespace espalier::region {
namespace {

constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();

Error beyond() { return {Code::invalid_argument, 0, 1}; }
Error misaligned() { return {Code::invalid_argument, 0, 2}; }

template <class T>
Error error_of(const Result<T>& result) {
  return result ? Error{} : result.error();
}

class Regions : public testing::Test {
 protected:
  std::shared_ptr<RegionObject> make(std::string_view name, std::uint64_t bytes) {
    auto made = create_region(store_.catalog, name, bytes);
    EXPECT_TRUE(made) << message(made.error());
    return made ? *made : nullptr;
  }
  static std::vector<std::byte> bytes_of(const RegionObject& of) {
    std::vector<std::byte> bytes(of.bytes());
    EXPECT_TRUE(of.read(0, bytes));
    return bytes;
  }
  [[nodiscard]] std::uint64_t taken() const { return store_.region.taken_bytes(); }

  tree::StoreCore store_{
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false}), 8};
};

TEST_F(Regions, HoldBytesThatBeginAsZeros) {
  const auto made = make("r", 100);
  EXPECT_EQ(made->bytes(), 100u);
  EXPECT_EQ(bytes_of(*made), std::vector<std::byte>(100));
  base::Random random(base::seed_from_environment(1));
  std::vector<std::byte> model(100);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t offset = random.below(101);
    std::vector<std::byte> part(random.below(101 - offset));
    for (std::byte& byte : part) byte = static_cast<std::byte>(random.below(256));
    ASSERT_TRUE(made->write(offset, part));
    std::copy(part.begin(), part.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
    ASSERT_EQ(bytes_of(*made), model);
  }
}

// Longer than one pass of the gate, from a place that is no word's beginning.
TEST_F(Regions, LongRangesAreOfOnePiece) {
  const auto made = make("r", 1 << 20);
  std::vector<std::byte> all((1 << 20) - 3);
  base::Random random(base::seed_from_environment(2));
  for (std::byte& byte : all) byte = static_cast<std::byte>(random.below(256));
  ASSERT_TRUE(made->write(3, all));
  std::vector<std::byte> back(all.size());
  ASSERT_TRUE(made->read(3, back));
  EXPECT_EQ(back, all);
}

TEST_F(Regions, AtomicsAreOnWords) {
  const auto made = make("r", 24);
  EXPECT_EQ(made->fetch_add(16, 5), 0u);
  EXPECT_EQ(made->fetch_add(16, kMost64), 5u);
  EXPECT_EQ(made->compare_swap(16, 3, 9), 4u);
  EXPECT_EQ(made->compare_swap(16, 4, 9), 4u);
  EXPECT_EQ(made->compare_swap(16, 9, 0), 9u);
  EXPECT_EQ(made->fetch_add(8, 1), 0u);
}

TEST_F(Regions, NothingIsReachedBeyondTheirBytes) {
  const auto made = make("r", 20);
  std::array<std::byte, 8> word{};
  const std::span<std::byte> none;
  EXPECT_TRUE(made->read(20, none));
  EXPECT_TRUE(made->write(12, word));
  for (const std::uint64_t far :
       {std::uint64_t{13}, std::uint64_t{20}, std::uint64_t{21}, kMost64 - 7, kMost64}) {
    EXPECT_EQ(error_of(made->read(far, word)), beyond()) << far;
    EXPECT_EQ(error_of(made->write(far, word)), beyond()) << far;
  }
  EXPECT_EQ(error_of(made->read(21, none)), beyond());
  for (const std::uint64_t far : {std::uint64_t{16}, std::uint64_t{24}, kMost64 - 7}) {
    EXPECT_EQ(error_of(made->fetch_add(far, 1)), beyond()) << far;
    EXPECT_EQ(error_of(made->compare_swap(far, 0, 1)), beyond()) << far;
  }
  for (const std::uint64_t odd : {std::uint64_t{1}, std::uint64_t{4}, kMost64}) {
    EXPECT_EQ(error_of(made->fetch_add(odd, 1)), misaligned()) << odd;
    EXPECT_EQ(error_of(made->compare_swap(odd, 0, 1)), misaligned()) << odd;
  }
  EXPECT_EQ(bytes_of(*made), std::vector<std::byte>(20));
}

TEST_F(Regions, CountAgainstTheLimitOfTheStore) {
  const std::uint64_t before = taken();
  const std::uint64_t held = store_.region.memory_bytes();
  auto made = make("r", 5000);
  EXPECT_EQ(taken(), before + 8192);
  EXPECT_EQ(store_.region.memory_bytes(), held + 8192);
  EXPECT_GE(made->numbers().memory_bytes, 8192u);
  const std::uint64_t left = store_.region.limit_bytes() - taken();
  EXPECT_EQ(error_of(create_region(store_.catalog, "s", left + 1)),
            (Error{Code::out_of_memory, 0, 64}));
  EXPECT_EQ(error_of(create_region(store_.catalog, "s", kMost64)),
            (Error{Code::out_of_memory, 0, 64}));
  EXPECT_EQ(error_of(create_region(store_.catalog, "s", 0)).code, Code::invalid_argument);
  EXPECT_EQ(taken(), before + 8192) << "what failed took nothing";
  ASSERT_NE(make("s", left), nullptr);
  EXPECT_FALSE(store_.region.take(1));
  ASSERT_TRUE(store_.catalog.drop("s"));
  ASSERT_TRUE(store_.catalog.drop("r"));
  EXPECT_EQ(taken(), before + 8192) << "it is still held";
  made.reset();
  EXPECT_EQ(taken(), before);
  EXPECT_EQ(store_.region.memory_bytes(), held);
}

TEST_F(Regions, AreSoManyAtMost) {
  std::vector<std::shared_ptr<RegionObject>> all;
  const std::uint32_t before = RegionObject::live();
  for (std::uint32_t i = before; i < RegionObject::kMost; ++i) {
    auto made = create_region(store_.catalog, std::to_string(i), 1);
    if (!made && made.error().code == Code::system) break;  // no more descriptors for this process
    ASSERT_TRUE(made) << message(made.error());
    all.push_back(std::move(*made));
  }
  const auto more = create_region(store_.catalog, "more", 1);
  ASSERT_FALSE(more);
  EXPECT_TRUE(more.error().code == Code::system ||
              more.error() == (Error{Code::out_of_memory, 0, RegionObject::kMost}));
}

TEST_F(Regions, AreNotThereAnyMoreOnceTheyAreDropped) {
  const auto made = make("r", 64);
  ASSERT_TRUE(made->fetch_add(0, 7));
  ASSERT_TRUE(store_.catalog.drop("r", ObjectKind::region));
  std::array<std::byte, 8> word{};
  const Error gone{Code::not_found, 0, made->id()};
  EXPECT_EQ(error_of(made->read(0, word)), gone);
  EXPECT_EQ(error_of(made->write(0, word)), gone);
  EXPECT_EQ(error_of(made->fetch_add(0, 1)), gone);
  EXPECT_EQ(error_of(made->compare_swap(0, 7, 1)), gone);
  const auto another = make("r", 64);
  EXPECT_EQ(bytes_of(*another), std::vector<std::byte>(64));
  EXPECT_NE(another->id(), made->id());
}

class RegionKeys : public Regions {
 protected:
  static constexpr fabric::RemoteRights kRights =
      fabric::RemoteRights::read | fabric::RemoteRights::write | fabric::RemoteRights::atomic;
  [[nodiscard]] bool good(const fabric::RemoteRegion& remote, fabric::Domain domain,
                          fabric::RemoteRights rights = fabric::RemoteRights::write) {
    fabric::RegionTable::Reader reader(*table_);
    reader.enter();
    const bool found = reader.find(remote.key, remote.base, 8, rights, domain) != nullptr;
    reader.leave();
    return found;
  }
  std::shared_ptr<fabric::RegionTable> table_ = *fabric::RegionTable::create(7);
};

TEST_F(RegionKeys, AreOfOneSessionUntilItEndsOrTheRegionIsDropped) {
  const auto made = make("r", 64);
  auto one = made->offer(*table_, kRights, 1);
  auto two = made->offer(*table_, kRights, 2);
  ASSERT_TRUE(one && two);
  const fabric::RemoteRegion first = one->remote();
  const fabric::RemoteRegion second = two->remote();
  EXPECT_EQ(first.bytes, 64u);
  EXPECT_EQ(first.base % 8, 0u);
  EXPECT_TRUE(good(first, 1) && good(second, 2));
  EXPECT_FALSE(good(first, 2) || good(second, 1)) << "each is of its own domain";
  EXPECT_EQ(made->keys(), 2u);
  one->revoke();
  EXPECT_FALSE(good(first, 1));
  EXPECT_TRUE(good(second, 2));
  EXPECT_EQ(made->keys(), 1u);
  ASSERT_TRUE(store_.catalog.drop("r"));
  EXPECT_FALSE(good(second, 2)) << "before the drop has returned";
  EXPECT_FALSE(good(second, 2, fabric::RemoteRights::read));
  EXPECT_EQ(made->keys(), 0u);
  EXPECT_EQ(error_of(made->offer(*table_, kRights, 1)), (Error{Code::not_found, 0, made->id()}));
  two->revoke();  // which is gone already
}

TEST_F(RegionKeys, KeepNoRegionThatIsGone) {
  const std::uint64_t without = taken();
  auto made = make("r", 64);
  auto key = made->offer(*table_, kRights, 1);
  ASSERT_TRUE(key);
  EXPECT_TRUE(key->good());
  const fabric::RemoteRegion remote = key->remote();
  ASSERT_TRUE(store_.catalog.drop("r"));
  EXPECT_FALSE(key->good());
  made.reset();
  EXPECT_EQ(taken(), without);
  EXPECT_FALSE(key->good() || good(remote, 1));
  key->revoke();
  // A region destroyed with its store was not dropped by a client.
  auto other = RegionObject::make(store_.region, 99, "other", 64).value();
  auto kept = other->offer(*table_, kRights, 1);
  ASSERT_TRUE(kept && good(kept->remote(), 1));
  other.reset();
  EXPECT_FALSE(good(kept->remote(), 1));
}

// The table's revoke() waits for threads that are in the middle of an access by the key.
using RegionKeysConcurrency = RegionKeys;
TEST_F(RegionKeysConcurrency, NoAccessByAKeyGoesOnOnceADropHasReturned) {
  for (int round = 0; round < 50; ++round) {
    const auto made = make("r", 4096);
    auto key = made->offer(*table_, kRights, 1);
    ASSERT_TRUE(key);
    const fabric::RemoteRegion remote = key->remote();
    std::atomic<bool> started{false};
    std::atomic<bool> acknowledged{false};
    std::atomic<bool> late{false};
    std::atomic<bool> stopping{false};
    std::jthread writer([&] {
      fabric::RegionTable::Reader reader(*table_);
      for (bool found = true; found && !stopping;) {
        const bool before = acknowledged.load();
        reader.enter();
        std::byte* const at =
            reader.find(remote.key, remote.base, 8, fabric::RemoteRights::write, 1);
        found = at != nullptr;
        if (found) {
          base::shared<std::uint64_t>(at).fetch_add(1);
          if (before || acknowledged.load()) late = true;
        }
        reader.leave();
        started = true;
      }
    });
    while (!started) std::this_thread::yield();
    const bool dropped = store_.catalog.drop("r").has_value();
    acknowledged = true;
    stopping = !dropped;
    writer.join();
    ASSERT_TRUE(dropped);
    EXPECT_FALSE(late);
  }
}

// The same of this process's own threads, which ask for no key.
class RegionsConcurrency : public Regions {};
TEST_F(RegionsConcurrency, NothingIsWrittenOnceADropHasReturned) {
  constexpr int kWriters = 3;
  for (int round = 0; round < 50; ++round) {
    const auto made = make("r", 4096);
    std::atomic<int> started{0};
    std::atomic<bool> acknowledged{false};
    std::atomic<int> late{0};
    std::atomic<bool> stopping{false};
    bool dropped = false;
    {
      std::vector<std::jthread> writers;
      for (int i = 0; i < kWriters; ++i) {
        writers.emplace_back([&, i] {
          const std::vector<std::byte> bytes(512, std::byte{1});
          for (bool first = true;; first = false) {
            const bool before = acknowledged.load();
            const auto offset = static_cast<std::uint64_t>(i) * 1024;
            const bool done = i == 0 ? made->fetch_add(offset, 1).has_value()
                                     : made->write(offset, bytes).has_value();
            if (first) ++started;
            if (before && done) ++late;
            if (!done || stopping) return;
          }
        });
      }
      while (started < kWriters) std::this_thread::yield();
      dropped = store_.catalog.drop("r").has_value();
      acknowledged = true;
      stopping = !dropped;
    }
    ASSERT_TRUE(dropped);
    EXPECT_EQ(late, 0);
  }
}

TEST_F(RegionsConcurrency, NoAddIsLostAndNoWordIsTorn) {
  const auto made = make("r", 16);
  constexpr std::uint64_t kEach = 2000;
  std::array<std::byte, 8> zeros{};
  std::array<std::byte, 8> ones{};
  ones.fill(std::byte{0xFF});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        for (std::uint64_t round = 0; round < kEach; ++round) {
          ASSERT_TRUE(made->fetch_add(0, 1));
          ASSERT_TRUE(
              made->write(8, (round + static_cast<std::uint64_t>(i)) % 2 == 0 ? ones : zeros));
          std::array<std::byte, 8> seen{};
          ASSERT_TRUE(made->read(8, seen));
          ASSERT_TRUE(seen == zeros || seen == ones);
        }
      });
    }
  }
  EXPECT_EQ(made->fetch_add(0, 0), 3 * kEach);
}

// --- records -------------------------------------------------------------------------------------

// What was written to it makes none: it is made again of zeros.
TEST_F(Regions, AreMadeAgainByTheirRecordsOfZeros) {
  catalog::RecordingSink sink;
  store_.catalog.record_to(&sink);
  ASSERT_TRUE(make("r", 5000)->fetch_add(0, 3));
  ASSERT_NE(make("gone", 64), nullptr);
  ASSERT_TRUE(store_.catalog.drop("gone"));
  store_.catalog.record_to(nullptr);
  EXPECT_EQ(sink.records().size(), 3u);
  tree::StoreCore other{
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false}), 8};
  for (int round = 0; round < 2; ++round) {  // applying again changes nothing
    for (const std::string_view record : sink.records()) {
      ASSERT_TRUE(catalog::apply_record(
          other.catalog, record,
          [&](const catalog::CreatedObject& created) -> Result<void> {
            const auto made = restore_region(other.catalog, created);
            if (!made) return std::unexpected(made.error());
            return {};
          },
          [](const auto&, std::string_view) -> Result<void> { return fail(Code::corrupt); }));
    }
  }
  EXPECT_EQ(other.catalog.names(), std::vector<std::string>{"r"});
  const auto made = other.catalog.open<RegionObject>("r");
  ASSERT_TRUE(made);
  EXPECT_EQ(bytes_of(**made), std::vector<std::byte>(5000));
}

TEST_F(Regions, AFormThatIsNoneIsCorrupt) {
  const Error wrong{Code::corrupt, 0, static_cast<std::uint32_t>(catalog::RedoFault::form)};
  for (const std::string_view form :
       {std::string_view(), std::string_view("\x01\0\0\0\0\0\0", 7),
        std::string_view("\0\0\0\0\0\0\0\0", 8), std::string_view("\x01\0\0\0\0\0\0\0\0", 9)}) {
    EXPECT_EQ(error_of(restore_region(store_.catalog, {ObjectKind::region, 1, "r", form})), wrong);
  }
  EXPECT_EQ(error_of(restore_region(store_.catalog, {ObjectKind::region, 1, "r",
                                                     "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"}))
                .code,
            Code::out_of_memory);
}

TEST_F(Regions, SayWhatTheyAre) {
  const auto made = make("r", 300);
  EXPECT_EQ(made->description(), std::string("\x2c\x01\0\0\0\0\0\0", 8));
  EXPECT_EQ(made->name(), "r");
}

/// On a tmpfs, a model of persistent memory.
class PersistentRegions : public Regions {
 protected:
  PersistentRegions() { open(store_); }
  void open(tree::StoreCore& store) {
    EXPECT_TRUE(store.parts.of<RegionFiles>().open(folder_.string(), true));
  }
  [[nodiscard]] std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_.string());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  static Result<void> restore_into(tree::StoreCore& store, std::string_view record) {
    return catalog::apply_record(
        store.catalog, record,
        [&](const catalog::CreatedObject& created) -> Result<void> {
          const auto restored = restore_region(store.catalog, created);
          return restored ? Result<void>() : std::unexpected(restored.error());
        },
        [](const catalog::RedoHead&, std::string_view) -> Result<void> { return {}; });
  }

  base::TemporaryFolder folder_{"/dev/shm"};
};

TEST_F(PersistentRegions, AreMadeAgainOfWhatTheyHad) {
  catalog::RecordingSink sink;
  store_.catalog.record_to(&sink);
  const auto text = std::as_bytes(std::span("persistent"));
  {
    const auto made = make("r", 5000);
    EXPECT_TRUE(made->is_persistent());
    ASSERT_TRUE(made->write(4093 - text.size(), text));
    EXPECT_EQ(*made->fetch_add(8, 5), 0u);
    EXPECT_EQ(*made->compare_swap(8, 5, 7), 5u);
  }
  store_.catalog.record_to(nullptr);
  const std::string_view record = sink.records().front();
  const auto region_of = [] {
    return *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
  };
  tree::StoreCore other(region_of(), 8);
  open(other);
  ASSERT_TRUE(restore_into(other, record));
  const auto again = *other.catalog.open<RegionObject>("r");
  std::vector<std::byte> found(text.size());
  ASSERT_TRUE(again->read(4093 - text.size(), found));
  EXPECT_TRUE(std::ranges::equal(found, text));
  EXPECT_EQ(*again->fetch_add(8, 0), 7u);

  tree::StoreCore looks(region_of(), 8);
  ASSERT_TRUE(restore_into(looks, record));
  EXPECT_TRUE((*looks.catalog.open<RegionObject>("r"))->lacks_file());
  std::filesystem::resize_file(folder_ / std::to_string(again->id()), 100);
  tree::StoreCore shorter(region_of(), 8);
  open(shorter);
  EXPECT_EQ(error_of(restore_into(shorter, record)).code, Code::corrupt);
}

// The record of a region comes again at each start until a checkpoint has replaced its segment,
// also if a later record has dropped the region and its file is gone.
TEST_F(PersistentRegions, AreRestoredWithoutAFile) {
  catalog::RecordingSink sink;
  store_.catalog.record_to(&sink);
  make("r", 100);
  store_.catalog.record_to(nullptr);
  ASSERT_TRUE(store_.parts.of<RegionFiles>().keep_only({}));
  tree::StoreCore other(
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false}), 8);
  open(other);
  ASSERT_TRUE(restore_into(other, sink.records().front()));
  const auto restored = *other.catalog.open<RegionObject>("r");
  EXPECT_TRUE(restored->is_persistent());
  EXPECT_TRUE(restored->lacks_file());
  EXPECT_EQ(*restored->fetch_add(8, 1), 0u);
  EXPECT_EQ(files(), 0u);
}

TEST_F(PersistentRegions, ADropThatIsAppliedKeepsTheFile) {
  make("r", 100);
  ASSERT_TRUE(store_.catalog.drop("r", ObjectKind::region));
  EXPECT_EQ(files(), 1u) << "the next start decides";
}

TEST_F(PersistentRegions, FilesGoOnceADropIsDurable) {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  store_.catalog.record_to(&sink);
  make("a", 100);
  make("b", 100);
  ASSERT_TRUE(store_.catalog.drop("a", ObjectKind::region));
  make("c", 100);
  EXPECT_EQ(files(), 3u);
  sink.make_durable();
  make("d", 100);
  EXPECT_EQ(files(), 3u);
  ASSERT_TRUE(store_.parts.of<RegionFiles>().keep_only({}));
  EXPECT_EQ(files(), 0u);
  store_.catalog.record_to(nullptr);
}

TEST_F(PersistentRegions, FilesWhoseRegionsMayBeLostAreSetAside) {
  make("r", 100);
  using Leftover = RegionFiles::Leftover;
  ASSERT_TRUE(store_.parts.of<RegionFiles>().keep_only({}, Leftover::set_aside));
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(store_.parts.of<RegionFiles>().keep_only({}));
  EXPECT_EQ(files(), 1u) << "it is no region's file any more";
}

TEST_F(PersistentRegions, HaveNoAtomicsOverAFabric) {
  const auto table = *fabric::RegionTable::create(7);
  const auto made = make("r", 100);
  EXPECT_EQ(
      error_of(made->offer(*table, fabric::RemoteRights::read | fabric::RemoteRights::atomic, 1))
          .code,
      Code::invalid_argument);
  EXPECT_TRUE(made->offer(*table, fabric::RemoteRights::read | fabric::RemoteRights::write, 1));
}

}  // namespace
}  // namespace espalier::region
