// SPDX-License-Identifier: Apache-2.0
// Encrypted tables, encrypted results and regular expressions of the public API, at each place of
// the tables: the same answers as for plain ones, and refusals with a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crypto/secret_memory.hpp"
#include "kinds/table/table.hpp"
#include "tests/support/store.hpp"
#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using test::texts;

using namespace literals;
using ::testing::HasSubstr;

constexpr const char* kDigits = "000102030405060708090a0b0c0d0e0f";
constexpr const char* kOtherDigits = "F00102030405060708090A0B0C0D0E0F";

TableKey key_of(std::string_view digits) { return *TableKey::parse(digits); }

class TableSecrets : public test::TablesAnywhere {
 protected:
  [[nodiscard]] static bool is_far() {
    const std::string_view way = GetParam();
    return way.starts_with("roce") || way == "memif" || way == "ofi";
  }
  [[nodiscard]] static TableOptions with_key(std::string_view digits) {
    return {.key = key_of(digits), .allow_keys_in_clear = is_far()};
  }
  Table make_secret(const std::string& name, std::string_view digits = kDigits) {
    TableOptions options = with_key(digits);
    options.encrypted = true;
    const auto table = store_->create_table(name, *Schema::parse(test::kSalesSchema), options);
    EXPECT_TRUE(table) << message(table.error());
    return *table;
  }
};
INSTANTIATE_TEST_SUITE_P(By, TableSecrets, ::testing::ValuesIn(test::kTablePlaces), test::way_name);

TEST_P(TableSecrets, AnswersAreThoseOfAPlainTable) {
  open();
  const Table plain = make("plain");
  const Table secret = make_secret("secret");
  EXPECT_TRUE(secret.describe()->encrypted);
  EXPECT_FALSE(plain.describe()->encrypted);
  // Appends of some rows and of many: more than a page of them.
  for (const std::int64_t count : {1, 3, 700, 40'000}) {
    fill(plain, count);
    fill(secret, count);
  }
  EXPECT_EQ(*secret.writer().commit(), *plain.rows());  // of no rows
  const Table again = *store_->open_table("secret", with_key(kDigits));
  const auto queries = [](const Table& of) {
    return std::vector<Query>{
        of.query(),
        of.query().where(col("price") > 8.99_dec).project({"shop", "id"}),
        of.query().group_by({"shop"}, {count(), sum(col("price")), max(col("day"))}),
        of.query().project({"day"}).distinct().limit(20),
    };
  };
  const std::vector<Query> of_plain = queries(plain);
  const std::vector<Query> of_secret = queries(secret);
  const std::vector<Query> of_again = queries(again);
  for (std::size_t i = 0; i < of_plain.size(); ++i) {
    const std::vector<std::string> wanted = texts(of_plain[i].run());
    EXPECT_FALSE(wanted.empty());
    EXPECT_EQ(texts(of_secret[i].run()), wanted);
    EXPECT_EQ(texts(of_again[i].run()), wanted);
    EXPECT_EQ(texts(of_again[i].run({.result_key = key_of(kOtherDigits)})), wanted);
  }
  const auto lines = again.query().explain();
  ASSERT_TRUE(lines) << message(lines.error());
  EXPECT_THAT(lines->front(), HasSubstr("decrypt"));
  const auto listed = store_->tables();
  ASSERT_TRUE(listed);
  EXPECT_FALSE((*listed)[0].encrypted);
  EXPECT_TRUE((*listed)[1].encrypted);
}

TEST_P(TableSecrets, ResultsOfPlainTablesAreEncryptedToo) {
  open();
  const Table made = make("plain");
  fill(made, 30'000);
  const Table plain = *store_->open_table("plain", {.allow_keys_in_clear = is_far()});
  const std::vector<std::string> wanted = texts(plain.query().run());
  EXPECT_EQ(texts(plain.query().run({.result_key = key_of(kDigits)})), wanted);
  auto stream = plain.query().stream({.result_key = key_of(kDigits)});
  ASSERT_TRUE(stream) << message(stream.error());
  std::vector<std::string> streamed;
  for (;;) {
    const auto piece = stream->next();
    ASSERT_TRUE(piece) << message(piece.error());
    if (!*piece) break;
    for (std::string& line : texts(**piece)) streamed.push_back(std::move(line));
  }
  EXPECT_EQ(streamed, wanted);
}

TEST_P(TableSecrets, WithoutItsKeyATableIsOnlyDescribed) {
  open();
  const Table secret = make_secret("secret");
  fill(secret, 100);
  const Table closed = *store_->open_table("secret");
  EXPECT_EQ(*closed.rows(), 100u);
  const auto refused = closed.query().run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::invalid_argument);
  EXPECT_EQ(message(refused.error()),
            "table 'secret' is encrypted, and was opened without its key");
  EXPECT_EQ(closed.query().stream().error().words, refused.error().words);
  RowWriter writer = closed.writer();
  writer.add(1, "a", 1, std::nullopt, "x");
  EXPECT_EQ(writer.commit().error().words, refused.error().words);
  EXPECT_EQ(writer.size(), 1u);
  // A wrong key is no error: there is no integrity check.
  const Table other = *store_->open_table("secret", with_key(kOtherDigits));
  const auto rows = other.query().where(col("id").between(0, 99)).run();
  ASSERT_TRUE(rows) << message(rows.error());
  EXPECT_LT(rows->size(), 100u);
  make("plain");
  const auto keyed = store_->open_table("plain", with_key(kDigits));
  ASSERT_FALSE(keyed);
  EXPECT_EQ(message(keyed.error()), "table 'plain' is not encrypted, and takes no key");
  const auto unmade = store_->create_table("t", secret.schema(), with_key(kDigits));
  ASSERT_FALSE(unmade);
  EXPECT_EQ(unmade.error().error.code, Code::invalid_argument);
  EXPECT_FALSE(store_->open_table("t"));
}

TEST_P(TableSecrets, KeysTravelInClearOnlyWhereThatIsAllowed) {
  open();
  const Table secret = make_secret("secret");
  fill(secret, 10);
  const Table strict = *store_->open_table("secret", {.key = key_of(kDigits)});
  fill(strict, 10);  // an append sends none
  const auto rows = strict.query().run();
  const Table plain = make("plain");
  const auto result = plain.query().run({.result_key = key_of(kDigits)});
  if (!is_far()) {
    ASSERT_TRUE(rows && result);
    EXPECT_EQ(rows->size(), 20u);
    return;
  }
  ASSERT_FALSE(rows || result);
  EXPECT_EQ(rows.error().error.code, Code::invalid_argument);
  EXPECT_THAT(message(rows.error()), HasSubstr("the key would travel in clear"));
  EXPECT_EQ(message(result.error()), message(rows.error()));
}

// The test reads the tables of a node directly.
using TableSecretsOnNodes = TableSecrets;
INSTANTIATE_TEST_SUITE_P(By, TableSecretsOnNodes, ::testing::Values("unix"), test::way_name);
TEST_P(TableSecretsOnNodes, WhatLiesInMemoryIsCipherText) {
  open();
  const Table secret = make_secret("secret");
  RowWriter writer = secret.writer();
  for (int i = 0; i < 500; ++i) writer.add(i, "ab", 1, std::nullopt, "plaintext");
  ASSERT_TRUE(writer.commit());
  const auto inside = node_->catalog().open<table::Table>("secret");
  ASSERT_TRUE(inside);
  const std::string_view bytes(
      reinterpret_cast<const char*>((*inside)->rows_of((*inside)->page(0))),
      500u * secret.schema().row_bytes());
  EXPECT_EQ(bytes.find("plaint"), std::string_view::npos);
  EXPECT_EQ(texts(secret.query().where(col("note") == "plaintext").aggregate({count()}).run()),
            std::vector<std::string>{"500|"});
}

TEST_P(TableSecrets, KeysGoWithTheLastThatUsesThem) {
  open();
  const std::size_t before = crypto::secret_pages_taken();
  {
    const Table secret = make_secret("secret");
    fill(secret, 50'000);
    EXPECT_EQ(crypto::secret_pages_taken(), before + 1);
    auto stream = secret.query().stream({.result_key = key_of(kOtherDigits)});
    ASSERT_TRUE(stream && stream->next());
    EXPECT_GT(crypto::secret_pages_taken(), before + 1);
  }
  // A node ends a run a moment after its client.
  while (crypto::secret_pages_taken() != before) std::this_thread::yield();
}

// --- regular expressions -------------------------------------------------------------------------

TEST_P(TableSecrets, RegularExpressionsAreSearchedAnywhere) {
  open();
  const Table table = make("sales");
  fill(table, 90);
  const auto found = [&](const Expr& condition) {
    return table.query().where(condition).aggregate({count()}).run();
  };
  EXPECT_TRUE(table.query().where(col("shop").matches("^[ac]")).explain());
  EXPECT_EQ(texts(found(col("shop").matches("^[ac]"))), std::vector<std::string>{"60|"});
  EXPECT_EQ(texts(found(!col("shop").matches("^[ac]"))), std::vector<std::string>{"30|"});
  EXPECT_EQ(texts(found(col("shop").matches("^[AC]"))), std::vector<std::string>{"0|"});
  EXPECT_EQ(texts(found(col("shop").matches("^[AC]", LetterCase::ignored))),
            std::vector<std::string>{"60|"});
  EXPECT_EQ(texts(found(!col("shop").matches("B$", LetterCase::ignored) && col("id") < 30)),
            std::vector<std::string>{"20|"});
  EXPECT_EQ(texts(found(col("note").matches("x"))), std::vector<std::string>{"0|"});  // of nulls
  EXPECT_EQ(texts(found(!col("note").matches("x"))), std::vector<std::string>{"0|"});
  const auto words = [&](const Expr& condition) {
    const auto rows = found(condition);
    return rows ? std::string("ran") : message(rows.error());
  };
  EXPECT_THAT(words(col("shop").matches("[a")), HasSubstr("missing ]"));
  EXPECT_THAT(words(col("shop").matches("(a)\\1")), HasSubstr("filter"));
  EXPECT_THAT(words(col("id").matches("a")), HasSubstr("filter"));
  EXPECT_EQ(words(col("shop").matches(std::string(2000, 'a'))), "a text has more than 1024 bytes");
  Expr many = col("shop").matches("0");
  for (int i = 1; i < 17; ++i) many = many || col("shop").matches(std::to_string(i));
  EXPECT_THAT(words(many), HasSubstr("there are more than 16 regular expressions"));
}

TEST(TableRegexes, AStoreThatWasGivenNoneSaysHowToHaveThem) {
  Store store = test::open_store({.memory_bytes_max = test::kTableMemoryBytes});
  const auto table = store.create_table("t", *Schema::parse("name text(9)"));
  ASSERT_TRUE(table) << message(table.error());
  const Query query = table->query().where(col("name").matches("^a"));
  EXPECT_TRUE(query.explain());
  for (const auto& refused : {query.run().error(), query.prepare().error()}) {
    EXPECT_EQ(refused.error.code, Code::unsupported);
    EXPECT_THAT(message(refused), HasSubstr("StoreOptions::regexes"));
  }
}

}  // namespace
}  // namespace espalier
