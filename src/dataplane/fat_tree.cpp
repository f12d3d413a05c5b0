// SPDX-License-Identifier: Apache-2.0
#include "dataplane/fat_tree.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace espalier::dataplane {
namespace {

using fabric::roce::PortAddress;
using Stop = ProcessSwitch::Stop;

// Of packets to no node: no tables are for it.
constexpr std::uint16_t kToNoNode = 0xFFFF;

}  // namespace

FatTree::FatTree() : through(functions_) {
  switches_.fill(true);
  uplinks_.fill(true);
  host_links_.fill(true);
  through.route = [this](const PortAddress& from, const PortAddress& to, std::vector<Stop>& way) {
    return find_way(from, to, way);
  };
}

void FatTree::add_node(const Host& host) {
  ESPALIER_ASSERT(std::ranges::find(nodes_, host) == nodes_.end());
  nodes_.push_back(host);
}

TopologyBudget FatTree::budget(std::size_t ranges, const HopBudget& of_aggregation,
                               const HopBudget& of_edge) const {
  TopologyBudget budget{.ranges = ranges, .switches = std::vector(kSwitches, of_edge), .ways = {}};
  budget.switches[kCore] = {};
  for (std::size_t pod = 0; pod < kPods; ++pod) budget.switches[aggregation(pod)] = of_aggregation;
  for (const Host& node : nodes_) {
    budget.ways.push_back({kCore, aggregation(node.pod), edge(node.pod, node.edge)});
  }
  return budget;
}

void FatTree::set_switch(std::size_t number, bool up) {
  if (up && !switches_[number]) functions_[number].install({});
  switches_[number] = up;
}

std::optional<FatTree::Address> FatTree::address_of(const fabric::roce::IpAddress& ip) {
  const auto [ten, pod, edge, last] =
      std::array{ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]};
  if (ip.is_v6 || ten != 10 || pod >= kPods || edge >= kEdges) return std::nullopt;
  const bool is_service = last >= kFirstService;
  const int number = last - (is_service ? kFirstService : kFirstAddress);
  if (number < 0 || number >= static_cast<int>(kHosts)) return std::nullopt;
  return Address{{pod, edge, static_cast<std::uint8_t>(number)}, is_service};
}

bool FatTree::find_way(const PortAddress& from, const PortAddress& to,
                       std::vector<Stop>& way) const {
  const auto source = address_of(from.ip);
  const auto target = address_of(to.ip);
  if (!source || !target) return false;
  const Host& begin = source->host;
  const Host& end = target->host;
  const bool by_core = target->is_service || begin.pod != end.pod;
  way.push_back({edge(begin.pod, begin.edge), {}});
  if (by_core || begin.edge != end.edge) way.push_back({aggregation(begin.pod), {}});
  if (by_core) {
    way.push_back({kCore, {}});
    way.push_back({aggregation(end.pod), {}});
  }
  if (way.size() > 1) way.push_back({edge(end.pod, end.edge), {}});
  const auto node = std::ranges::find(nodes_, end);
  const std::uint16_t number = target->is_service && node != nodes_.end()
                                   ? static_cast<std::uint16_t>(node - nodes_.begin())
                                   : kToNoNode;
  for (Stop& stop : way) {
    stop.hop = {&stop == &way.front(), &stop == &way.back(), kShimBytes, number};
  }
  return is_up(begin, end, way);
}

bool FatTree::is_up(const Host& from, const Host& to, const std::vector<Stop>& way) const {
  if (!host_links_[place_of(from)] || !host_links_[place_of(to)]) return false;
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (!switches_[way[i].number]) return false;
    // Of two that follow each other the higher number lies below.
    if (i != 0 && !uplinks_[std::max(way[i - 1].number, way[i].number)]) return false;
  }
  return true;
}

}  // namespace espalier::dataplane
