// SPDX-License-Identifier: Apache-2.0
// A region: one range of addresses that holds all memory of a store, handed out in 2 MiB extents.
//
// Why one range: everything in it is named by an offset (wire/ref.hpp), so that other processes and
// machines can follow references; and a NIC registers it once. Why 2 MiB: the size of a huge page,
// so that taking and giving back never splits one.
//
// Invariants
// I1. Extent 0 is the header, taken from the start: offset 0 is never that of a buffer.
// I2. An extent that take() returns reads as zeros.
// I3. taken_bytes() <= bytes_max rounded up to extents. The reserved range may be longer, so that
//     runs of several extents are found although single ones are scattered.
//
// Thread: all calls from any thread, except moving and destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "espalier/error.hpp"

namespace espalier::memory {

inline constexpr std::uint64_t kExtentBytes = std::uint64_t{2} << 20;

struct RegionOptions {
  std::uint64_t bytes_max = 0;  // limit on memory in use, header included
  bool huge_pages = true;       // explicit ones if enough are free, else transparent ones
};

enum class PageKind : std::uint8_t { small, transparent, explicit_huge };

/// What the machine offers, as far as the choice of pages depends on it.
struct PageFacts {
  std::uint64_t explicit_free = 0;     // free explicit huge pages of 2 MiB, not promised to others
  bool transparent_available = false;  // .../transparent_hugepage/enabled is "always" or "madvise"
};

/// Reads PageFacts from /proc and /sys. What cannot be read counts as not there.
PageFacts read_page_facts();

struct PageChoice {
  PageKind kind = PageKind::small;
  std::string message;
};

/// Which pages a region of so many extents gets, and one sentence on why.
PageChoice choose_pages(const PageFacts& facts, std::uint64_t extents, bool huge_pages);

/// Owns the range. Moving keeps base() valid.
class Region {
 public:
  /// Reserves addresses; memory is used only as it is touched (explicit huge pages: set aside now).
  /// Errors: invalid_argument (more than offsets can name), system (detail: errno).
  static Result<Region> reserve(const RegionOptions& options);

  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();

  [[nodiscard]] std::byte* base() const { return base_; }
  /// Length of the range of addresses.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  /// The first extent, for the owner's own use.
  [[nodiscard]] std::byte* header() const { return base_; }

  /// Takes so many extents in a row, zeroed; returns the offset of the first. First fit.
  /// Errors: out_of_memory (detail: the limit in MiB).
  Result<std::uint64_t> take(std::uint64_t extents);
  /// Gives extents back, to the operating system too: they read as zeros from now on.
  /// Requires: taken, and not the header.
  void give(std::uint64_t offset, std::uint64_t extents);

  /// Bytes of all extents taken, the header included.
  [[nodiscard]] std::uint64_t taken_bytes() const;
  /// The limit on taken_bytes().
  [[nodiscard]] std::uint64_t limit_bytes() const;

  /// The error of take() when the limit is reached.
  [[nodiscard]] std::unexpected<Error> out_of_memory() const;

  [[nodiscard]] PageKind page_kind() const { return page_kind_; }
  /// Which pages carry the memory, and why, in one sentence.
  [[nodiscard]] const std::string& page_message() const { return page_message_; }

 private:
  class Extents;
  Region();

  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  PageKind page_kind_ = PageKind::small;
  std::string page_message_;
  std::unique_ptr<Extents> extents_;
};

}  // namespace espalier::memory
