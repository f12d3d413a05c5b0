// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/offload/embedding_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/memo.hpp"
#include "kinds/embedding/redo_record.hpp"

namespace espalier::offload {
namespace {

/// Copies rows and groups once readers see all whose records were handed over when it began. A row
/// that is replaced meanwhile may be torn: its record is applied over it.
class EmbeddingCopy final : public ObjectCopy {
 public:
  explicit EmbeddingCopy(std::shared_ptr<embedding::EmbeddingTable> table)
      : table_(std::move(table)), wait_for_(table_->recorded()) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    if (!begun_) {
      if (!table_->shows(wait_for_) && !planted(Bug::copy_waits_for_nothing)) return CopyStep::wait;
      begun_ = true;
      memo_ = table_->memo();  // first, so that the rows that it names are among those
      rows_ = table_->rows();
    }
    while (row_ < rows_ && !table_->dropped()) {
      if (piece.full()) return CopyStep::more;
      add(piece);
    }
    while (memo_ != nullptr && !table_->dropped()) {
      if (piece.full()) return CopyStep::more;
      add_groups(piece);
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

  void add_groups(CopyPiece& piece) {
    const std::uint32_t groups = memo_->numbering().groups();
    std::vector<std::uint32_t> rows;
    std::vector<std::uint8_t> sizes;
    std::uint32_t group = group_;
    for (; group < groups && rows.size() < kIdsOfAPart; ++group) {
      const embedding::NumberedGroup of = memo_->numbering().group(group);
      sizes.push_back(static_cast<std::uint8_t>(of.rows));
      for (std::uint32_t i = 0; i < of.rows; ++i) rows.push_back(memo_->row_of(of, i));
    }
    const embedding::GroupsPart part{
        .first = group_ == 0, .last = group == groups, .rows = rows, .sizes = sizes};
    const auto room = piece.add(part.bytes());
    if (room.empty()) return;
    part.write(room, table_->id());
    group_ = group;
    if (part.last) memo_ = nullptr;
  }

  static constexpr std::size_t kIdsOfAPart = 4096;

  const std::shared_ptr<embedding::EmbeddingTable> table_;
  const embedding::EmbeddingTable::Recorded wait_for_;
  bool begun_ = false;
  std::uint64_t rows_ = 0;
  std::uint64_t row_ = 0;
  std::shared_ptr<const embedding::Memo> memo_;
  std::uint32_t group_ = 0;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_an_embedding_table(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  return std::make_unique<EmbeddingCopy>(
      std::static_pointer_cast<embedding::EmbeddingTable>(entry->object));
}

}  // namespace espalier::offload
