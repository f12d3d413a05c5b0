// SPDX-License-Identifier: Apache-2.0
#include "offload/registry.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace espalier::offload {
namespace {

std::string row_of(const Offload& offload) {
  std::ostringstream row;
  row << "| " << static_cast<int>(offload.id) << " | `" << offload.name << "` | " << offload.format
      << " | " << offload.summary << " |\n";
  return row.str();
}

TEST(Registry, EveryOffloadHasANumberOfItsOwnAndAllItNeeds) {
  std::set<std::string_view> names;
  for (const Offload& offload : all_offloads()) {
    EXPECT_NE(offload.id, wire::OffloadId::invalid);
    EXPECT_LT(static_cast<std::uint32_t>(offload.id), wire::kOffloadIds) << offload.name;
    EXPECT_EQ(offload_table()[static_cast<std::uint8_t>(offload.id)], &offload);
    EXPECT_TRUE(names.insert(offload.name).second) << offload.name;
    EXPECT_NE(offload.step, nullptr) << offload.name;
    EXPECT_FALSE(offload.format.empty()) << offload.name;
    EXPECT_FALSE(offload.summary.empty()) << offload.name;
  }
  EXPECT_EQ(offload_table()[0], nullptr);
  EXPECT_EQ(offload_table()[255], nullptr);
}

TEST(Registry, OffloadsOfAProgramStandBesideTheOthers) {
  Offload own = all_offloads().front();
  own.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 1);
  const OffloadTable table = offload_table_with({&own, 1});
  EXPECT_EQ(table[wire::kOwnOffloadIds + 1], &own);
  EXPECT_EQ(table[wire::kOwnOffloadIds], nullptr);
  for (const Offload& offload : all_offloads()) {
    EXPECT_EQ(table[static_cast<std::uint8_t>(offload.id)], &offload);
    EXPECT_LT(static_cast<std::uint8_t>(offload.id), wire::kOwnOffloadIds) << offload.name;
  }
  EXPECT_EQ(offload_table_with({}), offload_table());
}

TEST(RegistryDeathTest, OffloadsOfAProgramTakeNoNumberOfTheProtocols) {
  Offload own = all_offloads().front();
  EXPECT_DEATH(static_cast<void>(offload_table_with({&own, 1})), "kOwnOffloadIds");
}

// Which is how a role for a prefix would reach the objects of others.
TEST(RegistryDeathTest, WhatNamesAnObjectTakesARight) {
  Offload own = all_offloads().front();
  own.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
  ASSERT_EQ(own.right, Right::none);
  static_cast<void>(offload_table_with({&own, 1}));
  for (const Names names : {Names::by_id, Names::by_name, Names::all}) {
    own.object = names;
    EXPECT_DEATH(static_cast<void>(offload_table_with({&own, 1})), "names_object");
  }
  own.object = Names::nothing;
  own.limits.map = true;
  EXPECT_DEATH(static_cast<void>(offload_table_with({&own, 1})), "names_object");
  own.right = Right::read;
  static_cast<void>(offload_table_with({&own, 1}));
  EXPECT_EQ(Offload{}.right, Right::admin) << "what is forgotten is for administrators";
}

TEST(Registry, TheDocumentHasARowForEachAndNoOthers) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/offloads.md";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty()) << path;
  std::size_t rows = 0;
  for (std::size_t at = text.str().find("\n| "); at != std::string::npos;
       at = text.str().find("\n| ", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, all_offloads().size() + 1);  // and the heading
  for (const Offload& offload : all_offloads()) {
    EXPECT_NE(text.str().find(row_of(offload)), std::string::npos) << row_of(offload);
  }
}

}  // namespace
}  // namespace espalier::offload
