// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "engine/access.hpp"
#include "kinds/map/offload/walk_call.hpp"

namespace espalier::offload {
namespace {

std::string_view text_of(Right right) { return right == Right::none ? "none" : name(right); }

std::string_view text_of(wire::AtDevice at) {
  switch (at) {
    case wire::AtDevice::refused: return "no";
    case wire::AtDevice::here: return "itself";
    case wire::AtDevice::walked: return "walks";
    case wire::AtDevice::relayed: return "relays";
    case wire::AtDevice::by_kind: return "helps";
  }
  return "";
}

std::string row_of(const Offload& offload) {
  std::ostringstream row;
  row << "| " << static_cast<int>(offload.id) << " | `" << offload.name << "` | "
      << text_of(offload.right) << " | " << text_of(offload.at_device) << " | "
      << offload.request_format() << " | " << offload.summary << " |\n";
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
    EXPECT_FALSE(offload.request_format().empty()) << offload.name;
    EXPECT_FALSE(offload.summary.empty()) << offload.name;
  }
  EXPECT_EQ(offload_table()[0], nullptr);
  EXPECT_EQ(offload_table()[255], nullptr);
}

OffloadTable with(const Offload& own) {
  const std::span<const Offload> calls(&own, 1);
  const Kind kind{.name = "own", .calls = {&calls, 1}};
  return offload_table_with({&kind, 1});
}

TEST(Registry, OffloadsOfAProgramStandBesideTheOthers) {
  Offload own = all_offloads().front();
  own.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 1);
  const OffloadTable table = with(own);
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
  EXPECT_DEATH(static_cast<void>(with(own)), "kOwnOffloadIds");
}

// Without a right a role for a prefix would access the objects of others.
TEST(RegistryDeathTest, WhatNamesAnObjectTakesARight) {
  Offload own = all_offloads().front();
  own.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
  ASSERT_EQ(own.right, Right::none);
  static_cast<void>(with(own));
  for (const Names names : {Names::by_id, Names::by_name, Names::all}) {
    own.object = names;
    EXPECT_DEATH(static_cast<void>(with(own)), "names_object");
  }
  own.object = Names::nothing;
  own.limits.map = true;
  EXPECT_DEATH(static_cast<void>(with(own)), "names_object");
  own.right = Right::read;
  EXPECT_DEATH(static_cast<void>(with(own)), "executor");
  own.executor = &kMapWalks;
  static_cast<void>(with(own));
  EXPECT_EQ(Offload{}.right, Right::admin) << "what is forgotten is for administrators";
}

// After a change of a row, copy the table that this prints into the document.
TEST(Registry, TheDocumentsTableIsThatOfTheRows) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/offloads.md";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::size_t begin = document.find("\n| number | name |");
  ASSERT_NE(begin, std::string::npos) << path;
  const std::size_t end = document.find("\n\n", begin);
  std::string table =
      "| number | name | right | device | request | what it does and answers |\n"
      "|---|---|---|---|---|---|\n";
  for (const Offload& offload : all_offloads()) table += row_of(offload);
  EXPECT_EQ(document.substr(begin + 1, end - begin), table);
}

}  // namespace
}  // namespace espalier::offload
