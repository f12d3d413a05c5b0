// SPDX-License-Identifier: Apache-2.0
// A range of addresses, aligned to extents, whose memory can be opened and cleared part by part:
// private memory, or a sealed memfd that other processes map too.
//
// Invariants
// I1. All of it can be read at any time; parts without memory read as zeros.
// I2. Only opened parts can be written. Until then they are not charged under strict overcommit.
// I3. It is not inherited: in a forked process those addresses are unmapped, or something else. A
//     copy of this object there unmaps nothing.
//
// Thread: calls for ranges apart from each other from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fork_mark.hpp"
#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::memory {

class AddressRange {
 public:
  /// `strict`: cleared memory also returns its commit charge.
  /// Errors: system (detail: errno).
  static Result<AddressRange> private_memory(std::uint64_t bytes, bool strict);
  /// Maps a file of this length. Errors: as above.
  static Result<AddressRange> of_file(Descriptor file, std::uint64_t bytes);

  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  ~AddressRange();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// -1 for private memory.
  [[nodiscard]] int file() const { return file_.number(); }
  [[nodiscard]] const Descriptor& descriptor() const { return file_; }

  /// Makes a part writable. False: the system refused (strict overcommit).
  [[nodiscard]] bool open(std::uint64_t offset, std::uint64_t bytes);
  /// Returns the memory of an open part to the system: it reads as zeros from now on. Requires that
  /// it is opened again before it is written.
  void clear(std::uint64_t offset, std::uint64_t bytes);
  /// The same for a part on explicit huge pages.
  void clear_explicit(std::uint64_t offset, std::uint64_t bytes);
  /// Backs a part that has no memory with explicit huge pages. False: there are too few.
  bool map_explicit(std::uint64_t offset, std::uint64_t bytes);
  /// madvise(2). False: it was refused.
  bool advise(std::uint64_t offset, std::uint64_t bytes, int advice);
  /// Bytes of memory that the file occupies; nullopt for private memory.
  [[nodiscard]] std::optional<std::uint64_t> file_bytes() const;

 private:
  AddressRange(std::byte* base, std::uint64_t bytes, bool strict, Descriptor file)
      : base_(base), bytes_(bytes), strict_(strict), file_(std::move(file)) {}

  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool strict_ = false;
  Descriptor file_;
  base::ForkMark mark_;
};

/// Maps so many bytes of a file (or, with -1, of no file) read-only at a multiple of 2 MiB,
/// excluded from forked processes. Only a mapping that begins there can use huge pages of shared
/// memory. nullptr: see errno.
[[nodiscard]] std::byte* map_aligned(std::uint64_t bytes, int file);

}  // namespace espalier::memory
