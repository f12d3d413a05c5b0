// SPDX-License-Identifier: Apache-2.0
// A table in a program, from its schema to answers. Without an argument it lies in this process;
// with the address of a node, there, and the queries run beside it.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "espalier/espalier.hpp"

namespace {

using espalier::col;
using espalier::Date;
using espalier::Decimal;
using espalier::Row;
using std::chrono::year;
using namespace espalier::literals;

int give_up(const std::string& why) {
  std::fprintf(stderr, "first_table: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int arguments, char** words) {
  auto store = espalier::Store::connect(arguments > 1 ? words[1] : "embedded");
  if (!store) return give_up(message(store.error()));

  // Columns have names and types, and may be null unless they are `not null`.
  const auto schema = espalier::Schema::parse(
      "id i64 not null, shop char(3) not null, price decimal(8,2), day date not null");
  if (!schema) return give_up(message(schema.error()));
  const auto sales = store->create_table("sales", *schema);
  if (!sales) return give_up(message(sales.error()));

  // Rows are checked as they are added, and appended together, all or none.
  espalier::RowWriter rows = sales->writer();
  const Date first_day = year(2024) / 1 / 30;
  for (int i = 0; i < 1000; ++i) {
    std::optional<Decimal> price;
    if (i % 10 != 0) price = Decimal{100 + i, 2};  // exact: 1.01 and so on
    rows.add(i, i % 3 == 0 ? "ab" : "cd", price, first_day + std::chrono::days(i % 4));
  }
  if (const auto first = rows.commit(); !first) return give_up(message(first.error()));

  // What does not fit is refused by its column, and then nothing of the append is done.
  if (const auto wrong = rows.add(1000, "ab", 0.125_dec, first_day); !wrong) {
    std::printf("refused: %s\n", message(wrong.error()).c_str());
  }

  // A query runs beside the memory: what travels is the answer.
  const auto totals = sales->query()
                          .where(col("price") > 1.99_dec && col("day") >= Date(year(2024) / 2 / 1))
                          .group_by({"shop"}, {espalier::count(), sum(col("price")).as("total")})
                          .run();
  if (!totals) return give_up(message(totals.error()));
  for (const Row row : *totals) {
    std::printf("%s: %lld sales, %s in all\n", row.get<std::string>(0).c_str(),
                static_cast<long long>(row.get<std::int64_t>(1)),
                row.get<Decimal>(2).to_text().c_str());
  }

  // Rows of a large answer are pulled piece by piece, and never all here at a time.
  auto unpriced = sales->query().where(col("price").is_null()).project({"id", "day"}).stream();
  if (!unpriced) return give_up(message(unpriced.error()));
  std::int64_t sum = 0;
  for (;;) {
    const auto piece = unpriced->next();
    if (!piece) return give_up(message(piece.error()));
    if (!*piece) break;
    for (const Row row : **piece) sum += row.get<std::int64_t>(0);
  }
  std::printf("ids without a price add up to %lld, found among %llu rows\n",
              static_cast<long long>(sum),
              static_cast<unsigned long long>(unpriced->stats().rows_read));
  if (const auto dropped = store->drop_table("sales"); !dropped) {
    return give_up(message(dropped.error()));
  }
  return 0;
}
