// SPDX-License-Identifier: Apache-2.0
// In-place access, as HostAccess, but each walk suspends wherever it could be overtaken, until the
// test resumes it. So a test chooses the interleaving, on one thread.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kinds/map/walk/access.hpp"

namespace espalier::test {

/// Suspended walks, in the order in which they stopped, and the nodes that they have visited.
/// Thread: one.
struct Standing {
  std::deque<std::coroutine_handle<>> walks;
  std::vector<std::uint64_t> visited;  // offsets
};

class StepAccess {
 public:
  static constexpr bool kInPlace = true;

  StepAccess(const std::byte* base, Standing& standing) : base_(base), standing_(&standing) {}

  struct Stop {
    Standing* standing;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> walk) const { standing->walks.push_back(walk); }
    void await_resume() const noexcept {}
  };

  [[nodiscard]] const std::byte* image(std::uint64_t offset) const {
    standing_->visited.push_back(offset);
    return base_ + offset;
  }
  void want(const std::byte*, std::uint32_t, std::uint32_t) const {}
  [[nodiscard]] const std::byte* bytes(std::uint64_t offset, std::uint64_t) const {
    return base_ + offset;
  }
  [[nodiscard]] Stop arrived(tree::Warmth) const { return {standing_}; }
  [[nodiscard]] tree::Certain confirm(wire::Ref) const { return {}; }
  [[nodiscard]] Stop again() const { return {standing_}; }

 private:
  const std::byte* base_;
  Standing* standing_;
};
static_assert(tree::Access<StepAccess>);

}  // namespace espalier::test
