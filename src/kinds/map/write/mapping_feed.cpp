// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/mapping_feed.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/places.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::tree {
namespace {

const std::uint32_t kClass = memory::table_class_of(wire::kFeedBytes);
constexpr std::size_t kTail = offsetof(wire::FeedHeader, tail);
constexpr std::size_t kGaps = offsetof(wire::FeedHeader, gaps);

void make_ring(std::byte* ring, std::uint32_t map_id) {
  wire::FeedHeader fields{};
  fields.map_id = map_id;
  fields.magic = wire::kFeedMagic;
  fields.format = wire::kFeedFormat;
  fields.entries = wire::kFeedEntries;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&fields);
  constexpr std::size_t kHead = sizeof(wire::NodeHeader);
  static_assert(kHead == sizeof fields);
  write_shared_head(ring, map_id, bytes);
  std::memset(ring + kHead, 0, wire::kFeedBytes - kHead);
  go_live(ring, wire::kNoNode);
}

}  // namespace

void MappingFeed::attach(memory::Region& region, memory::BufferPool& pool, std::uint32_t map_id) {
  region_ = &region;
  pool_ = &pool;
  map_id_ = map_id;
}

void MappingFeed::destroy() {
  ring_.store(nullptr, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (offset_ != 0) pool_->release(offset_, kClass);
  offset_ = 0;
}

Result<wire::FeedPlace> MappingFeed::add_follower() {
  const std::lock_guard lock(mutex_);
  if (followers_ == kFollowersMax) return base::full(base::Places::feed_followers, kFollowersMax);
  if (offset_ == 0) {
    const auto made = pool_->allocate(kClass);
    if (!made) return std::unexpected(made.error());
    offset_ = *made;
    make_ring(region_->at(offset_), map_id_);
  }
  std::byte* const ring = region_->at(offset_);
  if (followers_++ == 0) {
    base::shared<std::uint64_t>(ring + kGaps).fetch_add(1, std::memory_order_release);
    ring_.store(ring, std::memory_order_release);
    // A writer that found the feed off has stored its change in the page table by now. Without
    // asymmetric barriers, a change of this very moment may be missed, which costs a follower time.
    base::rare_barrier(base::register_asymmetric_barriers());
  }
  const auto generation =
      base::load_shared<std::uint32_t>(ring + offsetof(wire::FeedHeader, generation));
  return wire::FeedPlace{offset_, generation, wire::kFeedEntries};
}

void MappingFeed::remove_follower() {
  const std::lock_guard lock(mutex_);
  ESPALIER_ASSERT(followers_ != 0);
  if (--followers_ == 0) ring_.store(nullptr, std::memory_order_relaxed);
}

std::uint32_t MappingFeed::followers() const {
  const std::lock_guard lock(mutex_);
  return followers_;
}

MappingFeed::Numbers MappingFeed::numbers() const {
  const std::lock_guard lock(mutex_);
  if (offset_ == 0) return {};
  const std::byte* const ring = region_->at(offset_);
  return {base::load_shared<std::uint64_t>(ring + kTail),
          base::load_shared<std::uint64_t>(ring + kGaps), followers_};
}

std::uint64_t MappingFeed::offset() const {
  const std::lock_guard lock(mutex_);
  return offset_;
}

void MappingFeed::append(std::byte* ring, wire::Lid lid, wire::Ref ref,
                         std::uint64_t version) noexcept {
  const std::uint64_t index =
      base::shared<std::uint64_t>(ring + kTail).fetch_add(1, std::memory_order_relaxed);
  std::byte* const at =
      ring + sizeof(wire::FeedHeader) + index % wire::kFeedEntries * sizeof(wire::FeedEntry);
  const auto sequence = base::shared<std::uint64_t>(at + offsetof(wire::FeedEntry, sequence));
  std::uint64_t old = sequence.load(std::memory_order_relaxed);
  const bool taken = old % 2 != 0 || old > wire::feed_claimed(index);
  if (taken ||
      !sequence.compare_exchange_strong(old, wire::feed_claimed(index), std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
    base::shared<std::uint64_t>(ring + kGaps).fetch_add(1, std::memory_order_release);
    return;
  }
  base::release_fence();  // a reader of any of the words also sees the slot claimed
  wire::FeedEntry entry{wire::feed_published(index), ref.bits, version, lid, 0};
  entry.check = wire::feed_check(entry);
  reached(Moment::feed_claimed);
  base::store_shared<std::uint64_t>(at + offsetof(wire::FeedEntry, ref), entry.ref);
  base::store_shared<std::uint64_t>(at + offsetof(wire::FeedEntry, version), entry.version);
  base::store_shared<std::uint32_t>(at + offsetof(wire::FeedEntry, lid), entry.lid);
  base::store_shared<std::uint32_t>(at + offsetof(wire::FeedEntry, check), entry.check);
  sequence.store(entry.sequence, std::memory_order_release);
}

}  // namespace espalier::tree
