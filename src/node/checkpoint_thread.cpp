// SPDX-License-Identifier: Apache-2.0
#include "node/checkpoint_thread.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.hpp"

namespace espalier::node {
namespace {

using offload::CheckpointRun;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Polling interval of the log's size.
constexpr milliseconds kLookEvery{200};
/// Wait for a flush before the next check.
constexpr milliseconds kFlushWait{1};
/// Within this time it catches up with its rate.
constexpr std::uint64_t kSecondNs = 1'000'000'000;

}  // namespace

CheckpointThread::CheckpointThread(Terms terms)
    : terms_(std::move(terms)),
      due_bytes_(terms_.log_bytes - std::min(terms_.log_bytes, terms_.there_bytes)),
      again_after_(terms_.again_after) {
  thread_ = std::thread([this] { run(); });
}

CheckpointThread::~CheckpointThread() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  thread_.join();
}

void CheckpointThread::request() {
  const std::scoped_lock lock(mutex_);
  requested_ = true;
  stopping_.notify_all();
}

bool CheckpointThread::is_due() const {
  if (requested_) return true;
  if (base::monotonic_ns() < due_ns_) return false;
  return terms_.of.log.written_bytes() >= due_bytes_ || terms_.of.log.is_at_bound();
}

void CheckpointThread::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      stopping_.wait_for(lock, kLookEvery, [this] { return stopped_ || requested_; });
      if (stopped_) return;
    }
    // A failed log acknowledges nothing more, so no checkpoint would be finished.
    if (terms_.of.log.acknowledgements().error()) return;
    if (is_due()) make_one();
  }
}

bool CheckpointThread::pause(nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, time, [this] { return stopped_; });
}

void CheckpointThread::make_one() {
  requested_ = false;
  const std::uint64_t began_ns = base::monotonic_ns();
  due_bytes_ = terms_.of.log.written_bytes() + terms_.log_bytes;
  const auto made = CheckpointRun::begin(terms_.of);
  if (!made) return fail(made.error());
  while (true) {
    const auto state = (*made)->step();
    if (!state) return fail(state.error());
    if (*state == CheckpointRun::State::done) return finish(**made, began_ns);
    nanoseconds time{0};
    if (*state == CheckpointRun::State::waiting) time = kFlushWait;
    const double written_ns = static_cast<double>((*made)->moved_bytes()) /
                              static_cast<double>(terms_.bytes_per_s) * kSecondNs;
    const auto due_ns = began_ns + static_cast<std::uint64_t>(written_ns);
    const std::uint64_t now_ns = base::monotonic_ns();
    if (due_ns > now_ns) time = std::max(time, nanoseconds(due_ns - now_ns));
    if (!pause(time)) return;
  }
}

void CheckpointThread::finish(const CheckpointRun& made, std::uint64_t began_ns) {
  counts_.last_records = made.records();
  counts_.last_bytes = made.bytes();
  const std::uint64_t now_ns = base::monotonic_ns();
  counts_.last_ns = now_ns - began_ns;
  ++counts_.finished;
  // If that did not bring the log below its bound, an immediate next one would not either.
  again_after_ = terms_.again_after;
  due_ns_ = now_ns + static_cast<std::uint64_t>(again_after_.count());
}

void CheckpointThread::fail(const log::LogError& error) {
  due_bytes_ = terms_.of.log.written_bytes() + terms_.again_bytes;
  due_ns_ = base::monotonic_ns() + static_cast<std::uint64_t>(again_after_.count());
  again_after_ = std::min(2 * again_after_, terms_.again_after_max);
  ++counts_.failed;
  if (!terms_.failed) return;
  try {
    terms_.failed(log::message(error));
  } catch (const std::bad_alloc&) {  // it is counted
  }
}

CheckpointThread::Terms checkpoint_terms(DataFolder& folder, offload::Services& services,
                                         std::span<const offload::Kind> own_kinds,
                                         const Config::Data& settings, std::uint64_t segment_bytes,
                                         std::function<void(const std::string&)> failed) {
  return {.of = folder.checkpoint_terms(services, own_kinds),
          .log_bytes = std::min(settings.checkpoint_log_bytes, settings.log_bytes_max / 2),
          .there_bytes = folder.recovered().segments.size() * segment_bytes,
          .again_bytes = segment_bytes,
          .failed = std::move(failed)};
}

}  // namespace espalier::node
