// SPDX-License-Identifier: Apache-2.0
#include "memory/address_range.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;
constexpr int kHugeTlb2MiB = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Replaces what is mapped there; there is no moment at which nothing is.
bool map_over(std::byte* at, std::uint64_t bytes, int protection, int flags) {
  if (::mmap(at, bytes, protection, flags | MAP_FIXED, -1, 0) == MAP_FAILED) return false;
  // What is mapped there has it already, and so the system has no reason to refuse.
  const int kept = ::madvise(at, bytes, MADV_DONTFORK);
  ESPALIER_ASSERT(kept == 0);
  return true;
}

}  // namespace

std::byte* map_aligned(std::uint64_t bytes, int file) {
  // One extent more than needed; what lies before and behind the aligned part goes back.
  void* const raw = ::mmap(nullptr, bytes + kAlignment, PROT_NONE, kPrivate, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(raw);
  const auto past = std::bit_cast<std::uintptr_t>(begin) % kAlignment;
  const std::uint64_t before = past == 0 ? 0 : kAlignment - past;
  if (before > 0) ::munmap(begin, before);
  if (before < kAlignment) ::munmap(begin + before + bytes, kAlignment - before);
  std::byte* const at = begin + before;
  const int flags = file < 0 ? kPrivate : MAP_SHARED | MAP_NORESERVE;
  if (::mmap(at, bytes, PROT_READ, flags | MAP_FIXED, file, 0) != MAP_FAILED &&
      ::madvise(at, bytes, MADV_DONTFORK) == 0) {
    return at;
  }
  const int refused = errno;
  ::munmap(at, bytes);
  errno = refused;
  return nullptr;
}

Result<AddressRange> AddressRange::private_memory(std::uint64_t bytes, bool strict) {
  std::byte* const base = map_aligned(bytes, -1);
  if (base == nullptr) return base::refused_by_system();
  return AddressRange(base, bytes, strict, {});
}

Result<AddressRange> AddressRange::of_file(Descriptor file, std::uint64_t bytes) {
  std::byte* const base = map_aligned(bytes, file.number());
  if (base == nullptr) return base::refused_by_system();
  return AddressRange(base, bytes, false, std::move(file));
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      strict_(other.strict_),
      file_(std::move(other.file_)),
      mark_(other.mark_) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  // `other` takes what was ours and unmaps it.
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(strict_, other.strict_);
  std::swap(file_, other.file_);
  std::swap(mark_, other.mark_);
  return *this;
}

AddressRange::~AddressRange() {
  if (base_ != nullptr && !mark_.is_copy()) ::munmap(base_, bytes_);
}

bool AddressRange::open(std::uint64_t offset, std::uint64_t bytes) {
  return ::mprotect(base_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}

void AddressRange::clear(std::uint64_t offset, std::uint64_t bytes) {
  std::byte* const at = base_ + offset;
  if (file_) {
    // Of our own file, which lies in memory, the system refuses no hole.
    const int punched = ::fallocate(file_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                    static_cast<off_t>(offset), static_cast<off_t>(bytes));
    ESPALIER_ASSERT(punched == 0);
    return;
  }
  // A mapping that is new and cannot be written counts for nothing; one that only lost the right
  // to be written keeps its charge.
  if (strict_ && map_over(at, bytes, PROT_READ, kPrivate)) return;
  if (::madvise(at, bytes, MADV_DONTNEED) != 0) std::memset(at, 0, bytes);
}

void AddressRange::clear_explicit(std::uint64_t offset, std::uint64_t bytes) {
  std::byte* const at = base_ + offset;
  const int protection = strict_ ? PROT_READ : PROT_READ | PROT_WRITE;
  if (!map_over(at, bytes, protection, kPrivate)) std::memset(at, 0, bytes);
}

bool AddressRange::map_explicit(std::uint64_t offset, std::uint64_t bytes) {
  // Without MAP_NORESERVE: either all pages are promised to us now, or the call fails and leaves
  // what was mapped; with it, the first touch of a page that is not there would end the process.
  return map_over(base_ + offset, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | kHugeTlb2MiB);
}

bool AddressRange::advise(std::uint64_t offset, std::uint64_t bytes, int advice) {
  return ::madvise(base_ + offset, bytes, advice) == 0;
}

std::optional<std::uint64_t> AddressRange::file_bytes() const {
  struct stat facts {};
  if (!file_ || ::fstat(file_.number(), &facts) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

}  // namespace espalier::memory
