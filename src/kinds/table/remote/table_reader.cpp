// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/remote/table_reader.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/planted_table_bugs.hpp"

namespace espalier::place {
namespace {

enum Fault : std::uint32_t { kHeader = 1, kCounts = 2, kPageList = 3, kPage = 4 };

/// What is kept of both headers, behind the rows of a piece.
constexpr std::size_t kProofWords = (sizeof(wire::RowPageHeader) + sizeof(wire::BufferHeader)) / 8;
static_assert(sizeof(wire::RowPageHeader) % 8 == 0 && sizeof(wire::BufferHeader) % 8 == 0);

}  // namespace

/// A piece on its way.
struct TableReader::Ahead {
  LaneReads reads;
  std::vector<std::uint64_t> words;  // rows, the page's header, the table's
  std::uint64_t page = 0;
  wire::RowPageEntry entry{};
  std::uint64_t first_row = 0;
  std::size_t bytes = 0;  // of rows
  bool confirming = false;

  [[nodiscard]] std::byte* rows() { return reinterpret_cast<std::byte*>(words.data()); }
  [[nodiscard]] std::byte* page_header() { return rows() + bytes; }
  [[nodiscard]] std::byte* table_header() { return page_header() + sizeof(wire::RowPageHeader); }
};

TableReader::TableReader(fabric::QueuePair& pair, fabric::CompletionQueue& completions,
                         const fabric::RemoteRegion& region, const fabric::Properties& properties,
                         const TableTarget& target, Wait wait)
    : target_(target),
      rows_per_page_((wire::kRowPageBytes - sizeof(wire::RowPageHeader)) / target.row_bytes),
      wait_(std::move(wait)),
      port_(pair, completions, region, properties) {
  ESPALIER_ASSERT(target.row_bytes % 8 == 0 && target.row_bytes != 0 &&
                  target.row_bytes <= wire::kRowBytesMax);
  lane_.walk = std::noop_coroutine();
  lane_.ready = &ready_;
}

TableReader::~TableReader() = default;

// --- waiting -------------------------------------------------------------------------------------

void TableReader::poll() {
  port_.poll();
  while (!ready_.empty()) static_cast<void>(ready_.pop());
  for (const auto& ahead : ahead_) {
    if (!ahead->reads.waiting && !ahead->reads.failed && !ahead->confirming) {
      ask_confirmation(*ahead);
    }
  }
}

// What is thrown here ends the pair first: its READs go where the caller has them.
Result<void> TableReader::await(LaneReads& lane) {
  try {
    for (poll(); lane.waiting; poll()) {
      if (!wait_()) port_.fail();
    }
  } catch (...) {
    port_.fail();
    throw;
  }
  if (lane.failed) return fail(Code::connection_lost);
  return {};
}

Result<void> TableReader::read(std::uint64_t offset, std::byte* into, std::size_t bytes) {
  port_.want(lane_, offset, into, bytes);
  // A reference outside the region: the bytes that contained it are not a table's.
  if (lane_.failed && !port_.failed()) {
    lane_.failed = false;
    lane_.wanted.clear();
    lane_.bytes = 0;
    return fail(Code::corrupt, kPageList);
  }
  if (lane_.failed) return fail(Code::connection_lost);
  port_.send(lane_);
  return await(lane_);
}

// --- counts and the page list --------------------------------------------------------------------

bool TableReader::is_table(const wire::BufferHeader& header) const {
  return header.map_id == target_.table_id && header.generation == target_.generation &&
         header.superseded == wire::kLive;
}

Result<std::uint64_t> TableReader::take_count() {
  wire::TableHeader header{};
  constexpr std::size_t kBytes = offsetof(wire::TableHeader, pages);
  if (auto came = read(target_.header_offset, reinterpret_cast<std::byte*>(&header), kBytes);
      !came) {
    return std::unexpected(came.error());
  }
  // After the rows have come, so it covers them.
  if (auto came = read(target_.header_offset + kBytes, reinterpret_cast<std::byte*>(&pages_),
                       sizeof pages_);
      !came) {
    return std::unexpected(came.error());
  }
  // And after both, so they are this table's.
  wire::BufferHeader identity{};
  if (auto came =
          read(target_.header_offset, reinterpret_cast<std::byte*>(&identity), sizeof identity);
      !came) {
    return std::unexpected(came.error());
  }
  if (!is_table(identity)) return fail(Code::dropped);
  if (header.magic != wire::kTableMagic || header.format != wire::kTableFormat ||
      header.row_bytes != target_.row_bytes) {
    return fail(Code::corrupt, kHeader);
  }
  rows_ = header.rows;
  if (pages_ > wire::kRowPagesMax || rows_ > pages_ * rows_per_page_) {
    return fail(Code::corrupt, kCounts);
  }
  return rows_;
}

Result<std::uint64_t> TableReader::part_of_list(std::uint64_t part) {
  std::uint64_t offset = 0;
  const std::uint64_t at = target_.header_offset + wire::kTableDirectoryOffset + part * 8;
  if (auto came = read(at, reinterpret_cast<std::byte*>(&offset), sizeof offset); !came) {
    return std::unexpected(came.error());
  }
  if (offset == 0 || offset % wire::kBlockBytes != 0) return wrong_unless_dropped();
  return offset;
}

Result<wire::RowPageEntry> TableReader::first_entry(std::uint64_t part) {
  const auto offset = part_of_list(part);
  if (!offset) return std::unexpected(offset.error());
  wire::RowPageEntry first{};
  if (auto came = read(*offset + wire::kRowPageListOffset, reinterpret_cast<std::byte*>(&first),
                       sizeof first);
      !came) {
    return std::unexpected(came.error());
  }
  return first;
}

Result<void> TableReader::load_part(std::uint64_t part) {
  const auto offset = part_of_list(part);
  if (!offset) return std::unexpected(offset.error());
  part_number_ = ~std::uint64_t{0};
  part_.resize(wire::kRowPageListBytes / 8);
  if (auto came =
          read(*offset, reinterpret_cast<std::byte*>(part_.data()), wire::kRowPageListBytes);
      !came) {
    return std::unexpected(came.error());
  }
  part_number_ = part;
  return {};
}

Result<wire::RowPageEntry> TableReader::entry(std::uint64_t page) {
  const std::uint64_t part = page / wire::kRowPageListEntries;
  if (part != part_number_) {
    if (auto loaded = load_part(part); !loaded) return std::unexpected(loaded.error());
  }
  wire::RowPageEntry found{};
  const std::size_t at = wire::kRowPageListOffset + page % wire::kRowPageListEntries * sizeof found;
  std::memcpy(&found, reinterpret_cast<const std::byte*>(part_.data()) + at, sizeof found);
  return found;
}

/// What was read is no table's: for it is none any more, or it never was.
std::unexpected<Error> TableReader::wrong_unless_dropped() {
  wire::BufferHeader identity{};
  const auto came =
      read(target_.header_offset, reinterpret_cast<std::byte*>(&identity), sizeof identity);
  if (!came) return std::unexpected(came.error());
  return is_table(identity) ? fail(Code::corrupt, kPageList) : fail(Code::dropped);
}

Result<void> TableReader::seek(std::uint64_t first, std::uint64_t end) {
  ESPALIER_ASSERT(first < end && end <= rows_ && ahead_.empty());
  position_ = first;
  end_ = end;
  auto found = find_page(first);
  if (!found && found.error().code == Code::corrupt) return wrong_unless_dropped();
  return found;
}

Result<void> TableReader::find_page(std::uint64_t first) {
  // The part, then the page, whose first row is the last that is at most `first`.
  std::uint64_t low = 0;
  std::uint64_t high = (pages_ + wire::kRowPageListEntries - 1) / wire::kRowPageListEntries;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto of_middle = first_entry(middle);
    if (!of_middle) return std::unexpected(of_middle.error());
    (of_middle->first_row <= first ? low : high) = middle;
  }
  low *= wire::kRowPageListEntries;
  high = std::min<std::uint64_t>(low + wire::kRowPageListEntries, pages_);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto of_middle = entry(middle);
    if (!of_middle) return std::unexpected(of_middle.error());
    (of_middle->first_row <= first ? low : high) = middle;
  }
  return enter_page(low);
}

Result<void> TableReader::enter_page(std::uint64_t page) {
  const auto own = entry(page);
  if (!own) return std::unexpected(own.error());
  page_ = page;
  entry_ = *own;
  page_end_ = rows_;
  if (page + 1 < pages_) {
    const auto behind = entry(page + 1);
    if (!behind) return std::unexpected(behind.error());
    page_end_ = std::min(behind->first_row, rows_);
  }
  const bool holds = entry_.first_row <= position_ && position_ < page_end_ &&
                     page_end_ - entry_.first_row <= rows_per_page_;
  if (!holds || wire::Ref{entry_.page}.offset() % wire::kRowPageBytes != 0) {
    return wrong_unless_dropped();
  }
  return {};
}

// --- rows ----------------------------------------------------------------------------------------

void TableReader::ask(std::unique_ptr<Ahead> ahead) {
  const std::uint64_t page = wire::Ref{ahead->entry.page}.offset();
  const std::uint64_t slot = ahead->first_row - ahead->entry.first_row;
  ahead->words.resize(ahead->bytes / 8 + kProofWords);
  ahead->reads.walk = std::noop_coroutine();
  ahead->reads.ready = &ready_;
  port_.want(ahead->reads, page + sizeof(wire::RowPageHeader) + slot * target_.row_bytes,
             ahead->rows(), ahead->bytes);
  ahead_.push_back(std::move(ahead));
  Ahead& asked = *ahead_.back();
  if (asked.reads.failed) return;
  // In order, the last bytes are those of the headers.
  if (port_.reads_in_order()) return ask_confirmation(asked);
  port_.send(asked.reads);
}

void TableReader::ask_confirmation(Ahead& ahead) {
  ahead.confirming = true;
  port_.want(ahead.reads, wire::Ref{ahead.entry.page}.offset(), ahead.page_header(),
             sizeof(wire::RowPageHeader));
  port_.want(ahead.reads, target_.header_offset, ahead.table_header(), sizeof(wire::BufferHeader));
  if (!ahead.reads.failed) port_.send(ahead.reads);
}

Result<void> TableReader::fill() {
  while (ahead_.size() < kPiecesAhead && position_ < end_) {
    if (position_ == page_end_) {
      if (auto entered = enter_page(page_ + 1); !entered) return entered;
    }
    const std::uint64_t most = std::max<std::uint64_t>(kPieceBytes / target_.row_bytes, 1);
    const std::uint64_t rows = std::min({most, page_end_ - position_, end_ - position_});
    auto ahead = std::make_unique<Ahead>();
    ahead->page = page_;
    ahead->entry = entry_;
    ahead->first_row = position_;
    ahead->bytes = rows * target_.row_bytes;
    position_ += rows;
    ask(std::move(ahead));
  }
  return {};
}

Result<void> TableReader::confirmed(Ahead& ahead) const {
  if (table::planted(table::Bug::read_not_confirmed)) return {};
  wire::BufferHeader identity{};
  std::memcpy(&identity, ahead.table_header(), sizeof identity);
  if (!is_table(identity)) return fail(Code::dropped);
  wire::RowPageHeader page{};
  std::memcpy(&page, ahead.page_header(), sizeof page);
  const bool same =
      page.table_id == target_.table_id && page.superseded == wire::kLive &&
      (page.generation & wire::kGenerationMask) == wire::Ref{ahead.entry.page}.generation() &&
      page.page == ahead.page && page.first_row == ahead.entry.first_row &&
      page.row_bytes == target_.row_bytes;
  if (!same) return fail(Code::corrupt, kPage);
  return {};
}

Result<TableReader::Piece> TableReader::next() {
  in_hand_.reset();
  if (auto filled = fill(); !filled) {
    if (filled.error().code == Code::corrupt) return wrong_unless_dropped();
    return std::unexpected(filled.error());
  }
  if (ahead_.empty()) return Piece{};
  Ahead& front = *ahead_.front();
  while (!front.reads.failed && (front.reads.waiting || !front.confirming)) {
    if (auto came = await(front.reads); !came) return std::unexpected(came.error());
  }
  // What cannot be asked for lies outside the region.
  if (front.reads.failed && !port_.failed()) return wrong_unless_dropped();
  if (front.reads.failed) return fail(Code::connection_lost);
  if (auto good = confirmed(front); !good) {
    // The table's header may have been read before the page's, and the drop have come between.
    if (good.error().code == Code::corrupt) return wrong_unless_dropped();
    return std::unexpected(good.error());
  }
  in_hand_ = std::move(ahead_.front());
  ahead_.pop_front();
  Piece piece;
  piece.rows = {in_hand_->rows(), in_hand_->bytes};
  piece.first_row = in_hand_->first_row;
  wire::RowPageHeader page{};
  std::memcpy(&page, in_hand_->page_header(), sizeof page);
  piece.cipher_page = page.cipher_page;
  piece.page_offset = sizeof(wire::RowPageHeader) +
                      (piece.first_row - in_hand_->entry.first_row) * target_.row_bytes;
  return piece;
}

}  // namespace espalier::place
