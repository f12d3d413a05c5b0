// SPDX-License-Identifier: Apache-2.0
// What a walk needs of the place where it runs: to have bytes of a region brought to it.
//
// A walk names the bytes that it will look at (`want`), waits until they are there (`arrived`), and
// looks. It never asks for anything else, so that the same walk runs beside the memory (the bytes
// are prefetched cache lines), behind a device's cache, or over a network (the bytes are one-sided
// READs).
//
// An Access gives, per lane:
//   image(offset)            where the node at this region offset will appear, of node_bytes bytes
//   want(image, begin, n)    bring bytes [begin, begin + n) of that node
//   bytes(offset, n)         bring bytes that are no node (a value, a word of the page table);
//                            returns where they will appear, aligned to 8
//   arrived(warmth)          awaitable: all that was wanted is there
//   confirm(ref)             awaitable bool: the buffer read last was still the one that is
//                            meant after its last byte had come
//   again()                  awaitable: let others run, then go on
//   kInPlace                 images are the memory itself, so that what was not wanted can be
//                            looked at too; wants are then mere advice, and walks ask for less
// Bytes stay until the walk wants the next node (image) or the next bytes (bytes).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/task.hpp"
#include "wire/ref.hpp"

namespace espalier::tree {

/// How likely it is that bytes are near: decides whether waiting for them is worthwhile.
enum class Warmth : std::uint8_t {
  hot,   ///< the root: in a near cache
  warm,  ///< interior nodes: in a near cache unless the tree is large
  cold,  ///< leaves and values
};

template <class A>
concept Access = requires(A access, std::uint64_t offset, const std::byte* image,
                          std::uint32_t bytes, Warmth warmth, wire::Ref ref) {
  { access.image(offset) } -> std::same_as<const std::byte*>;
  access.want(image, bytes, bytes);
  { access.bytes(offset, offset) } -> std::same_as<const std::byte*>;
  access.arrived(warmth);
  access.confirm(ref);
  access.again();
  { A::kInPlace } -> std::convertible_to<bool>;
};

/// Always true, at once.
struct Certain {
  [[nodiscard]] bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  [[nodiscard]] bool await_resume() const noexcept { return true; }
};

/// Bytes in this process's memory, read in place. Under an exposed epoch what a walk may read
/// cannot be reused, so there is nothing to confirm.
class HostAccess {
 public:
  static constexpr bool kInPlace = true;

  /// With `interleave` a walk lets others run while its cache lines are on their way.
  /// Whether that pays for interior nodes too depends on the tree's size: `interleave_warm` is
  /// looked at each time and must outlive the access.
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
  // Whether such bytes can be looked at without letting others run first.
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
    // To g++ a prefetch is no effect: without this it drops calls of functions that only prefetch.
    asm volatile("");
  }

  const std::byte* base_;
  base::ReadyQueue* queue_;
  bool interleave_;
  const bool* interleave_warm_;
};
static_assert(Access<HostAccess>);

}  // namespace espalier::tree
