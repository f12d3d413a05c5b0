// SPDX-License-Identifier: Apache-2.0
// Ends leases of sessions that read the memory one-sided, so that memory can be reclaimed: expired
// leases; those with the oldest epoch, when leases alone hold more than an eighth of the memory;
// and those that block erases.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <utility>

namespace espalier::offload {

struct Services;

class LeaseSweeper {
 public:
  /// Fences these sessions, and ends their leases.
  using Fence = std::function<void(const std::unordered_set<std::uint64_t>& sessions)>;

  /// `services` outlive it.
  LeaseSweeper(Services& services, Fence fence) : services_(services), fence_(std::move(fence)) {}

  /// Sweeps early if writes that are short of memory have asked for it. Call each turn.
  void turn(std::uint64_t now_ns);
  void sweep(std::uint64_t now_ns);
  /// Whether there are any leases.
  [[nodiscard]] bool any() const;

 private:
  Services& services_;
  const Fence fence_;
  std::uint64_t dropped_stamp_ = 0;     // of the dropped map that has waited longest
  std::uint64_t dropped_since_ns_ = 0;  // when it was first seen
  std::uint64_t swept_ns_ = 0;
  std::uint64_t sweeps_seen_ = 0;  // of the requested ones
};

}  // namespace espalier::offload
