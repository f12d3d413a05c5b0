// SPDX-License-Identifier: Apache-2.0
// Memory that processes share through a descriptor (memfd), sealed against shrinking, so that
// reading a mapping of it never faults.
//
// Invariants
// I1. Memory of create() keeps its length: it is sealed against shrinking and growing, and against
//     other seals.
// I2. A process of another user with a read-only descriptor of such memory cannot turn it into a
//     writable one. A process of the same user can, as it can do anything to that user's processes.
// I3. attach() maps only memory that is sealed against shrinking and long enough.
// I4. No mapping is inherited: in a forked process those addresses are unmapped, or something else.
//     A copy of the owner there unmaps nothing.
//
// Thread: one at a time; the memory itself any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fork_mark.hpp"
#include "base/standard_descriptors.hpp"
#include "espalier/error.hpp"

namespace espalier::memory {

/// Owns a file descriptor, never a standard one (0 to 2): if those are closed, output to them must
/// not end up here.
class Descriptor {
 public:
  Descriptor() = default;
  /// Adopts a new descriptor, under this number or, if it is a standard one, another.
  explicit Descriptor(int number) : number_(base::above_standard_descriptors(number)) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close();
  /// Closes it in processes forked from now on. Requires: there is one.
  void close_in_children();

 private:
  int number_ = -1;
  bool inherited_ = true;
  base::ForkMark mark_;
};

enum class Rights : std::uint8_t { read, write };

/// A second descriptor of the same memory, with these rights or fewer. Errors: system (detail:
/// errno; EACCES if the first one has fewer).
Result<Descriptor> copy_descriptor(const Descriptor& descriptor, Rights rights);

/// Owns a mapping, and the descriptor behind it until it is moved out or closed.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { unmap(); }

  /// Creates zeroed memory; pages are allocated on first touch. `name` shows in /proc only.
  /// Errors: system (detail: errno).
  static Result<SharedMemory> create(const char* name, std::uint64_t bytes);
  /// Maps the first `bytes` of memory created by another process. Errors: corrupt (not sealed
  /// memory, or shorter), system.
  static Result<SharedMemory> attach(Descriptor descriptor, std::uint64_t bytes, Rights rights);

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.number(); }
  /// A second, read-only descriptor of the same memory. Errors: system.
  [[nodiscard]] Result<Descriptor> read_only() const {
    return copy_descriptor(descriptor_, Rights::read);
  }
  /// Returns its pages to the system, even if other processes map them: it reads as zeros. A
  /// process with write access can allocate new ones. Requires: made by create(), its descriptor
  /// not closed.
  void discard() const;
  /// Closes the descriptor; the mapping stays.
  void close_descriptor() { descriptor_.close(); }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  Result<void> map(Rights rights);
  void unmap();

  Descriptor descriptor_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  base::ForkMark mark_;
};

}  // namespace espalier::memory
