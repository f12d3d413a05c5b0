// SPDX-License-Identifier: Apache-2.0
// A map over four nodes behind a FatTree of 13 switches (dataplane/fat_tree.hpp), in one thread and
// on a seeded network: three nodes in one pod and one in another, a client in the first pod and one
// in neither. All nodes share one keyed key and one prefix. Clients know the borders, select the
// node of a key, and READ there by the key.
//
// Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dataplane/fat_tree.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"
#include "kinds/map/offload/index_reads.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "tests/support/checked_gets.hpp"

namespace espalier::test {

class FatTreeWorld : public CheckedGets {
 public:
  static constexpr const char* kPrefix = "user";  // of all keys
  static constexpr std::uint16_t kNodes = 4;
  static constexpr std::size_t kClients = 2;
  static constexpr std::array<dataplane::FatTree::Host, kNodes> kHosts{
      {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}}};
  static constexpr std::array<dataplane::FatTree::Host, kClients> kClientHosts{
      {{0, 1, 1}, {2, 0, 0}}};

  /// The switches' room: ranges in the core, a layer in each aggregation switch and two in each
  /// edge switch.
  struct Room {
    std::size_t ranges = 40;
    std::size_t nodes = 400;  // of each layer
  };

  FatTreeWorld(std::uint64_t seed, const MapOptions& options, std::uint32_t keys,
               std::uint64_t delay_max_ns = 1000);
  ~FatTreeWorld();
  FatTreeWorld(const FatTreeWorld&) = delete;
  FatTreeWorld& operator=(const FatTreeWorld&) = delete;

  [[nodiscard]] static std::string key(std::uint32_t i) {
    const std::string digits = std::to_string(i);
    return kPrefix + std::string(7 - digits.size(), '0') + digits;
  }
  [[nodiscard]] std::uint16_t node_of(const std::string& name) const;
  void put(const std::string& name, const std::string& value);
  /// Compiles the current trees of all nodes together; does not update switches.
  void compile(const Room& room);
  /// Sends a switch its part of the newest tables, or the same with arbitrary addresses.
  void install(std::size_t number);
  void install_lies(std::size_t number, base::Random& random);
  void install_all();
  void turn();
  void ask(std::size_t client, const std::string& name);
  /// Gets a key and waits. Returns the number of round trips.
  std::uint64_t trips_of(std::size_t client, const std::string& name);
  /// Whether all pairs are connected.
  [[nodiscard]] bool all_connected() const;
  [[nodiscard]] std::uint64_t resolved() const;  // by nodes, since no table matched
  [[nodiscard]] std::uint64_t restarts() const;  // of walks

  /// A READ pair, and the reader that uses it.
  struct Link {
    fabric::Registration own;  // at the node, of this client alone
    std::unique_ptr<fabric::QueuePair> host_pair;
    std::unique_ptr<fabric::CompletionQueue> done;
    std::unique_ptr<fabric::QueuePair> client_pair;
    std::unique_ptr<place::OneSidedReader> reader;
  };
  struct Node {
    Node(FatTreeWorld& world, std::uint16_t number, std::uint64_t seed, const MapOptions& options);
    tree::StoreCore store;
    tree::ThreadContext context;
    std::shared_ptr<tree::MapCore> map;
    tree::MapUser user;
    fabric::roce::RoceEndpoint endpoint;
    fabric::CompletionQueue done;
    offload::IndexReadCounts met;
    std::shared_ptr<fabric::SharedMap> shared;
    fabric::Registration keyed;
    fabric::Registration redirect;
  };
  struct Client {
    Client(FatTreeWorld& world, std::size_t number, std::uint64_t seed);
    fabric::roce::RoceEndpoint endpoint;
    std::array<Link, kNodes> links;
  };

  dataplane::FatTree tree;
  fabric::roce::PacketNetwork network;
  std::vector<std::string> borders;  // the first key of each node
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<dataplane::MapKeys> keys;
  std::vector<dataplane::SwitchProgram> programs;  // of the last compilation

 private:
  void connect(std::size_t client, std::uint16_t node);
  void answer_lease(Node& node, place::OneSidedReader& reader);

  std::uint32_t generation_ = 0;
};

}  // namespace espalier::test
