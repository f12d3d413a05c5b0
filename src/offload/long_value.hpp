// SPDX-License-Identifier: Apache-2.0
// Long values are copied by helpers, a bounded step at a time: a worker that copied one of 16 MiB
// would keep all its other clients waiting for some milliseconds. Meanwhile an answer's value stays
// where its walk has found it, for the walk's epoch is pinned; a value that is to be written goes
// into a buffer that nobody knows yet.
//
// Thread: steps by one helper at a time, all else by the scheduler's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/epoch_pins.hpp"
#include "offload/call.hpp"
#include "rings/message_budget.hpp"
#include "tree/write/staged_value.hpp"

namespace espalier::offload {

/// What is longer is a long value.
inline constexpr std::size_t kLongValueBytes = std::size_t{256} << 10;
/// What is copied between two looks at the clock.
inline constexpr std::size_t kCopiedBytes = std::size_t{64} << 10;

/// A message whose last part is a long value.
class LongAnswer {
 public:
  /// Within the completion, or the items, of the walk that found the value. `head` comes before it.
  /// Null: it cannot be pinned here, and `head` is as it was.
  static std::unique_ptr<LongAnswer> begin(Call& call, std::vector<std::byte>&& head,
                                           std::string_view value);
  LongAnswer(const LongAnswer&) = delete;
  LongAnswer& operator=(const LongAnswer&) = delete;
  ~LongAnswer() { share_.give(bytes()); }

  /// Of the payload.
  [[nodiscard]] std::size_t bytes() const { return head_.size() + value_.size(); }
  /// Copies on a helper; then the request's step is called again.
  Next copy(Call& call);
  /// The message, before its payload room for its header. Requires: all was copied.
  [[nodiscard]] std::vector<std::byte> take() { return std::move(message_); }

 private:
  LongAnswer(base::EpochPin pin, rings::MessageShare& share, std::vector<std::byte> head,
             std::string_view value);
  JobStep step(StepContext& context);

  base::EpochPin pin_;
  rings::MessageShare& share_;  // its client's, which outlives the request
  std::vector<std::byte> head_;
  std::string_view value_;
  std::size_t copied_ = 0;  // of the value
  std::vector<std::byte> message_;
};

/// Copies a value on a helper; then the request's step is called again.
Next copy_staged(Call& call, tree::StagedValue& staged);

}  // namespace espalier::offload
