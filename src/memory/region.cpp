// SPDX-License-Identifier: Apache-2.0
#include "memory/region.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "memory/collapse.hpp"
#include "memory/region_extents.hpp"
#include "memory/sealed_file.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kRangeBytesMax = (wire::kBlockMask + 1) * wire::kBlockBytes;
constexpr std::uint64_t kExtentsMin = 2;  // the header and one to hand out
// Of a small store: each class takes an extent of its own.
constexpr std::uint64_t kExtentsSpare = 64;

Result<AddressRange> reserve_addresses(const RegionOptions& options, std::uint64_t bytes,
                                       bool strict) {
  if (!options.shared) return AddressRange::private_memory(bytes, strict);
  auto file = create_sealed("espalier-store", bytes);
  if (!file) return std::unexpected(file.error());
  return AddressRange::of_file(std::move(*file), bytes);
}

// What the header's extent bears, the others will.
PageChoice choose_shared_pages(AddressRange& range, bool huge_pages) {
  if (!huge_pages) {
    return {PageKind::small, "4 KiB pages of shared memory (huge pages were not asked for)"};
  }
  if (range.open(0, kExtentBytes)) {
    const auto collapsed = collapse(range, 0);
    if (collapsed) return {PageKind::collapsed, "2 MiB pages of shared memory (MADV_COLLAPSE)"};
    return {PageKind::small,
            "4 KiB pages of shared memory (MADV_COLLAPSE: " +
                std::system_category().message(static_cast<int>(collapsed.error().detail)) + ")"};
  }
  return {PageKind::small, "4 KiB pages of shared memory"};
}

PageChoice choose_private_pages(AddressRange& range, PageChoice choice) {
  if (choice.kind == PageKind::transparent && !range.advise(0, range.bytes(), MADV_HUGEPAGE)) {
    return {PageKind::small, "4 KiB pages (the kernel refused transparent huge ones)"};
  }
  // "always" would give huge pages to mappings that did not ask for them; a refusal does no harm.
  if (choice.kind == PageKind::small) (void)range.advise(0, range.bytes(), MADV_NOHUGEPAGE);
  return choice;
}

}  // namespace

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
  auto range = reserve_addresses(options, count * kExtentBytes, facts.strict_overcommit);
  while (!range && count > limit) {  // addresses are rationed here (ulimit -v)
    count = std::max(count / 2, limit);
    range = reserve_addresses(options, count * kExtentBytes, facts.strict_overcommit);
  }
  if (!range) return std::unexpected(range.error());

  PageChoice choice =
      options.shared ? choose_shared_pages(*range, options.huge_pages)
                     : choose_private_pages(*range, choose_pages(facts, limit, options.huge_pages));
  Region region;
  region.base_ = range->base();
  region.bytes_ = range->bytes();
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

Result<void> Region::charge(std::uint64_t bytes) {
  if (!extents_->charge_elsewhere(bytes)) return out_of_memory();
  return {};
}

void Region::uncharge(std::uint64_t bytes) { extents_->uncharge_elsewhere(bytes); }

std::unexpected<Error> Region::out_of_memory() const {
  const std::uint64_t limit_mib = limit_bytes() >> 20;
  return fail(Code::out_of_memory,
              static_cast<std::uint32_t>(std::min<std::uint64_t>(limit_mib, UINT32_MAX)));
}

int Region::descriptor() const { return extents_->range().file(); }

Result<Descriptor> Region::read_only() const {
  if (!extents_->shared()) return fail(Code::unsupported);
  return copy_descriptor(extents_->range().descriptor(), Rights::read);
}

std::uint64_t Region::memory_bytes() const {
  const auto file_bytes = extents_->range().file_bytes();
  return file_bytes ? *file_bytes + extents_->elsewhere() : taken_bytes();
}

bool Region::punch_holes() { return extents_->shared() && extents_->punch_holes(); }

void Region::wait_until_idle() { extents_->wait_until_idle(); }

std::uint64_t Region::taken_bytes() const { return extents_->taken(); }

std::uint64_t Region::limit_bytes() const { return extents_->limit(); }

void Region::lift_limit(bool lifted) { extents_->lift_limit(lifted); }

std::uint64_t Region::end_offset() const { return extents_->end(); }

}  // namespace espalier::memory
