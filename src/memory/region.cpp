// SPDX-License-Identifier: Apache-2.0
#include "memory/region.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
namespace {

constexpr int kHugeTlb2MiB = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
constexpr std::uint64_t kRangeBytesMax = (wire::kBlockMask + 1) * wire::kBlockBytes;
constexpr std::uint64_t kExtentsMin = 2;  // the header and one to hand out

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  file >> number;
  return file ? number : 0;
}

/// Maps so many bytes, aligned to extents; nullptr: errno tells why not.
std::byte* map_aligned(std::uint64_t bytes) {
  // One extent more than needed; what lies before and behind the aligned part goes back.
  void* const raw = mmap(nullptr, bytes + kExtentBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(raw);
  const auto past = std::bit_cast<std::uintptr_t>(begin) % kExtentBytes;
  const std::uint64_t before = past == 0 ? 0 : kExtentBytes - past;
  if (before > 0) munmap(begin, before);
  if (before < kExtentBytes) munmap(begin + before + bytes, kExtentBytes - before);
  return begin + before;
}

/// Maps explicit huge pages. Without MAP_NORESERVE: either all pages are promised to us now, or the
/// call fails; with it, the first touch of a page that is not there would kill the process.
std::byte* map_explicit(std::uint64_t bytes) {
  void* const raw = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | kHugeTlb2MiB, -1, 0);
  return raw == MAP_FAILED ? nullptr : static_cast<std::byte*>(raw);
}

}  // namespace

/// Which extents are taken: a bitmap behind a mutex.
class Region::Extents {
 public:
  Extents(std::uint64_t count, std::uint64_t limit)
      : count_(count), limit_(limit), words_((count + 63) / 64, 0) {
    mark(0, 1, true);
  }

  /// Index of the first of `n` free ones in a row; count_ if there are none or the limit is met.
  std::uint64_t take(std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    if (n > limit_ - taken_) return count_;
    const std::uint64_t at = find(n);
    if (at == count_) return count_;
    mark(at, n, true);
    if (at == first_free_) first_free_ = at + n;
    return at;
  }

  void give(std::uint64_t at, std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    mark(at, n, false);
    first_free_ = std::min(first_free_, at);
  }

  [[nodiscard]] bool all_taken(std::uint64_t at, std::uint64_t n) const {
    const std::lock_guard lock(mutex_);
    for (std::uint64_t i = at; i < at + n; ++i) {
      if (i >= count_ || !is_taken(i)) return false;
    }
    return true;
  }

  [[nodiscard]] std::uint64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  [[nodiscard]] bool is_taken(std::uint64_t i) const { return (words_[i / 64] >> (i % 64)) & 1; }

  [[nodiscard]] std::uint64_t find(std::uint64_t n) const {
    std::uint64_t run = 0;
    for (std::uint64_t i = first_free_; i < count_; ++i) {
      if (i % 64 == 0 && words_[i / 64] == ~std::uint64_t{0}) {
        run = 0;
        i += 63;
        continue;
      }
      run = is_taken(i) ? 0 : run + 1;
      if (run == n) return i + 1 - n;
    }
    return count_;
  }

  void mark(std::uint64_t at, std::uint64_t n, bool taken) {
    for (std::uint64_t i = at; i < at + n; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      if (taken) {
        words_[i / 64] |= bit;
      } else {
        words_[i / 64] &= ~bit;
      }
    }
    taken_ = taken ? taken_ + n : taken_ - n;
  }

  const std::uint64_t count_;
  const std::uint64_t limit_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> words_;
  std::uint64_t taken_ = 0;
  std::uint64_t first_free_ = 1;  // nothing below it is free
};

PageFacts read_page_facts() {
  PageFacts facts;
  const auto free = number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  const auto promised = number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages");
  facts.explicit_free = free > promised ? free - promised : 0;
  const std::string mode = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.transparent_available =
      mode.find("[always]") != std::string::npos || mode.find("[madvise]") != std::string::npos;
  return facts;
}

PageChoice choose_pages(const PageFacts& facts, std::uint64_t extents, bool huge_pages) {
  if (!huge_pages) return {PageKind::small, "4 KiB pages (huge pages were not asked for)"};
  if (facts.explicit_free >= extents) {
    return {PageKind::explicit_huge,
            "explicit 2 MiB pages (" + std::to_string(extents) + " are set aside)"};
  }
  const std::string why =
      facts.explicit_free == 0
          ? std::string("no explicit ones are free")
          : "only " + std::to_string(facts.explicit_free) + " of " + std::to_string(extents) +
                " explicit ones are free";
  if (facts.transparent_available) {
    return {PageKind::transparent,
            "transparent huge pages (" + why + ": raise vm.nr_hugepages)"};
  }
  return {PageKind::small, "4 KiB pages (huge pages: " + why +
                               ", and transparent ones are switched off in "
                               "/sys/kernel/mm/transparent_hugepage/enabled)"};
}

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

Region::~Region() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

Result<Region> Region::reserve(const RegionOptions& options) {
  if (options.bytes_max > kRangeBytesMax) return fail(Code::invalid_argument);
  const std::uint64_t limit =
      std::max(kExtentsMin, (options.bytes_max + kExtentBytes - 1) / kExtentBytes);
  std::uint64_t count = limit;

  PageFacts facts = read_page_facts();
  PageChoice choice = choose_pages(facts, limit, options.huge_pages);
  Region region;
  if (choice.kind == PageKind::explicit_huge) {
    region.base_ = map_explicit(count * kExtentBytes);
    if (region.base_ == nullptr) {  // somebody else was faster
      facts.explicit_free = 0;
      choice = choose_pages(facts, limit, options.huge_pages);
    }
  }
  if (region.base_ == nullptr) {
    // Addresses cost nothing, and room to spare keeps runs of several extents easy to find.
    count = std::min(2 * limit, kRangeBytesMax / kExtentBytes);
    region.base_ = map_aligned(count * kExtentBytes);
  }
  if (region.base_ == nullptr) {  // addresses are rationed here (ulimit -v, vm.overcommit_memory=2)
    count = limit;
    region.base_ = map_aligned(count * kExtentBytes);
  }
  if (region.base_ == nullptr) return base::refused_by_system();

  region.bytes_ = count * kExtentBytes;
  if (choice.kind == PageKind::transparent &&
      madvise(region.base_, region.bytes_, MADV_HUGEPAGE) != 0) {
    choice = {PageKind::small, "4 KiB pages (the kernel refused transparent huge ones)"};
  } else if (choice.kind == PageKind::small) {
    // "always" would give huge pages to those who did not ask for them; a refusal does no harm.
    (void)madvise(region.base_, region.bytes_, MADV_NOHUGEPAGE);
  }
  region.page_kind_ = choice.kind;
  region.page_message_ = std::move(choice.message);
  region.extents_ = std::make_unique<Extents>(count, limit);
  return region;
}

Result<std::uint64_t> Region::take(std::uint64_t extents) {
  ESPALIER_ASSERT(extents > 0);
  const std::uint64_t at = extents_->take(extents);
  if (at == extents_->count()) return out_of_memory();
  return at * kExtentBytes;
}

void Region::give(std::uint64_t offset, std::uint64_t extents) {
  ESPALIER_ASSERT(extents > 0 && offset > 0 && offset % kExtentBytes == 0);
  ESPALIER_ASSERT(extents_->all_taken(offset / kExtentBytes, extents));
  std::byte* const begin = at(offset);
  const std::uint64_t length = extents * kExtentBytes;
  // Explicit huge pages stay ours: once given to the kernel, somebody else may take them, and our
  // next touch of the address would kill the process instead of failing.
  if (page_kind_ == PageKind::explicit_huge || madvise(begin, length, MADV_DONTNEED) != 0) {
    std::memset(begin, 0, length);
  }
  extents_->give(offset / kExtentBytes, extents);
}

std::unexpected<Error> Region::out_of_memory() const {
  const std::uint64_t limit_mib = limit_bytes() >> 20;
  return fail(Code::out_of_memory,
              static_cast<std::uint32_t>(std::min<std::uint64_t>(limit_mib, UINT32_MAX)));
}

std::uint64_t Region::taken_bytes() const { return extents_->taken() * kExtentBytes; }

std::uint64_t Region::limit_bytes() const { return extents_->limit() * kExtentBytes; }

}  // namespace espalier::memory
