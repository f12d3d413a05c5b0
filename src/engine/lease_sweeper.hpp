// SPDX-License-Identifier: Apache-2.0
// Ends leases of sessions that read the memory by themselves, so that memory comes back: of those
// that were not renewed; when leases alone hold more than an eighth of the memory, of those that
// hold the oldest epoch; and of those that keep erases from going on.
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
  /// Fences the sessions of these numbers, and ends their leases.
  using Fence = std::function<void(const std::unordered_set<std::uint64_t>& sessions)>;

  /// `services` outlive it.
  LeaseSweeper(Services& services, Fence fence) : services_(services), fence_(std::move(fence)) {}

  /// Sweeps if writes that are short of memory have asked for it: they do not wait for the next
  /// round of the house.
  void turn(std::uint64_t now_ns);
  void sweep(std::uint64_t now_ns);
  /// Whether there are leases that may have to end.
  [[nodiscard]] bool any() const;

 private:
  Services& services_;
  const Fence fence_;
  std::uint64_t dropped_stamp_ = 0;     // of the dropped map that has waited longest
  std::uint64_t dropped_since_ns_ = 0;  // when it was seen first
  std::uint64_t swept_ns_ = 0;
  std::uint64_t sweeps_seen_ = 0;  // of those that were asked for
};

}  // namespace espalier::offload
