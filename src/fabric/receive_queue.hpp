// SPDX-License-Identifier: Apache-2.0
// A receive queue: of one queue pair, or shared by several, first come first served [verbs: SRQ].
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "fabric/completion_queue.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {

class ReceiveQueue {
 public:
  /// Receives complete in `completions`, which outlives the queue.
  ReceiveQueue(CompletionQueue& completions, std::uint32_t depth);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;
  ~ReceiveQueue();

  /// Posts as many as there is room for, here and in the completion queue; returns how many.
  std::size_t post(std::span<const Receive> receives);
  /// How many are posted and not taken.
  [[nodiscard]] std::uint32_t posted() const { return end_ - begin_; }
  [[nodiscard]] CompletionQueue& completions() const { return completions_; }

  // For transports.

  /// Takes the oldest, for a message whose first part has arrived. Its completion entry stays
  /// reserved.
  std::optional<Receive> take();
  /// Completes all posted ones as flushed, as a pair's own queue does when the pair ends.
  void flush(std::uint32_t pair);

 private:
  CompletionQueue& completions_;
  std::uint32_t depth_;
  std::uint32_t mask_;
  std::unique_ptr<Receive[]> entries_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
};

}  // namespace espalier::fabric
