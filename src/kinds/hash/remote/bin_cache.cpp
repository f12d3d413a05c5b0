// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/bin_cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/bytes.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kPairBytes = 2 * hash::kLineBytes;
constexpr std::uint64_t kCachePage = 4096;

}  // namespace

BinCache::BinCache(std::uint64_t bytes) noexcept {
  const std::uint64_t rounded = base::round_down(bytes, kCachePage);
  if (rounded == 0) return;
  auto range = memory::AddressRange::private_memory(rounded, false);
  if (!range || !range->open(0, rounded)) return;
  // Each get reads one random place of it.
  (void)range->advise(0, rounded, MADV_HUGEPAGE);
  memory_ = std::move(*range);
  pairs_ = rounded / kPairBytes;
}

// Updates a cached bucket. Another one takes the first place, from which its line moves to the
// second, unless that was used later.
void BinCache::keep(std::uint64_t offset, const std::byte* line) {
  if (pairs_ == 0) return;
  std::byte* const first = pair_of(offset);
  std::byte* const second = first + hash::kLineBytes;
  std::byte* const at = word_at(second) == offset ? second : first;
  const std::uint64_t word = word_at(first);
  if (at == first && (word & ~kSecondLast) != offset) {
    if ((word & kSecondLast) == 0) std::memcpy(second, first, hash::kLineBytes);
    set_word(first, offset);
  }
  std::memcpy(at + sizeof offset, line + sizeof offset, hash::kLineBytes - sizeof offset);
}

KnownDirectories::KnownDirectories(std::uint32_t partitions, DirectoryBudget& budget)
    : budget_(budget), directories_(partitions) {
  budget.users_.push_back(this);
}

KnownDirectories::~KnownDirectories() {
  forget_all();
  std::erase(budget_.users_, this);
}

void KnownDirectories::keep(std::uint32_t partition, hash::PlaceWord place,
                            const std::byte* entries) {
  const std::uint64_t count = std::uint64_t{1} << place.depth();
  forget(partition);
  if (budget_.bytes_ + count * 8 > budget_.bytes_max_) {
    for (KnownDirectories* const user : budget_.users_) user->forget_all();
  }
  Directory& own = directories_[partition];
  own.entries.assign(count, 0);
  std::memcpy(own.entries.data(), entries, count * 8);
  own.place = place;
  budget_.bytes_ += count * 8;
}

// Frees its memory, too.
void KnownDirectories::forget(std::uint32_t partition) {
  Directory& own = directories_[partition];
  if (!own.place.none()) budget_.bytes_ -= own.entries.size() * 8;
  own.place = {};
  std::vector<std::uint64_t>().swap(own.entries);
}

void KnownDirectories::forget_all() {
  for (std::uint32_t i = 0; i < directories_.size(); ++i) forget(i);
}

}  // namespace espalier::place
