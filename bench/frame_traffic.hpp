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

/// Checks the results of frames. Thread: that of the traffic.
class FrameCheck {
 public:
  virtual ~FrameCheck() = default;
  /// Called before a frame is sent: the tables active now and later ones may apply to it.
  virtual void leaves(std::size_t place) = 0;
  /// Whether this address is a valid result.
  [[nodiscard]] virtual bool may_be(std::size_t place, std::uint64_t address) = 0;
};

struct TrafficCount {
  std::uint64_t frames = 0;  // received
  std::uint64_t dropped = 0;
  std::uint64_t misrouted = 0;
  double per_second = 0;
};

class FrameTraffic {
 public:
  /// All must outlive it.
  FrameTraffic(FrameLinks& links, const FrameSet& frames, FrameCheck& check);
  ~FrameTraffic();
  FrameTraffic(const FrameTraffic&) = delete;
  FrameTraffic& operator=(const FrameTraffic&) = delete;

  /// Frames received so far. Thread: any.
  [[nodiscard]] std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  /// Stops sending, and waits for frames in flight. Those missing after a second count as dropped.
  TrafficCount stop();

 private:
  void run();
  void take();

  FrameLinks& links_;
  const FrameSet& frames_;
  FrameCheck& check_;
  std::uint64_t sent_ = 0;
  std::uint64_t next_ = 0;  // the next expected one
  TrafficCount count_;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace espalier::bench
