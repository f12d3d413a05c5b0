// SPDX-License-Identifier: Apache-2.0
// Schemas and values by chance, and a store of their own, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/table/schema.hpp"
#include "kinds/table/table_object.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::table {

/// Any type, limits included.
Type random_type(base::Random& random);
/// Of 1 to `columns_max` columns, whose names need quotes now and then.
Schema random_schema(base::Random& random, std::size_t columns_max = 12);

/// A canonical row: borders, nulls, long and empty texts among its values.
void random_row(base::Random& random, const Schema& schema, std::byte* row);
std::vector<std::byte> random_rows(base::Random& random, const Schema& schema, std::size_t count);

/// A schema that a test knows to be one.
inline Schema schema_of(std::string_view text) { return Schema::parse(text).value(); }

/// The tables of one pool, by name.
struct Tables {
  explicit Tables(memory::BufferPool& pool_in) : pool(pool_in) {}
  Result<std::shared_ptr<Table>> create(std::string_view name, Schema schema,
                                        TableOptions options = {}) {
    return create_table(catalog, pool, name, std::move(schema), options);
  }
  Result<std::shared_ptr<Table>> drop(std::string_view name) { return catalog.drop<Table>(name); }

  memory::BufferPool& pool;
  catalog::Catalog catalog;
};

/// A region with a pool and the tables in it.
struct TableStore {
  explicit TableStore(std::uint64_t bytes_max = std::uint64_t{64} << 20)
      : region(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false})),
        pool(region),
        tables(pool) {}
  /// With a name of its own.
  std::shared_ptr<Table> create(Schema schema, TableOptions options = {}) {
    return tables.create("t" + std::to_string(next++), std::move(schema), options).value();
  }

  memory::Region region;
  memory::BufferPool pool;
  Tables tables;
  int next = 0;
};

}  // namespace espalier::table
