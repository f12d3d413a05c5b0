// SPDX-License-Identifier: Apache-2.0
#include "tests/support/one_sided_world.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/version_replay.hpp"
#include "tests/support/world_client.hpp"
#include "tests/support/world_device.hpp"
#include "tests/support/world_device_client.hpp"
#include "tests/support/world_host.hpp"
#include "tests/support/world_switch.hpp"

namespace espalier::test {
namespace {

using fabric::sim::World;

constexpr std::uint64_t kSweepNs = 300'000;
constexpr std::uint64_t kWorldNs = 2'000'000'000;  // after that, something hangs

class OneSidedWorld {
 public:
  OneSidedWorld(std::uint64_t seed, const OneSidedOptions& options, OneSidedCounts& counts)
      : seed_(seed),
        options_(options),
        counts_(counts),
        world_(seed, options.faults),
        random_(seed + 2) {
    add_host(world_.add_node(kHostName));
    if (options.by_key) switch_.emplace(world_, hosts_, seed + 3, counts_);
    for (std::uint32_t i = 0; i < options.clients; ++i) {
      clients_.push_back(std::make_unique<WorldClient>(world_, hosts_, i, seed + 10 + i, options_,
                                                       clock_, records_, counts_));
    }
    for (std::uint32_t i = 0; i < options.devices; ++i) add_device(i);
  }

  std::string run() {
    world_.after(1, [this] { write(); });
    world_.after(kSweepNs, [this] { sweep(); });
    for (std::uint32_t i = 1; i <= options_.drops; ++i) {
      world_.after(2'000'000 * i, [this] { hosts_.back()->want_drop(); });
    }
    if (options_.death != Death::none) {
      world_.after(random_.between(1'000'000, 6'000'000), [this] { die(); });
    }
    if (options_.device_stops) {
      world_.after(random_.between(500'000, 3'000'000), [this] { stop_device(); });
    }
    if (options_.device_dies) {
      world_.after(random_.between(500'000, 6'000'000), [this] { kill_device(); });
    }
    while (!done()) {
      take_turns();
      if (!devices_.empty()) world_.run_for(random_.below(3000));
      if (world_.now_ns() > kWorldNs) return "the clients do not come to an end";
    }
    std::string wrong_before;
    if (options_.devices != 0) wrong_before = let_go();
    over_ = true;
    switch_.reset();
    return wrong_before.empty() ? wrong() : wrong_before;
  }

 private:
  void add_host(std::unique_ptr<fabric::Endpoint> endpoint) {
    const auto life = static_cast<std::uint32_t>(hosts_.size() + 1);
    hosts_.push_back(std::make_unique<WorldHost>(world_, std::move(endpoint), life, seed_ + life,
                                                 options_, clock_, records_, counts_));
    if (options_.slow_writes) hosts_.back()->meanwhile = [this] { let_others_go_on(); };
  }

  void add_device(std::uint32_t number) {
    const auto others = [this] {
      world_.run_for(200);
      take_turns();
    };
    devices_.push_back(std::make_unique<WorldDevice>(world_, hosts_, number, seed_ + 100 + number,
                                                     options_, counts_, others));
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t client = 2 * number + i;
      device_clients_.push_back(std::make_unique<WorldDeviceClient>(
          world_, hosts_, *devices_.back(), client, seed_ + 200 + client, options_, clock_,
          records_, counts_));
    }
  }

  [[nodiscard]] bool done() const {
    const auto is_done = [](const auto& client) { return client->done(); };
    return std::ranges::all_of(clients_, is_done) && std::ranges::all_of(device_clients_, is_done);
  }

  // All but the host, which has a time of its own. None does anything within itself.
  void take_turns() {
    hosts_.back()->accept();
    for (const auto& client : clients_) client->turn();
    for (const auto& device : devices_) device->turn();
    for (const auto& client : device_clients_) client->turn();
  }

  void stop_device() {
    if (over_) return;
    random_.pick(devices_)->stop();
    world_.after(random_.between(2'000'000, 16'000'000), [this] { stop_device(); });
  }

  void kill_device() {
    if (over_) return;
    devices_.front()->die();
  }

  // All readers are gone, and the host continues: what they held must be freed.
  std::string let_go() {
    for (const auto& device : devices_) {
      if (std::string wrong = device->wrong(); !wrong.empty()) return wrong;
    }
    for (const auto& client : clients_) client->leave();
    world_.run_for(4 * kWorldTerms.lost_after_ns);
    if (hosts_.back()->dead()) return {};
    for (const auto& device : devices_) {
      if (std::string wrong = device->wrong(); !wrong.empty()) return wrong;
    }
    return hosts_.back()->reclaim();
  }

  // The host writes, sweeps, and now and then does neither for a while.
  void write() {
    if (over_) return;
    if (options_.pauses && random_.one_in(400)) paused_until_ns_ = world_.now_ns() + 4'000'000;
    if (world_.now_ns() >= paused_until_ns_) hosts_.back()->write();
    world_.after(options_.write_every_ns.draw(random_), [this] { write(); });
  }

  // Everything but the host itself.
  void let_others_go_on() {
    if (random_.one_in(2)) return;
    const std::uint64_t until = world_.now_ns() + random_.below(20'000);
    while (world_.now_ns() < until) {
      world_.run_for(100);
      take_turns();
    }
  }

  void sweep() {
    if (over_) return;
    hosts_.back()->sweep();
    world_.after(kSweepNs, [this] { sweep(); });
  }

  void die() {
    if (over_) return;
    hosts_.back()->die();
    if (options_.death == Death::node) world_.crash(kHostName);
    if (!options_.comes_back && hosts_.size() == options_.deaths) return;  // for good
    world_.after(random_.between(100'000, 4'000'000), [this] { come_back(); });
  }

  // Another process, with another store, at the same address.
  void come_back() {
    if (over_) return;
    add_host(world_.restart(kHostName));
    if (hosts_.size() > options_.deaths) return;
    world_.after(random_.between(1'000'000, 6'000'000), [this] { die(); });
  }

  std::string wrong() {
    for (const auto& host : hosts_) {
      if (std::string wrong = host->wrong(); !wrong.empty()) return wrong;
    }
    for (const auto& client : clients_) {
      if (std::string wrong = client->wrong(); !wrong.empty()) return wrong;
    }
    for (const auto& client : device_clients_) {
      if (std::string wrong = client->wrong(); !wrong.empty()) return wrong;
    }
    counts_.torn_reads += world_.counts().torn_reads;
    counts_.reads_reordered += world_.counts().reads_reordered;
    counts_.messages_lost += world_.counts().lost;
    for (const MapRecord& record : records_) {
      if (const auto wrong = replay_versions(record.history)) return record.name + ": " + *wrong;
    }
    return {};
  }

  const std::uint64_t seed_;
  const OneSidedOptions options_;
  OneSidedCounts& counts_;
  Clock clock_;
  MapRecords records_;
  World world_;
  Random random_;
  std::deque<HostOfNow> hosts_;
  std::optional<WorldSwitch> switch_;
  std::vector<std::unique_ptr<WorldClient>> clients_;
  std::vector<std::unique_ptr<WorldDevice>> devices_;
  std::vector<std::unique_ptr<WorldDeviceClient>> device_clients_;
  std::uint64_t paused_until_ns_ = 0;
  bool over_ = false;
};

}  // namespace

std::string run_one_sided(std::uint64_t seed, const OneSidedOptions& options,
                          OneSidedCounts& counts) {
  return OneSidedWorld(seed, options, counts).run();
}

}  // namespace espalier::test
