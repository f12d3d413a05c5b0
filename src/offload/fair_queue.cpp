// SPDX-License-Identifier: Apache-2.0
#include "offload/fair_queue.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace espalier::offload {

FairQueue::FairQueue(std::uint64_t quantum_ns)
    : quantum_ns_(static_cast<std::int64_t>(quantum_ns)) {
  ESPALIER_ASSERT(quantum_ns != 0 && quantum_ns < std::uint64_t{1} << 62);
}

void FairQueue::push(Item& item) {
  ESPALIER_ASSERT(item.state_ == Item::State::outside);
  if (this_round_.empty() && next_round_.empty() && running_ == 0) ++busy_period_;
  append(item);
  place(item.flow_, false);
}

FairQueue::Item* FairQueue::pop() {
  for (;;) {
    while (!this_round_.empty()) {
      Flow& flow = *this_round_.front();
      replenish(flow);
      if (flow.deficit_ns_ <= 0) {
        move(flow, next_round_, next_round_.end());
        continue;
      }
      ESPALIER_ASSERT(!flow.ready_.empty());
      Item& item = *flow.ready_.front();
      item.node_.splice(item.node_.begin(), flow.ready_, item.at_);
      if (flow.ready_.empty()) take_out(flow);
      item.state_ = Item::State::running;
      ++flow.running_;
      ++running_;
      return &item;
    }
    if (next_round_.empty()) return nullptr;
    begin_round();
  }
}

void FairQueue::charge(Item& item, std::uint64_t took_ns, bool again) {
  ESPALIER_ASSERT(item.state_ == Item::State::running);
  Flow& flow = item.flow_;
  ESPALIER_ASSERT(flow.running_ != 0 && running_ != 0);
  item.state_ = Item::State::outside;
  --flow.running_;
  --running_;
  charge(flow, took_ns);
  if (!again) return;
  append(item);
  place(flow, true);
}

void FairQueue::charge(Flow& flow, std::uint64_t took_ns) {
  // Beyond this, about a month, nothing is charged any more; so no sum below overflows.
  constexpr std::int64_t kDebtMax = std::numeric_limits<std::int64_t>::max() >> 11;
  flow.served_ns_ += took_ns;
  const auto took =
      static_cast<std::int64_t>(std::min(took_ns, static_cast<std::uint64_t>(kDebtMax)));
  flow.deficit_ns_ = std::max(flow.deficit_ns_ - took, -kDebtMax);
}

void FairQueue::erase(Item& item) {
  ESPALIER_ASSERT(item.state_ == Item::State::ready);
  Flow& flow = item.flow_;
  item.node_.splice(item.node_.begin(), flow.ready_, item.at_);
  item.state_ = Item::State::outside;
  if (flow.ready_.empty()) take_out(flow);
}

void FairQueue::append(Item& item) {
  item.flow_.ready_.splice(item.flow_.ready_.end(), item.node_);
  item.state_ = Item::State::ready;
}

// Gives a flow the quanta of the rounds since its last one, but never more credit than one quantum.
void FairQueue::replenish(Flow& flow) const {
  ESPALIER_ASSERT(flow.deficit_ns_ <= quantum_ns_);
  if (flow.busy_period_ != busy_period_) {
    flow.deficit_ns_ = quantum_ns_;
  } else {
    const std::uint64_t rounds = round_ - flow.round_;
    const auto missing = static_cast<std::uint64_t>(quantum_ns_ - flow.deficit_ns_);
    if (rounds > missing / static_cast<std::uint64_t>(quantum_ns_)) {
      flow.deficit_ns_ = quantum_ns_;
    } else {
      flow.deficit_ns_ += static_cast<std::int64_t>(rounds) * quantum_ns_;
    }
  }
  flow.round_ = round_;
  flow.busy_period_ = busy_period_;
}

// Puts a flow that just got an item into a round, unless it is in one. `in_turn`: it was being
// served, so with credit left it goes on before the others.
void FairQueue::place(Flow& flow, bool in_turn) {
  if (flow.in_ != nullptr) return;
  replenish(flow);
  if (flow.deficit_ns_ <= 0) {
    move(flow, next_round_, next_round_.end());
  } else {
    move(flow, this_round_, in_turn ? this_round_.begin() : this_round_.end());
  }
}

// Rounds in which no flow would have credit are passed over, so that a long debt costs no time.
void FairQueue::begin_round() {
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const Flow* flow : next_round_) most = std::max(most, flow->deficit_ns_);
  ESPALIER_ASSERT(most <= 0);
  round_ += static_cast<std::uint64_t>(-most / quantum_ns_) + 1;
  this_round_.swap(next_round_);
  for (Flow* flow : this_round_) flow->in_ = &this_round_;
}

void FairQueue::move(Flow& flow, Flows& to, Flows::iterator before) {
  Flows& from = flow.in_ == nullptr ? flow.node_ : *flow.in_;
  to.splice(before, from, flow.at_);
  flow.in_ = &to;
}

void FairQueue::take_out(Flow& flow) {
  ESPALIER_ASSERT(flow.in_ != nullptr);
  flow.node_.splice(flow.node_.begin(), *flow.in_, flow.at_);
  flow.in_ = nullptr;
}

}  // namespace espalier::offload
