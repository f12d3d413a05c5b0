// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/greedy_groups.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "kinds/embedding/community_merges.hpp"

namespace espalier::embedding {
namespace {

/// Limit on parts of lists in memory.
constexpr std::uint64_t kPartsMax = 8'000'000;

/// A merge with its rank among all.
struct RankedMerge {
  double gain;  // the minimum of its community so far: it ranks behind those before it
  std::uint32_t community;
  std::uint32_t order;  // in its community
  Merge merge;
};

class GroupMaker {
 public:
  GroupMaker(const QueryLists& lists, const Communities& communities,
             const GroupingOptions& options)
      : lists_(lists), communities_(communities), options_(options) {
    begins_.assign(communities.count + 1, 0);
    for (const std::uint32_t community : communities.of_item) {
      if (community != Communities::kNone) ++begins_[community + 1];
    }
    for (std::uint32_t c = 0; c < communities.count; ++c) {
      ESPALIER_ASSERT(begins_[c + 1] <= kCommunityItemsMax);
      begins_[c + 1] += begins_[c];
    }
    items_.resize(begins_.back());
    places_.resize(communities.of_item.size());
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t item = 0; item < communities.of_item.size(); ++item) {
      const std::uint32_t community = communities.of_item[item];
      if (community == Communities::kNone) continue;
      places_[item] = static_cast<std::uint8_t>(next[community] - begins_[community]);
      items_[next[community]++] = item;
    }
  }

  void merge_all(const WorkProgress& progress) {
    std::vector<std::uint64_t> ids(communities_.count);  // of each community, in all lists
    for (const std::uint32_t id : lists_.ids()) {
      if (const std::uint32_t c = communities_.of_item[id]; c != Communities::kNone) ++ids[c];
    }
    for (std::uint32_t first = 0; first < communities_.count;) {
      std::uint32_t end = first;
      for (std::uint64_t some = 0; end < communities_.count; ++end) {
        some += ids[end];
        if (end != first && some > kPartsMax) break;
      }
      merge_some(first, end, progress);
      first = end;
    }
  }

  GroupLists take_best() {
    std::ranges::sort(ranked_, [](const RankedMerge& a, const RankedMerge& b) {
      if (a.gain != b.gain) return a.gain > b.gain;
      return std::pair(a.community, a.order) < std::pair(b.community, b.order);
    });
    std::vector<bool> full(communities_.count);
    std::vector<std::vector<std::uint32_t>> groups(items_.size());
    std::uint64_t sums = 0;
    for (const RankedMerge& ranked : ranked_) {
      if (full[ranked.community]) continue;
      if (sums + ranked.merge.sums > options_.sums_max) {
        full[ranked.community] = true;  // its later merges depend on this one
        continue;
      }
      sums += ranked.merge.sums;
      join(groups, begins_[ranked.community] + ranked.merge.first,
           begins_[ranked.community] + ranked.merge.second);
    }
    std::ranges::sort(groups, [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    GroupLists made;
    for (const std::vector<std::uint32_t>& group : groups) {
      if (group.size() >= RowGroups::kRowsMin) made.add(group);
    }
    return made;
  }

 private:
  // Groups of one item have no memory until they join.
  void join(std::vector<std::vector<std::uint32_t>>& groups, std::uint32_t first,
            std::uint32_t second) const {
    if (groups[first].empty()) groups[first].push_back(items_[first]);
    if (groups[second].empty()) groups[second].push_back(items_[second]);
    std::vector<std::uint32_t>& to = groups[first];
    to.insert(to.end(), groups[second].begin(), groups[second].end());
    groups[second].clear();
    std::ranges::sort(to);
  }

  void add_parts(std::size_t list, std::uint32_t first, std::uint32_t end,
                 std::vector<std::vector<ListPart>>& parts) {
    found_.clear();
    for (const std::uint32_t id : lists_.list(list)) {
      const std::uint32_t community = communities_.of_item[id];
      if (community < first || community >= end) continue;
      found_.emplace_back(community, places_[id]);
    }
    std::ranges::sort(found_);
    for (std::size_t i = 0; i < found_.size();) {
      const std::uint32_t community = found_[i].first;
      ListPart part{{}, lists_.weight(list)};
      for (; i < found_.size() && found_[i].first == community; ++i) {
        part.items.add(found_[i].second);
      }
      if (part.items.size() >= 2) parts[community - first].push_back(part);
    }
  }

  void merge_some(std::uint32_t first, std::uint32_t end, const WorkProgress& progress) {
    std::vector<std::vector<ListPart>> parts(end - first);
    for (std::size_t i = 0; i < lists_.size(); ++i) add_parts(i, first, end, parts);
    for (std::uint32_t community = first; community < end; ++community) {
      const auto merges = merges_of(begins_[community + 1] - begins_[community],
                                    parts[community - first], options_.group_rows_max);
      std::vector<ListPart>().swap(parts[community - first]);
      double gain = merges.empty() ? 0 : merges.front().gain;
      for (std::uint32_t i = 0; i < merges.size(); ++i) {
        gain = std::min(gain, merges[i].gain);
        ranked_.push_back({gain, community, i, merges[i]});
      }
      if (progress) progress(community + 1, communities_.count);
    }
  }

  const QueryLists& lists_;
  const Communities& communities_;
  const GroupingOptions options_;
  std::vector<std::uint32_t> begins_;  // offset of each community in items_
  std::vector<std::uint32_t> items_;
  std::vector<std::uint8_t> places_;  // index of each item in its community
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found_;
  std::vector<RankedMerge> ranked_;
};

}  // namespace

GroupLists greedy_groups(const QueryLists& lists, const Communities& communities,
                         const GroupingOptions& options, const WorkProgress& progress) {
  ESPALIER_ASSERT(options.group_rows_max >= RowGroups::kRowsMin &&
                  options.group_rows_max <= RowGroups::kRowsMax);
  GroupMaker maker(lists, communities, options);
  maker.merge_all(progress);
  return maker.take_best();
}

}  // namespace espalier::embedding
