// SPDX-License-Identifier: Apache-2.0
// Allocates the records of one map: pages of 32 KiB in the region, each cut into records of one
// length.
//
//   page  | header 64 | record | record | ... | rest |
//
// Lengths are multiples of 16 from 32 to 128, then four to a doubling, to 1024. Free records are
// managed in process memory, by page, so that a page that becomes wholly free goes back to the
// pool, and may be cut for another length next time. The records freed last, some thousand of each
// class, stay outside the pages and are reused first: so puts that replace, in a map of many pages,
// touch nothing of a page but the records.
//
// Invariants
// 1. A record's generation advances when it is freed, and a page that is taken again begins beyond
//    those of all records that ever were in it: no two records at one place have the same
//    generation, until 32 bits wrap. The low bits, which slots carry, are never 0.
// 2. Taken and not given back + free = all that the pages were cut into.
//
// Thread: any; one lock, which is taken once for several records.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/hash/format.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::hash {

/// Index into kRecordBytes.
using RecordClass = std::uint32_t;
inline constexpr std::array<std::uint32_t, 19> kRecordBytes = {
    32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
inline constexpr RecordClass kRecordClasses = kRecordBytes.size();
inline constexpr std::uint32_t kRecordBytesMax = kRecordBytes.back();
static_assert(kRecordBytesMax == kRecordLengthMax);
/// The class of version links and long records.
inline constexpr RecordClass kLinkClass = 0;
static_assert(kRecordBytes[kLinkClass] == sizeof(VersionLink));

/// The smallest class that holds so many bytes; kRecordClasses if none does.
[[nodiscard]] constexpr RecordClass record_class_of(std::uint64_t bytes) {
  RecordClass cls =
      bytes <= 128 ? static_cast<RecordClass>(bytes <= 32 ? 0 : (bytes - 17) / 16) : 7;
  while (cls < kRecordClasses && kRecordBytes[cls] < bytes) ++cls;
  return cls;
}
static_assert(record_class_of(33) == 1 && record_class_of(80) == 3 && record_class_of(129) == 7);

/// The generation that follows this one.
[[nodiscard]] constexpr std::uint32_t next_record_generation(std::uint32_t generation) {
  const std::uint32_t next = generation + 1;
  return (next & Slot::kGenerationMask) == 0 ? next + 1 : next;
}

class RecordStore {
 public:
  RecordStore(memory::BufferPool& pool, std::uint32_t map_id) : pool_(pool), map_id_(map_id) {}
  /// Gives all pages back, even those in use. Cost: a line of each record.
  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  /// Takes up to so many free records; returns how many: none if there is no memory. Their headers
  /// have a generation, the rest is undefined. Cost: a lock; sometimes a page.
  [[nodiscard]] std::uint32_t take(RecordClass cls, std::span<std::uint64_t> out) noexcept;
  /// Takes a page that the pool had only after memory was given back elsewhere. False: the process
  /// has no memory to manage it, and it went back.
  [[nodiscard]] bool adopt_page(RecordClass cls, std::uint64_t offset) noexcept;
  /// Takes records of a class back. Requires: no reader can reach them any more.
  void give(RecordClass cls, std::span<const std::uint64_t> offsets) noexcept;
  /// Gives back a page, even if in use. Returns its bytes; 0: none is left.
  /// Requires: nothing is taken or given any more.
  [[nodiscard]] std::uint64_t free_page() noexcept;
  /// Returns the records kept outside to their pages, and gives back wholly free pages.
  void trim() noexcept;

  struct Numbers {
    std::uint64_t pages = 0;
    std::uint64_t records = 0;       // taken
    std::uint64_t record_bytes = 0;  // of these
    std::uint64_t free = 0;
  };
  [[nodiscard]] Numbers numbers() const;
  /// The class of the record that begins there and is not free in its page; kRecordClasses: there
  /// is none. Requires: after trim(). For audits.
  [[nodiscard]] RecordClass class_at(std::uint64_t offset) const;
  /// Calls `use` with the offset and the length of records of each page. For audits.
  template <class Use>
  void for_each_page(const Use& use) const {
    const std::lock_guard lock(mutex_);
    for (const Page& page : pages_) {
      if (page.offset != 0) use(page.offset, kRecordBytes[page.cls]);
    }
  }

 private:
  static constexpr std::uint32_t kPageBytes = 32768;
  static constexpr std::size_t kLooseMax = 4096;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Page {
    std::uint64_t offset = 0;  // 0: no page
    RecordClass cls = 0;
    std::uint32_t records = 0;
    std::uint32_t carved = 0;
    std::uint32_t free_count = 0;
    std::uint32_t generation_first = 0;
    std::uint32_t generation_high = 0;
    std::uint32_t previous = kNone;  // neighbours among pages with free records
    std::uint32_t next = kNone;
    std::unique_ptr<std::uint16_t[]> free_stack;
    [[nodiscard]] std::uint32_t available() const { return records - carved + free_count; }
  };
  /// The page in which this lies, by the page's own header; kNone: none of this map.
  [[nodiscard]] std::uint32_t page_at(std::uint64_t offset) const;
  [[nodiscard]] bool add_page(RecordClass cls, std::uint64_t offset);
  void take_from(Page& page, std::span<std::uint64_t> out, std::uint32_t& taken);
  void take_loose(RecordClass cls, std::span<std::uint64_t> out, std::uint32_t& taken);
  void give_to_page(std::uint64_t offset);
  void drop_page(std::uint32_t index);
  void give_to_pool(const Page& page);
  void link(std::uint32_t index);
  void unlink(std::uint32_t index);

  memory::BufferPool& pool_;
  const std::uint32_t map_id_;
  mutable std::mutex mutex_;                                      // guards all below
  std::array<std::vector<std::uint64_t>, kRecordClasses> loose_;  // freed last, outside the pages
  std::deque<Page> pages_;             // they never move; 12 MB for 100 M pairs
  std::vector<std::uint32_t> unused_;  // of them, with room for all
  std::array<std::uint32_t, kRecordClasses> partial_ = [] {
    std::array<std::uint32_t, kRecordClasses> none{};
    none.fill(kNone);
    return none;
  }();
  Numbers numbers_;
};

}  // namespace espalier::hash
