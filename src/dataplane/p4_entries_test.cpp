// SPDX-License-Identifier: Apache-2.0
// The P4 program is not compiled here, for no package has its compiler. So its text is held against
// the constants of the packet function, and entries against its text; and entries that are read
// back must do what the tables do that they were written from.
#include "dataplane/p4_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/bytes.hpp"
#include "base/crc32.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/index_lookup.hpp"
#include "dataplane/p4_constants.hpp"
#include "dataplane/set_lookup.hpp"
#include "dataplane/testing/even_tree.hpp"
#include "dataplane/testing/p4_text.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/way_tables.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::dataplane {
namespace {

std::string read_p4_file(const std::string& name) {
  std::ifstream file(std::string(ESPALIER_SOURCE_DIR "/dataplane/p4/") + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(P4Program, ItsConstantsAreThoseOfThePacketFunction) {
  EXPECT_EQ(read_p4_file("index_constants.p4"), p4_constants());
}

TEST(P4Program, ItHasTheTablesThatEntriesAreWrittenFor) {
  const P4Program program = read_p4(read_p4_file("index.p4"));
  ASSERT_EQ(program.tables.size(), 3 + kP4Stages + 1 + 3 * kP4Sets);
  const auto kinds = [&program](const std::string& table) {
    std::string text;
    for (const P4Key& key : program.tables.at(table).keys) {
      text += key.kind + std::to_string(key.bits) + " ";
    }
    return text;
  };
  EXPECT_EQ(kinds("maps"), "exact32 ");
  EXPECT_EQ(kinds("parts"), "exact32 exact32 exact16 exact8 ");
  EXPECT_EQ(program.tables.at("parts").size, kP4Maps);
  for (std::size_t stage = 1; stage <= kP4Stages; ++stage) {
    const std::string name = "fat_root_" + std::to_string(stage);
    EXPECT_EQ(kinds(name), "exact16 exact32 range" + std::to_string(kP4BitsPerStage) + " ");
    EXPECT_EQ(program.tables.at(name).size, kP4StageEntries);
    // The stages take the number's parts from the highest on.
    const std::size_t low = 64 - stage * kP4BitsPerStage;
    EXPECT_EQ(program.tables.at(name).keys[2].field,
              "meta.number[" + std::to_string(low + 15) + ":" + std::to_string(low) + "]");
  }
  EXPECT_EQ(kinds("fat_root_ways"), "exact16 exact32 ");
  EXPECT_EQ(program.tables.at("fat_root_ways").size, kP4Ranges);
  EXPECT_EQ(program.tables.at("maps").size, kP4Maps);
  for (std::size_t set = 1; set <= kP4Sets; ++set) {
    const std::string name = "set_" + std::to_string(set);
    EXPECT_EQ(kinds(name + "_pivots"), "exact16 exact32 ");
    EXPECT_EQ(kinds(name + "_ways"), "exact16 exact32 exact4 ");
    EXPECT_EQ(program.tables.at(name + "_pivots").size, kP4Nodes);
    EXPECT_EQ(program.tables.at(name + "_ways").size, kP4Nodes * kWaysMax);
  }
  EXPECT_EQ(program.actions.at("compare"), std::vector<unsigned>(kPivotsMax, 64));
  EXPECT_EQ(program.actions.at("set_way"), (std::vector<unsigned>{64, 1, 1, 32}));
}

// Which child it is that so many pivots lead to, in each set's constant table.
TEST(P4Program, ItCountsPivotsAsTheTablesDo) {
  const std::string text = read_p4_file("index.p4");
  const auto times = [&text](const std::string& line) {
    std::size_t found = 0;
    for (auto at = text.find(line); at != text.npos; at = text.find(line, at + 1)) ++found;
    return found;
  };
  for (std::uint32_t pivots = 0; pivots <= kPivotsMax; ++pivots) {
    const std::uint32_t reached = (1u << pivots) - 1;
    char bits[8];
    std::snprintf(bits, sizeof bits, "0x%04X", reached);
    const std::string line =
        std::string(bits) + ": set_child(" + std::to_string(way_of(reached)) + ");";
    EXPECT_EQ(times(line), kP4Sets) << line;
  }
  EXPECT_EQ(times(": set_child("), kP4Sets * kWaysMax);
}

TEST(P4Program, EntriesFitItAndComeBackRandom) {
  const P4Program program = read_p4(read_p4_file("index.p4"));
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 20; ++round) {
    SwitchProgram written;
    std::vector<TreeImage> trees;
    for (std::uint32_t map = 0; map < 1 + random.below(3); ++map) {
      trees.push_back(random_tree(random, {.levels = 4, .children_max = 12, .here = 0.1}));
      const TableLimits limits{
          .ranges = 1 + random.below(40), .sets = random.below(4), .nodes_per_set = 9};
      ASSERT_TRUE(written.add({{0xAB + map, 0xCD + map}, compile(trees.back(), limits).tables}));
    }
    const auto text = p4_entries(written);
    ASSERT_TRUE(text) << text.error();
    std::vector<P4Entry> entries;
    ASSERT_EQ(read_entries(program, *text, entries), "");
    const auto back = program_of(entries);
    ASSERT_TRUE(back) << "keys before what they lead to";
    ASSERT_EQ(*back, written);
    for (std::size_t map = 0; map < trees.size(); ++map) {
      const IndexLookup lookup(back->maps()[map].tables);
      for (const std::uint64_t key : border_keys(trees[map], random, 50)) {
        ASSERT_EQ(lookup.find(key), find(written.maps()[map].tables, key));
      }
    }
  }
}

TEST(P4Program, EntriesOfPartsComeBackRandom) {
  const P4Program program = read_p4(read_p4_file("index.p4"));
  base::Random random(base::seed_from_environment(3));
  const WayBudget way{.ranges = 5, .hops = {{1, 9}, {2, 30}, {0, 1}, {1, 40}}};
  std::size_t parts = 0;
  for (int round = 0; round < 20; ++round) {
    // No two ways of a node are alike, so that entries show how many it has.
    const TreeImage tree = random_tree(random, {.levels = 6, .children_max = 6});
    const IndexTables tables = compile(tree, *limits_of(way)).tables;
    for (const SwitchProgram& each : cut_program({0xAB, 0xCD}, tables, way, 0x5EED)) {
      const auto text = p4_entries(each);
      ASSERT_TRUE(text) << text.error();
      std::vector<P4Entry> entries;
      ASSERT_EQ(read_entries(program, *text, entries), "");
      const auto back = program_of(entries);
      ASSERT_TRUE(back) << "keys before what they lead to";
      ASSERT_EQ(*back, each);
      parts += each.maps().size();
    }
  }
  EXPECT_GT(parts, 40u);
}

TEST(P4Program, EntriesThatItDoesNotHaveAreNoticed) {
  const P4Program program = read_p4(read_p4_file("index.p4"));
  const auto fault = [&program](const std::string& line) {
    std::vector<P4Entry> entries;
    const std::string found = read_entries(program, "table_add index_ingress." + line, entries);
    return found.substr(0, found.find(": "));
  };
  EXPECT_EQ(fault("maps index_ingress.set_map 0x1 => 0x1 0x2 0x3 0x4 0x5"), "");
  EXPECT_EQ(fault("map index_ingress.set_map 0x1 => 0x1 0x2 0x3"), "no table map");
  EXPECT_EQ(fault("maps index_ingress.take 0x1 => 0x1 0x2 0x3"), "no such action");
  EXPECT_EQ(fault("maps index_ingress.set_map 0x1 0x2 => 0x1 0x2 0x3"), "more matches than keys");
  EXPECT_EQ(fault("maps index_ingress.set_map 0x1 => 0x10000 0x2 0x3"), "what an action is given");
  EXPECT_EQ(fault("maps index_ingress.set_map 0x1 => 0x1 0x2 0x3 0x4 0x5 0x6"), "words too many");
  EXPECT_EQ(fault("fat_root_1 index_ingress.take 0x1 0x0 0x5 => 0x1 0x0 0x0 1"),
            "a match of another kind");
  EXPECT_EQ(fault("fat_root_1 index_ingress.take 0x1 0x0 0x5->0x10000 => 0x1 0x0 0x0 1"),
            "a range");
  EXPECT_EQ(fault("fat_root_1 index_ingress.take 0x1 0x0 0x5->0x6 => 0x1 0x0 0x0"), "no priority");
}

TEST(P4Program, WhatDoesNotFitIsRefusedInWords) {
  const auto fault = [](const IndexTables& tables, std::uint32_t maps = 1) {
    SwitchProgram program;
    for (std::uint32_t map = 1; map <= maps; ++map) {
      EXPECT_TRUE(program.add({{map, 1000 + map}, tables}));
    }
    const auto entries = p4_entries(program);
    return entries ? "" : entries.error();
  };
  const IndexTables good = compile(even_tree(1, 2, 10, {1, 1}), {}).tables;
  EXPECT_EQ(fault(good), "");
  EXPECT_EQ(fault(good, 64), "");
  IndexTables tables = good;
  tables.sets.resize(4);
  EXPECT_EQ(fault(tables), "tables of 4 sets of nodes, and there are 3");
  tables = good;
  tables.root.bits_per_stage = 8;
  EXPECT_EQ(fault(tables), "a fat root that is not of four stages of 16 bits");
  tables = good;
  tables.ways.resize(kP4Ranges);
  EXPECT_EQ(fault(tables), "");
  EXPECT_EQ(fault(tables, 2), "2048 ranges, and there is room for 1024");
  tables = good;
  tables.root.stages[2].resize(kP4StageEntries + 1);
  EXPECT_EQ(fault(tables), "2049 entries of stage 3 of the fat root, and there is room for 2048");
  tables = good;
  tables.sets.resize(1);
  tables.sets[0].resize(kP4Nodes + 1);
  EXPECT_EQ(fault(tables), "4097 nodes of set 1, and there is room for 4096");
}

// The program's way to the change of an ICRC: CRC-32 of the old fields and of the new ones, each
// with a length of zeros behind, by exclusive or.
TEST(P4Program, TwoChecksumsGiveTheChangeOfTheIcrc) {
  base::Random random(base::seed_from_environment(2));
  const auto checksum = [](std::uint64_t address, std::uint32_t key) {
    std::array<std::byte, 16> bytes{};
    base::store_be(bytes.data(), address);
    base::store_be(bytes.data() + 8, key);
    return base::crc32(bytes);
  };
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t before = random(), after = random();
    const auto old_key = static_cast<std::uint32_t>(random());
    const auto new_key = static_cast<std::uint32_t>(random());
    ASSERT_EQ(checksum(before, old_key) ^ checksum(after, new_key),
              fabric::roce::icrc_change(before ^ after, old_key ^ new_key));
  }
}

// A switch that executes the commands of the runtime CLI, as far as changes use them.
std::string carried_out(std::string entries, const std::string& changes) {
  std::map<std::string, std::vector<std::size_t>, std::less<>> lines_of;  // where each begins
  std::istringstream words(changes);
  for (std::string line; std::getline(words, line);) {
    std::istringstream rest(line);
    std::string verb;
    std::string table;
    std::string action;
    rest >> verb >> table;
    if (verb == "table_clear") {
      entries.clear();
      continue;
    }
    if (verb == "table_add") {
      entries += line + "\n";
      continue;
    }
    std::size_t handle = 0;
    rest >> action >> handle;
    std::size_t at = 0;
    for (std::size_t seen = 0;; ++seen) {
      at = entries.find("table_add " + table + " ", at);
      if (seen == handle) break;
      ++at;
    }
    const std::size_t given = entries.find(" => ", at) + 4;
    const bool range = action == "index_ingress.take";
    std::string parameters;
    std::getline(rest >> std::ws, parameters);
    entries.replace(given, entries.find('\n', at) - given, parameters + (range ? " 1" : ""));
  }
  return entries;
}

SwitchProgram program_with(const IndexTables& first, std::uint32_t redirect) {
  SwitchProgram program;
  EXPECT_TRUE(program.add({{1, redirect}, first}));
  const TreeImage other = even_tree(2, 4, 1000, std::vector<std::uint64_t>(16, 1));
  EXPECT_TRUE(program.add({{3, 4}, compile(other, {.ranges = 4, .sets = 1}).tables}));
  return program;
}

TEST(P4Changes, EntriesThatAreGivenSomethingElseAreModifiedAlone) {
  const TreeImage tree = even_tree(3, 8, 1000, std::vector<std::uint64_t>(512, 1));
  const TableLimits limits{.ranges = 20, .sets = 2, .nodes_per_set = 50};
  const IndexTables tables = compile(tree, limits).tables;
  const std::string before = *p4_entries(program_with(tables, 2));
  EXPECT_EQ(p4_changes(before, before), "");
  IndexTables moved = tables;
  set_address(moved, {EntryPlace::kRoot, 3, 0}, 0xABC0);
  set_address(moved, {0, 2, 1}, 0xABD0);
  set_address(moved, {0, 2, moved.sets[0][2].way_count - 1}, 0xABE0);
  const std::string after = *p4_entries(program_with(moved, 2));
  const std::string changes = p4_changes(before, after);
  EXPECT_EQ(changes.find("table_clear"), std::string::npos);
  EXPECT_NE(changes.find("table_modify index_ingress.fat_root_ways index_ingress.set_way 3 0xabc0"),
            std::string::npos)
      << changes;
  const auto lines = static_cast<std::size_t>(std::ranges::count(changes, '\n'));
  EXPECT_EQ(lines, 2 + kWaysMax - (moved.sets[0][2].way_count - 1));
  EXPECT_EQ(carried_out(before, changes), after);
  // Another redirect key, for a new generation of the same shape.
  const std::string renewed = *p4_entries(program_with(tables, 9));
  EXPECT_EQ(carried_out(before, p4_changes(before, renewed)), renewed);
  EXPECT_EQ(std::ranges::count(p4_changes(before, renewed), '\n'), 1);
}

TEST(P4Changes, WhereOtherNumbersAreMatchedAllIsToldAnew) {
  const TreeImage tree = even_tree(3, 8, 1000, std::vector<std::uint64_t>(512, 1));
  const std::string before = *p4_entries(program_with(compile(tree, {.ranges = 20}).tables, 2));
  const std::string after = *p4_entries(program_with(compile(tree, {.ranges = 30}).tables, 2));
  const std::string changes = p4_changes(before, after);
  EXPECT_TRUE(changes.starts_with("table_clear index_ingress.maps\n"));
  EXPECT_EQ(carried_out(before, changes), after);
  EXPECT_EQ(carried_out(before, p4_changes(before, "")), "");
  EXPECT_EQ(carried_out("", p4_changes("", after)), after);
}

}  // namespace
}  // namespace espalier::dataplane
