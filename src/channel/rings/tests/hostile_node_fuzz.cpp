// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's behaviour towards its client over a fabric: welcomes, slots, notes,
// credits, WRITEs, ends (hostile_node.hpp). Every request completes once, nothing outside received
// data is read, and when the bytes end and with them the node, the client detects that.
//
// Input: the LinkWay, then the node's choices, each in as few bytes as possible.
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
