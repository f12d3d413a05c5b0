// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/indexed_reads.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/connection.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/one_sided_host.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/offload/index_host.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::offload {

// Created after the memory's part, so fenced after it.
IndexedReads& IndexedReads::of(Connection& connection, OneSidedHost& host) {
  EndpointSide& endpoint = connection.side->endpoint;
  return connection.parts.of<IndexedReads>(host, endpoint.regions, IndexHost::of(endpoint));
}

// From here on READs that tables redirect to its keys return nothing. The right to use shared keys
// ended with the session's own key.
void IndexedReads::fence() {
  for (Redirect& redirect : redirects_) {
    index_->retire(std::move(redirect.before));
    index_->retire(std::move(redirect.key));
  }
  redirects_.clear();
  admitted_.clear();
  for (const auto& followed : followed_) {
    if (const auto map = followed.lock()) map->table.feed().remove_follower();
  }
  followed_.clear();
}

Result<wire::FeedPlace> IndexedReads::follow(const std::shared_ptr<tree::MapCore>& map) {
  if (!host_.has_leases()) return fail(Code::not_found);
  std::erase_if(followed_, [](const auto& followed) { return followed.expired(); });
  const bool known =
      std::ranges::any_of(followed_, [&](const auto& one) { return one.lock() == map; });
  if (!known && followed_.size() >= kFollowedMax) return fail(Code::out_of_memory, kFollowedMax);
  followed_.reserve(followed_.size() + 1);
  const auto place = map->table.feed().add_follower();
  if (!place) return place;
  if (known) {
    map->table.feed().remove_follower();
  } else {
    followed_.push_back(map);
  }
  return place;
}

Result<void> IndexedReads::admit(const std::shared_ptr<IndexedMap>& map) {
  const bool known = std::ranges::find(admitted_, map) != admitted_.end();
  if (!known && admitted_.size() >= kIndexedMax) return fail(Code::out_of_memory, kIndexedMax);
  admitted_.reserve(admitted_.size() + 1);
  if (const auto admitted = regions_.admit(map->shared(), host_.key()); !admitted) {
    return admitted;
  }
  if (!known) admitted_.push_back(map);
  return {};
}

Result<fabric::RemoteRegion> IndexedReads::open_redirect(const std::shared_ptr<IndexedMap>& map) {
  ESPALIER_ASSERT(index_ != nullptr);
  const auto known = std::ranges::find(redirects_, map, &Redirect::map);
  if (known != redirects_.end()) return known->key.remote();
  if (redirects_.size() >= kIndexedMax) return fail(Code::out_of_memory, kIndexedMax);
  redirects_.reserve(redirects_.size() + 1);
  auto key = index_->offer_redirect(*map);
  if (!key) return std::unexpected(key.error());
  redirects_.push_back({map, std::move(*key), {}});
  return redirects_.back().key.remote();
}

// The map may have been offered anew since; the last entry is the current one.
IndexedReads::Redirect* IndexedReads::redirect_of(std::uint32_t map) {
  for (auto at = redirects_.rbegin(); at != redirects_.rend(); ++at) {
    if (at->map->id() == map) return &*at;
  }
  return nullptr;
}

Result<fabric::RemoteRegion> IndexedReads::begin_generation(std::uint32_t map) {
  Redirect* const redirect = redirect_of(map);
  if (redirect == nullptr) return fail(Code::not_found);
  auto key = index_->offer_redirect(*redirect->map);
  if (!key) return std::unexpected(key.error());
  index_->retire(std::move(redirect->before));
  redirect->before = std::exchange(redirect->key, std::move(*key));
  return redirect->key.remote();
}

Result<void> IndexedReads::end_generations_before(std::uint32_t map) {
  Redirect* const redirect = redirect_of(map);
  if (redirect == nullptr) return fail(Code::not_found);
  index_->retire(std::move(redirect->before));
  return {};
}

}  // namespace espalier::offload
