// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_device.hpp"

#include <algorithm>

#include "channel/device/host_posts.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"

namespace espalier::test {
namespace {

// So large that every answer has room immediately, and leaves when it is made.
constexpr wire::ConnectionLayout kRings{256, 16384, 1};
constexpr std::uint64_t kSweepsNs = 1'000'000;  // in which the host has checked its leases

offload::FixtureOptions fixture_options(WorldDeviceLink& link) {
  offload::FixtureOptions options;
  options.make_parts = [&link](offload::TypedSlots<offload::NodePart>& parts) {
    parts.make<device::NodeHost>().links.push_back(&link);
    parts.make<offload::NodeMapsElsewhere>().of_scheduler.push_back(&link.maps());
  };
  options.sweep_ns = ~std::uint64_t{0} >> 2;  // the machine's own time decides nothing
  return options;
}

}  // namespace

WorldDevice::WorldDevice(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
                         std::uint32_t number, std::uint64_t seed, const OneSidedOptions& options,
                         OneSidedCounts& counts, std::function<void()> others)
    : world_(world),
      hosts_(hosts),
      node_("device" + std::to_string(number)),
      random_(seed),
      options_(options),
      counts_(counts),
      others_(std::move(others)) {
  begin();
}

WorldDevice::~WorldDevice() { end(); }

// --- its engine ----------------------------------------------------------------------------------

void WorldDevice::begin() {
  if (engines_++ == 0) {
    static_cast<void>(world_.add_node(node_));  // its endpoints are those of the link
  }
  link_ = std::make_unique<WorldDeviceLink>(
      WorldDeviceLink::Place{world_, hosts_, node_}, random_(), options_,
      [this] { return clock(); }, counts_);
  scheduler_ = std::make_unique<offload::SchedulerFixture>(
      fixture_options(*link_), std::uint64_t{64} << 20, std::span<const offload::Offload>{},
      &offloads_.table());
  for (Client& client : clients_) {
    client.at = &scheduler_->connect(kRings);
    client.maps.clear();
  }
}

// Its requests end without an answer.
void WorldDevice::end() {
  busy_ = true;
  if (link_) link_->end();
  scheduler_.reset();
  link_.reset();
  busy_ = false;
}

void WorldDevice::turn() {
  if (dead_ || busy_ || !scheduler_) return;
  if (world_.now_ns() < stopped_until_ns_ || world_.now_ns() < next_turn_ns_) return;
  const bool in_flight = !scheduler_->scheduler().idle();
  busy_ = true;
  scheduler_->turn();
  collect();
  busy_ = false;
  const bool late = options_.device_slow && random_.one_in(4);
  next_turn_ns_ = world_.now_ns() + (late ? random_.below(300'000) : random_.below(5'000));
  counts_.device_late_turns += late && in_flight ? 1 : 0;
  if (!link_->lost() || hosts_.back()->dead()) return;
  end();
  begin();
  ++counts_.device_engines;
}

// A process may be stopped anywhere, and between two reads of its clock the place makes no
// difference. Earlier answers have left it by then.
std::uint64_t WorldDevice::clock() {
  if (options_.device_slow && busy_ && scheduler_ && random_.one_in(16)) {
    ++counts_.device_late_steps;
    collect();
    const std::uint64_t until =
        world_.now_ns() + random_.below(random_.one_in(8) ? 400'000 : 20'000);
    while (world_.now_ns() < until) others_();
    if (world_.now_ns() < stopped_until_ns_) ++counts_.device_stops_within;
    while (world_.now_ns() < stopped_until_ns_) others_();
  }
  return world_.now_ns();
}

// --- its troubles --------------------------------------------------------------------------------

void WorldDevice::stop() {
  if (dead_) return;
  ++counts_.device_stops;
  const std::uint64_t for_ns =
      random_.between(kWorldTerms.lost_after_ns / 2, 4 * kWorldTerms.lost_after_ns);
  stopped_until_ns_ = world_.now_ns() + for_ns;
  if (random_.one_in(2)) return;  // its machine is up, and READs arrive
  world_.pause(node_);
  world_.after(for_ns, [this] { world_.resume(node_); });
}

void WorldDevice::die() {
  if (busy_) return world_.after(1'000, [this] { die(); });
  dead_ = true;
  ++counts_.devices_dead;
  if (random_.one_in(2)) world_.crash(node_);
  // Its requests may still be in flight to the host.
  world_.after(3 * kWorldTerms.lost_after_ns + kSweepsNs, [this] { look_at_the_dead(); });
}

void WorldDevice::look_at_the_dead() {
  if (!link_ || link_->host().dead()) return;
  ++counts_.dead_devices_looked_at;
  if (link_->host().holds_lease(link_->session())) {
    wrong_ = node_ + " is dead, and its leases have no end";
  }
}

// --- its clients ---------------------------------------------------------------------------------

std::uint64_t WorldDevice::way_ns() { return random_.between(500, 10'000); }

std::size_t WorldDevice::add_client(OnResponse on_response) {
  Client client;
  client.on_response = std::move(on_response);
  client.at = &scheduler_->connect(kRings);
  clients_.push_back(std::move(client));
  return clients_.size() - 1;
}

void WorldDevice::send(std::size_t client, std::uint64_t engine, const std::string& message) {
  world_.after(way_ns(), [this, client, engine, message] {
    if (!scheduler_ || engine != engines_) return;
    Client& from = clients_[client];
    const auto header =
        base::load_plain<wire::RequestHeader>(reinterpret_cast<const std::byte*>(message.data()));
    from.maps[header.tag] = header.map;
    (*from.at)->post(message);
    (*from.at)->ring();
  });
}

void WorldDevice::collect() {
  for (std::size_t i = 0; i != clients_.size(); ++i) {
    Client& client = clients_[i];
    if ((*client.at)->flush()) (*client.at)->ring();
    while (auto response = (*client.at)->receive()) {
      check(client, *response);
      const bool last =
          response->header.kind != static_cast<std::uint8_t>(wire::ResponseKind::chunk);
      if (last) client.maps.erase(response->header.tag);
      world_.after(way_ns(), [this, i, engine = engines_, said = std::move(*response)] {
        if (scheduler_ && engine == engines_) clients_[i].on_response(said);
      });
    }
  }
}

// The host is responsible for relayed requests.
void WorldDevice::check(const Client& client, const rings::Response& response) {
  if (response.header.code != 0) return;
  const std::uint32_t tag = response.header.tag;
  if (link_->relayed(client.at->connection, tag)) return;
  ++counts_.device_answers;
  if (link_->leases_lost() != 0) ++counts_.device_answers_after_loss;
  if (link_->host().dead()) ++counts_.device_answers_of_the_dead;
  const std::uint64_t since_ns = world_.now_ns() - link_->heard_ns(client.maps.at(tag));
  if (since_ns > kWorldTerms.believed_for_ns) {
    wrong_ = node_ + ": an answer " + std::to_string(since_ns) +
             " ns after the host last answered a renewal";
  }
}

std::string WorldDevice::wrong() {
  end();
  return wrong_;
}

}  // namespace espalier::test
