// SPDX-License-Identifier: Apache-2.0
// Audit of interior nodes: every key prefix, child and separator is where a walker looks for it.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "kinds/map/write/audit_parts.hpp"

namespace espalier::tree {
namespace {

constexpr std::uint32_t kPerGroup = wire::kGroupChildren;

// The separators that the slots reference; fewer if a slot is invalid.
std::vector<std::string_view> read_separators(NodeAudit& a) {
  std::vector<std::string_view> separators;
  const std::uint32_t slots_begin = a.header.sorted_end;
  const std::uint32_t keys_begin = slots_begin + 2 * std::uint32_t{a.header.items};
  const std::byte* bytes = a.node.bytes();
  for (std::uint32_t i = 0; i < a.header.items; ++i) {
    const std::uint32_t at = base::load_plain<std::uint16_t>(bytes + slots_begin + 2 * i);
    const bool inside =
        at >= keys_begin && at + 2 <= a.header.fence_begin &&
        at + 2 + base::load_plain<std::uint16_t>(bytes + at) <= a.header.fence_begin;
    if (!a.report.expect(inside, "separator ", i, " does not lie between slots and fences")) break;
    separators.push_back(a.node.separator(i));
  }
  return separators;
}

void audit_separators(NodeAudit& a, std::span<const std::string_view> separators) {
  a.report.expect(separators.front().empty(), "its first separator is not empty");
  for (std::size_t i = 1; i < separators.size(); ++i) {
    const std::string_view before = i == 1 ? a.place.low : separators[i - 1];
    a.report.expect(separators[i].size() <= a.g.key_bytes_max, "separator ", i, " is too long");
    a.report.expect(compare_keys(before, separators[i]) < 0, "separator ", i, " does not ascend");
    a.report.expect(a.place.high.empty() || compare_keys(separators[i], a.place.high) < 0,
                    "separator ", i, " is not below the high fence");
  }
}

// The stored prefix is that of all separators, as far as there is room.
void audit_prefix(NodeAudit& a, std::span<const std::string_view> separators) {
  const std::uint32_t shared = wire::FencesShare{a.header.lock}.bytes();
  std::string_view prefix;
  if (separators.size() > 1) {
    const std::size_t common = base::common_prefix_bytes(separators[1], separators.back());
    prefix = separators[1].substr(0, std::min<std::size_t>(common, shared + a.g.prefix_room()));
  }
  a.report.expect(a.header.prefix_bytes == prefix.size(),
                  "its prefix_bytes are not what its separators share");
  std::string kept(prefix.substr(std::min<std::size_t>(shared, prefix.size())));
  kept.resize(a.g.prefix_room());
  a.report.expect(std::memcmp(a.node.bytes() + a.g.prefix_begin, kept.data(), kept.size()) == 0,
                  "what lies before its groups is not what its separators share");
}

void audit_key_prefixes(NodeAudit& a, std::span<const std::string_view> separators) {
  const auto word = [&](std::size_t i) {
    const std::size_t prefix = a.header.prefix_bytes;
    return key_prefix_of(separators[i].substr(std::min(prefix, separators[i].size())));
  };
  const KeyPrefixMap map = a.node.key_prefix_map();
  if (separators.size() > 1) audit_scale(a, word(1), word(separators.size() - 1));
  const std::uint32_t groups = a.header.chunks;
  for (std::uint32_t i = 0; i < groups * kPerGroup; ++i) {
    const std::byte* group = a.node.bytes() + a.node.group_offset(i / kPerGroup);
    const auto head = base::load_plain<std::uint32_t>(group + 4 * (i % kPerGroup));
    const bool used = i < separators.size();
    const std::uint64_t expected = !used ? ~std::uint64_t{0} : i == 0 ? 0 : map(word(i));
    a.report.expect(head == expected >> 32, "the head of child ", i,
                    " is not that of its separator");
    a.report.expect(used || a.node.child(i) == 0, "the place of child ", i, " is not empty");
  }
  for (std::uint32_t i = 0; i < a.g.groups_max; ++i) {
    const auto head =
        base::load_plain<std::uint16_t>(a.node.bytes() + a.g.group_key_prefixes_begin + 2 * i);
    const auto first =
        i < groups ? base::load_plain<std::uint32_t>(a.node.bytes() + a.node.group_offset(i))
                   : ~std::uint32_t{0};
    a.report.expect(head == first >> 16, "the head of group ", i,
                    " is not that of its first child");
  }
}

}  // namespace

std::vector<Child> audit_interior(NodeAudit& a) {
  const std::uint32_t groups = (a.header.items + kPerGroup - 1) / kPerGroup;
  const std::uint32_t slots_begin = a.node.group_offset(groups);
  const bool root = a.place.lid == a.map.root;
  if (!a.report.expect(a.header.items >= (root ? 2 : 1),
                       "it has too few children: ", std::uint64_t{a.header.items}) ||
      !a.report.expect(a.header.chunks == groups && groups <= a.g.groups_max,
                       "its number of groups does not fit its children") ||
      !a.report.expect(a.header.sorted_end == slots_begin &&
                           slots_begin + 2 * std::uint32_t{a.header.items} <= a.header.fence_begin,
                       "its key slots do not lie behind its groups")) {
    return {};
  }
  const std::vector<std::string_view> separators = read_separators(a);
  if (separators.size() < a.header.items) return {};
  audit_separators(a, separators);
  audit_prefix(a, separators);
  audit_key_prefixes(a, separators);
  std::vector<Child> children;
  for (std::uint32_t i = 0; i < a.header.items; ++i) {
    children.push_back({i == 0 ? a.place.low : separators[i], a.node.child(i)});
  }
  return children;
}

}  // namespace espalier::tree
