// SPDX-License-Identifier: Apache-2.0
// Memory that processes share through a descriptor (memfd), sealed so that nobody can shrink it
// under a reader: a mapping of it never faults.
//
// Invariants
// I1. What create() made keeps its length: it is sealed against shrinking and growing, and against
//     other seals.
// I2. Another user who got a descriptor to read what create() made cannot make of it one to write.
//     The same user can, as he can do anything to his processes.
// I3. attach() maps only what is sealed against shrinking and long enough.
// I4. No mapping is inherited: in a process that is forked there is nothing at those addresses, or
//     something else. A copy of its owner unmaps nothing.
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

/// Owns a file descriptor, which is none of the standard ones: where those are closed, what
/// somebody writes to them must not come here.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over what was made just now, under this number or, if it is a standard one, another.
  explicit Descriptor(int number) : number_(base::above_standard_descriptors(number)) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close();
  /// Processes that are forked from now on do not have it. Requires: there is one.
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

/// Owns a mapping, and the descriptor behind it until that is given away.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { unmap(); }

  /// Makes zeroed memory; pages are taken as they are touched. `name` shows in /proc only.
  /// Errors: system (detail: errno).
  static Result<SharedMemory> create(const char* name, std::uint64_t bytes);
  /// Maps the first `bytes` of memory that somebody else made. Errors: corrupt (it is no memory
  /// that keeps its length, or shorter), system.
  static Result<SharedMemory> attach(Descriptor descriptor, std::uint64_t bytes, Rights rights);

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.number(); }
  /// A second descriptor of the same memory through which it can only be read.
  /// Errors: system.
  [[nodiscard]] Result<Descriptor> read_only() const {
    return copy_descriptor(descriptor_, Rights::read);
  }
  /// Gives its pages back to the system, whoever maps it: it reads as zeros. A process that may
  /// write to it can have new ones. Requires: made by create(), its descriptor not closed.
  void discard() const;
  /// The mapping stays; the descriptor is closed.
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
