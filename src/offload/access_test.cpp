// SPDX-License-Identifier: Apache-2.0
// Who may ask for what: every offload by every role, and roles for names that begin with a prefix.
#include "offload/access.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "offload/testing/items.hpp"
#include "offload/testing/scheduler_fixture.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class AccessTest : public testing::Test {
 protected:
  SchedulerFixture::Client& connect(Access access) {
    SchedulerFixture::Client& client = node_.connect();
    client.connection->access = std::move(access);
    return client;
  }
  Error ask(SchedulerFixture::Client& client, OffloadId offload, std::uint32_t object = 0,
            std::string_view key = {}, std::string_view payload = {}) {
    const Response response = node_.call(client, request_of(offload, object, ++tag_), key, payload);
    EXPECT_TRUE(response.answers());
    return {response.code(), 0, response.code() == Code::invalid ? 0 : response.detail()};
  }
  std::uint32_t make_map(std::string_view name) {
    return tree::create_map(node_.store(), name, MapOptions{}).value()->id;
  }

  SchedulerFixture node_;
  std::uint32_t tag_ = 0;
};

constexpr Right kRoles[] = {Right::none, Right::read, Right::write, Right::admin};

// What the request says besides does not matter: who may not is refused before it is looked at.
TEST_F(AccessTest, EveryOffloadIsForTheRolesThatHaveItsRight) {
  std::size_t refused = 0;
  for (const Right role : kRoles) {
    SchedulerFixture::Client& client = connect({"someone", role});
    for (const Offload& offload : all_offloads()) {
      SCOPED_TRACE(std::string(name(role)) + " asks for " + std::string(offload.name));
      const Error error = ask(client, offload.id, node_.map(), "k", "12345678");
      if (offload.right <= role) {
        EXPECT_NE(error.code, Code::not_permitted);
        continue;
      }
      EXPECT_EQ(error, (Error{Code::not_permitted, 0, static_cast<std::uint32_t>(offload.right)}));
      ++refused;
    }
    EXPECT_FALSE(client.ended);
  }
  EXPECT_EQ(node_.services().denied.load(), refused);
  EXPECT_GT(refused, all_offloads().size());
}

TEST_F(AccessTest, WhatIsRefusedIsNotDone) {
  SchedulerFixture::Client& writer = connect({"w", Right::write});
  SchedulerFixture::Client& reader = connect({"r", Right::read});
  ASSERT_EQ(ask(writer, OffloadId::put, node_.map(), "k", "old").code, Code::invalid);
  EXPECT_EQ(ask(reader, OffloadId::put, node_.map(), "k", "new").code, Code::not_permitted);
  EXPECT_EQ(ask(reader, OffloadId::erase, node_.map(), "k").code, Code::not_permitted);
  EXPECT_EQ(ask(writer, OffloadId::object_drop, 0, "m").code, Code::not_permitted);
  const Response read = node_.call(reader, request_of(OffloadId::get, node_.map(), ++tag_), "k");
  EXPECT_TRUE(read.found());
  EXPECT_EQ(read.payload, "old");
}

TEST_F(AccessTest, ARoleForAPrefixIsGoodForObjectsOfSuchNames) {
  const std::uint32_t own = make_map("orders/new");
  const std::uint32_t others = make_map("people");
  const Error other_names{Code::not_permitted, 0, 0};
  SchedulerFixture::Client& client = connect({"shop", Right::admin, "orders/"});
  for (int again = 0; again < 2; ++again) {  // the second time it is remembered
    EXPECT_EQ(ask(client, OffloadId::put, own, "k", "v").code, Code::invalid);
    EXPECT_EQ(ask(client, OffloadId::put, others, "k", "v"), other_names);
    EXPECT_EQ(ask(client, OffloadId::scan, others), other_names);
    EXPECT_EQ(ask(client, OffloadId::snapshot_open, others), other_names);
    EXPECT_EQ(ask(client, OffloadId::get, 9999, "k"), (Error{Code::not_found, 0, 9999}));
  }
  EXPECT_EQ(ask(client, OffloadId::map_open, 0, "orders/new").code, Code::invalid);
  EXPECT_EQ(ask(client, OffloadId::map_open, 0, "orders/old").code, Code::not_found);
  EXPECT_EQ(ask(client, OffloadId::map_open, 0, "people"), other_names);
  EXPECT_EQ(ask(client, OffloadId::map_open, 0, "order"), other_names);
  EXPECT_EQ(ask(client, OffloadId::object_drop, 0, "people"), other_names);
  EXPECT_EQ(ask(client, OffloadId::sequence, 0, "s"), other_names);
  EXPECT_NE(ask(client, OffloadId::sequence, 0, "orders/s"), other_names);
  EXPECT_EQ(ask(client, OffloadId::object_drop, 0, "orders/new").code, Code::invalid);
  EXPECT_NE(ask(client, OffloadId::get, own, "k").code, Code::invalid);  // dropped
}

TEST_F(AccessTest, ARoleForAPrefixSeesNothingThatConcernsAll) {
  const std::uint32_t own = make_map("orders/new");
  const Error other_names{Code::not_permitted, 0, 0};
  SchedulerFixture::Client& client = connect({"shop", Right::admin, "orders/"});
  EXPECT_EQ(ask(client, OffloadId::node_stats), other_names);
  EXPECT_EQ(ask(client, OffloadId::one_sided_open, own), other_names);
  EXPECT_EQ(ask(client, OffloadId::index_open, own), other_names);
  EXPECT_EQ(ask(client, OffloadId::one_sided_table), other_names);
  make_map("people");
  const Response list = node_.call(client, request_of(OffloadId::object_list, 0, ++tag_));
  std::vector<std::string> names;
  for (const auto& [name, value] : items_of(list.payload)) names.push_back(name);
  EXPECT_EQ(names, std::vector<std::string>{"orders/new"});
}

// Else a role for a prefix would reach others' objects through the one that was forgotten.
TEST(AccessTable, EveryOffloadThatNamesAnObjectSaysHow) {
  for (const Offload& offload : all_offloads()) {
    SCOPED_TRACE(offload.name);
    const bool by_name = offload.format.find("'s name") != std::string_view::npos;
    const bool by_id = offload.format.find("map: ") != std::string_view::npos;
    EXPECT_FALSE(by_name && by_id);
    if (by_name) {
      EXPECT_EQ(offload.object, Names::by_name);
    }
    if (by_id) {
      EXPECT_NE(offload.object, Names::by_name);
      EXPECT_TRUE(offload.object != Names::nothing || offload.limits.map);
    }
    if (by_name || by_id || offload.limits.map) {
      EXPECT_NE(offload.right, Right::none);
    }
    if (offload.object == Names::nothing && !offload.limits.map) {
      // What a client has got before, or nothing at all.
      constexpr OffloadId kOfItsOwn[] = {OffloadId::noop,           OffloadId::cancel,
                                         OffloadId::snapshot_close, OffloadId::object_list,
                                         OffloadId::lease_renew,    OffloadId::landing_open,
                                         OffloadId::landing_close,  OffloadId::pipeline_drop,
                                         OffloadId::result_open,    OffloadId::result_return};
      EXPECT_NE(std::ranges::find(kOfItsOwn, offload.id), std::end(kOfItsOwn));
    }
  }
}

}  // namespace
}  // namespace espalier::offload
