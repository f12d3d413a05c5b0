// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.hpp"

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
  groups_.begin_busy_period();
  item.flow_.group_.flows_.begin_busy_period();
  append(item);
  place(item.flow_.group_.flows_, item.flow_, false);
  place(groups_, item.flow_.group_, false);
}

FairQueue::Item* FairQueue::pop() {
  Member* const member = next(groups_);
  if (member == nullptr) return nullptr;
  auto& group = static_cast<Group&>(*member);
  auto& flow = static_cast<Flow&>(*next(group.flows_));
  ESPALIER_ASSERT(!flow.ready_.empty());
  Item& item = *flow.ready_.front();
  item.node_.splice(item.node_.begin(), flow.ready_, item.at_);
  take_out_if_idle(flow);
  item.state_ = Item::State::running;
  ++flow.running_;
  ++group.flows_.running;
  ++group.running_;
  ++groups_.running;
  return &item;
}

void FairQueue::charge(Item& item, std::uint64_t took_ns, bool again) {
  ESPALIER_ASSERT(item.state_ == Item::State::running);
  Flow& flow = item.flow_;
  Group& group = flow.group_;
  ESPALIER_ASSERT(flow.running_ != 0 && group.running_ != 0 && groups_.running != 0);
  item.state_ = Item::State::outside;
  --flow.running_;
  --group.flows_.running;
  --group.running_;
  --groups_.running;
  charge(flow, took_ns);
  if (!again) return;
  append(item);
  place(group.flows_, flow, true);
  place(groups_, group, true);
}

void FairQueue::charge(Flow& flow, std::uint64_t took_ns) {
  charge(static_cast<Member&>(flow), took_ns);
  charge(static_cast<Member&>(flow.group_), took_ns);
}

void FairQueue::charge(Member& member, std::uint64_t took_ns) {
  // Beyond this, about a month, nothing more is charged, so no sum below overflows.
  constexpr std::int64_t kDebtMax = std::numeric_limits<std::int64_t>::max() >> 11;
  member.served_ns_ += took_ns;
  const auto took =
      static_cast<std::int64_t>(std::min(took_ns, static_cast<std::uint64_t>(kDebtMax)));
  member.deficit_ns_ = std::max(member.deficit_ns_ - took, -kDebtMax);
}

void FairQueue::refund(Flow& flow, std::uint64_t ns) {
  const auto back = static_cast<std::int64_t>(std::min(ns, std::uint64_t{1} << 62));
  for (Member* const member : {static_cast<Member*>(&flow), static_cast<Member*>(&flow.group_)}) {
    member->served_ns_ -= std::min(ns, member->served_ns_);
    member->deficit_ns_ = std::min(member->deficit_ns_ + back, quantum_ns_);
  }
}

void FairQueue::erase(Item& item) {
  ESPALIER_ASSERT(item.state_ == Item::State::ready);
  Flow& flow = item.flow_;
  item.node_.splice(item.node_.begin(), flow.ready_, item.at_);
  item.state_ = Item::State::outside;
  take_out_if_idle(flow);
}

void FairQueue::append(Item& item) {
  item.flow_.ready_.splice(item.flow_.ready_.end(), item.node_);
  item.state_ = Item::State::ready;
}

// A member is in a round exactly while it has a ready item.
void FairQueue::take_out_if_idle(Flow& flow) {
  if (!flow.ready_.empty()) return;
  take_out(flow);
  if (!flow.group_.flows_.has_ready()) take_out(flow.group_);
}

// The member of a level to serve next; null: none has a ready item.
FairQueue::Member* FairQueue::next(Level& level) const {
  for (;;) {
    while (!level.this_round.empty()) {
      Member& member = *level.this_round.front();
      replenish(level, member);
      if (member.deficit_ns_ > 0) return &member;
      move(member, level.next_round, level.next_round.end());
    }
    if (level.next_round.empty()) return nullptr;
    begin_round(level);
  }
}

// Gives a member the quanta of the rounds since its last one, but never more credit than one
// quantum.
void FairQueue::replenish(const Level& level, Member& member) const {
  ESPALIER_ASSERT(member.deficit_ns_ <= quantum_ns_);
  if (member.busy_period_ != level.busy_period) {
    member.deficit_ns_ = quantum_ns_;
  } else {
    const std::uint64_t rounds = level.round - member.round_;
    const auto missing = static_cast<std::uint64_t>(quantum_ns_ - member.deficit_ns_);
    if (rounds > missing / static_cast<std::uint64_t>(quantum_ns_)) {
      member.deficit_ns_ = quantum_ns_;
    } else {
      member.deficit_ns_ += static_cast<std::int64_t>(rounds) * quantum_ns_;
    }
  }
  member.round_ = level.round;
  member.busy_period_ = level.busy_period;
}

// Puts a member with a new item into a round, unless it is in one. `in_turn`: it was being served,
// so with credit left it precedes the others.
void FairQueue::place(Level& level, Member& member, bool in_turn) const {
  if (member.in_ != nullptr) return;
  replenish(level, member);
  if (member.deficit_ns_ <= 0) {
    move(member, level.next_round, level.next_round.end());
  } else {
    move(member, level.this_round, in_turn ? level.this_round.begin() : level.this_round.end());
  }
}

// Skips rounds in which no member would have credit, so a long debt costs no time.
void FairQueue::begin_round(Level& level) const {
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const Member* member : level.next_round) most = std::max(most, member->deficit_ns_);
  // A refund can leave a member with credit.
  if (most <= 0) level.round += static_cast<std::uint64_t>(-most / quantum_ns_) + 1;
  level.this_round.swap(level.next_round);
  for (Member* member : level.this_round) member->in_ = &level.this_round;
}

void FairQueue::move(Member& member, Members& to, Members::iterator before) {
  Members& from = member.in_ == nullptr ? member.node_ : *member.in_;
  to.splice(before, from, member.at_);
  member.in_ = &to;
}

void FairQueue::take_out(Member& member) {
  ESPALIER_ASSERT(member.in_ != nullptr);
  member.node_.splice(member.node_.begin(), *member.in_, member.at_);
  member.in_ = nullptr;
}

}  // namespace espalier::offload
