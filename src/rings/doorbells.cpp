// SPDX-License-Identifier: Apache-2.0
#include "rings/doorbells.hpp"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "base/system_error.hpp"

namespace espalier::rings {
namespace {

constexpr std::size_t kTogether = 32;  // words that every form of the scan looks at together

// The words from `begin` on that are looked at together, one by one.
std::size_t scan_few(const std::byte* row, const std::uint32_t* seen, std::size_t begin,
                     std::uint32_t* changed, std::size_t found) {
  for (std::size_t i = begin; i < begin + kTogether; ++i) {
    const auto now =
        base::load_shared<std::uint32_t>(row + i * wire::kDoorbellBytes, std::memory_order_acquire);
    if (now != seen[i]) changed[found++] = static_cast<std::uint32_t>(i);
  }
  return found;
}

std::size_t scan_scalar(const std::byte* row, const std::uint32_t* seen, std::size_t words,
                        std::uint32_t* changed) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < words; i += kTogether) found = scan_few(row, seen, i, changed, found);
  return found;
}

#if defined(__x86_64__)

// The vector loads are plain: a word comes whole, and is loaded again where one differs.
__attribute__((target("avx2"))) inline int equal_bytes(const std::byte* row,
                                                       const std::uint32_t* seen, std::size_t i) {
  __m256i all = _mm256_set1_epi32(-1);
  for (std::size_t end = i + kTogether; i < end; i += 8) {
    const auto* at = reinterpret_cast<const __m256i*>(row + i * wire::kDoorbellBytes);
    const __m256i then = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(seen + i));
    all = _mm256_and_si256(all, _mm256_cmpeq_epi32(_mm256_load_si256(at), then));
  }
  return _mm256_movemask_epi8(all);
}

__attribute__((target("avx2"))) std::size_t scan_avx2(const std::byte* row,
                                                      const std::uint32_t* seen, std::size_t words,
                                                      std::uint32_t* changed) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < words; i += kTogether) {
    if (equal_bytes(row, seen, i) == -1) [[likely]]
      continue;
    found = scan_few(row, seen, i, changed, found);
  }
  return found;
}

__attribute__((target("avx512f"))) std::size_t scan_avx512(const std::byte* row,
                                                           const std::uint32_t* seen,
                                                           std::size_t words,
                                                           std::uint32_t* changed) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < words; i += kTogether) {
    const std::byte* const at = row + i * wire::kDoorbellBytes;
    const __mmask16 low =
        _mm512_cmpneq_epi32_mask(_mm512_load_si512(at), _mm512_loadu_si512(seen + i));
    const __mmask16 high =
        _mm512_cmpneq_epi32_mask(_mm512_load_si512(at + 64), _mm512_loadu_si512(seen + i + 16));
    if ((low | high) == 0) [[likely]]
      continue;
    found = scan_few(row, seen, i, changed, found);
  }
  return found;
}

#endif

}  // namespace

// ThreadSanitizer does not know vector loads as atomic ones.
ScanDoorbells scan_doorbells(base::Isa isa) {
#if defined(__x86_64__)
  if (!base::kThreadSanitizer && isa == base::Isa::avx512) return scan_avx512;
  if (!base::kThreadSanitizer && isa == base::Isa::avx2) return scan_avx2;
#endif
  static_cast<void>(isa);
  return scan_scalar;
}

Result<Doorbells> Doorbells::reserve(std::uint32_t rings_max) {
  Doorbells made;
  // Each user begins a page: twice the pages are enough for many users with few rings each.
  const std::size_t pages = 2 * (rings_max / wire::kDoorbellsPerPage + 1) + 64;
  made.row_bytes_ = pages * wire::kDoorbellPageBytes;
  void* const at = ::mmap(nullptr, made.row_bytes_, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return base::refused_by_system();
  made.row_ = static_cast<std::byte*>(at);
  made.pages_.resize(pages);
  made.seen_ = std::make_unique<std::uint32_t[]>(pages * wire::kDoorbellsPerPage);
  made.changed_ = std::make_unique<std::uint32_t[]>(pages * wire::kDoorbellsPerPage);
  made.scan_ = scan_doorbells(base::isa());
  return made;
}

Doorbells::Doorbells(Doorbells&& other) noexcept
    : row_(std::exchange(other.row_, nullptr)),
      row_bytes_(other.row_bytes_),
      pages_(std::move(other.pages_)),
      seen_(std::move(other.seen_)),
      changed_(std::move(other.changed_)),
      words_(other.words_),
      scan_(other.scan_) {}

Doorbells::~Doorbells() {
  if (row_ != nullptr) ::munmap(row_, row_bytes_);
}

Result<Doorbells::Opened> Doorbells::open(std::uint32_t user) {
  std::size_t at = pages_.size();
  for (std::size_t i = 0; i < pages_.size() && at == pages_.size(); ++i) {
    const Page& page = pages_[i];
    if (page.open != 0 && page.user == user && page.open < wire::kDoorbellsPerPage) at = i;
  }
  if (at == pages_.size()) {
    const auto opened = open_page(user);
    if (!opened) return std::unexpected(opened.error());
    at = *opened;
  }
  Page& page = pages_[at];
  const auto free = std::find(page.taken.begin(), page.taken.end(), false);
  const auto in_page = static_cast<std::uint32_t>(free - page.taken.begin());
  *free = true;
  ++page.open;
  const auto place = static_cast<std::uint32_t>(at) * wire::kDoorbellsPerPage + in_page;
  base::store_shared(row_ + std::size_t{place} * wire::kDoorbellBytes, std::uint32_t{0});
  seen_[place] = 0;
  words_ = std::max(words_, (std::size_t{place} / kTogether + 1) * kTogether);
  return Opened{place, in_page, page.memory.number()};
}

Result<std::size_t> Doorbells::open_page(std::uint32_t user) {
  const auto free =
      std::find_if(pages_.begin(), pages_.end(), [](const Page& page) { return page.open == 0; });
  if (free == pages_.end()) return fail(Code::out_of_memory);
  auto made = memory::SharedMemory::create("espalier-doorbells", wire::kDoorbellPageBytes);
  if (!made) return std::unexpected(made.error());
  const auto at = static_cast<std::size_t>(free - pages_.begin());
  memory::Descriptor descriptor(::dup(made->descriptor()));
  if (!descriptor || ::mmap(page_at(at), wire::kDoorbellPageBytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, descriptor.number(), 0) == MAP_FAILED) {
    return base::refused_by_system();
  }
  *free = {std::move(descriptor), user, 0, std::vector<bool>(wire::kDoorbellsPerPage)};
  std::fill_n(seen_.get() + at * wire::kDoorbellsPerPage, wire::kDoorbellsPerPage, 0);
  return at;
}

void Doorbells::close(std::uint32_t place) {
  const std::size_t at = place / wire::kDoorbellsPerPage;
  Page& page = pages_[at];
  ESPALIER_ASSERT(page.taken[place % wire::kDoorbellsPerPage]);
  page.taken[place % wire::kDoorbellsPerPage] = false;
  if (--page.open == 0) close_page(at);
  const auto none_of_the_last = [this] {
    for (std::size_t i = words_ - kTogether; i < words_; ++i) {
      if (taken(i)) return false;
    }
    return true;
  };
  while (words_ != 0 && none_of_the_last()) words_ -= kTogether;
}

bool Doorbells::taken(std::size_t place) const {
  const Page& page = pages_[place / wire::kDoorbellsPerPage];
  return page.open != 0 && page.taken[place % wire::kDoorbellsPerPage];
}

// Zeros take the page's place, for the row is scanned as a whole.
void Doorbells::close_page(std::size_t at) {
  void* const zeros = ::mmap(page_at(at), wire::kDoorbellPageBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ESPALIER_ASSERT(zeros != MAP_FAILED);
  std::fill_n(seen_.get() + at * wire::kDoorbellsPerPage, wire::kDoorbellsPerPage, 0);
  pages_[at] = Page{};
}

std::span<const std::uint32_t> Doorbells::scan() {
  const std::size_t found = scan_(row_, seen_.get(), words_, changed_.get());
  for (std::size_t i = 0; i < found; ++i) look(changed_[i]);
  return {changed_.get(), found};
}

}  // namespace espalier::rings
