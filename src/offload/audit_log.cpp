// SPDX-License-Identifier: Apache-2.0
#include "offload/audit_log.hpp"

#include <algorithm>
#include <utility>

namespace espalier::offload {

void AuditLog::refill() {
  const std::uint64_t now = now_ns_();
  if (now < filled_ns_) return;
  const std::uint64_t more = (now - filled_ns_) / kRefillNs;
  tokens_ = std::min(kBurst, tokens_ + std::min(more, kBurst));
  filled_ns_ += more * kRefillNs;
}

bool AuditLog::take_token() {
  if (!is_open()) return false;
  const std::lock_guard lock(mutex_);
  refill();
  if (tokens_ != 0) {
    --tokens_;
    return true;
  }
  ++left_out_;
  if (++untold_ == 1) changed_.notify_all();
  return false;
}

void AuditLog::add(AuditRecord record) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kWaitingMax) {
    ++left_out_;
    ++untold_;
    return;
  }
  record.left_out = untold_;
  waiting_.push_back(std::move(record));
  untold_ = 0;
  changed_.notify_all();
}

void AuditLog::leave_out() noexcept {
  const std::lock_guard lock(mutex_);
  ++left_out_;
  ++untold_;
}

std::optional<AuditRecord> AuditLog::take() {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) {
    AuditRecord record = std::move(waiting_.front());
    waiting_.pop_front();
    return record;
  }
  refill();
  if (untold_ == 0 || (tokens_ == 0 && !stopped_)) return std::nullopt;
  tokens_ -= std::min<std::uint64_t>(tokens_, 1);
  AuditRecord record;
  record.refusal = true;
  record.left_out = std::exchange(untold_, 0);
  return record;
}

bool AuditLog::wait() {
  std::unique_lock lock(mutex_);
  const auto some = [this] { return stopped_ || !waiting_.empty(); };
  if (untold_ == 0) {
    changed_.wait(lock, [&] { return some() || untold_ != 0; });
  } else {
    changed_.wait_for(lock, std::chrono::nanoseconds(kRefillNs), some);
  }
  return !stopped_;
}

void AuditLog::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::uint64_t AuditLog::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

}  // namespace espalier::offload
