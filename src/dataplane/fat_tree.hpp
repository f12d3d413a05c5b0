// SPDX-License-Identifier: Apache-2.0
// A FatTree of k = 4 with one core inside one process: 13 switches between 16 hosts, as
// [Fat-B+Tree §IV-A] has it, with links and switches that fail. Addresses are those of Al-Fares.
//
//                       core 10.4.1.1                        fat roots of all nodes
//              |            |            |            |
//          10.0.2.1     10.1.2.1     10.2.2.1     10.3.2.1   layers of nodes for the pod
//          |      |      |      |      |     |      |     |
//     10.0.0.1 10.0.1.1 10.1.0.1 10.1.1.1   ...              layers of nodes below the edge
//       |  |
//     hosts 10.pod.edge.2 and .3, their services 10.pod.edge.130 and .131
//
// A packet takes the shortest way to a host's address, and to the address of its service always the
// one through the core, where the fat roots are: both ends of a pair whose READs carry keys are
// there, so its packets take one way and keep their order, and a node in the client's own pod is
// met by the tables too.
//
// Thread: one; functions are installed by any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/process_switch.hpp"
#include "dataplane/way_tables.hpp"

namespace espalier::dataplane {

class FatTree {
 public:
  static constexpr std::size_t kPods = 4;
  static constexpr std::size_t kEdges = 2;  // of a pod, below one aggregation switch
  static constexpr std::size_t kHosts = 2;  // of an edge switch
  static constexpr std::size_t kSwitches = 1 + kPods + kPods * kEdges;
  static_assert(kSwitches == 13);
  static constexpr std::uint8_t kFirstAddress = 2;
  static constexpr std::uint8_t kFirstService = 130;

  struct Host {
    std::uint8_t pod = 0;
    std::uint8_t edge = 0;
    std::uint8_t number = 0;
    [[nodiscard]] fabric::roce::IpAddress address() const { return with(kFirstAddress); }
    [[nodiscard]] fabric::roce::IpAddress service() const { return with(kFirstService); }
    friend bool operator==(const Host&, const Host&) = default;

   private:
    [[nodiscard]] fabric::roce::IpAddress with(std::uint8_t first) const {
      return fabric::roce::IpAddress::v4(10, pod, edge, static_cast<std::uint8_t>(first + number));
    }
  };

  static constexpr std::size_t kCore = 0;
  static constexpr std::size_t aggregation(std::size_t pod) { return 1 + pod; }
  static constexpr std::size_t edge(std::size_t pod, std::size_t number) {
    return 1 + kPods + pod * kEdges + number;
  }

  FatTree();
  FatTree(const FatTree&) = delete;
  FatTree& operator=(const FatTree&) = delete;

  /// The next node, 0 at first, is the service of this host. Requires: none is there.
  void add_node(const Host& host);
  /// The ways to all nodes: fat roots in the core, layers in the other two.
  [[nodiscard]] TopologyBudget budget(std::size_t ranges, const HopBudget& of_aggregation,
                                      const HopBudget& of_edge) const;

  [[nodiscard]] InstalledFunction& function(std::size_t number) { return functions_[number]; }
  /// Packets through a switch that is down are lost, and so are those by its link upwards or a
  /// host's. A switch that comes up again has no tables. All are up at first.
  void set_switch(std::size_t number, bool up);
  [[nodiscard]] bool is_up(std::size_t number) const { return switches_[number]; }
  void set_uplink(std::size_t number, bool up) { uplinks_[number] = up; }
  void set_host_link(const Host& host, bool up) { host_links_[place_of(host)] = up; }

 private:
  std::array<InstalledFunction, kSwitches> functions_;  // through has readers of them

 public:
  ProcessSwitch through;

 private:
  struct Address {
    Host host;
    bool is_service = false;
  };
  /// Nothing: no host has it.
  [[nodiscard]] static std::optional<Address> address_of(const fabric::roce::IpAddress& ip);
  [[nodiscard]] static std::size_t place_of(const Host& host) {
    return (host.pod * kEdges + host.edge) * kHosts + host.number;
  }
  [[nodiscard]] bool find_way(const fabric::roce::PortAddress& from,
                              const fabric::roce::PortAddress& to,
                              std::vector<ProcessSwitch::Stop>& way) const;
  [[nodiscard]] bool is_up(const Host& from, const Host& to,
                           const std::vector<ProcessSwitch::Stop>& way) const;

  std::array<bool, kSwitches> switches_{};
  std::array<bool, kSwitches> uplinks_{};  // of all but the core
  std::array<bool, kPods * kEdges * kHosts> host_links_{};
  std::vector<Host> nodes_;  // by their numbers
};

}  // namespace espalier::dataplane
