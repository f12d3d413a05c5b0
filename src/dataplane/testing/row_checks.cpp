// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/row_checks.hpp"

#include "dataplane/key_number.hpp"
#include "dataplane/testing/get_frame.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/testing/read_frame.hpp"
#include "fabric/roce/testing/sample_packets.hpp"
#include "wire/ref.hpp"

namespace espalier::dataplane {
namespace {

using Bytes = std::vector<std::byte>;

constexpr MapKeys kRowKeys{0xABCD'0011, 0xABCD'0012};

/// One map's tables, as one switch has them and as a row has.
struct Row {
  Row(base::Random& random, const TreeImage& tree, const WayBudget& way) {
    const IndexTables tables = compile(tree, *limits_of(way)).tables;
    whole.add(kRowKeys, tables);
    const auto generation = static_cast<std::uint32_t>(random());
    for (const SwitchProgram& program : cut_program(kRowKeys, tables, way, generation)) {
      parts.push_back(program.function());
      has_part.push_back(!program.maps().empty());
    }
  }
  PacketFunction whole;
  std::vector<PacketFunction> parts;
  std::vector<bool> has_part;  // else the switch has nothing, and is not meant by a cursor
};

WayBudget draw_way(base::Random& random) {
  WayBudget way{.ranges = 2 + random.below(10), .hops = {}};
  const std::size_t switches = 2 + random.below(3);
  for (std::size_t i = 0; i < switches; ++i) {
    way.hops.push_back({random.below(3), 1 + random.below(40)});
  }
  return way;
}

Bytes draw_read(base::Random& random, std::uint64_t number) {
  const bool v6 = random.chance(0.5);
  const bool tag = random.chance(0.3);
  const fabric::roce::FrameHeader header = fabric::roce::sample::frame_header(random, v6, tag);
  fabric::roce::Headers headers =
      fabric::roce::sample::headers(random, fabric::roce::PacketOpcode::read_request, 0);
  headers.reth.address = number;
  headers.reth.key = kRowKeys.keyed;
  Bytes frame = sealed_frame(header, headers, {}, random.chance(0.5));
  // Ethernet fills short frames up.
  if (random.chance(0.2)) frame.resize(frame.size() + 1 + random.below(20), std::byte{0x77});
  return frame;
}

/// One READ, through a row of which switch number `other` has tables of another generation; none
/// has where that is 0.
std::string through(const Row& row, const Row& foreign, std::size_t other, const Bytes& sent) {
  Bytes frame = sent;
  bool believed = true;
  for (std::size_t at = 0; at < row.parts.size(); ++at) {
    const bool is_other = other != 0 && at == other;
    if (is_other && row.has_part[at] && is_for_switch(find_datagram(frame))) believed = false;
    const PacketFunction& by = is_other ? foreign.parts[at] : row.parts[at];
    frame = sent_on(by, at, row.parts.size(), std::move(frame));
    if (frame.empty()) return "a READ was dropped";
    if (at + 1 == row.parts.size() || is_whole(frame)) continue;
    return is_for_switch(find_datagram(frame)) ? "a frame between switches is wrong"
                                               : "a READ was not restored";
  }
  if (is_for_switch(find_datagram(frame))) return "a shim came to the node";
  if (find_read_request(frame).ib.empty()) return "a READ was not restored";
  Bytes expected = sent;
  if (believed) row.whole.process(expected);
  if (frame == expected) return "";
  return believed ? "a READ went elsewhere than through one switch"
                  : "a READ went by a cursor of another generation";
}

}  // namespace

bool is_whole(const Bytes& frame) {
  const auto parsed = fabric::roce::parse_frame(frame, fabric::roce::UdpChecksum::any);
  if (!parsed) return false;
  return parsed->udp_checksum == 0 || fabric::roce::parse_frame(frame).has_value();
}

std::vector<std::byte> sent_on(const PacketFunction& by, std::size_t at, std::size_t count,
                               std::vector<std::byte> frame, Processed* done, std::uint16_t node) {
  const std::size_t bytes = frame.size();
  frame.resize(bytes + kShimBytes);
  const Hop hop{at == 0, at + 1 == count, kShimBytes, node};
  const Processed processed = by.process(std::span(frame).first(bytes), hop);
  if (done != nullptr) *done = processed;
  if (processed.outcome == Outcome::shim_dropped) return {};
  frame.resize(bytes + static_cast<std::size_t>(std::ptrdiff_t{processed.grown}));
  return frame;
}

namespace {

// One READ to a node; `forged`: between the switches its shim is made to name the other node.
std::string through_both(const std::vector<PacketFunction>& parts, const PacketFunction& whole,
                         std::uint16_t node, bool forged, const Bytes& sent) {
  Bytes frame = sent_on(parts[0], 0, 2, sent, nullptr, node);
  if (frame.empty()) return "a READ was dropped";
  const Datagram datagram = find_datagram(frame);
  auto shim = find_shim(datagram);
  if (shim && shim->server != node) return "a shim names another node";
  if (shim && forged) {
    shim->server = 1 - node;
    write_shim(datagram.udp + wire::kUdpBytes, *shim);
  }
  forged = forged && shim;
  frame = sent_on(parts[1], 1, 2, std::move(frame), nullptr, node);
  if (frame.empty() || find_read_request(frame).ib.empty()) return "a READ was not restored";
  Bytes expected = sent;
  if (!forged) whole.process(expected, {.node = node});
  if (frame == expected) return "";
  return forged ? "a READ went by the key of another node"
                : "a READ went elsewhere than through one switch";
}

}  // namespace

std::string frames_to_two_nodes(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  const MapKeys keys[] = {kRowKeys, {kRowKeys.keyed, 0xABCD'0013, 1}};
  for (int round = 0; round < rounds; ++round) {
    const TopologyBudget topology{.ranges = 2 + random.below(10),
                                  .switches = {{0, 1}, {2, 1 + random.below(60)}},
                                  .ways = {{0, 1}, {0, 1}}};
    const TreeShape shape{.levels = 5, .children_max = 8, .here = 0.05};
    const TreeImage trees[] = {random_tree(random, shape), random_tree(random, shape)};
    std::vector<IndexTables> tables;
    PacketFunction whole;
    for (Compiled& each : compile(trees, *limits_of(topology))) {
      whole.add(keys[tables.size()], each.tables);
      tables.push_back(std::move(each.tables));
    }
    std::vector<PacketFunction> parts;
    for (const SwitchProgram& each : cut_program(keys, tables, topology, 5)) {
      parts.push_back(each.function());
    }
    for (const std::uint64_t number : border_keys(trees[0], random, 30)) {
      const auto node = static_cast<std::uint16_t>(random.below(2));
      const std::string wrong =
          through_both(parts, whole, node, random.chance(0.3), draw_read(random, number));
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string gets_to_two_nodes(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    // Of one map, with the same number at both nodes.
    const HintTerms terms[] = {{7, 512 * random.below(1000), ""},
                               {7, 512 * random.below(1000), ""}};
    PacketFunction function;
    std::vector<IndexTables> tables;
    for (std::uint16_t node = 0; node < 2; ++node) {
      TreeImage tree = random_tree(random, {.levels = 3, .children_max = 8});
      for (NodeNumber each = 0; each < tree.size(); ++each) {
        tree.set_address(each, terms[node].base + (1 + 2 * each + node) * wire::kBlockBytes);
      }
      tables.push_back(compile(tree, {.ranges = 20, .sets = 1}).tables);
      function.add({kRowKeys.keyed, 0xABCD'0012u + node, node}, tables[node], {}, terms[node]);
    }
    for (int i = 0; i < 10; ++i) {
      const auto node = static_cast<std::uint16_t>(random.below(2));
      const std::string key = std::to_string(random());
      Bytes frame = get_frame(plain_frame_header(), 7, key);
      function.process(frame, {.node = node});
      const std::uint64_t address = find(tables[node], key_number("", key)).address;
      if (hint_of(frame) != wire::Ref::make(address - terms[node].base, 0).bits) {
        return "a get was told a node of another server";
      }
    }
  }
  return "";
}

std::string frames_through_a_row(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    const WayBudget way = draw_way(random);
    const TreeShape shape{.levels = 5, .children_max = 8, .here = 0.05};
    const TreeImage tree = random_tree(random, shape);
    const Row row(random, tree, way);
    const Row foreign(random, random_tree(random, shape), way);
    for (const std::uint64_t number : border_keys(tree, random, 30)) {
      const std::size_t other = random.chance(0.5) ? 0 : 1 + random.below(way.hops.size() - 1);
      const std::string wrong = through(row, foreign, other, draw_read(random, number));
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace espalier::dataplane
