// SPDX-License-Identifier: Apache-2.0
#include "dataplane/testing/table_checks.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/index_lookup.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/testing/read_frame.hpp"

namespace espalier::dataplane {
namespace {

constexpr MapKeys kKeys{1, 2};

std::uint64_t address_of(const PacketFunction& function, std::vector<std::byte> frame) {
  function.process(frame);
  const ReadRequestParts parts = find_read_request(frame);
  return base::load_be<std::uint64_t>(parts.ib.data() + sizeof(wire::roce::BthBytes));
}

}  // namespace

std::string lookups_at_separators(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 2, .children_max = 12});
    const IndexTables tables = compile(tree, {.ranges = 12, .sets = 3}).tables;
    const IndexLookup lookup(tables);
    for (const std::uint64_t key : border_keys(tree, random)) {
      if (lookup.find(key) != find(tables, key)) return "a key went to the wrong child";
    }
  }
  return "";
}

std::string redirected_frames(std::uint64_t seed, int rounds) {
  base::Random random(seed);
  PacketFunction function;
  function.add(kKeys,
               compile(even_tree(2, 12, 1 << 20, std::vector<std::uint64_t>(144, 1)), {}).tables);
  const fabric::roce::FrameHeader header = plain_frame_header();
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> frame = keyed_frame(random() >> 32, kKeys.keyed);
    if (function.process(frame).outcome != Outcome::redirected) return "a READ was not redirected";
    const auto whole = fabric::roce::parse_frame(frame);
    if (!whole || !fabric::roce::Icrc(header.flow).matches(whole->ib)) return "an ICRC is wrong";
  }
  return "";
}

std::string changes_under_frames(std::uint64_t rounds) {
  // Two leaves whose entries always change together.
  const TreeImage tree = even_tree(1, 2, 1 << 20, {1, 1});
  const IndexTables tables = compile(tree, {}).tables;
  PacketFunction function;
  function.add(kKeys, tables);
  const EntryPlace left = places_of(tables, tree.address(tree.children(tree.root())[0])).front();
  const EntryPlace right = places_of(tables, tree.address(tree.children(tree.root())[1])).front();
  InstalledFunction installed;
  installed.install(function);
  installed.set_addresses(
      std::array{EntryChange{kKeys.keyed, left, 64}, EntryChange{kKeys.keyed, right, 64}});
  std::atomic<bool> stop{false};
  std::atomic<bool> mixed{false};
  std::atomic<int> running{0};
  const auto process = [&] {
    auto reader = installed.make_reader();
    const std::vector<std::byte> to_left = keyed_frame(5, kKeys.keyed);
    const std::vector<std::byte> to_right = keyed_frame(1 << 21, kKeys.keyed);
    ++running;
    while (!stop.load(std::memory_order_relaxed)) {
      reader.with([&](const PacketFunction& in_use) {
        if (address_of(in_use, to_left) != address_of(in_use, to_right)) mixed = true;
      });
    }
  };
  std::thread one(process);
  std::thread other(process);
  while (running != 2) std::this_thread::yield();
  for (std::uint64_t round = 1; round <= rounds && !mixed; ++round) {
    const std::uint64_t address = 64 + 64 * round;
    if (round % 16 == 0) {
      function.set_address(kKeys.name(), left, address);
      function.set_address(kKeys.name(), right, address);
      installed.install(function);
    } else {
      installed.set_addresses(std::array{EntryChange{kKeys.keyed, left, address},
                                         EntryChange{kKeys.keyed, right, address}});
    }
  }
  stop = true;
  one.join();
  other.join();
  return mixed ? "a burst met half of a change" : "";
}

}  // namespace espalier::dataplane
