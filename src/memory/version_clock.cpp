// SPDX-License-Identifier: Apache-2.0
// Versions that wait for their records.
#include "memory/version_clock.hpp"

#include <chrono>

#include "base/durable_mark.hpp"

namespace espalier::memory {

/// The sequences of what is done, in its places of the window.
class VersionClock::Records final : public base::DurableMark::Waiter {
 public:
  Records(VersionClock& clock, base::DurableMark& mark)
      : clock_(clock),
        mark_(mark),
        sequences_(std::make_unique<std::atomic<std::uint64_t>[]>(kWindow)) {}
  ~Records() override { mark_.leave(*this); }

  [[nodiscard]] base::DurableMark& mark() const { return mark_; }
  [[nodiscard]] std::atomic<std::uint64_t>& sequence(std::uint64_t version) const {
    return sequences_[version % kWindow];
  }

 private:
  bool release_durable() noexcept override { return clock_.release_durable(); }

  VersionClock& clock_;
  base::DurableMark& mark_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> sequences_;
};

VersionClock::VersionClock() = default;
VersionClock::~VersionClock() = default;

void VersionClock::wait_for_records(base::DurableMark* mark) {
  records_.reset();
  durable_ = &kAllDurable;
  if (mark == nullptr || !mark->is_of_records() || !versions_) return;
  if (planted(Bug::released_before_durable)) return;
  records_ = std::make_unique<Records>(*this, *mark);
  durable_ = &mark->word();
}

void VersionClock::wait_for_record(std::uint64_t version, std::uint64_t sequence) noexcept {
  records_->sequence(version).store(sequence);
}

void VersionClock::ask_for_rise() noexcept { records_->mark().wait_for_rise(*records_); }

bool VersionClock::record_is_durable(std::uint64_t version) const noexcept {
  return records_->sequence(version).load() <= durable_->load();
}

bool VersionClock::records_failed() const noexcept { return records_->mark().failed(); }

std::uint64_t VersionClock::records_released() const noexcept {
  return records_->mark().released();
}

// Not longer, for a version may be released by another writer that is done, without a flush.
void VersionClock::await_records(std::uint64_t seen) {
  constexpr std::chrono::microseconds kPause{100};
  if (records_->mark().failed()) return std::this_thread::yield();
  static_cast<void>(records_->mark().await(seen + 1, kPause));
}

// By loads that are sequentially consistent, as DurableMark wants: of this thread and a writer that
// moves on, or marks a later version as done, one sees the other.
bool VersionClock::release_durable() noexcept {
  const auto read = base::shared<std::uint64_t>(words_.read);
  if (!planted(Bug::rise_releases_nothing) && !held()) release_from(read.load());
  return read.load() < base::shared<std::uint64_t>(words_.write).load();
}

}  // namespace espalier::memory
