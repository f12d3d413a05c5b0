// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hinted_gets.hpp"

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/process_switch.hpp"
#include "dataplane/switch_program.hpp"
#include "engine/tests/testing/datagram_client.hpp"
#include "index/tree_crawl.hpp"

namespace espalier::test {
namespace {

using offload::DatagramClient;
using offload::DatagramNode;
using wire::DatagramStatus;

constexpr std::uint32_t kHintedKeys = 4000;

std::string key_of(std::uint64_t i) { return "user" + std::to_string(100'000 + i); }

/// A node, its items as they should be, and the tables that a controller made of its tree.
struct HintingNode {
  HintingNode(std::uint16_t number_in, base::Random& random) : number(number_in), client(node) {
    node.pace_ns = 1'000'000;
    for (std::uint32_t i = 0; i < kHintedKeys; ++i) write(random);
    at.ip = fabric::roce::IpAddress::v4(10, 0, 1, static_cast<std::uint8_t>(number));
    at.udp_port = wire::kDatagramPort;
  }
  void write(base::Random& random) {
    const std::string key = key_of(random.below(kHintedKeys));
    std::string& value = items[key];
    value = std::to_string(number) + " " + std::to_string(random()) +
            std::string(random.below(60), 'v');
    node.put(key, value);
  }
  [[nodiscard]] dataplane::SwitchMap compile(std::uint16_t as) {
    tree::MapCore& map = node.node.core();
    place::LocalRegion region(node.node.store().region.at(0));
    const std::uint64_t base = std::uint64_t{1} << 50;
    const auto tree = place::crawl(map, region);
    if (!tree) throw std::runtime_error("the tree cannot be read");
    const auto image = tree->image("user", base);
    const auto compiled = dataplane::compile(image, {.ranges = 60, .sets = 2});
    return {{77, 100u + as, as}, compiled.tables, {}, {map.id, base, "user"}};
  }

  const std::uint16_t number;
  DatagramNode node;
  DatagramClient client;
  std::map<std::string, std::string> items;
  offload::DatagramSource at;
};

/// Both, and the switch before them.
class HintedWorld {
 public:
  HintedWorld(std::uint64_t seed, HintedGetsCounts& counts)
      : random_(seed), counts_(counts), nodes_{{{0, random_}, {1, random_}}}, through_(function_) {
    through_.route = [this](const auto&, const auto& to, auto& way) {
      const auto number = static_cast<std::uint16_t>(to == nodes_[0].at ? 0 : 1);
      way.push_back({0, {true, true, dataplane::kShimBytes, number}});
      return true;
    };
    install();
  }

  std::string run(int gets) {
    for (HintingNode& node : nodes_) {
      if (!node.client.prove(offload::kHere)) return "an address cannot be proved";
    }
    for (int i = 0; i < gets; ++i) {
      HintingNode& node = nodes_[random_.below(2)];
      if (random_.chance(0.3)) node.write(random_);
      if (random_.chance(0.01)) install();
      if (const std::string wrong = get(node); !wrong.empty()) return wrong;
    }
    for (HintingNode& node : nodes_) {
      const auto& hints = node.node.node.core().hints;
      counts_.admitted += hints.admitted.sum();
      counts_.moved += hints.moved.sum();
      counts_.refused += hints.refused.sum();
    }
    counts_.hinted += through_.counters().gets_hinted;
    return "";
  }

 private:
  // A controller that takes one node for the other leads gets to the wrong one's nodes.
  void install() {
    swapped_ = random_.chance(0.3);
    dataplane::SwitchProgram program;
    for (HintingNode& node : nodes_) {
      const auto as = static_cast<std::uint16_t>(swapped_ ? 1 - node.number : node.number);
      if (!program.add(node.compile(as))) throw std::logic_error("no room in a program");
    }
    function_.install(program.function());
  }

  std::string get(HintingNode& node) {
    const std::string key = key_of(random_.below(kHintedKeys));
    const std::string sent = node.client.get(key);
    const auto came =
        through_.process_datagram(offload::kHere, node.at, std::as_bytes(std::span(sent)));
    if (came.empty()) return "a get was lost at the switch";
    counts_.of_another += swapped_ ? 1 : 0;
    const std::string_view bytes(reinterpret_cast<const char*>(came.data()), came.size());
    const auto status = node.client.ask(bytes, offload::kHere);
    const auto known = node.items.find(key);
    if (known == node.items.end()) {
      ++counts_.absent;
      return status == DatagramStatus::absent ? "" : key + " is found and was never written";
    }
    ++counts_.found;
    if (status != DatagramStatus::found) return key + " is not found";
    return node.client.value == known->second ? "" : key + " is answered with another value";
  }

  base::Random random_;
  HintedGetsCounts& counts_;
  std::array<HintingNode, 2> nodes_;
  dataplane::InstalledFunction function_;
  dataplane::ProcessSwitch through_;
  bool swapped_ = false;
};

}  // namespace

std::string hinted_gets(std::uint64_t seed, int gets, HintedGetsCounts& counts) {
  return HintedWorld(seed, counts).run(gets);
}

}  // namespace espalier::test
