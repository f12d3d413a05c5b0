// SPDX-License-Identifier: Apache-2.0
#include "engine/audit_log.hpp"

#include <algorithm>
#include <utility>

namespace espalier::offload {

void AuditLog::Bucket::refill(std::uint64_t now_ns) {
  if (now_ns < filled_ns) return;
  const std::uint64_t more = (now_ns - filled_ns) / kRefillNs;
  tokens = std::min(kBurst, tokens + std::min(more, kBurst));
  filled_ns += more * kRefillNs;
}

bool AuditLog::Bucket::take(std::uint64_t now_ns) {
  refill(now_ns);
  if (tokens == 0) return false;
  --tokens;
  return true;
}

// A full bucket has no state worth keeping: it can be recreated later.
AuditLog::Bucket& AuditLog::bucket_of(std::string_view principal, std::uint64_t now_ns) {
  const bool place = principal.starts_with("address ");
  Buckets& buckets = place ? places_ : known_;
  const std::size_t most = place ? kPlacesMax : kKnownMax;
  if (const auto known = buckets.find(principal); known != buckets.end()) return known->second;
  if (buckets.size() >= most && now_ns - swept_ns_ >= kRefillNs) {
    swept_ns_ = now_ns;
    std::erase_if(buckets, [&](const auto& entry) {
      Bucket now = entry.second;
      now.refill(now_ns);
      return now.tokens == kBurst;
    });
  }
  if (buckets.size() >= most) return rest_;
  return buckets.try_emplace(std::string(principal), now_ns).first->second;
}

bool AuditLog::take_token(std::string_view principal) noexcept {
  if (!is_open()) return false;
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = now_ns_();
  Bucket* bucket = &rest_;
  try {
    bucket = &bucket_of(principal, now);
  } catch (const std::bad_alloc&) {  // it shares the bucket of the others
  }
  if (bucket->take(now)) return true;
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
  if (untold_ != 0) told_ns_ = now_ns_();
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
  if (untold_ == 0) return std::nullopt;
  const std::uint64_t now = now_ns_();
  if (told_ns_ != 0 && now - told_ns_ < kRefillNs && !stopped_) return std::nullopt;
  told_ns_ = now;
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
