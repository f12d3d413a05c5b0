// SPDX-License-Identifier: Apache-2.0
// For tests: switches in a row, each with its part of a map's tables, and what they must do, as a
// function that says what was wrong, so that tests with planted bugs can want it to say something.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/packet_function.hpp"
#include "dataplane/way_tables.hpp"

namespace espalier::dataplane {

/// The frame, on its way to a node, as switch number `at` of `count` sends it on; empty: it is
/// dropped.
[[nodiscard]] std::vector<std::byte> sent_on(const PacketFunction& by, std::size_t at,
                                             std::size_t count, std::vector<std::byte> frame,
                                             Processed* done = nullptr, std::uint16_t node = 0);

/// Whether its lengths and checksums are right, be it for a switch or for the node. That UDP has
/// none over IPv6, parse_frame() takes of RoCEv2's port alone; a shim changes nothing of that.
[[nodiscard]] bool is_whole(const std::vector<std::byte>& frame);

/// READs of random tables through two to four switches, against one switch that has all tables;
/// some times one of those behind the first has tables of another generation. "" if each comes out
/// as it must, to the byte.
[[nodiscard]] std::string frames_through_a_row(std::uint64_t seed, int rounds);
/// The same of a map that lies on two nodes by one keyed key, through two switches that lead to
/// both; some shims name the other node.
[[nodiscard]] std::string frames_to_two_nodes(std::uint64_t seed, int rounds);
/// Gets in datagrams, to two nodes that have one map by one number: each gets a hint to a
/// node of the tree of the server that it goes to.
[[nodiscard]] std::string gets_to_two_nodes(std::uint64_t seed, int rounds);

}  // namespace espalier::dataplane
