// SPDX-License-Identifier: Apache-2.0
#include "dataplane/topology_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "dataplane/text_reader.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kTopologyBegin = "espalier-topology";
constexpr std::size_t kTopologyVersion = 1;
constexpr std::size_t kNoSwitch = ~std::size_t{0};
// What one switch holds: the range tables number with 16 bits, and a node has 750 bytes of text.
constexpr std::size_t kTopologyRangesMax = 30'000;
constexpr std::size_t kSwitchNodesMax = 80'000;

class TopologyParser {
 public:
  explicit TopologyParser(std::string_view text) : reader_(text) {}

  std::expected<Topology, TextFault> parse() {
    if (!parse_lines()) return std::unexpected(TextFault{reader_.number(), std::move(wrong_)});
    if (!find_ways() || !is_possible()) return std::unexpected(TextFault{0, std::move(wrong_)});
    return std::move(made_);
  }

 private:
  bool fail(std::string reason) {
    wrong_ = std::move(reason);
    return false;
  }
  static std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

  bool parse_lines() {
    std::size_t version = 0;
    const bool begins = reader_.next_line() && reader_.word() == kTopologyBegin &&
                        reader_.number(version) && reader_.at_end();
    if (!begins || version != kTopologyVersion) return fail("wanted: espalier-topology 1");
    while (reader_.next_line()) {
      const std::string_view word = reader_.word();
      const bool good = word == "ranges"   ? parse_ranges()
                        : word == "root"   ? parse_root()
                        : word == "switch" ? parse_switch()
                        : word == "link"   ? parse_link()
                        : word == "node"   ? parse_node()
                                           : fail("a line is ranges, root, switch, link or node");
      if (!good) return false;
    }
    return true;
  }

  bool parse_ranges() {
    std::size_t& ranges = made_.budget.ranges;
    if (!reader_.number(ranges) || !reader_.at_end()) return fail("wanted: ranges NUMBER");
    if (ranges == 0 || ranges > kTopologyRangesMax) {
      return fail("there are 1 to " + std::to_string(kTopologyRangesMax) + " ranges");
    }
    return true;
  }

  // Which switch has this name.
  [[nodiscard]] std::size_t number_of(std::string_view name) const {
    const auto at = std::ranges::find(made_.switches, name, &Topology::Switch::name);
    return at == made_.switches.end() ? kNoSwitch
                                      : static_cast<std::size_t>(at - made_.switches.begin());
  }
  bool known(std::string_view name, std::size_t& number) {
    number = number_of(name);
    return number != kNoSwitch || fail("no line above names a switch " + quoted(name));
  }

  bool parse_root() {
    const std::string_view name = reader_.word();
    if (name.empty() || !reader_.at_end()) return fail("wanted: root SWITCH");
    if (root_ != kNoSwitch) return fail("another line names the root");
    return known(name, root_);
  }

  bool parse_switch() {
    const std::string_view name = reader_.word();
    const std::string_view control = reader_.word();
    HopBudget room;
    bool good = !control.empty();
    if (good && !reader_.at_end()) good = reader_.number(room.sets);
    if (good && !reader_.at_end()) good = reader_.number(room.nodes_per_set);
    if (!good || !reader_.at_end()) return fail("wanted: switch NAME CONTROL [LAYERS [NODES]]");
    const std::size_t sets = std::max<std::size_t>(room.sets, 1);
    if (room.nodes_per_set == 0 || room.nodes_per_set > kSwitchNodesMax / sets) {
      return fail("a switch has 1 to " + std::to_string(kSwitchNodesMax) +
                  " nodes in all of its layers");
    }
    if (made_.switches.size() == kTopologySwitchesMax) {
      return fail("there are at most " + std::to_string(kTopologySwitchesMax) + " switches");
    }
    for (const Topology::Switch& other : made_.switches) {
      if (other.name == name) return fail("another switch is called " + quoted(name));
      if (other.control == control) {
        return fail("switch " + quoted(other.name) + " has the socket " + quoted(control));
      }
    }
    made_.switches.push_back({std::string(name), std::string(control)});
    made_.budget.switches.push_back(room);
    neighbours_.emplace_back();
    return true;
  }

  bool parse_link() {
    const std::string_view one = reader_.word();
    const std::string_view other = reader_.word();
    if (other.empty() || !reader_.at_end()) return fail("wanted: link SWITCH SWITCH");
    std::size_t a = kNoSwitch;
    std::size_t b = kNoSwitch;
    if (!known(one, a) || !known(other, b)) return false;
    if (a == b) return fail("a link leads from " + quoted(one) + " to itself");
    if (std::ranges::count(neighbours_[a], b) != 0) {
      return fail("another line links " + quoted(one) + " and " + quoted(other));
    }
    neighbours_[a].push_back(b);
    neighbours_[b].push_back(a);
    return true;
  }

  bool parse_node() {
    std::size_t number = 0;
    const bool counted = reader_.number(number);
    const std::string_view name = reader_.word();
    const std::string_view address = reader_.word();
    if (!counted || address.empty() || !reader_.at_end()) {
      return fail("wanted: node NUMBER SWITCH ADDRESS");
    }
    if (number != made_.nodes.size()) {
      return fail("nodes are numbered from 0 on: this is " + std::to_string(made_.nodes.size()));
    }
    if (number == kTopologyNodesMax) {
      return fail("there are at most " + std::to_string(kTopologyNodesMax) + " nodes");
    }
    if (std::ranges::count(made_.nodes, address) != 0) {
      return fail("another node has the address " + quoted(address));
    }
    made_.nodes.emplace_back(address);
    return known(name, behind_.emplace_back());
  }

  // The shortest ways from the root to all switches; which one a way comes by, and whether another
  // way is as short.
  struct Reached {
    std::size_t links = kNoSwitch;
    std::size_t from = kNoSwitch;
    bool twice = false;
  };
  [[nodiscard]] std::vector<Reached> ways_from_root() const {
    std::vector<Reached> reached(made_.switches.size());
    reached[root_].links = 0;
    std::vector<std::size_t> order{root_};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Reached here = reached[order[i]];
      for (const std::size_t next : neighbours_[order[i]]) {
        Reached& there = reached[next];
        if (there.links == kNoSwitch) {
          there = {here.links + 1, order[i], here.twice};
          order.push_back(next);
        } else if (there.links == here.links + 1) {
          there.twice = true;
        }
      }
    }
    return reached;
  }

  bool find_ways() {
    if (root_ == kNoSwitch) return fail("no line names the root, which has the fat roots");
    if (made_.nodes.empty()) return fail("no line names a node");
    const std::vector<Reached> reached = ways_from_root();
    for (const std::size_t end : behind_) {
      const auto to_it = [&] {
        return quoted(made_.switches[root_].name) + " to " + quoted(made_.switches[end].name);
      };
      if (reached[end].links == kNoSwitch) return fail("no links lead from " + to_it());
      if (reached[end].twice) {
        return fail("two ways are the shortest from " + to_it() + ", and tables lie on one");
      }
      std::vector<std::size_t> way;
      for (std::size_t at = end; at != kNoSwitch; at = reached[at].from) way.push_back(at);
      std::ranges::reverse(way);
      made_.budget.ways.push_back(std::move(way));
    }
    return true;
  }

  bool is_possible() {
    const auto limits = limits_of(made_.budget);
    return limits.has_value() || fail(limits.error());
  }

  TextReader reader_;
  Topology made_;
  std::string wrong_;
  std::size_t root_ = kNoSwitch;
  std::vector<std::vector<std::size_t>> neighbours_;  // of each switch
  std::vector<std::size_t> behind_;                   // of each node: its switch
};

}  // namespace

std::expected<Topology, TextFault> parse_topology(std::string_view text) {
  return TopologyParser(text).parse();
}

}  // namespace espalier::dataplane
