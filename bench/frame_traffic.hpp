// SPDX-License-Identifier: Apache-2.0
// A thread that sends frames through a switch at the highest rate, while the switch's tables
// change, and checks each against the valid results.
//
// Invariants
// I1. No more frames are in flight than the links hold, so a missing frame was dropped by a switch
//     that had room.
// I2. Frames stay in order, so a frame that arrives shows which earlier ones are missing.
//
// Thread: one makes and ends it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "bench/frame_links.hpp"
#include "bench/switch_frames.hpp"

namespace espalier::bench {

/// What frames may become. Thread: that of the traffic.
class FrameCheck {
 public:
  virtual ~FrameCheck() = default;
  /// A frame is about to be sent: what is in force now may meet it, and what comes later.
  virtual void leaves(std::size_t place) = 0;
  /// Whether it may have been led there.
  [[nodiscard]] virtual bool may_be(std::size_t place, std::uint64_t address) = 0;
};

struct TrafficCount {
  std::uint64_t frames = 0;  // that came
  std::uint64_t dropped = 0;
  std::uint64_t misrouted = 0;
  double per_second = 0;
};

class FrameTraffic {
 public:
  /// All outlive it.
  FrameTraffic(FrameLinks& links, const FrameSet& frames, FrameCheck& check);
  ~FrameTraffic();
  FrameTraffic(const FrameTraffic&) = delete;
  FrameTraffic& operator=(const FrameTraffic&) = delete;

  /// Frames that have come so far. Thread: any.
  [[nodiscard]] std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  /// Sends no more, and waits for what is under way. What is missing after a second is dropped.
  TrafficCount stop();

 private:
  void run();
  void take();

  FrameLinks& links_;
  const FrameSet& frames_;
  FrameCheck& check_;
  std::uint64_t sent_ = 0;
  std::uint64_t next_ = 0;  // that should come
  TrafficCount count_;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace espalier::bench
