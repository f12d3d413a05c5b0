// SPDX-License-Identifier: Apache-2.0
// A map behind a switch, in one thread: a node, a client that walks the map by READs, and between
// them a switch inside this process with tables compiled from the map's tree; or two in a row, the
// fat root in the first and the sets of nodes in the second. The network is seeded, in simulated
// time, or an exchange of packets in real time.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dataplane/process_switch.hpp"
#include "dataplane/way_tables.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/exchange.hpp"
#include "fabric/roce/packet_network.hpp"
#include "index/index_follower.hpp"
#include "kinds/map/offload/index_reads.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "tests/support/checked_gets.hpp"

namespace espalier::test {

class SwitchWorld : public CheckedGets {
 public:
  static constexpr const char* kPrefix = "user";  // of all keys
  static constexpr fabric::Domain kDomain = 1;    // the client's
  enum class Way : std::uint8_t { network, exchange };
  enum class Switches : std::uint8_t { one, two };

  SwitchWorld(std::uint64_t seed, const MapOptions& options, std::uint32_t keys,
              Way way = Way::network, std::uint64_t delay_max_ns = 1000,
              Switches switches = Switches::one);
  ~SwitchWorld();
  SwitchWorld(const SwitchWorld&) = delete;
  SwitchWorld& operator=(const SwitchWorld&) = delete;

  static std::string key(std::uint32_t i) {
    const std::string digits = std::to_string(i);
    return kPrefix + std::string(7 - digits.size(), '0') + digits;
  }
  void put(const std::string& name, const std::string& value);
  void install(const dataplane::TableLimits& limits = {});
  /// Installs tables from elsewhere. Requires: check() accepts them.
  void install(const dataplane::IndexTables& to);
  /// Installs tables of a new generation in one of two switches: the other keeps its own. Without
  /// tables the switch forgets its own.
  void install_in(bool first, const dataplane::IndexTables* to);
  void clear() {
    function.install({});
    behind.install({});
  }
  [[nodiscard]] dataplane::IndexTables lying(base::Random& random) const;
  /// Gets and scans begin with a READ that carries their key from now on.
  void use_switch(std::uint32_t bytes = 4096) {
    reader->read_by_key({keyed.remote().key, kPrefix, bytes});
  }
  /// Runs both sides, and the network.
  void turn();
  void ask(const std::string& name);
  /// Gets a key and waits. Returns the number of round trips.
  std::uint64_t trips_of(const std::string& name);

  const Way way;
  fabric::roce::PacketNetwork network;
  fabric::roce::PortExchange exchange;
  tree::StoreCore store;
  tree::ThreadContext context;
  std::shared_ptr<tree::MapCore> map;
  tree::MapUser user;
  fabric::roce::RoceEndpoint host;
  fabric::roce::RoceEndpoint client;
  fabric::CompletionQueue host_done;
  fabric::CompletionQueue client_done;
  offload::IndexReadCounts met;
  std::shared_ptr<fabric::SharedMap> shared;
  fabric::Registration keyed;
  fabric::Registration redirect;
  fabric::Registration own;
  const Switches switches;
  dataplane::InstalledFunction function;
  dataplane::InstalledFunction behind;  // of the second switch, where there are two
  dataplane::ProcessSwitch through;
  dataplane::IndexTables tables;  // installed last, cleared or not
  std::function<void()> on_packet;
  std::unique_ptr<fabric::QueuePair> host_pair;
  std::unique_ptr<fabric::QueuePair> client_pair;
  std::unique_ptr<place::OneSidedReader> reader;

 private:
  std::unique_ptr<fabric::roce::PacketPort> open_port(std::uint8_t last);
  void connect();
  [[nodiscard]] std::vector<dataplane::SwitchProgram> cut(const dataplane::IndexTables& to);
  void pass(const fabric::roce::PortAddress& from, const fabric::roce::PortAddress& to,
            std::span<std::byte> ib);
  void answer_lease(const place::LeaseGuard::Asked& asked);
  [[nodiscard]] dataplane::MapKeys keys() const {
    return {keyed.remote().key, redirect.remote().key};
  }
  [[nodiscard]] std::uint64_t now_ns() const;

  std::uint32_t generation_ = 0;  // of tables for two switches
};

}  // namespace espalier::test
