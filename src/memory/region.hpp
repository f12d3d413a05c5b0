// SPDX-License-Identifier: Apache-2.0
// A region: one range of addresses that holds all memory of a store, handed out in 2 MiB extents.
//
// One range, because everything in it is named by an offset (wire/ref.hpp), so that other processes
// and machines can follow references, and because a NIC registers it once. Extents of 2 MiB, the
// size of a huge page, so that taking and returning memory never splits one.
//
// Addresses are never reused for another purpose: returning an extent releases its memory, not its
// addresses. So the range is many times as long as the limit, and the limit counts memory.
//
// Invariants
// I1. Extent 0 is the header, taken from the start: offset 0 is never that of a buffer.
// I2. What was just taken reads as zeros.
// I3. taken_bytes() <= bytes_max rounded up to extents, but for what was taken while the limit was
//     lifted; then nothing more is taken until it is below the limit again.
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
/// The range is so many times as long as the limit: once for each class of buffers
/// (size_class.hpp), because each may use all memory in turn, and some to spare.
inline constexpr std::uint64_t kAddressesPerLimit = 79;

struct RegionOptions {
  std::uint64_t bytes_max = 0;  // limit on memory in use, header included
  bool huge_pages = true;       // explicit ones if enough are free, else transparent ones
  bool shared = false;          // a sealed memfd, which other processes may map read-only
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
  /// The first extent, reserved for the owner.
  [[nodiscard]] std::byte* header() const { return base_; }

  /// Takes so many consecutive extents, never taken before; returns the offset of the first.
  /// Errors: out_of_memory (detail: the limit in MiB).
  Result<std::uint64_t> take(std::uint64_t extents);
  /// Reserves the addresses of an extent that retake() will take slab by slab. Slabs use 4 KiB
  /// pages. Errors: out_of_memory.
  Result<std::uint64_t> set_aside();
  /// Takes memory for addresses whose memory was returned, or for a slab of a reserved extent.
  /// Requires: not taken; whole extents as take() returned them, or one slab. Errors:
  /// out_of_memory.
  Result<void> retake(std::uint64_t offset, std::uint64_t bytes);
  /// Returns memory to the operating system: it reads as zeros from now on.
  /// Requires: as taken or retaken, and not the header.
  void give(std::uint64_t offset, std::uint64_t bytes);

  /// Counts memory outside the region against the limit. Errors: out_of_memory.
  Result<void> charge(std::uint64_t bytes);
  /// Undoes charge(). Requires: it was charged.
  void uncharge(std::uint64_t bytes);

  /// The memfd behind a shared region, of all bytes(); -1 for a private one.
  [[nodiscard]] int descriptor() const;
  /// A second descriptor with read-only access to a shared region, for SharedMemory::attach(),
  /// which validates it and maps at a multiple of 2 MiB.
  /// Errors: unsupported (it is private), system.
  [[nodiscard]] Result<Descriptor> read_only() const;
  /// Bytes of memory in the system: for a shared region the blocks of its file, including holes
  /// that readers have filled, and charged memory; else taken_bytes().
  [[nodiscard]] std::uint64_t memory_bytes() const;
  /// For a shared region: punches all that is not taken, if the file's blocks exceed the taken
  /// bytes by an eighth of the limit; a reader that touches a hole fills it. Returns whether it
  /// did. The region's maintenance thread calls it every second.
  bool punch_holes();
  /// Waits until the maintenance thread is idle, with a spare extent ready if one is due.
  void wait_until_idle();

  /// Bytes of all that is taken, including the header and charged memory.
  [[nodiscard]] std::uint64_t taken_bytes() const;
  /// The limit on taken_bytes().
  [[nodiscard]] std::uint64_t limit_bytes() const;
  /// Ignores the limit, or not: for memory without which a full store could never free any.
  void lift_limit(bool lifted);
  /// No address from here on was ever taken.
  [[nodiscard]] std::uint64_t end_offset() const;

  /// The error of take() when the limit is reached.
  [[nodiscard]] std::unexpected<Error> out_of_memory() const;

  [[nodiscard]] PageKind page_kind() const { return page_kind_; }
  /// The kind of pages in use, and why, in one sentence.
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
