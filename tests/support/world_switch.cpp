// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_switch.hpp"

#include <stdexcept>
#include <utility>

#include "place/index_follower.hpp"
#include "tests/support/lying_tables.hpp"

namespace espalier::test {
namespace {

// Small, so that lookups end at leaves and above.
constexpr dataplane::TableLimits kLimits{.ranges = 6, .sets = 1, .nodes_per_set = 6};

}  // namespace

WorldSwitch::WorldSwitch(fabric::sim::World& world, std::deque<std::unique_ptr<WorldHost>>& hosts,
                         std::uint64_t seed, OneSidedCounts& counts)
    : world_(world), hosts_(hosts), random_(seed), counts_(counts) {
  world_.middle = [this](fabric::RegionKey& key, std::uint64_t& address) {
    if (random_.one_in(12)) change();
    through_.process(key, address);
  };
}

WorldSwitch::~WorldSwitch() {
  world_.middle = nullptr;
  counts_.reads_redirected += through_.counters().redirected;
  if (map_) lose_lease();
}

void WorldSwitch::change() {
  const bool of_now = host_ == hosts_.back().get() && map_ == host_->indexed();
  if (!of_now && random_.one_in(4)) return begin();
  if (!map_) return;
  if (tables_.ways.empty()) return compile();  // there were none yet
  switch (random_.below(8)) {
    case 0: return function_.install({});  // it has begun anew
    case 1:
      return install(
          lying_tables(tables_, redirect_.remote().base, host_->store().region.bytes(), random_));
    case 2: return lose_lease();
    case 3: return begin_generation();
    default: return compile();
  }
}

void WorldSwitch::begin() {
  if (map_) lose_lease();
  host_ = hosts_.back().get();
  map_ = host_->indexed();
  redirect_ = offer_redirect();
  compile();
}

// What the switch has goes on writing the key of the generation before, which is void when another
// one begins before the tables are others.
void WorldSwitch::begin_generation() {
  if (before_) host_->index().retire(std::move(before_));
  before_ = std::exchange(redirect_, offer_redirect());
  ++counts_.generations_begun;
  if (random_.one_in(2)) compile();
}

fabric::Registration WorldSwitch::offer_redirect() {
  auto redirect = host_->index().offer_redirect(*map_);
  if (!redirect) throw std::runtime_error("no redirect key: " + message(redirect.error()));
  return std::move(*redirect);
}

// The node makes its key void; what the switch has stays there.
void WorldSwitch::lose_lease() {
  if (before_) host_->index().retire(std::exchange(before_, {}));
  host_->index().retire(std::exchange(redirect_, {}));
  map_.reset();
  ++counts_.redirect_keys_lost;
}

void WorldSwitch::compile() {
  if (map_ != host_->indexed()) return;  // it was dropped, and the tree is gone
  place::IndexFollower follower({map_->keyed_key(), redirect_.remote().key}, map_->prefix(),
                                redirect_.remote().base, kLimits);
  place::LocalRegion region(host_->store().region.at(0));
  auto slot = *host_->store().epochs.join();
  slot.enter();
  const auto read = follower.follow(host_->map(), region);
  slot.exit();
  if (!read) return;  // a root that is being replaced
  tables_ = follower.tables();
  install(tables_);
}

void WorldSwitch::install(const dataplane::IndexTables& tables) {
  dataplane::PacketFunction with;
  with.add({map_->keyed_key(), redirect_.remote().key}, tables);
  function_.install(with);
}

}  // namespace espalier::test
