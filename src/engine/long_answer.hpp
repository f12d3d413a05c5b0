// SPDX-License-Identifier: Apache-2.0
// Helpers copy long values in bounded steps: a worker that copied 16 MiB would delay its other
// clients by milliseconds. A value that is read stays in place meanwhile, protected by the reader's
// pinned epoch; a value to be written goes to a buffer that is not yet reachable.
//
// Thread: steps by one helper at a time, the rest by the scheduler's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/epoch_pins.hpp"
#include "engine/call.hpp"
#include "engine/helper_job.hpp"
#include "wire/message.hpp"

namespace espalier::memory {
class StagedBytes;
}
namespace espalier::rings {
class ResponseRing;
}

namespace espalier::offload {

/// A longer value is a long value.
inline constexpr std::size_t kLongValueBytes = std::size_t{256} << 10;
/// Bytes copied or compared between two reads of the clock.
inline constexpr std::size_t kCopiedBytes = std::size_t{64} << 10;

/// A message whose last part is a long value. From copy() on it counts as backlog of its ring.
class LongAnswer {
 public:
  /// `head` precedes the value, which `pin` and `kept`, its owner, keep in place.
  LongAnswer(Call& call, std::shared_ptr<const void> kept, base::EpochPin pin,
             std::string_view head, std::string_view value);
  LongAnswer(const LongAnswer&) = delete;
  LongAnswer& operator=(const LongAnswer&) = delete;
  ~LongAnswer();

  [[nodiscard]] std::size_t payload_bytes() const { return payload_bytes_; }
  /// Copies on a helper; when it has finished, or if it could not begin yet, the step is called
  /// again. Requires: the payload fits.
  Next copy(Call& call);
  [[nodiscard]] bool is_whole() const { return value_.empty(); }
  /// Ends the request. Requires: it is whole.
  Next answer(Call& call);
  /// Sends it as chunks before the last message. Requires: it is whole.
  void send_items(Call& call, const wire::ResponseHeader& fields);

  wire::ResponseHeader header{};  ///< of the answer

 private:
  JobStep step(StepContext& context);
  [[nodiscard]] std::size_t message_bytes() const {
    return wire::kResponseHeaderBytes + payload_bytes_;
  }

  const std::shared_ptr<const void> kept_;
  base::EpochPin pin_;
  rings::ResponseRing& ring_;  // its client's, which outlives the request
  std::size_t payload_bytes_;
  bool promised_ = false;           // to the ring, and not sent yet
  std::vector<std::byte> message_;  // the part copied so far; begins with room for its header
  std::string_view value_;          // not copied yet
};

/// Copies the rest, or answers.
inline Next go_on(Call& call, LongAnswer& answer) {
  return answer.is_whole() ? answer.answer(call) : answer.copy(call);
}

/// Copies a value on a helper; when it has finished, or if it could not begin yet, the step is
/// called again.
Next copy_staged(Call& call, memory::StagedBytes& staged);

}  // namespace espalier::offload
