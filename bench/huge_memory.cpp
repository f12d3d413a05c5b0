// SPDX-License-Identifier: Apache-2.0
#include "bench/huge_memory.hpp"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace espalier::bench {
namespace {

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::byte* aligned_up(std::byte* at, std::size_t align) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return at + (round_up(address, align) - address);
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t wanted = round_up(bytes, kHugePageBytes);
  const std::size_t mapped = wanted + kHugePageBytes;
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(memory);
  data_ = aligned_up(first, kHugePageBytes);
  bytes_ = wanted;
  // Unmaps what lies before and after the aligned range.
  if (data_ > first) ::munmap(first, static_cast<std::size_t>(data_ - first));
  std::byte* const end = data_ + wanted;
  if (first + mapped > end) ::munmap(end, static_cast<std::size_t>(first + mapped - end));
  ::madvise(data_, wanted, MADV_HUGEPAGE);  // advice: if it is refused, small pages are used
}

HugeBuffer::~HugeBuffer() {
  if (data_ == nullptr) return;
  ASAN_UNPOISON_MEMORY_REGION(data_, bytes_);  // the next mapping here starts clean
  ::munmap(data_, bytes_);
}

std::size_t HugeArena::rounded(std::size_t bytes) { return round_up(bytes, kGrain); }

void* HugeArena::allocate(std::size_t bytes, std::size_t align) {
  const std::size_t size = rounded(bytes);
  if (size <= kListedBytesMax && align <= kGrain) {
    if (FreeBlock*& head = free_[size / kGrain]; head != nullptr) {
      FreeBlock* const block = head;
      head = block->next;
      ASAN_UNPOISON_MEMORY_REGION(block, size);
      return block;
    }
  }
  std::byte* at = aligned_up(next_, std::max(align, kGrain));
  if (next_ == nullptr || at > end_ || size > static_cast<std::size_t>(end_ - at)) {
    chunks_.emplace_back(std::max(chunk_bytes_, size));
    at = chunks_.back().data();
    end_ = at + chunks_.back().bytes();
  }
  next_ = at + size;
  return at;
}

void HugeArena::deallocate(void* at, std::size_t bytes) noexcept {
  const std::size_t size = rounded(bytes);
  if (size > kListedBytesMax || size == 0) return;  // freed with the arena
  // Containers poison unused parts, and free them poisoned; the arena poisons what is free.
  ASAN_UNPOISON_MEMORY_REGION(at, size);
  FreeBlock*& head = free_[size / kGrain];
  head = std::construct_at(static_cast<FreeBlock*>(at), FreeBlock{head});
  ASAN_POISON_MEMORY_REGION(head + 1, size - sizeof(FreeBlock));
}

std::string_view HugeArena::copy(std::string_view text) {
  if (text.empty()) return {};
  if (next_ == nullptr || text.size() > static_cast<std::size_t>(end_ - next_)) {
    chunks_.emplace_back(std::max(chunk_bytes_, text.size()));
    next_ = chunks_.back().data();
    end_ = next_ + chunks_.back().bytes();
  }
  char* const at = reinterpret_cast<char*>(next_);
  std::memcpy(at, text.data(), text.size());
  next_ += text.size();
  return {at, text.size()};
}

void HugeArena::clear() {
  free_.fill(nullptr);
  if (chunks_.empty()) return;
  chunks_.resize(1);
  ASAN_UNPOISON_MEMORY_REGION(chunks_.front().data(), chunks_.front().bytes());
  next_ = chunks_.front().data();
  end_ = next_ + chunks_.front().bytes();
}

}  // namespace espalier::bench
