// SPDX-License-Identifier: Apache-2.0
// The keys of a run whose client is killed while rows of it are in flight: the node overwrites them
// and frees the locked memory that they lay in, over every transport.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "crypto/secret_memory.hpp"
#include "tests/support/child.hpp"
#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

TableOptions with_table_key() {
  return {.key = *TableKey::parse("000102030405060708090a0b0c0d0e0f"), .allow_keys_in_clear = true};
}
QueryOptions with_result_key() {
  return {.result_key = *TableKey::parse("f00102030405060708090a0b0c0d0e0f")};
}

/// Streams an encrypted table, encrypted again, and stops reading after a few rows.
int read_a_little(test::Line& line) {
  std::string address;
  if (!line.receive(address)) return 1;
  auto store = Store::connect(address);
  if (!store) return 2;
  const auto table = store->open_table("secret", with_table_key());
  if (!table) return 3;
  auto stream = table->query().stream(with_result_key());
  if (!stream || !stream->next()) return 4;
  line.send("streams");
  return line.receive(address) ? 0 : 5;
}

class KilledKeyReaders : public test::TablesAnywhere {
 protected:
  // It is forked while this process has one thread.
  void SetUp() override {
    child_.emplace(read_a_little);
    config_.clients.resume_seconds = 1;
    open();
    TableOptions options = with_table_key();
    options.encrypted = true;
    const auto table = store_->create_table("secret", *Schema::parse(test::kSalesSchema), options);
    ASSERT_TRUE(table) << message(table.error());
    fill(*table, 200'000);
  }

  std::optional<test::Child> child_;
};
INSTANTIATE_TEST_SUITE_P(By, KilledKeyReaders, ::testing::Values("unix", "shm", "roce", "ofi"),
                         test::way_name);

TEST_P(KilledKeyReaders, LeaveNoKeys) {
  const std::size_t before = crypto::secret_pages_taken();
  ASSERT_TRUE(child_->line().send(address()));
  std::string said;
  ASSERT_TRUE(child_->line().receive(said));
  EXPECT_EQ(said, "streams");
  EXPECT_GT(crypto::secret_pages_taken(), before) << "the run has its keys somewhere else";
  child_->kill();
  child_->wait();
  // A test that fails here hangs, and the watchdog of all tests ends it.
  while (crypto::secret_pages_taken() != before) std::this_thread::yield();
}

}  // namespace
}  // namespace espalier
