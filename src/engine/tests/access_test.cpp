// SPDX-License-Identifier: Apache-2.0
// Access control: every offload for every role, and roles restricted to names with a prefix.
#include "engine/access.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "engine/call.hpp"
#include "engine/principal.hpp"
#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "wire/samples.hpp"

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

/// Answers the name of the account that the request is charged to.
Next whose(Call& call) {
  const PrincipalRef account = call.account();
  return call.answer({}, {account->name});
}
const Offload kWhose{{.id = static_cast<OffloadId>(wire::kOwnOffloadIds),
                      .name = "whose",
                      .format = "nothing",
                      .summary = "answers whose account it is on",
                      .right = Right::none,
                      .limits = {.payload_bytes_max = 4096}},
                     {.step = whose}};

/// A routine offload of administrators.
const Offload kRoutine{
    {.id = static_cast<OffloadId>(wire::kOwnOffloadIds),
     .name = "routine",
     .format = "argument: 1 to fail",
     .summary = "does nothing, or fails",
     .right = Right::admin,
     .limits = {},
     .routine = true},
    {.step = [](Call& call) {
      return call.argument() == 0 ? call.answer({}) : call.fail({Code::not_found, 0, 0});
    }}};

constexpr Right kRoles[] = {Right::none,  Right::read, Right::write,
                            Right::admin, Right::peer, Right::replica};

// Administrators use no regions, peers do nothing that concerns all clients, and replicas nothing
// except the calls between members of a chain.
bool is_for(Right needed, Right role) {
  if (role == Right::replica) return needed == Right::none;
  if (needed == Right::peer || role == Right::peer) return needed == role || needed <= Right::write;
  return needed <= role;
}

// The rest of the request does not matter: permission is checked first.
TEST_F(AccessTest, EveryOffloadIsForTheRolesThatHaveItsRight) {
  std::size_t refused = 0;
  for (const Right role : kRoles) {
    SchedulerFixture::Client& client = connect({"someone", role});
    for (const Offload& offload : all_offloads()) {
      SCOPED_TRACE(std::string(name(role)) + " asks for " + std::string(offload.name));
      const Error error = ask(client, offload.id, node_.map(), "k", "12345678");
      if (is_for(offload.right, role)) {
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
  for (int again = 0; again < 2; ++again) {  // the second time the result is cached
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

std::string renaming(Displaced displaced, std::string_view to) {
  const object_calls::Renaming how{static_cast<std::uint8_t>(displaced), {}};
  return std::string(base::bytes_of(how)) + std::string(to);
}

TEST_F(AccessTest, ARoleForAPrefixRenamesNothingToNamesOfOthersNorFromThese) {
  const auto make = [this](std::string_view name) {
    return embedding::create_embedding_table(node_.store().catalog, node_.store().pool, name,
                                             embedding::shape_of({.dimension = 8}))
        .value()
        ->id();
  };
  const std::uint32_t own = make("orders/new");
  make("orders/old");
  const std::uint32_t others = make("people");
  const Error other_names{Code::not_permitted, 0, 0};
  SchedulerFixture::Client& client = connect({"shop", Right::admin, "orders/"});
  const auto rename = [&](std::string_view name, std::string_view to, Displaced displaced) {
    return ask(client, OffloadId::object_rename, 0, name, renaming(displaced, to));
  };
  AuditLog& audit = node_.services().audit;
  audit.open();
  for (const Displaced displaced : {Displaced::refused, Displaced::exchanged, Displaced::dropped}) {
    EXPECT_EQ(rename("orders/new", "people", displaced), other_names);
    EXPECT_EQ(rename("orders/new", "nobody", displaced), other_names);
    EXPECT_EQ(rename("people", "orders/new", displaced), other_names);
  }
  const auto refusal = audit.take();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->object, "orders/new");
  EXPECT_EQ(refusal->to, "people");
  EXPECT_EQ(ask(client, OffloadId::object_rename, 0, "orders/new", "short").code,
            Code::not_permitted);
  EXPECT_EQ(rename("orders/new", "orders/old", Displaced::exchanged).code, Code::invalid);
  EXPECT_EQ(ask(client, OffloadId::embedding_info, own).code, Code::invalid);
  EXPECT_EQ(ask(client, OffloadId::embedding_info, others), other_names);
  // The permission follows the object, not its former name.
  SchedulerFixture::Client& admin = connect({"admin", Right::admin});
  const auto let = [&](std::string_view name, std::string_view to) {
    EXPECT_EQ(ask(admin, OffloadId::object_rename, 0, name, renaming(Displaced::exchanged, to)),
              Error{});
  };
  let("orders/old", "people");
  EXPECT_EQ(ask(client, OffloadId::embedding_info, own), other_names);
  EXPECT_EQ(ask(client, OffloadId::embedding_info, others), Error{});
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

// For all objects or for one by name: objects of other prefixes do not exist for the role.
TEST_F(AccessTest, ARoleForAPrefixSeesTheSamplesOfItsOwnObjects) {
  make_map("orders/new");
  make_map("people");
  wire::SamplesWanted wanted{};
  wanted.objects_max = wire::kSampledObjectsMax;
  const auto names_for = [&](SchedulerFixture::Client& client, std::string_view name) {
    const Response answer = node_.call(client, request_of(OffloadId::object_samples, 0, ++tag_),
                                       name, base::bytes_of(wanted));
    EXPECT_EQ(answer.code(), Code::invalid);
    std::vector<std::string> names;
    const auto objects = wire::read_sampled_objects(answer.payload);
    if (!objects) return std::vector<std::string>{"none"};
    for (const wire::SampledObject& object : *objects) names.push_back(object.name);
    EXPECT_EQ(answer.header.version, names.size());
    std::ranges::sort(names);
    return names;
  };
  using Names = std::vector<std::string>;
  SchedulerFixture::Client& shop = connect({"shop", Right::read, "orders/"});
  EXPECT_EQ(names_for(shop, ""), Names{"orders/new"});
  EXPECT_EQ(names_for(shop, "orders/new"), Names{"orders/new"});
  EXPECT_EQ(names_for(shop, "people"), Names{});
  EXPECT_EQ(names_for(shop, "orders/old"), Names{});
  SchedulerFixture::Client& all = connect({"all", Right::read});
  EXPECT_EQ(names_for(all, ""), (Names{"m", "orders/new", "people"}));
  EXPECT_EQ(names_for(all, "people"), Names{"people"});
  // A device sends requests on behalf of its clients.
  SchedulerFixture::Client& device = connect({"device", Right::admin});
  wire::RequestHeader header = request_of(OffloadId::object_samples, 0, ++tag_);
  header.ring |= wire::kOnBehalf;
  const std::string payload =
      std::string(base::bytes_of(wanted)) + bytes_of({Right::read, "shop", "orders/"});
  const Response relayed = node_.call(device, header, {}, payload);
  ASSERT_EQ(relayed.code(), Code::invalid);
  const auto objects = wire::read_sampled_objects(relayed.payload);
  ASSERT_TRUE(objects && objects->size() == 1);
  EXPECT_EQ(objects->front().name, "orders/new");
}

// Names of secrets, users and addresses are for administrators only.
TEST_F(AccessTest, OnlyAnAdministratorLearnsTheNamesOfPrincipals) {
  node_.services().numbers.set([](NumbersSource::For whom) {
    return std::string(whom == NumbersSource::For::administrators ? "all names" : "numbers");
  });
  const auto numbers_for = [&](Access access) {
    SchedulerFixture::Client& client = connect(std::move(access));
    return std::string(node_.call(client, request_of(OffloadId::node_stats, 0, ++tag_)).payload);
  };
  EXPECT_EQ(numbers_for({"a", Right::admin}), "all names");
  EXPECT_EQ(numbers_for({"w", Right::write}), "numbers");
  EXPECT_EQ(numbers_for({"r", Right::read}), "numbers");
  node_.services().numbers.set(nullptr);
}

TEST(AccessAccounts, AreOfThePrincipalThatAsksOrOnWhoseBehalfItIs) {
  SchedulerFixture node({}, std::uint64_t{64} << 20, {&kWhose, 1});
  const auto ask = [&](SchedulerFixture::Client& client, const PrincipalView* on_behalf) {
    wire::RequestHeader header = request_of(kWhose.id, 0, 1);
    if (on_behalf != nullptr) header.ring |= wire::kOnBehalf;
    return node.call(client, header, {}, on_behalf != nullptr ? bytes_of(*on_behalf) : "").payload;
  };
  SchedulerFixture::Client& user = node.connect(kSmallRings, 7);
  EXPECT_EQ(ask(user, nullptr), "user 7");
  const PrincipalView alice{Right::read, "alice", ""};
  const PrincipalView process{Right::read, "user 8", ""};
  const PrincipalView anybody{Right::read, "anybody", ""};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ask(user, &alice), "secret alice");
    EXPECT_EQ(ask(user, &process), "user 8");
    EXPECT_EQ(ask(user, &anybody), "user 7") << "of those the device knows no name of";
  }
  EXPECT_EQ(node.services().principals.size(), 3u);
}

// A relayed request is checked with its principal's role, and a device gains no right beyond its
// own.
TEST_F(AccessTest, WhatIsRelayedIsForTheRoleOfThePrincipal) {
  const std::uint32_t own = make_map("orders/new");
  const std::uint32_t others = make_map("people");
  const auto on_behalf = [&](SchedulerFixture::Client& client, const PrincipalView& principal,
                             OffloadId offload, std::uint32_t object, std::string_view key = {},
                             std::string payload = {}) {
    wire::RequestHeader header = request_of(offload, object, ++tag_);
    header.ring |= wire::kOnBehalf;
    return node_.call(client, header, key, payload + bytes_of(principal));
  };
  const auto error_of = [](const Response& response) -> Error {
    return {response.code(), 0, response.code() == Code::invalid ? 0 : response.detail()};
  };
  SchedulerFixture::Client& device = connect({"device", Right::admin});
  const PrincipalView shop{Right::write, "shop", "orders/"};
  const PrincipalView reader{Right::read, "reader", ""};
  const Error other_names{Code::not_permitted, 0, 0};
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::put, own, "k", "v")).code, Code::invalid);
  const Response read = on_behalf(device, reader, OffloadId::get, own, "k");
  EXPECT_EQ(read.payload, "v") << "the principal is no part of the payload";
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::put, others, "k", "v")), other_names);
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::get, others, "k")), other_names);
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::map_open, 0, "people")), other_names);
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::object_drop, 0, "orders/new")),
            (Error{Code::not_permitted, 0, 3}));
  EXPECT_EQ(error_of(on_behalf(device, reader, OffloadId::put, own, "k", "w")),
            (Error{Code::not_permitted, 0, 2}));
  EXPECT_EQ(error_of(on_behalf(device, shop, OffloadId::node_stats, 0)), other_names);
  const Response list = on_behalf(device, shop, OffloadId::object_list, 0);
  std::vector<std::string> names;
  for (const auto& [name, value] : items_of(list.payload)) names.push_back(name);
  EXPECT_EQ(names, std::vector<std::string>{"orders/new"});

  // Only a client with the role of peers relays that role; another client relays it as a writer's.
  const PrincipalView peer{Right::peer, "peer", ""};
  const Error takes_peer{Code::not_permitted, 0, 8};
  EXPECT_EQ(error_of(on_behalf(device, peer, OffloadId::put, own, "k", "v")).code, Code::invalid);
  EXPECT_EQ(error_of(on_behalf(device, peer, OffloadId::region_open, 0, "r")), takes_peer);
  SchedulerFixture::Client& all = connect(Access::everything());
  EXPECT_EQ(error_of(on_behalf(all, peer, OffloadId::region_open, 0, "r")).code, Code::not_found);
  EXPECT_EQ(error_of(on_behalf(all, shop, OffloadId::region_open, 0, "orders/r")), takes_peer);

  // The same for a replica's role, which else becomes none.
  const PrincipalView replica{Right::replica, "replica", ""};
  for (SchedulerFixture::Client* const relay : {&device, &all}) {
    EXPECT_EQ(error_of(on_behalf(*relay, replica, OffloadId::get, own, "k")),
              (Error{Code::not_permitted, 0, 1}));
    EXPECT_EQ(error_of(on_behalf(*relay, replica, OffloadId::noop, 0)), Error{});
  }

  // Only an administrator of all objects may act on behalf of others.
  const PrincipalView admin{Right::admin, "admin", ""};
  SchedulerFixture::Client& writer = connect({"w", Right::write});
  SchedulerFixture::Client& of_names = connect({"n", Right::admin, "orders/"});
  for (SchedulerFixture::Client* const client : {&writer, &of_names}) {
    EXPECT_EQ(error_of(on_behalf(*client, admin, OffloadId::noop, 0)),
              (Error{Code::not_permitted, 0, 3}));
    EXPECT_EQ(error_of(on_behalf(*client, reader, OffloadId::get, own, "k")),
              (Error{Code::not_permitted, 0, 3}));
  }
  // An invalid principal, or one that overlaps the key.
  wire::RequestHeader header = request_of(OffloadId::get, own, ++tag_);
  header.ring |= wire::kOnBehalf;
  EXPECT_EQ(node_.call(device, header, "k", "").code(), Code::invalid_argument);
  EXPECT_EQ(node_.call(device, header, bytes_of(reader), "").code(), Code::invalid_argument);
  EXPECT_EQ(node_.call(device, header, "k", std::string(20, '\x14')).code(),
            Code::invalid_argument);
  EXPECT_FALSE(device.ended);
}

// A program's own offload whose row has no right, on a map by its number.
TEST(AccessOfOwnOffloads, ARoleForAPrefixReachesNoOtherMap) {
  const Offload own{{.id = static_cast<OffloadId>(wire::kOwnOffloadIds),
                     .name = "own",
                     .format = "nothing",
                     .summary = "answers",
                     .limits = {.map = true}},
                    {.step = [](Call& call) { return call.answer({}); }, .executor = &kMapWalks}};
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  const auto make_map = [&](std::string_view name) {
    return tree::create_map(node.store(), name, MapOptions{}).value()->id;
  };
  const std::uint32_t orders = make_map("orders/new");
  const std::uint32_t people = make_map("people");
  const auto ask = [&](Access access, std::uint32_t map) -> Error {
    SchedulerFixture::Client& client = node.connect();
    client.connection->access = std::move(access);
    const Response response = node.call(client, request_of(own.id, map, 1));
    return {response.code(), 0, response.code() == Code::invalid ? 0 : response.detail()};
  };
  const Error takes_admin{Code::not_permitted, 0, 3};
  const Error other_names{Code::not_permitted, 0, 0};
  EXPECT_EQ(ask({"shop", Right::admin, "orders/"}, orders).code, Code::invalid);
  EXPECT_EQ(ask({"shop", Right::admin, "orders/"}, people), other_names);
  for (const std::uint32_t map : {orders, people}) {
    EXPECT_EQ(ask({"clerk", Right::read, "orders/"}, map), takes_admin);
    EXPECT_EQ(ask({"w", Right::write}, map), takes_admin);
    EXPECT_EQ(ask({"admin", Right::admin}, map).code, Code::invalid);
  }
}

TEST_F(AccessTest, ADeviceChecksRolesAndLeavesNumbersToItsHost) {
  Access shop("shop", Right::write, "orders/");
  const auto denied = [&](OffloadId id, std::string_view key) {
    return shop.denied_at_device(*find_offload(static_cast<std::uint8_t>(id)), key);
  };
  EXPECT_EQ(denied(OffloadId::object_drop, "orders/x"), (Error{Code::not_permitted, 0, 3}));
  EXPECT_EQ(denied(OffloadId::map_open, "people"), (Error{Code::not_permitted, 0, 0}));
  EXPECT_EQ(denied(OffloadId::node_stats, ""), (Error{Code::not_permitted, 0, 0}));
  EXPECT_EQ(denied(OffloadId::map_open, "orders/x"), std::nullopt);
  EXPECT_EQ(denied(OffloadId::get, "k"), std::nullopt);
  EXPECT_FALSE(shop.knows_that_it_may_use(7));
  shop.remember(7);
  EXPECT_TRUE(shop.knows_that_it_may_use(7));
  EXPECT_FALSE(shop.knows_that_it_may_use(8));
  EXPECT_TRUE(Access("all", Right::read).knows_that_it_may_use(8));
}

/// The acts of all present records, except reports of lost records.
std::vector<std::string> acts_of(AuditLog& audit) {
  std::vector<std::string> acts;
  while (const auto record = audit.take()) {
    if (!record->act.empty()) acts.push_back(record->act);
  }
  return acts;
}

TEST(AccessAudit, WhatIsRoutineHasALineOnlyWhereItFails) {
  SchedulerFixture node({}, std::uint64_t{64} << 20, {&kRoutine, 1});
  AuditLog& audit = node.services().audit;
  audit.open();
  SchedulerFixture::Client& client = node.connect();
  wire::RequestHeader header = request_of(kRoutine.id, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(node.call(client, header).code(), Code::invalid);
  EXPECT_EQ(acts_of(audit), std::vector<std::string>{});
  header.argument = 1;
  EXPECT_EQ(node.call(client, header).code(), Code::not_found);
  EXPECT_EQ(acts_of(audit), std::vector<std::string>{"routine"});
  EXPECT_EQ(node.call(client, request_of(OffloadId::object_drop, 0), "m").code(), Code::invalid);
  EXPECT_EQ(acts_of(audit), std::vector<std::string>{"object_drop"}) << "an act of any other kind";
}

// Of switches the log has which controller begins to fill their tables, not each generation.
TEST(AccessAudit, AGenerationOfTablesIsRoutineAndNothingElseIs) {
  for (const Offload& offload : all_offloads()) {
    EXPECT_EQ(offload.routine, offload.id == OffloadId::index_generation) << offload.name;
  }
}

// Each principal has a rate of its own over all its connections, direct or through a device. Each
// second that this test takes allows one more record.
TEST_F(AccessTest, RefusalsAreLimitedForThePrincipalThatAsks) {
  AuditLog& audit = node_.services().audit;
  audit.open();
  const auto reader = [&](std::uint32_t user) -> SchedulerFixture::Client& {
    SchedulerFixture::Client& client = node_.connect(kSmallRings, user);
    client.connection->access = Access("user " + std::to_string(user), Right::read);
    return client;
  };
  const auto refused = [&](SchedulerFixture::Client& client, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      EXPECT_EQ(ask(client, OffloadId::put, node_.map(), "k", "v").code, Code::not_permitted);
    }
  };
  refused(reader(7), AuditLog::kBurst);
  EXPECT_EQ(acts_of(audit).size(), AuditLog::kBurst);
  refused(reader(7), 3);
  EXPECT_LT(acts_of(audit).size(), 3u) << "by another connection it is who it is";
  refused(reader(8), 3);
  EXPECT_EQ(acts_of(audit).size(), 3u);
  SchedulerFixture::Client& device = node_.connect(kSmallRings, 9);
  const auto relayed = [&](std::string_view name, std::size_t times) {
    const std::string principal = bytes_of({Right::read, name, ""});
    wire::RequestHeader header = request_of(OffloadId::object_drop, 0, ++tag_);
    header.ring |= wire::kOnBehalf;
    for (std::size_t i = 0; i < times; ++i) {
      EXPECT_EQ(node_.call(device, header, "m", principal).code(), Code::not_permitted);
    }
  };
  relayed("user 7", 3);
  EXPECT_LT(acts_of(audit).size(), 3u) << "it has had its part at the host";
  relayed("alice", AuditLog::kBurst + 3);
  EXPECT_LT(acts_of(audit).size(), AuditLog::kBurst + 3);
  relayed("bob", 3);
  EXPECT_EQ(acts_of(audit).size(), 3u);
}

// Every call for every role: the row alone decides.
TEST(AccessTable, EachRoleMayWhatTheRowsSay) {
  SchedulerFixture node;
  std::uint32_t tag = 0;
  for (const Right role : kRoles) {
    SchedulerFixture::Client& client = node.connect();
    client.connection->access = Access("someone", role);
    for (const Offload& offload : all_offloads()) {
      SCOPED_TRACE(std::string(offload.name) + " as " + std::string(name(role)));
      const Response answer = node.call(client, request_of(offload.id, 0, ++tag));
      const bool may = is_for(offload.right, role);
      EXPECT_EQ(answer.code() == Code::not_permitted, !may);
      if (!may) {
        EXPECT_EQ(answer.detail(), static_cast<std::uint32_t>(offload.right));
      }
    }
  }
  EXPECT_EQ(node.catalog().names().size(), 1u) << "what was asked for was nothing";
}

// The node's own user could read its memory with a debugger, and a node without secrets does not
// authenticate clients.
TEST(AccessTable, WhoMayDoAllMayDoWhatPeersMay) {
  SchedulerFixture node;
  SchedulerFixture::Client& client = node.connect();
  client.connection->access = Access::everything();
  EXPECT_EQ(client.connection->access.role(), Right::admin);
  std::uint32_t tag = 0;
  for (const Offload& offload : all_offloads()) {
    SCOPED_TRACE(offload.name);
    const Response answer = node.call(client, request_of(offload.id, 0, ++tag));
    EXPECT_NE(answer.code(), Code::not_permitted);
  }
}

// The same for a role restricted to some names: it may access these, and no others.
TEST(AccessTable, ARoleForSomeNamesReachesNoOthers) {
  SchedulerFixture node;
  SchedulerFixture::Client& client = node.connect();
  client.connection->access = Access("someone", Right::admin, "own/");
  std::uint32_t tag = 0;
  for (const Offload& offload : all_offloads()) {
    SCOPED_TRACE(offload.name);
    const bool on_map = offload.limits.map && offload.object == Names::nothing;
    const bool names = on_map || offload.object != Names::nothing;
    const bool by_name = offload.object == Names::by_name;
    const auto header = request_of(offload.id, node.map(), ++tag);
    const Response answer = node.call(client, header, by_name ? "m" : "");
    EXPECT_EQ(answer.code() == Code::not_permitted, names);
  }
}

// A missing declaration would let a role for a prefix access others' objects.
TEST(AccessTable, EveryOffloadThatNamesAnObjectSaysHow) {
  for (const Offload& offload : all_offloads()) {
    SCOPED_TRACE(offload.name);
    const std::string format = offload.request_format();
    const bool by_name = format.find("'s name") != std::string_view::npos;
    const bool by_id = format.find("map: ") != std::string_view::npos;
    EXPECT_FALSE(by_name && by_id);
    if (by_name) {
      EXPECT_EQ(offload.object, Names::by_name);
    }
    if (by_id) {
      EXPECT_NE(offload.object, Names::by_name);
      EXPECT_TRUE(offload.object != Names::nothing || offload.limits.map);
    }
    EXPECT_EQ(format.find("its new name") != std::string_view::npos, offload.second_name != 0);
    if (by_name || by_id || offload.limits.map) {
      EXPECT_NE(offload.right, Right::none);
    }
    if (offload.object == Names::nothing && !offload.limits.map) {
      // Offloads on what the client opened before, or on nothing.
      constexpr OffloadId kOfItsOwn[] = {OffloadId::noop,
                                         OffloadId::cancel,
                                         OffloadId::await_durable,
                                         OffloadId::datagram_open,  // each get is checked
                                         OffloadId::snapshot_close,
                                         OffloadId::object_list,
                                         OffloadId::lease_renew,
                                         OffloadId::landing_open,
                                         OffloadId::landing_close,
                                         OffloadId::pipeline_drop,
                                         OffloadId::result_open,
                                         OffloadId::result_return,
                                         OffloadId::object_samples,
                                         OffloadId::transact_once,
                                         OffloadId::transaction_client,
                                         OffloadId::transact};  // the handler checks each name
      EXPECT_NE(std::ranges::find(kOfItsOwn, offload.id), std::end(kOfItsOwn));
    }
  }
}

}  // namespace
}  // namespace espalier::offload
