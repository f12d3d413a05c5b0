// SPDX-License-Identifier: Apache-2.0
// Memory on huge pages for the benchmarks: requests, keys, and the nodes of the peers.
//
// All targets must get the same pages, or the benchmark compares page sizes. Small pages cost 3 to
// 11 % of lookups, and up to 40 % of the raw rate of random lines.
//
// Thread: one at a time, but for reading what was written before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace espalier::bench {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Owns a range of zeroed memory, aligned to 2 MiB, for which huge pages are advised. Pages are
/// taken from the operating system when they are first touched.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  /// Errors: throws std::bad_alloc.
  explicit HugeBuffer(std::size_t bytes);
  HugeBuffer(HugeBuffer&& other) noexcept { swap(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    HugeBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~HugeBuffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void swap(HugeBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bump allocation from huge pages, with a free list per size. The destructor frees everything.
class HugeArena {
 public:
  explicit HugeArena(std::size_t chunk_bytes = std::size_t{32} << 20) : chunk_bytes_(chunk_bytes) {}

  /// Returns `bytes` at an address divisible by `align` (a power of two, at most 4096).
  void* allocate(std::size_t bytes, std::size_t align);
  /// Keeps the bytes for the next allocation of this size.
  void deallocate(void* at, std::size_t bytes) noexcept;

  /// Copies `text` to the end of the arena: consecutive copies are contiguous.
  std::string_view copy(std::string_view text);

  /// Frees everything, but keeps the first chunk for reuse.
  void clear();

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr std::size_t kGrain = 16;  // sizes of free lists differ by so much
  static constexpr std::size_t kListedBytesMax = 4096;
  static std::size_t rounded(std::size_t bytes);

  std::size_t chunk_bytes_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::vector<HugeBuffer> chunks_;
  std::array<FreeBlock*, kListedBytesMax / kGrain + 1> free_{};
};

/// A standard allocator over a HugeArena, which must outlive the container.
template <class T>
class ArenaAllocator {
 public:
  using value_type = T;

  explicit ArenaAllocator(HugeArena* arena) : arena_(arena) {}
  template <class U>
  ArenaAllocator(const ArenaAllocator<U>& other) : arena_(other.arena()) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(arena_->allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* at, std::size_t count) noexcept { arena_->deallocate(at, count * sizeof(T)); }

  [[nodiscard]] HugeArena* arena() const { return arena_; }
  friend bool operator==(const ArenaAllocator& a, const ArenaAllocator& b) {
    return a.arena_ == b.arena_;
  }

 private:
  HugeArena* arena_;
};

/// A fixed number of trivially copyable values, filled from the front.
template <class T>
class HugeVector {
 public:
  HugeVector() = default;
  explicit HugeVector(std::size_t capacity)
      : memory_(capacity * sizeof(T)), capacity_(capacity) {}
  HugeVector(HugeVector&& other) noexcept { swap(other); }
  HugeVector& operator=(HugeVector&& other) noexcept {
    HugeVector moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~HugeVector() = default;

  /// Requires: size() < capacity.
  void push_back(const T& value) { std::construct_at(data() + size_++, value); }
  void clear() { size_ = 0; }

  [[nodiscard]] T* data() const {
    return std::launder(reinterpret_cast<T*>(memory_.data()));
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<const T> span() const { return {data(), size_}; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  void swap(HugeVector& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  HugeBuffer memory_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace espalier::bench
