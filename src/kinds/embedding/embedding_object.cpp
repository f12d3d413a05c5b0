// SPDX-License-Identifier: Apache-2.0
// An embedding table as an object of its store: creation, recovery, description, statistics.
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/samples.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"
#include "store/durable_store.hpp"
#include "store/store_core.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::embedding {
namespace {

// The memory of a dropped table waits for remote readers, and is freed in steps.
Result<std::shared_ptr<EmbeddingTable>> make_embedding_table(const catalog::Catalog& catalog,
                                                             memory::BufferPool& pool,
                                                             std::uint32_t id, std::string name,
                                                             const EmbeddingShape& shape) {
  auto made = EmbeddingTable::create(pool, id, std::move(name), options_of(shape));
  if (!made) return std::unexpected(made.error());
  tree::StoreCore* const core = catalog.store();
  if (core != nullptr) (*made)->give_back_through(&core->dropped);
  const auto let_go = [core](EmbeddingTable* table) {
    std::unique_ptr<EmbeddingTable> last(table);
    if (core == nullptr || !last->dropped()) return;
    core->dropped.add(std::move(last));
  };
  return std::shared_ptr<EmbeddingTable>(made->release(), let_go);
}

}  // namespace

Result<std::shared_ptr<EmbeddingTable>> create_embedding_table(catalog::Catalog& catalog,
                                                               memory::BufferPool& pool,
                                                               std::string_view name,
                                                               const EmbeddingShape& shape,
                                                               std::optional<Durability> asked) {
  if (!is_shape(shape)) return fail(Code::invalid_argument);
  const auto durability = tree::agreed_durability(catalog, asked);
  if (!durability) return std::unexpected(durability.error());
  return catalog.create<EmbeddingTable>(
      name, base::bytes_of(shape),
      [&](std::uint32_t id, std::string own_name) {
        return make_embedding_table(catalog, pool, id, std::move(own_name), shape);
      },
      *durability);
}

Result<std::shared_ptr<EmbeddingTable>> restore_embedding_table(
    catalog::Catalog& catalog, memory::BufferPool& pool, const catalog::CreatedObject& created) {
  wire::PayloadReader reader(created.form);
  const auto shape = reader.take<EmbeddingShape>();
  if (!reader.complete() || !is_shape(shape)) return catalog::corrupt(catalog::RedoFault::form);
  return catalog.restore<EmbeddingTable>(created, [&](std::uint32_t id, std::string own_name) {
    return make_embedding_table(catalog, pool, id, std::move(own_name), shape);
  });
}

EmbeddingShape EmbeddingTable::shape() const { return shape_of(options_); }

EmbeddingPlace EmbeddingTable::place() const {
  const auto generation =
      base::load_shared<std::uint32_t>(header_ + offsetof(EmbeddingHeader, generation));
  return {header_offset_, id_, generation, shape()};
}

std::string EmbeddingTable::description() const { return std::string(base::bytes_of(shape())); }

EmbeddingNumbers EmbeddingTable::all_numbers() const {
  EmbeddingNumbers all{};
  all.rows = rows();
  all.pages = pages();
  const std::uint64_t list = own_list_ != 0 ? kPageBytes : 0;
  if (const auto groups = memo()) {
    all.groups = groups->numbering().groups();
    all.grouped_rows = groups->numbering().members();
    all.group_bytes = groups->memory_bytes();
  }
  all.grouping_groups = grouping_groups_.load(std::memory_order_relaxed);
  all.grouping_computed = grouping_computed_.load(std::memory_order_relaxed);
  all.group_bytes += grouping_bytes_.load(std::memory_order_relaxed);
  all.memory_bytes = kHeaderBytes + list + all.pages * kPageBytes + all.group_bytes;
  all.reductions = reductions_.load(std::memory_order_relaxed);
  all.rows_gathered = rows_gathered_.load(std::memory_order_relaxed);
  all.rows_replaced = rows_replaced_.load(std::memory_order_relaxed);
  all.rereads = rereads_.load(std::memory_order_relaxed);
  all.sums_gathered = sums_gathered_.load(std::memory_order_relaxed);
  all.rows_saved = rows_saved_.load(std::memory_order_relaxed);
  return all;
}

catalog::ObjectNumbers EmbeddingTable::numbers() const {
  const EmbeddingNumbers all = all_numbers();
  return {all.rows, all.memory_bytes};
}

void EmbeddingTable::add_samples(catalog::SampleList& to) const {
  const EmbeddingNumbers all = all_numbers();
  to.gauge({"rows", "", "Rows."}, all.rows);
  to.gauge({"row_bytes", "bytes", "Bytes of one row."}, row_bytes_);
  to.gauge({"pages", "", "Pages of rows."}, all.pages);
  to.gauge({"memory_bytes", "bytes", "Memory of pages, page list, header and groups."},
           all.memory_bytes);
  to.gauge({"groups", "", "Groups of rows whose sums are kept."}, all.groups);
  to.gauge({"grouped_rows", "", "Rows that have a group."}, all.grouped_rows);
  to.gauge({"group_bytes", "bytes", "Memory of sums of groups, and of their rows' numbers."},
           all.group_bytes);
  to.gauge({"grouping_groups", "", "Groups of a grouping that is being made."},
           all.grouping_groups);
  to.gauge({"grouping_computed", "", "Of these, groups whose sums are there."},
           all.grouping_computed);
  to.counter({"reductions", "", "Bags that were reduced."}, all.reductions);
  to.counter({"gathered_rows", "", "Rows that were read for them."}, all.rows_gathered);
  to.counter({"gathered_sums", "", "Of the rows that were read, sums of groups."},
             all.sums_gathered);
  to.counter({"saved_rows", "", "Rows that were not read, for sums stood for them."},
             all.rows_saved);
  to.counter({"replaced_rows", "", "Rows that were replaced."}, all.rows_replaced);
  to.counter({"rereads", "", "Steps that met a replacement, and were done again."}, all.rereads);
}

}  // namespace espalier::embedding
