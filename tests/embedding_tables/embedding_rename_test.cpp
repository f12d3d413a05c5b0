// SPDX-License-Identifier: Apache-2.0
// Embedding tables that are given other names, of this process, of a node, of one whose rows are
// read, and of a node behind a device: handles follow their name.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "catalog/calls.hpp"
#include "channel/objects.hpp"
#include "espalier/embedding_table.hpp"
#include "kinds/embedding/calls.hpp"
#include "tests/embedding_tables/embedding_renames.hpp"

namespace espalier::test {
namespace {

TEST_P(EmbeddingRenames, HandlesFollowTheirName) {
  EmbeddingTable old = make("items", 1);
  EmbeddingTable young = make("items.new", 2);
  ASSERT_EQ(value_of(old), 1);
  ASSERT_EQ(rename("items.new", "items", Displaced::exchanged), Error{});
  EXPECT_EQ(value_of(old), 2);
  EXPECT_EQ(value_of(young), 1);
  EXPECT_EQ(old.name(), "items");
  EXPECT_EQ(value_of(*store_->open_embedding_table("items")), 2);
  ASSERT_TRUE(old.replace(0, std::vector<float>(kWidth, 5)));
  EXPECT_EQ(value_of(old), 5) << "what is written by a name is written there";
  EXPECT_EQ(value_of(young), 1);
  EXPECT_EQ(old.append(std::vector<float>(kWidth, 7)), kRows);
  EXPECT_EQ(old.stats()->rows, kRows + 1u);
  EXPECT_EQ(young.stats()->rows, kRows);
  const std::uint8_t sizes[] = {2};
  const std::uint32_t grouped[] = {0, 3};
  ASSERT_EQ(rename("items", "items.new", Displaced::exchanged), Error{});
  ASSERT_TRUE(young.group({sizes, grouped}));
  EXPECT_EQ(young.stats()->groups, 1u);
  EXPECT_EQ(old.stats()->groups, 0u);
  std::vector<std::uint32_t> ids = {0, 3};
  EXPECT_EQ(old.renumber(ids), 0u);
  EXPECT_NE(young.renumber(ids).value(), 0u);
}

TEST_P(EmbeddingRenames, ATableTakesTheNameOfOneThatIsDropped) {
  EmbeddingTable items = make("items", 1);
  for (int version = 2; version < 6; ++version) {
    EmbeddingTable young = make("items.new", static_cast<float>(version));
    ASSERT_EQ(rename("items.new", "items", Displaced::dropped), Error{});
    EXPECT_EQ(value_of(items), version);
    EXPECT_EQ(value_of(young), 0) << "nothing has that name";
    EXPECT_EQ(store_->open_embedding_table("items.new").error().code, Code::not_found);
  }
  EXPECT_EQ(channel::list(channel(), ObjectKind::embedding)->size(), 1u);
  ASSERT_EQ(rename("items", "other", Displaced::dropped), Error{}) << "there is none";
  EXPECT_EQ(value_of(items), 0);
  EXPECT_EQ(value_of(*store_->open_embedding_table("other")), 5);
}

TEST_P(EmbeddingRenames, ANameThatWasLeftIsFollowedToTheTableThatIsMadeOfIt) {
  EmbeddingTable items = make("items", 1);
  ASSERT_EQ(rename("items", "other"), Error{});
  EXPECT_EQ(value_of(items), 0) << "nothing has the name";
  EmbeddingTable made = make("items", 9);
  EXPECT_EQ(value_of(items), 9);
  EXPECT_EQ(items.append(std::vector<float>(kWidth, 7)), kRows);
  EXPECT_EQ(made.stats()->rows, kRows + 1u);
  EXPECT_EQ(value_of(*store_->open_embedding_table("other")), 1);
  const std::uint32_t ids[] = {0};
  const std::uint32_t first[] = {0};
  EmbeddingTable other = *store_->open_embedding_table("other");
  const TableBags both[] = {{items, {ids, first}}, {other, {ids, first}}};
  const auto found = EmbeddingTable::reduce_tables(Reduction::sum, both);
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_EQ(found->front(), 9);
  EXPECT_EQ(found->back(), 1);
}

TEST_P(EmbeddingRenames, ATableThatWasDroppedLeavesItsNameToNone) {
  EmbeddingTable items = make("items", 1);
  make("a", 2);
  ASSERT_TRUE(store_->drop_embedding_table("items"));
  ASSERT_EQ(rename("a", "b"), Error{}) << "another one's rename says nothing of it";
  EmbeddingTable made = make("items", 9);
  EXPECT_EQ(value_of(items), 0);
  EXPECT_EQ(value_of(made), 9);
}

TEST_P(EmbeddingRenames, WhatIsRefusedChangesNothing) {
  EmbeddingTable items = make("items", 1);
  EmbeddingTable young = make("items.new", 2);
  ASSERT_TRUE(store_->create_map("map"));
  using enum Displaced;
  const auto is = [](Code code, std::uint32_t detail = 0) { return Error{code, 0, detail}; };
  EXPECT_EQ(rename("items.new", "items"), is(Code::already_exists, 6));
  EXPECT_EQ(rename("items.new", "map"), is(Code::already_exists, 1));
  EXPECT_EQ(rename("items.new", "map", exchanged), is(Code::wrong_kind, 1));
  EXPECT_EQ(rename("items.new", "map", Displaced::dropped), is(Code::wrong_kind, 1));
  EXPECT_EQ(rename("map", "items", exchanged), is(Code::wrong_kind, 1));
  EXPECT_EQ(rename("items", "none", exchanged), is(Code::not_found, 1));
  EXPECT_EQ(rename("none", "items", exchanged), is(Code::not_found));
  EXPECT_EQ(rename("items", "items", exchanged), is(Code::invalid_argument));
  EXPECT_EQ(rename("items", ""), is(Code::invalid_argument));
  EXPECT_EQ(rename("items", std::string(256, 'x')), is(Code::invalid_argument));
  EXPECT_EQ(channel::rename(channel(), "map", "map2", ObjectKind::any, refused).error(),
            is(Code::unsupported, 1))
      << "maps keep their names";
  EXPECT_EQ(value_of(items), 1);
  EXPECT_EQ(value_of(young), 2);
}

TEST_P(EmbeddingRenames, OfAnotherTypeItIsFollowedAndOfAnotherDimensionRefused) {
  EmbeddingTable items = make("items", 1);
  make("int8", 2, {kWidth, EmbeddingType::int8});
  make("wide", 3, {128, EmbeddingType::fp32});
  ASSERT_EQ(rename("int8", "items", Displaced::exchanged), Error{});
  EXPECT_EQ(value_of(items), 2);
  ASSERT_TRUE(items.replace(0, std::vector<float>(kWidth, 4)));
  EXPECT_EQ(items.append(std::vector<float>(kWidth, 4)), kRows);
  EXPECT_EQ(value_of(items), 4);
  ASSERT_EQ(rename("wide", "items", Displaced::exchanged), Error{});
  const std::uint32_t ids[] = {0};
  const std::uint32_t first[] = {0};
  EXPECT_EQ(items.reduce(Reduction::sum, {ids, first}).error().error,
            (Error{Code::outdated, 0, 128}));
  ASSERT_EQ(rename("wide", "items", Displaced::exchanged), Error{});
  EXPECT_EQ(value_of(items), 4);
}

TEST_P(EmbeddingRenames, EachOfSeveralTablesIsTheOneThatHasTheName) {
  EmbeddingTable a = make("a", 1);
  EmbeddingTable b = make("b", 2);
  make("c", 3);
  const std::uint32_t ids[] = {0};
  const std::uint32_t first[] = {0};
  const TableBags both[] = {{a, {ids, first}}, {b, {ids, first}}};
  const auto is = [&](float of_a, float of_b) {
    const auto found = EmbeddingTable::reduce_tables(Reduction::sum, both);
    ASSERT_TRUE(found) << message(found.error());
    EXPECT_EQ(found->front(), of_a);
    EXPECT_EQ(found->back(), of_b);
  };
  is(1, 2);
  ASSERT_EQ(rename("a", "b", Displaced::exchanged), Error{});
  is(2, 1);
  ASSERT_EQ(rename("c", "b", Displaced::exchanged), Error{});
  is(2, 3);
  ASSERT_EQ(rename("c", "a", Displaced::dropped), Error{});
  is(1, 3);
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingRenames,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device",
                                           "shm_one_sided"),
                         way_name);

class EmbeddingRenamesOfANode : public EmbeddingRenames {};

TEST_P(EmbeddingRenamesOfANode, HostileRequestsAreRefused) {
  EmbeddingTable items = make("items", 1);
  make("other", 2);
  const auto code_of = [&](const wire::CallMessage& message) {
    const auto answer = channel().ask(message);
    return answer ? Code::invalid : answer.error().error.code;
  };
  const auto code = [&](const object_calls::Rename& asked) {
    const wire::RequestMessage<object_calls::Rename> message(asked);
    return code_of(message.get());
  };
  object_calls::Rename good =
      object_calls::rename("items", "other", ObjectKind::embedding, Displaced::exchanged);
  auto bad = good;
  bad.how.displaced = 3;
  EXPECT_EQ(code(bad), Code::invalid_argument);
  bad = good;
  bad.how.reserved[6] = 1;
  EXPECT_EQ(code(bad), Code::invalid_argument);
  bad = good;
  bad.kind = 256;
  EXPECT_EQ(code(bad), Code::invalid_argument);
  bad = good;
  bad.kind = 255;
  EXPECT_EQ(code(bad), Code::wrong_kind);
  bad = good;
  bad.to = {};
  EXPECT_EQ(code(bad), Code::invalid_argument);
  const std::string long_name(256, 'x');
  bad = good;
  bad.to = long_name;
  EXPECT_EQ(code(bad), Code::invalid_argument);
  bad = good;
  bad.name = {};
  EXPECT_NE(code(bad), Code::invalid);
  const wire::RequestMessage<object_calls::Rename> whole(good);
  wire::CallMessage cut = whole.get();
  cut.more_payload = {};
  for (std::size_t bytes = 0; bytes <= cut.payload.size(); ++bytes) {
    wire::CallMessage shorter = cut;
    shorter.payload = cut.payload.substr(0, bytes);
    EXPECT_EQ(code_of(shorter), Code::invalid_argument) << bytes;
  }
  EXPECT_EQ(value_of(items), 1);
  ASSERT_EQ(code(good), Code::invalid);
  EXPECT_EQ(value_of(items), 2);
}

// Who says how many renames it knows of is not answered by a table that was renamed since.
TEST_P(EmbeddingRenamesOfANode, ARequestByAnOldNameIsRefused) {
  make("items", 1);
  make("other", 2);
  const auto opened = channel::ask(channel(), embedding_calls::Open{"items"});
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->since(), 0u);
  ASSERT_EQ(rename("items", "other", Displaced::exchanged), Error{});
  const auto code_of = [&](const auto& request) {
    const auto answer = channel::ask(channel(), request);
    return answer ? Code::invalid : answer.error().code;
  };
  embedding_calls::Info info{opened->id, embedding_calls::named_since(opened->since())};
  EXPECT_EQ(code_of(info), Code::not_found);
  info.named = 0;
  EXPECT_EQ(code_of(info), Code::invalid) << "one that says nothing of names";
  const auto again = channel::ask(channel(), embedding_calls::Open{"other"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, opened->id);
  EXPECT_EQ(again->since(), 1u);
  EXPECT_EQ(again->own(), 1u);
  info.named = embedding_calls::named_since(again->since());
  EXPECT_EQ(code_of(info), Code::invalid);
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingRenamesOfANode, ::testing::Values("unix", "device"),
                         way_name);

}  // namespace
}  // namespace espalier::test
