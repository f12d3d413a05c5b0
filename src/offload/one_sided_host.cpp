// SPDX-License-Identifier: Apache-2.0
#include "offload/one_sided_host.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "tree/node/planted_tree_bugs.hpp"

namespace espalier::offload {

void fence_and_end(fabric::Registration& region, base::LeaseTable& leases,
                   std::vector<base::LeaseId>& held) {
  if (!tree::planted(tree::Bug::lease_not_fenced)) {
    region.revoke();
    ESPALIER_ASSERT(!region);  // before its leases no longer count
  }
  if (tree::planted(tree::Bug::lease_without_end)) return;
  for (const base::LeaseId lease : held) leases.end(lease);
  held.clear();
}

// READs that tables send by its redirect keys bring nothing from here on. With its own key goes the
// right to use the shared ones.
void OneSidedHost::fence() {
  for (Redirect& redirect : redirects_) {
    index_->retire(std::move(redirect.before));
    index_->retire(std::move(redirect.key));
  }
  redirects_.clear();
  fence_and_end(region_, store_.leases, leases_);
  admitted_.clear();
  for (const auto& followed : followed_) {
    if (const auto map = followed.lock()) map->table.feed().remove_follower();
  }
  followed_.clear();
}

Result<wire::FeedPlace> OneSidedHost::follow(const std::shared_ptr<tree::MapCore>& map) {
  if (leases_.empty()) return fail(Code::not_found);
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

Result<void> OneSidedHost::admit(const std::shared_ptr<IndexedMap>& map) {
  ESPALIER_ASSERT(region_);
  const bool known = std::ranges::find(admitted_, map) != admitted_.end();
  if (!known && admitted_.size() >= kIndexedMax) return fail(Code::out_of_memory, kIndexedMax);
  admitted_.reserve(admitted_.size() + 1);
  if (const auto admitted = regions_.admit(map->shared(), region_.remote().key); !admitted) {
    return admitted;
  }
  if (!known) admitted_.push_back(map);
  return {};
}

Result<fabric::RemoteRegion> OneSidedHost::open_redirect(const std::shared_ptr<IndexedMap>& map) {
  ESPALIER_ASSERT(region_ && index_ != nullptr);
  const auto known = std::ranges::find(redirects_, map, &Redirect::map);
  if (known != redirects_.end()) return known->key.remote();
  if (redirects_.size() >= kIndexedMax) return fail(Code::out_of_memory, kIndexedMax);
  redirects_.reserve(redirects_.size() + 1);
  auto key = index_->offer_redirect(*map);
  if (!key) return std::unexpected(key.error());
  redirects_.push_back({map, std::move(*key), {}});
  return redirects_.back().key.remote();
}

// The map may have been offered anew since, and then the last one is meant.
OneSidedHost::Redirect* OneSidedHost::redirect_of(std::uint32_t map) {
  for (auto at = redirects_.rbegin(); at != redirects_.rend(); ++at) {
    if (at->map->id() == map) return &*at;
  }
  return nullptr;
}

Result<fabric::RemoteRegion> OneSidedHost::begin_generation(std::uint32_t map) {
  Redirect* const redirect = redirect_of(map);
  if (redirect == nullptr) return fail(Code::not_found);
  auto key = index_->offer_redirect(*redirect->map);
  if (!key) return std::unexpected(key.error());
  index_->retire(std::move(redirect->before));
  redirect->before = std::exchange(redirect->key, std::move(*key));
  return redirect->key.remote();
}

Result<void> OneSidedHost::end_generations_before(std::uint32_t map) {
  Redirect* const redirect = redirect_of(map);
  if (redirect == nullptr) return fail(Code::not_found);
  index_->retire(std::move(redirect->before));
  return {};
}

Result<fabric::RemoteRegion> OneSidedHost::offer() {
  if (region_) return region_.remote();
  const memory::Region& region = store_.region;
  auto descriptor = region.read_only();
  if (!descriptor) return std::unexpected(descriptor.error());
  // The table keeps a copy of the descriptor, one that can only be read.
  auto offered = regions_.offer({region.base(), region.bytes(), descriptor->number(), 0},
                                fabric::RemoteRights::read, domain_);
  if (!offered) return std::unexpected(offered.error());
  region_ = std::move(*offered);
  return region_.remote();
}

Result<base::LeaseTable::Granted> OneSidedHost::grant(std::uint64_t now_ns) {
  ESPALIER_ASSERT(region_);  // while a lease counts, its reader's key is good
  if (leases_.size() >= kLeasesMax) return fail(Code::out_of_memory, kLeasesMax);
  const auto granted = store_.leases.grant(session_, now_ns);
  leases_.push_back(granted.id);
  return granted;
}

Result<std::uint64_t> OneSidedHost::renew(base::LeaseId lease, std::uint64_t oldest,
                                          std::uint64_t now_ns) {
  if (std::ranges::find(leases_, lease) == leases_.end()) return fail(Code::not_found);
  ESPALIER_ASSERT(region_);
  return store_.leases.renew(lease, oldest, now_ns);
}

}  // namespace espalier::offload
