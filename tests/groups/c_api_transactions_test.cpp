// SPDX-License-Identifier: Apache-2.0
// The C API: transactions over maps of one group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/c_api_fixture.hpp"

namespace espalier::test {
namespace {

class CApiTransactions : public CApi {};

TEST_P(CApiTransactions, ReadAndWriteMapsOfOneGroup) {
  espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
  options.group = b("bank");
  for (const char* const name : {"one", "two"}) {
    espalier_map* map = nullptr;
    good(espalier_map_create(store_, b(name), &options, &map));
    espalier_map_close(map);
  }
  espalier_transaction* move = nullptr;
  good(espalier_transaction_create(&move));
  bad(espalier_transact(store_, move, nullptr), ESPALIER_INVALID_ARGUMENT, "allows");
  good(espalier_transaction_get(move, b("one"), b("k")));
  good(espalier_transaction_only_if_absent(move, b("two"), b("k")));
  good(espalier_transaction_put(move, b("one"), b("k"), b("1")));
  good(espalier_transaction_put(move, b("two"), b("k"), b("2")));
  espalier_version_number version = 0;
  good(espalier_transact(store_, move, &version));
  EXPECT_GT(version, 0u);
  std::uint32_t found = 7;
  good(espalier_transaction_found(move, 0, item_, &found));
  EXPECT_EQ(found, 0u);
  bad(espalier_transaction_found(move, 1, item_, &found), ESPALIER_INVALID_ARGUMENT, "");
  bad(espalier_transact(store_, move, nullptr), ESPALIER_CONDITION_FAILED, "condition");
  EXPECT_EQ(espalier_error_detail(), 1u);

  good(espalier_transaction_clear(move));
  good(espalier_transaction_get(move, b("two"), b("k")));
  good(espalier_transaction_get(move, b("one"), b("k")));
  good(espalier_transaction_only_if_present(move, b("one"), b("k")));
  good(espalier_transaction_only_if_value(move, b("one"), b("k"), b("1")));
  good(espalier_transaction_only_if_version(move, b("one"), b("k"), version));
  good(espalier_transaction_erase(move, b("two"), b("k")));
  espalier_numbered_client client{};
  good(espalier_numbered_client_create(store_, &client));
  const std::uint64_t first = client.next;
  for (int again = 0; again < 2; ++again) {
    client.next = first;
    good(espalier_transact_once(store_, move, &client, &version));
    EXPECT_EQ(client.next, first + 1);
    good(espalier_transaction_found(move, 0, item_, &found));
    EXPECT_EQ(found, 1u);
    EXPECT_EQ(text(espalier_item_value(item_)), "2") << "as it was the first time";
    good(espalier_transaction_found(move, 1, item_, &found));
    EXPECT_EQ(text(espalier_item_value(item_)), "1");
    EXPECT_EQ(text(espalier_item_key(item_)), "");
  }
  good(espalier_numbered_client_forget(store_, &client));
  bad(espalier_transact_once(store_, move, &client, nullptr), ESPALIER_OUTDATED, "");

  good(espalier_transaction_clear(move));
  good(espalier_transaction_get(move, b("one"), b("k")));
  good(espalier_transaction_get(move, b("fruit"), b("k")));
  bad(espalier_transact(store_, move, nullptr), ESPALIER_UNSUPPORTED, "");
  EXPECT_EQ(espalier_error_detail(), 1u) << "a map of no group";
  const espalier_bytes endless{"x", SIZE_MAX / 4};
  bad(espalier_transaction_put(move, b("one"), b("k"), endless), ESPALIER_VALUE_TOO_LONG, "");
  bad(espalier_transaction_get(move, b("one"), b("")), ESPALIER_KEY_TOO_LONG, "key");
  espalier_transaction_destroy(move);
}

TEST_P(CApiTransactions, MapsNameTheirGroup) {
  espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
  options.group = b("bank");
  espalier_map* in_group = nullptr;
  good(espalier_map_create(store_, b("in group"), &options, &in_group));
  espalier_map_options read_back = ESPALIER_MAP_OPTIONS_INIT;
  good(espalier_map_get_options(in_group, &read_back));
  EXPECT_EQ(text(read_back.group), "bank");
  espalier_map_close(in_group);
  good(espalier_map_drop(store_, b("in group")));
  options.versions = 0;
  in_group = nullptr;
  EXPECT_EQ(espalier_map_create(store_, b("in group"), &options, &in_group),
            ESPALIER_INVALID_ARGUMENT)
      << "without versions";
}

INSTANTIATE_TEST_SUITE_P(At, CApiTransactions, ::testing::Values("embedded", "unix", "shm"),
                         way_name);

}  // namespace
}  // namespace espalier::test
