// SPDX-License-Identifier: Apache-2.0
#include "bench/frame_traffic.hpp"

#include "base/clock.hpp"

namespace espalier::bench {
namespace {

// Full ICRCs are checked in one of so many frames: they cost as much as a lookup.
constexpr std::uint64_t kWholeEach = 16;

}  // namespace

FrameTraffic::FrameTraffic(FrameLinks& links, const FrameSet& frames, FrameCheck& check)
    : links_(links), frames_(frames), check_(check), thread_([this] { run(); }) {}

FrameTraffic::~FrameTraffic() {
  if (thread_.joinable()) stop();
}

TrafficCount FrameTraffic::stop() {
  ends_.store(true, std::memory_order_relaxed);
  thread_.join();
  return count_;
}

void FrameTraffic::run() {
  const base::Stopwatch watch;
  while (!ends_.load(std::memory_order_relaxed)) {
    for (std::size_t n = 0; n < FrameLinks::kBurst; ++n) {
      if (sent_ - next_ >= FrameLinks::kUnderWayMax) break;
      const std::size_t place = sent_ % FrameSet::kFrames;
      check_.leaves(place);
      if (!links_.send(frames_.at(place))) break;
      ++sent_;
    }
    links_.publish();
    take();
  }
  count_.per_second =
      static_cast<double>(count_.frames) * 1e9 / static_cast<double>(watch.elapsed_ns());
  const base::Stopwatch rest;
  while (next_ < sent_ && rest.elapsed_ns() < 1'000'000'000) take();
  count_.dropped += sent_ - next_;
}

void FrameTraffic::take() {
  for (const auto frame : links_.receive()) {
    const std::size_t place = FrameSet::psn_in(frame) % FrameSet::kFrames;
    const std::uint64_t skipped = (place - next_) % FrameSet::kFrames;  // a power of two of places
    if (skipped >= FrameLinks::kUnderWayMax) {  // an earlier one, or an unknown one
      ++count_.misrouted;
      continue;
    }
    count_.dropped += skipped;
    next_ += skipped + 1;
    ++count_.frames;
    const bool whole = count_.frames % kWholeEach != 0 || FrameSet::is_whole(frame);
    if (!whole || FrameSet::key_in(frame) != kRankKeys.redirect ||
        !check_.may_be(place, FrameSet::address_in(frame))) {
      ++count_.misrouted;
    }
  }
  received_.store(count_.frames, std::memory_order_relaxed);
}

}  // namespace espalier::bench
