// SPDX-License-Identifier: Apache-2.0
// The Access of walks beside the memory: requests prefetch cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/task.hpp"
#include "kinds/map/walk/access.hpp"

namespace espalier::tree {

/// Bytes in this process's memory, read in place. Under an exposed epoch, memory that a walk may
/// read is not reused, so nothing needs to be confirmed.
class HostAccess {
 public:
  static constexpr bool kInPlace = true;

  /// With `interleave` a walk yields to others while its cache lines are in flight. Whether that
  /// pays for interior nodes too depends on the tree's size: `interleave_warm` is read each time
  /// and must outlive the access.
  HostAccess(const std::byte* base, base::ReadyQueue& queue, bool interleave,
             const bool* interleave_warm)
      : base_(base), queue_(&queue), interleave_(interleave), interleave_warm_(interleave_warm) {}

  [[nodiscard]] const std::byte* image(std::uint64_t offset) const { return base_ + offset; }
  void want(const std::byte* image, std::uint32_t begin, std::uint32_t bytes) const {
    prefetch(image + begin, bytes);
  }
  [[nodiscard]] const std::byte* bytes(std::uint64_t offset, std::uint64_t bytes) const {
    prefetch(base_ + offset, bytes < 256 ? bytes : 256);
    return base_ + offset;
  }
  [[nodiscard]] base::Pause arrived(Warmth warmth) const { return {queue_, near(warmth)}; }
  [[nodiscard]] Certain confirm(wire::Ref) const { return {}; }
  [[nodiscard]] base::Pause again() const {
    if (!interleave_) std::this_thread::yield();
    return {queue_, !interleave_};
  }

 private:
  // Whether such bytes can be read without yielding first.
  [[nodiscard]] bool near(Warmth warmth) const {
    if (warmth == Warmth::cold) return !interleave_;
    return warmth == Warmth::hot || !*interleave_warm_;
  }

  static constexpr std::uint64_t kLine = 64;
  static void prefetch(const std::byte* at, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at) & ~(kLine - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(at) + bytes;
    for (std::uintptr_t line = begin; line < end; line += kLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(line));
    }
    // g++ takes a prefetch for no effect: without this it drops calls of functions that only
    // prefetch.
    asm volatile("");
  }

  const std::byte* base_;
  base::ReadyQueue* queue_;
  bool interleave_;
  const bool* interleave_warm_;
};
static_assert(Access<HostAccess>);

}  // namespace espalier::tree
