// SPDX-License-Identifier: Apache-2.0
// The C API: what is missing is told, by every function and for every argument.
#include "tests/support/c_api_fixture.hpp"

namespace espalier::test {
namespace {

class CApiMissing : public CApi {};

INSTANTIATE_TEST_SUITE_P(At, CApiMissing, ::testing::ValuesIn(kPlaces), way_name);

TEST_P(CApiMissing, RefusesWhatIsMissingOfSequencers) {
  const espalier_bytes k = b("k");
  espalier_sequencer* numbers = nullptr;
  espalier_number_range range{};
  espalier_sequencer_state state = ESPALIER_SEQUENCER_STATE_INIT;
  null(espalier_sequencer_create(nullptr, k, 0, &numbers), "store");
  lies(espalier_sequencer_create(store_, kLie, 0, &numbers), "name");
  null(espalier_sequencer_create(store_, k, 0, nullptr), "sequencer");
  null(espalier_sequencer_open(nullptr, k, &numbers), "store");
  lies(espalier_sequencer_open(store_, kLie, &numbers), "name");
  null(espalier_sequencer_open(store_, k, nullptr), "sequencer");
  null(espalier_sequencer_drop(nullptr, k), "store");
  lies(espalier_sequencer_drop(store_, kLie), "name");
  null(espalier_sequencer_take(nullptr, 1, &range), "sequencer");
  null(espalier_sequencer_seal(nullptr, &state), "sequencer");
  null(espalier_sequencer_advance(nullptr, 0, &state), "sequencer");
  null(espalier_sequencer_follow(nullptr, &state), "sequencer");
  null(espalier_sequencer_describe(nullptr, &state), "sequencer");
  good(espalier_sequencer_create(store_, k, 0, &numbers));
  null(espalier_sequencer_take(numbers, 1, nullptr), "range");
  null(espalier_sequencer_describe(numbers, nullptr), "state");
  state.struct_bytes = 0;
  bad(espalier_sequencer_seal(numbers, &state), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  bad(espalier_sequencer_advance(numbers, 0, &state), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  bad(espalier_sequencer_follow(numbers, &state), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  bad(espalier_sequencer_describe(numbers, &state), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  espalier_sequencer_close(numbers);
  espalier_sequencer_close(nullptr);
}

TEST_P(CApiMissing, RefusesWhatIsMissingOfTransactions) {
  const espalier_bytes k = b("k");
  std::uint32_t small = 0;
  espalier_map* map = nullptr;
  espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
  options.group = kLie;
  lies(espalier_map_create(store_, k, &options, &map), "options.group");
  espalier_transaction* transaction = nullptr;
  null(espalier_transaction_create(nullptr), "transaction");
  null(espalier_transaction_clear(nullptr), "transaction");
  good(espalier_transaction_create(&transaction));
  for (const auto add : {espalier_transaction_put, espalier_transaction_only_if_value}) {
    null(add(nullptr, k, k, k), "transaction");
    lies(add(transaction, kLie, k, k), "map");
    lies(add(transaction, k, kLie, k), "key");
    lies(add(transaction, k, k, kLie), "value");
  }
  for (const auto add :
       {espalier_transaction_get, espalier_transaction_erase, espalier_transaction_only_if_absent,
        espalier_transaction_only_if_present}) {
    null(add(nullptr, k, k), "transaction");
    lies(add(transaction, kLie, k), "map");
    lies(add(transaction, k, kLie), "key");
  }
  null(espalier_transaction_only_if_version(nullptr, k, k, 1), "transaction");
  espalier_numbered_client client{};
  null(espalier_transact(nullptr, transaction, nullptr), "store");
  null(espalier_transact(store_, nullptr, nullptr), "transaction");
  null(espalier_transact_once(nullptr, transaction, &client, nullptr), "store");
  null(espalier_transact_once(store_, nullptr, &client, nullptr), "transaction");
  null(espalier_transact_once(store_, transaction, nullptr, nullptr), "client");
  null(espalier_transaction_found(nullptr, 0, item_, &small), "transaction");
  null(espalier_transaction_found(transaction, 0, nullptr, &small), "item");
  null(espalier_transaction_found(transaction, 0, item_, nullptr), "found");
  null(espalier_numbered_client_create(nullptr, &client), "store");
  null(espalier_numbered_client_create(store_, nullptr), "client");
  null(espalier_numbered_client_forget(nullptr, &client), "store");
  null(espalier_numbered_client_forget(store_, nullptr), "client");
  espalier_transaction_destroy(transaction);
  espalier_transaction_destroy(nullptr);
}

TEST_P(CApiMissing, RefusesWhatIsMissing) {
  std::uint32_t small = 0;
  std::uint64_t number = 0;
  espalier_map* map = nullptr;
  const espalier_bytes k = b("k");
  espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
  espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
  null(espalier_sequence(nullptr, k, 1, &number), "store");
  lies(espalier_sequence(store_, kLie, 1, &number), "name");
  null(espalier_sequence(store_, k, 1, nullptr), "first");
  std::uint64_t durable = 0;
  null(espalier_durable_state(nullptr, &number, &durable), "store");
  null(espalier_durable_state(store_, nullptr, &durable), "recorded");
  null(espalier_durable_state(store_, &number, nullptr), "durable");
  bad(espalier_durable_state(store_, &number, &durable), ESPALIER_UNSUPPORTED, "");
  null(espalier_await_durable(nullptr), "store");
  bad(espalier_await_durable(store_), ESPALIER_UNSUPPORTED, "");
  null(espalier_map_create(nullptr, k, nullptr, &map), "store");
  lies(espalier_map_create(store_, kLie, nullptr, &map), "name");
  null(espalier_map_create(store_, k, nullptr, nullptr), "map");
  null(espalier_map_open(nullptr, k, &map), "store");
  lies(espalier_map_open(store_, kLie, &map), "name");
  null(espalier_map_open(store_, k, nullptr), "map");
  null(espalier_map_drop(nullptr, k), "store");
  lies(espalier_map_drop(store_, kLie), "name");
  null(espalier_map_list(nullptr, nullptr, nullptr), "store");
  null(espalier_map_list(store_, nullptr, nullptr), "visit");
  null(espalier_map_get_options(nullptr, &options), "map");
  null(espalier_map_get_options(map_, nullptr), "options");
  options.struct_bytes = 0;
  bad(espalier_map_get_options(map_, &options), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  bad(espalier_map_create(store_, k, &options, &map), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  null(espalier_map_key_bytes_max(nullptr, &small), "map");
  null(espalier_map_key_bytes_max(map_, nullptr), "bytes");
  null(espalier_map_get_stats(nullptr, &stats), "map");
  null(espalier_map_get_stats(map_, nullptr), "stats");
  stats.struct_bytes = 1 << 20;
  bad(espalier_map_get_stats(map_, &stats), ESPALIER_INVALID_ARGUMENT, "struct_bytes");

  null(espalier_item_create(nullptr), "item");
  EXPECT_EQ(espalier_item_key(nullptr).size, 0u);
  EXPECT_EQ(espalier_item_value(nullptr).size, 0u);
  EXPECT_EQ(espalier_item_version(nullptr), 0u);
  espalier_item_destroy(nullptr);
  espalier_map_close(nullptr);
  espalier_batch_destroy(nullptr);
  espalier_snapshot_close(nullptr);
  EXPECT_EQ(espalier_text(nullptr).size, 0u);

  for (const auto read : {espalier_map_get, espalier_map_floor}) {
    null(read(nullptr, k, item_, &small), "map");
    lies(read(map_, kLie, item_, &small), "key");
    null(read(map_, k, nullptr, &small), "item");
    null(read(map_, k, item_, nullptr), "found");
  }
  for (const auto write : {espalier_map_put, espalier_map_insert, espalier_map_update}) {
    null(write(nullptr, k, k, nullptr), "map");
    lies(write(map_, kLie, k, nullptr), "key");
    lies(write(map_, k, kLie, nullptr), "value");
  }
  null(espalier_map_erase(nullptr, k, nullptr), "map");
  lies(espalier_map_erase(map_, kLie, nullptr), "key");
  null(espalier_map_compare_and_set(nullptr, k, &k, &k, nullptr), "map");
  lies(espalier_map_compare_and_set(map_, kLie, &k, &k, nullptr), "key");
  lies(espalier_map_compare_and_set(map_, k, &kLie, &k, nullptr), "expected");
  lies(espalier_map_compare_and_set(map_, k, &k, &kLie, nullptr), "desired");
  null(espalier_map_add(nullptr, k, 1, nullptr), "map");
  lies(espalier_map_add(map_, kLie, 1, nullptr), "key");
}

TEST_P(CApiMissing, RefusesWhatIsMissingInRangesBatchesAndSnapshots) {
  std::uint64_t number = 0;
  std::uint32_t small = 0;
  const espalier_bytes k = b("k");
  null(espalier_map_scan(nullptr, k, k, nullptr, collect, nullptr, nullptr), "map");
  lies(espalier_map_scan(map_, kLie, k, nullptr, collect, nullptr, nullptr), "low");
  lies(espalier_map_scan(map_, k, kLie, nullptr, collect, nullptr, nullptr), "high");
  null(espalier_map_scan(map_, k, k, nullptr, nullptr, nullptr, nullptr), "visit");
  for (const auto count : {espalier_map_count, espalier_map_count_estimate}) {
    null(count(nullptr, k, k, &number), "map");
    lies(count(map_, kLie, k, &number), "low");
    lies(count(map_, k, kLie, &number), "high");
    null(count(map_, k, k, nullptr), "count");
  }

  espalier_batch* batch = nullptr;
  null(espalier_batch_create(nullptr), "batch");
  null(espalier_batch_clear(nullptr), "batch");
  good(espalier_batch_create(&batch));
  for (const auto add : {espalier_batch_put, espalier_batch_only_if_value}) {
    null(add(nullptr, k, k), "batch");
    lies(add(batch, kLie, k), "key");
    lies(add(batch, k, kLie), "value");
  }
  for (const auto add :
       {espalier_batch_erase, espalier_batch_only_if_absent, espalier_batch_only_if_present}) {
    null(add(nullptr, k), "batch");
    lies(add(batch, kLie), "key");
  }
  null(espalier_batch_only_if_version(nullptr, k, 1), "batch");
  lies(espalier_batch_only_if_version(batch, kLie, 1), "key");
  null(espalier_map_write(nullptr, batch, nullptr), "map");
  null(espalier_map_write(map_, nullptr, nullptr), "batch");
  espalier_batch_destroy(batch);

  espalier_snapshot* snapshot = nullptr;
  null(espalier_snapshot_open(nullptr, &snapshot), "map");
  null(espalier_snapshot_open(map_, nullptr), "snapshot");
  good(espalier_snapshot_open(map_, &snapshot));
  null(espalier_snapshot_version(nullptr, &number), "snapshot");
  null(espalier_snapshot_version(snapshot, nullptr), "version");
  for (const auto read : {espalier_snapshot_get, espalier_snapshot_floor}) {
    null(read(nullptr, k, item_, &small), "snapshot");
    lies(read(snapshot, kLie, item_, &small), "key");
    null(read(snapshot, k, nullptr, &small), "item");
    null(read(snapshot, k, item_, nullptr), "found");
  }
  null(espalier_snapshot_scan(nullptr, k, k, nullptr, collect, nullptr, nullptr), "snapshot");
  lies(espalier_snapshot_scan(snapshot, kLie, k, nullptr, collect, nullptr, nullptr), "low");
  lies(espalier_snapshot_scan(snapshot, k, kLie, nullptr, collect, nullptr, nullptr), "high");
  null(espalier_snapshot_scan(snapshot, k, k, nullptr, nullptr, nullptr, nullptr), "visit");
  espalier_snapshot_close(snapshot);
}

}  // namespace
}  // namespace espalier::test
