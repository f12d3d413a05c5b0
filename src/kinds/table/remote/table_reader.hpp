// SPDX-License-Identifier: Apache-2.0
// Reads rows of a table by one-sided READs (docs/formats/table.md): counts first, then the page
// list, then rows, a few pieces ahead. After the last byte of each piece it reads the page's header
// and the table's again: a piece is valid only if the page is still that page, and the table was
// not dropped. Rows below the count never change, so all rows read under one count are a consistent
// snapshot, however long it takes.
//
// A READ succeeds only while the session's key is valid, and the key is revoked before its lease
// ends. The reader's owner holds the lease, and checks it before it trusts the data.
//
// All bytes are untrusted: they may lead to an error, never outside the region.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/task.hpp"
#include "espalier/error.hpp"
#include "kinds/table/format/table.hpp"
#include "reach/read_port.hpp"

namespace espalier::place {

/// The table to read.
struct TableTarget {
  std::uint64_t header_offset = 0;  ///< in the region
  std::uint32_t table_id = 0;
  std::uint32_t generation = 0;  ///< of its header
  std::uint32_t row_bytes = 0;
};

class TableReader {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  static constexpr std::size_t kPiecesAhead = 4;

  /// Called repeatedly while waiting for bytes, e.g. to renew the lease or to sleep. False: stop
  /// waiting.
  using Wait = std::function<bool()>;

  /// Contiguous rows, aligned to 8, of one page.
  struct Piece {
    std::span<std::byte> rows;  ///< the caller's until the next call; none: the end
    std::uint64_t first_row = 0;
    /// Of an encrypted table: their position in counter blocks.
    std::uint64_t cipher_page = 0;
    std::uint64_t page_offset = 0;
  };

  /// `pair`, `completions` and `region` as for a ReadPort; they outlive the reader.
  /// Requires: a row's size is a multiple of 8, and at most wire::kRowBytesMax.
  TableReader(fabric::QueuePair& pair, fabric::CompletionQueue& completions,
              const fabric::RemoteRegion& region, const fabric::Properties& properties,
              const TableTarget& target, Wait wait);
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  /// Reads the count of visible rows, under which seek() and next() read. Cost: three round trips.
  /// Errors, of all calls: dropped; corrupt (not this table); connection_lost (a READ failed, or
  /// waiting was stopped), and then every call fails.
  Result<std::uint64_t> take_count();
  /// Positions at rows [first, end). Cost: some round trips. Requires: first < end <= take_count().
  Result<void> seek(std::uint64_t first, std::uint64_t end);
  Result<Piece> next();

  [[nodiscard]] const tree::WalkTraffic& traffic() const { return port_.traffic(); }

 private:
  struct Ahead;

  Result<void> await(LaneReads& lane);
  Result<void> read(std::uint64_t offset, std::byte* into, std::size_t bytes);
  Result<std::uint64_t> part_of_list(std::uint64_t part);
  Result<wire::RowPageEntry> first_entry(std::uint64_t part);
  Result<wire::RowPageEntry> entry(std::uint64_t page);
  Result<void> load_part(std::uint64_t part);
  Result<void> find_page(std::uint64_t first);
  Result<void> enter_page(std::uint64_t page);
  Result<void> fill();
  void ask(std::unique_ptr<Ahead> ahead);
  void ask_confirmation(Ahead& ahead);
  void poll();
  [[nodiscard]] Result<void> confirmed(Ahead& ahead) const;
  [[nodiscard]] std::unexpected<Error> wrong_unless_dropped();
  [[nodiscard]] bool is_table(const wire::BufferHeader& header) const;

  const TableTarget target_;
  const std::uint64_t rows_per_page_;
  const Wait wait_;
  ReadPort port_;
  base::ReadyQueue ready_{2 * kPiecesAhead};
  LaneReads lane_;  // of READs that are awaited immediately
  std::uint64_t rows_ = 0;
  std::uint64_t pages_ = 0;
  std::vector<std::uint64_t> part_;  // of the page list, as received
  std::uint64_t part_number_ = ~std::uint64_t{0};
  // The page of the next piece, and the row after its last one.
  std::uint64_t page_ = 0;
  wire::RowPageEntry entry_{};
  std::uint64_t page_end_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::deque<std::unique_ptr<Ahead>> ahead_;  // in the order of their rows
  std::unique_ptr<Ahead> in_hand_;            // the caller's
};

}  // namespace espalier::place
