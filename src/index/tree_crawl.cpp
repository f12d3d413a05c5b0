// SPDX-License-Identifier: Apache-2.0
#include "index/tree_crawl.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "dataplane/key_number.hpp"
#include "fabric/shared_copy.hpp"

namespace espalier::place {
namespace {

constexpr std::size_t kAtOnce = 64;  // nodes per read of the source
// More than any tree has: bounds the depth after torn reads.
constexpr std::uint32_t kLevelsMax = 32;

}  // namespace

class Crawl {
 public:
  Crawl(const tree::MapView& map, RegionSource& source)
      : map_(map),
        source_(source),
        nodes_max_(map.region_bytes / map.geometry.node_bytes),
        images_(kAtOnce * map.geometry.node_bytes / sizeof(std::uint64_t)) {}

  Result<CrawledTree> run() {
    const auto root = ref_of(map_.root);
    if (!root) return std::unexpected(root.error());
    if (!*root) return fail(Code::contended);
    nodes_.push_back({*root, map_.root, kLevelsMax, {}, {}});
    for (std::size_t begin = 0; begin < nodes_.size();) {
      const auto end = read_some(begin);
      if (!end) return std::unexpected(end.error());
      begin = *end;
    }
    return std::move(tree_);
  }

 private:
  using Node = CrawledTree::Node;

  // Reads the next interior nodes, and adds their children. Returns the index after the last one.
  Result<std::size_t> read_some(std::size_t begin) {
    const std::uint32_t bytes = map_.geometry.node_bytes;
    auto* const images = reinterpret_cast<std::byte*>(images_.data());
    std::vector<RegionSource::Want> wanted;
    std::vector<std::size_t> which;
    std::size_t end = begin;
    for (; end < nodes_.size() && which.size() < kAtOnce; ++end) {
      if (nodes_[end].level == 0 || !map_.holds_node(nodes_[end].ref)) continue;
      wanted.push_back({nodes_[end].ref.offset(), {images + which.size() * bytes, bytes}});
      which.push_back(end);
    }
    if (const auto read = source_.read(wanted); !read) return std::unexpected(read.error());
    for (std::size_t i = 0; i < which.size(); ++i) {
      const auto added = add_children(which[i], {images + i * bytes, map_.geometry});
      if (!added) return std::unexpected(added.error());
    }
    return end;
  }

  Result<void> add_children(std::size_t parent, const tree::NodeView& image) {
    const wire::Ref ref = nodes_[parent].ref;
    const std::uint32_t expected = nodes_[parent].level;
    const bool root = expected == kLevelsMax;
    const std::uint32_t level = image.level();
    const bool good = image.map_id() == map_.id && image.self_ref() == ref &&
                      image.generation() == ref.generation() && !image.leaf() &&
                      (root ? level != 0 && level < kLevelsMax : level == expected);
    if (!good) return {};
    std::vector<std::string> separators;
    for (std::uint32_t i = 1; i < image.children(); ++i) {
      separators.emplace_back(image.separator(i));
    }
    const auto descends = [](const auto& a, const auto& b) { return base::compare(a, b) >= 0; };
    if (std::ranges::adjacent_find(separators, descends) != separators.end()) return {};
    std::vector<std::uint32_t> children;
    for (std::uint32_t i = 0; i < image.children(); ++i) {
      const auto child = ref_of(image.child(i));
      if (!child) return std::unexpected(child.error());
      if (nodes_.size() > nodes_max_) return fail(Code::corrupt);
      children.push_back(*child ? static_cast<std::uint32_t>(nodes_.size()) : dataplane::kHere);
      if (*child) nodes_.push_back({*child, image.child(i), level - 1, {}, {}});
    }
    nodes_[parent].children = std::move(children);
    nodes_[parent].separators = std::move(separators);
    return {};
  }

  // Reads each page of the page table once, on first use.
  Result<wire::Ref> ref_of(wire::Lid lid) {
    const std::uint64_t named = map_.directory_entry_offset(lid);
    if (named == 0) return wire::Ref{};
    auto& page = pages_[named];
    if (page.empty()) {
      std::uint64_t at = 0;
      const RegionSource::Want entry{named, std::as_writable_bytes(std::span(&at, 1))};
      if (const auto read = source_.read({&entry, 1}); !read) return std::unexpected(read.error());
      page.resize(wire::kTablePageEntries);
      if (at % wire::kBlockBytes != 0 || at == 0 || !map_.holds(at, wire::kTablePageBytes)) {
        return wire::Ref{};
      }
      const RegionSource::Want all{at, std::as_writable_bytes(std::span(page))};
      if (const auto read = source_.read({&all, 1}); !read) return std::unexpected(read.error());
    }
    return wire::Ref{page[lid % wire::kTablePageEntries]};
  }

  const tree::MapView& map_;
  RegionSource& source_;
  const std::uint64_t nodes_max_;
  std::vector<std::uint64_t> images_;
  CrawledTree tree_;
  std::vector<Node>& nodes_ = tree_.nodes_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> pages_;  // by directory entry
};

// Top down, so that each node has only branches that its range reaches: keys that tie, and nodes
// that were read at another time than their parents, have others.
std::vector<CrawledTree::Part> CrawledTree::parts(std::string_view prefix) const {
  std::vector<Part> parts(nodes_.size());
  parts.front() = {true, 0, ~std::uint64_t{0}, {}};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!parts[i].reached || nodes_[i].children.empty()) continue;
    parts[i].branches = clipped(nodes_[i], parts[i], prefix);
    const auto& [separators, children] = parts[i].branches;
    for (std::size_t k = 0; k < children.size(); ++k) {
      if (children[k] == dataplane::kHere) continue;
      const std::uint64_t first = k == 0 ? parts[i].first : separators[k - 1];
      const std::uint64_t last = k == separators.size() ? parts[i].last : separators[k] - 1;
      parts[children[k]] = {true, first, last, {}};
    }
  }
  return parts;
}

dataplane::Branches CrawledTree::clipped(const Node& node, const Part& part,
                                         std::string_view prefix) {
  const std::vector<std::string_view> keys(node.separators.begin(), node.separators.end());
  auto all = dataplane::number_branches(prefix, keys, node.children);
  const auto begin = std::ranges::upper_bound(all.separators, part.first);
  const auto end = std::ranges::upper_bound(all.separators, part.last);
  const auto from = all.children.begin() + (begin - all.separators.begin());
  const auto to = all.children.begin() + (end - all.separators.begin()) + 1;
  return {{begin, end}, {from, to}};
}

LeafCounts CrawledTree::count(std::span<const std::string> keys) const {
  LeafCounts counts;
  for (const std::string& key : keys) {
    std::uint32_t at = 0;
    while (at != dataplane::kHere && !nodes_[at].children.empty()) {
      const auto& separators = nodes_[at].separators;
      const auto beyond = std::ranges::upper_bound(
          separators, key, [](const auto& a, const auto& b) { return base::compare(a, b) < 0; });
      at = nodes_[at].children[static_cast<std::size_t>(beyond - separators.begin())];
    }
    if (at != dataplane::kHere && nodes_[at].level == 0) ++counts[nodes_[at].lid];
  }
  return counts;
}

CrawledTree::Moved CrawledTree::move(wire::Lid lid, wire::Ref ref, Move& move) {
  if (by_lid_.empty()) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      by_lid_[nodes_[i].lid] = i;
      by_offset_[nodes_[i].ref.offset()] = i;
    }
  }
  const auto known = by_lid_.find(lid);
  if (known == by_lid_.end()) return Moved::nothing;
  Node& node = nodes_[known->second];
  if (node.ref == ref) return Moved::nothing;
  if (node.level != 0 || !ref) return Moved::shape;
  const auto there = by_offset_.emplace(ref.offset(), known->second).first->second;
  if (there != known->second) return Moved::shape;
  if (node.ref.offset() == ref.offset()) {  // its buffer was reused for the same node
    node.ref = ref;
    return Moved::nothing;
  }
  move = {node.ref.offset(), ref.offset()};
  by_offset_.erase(move.from);
  node.ref = ref;
  return Moved::leaf;
}

dataplane::TreeImage CrawledTree::image(std::string_view prefix, std::uint64_t base,
                                        const LeafCounts& counts) const {
  const std::vector<Part> parts = this->parts(prefix);
  dataplane::TreeImage image;
  std::vector<dataplane::NodeNumber> numbers(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- != 0;) {
    if (!parts[i].reached) continue;
    const std::uint64_t address = base + nodes_[i].ref.offset();
    std::vector<dataplane::NodeNumber> children = parts[i].branches.children;
    if (children.empty()) {
      const auto counted = counts.find(nodes_[i].lid);
      numbers[i] = image.add_leaf(address, counted == counts.end() ? 1 : 1 + counted->second);
      continue;
    }
    std::uint64_t accesses = 0;
    for (dataplane::NodeNumber& child : children) {
      if (child == dataplane::kHere) continue;
      child = numbers[child];
      accesses += image.accesses(child);
    }
    numbers[i] = image.add_node(address, accesses, parts[i].branches.separators, children);
  }
  image.set_root(numbers.front());
  return image;
}

Result<void> LocalRegion::read(std::span<const Want> wanted) {
  for (const Want& want : wanted) {
    fabric::copy_from_shared(want.into.data(), memory_ + want.offset, want.into.size());
  }
  return {};
}

Result<CrawledTree> crawl(const tree::MapView& map, RegionSource& source) {
  return Crawl(map, source).run();
}

}  // namespace espalier::place
