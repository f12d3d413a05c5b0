// SPDX-License-Identifier: Apache-2.0
// A device's link to the host of one_sided_world.hpp: stands for DeviceLink, in one thread and by
// the world's clock. Requests travel as messages that may be delayed, and READs go through the
// simulated fabric. The maps, their leases and their readers are those of a device (host_maps.hpp,
// device_map.hpp, map_reader.hpp); rings and handshakes on threads are left out.
//
//   down --(a session)--> dialling --(connected)--> reading --(reads or lease lost)--> dialling
//    ^                                                |
//    +-----------(the host answers nothing)-----------+
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "channel/device/host_asker.hpp"
#include "channel/device/host_link.hpp"
#include "engine/connection.hpp"
#include "kinds/map/device/host_maps.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {

class WorldDeviceLink final : public device::HostLink, private device::HostAsker {
 public:
  struct Place {
    fabric::sim::World& world;
    std::deque<std::unique_ptr<WorldHost>>& hosts;  // all lives so far; all outlive the link
    std::string node;                               // of the device, which is up
  };
  /// `now_ns`: the clock of the device. Requires: the host lives. All references outlive this.
  WorldDeviceLink(const Place& place, std::uint64_t seed, const OneSidedOptions& options,
                  std::function<std::uint64_t()> now_ns, OneSidedCounts& counts);
  ~WorldDeviceLink() override;

  // --- for the scheduler and the offloads --------------------------------------------------------
  void post(offload::Request& request, const wire::CallMessage& message,
            device::AnswerPace pace) override;
  void cancel(const offload::Request&) noexcept override {}  // the answer arrives all the same
  bool turn(device::PostedRequests& posted) override;
  [[nodiscard]] bool waits() const override { return !waiting_.empty(); }
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override { return 0; }
  [[nodiscard]] bool forwards() override { return false; }
  [[nodiscard]] std::uint64_t connection() const override { return 1; }
  void notify(std::uint64_t, const wire::CallMessage&) override {}  // the host keeps nothing

  // --- for the world -----------------------------------------------------------------------------
  [[nodiscard]] device::HostMaps& maps() { return maps_; }
  /// The host is another node by now, or does not answer: this link must be replaced.
  [[nodiscard]] bool lost() const { return lost_; }
  /// Ends all waiting requests, and sends no more.
  void end();
  [[nodiscard]] WorldHost& host() { return host_; }
  /// The session of its leases.
  [[nodiscard]] std::uint32_t session() const { return session_; }
  /// When the host answered the newest received grant or renewal of this map's lease.
  [[nodiscard]] std::uint64_t heard_ns(std::uint32_t map) const;
  /// Whether the request that this connection numbered so was relayed to the host.
  [[nodiscard]] bool relayed(const offload::Connection* connection, std::uint32_t tag) const {
    return relayed_.contains({connection, tag});
  }
  /// Leases that the host would not renew.
  [[nodiscard]] std::uint64_t leases_lost() const { return leases_lost_; }
  /// Counts what its readers did, before they end.
  void count();

 private:
  struct Waiting {
    DeviceQuestion question;
    offload::Request* request = nullptr;  // null: the device itself
    OnAnswer on_answer;
    std::uint64_t asked_ns = 0;
  };
  struct Arrived {
    std::uint64_t number = 0;
    DeviceAnswer answer;
    std::uint64_t answered_ns = 0;
  };

  void ask(const wire::CallMessage& message, OnAnswer on_answer) override;
  void send(Waiting waiting);
  void take(const Arrived& arrived, device::PostedRequests& posted);
  void hand_on(const Waiting& waiting, const DeviceAnswer& answer, device::PostedRequests& posted);
  void look_for_silence();
  void dial();
  void fail_all(device::PostedRequests& posted);
  [[nodiscard]] std::uint64_t way_ns();

  fabric::sim::World& world_;
  const std::string node_;
  WorldHost& host_;
  Random random_;
  const OneSidedOptions options_;
  const std::function<std::uint64_t()> now_ns_;
  OneSidedCounts& world_counts_;
  const std::uint32_t session_;
  device::HostMaps maps_;
  std::unique_ptr<client::SideLink> dialling_;
  std::uint64_t dialled_ns_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;  // by number
  std::uint64_t next_number_ = 1;
  std::deque<Arrived> arrived_;
  std::map<std::uint32_t, std::uint64_t> heard_ns_;  // by map
  std::set<std::pair<const offload::Connection*, std::uint32_t>> relayed_;
  std::uint64_t leases_lost_ = 0;
  bool lost_ = false;
  bool ended_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // checked by messages in flight
};

}  // namespace espalier::test
