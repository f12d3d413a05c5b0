// SPDX-License-Identifier: Apache-2.0
// A node of the simulated world of peer_world.hpp, from start to end, with production code: a
// scheduler with its executors, sessions of its peers, links to these, a region for them, and
// clients with rings in its own process. The world's seed determines its requests
// (peer_world_calls.cpp).
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "channel/peer/session_link.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/peer_posts.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "fabric/sim/world.hpp"
#include "kinds/region/format.hpp"
#include "tests/support/peer_history.hpp"

namespace espalier::test {

class PeerWorldNode;

/// State that all nodes of a world share.
struct PeerWorldParts {
  fabric::sim::World& world;
  base::Random& random;
  PeerHistory& history;
  PeerReached& reached;
  std::uint32_t nodes;      ///< their names are n0, n1, ...
  wire::LinkWay way;        ///< of the links' rings
  std::uint64_t answer_ns;  ///< after which a call is given up
  std::uint32_t window;     ///< requests in flight of one client
  std::uint32_t posts;      ///< of a step, most times; at most as many as one may
  double calls;             ///< of them, that are calls
  bool other_keys;          ///< sometimes a step replaces a key
  bool quiet = false;       ///< no more faults: all posts must complete as done
};

[[nodiscard]] inline std::string peer_node_name(std::uint32_t number) {
  return "n" + std::to_string(number);
}

/// The environment of a node's steps.
struct PeerWorldPart final : offload::NodePart {
  explicit PeerWorldPart(PeerWorldNode& of) : node(of) {}
  PeerWorldNode& node;
};

class PeerWorldNode {
 public:
  /// Starts with a region of its own. `source`: unique among processes.
  PeerWorldNode(PeerWorldParts& parts, std::uint32_t number, std::uint32_t source,
                std::unique_ptr<fabric::Endpoint> endpoint);
  /// Ends it, as if its process were killed. Requires: may_end().
  ~PeerWorldNode();
  PeerWorldNode(const PeerWorldNode&) = delete;
  PeerWorldNode& operator=(const PeerWorldNode&) = delete;

  /// One turn of its thread.
  void turn();
  /// Each of its clients sends so many more requests.
  void ask(std::uint32_t requests) { wanted_ += requests; }
  /// Whether all requests of its clients are answered.
  [[nodiscard]] bool is_answered() const { return wanted_ == 0 && asked_.empty(); }
  [[nodiscard]] std::string unanswered() const;
  /// Drops its region, and makes another one with its name.
  void replace_region();
  /// Disconnects one of its clients, with requests in flight, and connects another.
  void replace_client(std::size_t number);
  static constexpr std::size_t kClients = 2;
  /// Whether it refuses pairs by which its peers write memory.
  void refuse_memory(bool refuses) { refuses_memory_ = refuses; }
  /// Its steps forget their peers' regions.
  void forget_grants() { grants_.assign(grants_.size(), Grant()); }
  /// Its machine crashes; waits end, and nothing is opened any more.
  void set_crashed() { crashed_ = true; }
  /// Whether no opening runs on another thread.
  [[nodiscard]] bool may_end() const { return openings_ == 0; }
  /// Resources that are still taken, though nothing is in flight. Empty: none.
  [[nodiscard]] std::string audit();
  [[nodiscard]] bool links_are_up() const;

  // --- what steps do (peer_world_calls.cpp) ------------------------------------------------------

  [[nodiscard]] PeerWorldParts& parts() { return parts_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] std::uint32_t source() const { return source_; }
  /// The node behind the link of this number.
  [[nodiscard]] std::uint32_t peer(std::size_t link) const {
    return static_cast<std::uint32_t>(link) + (link >= number_ ? 1 : 0);
  }
  /// What its scheduler may use at a peer, and in which session.
  struct Grant {
    std::uint64_t session = 0;
    std::uint32_t region = 0;
    region::RegionGrant grant{};
  };
  [[nodiscard]] Grant& grant(std::size_t link) { return grants_[link]; }

 private:
  [[nodiscard]] offload::FixtureOptions scheduler_options();
  [[nodiscard]] offload::FabricClientsOptions client_options();
  [[nodiscard]] std::unique_ptr<channel::PeerLink> make_link(std::uint32_t peer,
                                                             std::function<void()> wake);
  void make_region();
  void add_client();
  void look_at_links();
  void serve_clients();
  void send(std::size_t client);
  void end_all();

  PeerWorldParts& parts_;
  const std::uint32_t number_;
  const std::uint32_t source_;
  const std::uint64_t began_ns_;
  rings::MessageBudget link_budget_{16 << 20};
  std::uint32_t openings_ = 0;
  bool crashed_ = false;
  bool refuses_memory_ = false;
  std::vector<const channel::PeerLink*> links_;
  std::vector<std::uint64_t> sessions_;  // of the links, at the last check
  std::vector<Grant> grants_;
  std::vector<std::uint32_t> regions_;  // all that it has had, by number; the last one exists
  std::unique_ptr<offload::SchedulerFixture> serving_;
  std::unique_ptr<offload::FabricClients> sessions_of_peers_;
  std::vector<offload::Connection*> broken_;
  std::vector<offload::SchedulerClient*> clients_;
  std::set<const offload::Connection*> own_connections_;  // theirs, that have not ended
  std::uint32_t wanted_ = 0;                              // of each client, that were not sent
  std::map<std::uint32_t, std::size_t> asked_;            // client by tag
  std::uint32_t next_tag_ = 1;
  bool turning_ = false;
};

/// The call of such a node: it posts random operations to peers, a few times, and answers with its
/// argument, which is the number in the history if the call comes from a peer.
inline constexpr auto kPeerWorldCall = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
[[nodiscard]] std::span<const offload::Offload> peer_world_calls();
inline constexpr std::string_view kPeerWorldRegion = "words";

}  // namespace espalier::test
