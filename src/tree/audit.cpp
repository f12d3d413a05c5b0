// SPDX-License-Identifier: Apache-2.0
#include "tree/audit.hpp"

#include "tree/leaf_builder.hpp"

namespace espalier::tree {
namespace {

void check_subtree(const MapCore& map, wire::Lid lid, std::string& last, std::uint64_t& items,
                   std::vector<std::string>& found) {
  const NodeView node = map.node(lid);
  if (node.superseded() != wire::kLive) found.emplace_back("a node in the tree is not live");
  if (!node.leaf()) {
    for (std::uint32_t i = 0; i < node.children(); ++i) {
      check_subtree(map, node.child(i), last, items, found);
    }
    return;
  }
  std::vector<Record> records;
  gather_newest(node, records);
  items += records.size();
  for (const Record& record : records) {
    if (items > records.size() && compare_keys(last, record.key_view()) >= 0) {
      found.emplace_back("keys do not ascend");
    }
    last.assign(record.key_view());
  }
}

}  // namespace

std::vector<std::string> audit(const MapCore& map, std::size_t) {
  std::vector<std::string> found;
  std::string last;
  std::uint64_t items = 0;
  check_subtree(map, map.root, last, items, found);
  if (items != map.items.sum()) found.emplace_back("the item counter is wrong");
  return found;
}

}  // namespace espalier::tree
