// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_switch.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fabric/shared_copy.hpp"
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
    if (reads_of_pause_ != 0) {
      --reads_of_pause_;
    } else if (random_.one_in(12)) {
      change();
    }
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
  const dataplane::IndexTables& tables = follower_->tables();
  if (tables.ways.empty()) return follow();  // there were none yet
  switch (random_.below(9)) {
    case 0: current_ = false; return function_.install({});  // it has begun anew
    case 1:
      current_ = current_ && random_.one_in(2);  // or some lies stay
      return install(
          lying_tables(tables, redirect_.remote().base, host_->store().region.bytes(), random_));
    case 2: return lose_lease();
    case 3: return begin_generation();
    case 4: return pause();
    default: return follow();
  }
}

void WorldSwitch::begin() {
  if (map_) lose_lease();
  host_ = hosts_.back().get();
  map_ = host_->indexed();
  redirect_ = offer_redirect();
  const WorldHost::Opening opening = host_->opening();
  view_.emplace(opening.view);
  feed_.emplace(place::FeedCursor::create(opening.feed, *view_).value());
  follower_.emplace(dataplane::MapKeys{map_->keyed_key(), redirect_.remote().key}, map_->prefix(),
                    redirect_.remote().base, kLimits);
  stale_ = true;
  current_ = false;
  follow();
}

// The switch keeps writing the previous generation's key, which is void if another one begins
// before the tables are replaced.
void WorldSwitch::begin_generation() {
  host_->index().retire(std::move(before_));
  before_ = std::exchange(redirect_, offer_redirect());
  follower_->begin_generation(redirect_.remote().key, redirect_.remote().base);
  current_ = false;
  ++counts_.generations_begun;
  if (random_.one_in(2)) follow();
}

fabric::Registration WorldSwitch::offer_redirect() {
  auto redirect = host_->index().offer_redirect(*map_);
  if (!redirect) throw std::runtime_error("no redirect key: " + message(redirect.error()));
  return std::move(*redirect);
}

// The node makes its key void; what the switch has stays there.
void WorldSwitch::lose_lease() {
  host_->index().retire(std::exchange(before_, {}));
  host_->index().retire(std::exchange(redirect_, {}));
  map_.reset();
  ++counts_.redirect_keys_lost;
}

void WorldSwitch::pause() {
  reads_of_pause_ = random_.between(1, 200);
  ++counts_.controller_pauses;
  if (random_.one_in(3)) lose_lease();
}

void WorldSwitch::follow() {
  if (map_ != host_->indexed()) return;  // it was dropped, and the tree is gone
  read_feed();
  if (stale_ && !read_tree()) return;
  const auto changes = follower_->changes();
  if (changes && current_) {
    function_.set_addresses(*changes);
    counts_.entries_followed += changes->size();
    count_astray(*changes);
    return;
  }
  // As controllers do; a switch that takes all anew may have it by the key that there is.
  if (!changes && random_.one_in(4)) return begin_generation();
  install(follower_->tables());
  current_ = true;
}

// The last change of each entry must be current, for nothing happens meanwhile.
void WorldSwitch::count_astray(const std::vector<dataplane::EntryChange>& changes) {
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    const auto is_of_it = [&](const auto& later) { return later.place == change->place; };
    if (std::any_of(change + 1, changes.end(), is_of_it)) continue;
    const std::uint64_t offset = change->address - redirect_.remote().base;
    if (!view_->holds(offset, view_->geometry.node_bytes)) {
      ++counts_.entries_astray;
      continue;
    }
    const tree::NodeView node(host_->store().region.at(offset), view_->geometry);
    const bool is_there = node.map_id() == map_->id() && node.self_ref().offset() == offset &&
                          node.superseded() == wire::kLive;
    counts_.entries_astray += is_there ? 0 : 1;
  }
}

// Reads all that the feed has, so that a tree read afterwards contains it.
void WorldSwitch::read_feed() {
  const std::byte* const memory = host_->store().region.at(0);
  place::FeedCursor::Landing landing;
  std::vector<place::MappingChange> changes;
  bool more = true;
  while (more) {
    const bool knew = feed_->entries_bytes() != 0;
    fabric::copy_from_shared(landing.header.data(), memory + feed_->header_offset(),
                             landing.header.size());
    fabric::copy_from_shared(landing.entries.data(), memory + feed_->entries_offset(),
                             feed_->entries_bytes());
    changes.clear();
    if (feed_->take(landing, changes) != place::FeedCursor::Came::entries) stale_ = true;
    for (const place::MappingChange& change : changes) {
      if (!follower_->moved(change)) stale_ = true;
    }
    more = feed_->waiting() != 0 && (!knew || !changes.empty());
  }
}

bool WorldSwitch::read_tree() {
  place::LocalRegion region(host_->store().region.at(0));
  auto slot = *host_->store().epochs.join();
  slot.enter();
  const auto read = follower_->read(*view_, region);
  slot.exit();
  stale_ = !read;  // of a root that is being replaced
  return !stale_;
}

void WorldSwitch::install(const dataplane::IndexTables& tables) {
  dataplane::PacketFunction with;
  with.add(follower_->keys(), tables);
  function_.install(with);
}

}  // namespace espalier::test
