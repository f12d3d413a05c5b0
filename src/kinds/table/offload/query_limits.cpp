// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/query_limits.hpp"

#include <algorithm>

namespace espalier::offload {

std::unique_ptr<QueryLimits::Query> QueryLimits::open(PrincipalRef account,
                                                      const Connection* connection) {
  const Lock lock(mutex_);
  auto& share = account->parts.of<QueryShare>();
  if (share.open >= kOpen - open_) return nullptr;
  const auto [at, is_new] = connections_.try_emplace({account.get(), connection}, share.group);
  std::unique_ptr<Query> query;
  try {
    query.reset(new Query(*this, std::move(account), at));
  } catch (...) {
    if (is_new) connections_.erase(at);
    throw;
  }
  ++at->second.queries;
  ++share.open;
  ++open_;
  return query;
}

QueryLimits::Query::~Query() {
  const Lock lock(limits_.mutex_);
  auto& share = account_->parts.of<QueryShare>();
  if (state_ == State::waiting) limits_.places_.erase(*this);
  if (state_ == State::running) charge();
  if (begun_) {
    --connection_->second.begun;
    --share.begun;
    --limits_.begun_;
  }
  --share.open;
  --limits_.open_;
  if (--connection_->second.queries == 0) limits_.connections_.erase(connection_);
  limits_.grant();
}

bool QueryLimits::Query::begin() {
  auto& share = account_->parts.of<QueryShare>();
  if (begun_) return true;
  const std::uint32_t left = kBegun - limits_.begun_;
  if (share.begun >= left) return false;
  // Each that begins is one more of it, and leaves one less.
  const std::uint32_t left_to_principal = (left - share.begun + 1) / 2;
  if (connection_->second.begun >= left_to_principal) return false;
  ++connection_->second.begun;
  ++share.begun;
  ++limits_.begun_;
  begun_ = true;
  return true;
}

bool QueryLimits::Query::take_place() {
  const Lock lock(limits_.mutex_);
  if (state_ == State::idle && begin()) {
    worked_before_ns_ = worked_ns_;
    state_ = State::waiting;
    limits_.places_.push(*this);
    limits_.grant();
  }
  return state_ == State::running;
}

void QueryLimits::Query::give_place() {
  const Lock lock(limits_.mutex_);
  if (state_ != State::running) return;
  state_ = State::idle;
  charge();
  limits_.grant();
}

// A place that was hardly used was another's all the same.
void QueryLimits::Query::charge() {
  constexpr std::uint64_t kLeastNs = 1000;
  const std::uint64_t worked = std::max(worked_ns_ - worked_before_ns_, kLeastNs);
  FairQueue& places = limits_.places_;
  places.charge(*this, worked - std::min(worked, kSliceNs), false);
  places.refund(flow(), kSliceNs - std::min(worked, kSliceNs));
}

// Assigns places in order of the queue. A slice is charged in advance; otherwise the first
// principal in the queue would get all free places until its first slice ends.
void QueryLimits::grant() {
  while (places_.running() < kRunning) {
    FairQueue::Item* const item = places_.pop();
    if (item == nullptr) break;
    places_.charge(item->flow(), kSliceNs);
    static_cast<Query*>(item)->state_ = Query::State::running;
  }
  others_wait_.store(places_.has_ready(), std::memory_order_relaxed);
}

std::uint64_t QueryLimits::take_group_bytes(PrincipalAccount& account, std::uint64_t least) {
  const Lock lock(mutex_);
  auto& share = account.parts.of<QueryShare>();
  const auto held = static_cast<std::int64_t>(share.group_bytes);
  const std::int64_t left = std::max<std::int64_t>(group_bytes_left_ - held, 0);
  const std::uint64_t taken =
      std::clamp(static_cast<std::uint64_t>(left) / 2, least, kGroupBytesOfOne);
  share.group_bytes += taken;
  group_bytes_left_ -= static_cast<std::int64_t>(taken);
  return taken;
}

void QueryLimits::give_group_bytes(PrincipalAccount& account, std::uint64_t bytes) {
  const Lock lock(mutex_);
  account.parts.of<QueryShare>().group_bytes -= bytes;
  group_bytes_left_ += static_cast<std::int64_t>(bytes);
}

std::int64_t QueryLimits::group_bytes_left() const {
  const Lock lock(mutex_);
  return group_bytes_left_;
}

std::uint32_t QueryLimits::running() const {
  const Lock lock(mutex_);
  return places_.running();
}

std::uint32_t QueryLimits::opened() const {
  const Lock lock(mutex_);
  return open_;
}

}  // namespace espalier::offload
