// SPDX-License-Identifier: Apache-2.0
// Properties of a reclaimer, as checks that tests run on a correct and on a broken one.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "base/epoch.hpp"
#include "base/epoch_pins.hpp"
#include "base/lease_table.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/reclaimer.hpp"
#include "memory/region.hpp"
#include "memory/testing/version_clock_checks.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {

/// More than snapshots hold in any of these tests, and enough for its store.
inline constexpr std::uint64_t kAmpleBytes = std::uint64_t{256} << 20;

/// An object that only has versions, and records the reclaimer's calls.
class ObjectUnderTest final : public VersionedObject, public ClockUnderTest {
 public:
  ObjectUnderTest(Reclaimer& reclaimer, std::string_view name,
                  std::uint64_t snapshot_bytes_max = kAmpleBytes)
      : reclaimer_(reclaimer) {
    reclaimer_.add(*this, name, clock, snapshot_bytes_max);
  }
  ~ObjectUnderTest() { reclaimer_.forget(*this); }
  ObjectUnderTest(const ObjectUnderTest&) = delete;
  ObjectUnderTest& operator=(const ObjectUnderTest&) = delete;

  void release_id(std::uint32_t id) noexcept override {
    last_released_id = id;
    if (superseded != nullptr) buffer_was_live = base::load_shared<std::uint64_t>(superseded) != 0;
  }
  void buffer_freed(SizeClass size_class, BufferCache& cache) noexcept override {
    last_freed_class = size_class;
    if (takes_freed) taken = cache.allocate(size_class).value_or(0);
  }

  std::uint32_t last_released_id = 0;
  SizeClass last_freed_class = kClasses;
  const std::byte* superseded = nullptr;  // of the buffer with the id
  bool buffer_was_live = false;           // when the id was released
  bool takes_freed = false;               // takes from the cache a buffer for each that comes free
  std::uint64_t taken = 0;                // where the last one lies

 private:
  Reclaimer& reclaimer_;
};

/// A store with one object, and buffers that are retired without ever having held anything.
class ReclaimerUnderTest {
 public:
  static constexpr SizeClass kClass = node_class_of(8192);

  explicit ReclaimerUnderTest(std::uint64_t object_bytes_max = kAmpleBytes,
                              std::uint64_t bytes_max = kAmpleBytes)
      : region(*Region::reserve({.bytes_max = bytes_max, .huge_pages = false})),
        object(reclaimer, "object", object_bytes_max) {}

  /// A buffer that is in use.
  std::uint64_t allocate() {
    const std::uint64_t offset = *cache.allocate(kClass);
    base::store_shared<std::uint64_t>(superseded(offset), wire::kLive);
    return offset;
  }
  /// Retires a fresh buffer at `version`; returns where it lies.
  std::uint64_t retire(std::uint64_t version) { return retire(object, version); }
  std::uint64_t retire(VersionedObject& of, std::uint64_t version) {
    const std::uint64_t offset = allocate();
    retire(of, Retired{offset, version, kClass, 0});
    return offset;
  }
  void retire(VersionedObject& of, const Retired& one) {
    EXPECT_TRUE(stock.reserve(1));
    reclaimer.retire(of, stock, {&one, 1});
  }
  /// Collects as often as it takes for what can be freed to be freed.
  void collect() {
    for (int i = 0; i < 4; ++i) reclaimer.collect(cache);
  }
  [[nodiscard]] bool freed(std::uint64_t offset) {
    return base::load_shared<std::uint64_t>(superseded(offset)) == 0;
  }
  /// Where a buffer says whether it is live.
  [[nodiscard]] std::byte* superseded(std::uint64_t offset) {
    return pool.at(offset) + offsetof(wire::BufferHeader, superseded);
  }
  base::EpochSlot join() { return *epochs.join(); }

  Region region;
  BufferPool pool{region};
  base::EpochTable epochs = base::EpochTable::create(region.header(), 16);
  base::LeaseTable leases{epochs};
  base::EpochPins epoch_pins;
  Reclaimer reclaimer{pool, epochs, leases, epoch_pins,
                      region.limit_bytes() / Reclaimer::kSnapshotShare};
  BufferCache cache{pool};
  RetiredStock stock;
  ObjectUnderTest object;
};

/// Whether a buffer stays until the version that ended it is released, although no reader is there
/// now, and still from a reader that came before that.
inline bool waits_for_the_release() {
  ReclaimerUnderTest under;
  VersionClock& clock = under.object.clock;
  const std::uint64_t version = clock.take();
  const std::uint64_t offset = under.retire(version);
  under.collect();
  auto reader = under.join();
  reader.enter();  // it reads at a version before the one that is still open
  clock.done(version);
  under.collect();
  const bool kept = !under.freed(offset);
  reader.exit();
  under.collect();
  return kept && under.freed(offset);
}

/// Whether a buffer stays for a snapshot that may need it, and goes when that does.
inline bool keeps_what_snapshots_need() {
  ReclaimerUnderTest under;
  const auto held = under.reclaimer.hold(under.object, under.object.clock.released());
  const std::uint64_t offset = under.retire(under.object.write());
  under.collect();
  const bool kept = !under.freed(offset);
  under.reclaimer.drop(under.object, held);
  under.collect();
  return kept && under.freed(offset);
}

/// Whether snapshots expire for a write that needs memory, the oldest first, and no more of them
/// than that takes.
inline bool gives_what_snapshots_hold() {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const auto retire_some = [&] {
    std::uint64_t offset = 0;
    for (std::uint64_t bytes = 0; bytes < Reclaimer::kDueBytes;
         bytes += class_bytes(under.kClass)) {
      offset = under.retire(object.write());
    }
    return offset;
  };
  const auto first = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t of_first = retire_some();
  const auto second = under.reclaimer.hold(object, object.clock.released());
  const std::uint64_t of_second = retire_some();
  under.collect();
  bool good = !under.freed(of_first) && !under.freed(of_second);
  good = good && under.reclaimer.expire_oldest();
  under.collect();
  good = good && first->expired && under.freed(of_first);
  good = good && !second->expired && !under.freed(of_second);
  good = good && under.reclaimer.expire_oldest();
  under.collect();
  good = good && second->expired && under.freed(of_second);
  good = good && !under.reclaimer.expire_oldest();  // there is none any more
  under.reclaimer.drop(object, first);
  under.reclaimer.drop(object, second);
  return good;
}

/// Whether what a walk at a version reads stays for it when that version expires, even where it was
/// stamped before the walk began: until then only the version kept it.
inline bool keeps_what_walks_at_expiring_versions_read() {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const auto held = under.reclaimer.hold(object, object.clock.released());
  under.retire(object.write());
  under.collect();  // it is held, so that there is something to expire
  auto before = under.join();
  before.enter();
  const std::uint64_t offset = under.retire(object.write());
  under.collect();  // stamps it; the reader keeps it from being looked at
  auto walk = under.join();
  walk.enter();
  bool good = !held->has_expired();
  good = good && under.reclaimer.expire_oldest();
  before.exit();
  under.collect();
  good = good && !under.freed(offset);
  walk.exit();
  under.collect();
  good = good && under.freed(offset);
  under.reclaimer.drop(object, held);
  return good;
}

/// Whether what a walk has found stays while its epoch is pinned, although the walk has ended.
inline bool keeps_what_is_pinned() {
  ReclaimerUnderTest under;
  auto walk = under.join();
  walk.enter();
  const std::uint64_t offset = under.retire(under.object.write());
  base::EpochPin pin = under.epoch_pins.pin(walk.exposed());
  walk.exit();
  under.collect();
  const bool kept = !under.freed(offset) && under.reclaimer.waits_for_pins();
  pin = base::EpochPin();
  under.collect();
  return kept && under.freed(offset) && !under.reclaimer.waits_for_pins();
}

/// Whether a buffer stays while a lease names an epoch at which it could still be reached, renewed
/// or not, and goes when the lease names a newer one.
inline bool keeps_what_leases_need() {
  ReclaimerUnderTest under;
  const auto lease = under.leases.grant(1, 0);
  const std::uint64_t offset = under.retire(under.object.write());
  under.collect();
  bool good = !under.freed(offset) && under.reclaimer.waits_for_leases();
  good = good && under.reclaimer.bytes_held_by_leases() == class_bytes(under.kClass);
  const auto next = under.leases.renew(lease.id, lease.epoch, 0);  // its first walk goes on
  under.collect();
  good = good && next && !under.freed(offset);
  good = good && under.leases.renew(lease.id, *next, 0);
  under.collect();
  good = good && under.freed(offset) && !under.reclaimer.waits_for_leases();
  under.leases.end(lease.id);
  return good;
}

}  // namespace espalier::memory
