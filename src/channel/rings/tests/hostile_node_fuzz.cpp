// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as what a node does to its client over a fabric: welcomes, lines, notes, credits,
// WRITEs, ends (hostile_node.hpp). Every request ends once, nothing outside of what came is read,
// and when the bytes and with them the node are gone, the client finds out.
//
// Input: the way, then what the node chooses, each choice as few bytes as it needs.
#include <cstdio>
#include <cstdlib>

#include "channel/rings/tests/testing/hostile_node_world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  client::Choices choices(data, size);
  const wire::LinkWay way = choices.pick({wire::LinkWay::write, wire::LinkWay::send});
  client::HostileNodeWorld world(choices, way);
  client::NodeReached reached;
  const std::string wrong = world.run(reached);
  if (!wrong.empty()) {
    std::fprintf(stderr, "hostile_node_fuzz: %s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
