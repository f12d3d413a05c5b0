// SPDX-License-Identifier: Apache-2.0
#include "tests/support/peer_world_node.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "engine/principal_accounts.hpp"
#include "kinds/region/offload/region_host.hpp"
#include "tests/support/refusing_endpoint.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kPeerMs = 1'000'000;

}  // namespace

PeerWorldNode::PeerWorldNode(PeerWorldParts& parts, std::uint32_t number, std::uint32_t source,
                             std::unique_ptr<fabric::Endpoint> endpoint)
    : parts_(parts),
      number_(number),
      source_(source),
      began_ns_(parts.world.now_ns()),
      sessions_(parts.nodes - 1),
      grants_(parts.nodes - 1) {
  endpoint = std::make_unique<RefusingEndpoint>(std::move(endpoint), refuses_memory_);
  const auto listens = endpoint->listen(peer_node_name(number));
  ESPALIER_ASSERT(listens.has_value());
  serving_ = std::make_unique<offload::SchedulerFixture>(
      scheduler_options(), std::uint64_t{64} << 20, peer_world_calls());
  sessions_of_peers_ = std::make_unique<offload::FabricClients>(
      std::move(endpoint), serving_->services(), serving_->scheduler(), serving_->doorbells(),
      client_options());
  for (std::size_t i = 0; i < kClients; ++i) add_client();
  auto on_ended = std::move(serving_->client_table().on_ended);
  serving_->client_table().on_broken = [this](offload::Connection& connection) {
    broken_.push_back(&connection);
  };
  serving_->client_table().on_ended = [this, on_ended](offload::Connection& connection) {
    if (own_connections_.erase(&connection) != 0) return on_ended(connection);
    serving_->doorbells().close(connection.doorbell);
  };
  make_region();
}

PeerWorldNode::~PeerWorldNode() { end_all(); }

offload::FixtureOptions PeerWorldNode::scheduler_options() {
  offload::FixtureOptions options;
  options.sweep_ns = ~std::uint64_t{0} >> 2;  // the machine's own time decides nothing
  options.make_parts = [this](offload::TypedSlots<offload::NodePart>& parts) {
    parts.make<PeerWorldPart>(*this);
    std::vector<offload::NodePeers::Peer> peers;
    for (std::uint32_t peer = 0; peer < parts_.nodes; ++peer) {
      if (peer == number_) continue;
      peers.push_back({peer_node_name(peer), [this, peer](std::function<void()> wake) {
                         return make_link(peer, std::move(wake));
                       }});
    }
    parts.make<offload::NodePeers>(std::move(peers));
  };
  return options;
}

offload::FabricClientsOptions PeerWorldNode::client_options() {
  offload::FabricClientsOptions options;
  options.node_id = source_ + 1;
  options.now_ns = [this] { return parts_.world.now_ns(); };
  options.draw = [this] { return parts_.random(); };
  options.pair_timeout_ns = kPeerMs;
  options.silence_ns = 20 * kPeerMs;
  options.resume_ns = 60 * kPeerMs;
  options.sessions_max = 64;
  return options;
}

std::unique_ptr<channel::PeerLink> PeerWorldNode::make_link(std::uint32_t peer,
                                                            std::function<void()> wake) {
  auto fabric = std::make_shared<peer::PeerFabric>();
  fabric->endpoint = [this, peer]() -> Result<fabric::Connecting> {
    if (crashed_) return fail(Code::connection_lost);
    return fabric::Connecting{parts_.world.add_endpoint(peer_node_name(number_)),
                              peer_node_name(peer)};
  };
  fabric->aside = [this](std::function<void()> work) {
    if (crashed_) throw std::system_error(std::make_error_code(std::errc::no_such_process));
    ++openings_;
    parts_.world.after(1'000, [this, work = std::move(work)] {
      work();
      --openings_;
    });
  };
  fabric->now_ns = [this] { return parts_.world.now_ns(); };
  fabric->pair_timeout_ns = kPeerMs;
  peer::PeerOptions options;
  options.way = parts_.way;
  options.timeout_ns = 20 * kPeerMs;
  options.silence_ns = 15 * kPeerMs;
  options.answer_ns = parts_.answer_ns;
  options.pause_ns = kPeerMs;
  options.pause_max_ns = 4 * kPeerMs;
  options.budget = &link_budget_;
  options.now_ns = fabric->now_ns;
  options.fabric = std::move(fabric);
  auto link = std::make_unique<peer::SessionLink>(options, std::move(wake));
  links_.push_back(link.get());
  return link;
}

void PeerWorldNode::make_region() {
  auto made =
      region::create_region(serving_->catalog(), kPeerWorldRegion, parts_.history.bytes_of_next());
  ESPALIER_ASSERT(made.has_value());
  regions_.push_back(parts_.history.add_region(number_, std::move(*made)));
}

void PeerWorldNode::add_client() {
  clients_.push_back(&serving_->connect());
  own_connections_.insert(clients_.back()->connection);
}

void PeerWorldNode::replace_client(std::size_t number) {
  std::erase_if(asked_, [number](const auto& each) { return each.second == number; });
  serving_->disconnect(*clients_[number]);
  add_client();
  std::swap(clients_[number], clients_.back());
  clients_.pop_back();
}

void PeerWorldNode::replace_region() {
  parts_.history.observe(regions_.back());
  const auto dropped = serving_->catalog().drop(kPeerWorldRegion);
  ESPALIER_ASSERT(dropped.has_value());
  parts_.history.region_dropped(regions_.back());
  ++parts_.reached.drops;
  make_region();
}

// --- turns ---------------------------------------------------------------------------------------

// Nothing of it lets time pass: what does runs aside.
void PeerWorldNode::turn() {
  ESPALIER_ASSERT(!turning_);
  turning_ = true;
  sessions_of_peers_->turn();
  serving_->scheduler().turn();
  for (offload::Connection* connection : std::exchange(broken_, {})) {
    sessions_of_peers_->end_broken(*connection);
  }
  sessions_of_peers_->turn();
  look_at_links();
  parts_.history.observe(regions_.back());
  serve_clients();
  turning_ = false;
}

void PeerWorldNode::look_at_links() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::uint64_t session = links_[i]->session();
    if (session == 0 || session == sessions_[i]) continue;
    sessions_[i] = session;
    parts_.history.session_began(source_, peer(i), session);
  }
}

void PeerWorldNode::serve_clients() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    while (const auto response = (*clients_[i])->receive()) {
      const auto at = asked_.find(response->header.tag);
      if (at == asked_.end() || at->second != i) {
        return parts_.history.set_wrong("an answer that nobody waits for");
      }
      asked_.erase(at);
      ++parts_.reached.answers;
      if (response->header.code != 0) {
        parts_.history.set_wrong("a client is answered with code " +
                                 std::to_string(response->header.code));
      }
    }
  }
  if (wanted_ == 0 || !parts_.random.chance(0.2)) return;
  for (std::size_t i = 0; i < clients_.size(); ++i) send(i);
  --wanted_;
}

void PeerWorldNode::send(std::size_t client) {
  const auto of_client = [client](const auto& each) { return each.second == client; };
  if (std::ranges::count_if(asked_, of_client) >= parts_.window) return;
  const std::uint32_t tag = next_tag_++;
  asked_.emplace(tag, client);
  (*clients_[client])->post(rings::message_of(rings::request_of(kPeerWorldCall, 0, tag)));
  (*clients_[client])->ring();
}

std::string PeerWorldNode::unanswered() const {
  std::string text = "node " + std::to_string(number_) + " has not answered";
  for (const auto& [tag, client] : asked_) text += " " + std::to_string(tag);
  return text + ", and " + std::to_string(wanted_) + " are to come";
}

bool PeerWorldNode::links_are_up() const {
  return std::ranges::all_of(links_, [](const auto* link) { return link->session() != 0; });
}

// --- in the end ----------------------------------------------------------------------------------

std::string PeerWorldNode::audit() {
  const std::string who = peer_node_name(number_) + ": ";
  offload::Scheduler& scheduler = serving_->scheduler();
  if (!scheduler.idle()) return who + "something is in flight";
  for (std::uint8_t hops = 0; hops <= wire::kHopsMax; ++hops) {
    const std::uint32_t taken = scheduler.places_taken(hops);
    if (taken != 0) {
      return who + std::to_string(taken) + " places of " + std::to_string(hops) + " hops are taken";
    }
  }
  if (sessions_of_peers_->counts().sessions != parts_.nodes - 1) {
    return who + std::to_string(sessions_of_peers_->counts().sessions) + " sessions are there";
  }
  std::uint32_t keys = 0;
  for (const auto& account : serving_->services().principals.all()) {
    const std::uint32_t waits = account->peer_waits;
    if (const auto* const share = account->parts.find<offload::RegionShare>()) keys += share->keys;
    if (waits != 0) return who + std::to_string(waits) + " requests wait for peers";
  }
  const auto region = serving_->catalog().open<region::RegionObject>(kPeerWorldRegion);
  if (!region || (*region)->keys() != keys || keys > parts_.nodes - 1) {
    return who + std::to_string(keys) + " keys are counted, and of the region " +
           std::to_string(region ? (*region)->keys() : 0) + " are good";
  }
  if (link_budget_.used() != 0) return who + "memory of answers is taken";
  for (const channel::PeerLink* const link : links_) {
    if (link->waits()) return who + "a link waits for something";
  }
  const auto wrong = serving_->audit();
  return wrong.empty() ? "" : who + wrong.front();
}

void PeerWorldNode::end_all() {
  crashed_ = true;
  ESPALIER_ASSERT(openings_ == 0);
  parts_.history.source_ended(source_);
  for (const std::uint32_t region : regions_) parts_.history.region_gone(region);
  sessions_of_peers_.reset();
  for (offload::SchedulerClient* const client : clients_) serving_->disconnect(*client);
  // What waits for peers ends with their silence at the latest.
  for (int i = 0; i < 100'000 && !serving_->scheduler().idle(); ++i) {
    serving_->scheduler().turn();
    parts_.world.run_for(10'000);
  }
  ESPALIER_ASSERT(serving_->scheduler().idle());
  serving_->scheduler().turn();
  serving_.reset();
}

}  // namespace espalier::test
