// SPDX-License-Identifier: Apache-2.0
// The order of a link's frames, where a provider need not keep it: what comes early waits until its
// turn. No more can wait than may be under way, so a peer cannot make an end keep more.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "wire/fabric_ofi.hpp"

namespace espalier::fabric::ofi {

class ArrivalOrder {
 public:
  /// Where a frame lies.
  struct Frame {
    std::uint32_t buffer = 0;
    std::uint32_t bytes = 0;
    friend bool operator==(const Frame&, const Frame&) = default;
  };

  /// Returns false if nobody who keeps to the protocol sends this one now: it has come before, or
  /// there was no room for it.
  [[nodiscard]] bool add(std::uint32_t sequence, const Frame& frame) {
    auto& place = early_[sequence % wire::ofi::kFrames];
    if (sequence - next_ >= wire::ofi::kFrames || place) return false;
    place = frame;
    return true;
  }
  /// The next one, if it has come.
  std::optional<Frame> take() {
    auto& place = early_[next_ % wire::ofi::kFrames];
    if (place) ++next_;
    return std::exchange(place, std::nullopt);
  }
  /// One of those that wait, whichever; for who does not want them any more.
  std::optional<Frame> drop() {
    for (auto& place : early_) {
      if (place) return std::exchange(place, std::nullopt);
    }
    return {};
  }

 private:
  std::array<std::optional<Frame>, wire::ofi::kFrames> early_;
  std::uint32_t next_ = 0;
};

}  // namespace espalier::fabric::ofi
