// SPDX-License-Identifier: Apache-2.0
#include "memory/region.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "memory/address_range.hpp"
#include "memory/lazy_array.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kRangeBytesMax = (wire::kBlockMask + 1) * wire::kBlockBytes;
constexpr std::uint64_t kExtentsMin = 2;  // the header and one to hand out
// Of a small store: each class takes an extent of its own.
constexpr std::uint64_t kExtentsSpare = 64;

}  // namespace

/// Which memory is taken, and how it is brought.
class Region::Extents {
 public:
  Extents(AddressRange range, std::uint64_t limit_bytes, PageKind pages)
      : range_(std::move(range)),
        limit_(limit_bytes),
        pages_(pages),
        taken_slabs_(range_.bytes() / kSlabBytes / 64 + 1) {}

  [[nodiscard]] const AddressRange& range() const { return range_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] std::uint64_t end() const { return end_.load(std::memory_order_relaxed); }

  /// The header's extent.
  [[nodiscard]] bool take_header() {
    if (!range_.open(0, kExtentBytes)) return false;
    mark(0, kExtentBytes, true);
    end_.store(kExtentBytes, std::memory_order_relaxed);
    taken_.store(kExtentBytes, std::memory_order_relaxed);
    return true;
  }

  /// False: the limit, or the end of the addresses, is reached.
  [[nodiscard]] bool take(std::uint64_t bytes, std::uint64_t& offset) {
    if (!charge(bytes)) return false;
    if (!extend(bytes, offset)) {
      uncharge(bytes);
      return false;
    }
    bring(offset, bytes);
    mark(offset, bytes, true);
    return true;
  }

  [[nodiscard]] bool set_aside(std::uint64_t& offset) {
    if (!extend(kExtentBytes, offset)) return false;
    // What is taken in parts would else fill a huge page at its first touch.
    if (pages_ != PageKind::small) (void)range_.advise(offset, kExtentBytes, MADV_NOHUGEPAGE);
    return true;
  }

  [[nodiscard]] bool retake(std::uint64_t offset, std::uint64_t bytes) {
    if (!charge(bytes)) return false;
    if (!range_.open(offset, bytes)) {
      uncharge(bytes);
      return false;
    }
    bring(offset, bytes);
    mark(offset, bytes, true);
    return true;
  }

  void give(std::uint64_t offset, std::uint64_t bytes) {
    ESPALIER_ASSERT(all_taken(offset, bytes));
    mark(offset, bytes, false);
    if (pages_ == PageKind::explicit_huge && bytes % kExtentBytes == 0) {
      range_.clear_explicit(offset, bytes);
    } else {
      range_.clear(offset, bytes);
    }
    uncharge(bytes);
  }

 private:
  [[nodiscard]] bool charge(std::uint64_t bytes) {
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  void uncharge(std::uint64_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Addresses that nothing ever had.
  [[nodiscard]] bool extend(std::uint64_t bytes, std::uint64_t& offset) {
    const std::lock_guard lock(mutex_);
    offset = end_.load(std::memory_order_relaxed);
    if (bytes > range_.bytes() - offset || !range_.open(offset, bytes)) return false;
    end_.store(offset + bytes, std::memory_order_relaxed);
    return true;
  }

  void bring(std::uint64_t offset, std::uint64_t bytes) {
    // Where explicit pages have become too few meanwhile, small ones serve.
    if (pages_ == PageKind::explicit_huge && bytes % kExtentBytes == 0) {
      (void)range_.map_explicit(offset, bytes);
    }
  }

  [[nodiscard]] bool all_taken(std::uint64_t offset, std::uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    if (offset + bytes > end_.load(std::memory_order_relaxed)) return false;
    for (std::uint64_t i = offset / kSlabBytes; i < (offset + bytes) / kSlabBytes; ++i) {
      if (((taken_slabs_[i / 64] >> (i % 64)) & 1) == 0) return false;
    }
    return true;
  }

  void mark(std::uint64_t offset, std::uint64_t bytes, bool taken) {
    const std::lock_guard lock(mutex_);
    for (std::uint64_t i = offset / kSlabBytes; i < (offset + bytes) / kSlabBytes; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      ESPALIER_ASSERT(((taken_slabs_[i / 64] & bit) != 0) != taken);
      taken_slabs_[i / 64] ^= bit;
    }
  }

  AddressRange range_;
  const std::uint64_t limit_;
  const PageKind pages_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> end_{0};
  mutable std::mutex mutex_;
  LazyArray<std::uint64_t> taken_slabs_;  // bits
};

Region::Region() = default;

Region::Region(Region&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      page_kind_(other.page_kind_),
      page_message_(std::move(other.page_message_)),
      extents_(std::move(other.extents_)) {}

Region& Region::operator=(Region&& other) noexcept {
  // `other` takes what was ours and unmaps it.
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(page_kind_, other.page_kind_);
  std::swap(page_message_, other.page_message_);
  std::swap(extents_, other.extents_);
  return *this;
}

Region::~Region() = default;

Result<Region> Region::reserve(const RegionOptions& options) {
  if (options.bytes_max > kRangeBytesMax) return fail(Code::invalid_argument);
  const std::uint64_t limit =
      std::max(kExtentsMin, (options.bytes_max + kExtentBytes - 1) / kExtentBytes);
  std::uint64_t count =
      std::min(kAddressesPerLimit * limit + kExtentsSpare, kRangeBytesMax / kExtentBytes);

  const PageFacts facts = read_page_facts();
  PageChoice choice = choose_pages(facts, limit, options.huge_pages);
  auto range = AddressRange::private_memory(count * kExtentBytes, facts.strict_overcommit);
  while (!range && count > limit) {  // addresses are rationed here (ulimit -v)
    count = std::max(count / 2, limit);
    range = AddressRange::private_memory(count * kExtentBytes, facts.strict_overcommit);
  }
  if (!range) return std::unexpected(range.error());

  Region region;
  region.base_ = range->base();
  region.bytes_ = range->bytes();
  if (choice.kind == PageKind::transparent && !range->advise(0, region.bytes_, MADV_HUGEPAGE)) {
    choice = {PageKind::small, "4 KiB pages (the kernel refused transparent huge ones)"};
  } else if (choice.kind == PageKind::small) {
    // "always" would give huge pages to those who did not ask for them; a refusal does no harm.
    (void)range->advise(0, region.bytes_, MADV_NOHUGEPAGE);
  }
  region.page_kind_ = choice.kind;
  region.page_message_ = std::move(choice.message);
  region.extents_ = std::make_unique<Extents>(std::move(*range), limit * kExtentBytes, choice.kind);
  if (!region.extents_->take_header()) return base::refused_by_system();
  return region;
}

Result<std::uint64_t> Region::take(std::uint64_t extents) {
  ESPALIER_ASSERT(extents > 0);
  std::uint64_t offset = 0;
  if (!extents_->take(extents * kExtentBytes, offset)) return out_of_memory();
  return offset;
}

Result<std::uint64_t> Region::set_aside() {
  std::uint64_t offset = 0;
  if (!extents_->set_aside(offset)) return out_of_memory();
  return offset;
}

Result<void> Region::retake(std::uint64_t offset, std::uint64_t bytes) {
  ESPALIER_ASSERT(bytes > 0 && offset >= kExtentBytes && offset % kSlabBytes == 0);
  if (!extents_->retake(offset, bytes)) return out_of_memory();
  return {};
}

void Region::give(std::uint64_t offset, std::uint64_t bytes) {
  ESPALIER_ASSERT(bytes > 0 && offset > 0 && offset % kSlabBytes == 0);
  extents_->give(offset, bytes);
}

std::unexpected<Error> Region::out_of_memory() const {
  const std::uint64_t limit_mib = limit_bytes() >> 20;
  return fail(Code::out_of_memory,
              static_cast<std::uint32_t>(std::min<std::uint64_t>(limit_mib, UINT32_MAX)));
}

std::uint64_t Region::taken_bytes() const { return extents_->taken(); }

std::uint64_t Region::limit_bytes() const { return extents_->limit(); }

std::uint64_t Region::end_offset() const { return extents_->end(); }

}  // namespace espalier::memory
