// SPDX-License-Identifier: Apache-2.0
// A range of addresses, aligned to extents, whose memory comes and goes: of this process alone, or
// of a sealed memfd that others map too.
//
// Invariants
// I1. All of it can be read at any time, and what has no memory reads as zeros.
// I2. Only what was opened can be written. Until then it counts for nothing where overcommit is
//     strict.
// I3. It is not inherited: in a process that is forked there is nothing at those addresses, or
//     something else. A copy of this unmaps nothing.
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
  /// `strict`: memory that is cleared gives its commit charge back, too.
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

  /// Lets a part be written. False: the system refused (strict overcommit).
  [[nodiscard]] bool open(std::uint64_t offset, std::uint64_t bytes);
  /// Gives the memory of an open part back to the system: it reads as zeros from now on. Before it
  /// is written again, it is opened again.
  void clear(std::uint64_t offset, std::uint64_t bytes);
  /// The same for a part on explicit huge pages.
  void clear_explicit(std::uint64_t offset, std::uint64_t bytes);
  /// Puts explicit huge pages behind a part that has no memory. False: there are too few.
  bool map_explicit(std::uint64_t offset, std::uint64_t bytes);
  /// madvise(2). False: it was refused.
  bool advise(std::uint64_t offset, std::uint64_t bytes, int advice);
  /// Bytes that the file takes; nothing for private memory.
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

/// Maps so many bytes of a file (or, with -1, of no file) at a multiple of 2 MiB, to be read only,
/// and not in a process that is forked.
/// Huge pages can carry a mapping of shared memory only if it begins there. nullptr: errno says why
/// not.
[[nodiscard]] std::byte* map_aligned(std::uint64_t bytes, int file);

}  // namespace espalier::memory
