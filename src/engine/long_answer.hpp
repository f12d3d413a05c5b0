// SPDX-License-Identifier: Apache-2.0
// Long values are copied by helpers, a bounded step at a time: a worker that copied one of 16 MiB
// would keep all its other clients waiting for some milliseconds. Meanwhile an answer's value stays
// where its reader has found it, for the reader's epoch is pinned; a value that is to be written
// goes into a buffer that nobody knows yet.
//
// Thread: steps by one helper at a time, all else by the scheduler's.
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

/// What is longer is a long value.
inline constexpr std::size_t kLongValueBytes = std::size_t{256} << 10;
/// What is copied or compared between two looks at the clock.
inline constexpr std::size_t kCopiedBytes = std::size_t{64} << 10;

/// A message whose last part is a long value. From copy() on it counts as a part of its ring's
/// backlog.
class LongAnswer {
 public:
  /// `head` comes before the value, which stays as long as `pin` does, and `kept`: what it lies in.
  LongAnswer(Call& call, std::shared_ptr<const void> kept, base::EpochPin pin,
             std::string_view head, std::string_view value);
  LongAnswer(const LongAnswer&) = delete;
  LongAnswer& operator=(const LongAnswer&) = delete;
  ~LongAnswer();

  /// Of the payload.
  [[nodiscard]] std::size_t payload_bytes() const { return payload_bytes_; }
  /// Copies on a helper; then, or if that could not begin yet, the request's step is called again.
  /// Requires: the payload fits.
  Next copy(Call& call);
  [[nodiscard]] bool is_whole() const { return value_.empty(); }
  /// Ends the request. Requires: it is whole.
  Next answer(Call& call);
  /// Sends it as items before the last. Requires: it is whole.
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
  std::vector<std::byte> message_;  // as far as it was copied; begins with room for its header
  std::string_view value_;          // the rest
};

/// Copies what is left to copy, or answers.
inline Next go_on(Call& call, LongAnswer& answer) {
  return answer.is_whole() ? answer.answer(call) : answer.copy(call);
}

/// Copies a value on a helper; then, or if that could not begin yet, the request's step is called
/// again.
Next copy_staged(Call& call, memory::StagedBytes& staged);

}  // namespace espalier::offload
