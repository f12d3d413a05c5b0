// SPDX-License-Identifier: Apache-2.0
// Batches requests for numbers of one sequencer, within one scheduler turn, into one atomic add.
//
// The first step of a request joins a batch, and yields until the turn continues with such requests
// (Call::again). By then all requests that the turn received have joined; the first one to continue
// adds once for all, and each takes its part of the result.
//
//   joined:   3, 1, 16, 1        one add of 21        parts:  first + 0, + 3, + 4, + 20
//
// A request that ends before it continues leaves a gap: its numbers stay unused.
//
// Thread: that of the scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "engine/node_parts.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::offload {

class TakeBatch {
 public:
  TakeBatch(std::shared_ptr<sequencer::Sequencer> from, std::uint32_t epoch)
      : from_(std::move(from)), epoch_(epoch) {}

  /// Whether a request may join.
  [[nodiscard]] bool takes(std::uint32_t id, std::uint32_t epoch, std::uint32_t count) const {
    return !result_ && from_->id() == id && epoch_ == epoch &&
           count <= std::numeric_limits<std::uint32_t>::max() - total_;
  }
  /// Joins; returns where its part begins. Requires: takes().
  std::uint32_t join(std::uint32_t count) {
    ++requests_;
    return std::exchange(total_, total_ + count);
  }
  /// The first number of a part; the first call takes all numbers.
  /// Errors: as Sequencer::take.
  Result<sequencer::Range> part(std::uint32_t offset, std::uint32_t count) {
    if (!result_) result_ = from_->take(epoch_, total_, requests_);
    if (*result_) return sequencer::Range{(*result_)->first + offset, count, (*result_)->epoch};
    // There may be enough for some of them.
    const bool alone = requests_ == 1 || result_->error().code != Code::exhausted;
    return alone ? *result_ : from_->take(epoch_, count, 0);
  }

 private:
  const std::shared_ptr<sequencer::Sequencer> from_;
  const std::uint32_t epoch_;
  std::uint32_t total_ = 0;
  std::uint32_t requests_ = 0;
  std::optional<Result<sequencer::Range>> result_;
};

/// The open batches of one scheduler, for the most recently used sequencers.
class TakeBatches final : public SchedulerPart {
 public:
  /// The open batch of a sequencer; null: none, or it is full.
  [[nodiscard]] std::shared_ptr<TakeBatch> find(std::uint32_t id, std::uint32_t epoch,
                                                std::uint32_t count) const {
    auto batch = open_[id % kOpen].lock();
    return batch != nullptr && batch->takes(id, epoch, count) ? batch : nullptr;
  }
  std::shared_ptr<TakeBatch> begin(std::shared_ptr<sequencer::Sequencer> from,
                                   std::uint32_t epoch) {
    const std::uint32_t id = from->id();
    auto batch = std::make_shared<TakeBatch>(std::move(from), epoch);
    open_[id % kOpen] = batch;
    return batch;
  }

 private:
  static constexpr std::size_t kOpen = 16;
  std::array<std::weak_ptr<TakeBatch>, kOpen> open_;  // a batch lives with its requests
};

}  // namespace espalier::offload
