// SPDX-License-Identifier: Apache-2.0
// Memory that one session may WRITE: windows on request, charged to its share of message memory.
//
// A window is a landing region (fabric/landing_region.hpp) and untrusted like any message, and may
// change while it is read. Requests that read it share ownership: when its session ends, its key is
// revoked immediately, and its memory is freed with the last request.
//
// Thread: that of the scheduler; LandingWindow::read_once() any.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/session_parts.hpp"
#include "fabric/landing_region.hpp"
#include "rings/message_budget.hpp"

namespace espalier::offload {

class Connection;

/// One window. Returns its bytes to the budget when destroyed.
class LandingWindow {
 public:
  LandingWindow(fabric::LandingRegion region, rings::MessageBudget& budget)
      : region_(std::move(region)), budget_(budget) {}
  ~LandingWindow() { budget_.give(region_.bytes()); }
  LandingWindow(const LandingWindow&) = delete;
  LandingWindow& operator=(const LandingWindow&) = delete;

  [[nodiscard]] const fabric::LandingRegion& region() const { return region_; }
  /// Ends the session's right to write.
  void revoke() { region_.revoke(); }

 private:
  fabric::LandingRegion region_;
  rings::MessageBudget& budget_;
};

/// The windows of one session.
class LandingHost final : public SessionPart {
 public:
  /// The session's host, created on first use; null: it may write nothing.
  [[nodiscard]] static LandingHost* of(Connection& connection);
  /// `regions`, `domain`: of the endpoint and the queue pairs of the session. `share`: of its
  /// connection; both it and `budget` outlive this, and the budget all windows.
  LandingHost(fabric::RegionTable& regions, fabric::Domain domain, bool peer_maps_memory,
              rings::MessageBudget& budget, const rings::MessageShare& share)
      : regions_(regions),
        domain_(domain),
        peer_maps_memory_(peer_maps_memory),
        budget_(budget),
        share_(share) {}
  ~LandingHost() override { end(); }
  LandingHost(const LandingHost&) = delete;
  LandingHost& operator=(const LandingHost&) = delete;

  struct Opened {
    std::uint64_t window;
    fabric::RemoteRegion region;
  };
  /// Errors: invalid_argument (no bytes, or more than LandingRegion::kBytesMax), out_of_memory
  /// (more than the session's share), too_many_participants (kLandingWindowsMax), system.
  Result<Opened> open(std::uint64_t bytes);
  /// Null: the session has no such window.
  [[nodiscard]] std::shared_ptr<const LandingWindow> find(std::uint64_t window) const;
  bool close(std::uint64_t window);
  void end() override;

 private:
  fabric::RegionTable& regions_;
  fabric::Domain domain_;
  bool peer_maps_memory_;
  rings::MessageBudget& budget_;
  const rings::MessageShare& share_;
  std::unordered_map<std::uint64_t, std::shared_ptr<LandingWindow>> windows_;
  std::uint64_t next_window_ = 1;
  std::uint64_t bytes_ = 0;  // of all its windows
};

}  // namespace espalier::offload
