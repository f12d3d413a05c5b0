// SPDX-License-Identifier: Apache-2.0
// A long value of a hash map on its way into an answer: helpers copy it, a bounded step at a time,
// so that a worker's other clients do not wait. Meanwhile it stays where it was found, for the
// epoch of its reader is pinned.
//
// Thread: steps by one helper at a time, all else by the scheduler's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/epoch_pins.hpp"
#include "engine/call.hpp"
#include "rings/response_ring.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::offload {

/// What is longer is a long value.
inline constexpr std::size_t kLongPairBytes = std::size_t{256} << 10;
/// What is copied between two looks at the clock.
inline constexpr std::size_t kCopiedPieceBytes = std::size_t{64} << 10;

class LongPairAnswer {
 public:
  /// `value` is what the reader has found whose epoch `pin` holds.
  LongPairAnswer(std::shared_ptr<hash::HashMap> map, base::EpochPin pin, rings::ResponseRing& ring,
                 std::string_view value);
  LongPairAnswer(const LongPairAnswer&) = delete;
  LongPairAnswer& operator=(const LongPairAnswer&) = delete;
  ~LongPairAnswer();

  /// Copies what is left on a helper, and then has the request's step called again; or answers, if
  /// nothing is left. Requires: the value fits.
  Next go_on(Call& call);

  wire::ResponseHeader header{};  ///< of the answer

 private:
  JobStep copy(StepContext& context);
  [[nodiscard]] std::size_t message_bytes() const {
    return wire::kResponseHeaderBytes + value_bytes_;
  }

  const std::shared_ptr<hash::HashMap> map_;  // in whose memory the value lies
  base::EpochPin pin_;
  rings::ResponseRing& ring_;  // its client's, which outlives the request
  const std::size_t value_bytes_;
  bool promised_ = false;           // to the ring, and not sent yet
  std::vector<std::byte> message_;  // as far as it was copied; begins with room for its header
  std::string_view left_;
};

}  // namespace espalier::offload
