// SPDX-License-Identifier: Apache-2.0
// The same for regular expressions, which need one more library.
#include <espalier/query.hpp>
#include <espalier/regex.hpp>
#include <espalier/table.hpp>

int main() {
  using namespace espalier;
  auto store =
      Store::open({.memory_bytes_max = std::uint64_t{64} << 20, .regexes = regular_expressions()});
  if (!store) return 1;
  const auto table = store->create_table("trees", *Schema::parse("name text(12)"));
  if (!table) return 2;
  RowWriter rows = table->writer();
  for (const char* name : {"apple", "pear", "plum"}) rows.add(name);
  if (!rows.commit()) return 3;
  const auto found = table->query().where(col("name").matches("^p.*m$")).aggregate({count()}).run();
  if (!found) return 4;
  return (*found->begin()).value(0).to_text() == "1" ? 0 : 5;
}
