// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/page_table.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::tree {
namespace {

const std::uint32_t kPageClass = memory::table_class_of(wire::kTablePageBytes);
const std::uint32_t kDirectoryClass = memory::table_class_of(wire::kDirectoryBytes);
static_assert(wire::kFeedBytes == wire::kDirectoryBytes);  // both use the same size class

// Zeroes a fresh buffer behind its header and makes it live.
void open_buffer(std::byte* buffer, std::size_t bytes, std::uint32_t map_id) {
  constexpr std::byte kZeros[sizeof(wire::NodeHeader)] = {};
  write_shared_head(buffer, map_id, kZeros);
  std::memset(buffer + sizeof kZeros, 0, bytes - sizeof kZeros);
  go_live(buffer, wire::kNoNode);
}

}  // namespace

Result<void> PageTable::create(memory::Region& region, memory::BufferPool& pool,
                               std::uint32_t map_id) {
  region_ = &region;
  pool_ = &pool;
  base_ = region.at(0);
  map_id_ = map_id;
  feed_.attach(region, pool, map_id);
  const auto offset = pool.allocate_or_reclaim(kDirectoryClass);
  if (!offset) return std::unexpected(offset.error());
  directory_offset_ = *offset;
  directory_ = region.at(*offset);
  open_buffer(directory_, wire::kDirectoryBytes, map_id);
  pages_ = wire::kHeaderWords;
  next_ = pages_ << wire::kTablePageShift;
  if (const auto added = add_page(); !added) {
    pool.release(directory_offset_, kDirectoryClass);
    return added;
  }
  return {};
}

void PageTable::destroy() {
  feed_.destroy();
  for (std::uint32_t page = wire::kHeaderWords; page < pages_; ++page) {
    pool_->release(page_offset(page), kPageClass);
  }
  pool_->release(directory_offset_, kDirectoryClass);
  directory_ = nullptr;
}

Result<void> PageTable::add_page() {
  if (pages_ == wire::kDirectoryEntries) return fail(Code::out_of_memory, pages_);
  const auto offset = pool_->allocate(kPageClass);
  if (!offset) return std::unexpected(offset.error());
  open_buffer(region_->at(*offset), wire::kTablePageBytes, map_id_);
  base::store_shared<std::uint64_t>(directory_ + std::size_t{8} * pages_, *offset,
                                    std::memory_order_release);
  ++pages_;
  return {};
}

Result<void> PageTable::reserve(std::uint32_t count) noexcept {
  const std::lock_guard lock(mutex_);
  if (!base::try_reserve(free_, in_use_ + count)) return fail(Code::out_of_memory);
  // A new page has room for thousands of LIDs; the words of its header are skipped.
  while (free_.size() + ((pages_ << wire::kTablePageShift) - next_) < count + wire::kHeaderWords) {
    if (const auto added = add_page(); !added) return added;
  }
  return {};
}

wire::Lid PageTable::allocate() noexcept {
  const std::lock_guard lock(mutex_);
  ++in_use_;
  if (!free_.empty()) {
    const wire::Lid lid = free_.back();
    free_.pop_back();
    return lid;
  }
  while (next_ % wire::kTablePageEntries < wire::kHeaderWords) ++next_;
  ESPALIER_ASSERT(next_ < pages_ << wire::kTablePageShift);
  return next_++;
}

void PageTable::release(wire::Lid lid) noexcept {
  set(lid, {}, 0);
  const std::lock_guard lock(mutex_);
  --in_use_;
  free_.push_back(lid);
}

std::uint64_t PageTable::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> PageTable::buffers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> result;
  result.emplace_back(directory_offset_, kDirectoryClass);
  for (std::uint32_t page = wire::kHeaderWords; page < pages_; ++page) {
    result.emplace_back(page_offset(page), kPageClass);
  }
  if (const std::uint64_t feed = feed_.offset(); feed != 0) {
    result.emplace_back(feed, kDirectoryClass);
  }
  return result;
}

std::uint64_t PageTable::bytes() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t large = feed_.offset() != 0 ? 2 : 1;
  return large * memory::BufferPool::class_bytes(kDirectoryClass) +
         (pages_ - wire::kHeaderWords) * memory::BufferPool::class_bytes(kPageClass);
}

}  // namespace espalier::tree
