// SPDX-License-Identifier: Apache-2.0
// The shared keys of RegionTable.
#include "fabric/shared_map.hpp"

#include <algorithm>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/region_table.hpp"

namespace espalier::fabric {
namespace {

// What a keyed key may name.
constexpr RemoteRegion kAnyNumber{0, ~std::uint64_t{0}, 0, 0};

}  // namespace

RegionKey SharedMap::member_key(Domain domain) const {
  const Members* const members = members_.load(std::memory_order_acquire);
  if (members == nullptr) return 0;
  const auto found = std::ranges::lower_bound(*members, domain, {}, &Member::domain);
  return found == members->end() || found->domain != domain ? 0 : found->key;
}

void SharedSource::read(std::span<std::byte> into) const {
  switch (kind) {
    case Kind::keyed: return reads->read_keyed(at, into);
    case Kind::redirected: return reads->read_at(at, into);
    default: std::ranges::fill(into, std::byte{0}); return;
  }
}

Result<Registration> RegionTable::offer_shared(const std::shared_ptr<SharedMap>& map,
                                               SharedKind kind, std::uint64_t bytes) {
  if (map == nullptr || map->reads_ == nullptr || (kind == SharedKind::redirect && bytes == 0)) {
    return fail(Code::invalid_argument);
  }
  const std::scoped_lock lock(mutex_);
  const bool of_numbers = kind == SharedKind::keyed;
  auto taken = of_numbers ? take_keyed() : take_place();
  // Where all their places are taken a keyed key is as good in any other: switches count less.
  if (!taken && of_numbers && taken.error().code == Code::out_of_memory) taken = take_place();
  if (!taken) return std::unexpected(taken.error());
  return share(*taken->place, taken->key, map, kind,
               of_numbers ? kAnyNumber : RemoteRegion{taken->base, bytes, 0, 0});
}

Result<Registration> RegionTable::offer_agreed(const std::shared_ptr<SharedMap>& map,
                                               RegionKey key) {
  if (map == nullptr || map->reads_ == nullptr) return fail(Code::invalid_argument);
  const std::scoped_lock lock(mutex_);
  const auto place = take_keyed(key);
  if (!place) return std::unexpected(place.error());
  return share(**place, key, map, SharedKind::keyed, kAnyNumber);
}

Registration RegionTable::share(Place& place, RegionKey key, const std::shared_ptr<SharedMap>& map,
                                SharedKind kind, const RemoteRegion& remote) {
  if (map->number_ == 0) {
    map->number_ = ++shared_maps_made_;
    shared_maps_.push_back(map);
  }
  place.rights = RemoteRights::none;
  place.domain = 0;
  place.base = remote.base;
  place.memory = {nullptr, remote.bytes, -1, 0};
  place.shared = map;
  place.shared_kind = kind;
  set_word(place, key, key);
  return Registration(shared_from_this(), {remote.base, remote.bytes, key, 0});
}

Result<void> RegionTable::admit(SharedMap& map, RegionKey key) {
  const std::scoped_lock lock(mutex_);
  const Place* const place = place_of(key);
  if (key == 0 || place == nullptr || place->word.load(std::memory_order_relaxed) != key ||
      place->shared != nullptr) {
    return fail(Code::not_found);
  }
  auto next = std::make_unique<SharedMap::Members>();
  if (const auto* now = map.members_.load(std::memory_order_relaxed)) *next = *now;
  const auto at = std::ranges::lower_bound(*next, place->domain, {}, &SharedMap::Member::domain);
  if (at != next->end() && at->domain == place->domain) {
    at->key = key;
  } else {
    next->insert(at, {place->domain, key});
  }
  const auto gone = map.replace(std::move(next));
  wait_for_readers();
  return {};
}

void RegionTable::dismiss(SharedMap& map, RegionKey key) {
  const std::scoped_lock lock(mutex_);
  const auto gone = without(map, key);
  if (gone != nullptr) wait_for_readers();
}

std::unique_ptr<const SharedMap::Members> RegionTable::without(SharedMap& map, RegionKey key) {
  const auto* const now = map.members_.load(std::memory_order_relaxed);
  if (now == nullptr) return nullptr;
  const auto is_it = [key](const SharedMap::Member& member) { return member.key == key; };
  if (std::ranges::none_of(*now, is_it)) return nullptr;
  auto next = std::make_unique<SharedMap::Members>(*now);
  std::erase_if(*next, is_it);
  return map.replace(std::move(next));
}

RegionTable::Dismissed RegionTable::dismiss_everywhere(RegionKey key) {
  Dismissed gone;
  if (planted(Bug::shared_keys_outlive_own)) return gone;
  std::erase_if(shared_maps_, [](const auto& map) { return map.expired(); });
  for (const auto& each : shared_maps_) {
    const auto map = each.lock();
    if (map == nullptr) continue;
    if (auto members = without(*map, key)) gone.push_back(std::move(members));
  }
  return gone;
}

// The session's own key is checked here, too, though a dismissed session has lost it: so there is
// no moment between the two.
SharedSource RegionTable::Reader::find_shared(RegionKey key, std::uint64_t address,
                                              Domain domain) const {
  const Place* const place = table_.place_of(key);
  if (key == 0 || place == nullptr) return {};
  const RegionKey word = place->word.load(std::memory_order_acquire);
  if ((word != key && word != void_word(key)) || place->shared == nullptr) return {};
  SharedMap& map = *place->shared;
  SharedSource source{SharedSource::Kind::refused, map.reads_.get(), 0, map.number_};
  const RegionKey own = map.member_key(domain);
  if (own == 0) return source;
  const bool good = table_.place_of(own)->word.load(std::memory_order_acquire) == own;
  if (!good && !planted(Bug::shared_keys_outlive_own)) return source;
  source.at = address - place->base;
  if (word != key ||
      (place->shared_kind == SharedKind::redirect && source.at >= place->memory.bytes)) {
    source.kind = SharedSource::Kind::zeros;
  } else {
    source.kind = place->shared_kind == SharedKind::keyed ? SharedSource::Kind::keyed
                                                          : SharedSource::Kind::redirected;
  }
  return source;
}

}  // namespace espalier::fabric
