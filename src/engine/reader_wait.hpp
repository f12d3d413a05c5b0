// SPDX-License-Identifier: Apache-2.0
// Timeout of a streamed answer whose client does not read it.
//
// Not writable(), which waits as long as the client likes: a streaming request holds a place, or
// memory that must be freed.
//
// Thread: the scheduler's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace espalier::offload {

class ReaderWait {
 public:
  /// A client that reads nothing for so long gets no more.
  static constexpr std::uint64_t kTimeoutNs = 30'000'000'000;

  /// First polling intervals: for a client that reads its ring, and for one that returns buffers,
  /// of which there are few.
  static constexpr std::uint64_t kSoonNs = 200'000;
  static constexpr std::uint64_t kVerySoonNs = 20'000;

  /// When to check for room again, on base::monotonic_ns(); nothing: the client has read nothing
  /// for `timeout_ns`. Call it once for each step that finds no room.
  [[nodiscard]] std::optional<std::uint64_t> next_look(std::uint64_t timeout_ns,
                                                       std::uint64_t soon_ns = kSoonNs) {
    const std::uint64_t now = base::monotonic_ns();
    if (blocked_since_ns_ == 0) blocked_since_ns_ = now;
    const std::uint64_t blocked_ns = now - blocked_since_ns_;
    if (blocked_ns > timeout_ns) return std::nullopt;
    return now + (blocked_ns < kSoonForNs ? soon_ns : kLaterNs);
  }
  /// Whether there was no room for so long.
  [[nodiscard]] bool waited(std::uint64_t ns) const {
    return blocked_since_ns_ != 0 && base::monotonic_ns() - blocked_since_ns_ >= ns;
  }
  /// There was room.
  void took() { blocked_since_ns_ = 0; }

 private:
  static constexpr std::uint64_t kLaterNs = 10'000'000;
  static constexpr std::uint64_t kSoonForNs = 50'000'000;

  std::uint64_t blocked_since_ns_ = 0;  // the client reads nothing since then; 0: it reads
};

}  // namespace espalier::offload
