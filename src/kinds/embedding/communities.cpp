// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/communities.hpp"

#include <algorithm>
#include <numeric>

namespace espalier::embedding {
namespace {

class CommunityFinder {
 public:
  CommunityFinder(const QueryLists& lists, std::uint64_t items, const CommunityOptions& options)
      : lists_(lists), options_(options) {
    found_.of_item.assign(items, Communities::kNone);
  }

  void place() {
    std::vector<std::uint32_t> order(lists_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
      return lists_.weight(a) != lists_.weight(b) ? lists_.weight(a) > lists_.weight(b) : a < b;
    });
    for (const std::uint32_t list : order) place_list(lists_.list(list));
  }

  void index() {
    begins_.assign(found_.of_item.size() + 1, 0);
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      if (lists_.list(i).size() > options_.list_max) continue;
      for (const std::uint32_t id : lists_.list(i)) ++begins_[id + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    lists_of_.resize(begins_.back());
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t i = 0; i < lists_.size(); ++i) {
      if (lists_.list(i).size() > options_.list_max) continue;
      for (const std::uint32_t id : lists_.list(i)) lists_of_[next[id]++] = i;
    }
  }

  void refine(const WorkProgress& progress, int pass) {
    shared_.assign(found_.count, 0);
    const std::uint64_t items = found_.of_item.size();
    for (std::uint32_t item = 0; item < items; ++item) {
      if (found_.of_item[item] != Communities::kNone) move(item);
      if (progress && item % 4096 == 0) {
        progress(static_cast<std::uint64_t>(pass) * items + item,
                 static_cast<std::uint64_t>(options_.passes) * items);
      }
    }
  }

  Communities take() { return std::move(found_); }

 private:
  [[nodiscard]] bool has_room(std::uint32_t community) const {
    return sizes_[community] < options_.items_max;
  }

  std::uint32_t begin_community() {
    sizes_.push_back(0);
    return found_.count++;
  }

  void place_list(std::span<const std::uint32_t> ids) {
    met_.clear();
    for (const std::uint32_t id : ids) {
      const std::uint32_t community = found_.of_item[id];
      if (community != Communities::kNone && has_room(community)) met_.push_back(community);
    }
    std::ranges::sort(met_);
    std::uint32_t best = Communities::kNone;
    std::ptrdiff_t most = 0;
    for (auto at = met_.begin(); at != met_.end();) {
      const auto end = std::upper_bound(at, met_.end(), *at);
      if (end - at > most) {
        most = end - at;
        best = *at;
      }
      at = end;
    }
    for (const std::uint32_t id : ids) {
      if (found_.of_item[id] != Communities::kNone) continue;
      if (best == Communities::kNone || !has_room(best)) best = begin_community();
      found_.of_item[id] = best;
      ++sizes_[best];
    }
  }

  // Moves an item to the community with which it shares the most, if that is more than its own.
  void move(std::uint32_t item) {
    met_.clear();
    for (std::uint64_t at = begins_[item]; at < begins_[item + 1]; ++at) {
      const std::uint32_t list = lists_of_[at];
      for (const std::uint32_t id : lists_.list(list)) {
        if (id == item) continue;
        const std::uint32_t community = found_.of_item[id];
        if (shared_[community] == 0) met_.push_back(community);
        shared_[community] += lists_.weight(list);
      }
    }
    const std::uint32_t own = found_.of_item[item];
    std::uint32_t best = own;
    for (const std::uint32_t community : met_) {
      if (shared_[community] > shared_[best] && has_room(community)) best = community;
    }
    for (const std::uint32_t community : met_) shared_[community] = 0;
    if (best == own) return;
    --sizes_[own];
    ++sizes_[best];
    found_.of_item[item] = best;
  }

  const QueryLists& lists_;
  const CommunityOptions options_;
  Communities found_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> met_;
  std::vector<std::uint64_t> shared_;  // weight by community; 0 between items
  std::vector<std::uint64_t> begins_;  // offsets of an item's lists in lists_of_
  std::vector<std::uint32_t> lists_of_;
};

}  // namespace

Communities find_communities(const QueryLists& lists, std::uint64_t items,
                             const CommunityOptions& options, const WorkProgress& progress) {
  CommunityFinder finder(lists, items, options);
  finder.place();
  if (options.passes > 0) finder.index();
  for (int pass = 0; pass < options.passes; ++pass) finder.refine(progress, pass);
  return finder.take();
}

}  // namespace espalier::embedding
