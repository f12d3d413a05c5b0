// SPDX-License-Identifier: Apache-2.0
#include "tests/support/role_matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/transaction_calls.hpp"
#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/thread_rings.hpp"
#include "espalier/map.hpp"
#include "kinds/embedding/format.hpp"
#include "kinds/embedding/model/model_format.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/region/format.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/schema.hpp"
#include "wire/samples.hpp"
#include "wire/sequencer.hpp"

namespace espalier::test::roles {
namespace {

std::string number(std::uint64_t value) { return std::string(base::bytes_of(value)); }
std::string epoch(std::uint32_t value) { return std::string(base::bytes_of(value)); }

/// What the tables of this test have, and count(*) of it.
table::Schema schema() { return *table::Schema::parse("id i64 not null"); }
std::string schema_bytes() {
  const table::Schema made = schema();
  std::string bytes(made.encoded_bytes(), '\0');
  made.encode(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}
std::string pipeline() {
  table::PipelineBuilder builder;
  builder.group_by({}, std::vector<table::PipelineBuilder::AggregateOf>{
                           {wire::Aggregate::count_rows, wire::kNoExpression}});
  const auto bytes = *builder.finish();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// Writes `value` if there is an item.
std::string comparison(std::string_view value) {
  wire::Comparison made{};
  made.kind = static_cast<std::uint8_t>(ConditionKind::present);
  return std::string(base::bytes_of(made)) + std::string(value);
}
std::string batch_of_one(std::string_view key, std::string_view value) {
  wire::BatchEntry entry{};
  entry.kind = static_cast<std::uint8_t>(wire::BatchKind::put);
  entry.key_bytes = static_cast<std::uint16_t>(key.size());
  entry.value_bytes = static_cast<std::uint32_t>(value.size());
  return std::string(base::bytes_of(entry)) + std::string(key) + std::string(value);
}
std::string samples_wanted() {
  return std::string(base::bytes_of(wire::SamplesWanted{256, 0, 0, 0}));
}

std::string hash_shape() { return std::string(base::bytes_of(hash::HashShape{1, 1, 0, 0, 0})); }

/// The first of two shards; the other one is not used.
std::string shard_map() {
  wire::ShardMap map;
  map.uid = 7;
  map.shards = {{"", "unix:/here"}, {"m", "unix:/there"}};
  return wire::bytes_of(map);
}

std::vector<Row> hash_rows() {
  using enum Right;
  using enum Then;
  return {
      {OffloadId::hash_create, admin, Names::by_name, done, On::nothing, "made_h", hash_shape()},
      {OffloadId::hash_open, read, Names::by_name, done, On::nothing, "h"},
      {OffloadId::hash_stats, read, Names::by_id, done, On::hash},
      {OffloadId::hash_get, read, Names::by_id, done, On::hash, "k"},
      {OffloadId::hash_put, write, Names::by_id, done, On::hash, "k", "v"},
      {OffloadId::hash_insert, write, Names::by_id, done, On::hash, "i", "v"},
      {OffloadId::hash_update, write, Names::by_id, done, On::hash, "k", "w"},
      {OffloadId::hash_compare_and_set, write, Names::by_id, done, On::hash, "k", comparison("x")},
      {OffloadId::hash_add, write, Names::by_id, done, On::hash, "n", number(1)},
      {OffloadId::hash_erase, write, Names::by_id, done, On::hash, "i"},
      {OffloadId::hash_walk, read, Names::by_id, done, On::hash},
      {OffloadId::one_sided_hash, read, Names::all, by_reads, On::hash},
  };
}

std::vector<Row> region_rows() {
  using enum Right;
  using enum Then;
  const std::string range(base::bytes_of(region::RegionRange{0, 8, 0}));
  const std::string swap(base::bytes_of(region::RegionSwap{8, 0, 0}));
  return {
      {OffloadId::region_create, admin, Names::by_name, done, On::nothing, "made_r", number(64)},
      {OffloadId::region_open, peer, Names::by_name, by_node, On::nothing, "r"},
      {OffloadId::region_read, peer, Names::by_id, by_node, On::region, "", range},
      {OffloadId::region_write, peer, Names::by_id, by_node, On::region, "", number(0) + "bytes"},
      {OffloadId::region_fetch_add, peer, Names::by_id, by_node, On::region, "",
       number(16) + number(1)},
      {OffloadId::region_compare_swap, peer, Names::by_id, by_node, On::region, "", swap},
      {OffloadId::one_sided_region, peer, Names::by_id, by_fabric, On::region},
  };
}

std::vector<Row> embedding_rows() {
  using enum Right;
  using enum Then;
  const std::string shape(base::bytes_of(embedding::EmbeddingShape{8, 1, {}}));
  const std::string row(32, '\x3f');
  const std::string bag =
      std::string(base::bytes_of(embedding::ReduceShape{1, {}, 0, 1, 1, 0, 0})) +
      std::string(8, '\0');
  const std::string one_table =
      std::string(base::bytes_of(embedding::TablesShape{1, {}, 1})) +
      std::string(base::bytes_of(embedding::TableShape{0, 0, 1, 1, 0, 0})) + std::string(8, '\0');
  return {
      {OffloadId::embedding_create, admin, Names::by_name, done, On::nothing, "made_e", shape},
      {OffloadId::embedding_open, read, Names::by_name, done, On::nothing, "e"},
      {OffloadId::embedding_info, read, Names::by_id, done, On::embedding},
      {OffloadId::embedding_append, write, Names::by_id, done, On::embedding, "", row},
      {OffloadId::embedding_replace, write, Names::by_id, done, On::embedding, "", number(0) + row},
      {OffloadId::embedding_reduce, read, Names::by_id, done, On::embedding, "", bag},
      {OffloadId::embedding_reduce_tables, read, Names::by_id, done, On::embedding, "", one_table},
      {OffloadId::embedding_group, admin, Names::by_id, done, On::embedding, "", number(0)},
      {OffloadId::embedding_renumber, read, Names::by_id, done, On::embedding, "",
       std::string(4, '\0')},
      {OffloadId::one_sided_embedding, read, Names::all, by_reads, On::embedding},
      {OffloadId::object_rename, admin, Names::by_name, done, On::nothing, "made_e",
       number(2) + "renamed_e", 0, Says::prefixed},
  };
}

std::vector<Row> model_rows() {
  using enum Right;
  using enum Then;
  const std::string query =
      std::string(base::bytes_of(embedding::InferShape{0, 1})) + "1 1 1 1 1 | 0 | 0\n";
  return {
      {OffloadId::model_create, admin, Names::by_name, other, On::nothing, "made_g", "no model"},
      {OffloadId::model_open, read, Names::by_name, done, On::nothing, "g"},
      {OffloadId::model_infer, read, Names::by_id, done, On::model, "", query},
  };
}

std::vector<Row> transaction_rows() {
  using enum Right;
  using enum Then;
  const std::string asked(26, '\0');
  const std::string numbers(base::bytes_of(object_calls::RequestNumbers{1, 1, 0}));
  return {
      {OffloadId::transact, write, Names::nothing, other, On::nothing, "", asked, 1},
      {OffloadId::transaction_client, write, Names::nothing, done, On::nothing, "", number(0)},
      {OffloadId::transact_once, write, Names::nothing, other, On::nothing, "", numbers + asked, 1},
  };
}

std::vector<Row> session_rows() {
  using enum Right;
  using enum Then;
  return {
      {OffloadId::noop, none, Names::nothing, done},
      {OffloadId::cancel, none, Names::nothing, done},
      {OffloadId::await_durable, none, Names::nothing, other},
      {OffloadId::datagram_open, read, Names::nothing, other},
  };
}

std::vector<Row> other_rows() {
  using enum Right;
  using enum Then;
  const std::string shape(base::bytes_of(tree::shape_of(MapOptions{})));
  const std::string row(schema().row_bytes(), '\0');
  const std::string no_rows(base::bytes_of(wire::RowsWanted{~std::uint64_t{0}, 1}));
  return {
      {OffloadId::get, read, Names::by_id, done, On::map, "k"},
      {OffloadId::floor, read, Names::by_id, done, On::map, "k"},
      {OffloadId::scan, read, Names::by_id, done, On::map, "a"},
      {OffloadId::scan_reverse, read, Names::by_id, done, On::map, "a"},
      {OffloadId::scan_floor, read, Names::by_id, done, On::map, "a"},
      {OffloadId::count, read, Names::by_id, done, On::map, "a"},
      {OffloadId::count_estimate, read, Names::by_id, done, On::map, "a"},
      {OffloadId::range_borders, read, Names::by_id, done, On::map, "a", "", 2},
      {OffloadId::put, write, Names::by_id, done, On::map, "k", "v"},
      {OffloadId::insert, write, Names::by_id, done, On::map, "i", "v"},
      {OffloadId::update, write, Names::by_id, done, On::map, "k", "w"},
      {OffloadId::erase, write, Names::by_id, done, On::map, "i"},
      {OffloadId::add, write, Names::by_id, done, On::map, "n", number(1)},
      {OffloadId::compare_and_set, write, Names::by_id, done, On::map, "k", comparison("x")},
      {OffloadId::write_batch, write, Names::by_id, done, On::map, "", batch_of_one("b", "v"), 1},
      {OffloadId::map_stats, read, Names::by_id, done, On::map},
      {OffloadId::snapshot_open, read, Names::by_id, done, On::map},
      {OffloadId::snapshot_close, read, Names::nothing, done, On::nothing, "", "", 0,
       Says::version},
      {OffloadId::release_hold, read, Names::by_id, other, On::map},
      {OffloadId::release_confirm, read, Names::by_id, done, On::map, "", number(77)},
      {OffloadId::index_counts, read, Names::by_id, by_node, On::map},
      {OffloadId::lease_renew, read, Names::nothing, other},
      {OffloadId::one_sided_open, read, Names::all, by_reads, On::map},
      {OffloadId::feed_open, read, Names::by_id, by_reads, On::map},
      {OffloadId::index_open, admin, Names::all, other, On::map},
      {OffloadId::index_generation, admin, Names::all, other, On::map},
      {OffloadId::map_open, read, Names::by_name, done, On::nothing, "m"},
      {OffloadId::map_create, admin, Names::by_name, done, On::nothing, "made", shape},
      {OffloadId::shard_create, admin, Names::by_name, done, On::nothing, "made_shard",
       shape + shard_map()},
      {OffloadId::object_list, read, Names::nothing, done},
      {OffloadId::object_samples, read, Names::nothing, done, On::nothing, "", samples_wanted()},
      {OffloadId::object_drop, admin, Names::by_name, done, On::nothing, "made_shard"},
      {OffloadId::node_stats, read, Names::all, done},
      {OffloadId::sequence, write, Names::by_name, done, On::nothing, "counter", "", 1},
      {OffloadId::sequencer_create, admin, Names::by_name, done, On::nothing, "made_s", number(5)},
      {OffloadId::sequencer_open, read, Names::by_name, done, On::nothing, "s"},
      {OffloadId::sequencer_take, write, Names::by_id, done, On::sequencer, "", epoch(0), 1},
      {OffloadId::one_sided_sequencer, write, Names::by_id, by_reads, On::sequencer},
      {OffloadId::sequencer_seal, admin, Names::by_id, done, On::sequencer, "", epoch(0)},
      {OffloadId::sequencer_advance, admin, Names::by_id, done, On::sequencer, "",
       std::string(base::bytes_of(wire::SequencerAdvance{}))},
      {OffloadId::table_create, admin, Names::by_name, done, On::nothing, "made_t", schema_bytes()},
      {OffloadId::table_open, read, Names::by_name, done, On::nothing, "t"},
      {OffloadId::table_read, read, Names::by_id, done, On::table, "", no_rows},
      {OffloadId::one_sided_table, read, Names::all, by_reads, On::table},
      {OffloadId::table_query, read, Names::by_id, done, On::table, "", pipeline()},
      {OffloadId::pipeline_load, read, Names::by_id, done, On::table, "", pipeline()},
      {OffloadId::pipeline_drop, read, Names::nothing, done, On::nothing, "", "", 0, Says::version},
      {OffloadId::table_append, write, Names::by_id, done, On::table, "", row},
      {OffloadId::table_reserve, write, Names::by_id, other, On::table},
      {OffloadId::table_commit, write, Names::by_id, other, On::table},
      {OffloadId::landing_open, write, Names::nothing, by_fabric, On::nothing, "", number(65'536)},
      {OffloadId::landing_close, write, Names::nothing, by_fabric, On::nothing, "", "", 0,
       Says::payload},
      {OffloadId::result_open, read, Names::nothing, other},
      {OffloadId::result_return, read, Names::nothing, other},
  };
}

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> made = session_rows();
    std::ranges::move(other_rows(), std::back_inserter(made));
    std::ranges::move(hash_rows(), std::back_inserter(made));
    std::ranges::move(region_rows(), std::back_inserter(made));
    std::ranges::move(embedding_rows(), std::back_inserter(made));
    std::ranges::move(model_rows(), std::back_inserter(made));
    std::ranges::move(transaction_rows(), std::back_inserter(made));
    return made;
  }();
  return all;
}

Result<std::unique_ptr<client::ThreadRings>> open_rings(const std::string& address,
                                                        const ClientSecret& secret) {
  auto connection = client::connect_to(client::parse_node_address(address).value(),
                                       {.secret = client::KnownSecret::of(secret)});
  if (!connection) return std::unexpected(connection.error());
  return client::ThreadRings::open(std::move(*connection));
}

namespace {

/// Whose rows come in chunks is no matter here.
Result<client::Reply> ask_one(client::RemoteRequests& requests, const wire::CallMessage& ask) {
  if (ask.offload != OffloadId::table_query && ask.offload != OffloadId::table_read) {
    return requests.call(ask);
  }
  auto reply = requests.ask(ask, [](wire::ChunkKind, std::string_view) { return true; });
  if (!reply) return std::unexpected(reply.error().error);
  return std::move(*reply);
}

}  // namespace

std::vector<Error> ask_all(const std::string& address, const ClientSecret& secret,
                           const Objects& objects) {
  const auto rings = open_rings(address, secret);
  if (!rings) return {rings.error()};
  client::RemoteRequests requests(**rings, 1);
  std::vector<Error> came;
  client::Reply before;
  for (const Row& row : rows()) {
    const std::string key = (row.names == Names::by_name ? objects.prefix : "") + row.key;
    std::string payload = row.payload;
    if (row.says == Says::version) payload = number(before.header.version);
    if (row.says == Says::payload) payload = (before.payload + number(77)).substr(0, 8);
    if (row.says == Says::prefixed) payload.insert(8, objects.prefix);
    wire::CallMessage ask;
    ask.offload = row.id;
    ask.map = row.on == On::nothing ? 0 : objects.numbers.at(row.on);
    ask.argument = row.argument;
    ask.key = key;
    ask.payload = payload;
    auto reply = ask_one(requests, ask);
    came.push_back(reply ? Error{} : reply.error());
    before = reply ? std::move(*reply) : client::Reply{};
  }
  return came;
}

namespace {

/// What is to come of a row; nothing: it is allowed.
std::optional<Error> refusal_of(const Row& row, const Client& client, const Objects& objects) {
  if (!client.may(row.right)) {
    return Error{Code::not_permitted, 0, static_cast<std::uint32_t>(row.right)};
  }
  const Error other_names{Code::not_permitted, 0, 0};
  if (client.prefix.empty() || row.names == Names::nothing) return std::nullopt;
  if (row.names == Names::all) return other_names;
  return objects.prefix == client.prefix ? std::nullopt : std::optional(other_names);
}

/// Whether what is allowed is done by a transport, or a device.
bool is_done(const Row& row, const Client& client, std::string_view by) {
  const bool reads = by == "shm" || by.starts_with("roce");
  switch (row.then) {
    case Then::done: return true;
    case Then::by_node: return by != "device";
    case Then::by_fabric: return by != "unix" && by != "device";
    case Then::by_reads: return reads && client.prefix.empty();
    case Then::other: break;
  }
  return false;
}

}  // namespace

void expect_as_written(const std::vector<Error>& came, const Client& client, const Objects& objects,
                       std::string_view by) {
  ASSERT_EQ(came.size(), rows().size()) << message(came.front());
  for (std::size_t i = 0; i < came.size(); ++i) {
    const Row& row = rows()[i];
    SCOPED_TRACE(offload::find_offload(static_cast<std::uint8_t>(row.id))->name);
    // After a refusal the client has no number for the next request.
    const bool can_be_said = row.says == Says::nothing || came[i - 1] == Error{};
    const auto refusal = refusal_of(row, client, objects);
    // What a device never does for a client needs no name.
    const bool for_nobody = by == "device" && row.names == Names::by_id && row.then != Then::done;
    if (refusal && refusal->detail == 0 && for_nobody) {
      EXPECT_TRUE(came[i].code == Code::unsupported || came[i] == *refusal) << message(came[i]);
    } else if (refusal) {
      EXPECT_EQ(came[i], *refusal);
    } else if (is_done(row, client, by) && can_be_said) {
      EXPECT_EQ(came[i], Error{}) << message(came[i]);
    } else if (by == "device" && row.then != Then::other) {
      EXPECT_EQ(came[i].code, can_be_said ? Code::unsupported : came[i].code);
    } else {
      EXPECT_NE(came[i].code, Code::not_permitted);
      EXPECT_NE(came[i].code, Code::connection_lost);
    }
  }
}

}  // namespace espalier::test::roles
