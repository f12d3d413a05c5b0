// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame at a switch: it is left as it was, or it is a READ request by the map's key
// that now goes where the tables say, with nothing else changed but checksums.
#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/packet_function.hpp"

namespace espalier::dataplane {
namespace {

using base::want;

constexpr MapKeys kKeys{0x0101'0101, 0x0202'0202};
constexpr std::size_t kAddress = 12;  // of the RETH, in the packet

IndexTables small_tables() {
  TreeImage tree;
  std::vector<NodeNumber> leaves;
  std::vector<std::uint64_t> separators;
  for (std::uint64_t i = 0; i < 40; ++i) {
    leaves.push_back(tree.add_leaf(0x1000 + i, i));
    if (i != 0) separators.push_back(i << (i % 56));
  }
  std::ranges::sort(separators);
  const auto same = std::ranges::unique(separators);
  separators.erase(same.begin(), same.end());
  leaves.resize(separators.size() + 1);
  tree.set_root(tree.add_node(0x2000, 100, separators, leaves));
  return compile(tree, {.ranges = 4, .sets = 2, .nodes_per_set = 8}).tables;
}

void process(std::span<const std::byte> bytes) {
  static const IndexTables tables = small_tables();
  static const PacketFunction function = [] {
    PacketFunction made;
    made.add(kKeys, tables);
    return made;
  }();
  std::vector<std::byte> frame(bytes.begin(), bytes.end());
  const Processed processed = function.process(frame);
  if (processed.outcome != Outcome::redirected) {
    want(std::ranges::equal(frame, bytes), "a frame that passes untouched");
    return;
  }
  std::vector<std::byte> old(bytes.begin(), bytes.end());
  const ReadRequestParts before = find_read_request(old);
  const ReadRequestParts after = find_read_request(frame);
  want(!before.ib.empty() && !after.ib.empty(), "a READ request");
  const auto number = base::load_be<std::uint64_t>(before.ib.data() + kAddress);
  want(base::load_be<std::uint32_t>(before.ib.data() + kAddress + 8) == kKeys.keyed, "its key");
  want(base::load_be<std::uint32_t>(after.ib.data() + kAddress + 8) == kKeys.redirect, "a new key");
  want(base::load_be<std::uint64_t>(after.ib.data() + kAddress) == find(tables, number).address,
       "the address of the tables");
  // Back to what it was, but for the checksums.
  std::copy_n(before.ib.data() + kAddress, 12, after.ib.data() + kAddress);
  std::copy_n(before.ib.data() + 28, 4, after.ib.data() + 28);
  std::copy_n(before.udp + 6, 2, after.udp + 6);
  want(std::ranges::equal(frame, bytes), "nothing else changed");
}

}  // namespace
}  // namespace espalier::dataplane

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::dataplane::process(std::as_bytes(std::span(data, size)));
  return 0;
}
