// SPDX-License-Identifier: Apache-2.0
// A region: one range of addresses that holds all memory of a store, handed out in 2 MiB extents.
//
// Why one range: everything in it is named by an offset (wire/ref.hpp), so that other processes and
// machines can follow references; and a NIC registers it once. Why 2 MiB: the size of a huge page,
// so that taking and giving back never splits one.
//
// Addresses are handed out once: what was taken for one purpose keeps it as long as the region
// lives, and only its memory goes back and is taken again. So the range is many times as long as
// the limit, and the limit counts memory.
//
// Invariants
// I1. Extent 0 is the header, taken from the start: offset 0 is never that of a buffer.
// I2. What was just taken reads as zeros.
// I3. taken_bytes() <= bytes_max rounded up to extents.
// I4. Bytes from end_offset() on were never taken; all of the range can be read.
//
// Thread: all calls from any thread, except moving and destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "espalier/error.hpp"
#include "memory/page_choice.hpp"

namespace espalier::memory {

class Descriptor;

inline constexpr std::uint64_t kExtentBytes = std::uint64_t{2} << 20;
/// An extent may be taken in parts of this size.
inline constexpr std::uint64_t kSlabBytes = std::uint64_t{256} << 10;
/// So many times the limit of addresses are reserved: one time for each class of buffers
/// (size_class.hpp), for each may have had all memory in its turn, and some to spare.
inline constexpr std::uint64_t kAddressesPerLimit = 72;

struct RegionOptions {
  std::uint64_t bytes_max = 0;  // limit on memory in use, header included
  bool huge_pages = true;       // explicit ones if enough are free, else transparent ones
  bool shared = false;          // a sealed memfd, which others may map to read
};

/// Owns the range. Moving keeps base() valid.
class Region {
 public:
  /// Reserves addresses; memory is used only as it is touched.
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

  /// Takes so many extents in a row that were never taken; returns the offset of the first.
  /// Errors: out_of_memory (detail: the limit in MiB).
  Result<std::uint64_t> take(std::uint64_t extents);
  /// Sets aside the addresses of an extent that will be taken slab by slab, by retake(). Slabs lie
  /// in 4 KiB pages. Errors: out_of_memory.
  Result<std::uint64_t> set_aside();
  /// Takes memory again where it was given back, or for a slab of what was set aside.
  /// Requires: not taken; whole extents as take() returned them, or one slab.
  /// Errors: out_of_memory.
  Result<void> retake(std::uint64_t offset, std::uint64_t bytes);
  /// Gives memory back to the operating system: it reads as zeros from now on.
  /// Requires: as taken or retaken, and not the header.
  void give(std::uint64_t offset, std::uint64_t bytes);

  /// Counts memory that lies elsewhere, for the same purpose as what is taken: the limit is for
  /// both. Errors: out_of_memory.
  Result<void> charge(std::uint64_t bytes);
  /// It is gone. Requires: it was charged.
  void uncharge(std::uint64_t bytes);

  /// The memfd behind a shared region, of all bytes(); -1 for a private one.
  [[nodiscard]] int descriptor() const;
  /// A second descriptor, through which a shared region can only be read. To be mapped by
  /// SharedMemory::attach(), which checks it and begins at a multiple of 2 MiB.
  /// Errors: unsupported (it is private), system.
  [[nodiscard]] Result<Descriptor> read_only() const;
  /// Bytes that the system has behind it: of a shared region those of its file, with what readers
  /// have made of its holes, and of what was charged; else taken_bytes().
  [[nodiscard]] std::uint64_t memory_bytes() const;
  /// Of a shared region: punches all that is not taken if the file has an eighth of the limit more
  /// blocks than are taken, for who reads a hole fills it. Returns whether it did. A thread of the
  /// region's own does so every second.
  bool punch_holes();
  /// Waits until that thread has nothing to do, and a spare extent is ready if there is to be one.
  void wait_until_idle();

  /// Bytes of all that is taken, the header and what was charged included.
  [[nodiscard]] std::uint64_t taken_bytes() const;
  /// The limit on taken_bytes().
  [[nodiscard]] std::uint64_t limit_bytes() const;
  /// Nothing from here on was ever taken.
  [[nodiscard]] std::uint64_t end_offset() const;

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
