// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/offload/embedding_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/redo_record.hpp"

namespace espalier::offload {
namespace {

/// Rows as they are once readers see all whose records were handed over when it began. Of one that
/// is replaced meanwhile a part may come: the record of that is applied over it.
class EmbeddingCopy final : public ObjectCopy {
 public:
  explicit EmbeddingCopy(std::shared_ptr<embedding::EmbeddingTable> table)
      : table_(std::move(table)), wait_for_(table_->recorded()) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    if (!begun_) {
      if (!table_->shows(wait_for_) && !planted(Bug::copy_waits_for_nothing)) return CopyStep::wait;
      begun_ = true;
      rows_ = table_->rows();
    }
    while (row_ < rows_ && !table_->dropped()) {
      if (piece.full()) return CopyStep::more;
      add(piece);
    }
    return CopyStep::done;
  }

 private:
  void add(CopyPiece& piece) {
    const std::uint64_t most =
        std::max<std::uint64_t>(1, piece.usual_bytes() / table_->row_bytes());
    embedding::RowsRecord record{};
    record.row = row_;
    record.rows = std::min(rows_ - row_, most);
    record.row_bytes = table_->row_bytes();
    const std::size_t bytes = record.rows * record.row_bytes;
    record.head = catalog::redo_head(ObjectKind::embedding, table_->id(),
                                     static_cast<std::uint8_t>(embedding::RedoType::appended),
                                     sizeof record + bytes);
    const auto room = piece.add(sizeof record + bytes);
    if (room.empty()) return;
    catalog::RedoWriter(room).part(record);
    table_->copy_rows(row_, room.subspan(sizeof record));
    row_ += record.rows;
  }

  const std::shared_ptr<embedding::EmbeddingTable> table_;
  const embedding::EmbeddingTable::Recorded wait_for_;
  bool begun_ = false;
  std::uint64_t rows_ = 0;
  std::uint64_t row_ = 0;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_an_embedding_table(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  return std::make_unique<EmbeddingCopy>(
      std::static_pointer_cast<embedding::EmbeddingTable>(entry->object));
}

}  // namespace espalier::offload
