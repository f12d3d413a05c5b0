// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a record of an embedding table, or of one that was made: what is read lies
// within them, and what is applied leaves a table that is whole. What is refused changes nothing.
//
// Input: records, each behind its length in 2 bytes. The table has the id 1 and rows of 32 bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/testing/fuzz_input.hpp"
#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/redo_record.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::embedding {
namespace {

using base::want;

/// The parts of a store that embedding tables need.
struct FuzzStore {
  memory::Region region = std::move(
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false}));
  memory::BufferPool pool{region};
  catalog::Catalog catalog;  // last, for its tables give memory back to the others
};

void check_fault(const Error& error) {
  want(error.code == Code::corrupt || error.code == Code::out_of_memory,
       "another error than corrupt or out_of_memory");
  if (error.code != Code::corrupt) return;
  want(!text_of(static_cast<catalog::RedoFault>(error.detail)).empty(), "a fault without words");
}

void check_whole(const EmbeddingTable& table) {
  const auto wrong = audit(table);
  want(wrong.empty(), wrong.empty() ? "" : wrong.front().c_str());
}

// Of an embedding table that was made.
void restore(const catalog::CreatedObject& created) {
  FuzzStore store;
  const auto made = restore_embedding_table(store.catalog, store.pool, created);
  if (!made) return check_fault(made.error());
  want((*made)->id() == created.id && (*made)->name() == created.name, "another table");
  check_whole(**made);
}

void apply(EmbeddingTable& table, const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view record(exact.get(), size);
  if (const auto created = catalog::read_created(record)) restore(*created);
  const std::uint64_t rows = table.rows();
  const auto applied = apply_redo(table, record);
  if (!applied) {
    check_fault(applied.error());
    want(table.rows() == rows, "what was refused has changed something");
    return;
  }
  if (is_of_groups(record)) {
    want(read_groups_redo(record).has_value() && table.rows() == rows, "groups have no rows");
    return;
  }
  const auto redo = read_rows_redo(record);
  want(redo.has_value() && table.rows() >= redo->row + redo->rows, "rows are missing");
}

void run(const std::uint8_t* data, std::size_t size) {
  FuzzStore store;
  const auto table = create_embedding_table(store.catalog, store.pool, "e", shape_of({8}));
  std::uint16_t bytes = 0;
  for (std::size_t at = 0; size - at >= sizeof bytes;) {
    std::memcpy(&bytes, data + at, sizeof bytes);
    at += sizeof bytes;
    const std::size_t record = std::min<std::size_t>(bytes, size - at);
    apply(**table, data + at, record);
    at += record;
  }
  check_whole(**table);
}

}  // namespace
}  // namespace espalier::embedding

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::embedding::run(data, size);
  return 0;
}
