// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/embedding_table.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/embedding/memo.hpp"
#include "kinds/embedding/page_buffer.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/query_lists.hpp"
#include "kinds/embedding/redo_record.hpp"
#include "memory/region.hpp"
#include "memory/size_class.hpp"

namespace espalier::embedding {
namespace {

using base::load_shared;
using base::store_shared;

constexpr memory::SizeClass kHeaderClass = memory::relation_class_of(kHeaderBytes);
static_assert(memory::class_bytes(kHeaderClass) == kHeaderBytes);

constexpr std::size_t kRowsAt = offsetof(EmbeddingHeader, rows);
constexpr std::size_t kPagesAt = offsetof(EmbeddingHeader, pages);

/// A record of rows, all but handed over. Errors: those of the sink.
Result<catalog::RedoRoom> room_for(const EmbeddingTable& table, std::size_t bytes) {
  return catalog::RedoRoom::reserve(table.redo(), sizeof(RowsRecord) + bytes);
}

void write_record(const catalog::RedoRoom& room, const EmbeddingTable& table, RedoType type,
                  std::uint64_t row, std::span<const std::byte> bytes) {
  if (!room) return;
  RowsRecord record{};
  record.head = catalog::redo_head(ObjectKind::embedding, table.id(),
                                   static_cast<std::uint8_t>(type), sizeof record + bytes.size());
  record.row = row;
  record.rows = bytes.size() / table.row_bytes();
  record.row_bytes = table.row_bytes();
  catalog::RedoWriter writer(room.bytes());
  writer.part(record);
  writer.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

/// What an append needs besides the last page.
struct EmbeddingTable::Need {
  std::uint64_t pages = 0;
  bool list = false;  // a page list of its own
};

/// What an append has of it: taken first, so that nothing can fail afterwards. Gives back what was
/// not used.
struct EmbeddingTable::Growth {
  explicit Growth(memory::BufferPool& from) : pool(from) {}
  ~Growth() {
    for (const std::uint64_t offset : pages) pool.release(offset, kPageClass);
    if (list != 0) pool.release(list, kPageClass);
  }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;
  [[nodiscard]] bool has(const Need& need) const {
    return pages.size() >= need.pages && (list != 0 || !need.list);
  }

  memory::BufferPool& pool;
  std::vector<std::uint64_t> pages;  // offsets
  std::uint64_t list = 0;            // offset of a page list; 0: none
};

EmbeddingTable::EmbeddingTable(memory::BufferPool& pool, std::uint32_t id, std::string name,
                               const EmbeddingOptions& options, std::uint64_t first_list_entries)
    : pool_(pool),
      memory_(pool.at(0)),
      id_(id),
      options_(options),
      row_bytes_(row_bytes_of(options.type, options.dimension)),
      divider_(rows_per_page(row_bytes_)),
      first_list_entries_(first_list_entries),
      name_(std::move(name)),
      groupings_(static_cast<std::uint32_t>(base::mix64(base::monotonic_ns() ^ id))) {
  ESPALIER_ASSERT(first_list_entries <= kFirstListEntries);
}

Result<std::unique_ptr<EmbeddingTable>> EmbeddingTable::create(memory::BufferPool& pool,
                                                               std::uint32_t id, std::string name,
                                                               const EmbeddingOptions& options,
                                                               std::uint64_t first_list_entries) {
  std::unique_ptr<EmbeddingTable> table(
      new EmbeddingTable(pool, id, std::move(name), options, first_list_entries));
  if (auto opened = table->open(); !opened) return std::unexpected(opened.error());
  return table;
}

Result<void> EmbeddingTable::open() {
  const auto offset = pool_.allocate_or_reclaim(kHeaderClass);
  if (!offset) return std::unexpected(offset.error());
  header_offset_ = *offset;
  header_ = pool_.at(*offset);
  begin_buffer(header_, kHeaderBytes, id_);
  EmbeddingHeader header{};
  header.magic = kEmbeddingMagic;
  header.format = kEmbeddingFormat;
  header.row_bytes = row_bytes_;
  header.shape = shape();
  header.list = header_offset_ + kFirstListOffset;
  header.list_buffer = ref_of(pool_, header_offset_);
  constexpr std::size_t kBegin = sizeof(wire::BufferHeader);
  base::copy_shared(header_ + kBegin, reinterpret_cast<const std::byte*>(&header) + kBegin,
                    sizeof header - kBegin);
  list_.store(header_ + kFirstListOffset, std::memory_order_release);
  set_live(header_);
  return {};
}

EmbeddingTable::~EmbeddingTable() {
  if (mark_ != nullptr) mark_->leave(*this);
  if (header_ == nullptr) return;
  while (!free_some(std::numeric_limits<std::uint32_t>::max())) {
  }
  pool_.release(header_offset_, kHeaderClass);
}

bool EmbeddingTable::free_some(std::uint32_t steps) {
  ESPALIER_DEBUG_ASSERT(pending_ == nullptr);
  if (memo_ != nullptr && !memo_->give_back(steps)) return false;
  const std::byte* const list = list_.load(std::memory_order_relaxed);
  for (; freed_pages_ < pages(); ++freed_pages_, --steps) {
    if (steps == 0) return false;
    const auto ref = load_shared<std::uint64_t>(list + freed_pages_ * sizeof(PageEntry));
    pool_.release(wire::Ref{ref}.offset(), kPageClass);
    freed_bytes_ += kPageBytes;
  }
  if (const std::uint64_t own = own_list_.exchange(0); own != 0) {
    pool_.release(own, kPageClass);
    freed_bytes_ += kPageBytes;
  }
  return true;
}

std::uint64_t EmbeddingTable::freed_bytes() const {
  return freed_bytes_ + (memo_ == nullptr ? 0 : memo_->freed_bytes());
}

Result<std::uint64_t> EmbeddingTable::append(std::span<const std::byte> rows, std::uint32_t named) {
  if (rows.empty() || rows.size() % row_bytes_ != 0) return fail(Code::invalid_argument);
  auto room = room_for(*this, rows.size());
  if (!room) return std::unexpected(room.error());
  const std::uint64_t count = rows.size() / row_bytes_;
  Growth growth(pool_);
  std::unique_lock lock(appends_mutex_, std::defer_lock);
  const auto need = reserve_and_lock(count, named, growth, lock);
  if (!need) return std::unexpected(need.error());
  if (!reserve_waiting_rows()) return fail(Code::out_of_memory);
  const std::uint64_t first = all_rows();
  use(growth, *need);
  write_record(*room, *this, RedoType::appended, first, rows);
  if (planted(Bug::rows_counted_early)) store_shared(header_ + kRowsAt, first + count);
  recorded_rows_.store(first + count);  // first: see recorded()
  const bool late = planted(Bug::record_after_publish);
  const std::uint64_t sequence = late ? 0 : room->hand_over();
  fill(first, rows);
  all_rows_.store(first + count);
  show_rows(first + count, sequence);
  room->hand_over();
  return first;
}

Result<EmbeddingTable::Need> EmbeddingTable::need_of(std::uint64_t count,
                                                     std::uint32_t named) const {
  if (dropped() || !has_name(named)) return fail(Code::not_found, id_);
  const std::uint64_t before = all_rows();
  if (count > kRowsMax - before) return fail(Code::out_of_memory, 0);
  const std::uint64_t there = pages();
  const std::uint64_t wanted = base::divide_up(before + count, std::uint64_t{divider_.rows()});
  if (wanted > kPagesMax) return fail(Code::out_of_memory, 0);
  return Need{wanted - std::min(wanted, there), wanted > first_list_entries_ && own_list_ == 0};
}

Result<void> EmbeddingTable::reserve(const Need& need, Growth& growth) {
  growth.pages.reserve(need.pages);  // so that no page is lost on its way into it
  while (!growth.has(need)) {
    const auto offset = pool_.allocate_or_reclaim(kPageClass);
    if (!offset) return std::unexpected(offset.error());
    if (growth.pages.size() < need.pages) {
      growth.pages.push_back(*offset);
    } else {
      growth.list = *offset;
    }
  }
  return {};
}

// Memory is taken without the lock, for it may have to be reclaimed first. Where others have
// appended meanwhile it may lack one page more than it has, but never more than so many rows have.
Result<EmbeddingTable::Need> EmbeddingTable::reserve_and_lock(std::uint64_t count,
                                                              std::uint32_t named, Growth& growth,
                                                              std::unique_lock<std::mutex>& lock) {
  for (;;) {
    auto need = need_of(count, named);
    if (!need) return need;
    if (const auto taken = reserve(*need, growth); !taken) return std::unexpected(taken.error());
    lock.lock();
    need = need_of(count, planted(Bug::name_asked_once) ? 0 : named);
    if (!need || growth.has(*need)) return need;
    lock.unlock();
  }
}

void EmbeddingTable::use(Growth& growth, const Need& need) {
  if (need.list) move_list(std::exchange(growth.list, 0));
  std::uint64_t number = pages();
  std::byte* const list = const_cast<std::byte*>(list_.load(std::memory_order_relaxed));
  for (std::uint64_t i = 0; i < need.pages; ++i) {
    store_shared(list + number * sizeof(PageEntry), new_page(growth.pages.back(), number),
                 std::memory_order_release);
    growth.pages.pop_back();
    ++number;
  }
  store_shared(header_ + kPagesAt, number, std::memory_order_release);
}

// A reader that has the old list sees no sequence move any more, and so asks which list it is.
void EmbeddingTable::move_list(std::uint64_t offset) {
  std::byte* const buffer = pool_.at(offset);
  begin_buffer(buffer, kPageBytes, id_);  // long, so before those who replace rows must wait
  const auto kept_out = hold_replacements();
  base::copy_shared(buffer + kListOffset, list_.load(std::memory_order_relaxed),
                    pages() * sizeof(PageEntry));
  set_live(buffer);
  own_list_ = offset;
  store_shared(header_ + offsetof(EmbeddingHeader, list_buffer), ref_of(pool_, offset));
  store_shared(header_ + offsetof(EmbeddingHeader, list), offset + kListOffset,
               std::memory_order_release);
  list_.store(buffer + kListOffset, std::memory_order_release);
}

std::uint64_t EmbeddingTable::new_page(std::uint64_t offset, std::uint64_t page) const {
  std::byte* const buffer = pool_.at(offset);
  begin_buffer(buffer, sizeof(PageHeader), id_);
  store_shared(buffer + offsetof(PageHeader, page), page);
  store_shared(buffer + offsetof(PageHeader, first_row), page * divider_.rows());
  store_shared(buffer + offsetof(PageHeader, row_bytes), row_bytes_);
  set_live(buffer);
  return ref_of(pool_, offset);
}

std::byte* EmbeddingTable::place_of(std::uint64_t row) const {
  const std::uint32_t page = divider_.page_of(static_cast<std::uint32_t>(row));
  const std::uint64_t in_page = row - std::uint64_t{page} * divider_.rows();
  return const_cast<std::byte*>(page_list().rows_of(page)) + in_page * row_bytes_;
}

void EmbeddingTable::fill(std::uint64_t first_row, std::span<const std::byte> rows) {
  for (std::uint64_t row = first_row; !rows.empty();) {
    const std::uint64_t in_page = row % divider_.rows();
    const std::uint64_t some =
        std::min<std::uint64_t>(divider_.rows() - in_page, rows.size() / row_bytes_);
    store_words(place_of(row), rows.data(), some * row_bytes_);
    rows = rows.subspan(some * row_bytes_);
    row += some;
  }
}

Result<void> EmbeddingTable::replace(std::uint64_t row, std::span<const std::byte> bytes,
                                     std::uint32_t named) {
  if (bytes.size() != row_bytes_) return fail(Code::invalid_argument);
  if (!has_name(named)) return fail(Code::not_found, id_);
  auto room = room_for(*this, bytes.size());
  if (!room) return std::unexpected(room.error());
  write_record(*room, *this, RedoType::replaced, row, bytes);
  const auto lock = lock_replacements();
  const bool is_it = planted(Bug::name_asked_once) || has_name(named);
  if (dropped() || !is_it) return fail(Code::not_found, id_);
  if (row >= rows()) return fail(Code::invalid_argument, static_cast<std::uint32_t>(row));
  if (waits_for_records()) return replace_when_durable(*room, row, bytes);
  recorded_replacements_.fetch_add(1);
  if (!planted(Bug::record_after_publish)) room->hand_over();
  const auto number = static_cast<std::uint32_t>(row);
  {
    const auto stores = hold_stores();
    unmemoise(number);
    store_row(row, bytes);
  }
  std::uint64_t sums = ~std::uint64_t{0};
  compute_sums_of(number, sums);
  {
    const auto stores = hold_stores();
    memoise(number);
  }
  room->hand_over();
  rows_replaced_.fetch_add(1);
  return {};
}

// Those who wait are counted, for who computes the sums of groups to let them in.
std::unique_lock<std::mutex> EmbeddingTable::lock_replacements() const {
  replacements_waiting_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(replacements_mutex_);
  replacements_waiting_.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

EmbeddingTable::HeldRows EmbeddingTable::hold_replacements() const {
  auto ordered = lock_replacements();
  return {std::move(ordered), hold_stores()};
}

void EmbeddingTable::store_row(std::uint64_t row, std::span<const std::byte> bytes) {
  const std::uint32_t page = divider_.page_of(static_cast<std::uint32_t>(row));
  std::byte* const sequence = const_cast<std::byte*>(list_.load(std::memory_order_relaxed)) +
                              std::size_t{page} * sizeof(PageEntry) + offsetof(PageEntry, sequence);
  const std::uint64_t before = load_shared<std::uint64_t>(sequence);
  ESPALIER_DEBUG_ASSERT(before % 2 == 0);
  const bool moves = !planted(Bug::sequence_not_moved);
  if (moves) store_shared(sequence, before + 1);
  base::release_fence();
  store_words(place_of(row), bytes.data(), bytes.size());
  if (moves) store_shared(sequence, before + 2, std::memory_order_release);
}

std::uint64_t EmbeddingTable::rows() const {
  return load_shared<std::uint64_t>(header_ + kRowsAt, std::memory_order_acquire);
}

std::uint64_t EmbeddingTable::pages() const {
  return load_shared<std::uint64_t>(header_ + kPagesAt, std::memory_order_acquire);
}

void EmbeddingTable::set_dropped() {
  dropped_.store(true, std::memory_order_release);
  store_shared<std::uint64_t>(header_ + offsetof(wire::BufferHeader, superseded), 0,
                              std::memory_order_release);
  forget_waiting();
}

std::string EmbeddingTable::name() const {
  const std::lock_guard lock(name_mutex_);
  return name_;
}

// Who writes by a name has asked for it under one of these locks: so nothing is written by the old
// name once the rename is answered.
void EmbeddingTable::set_renamed(std::string& name, std::uint32_t rename) noexcept {
  const std::lock_guard appends(appends_mutex_);
  const auto replacements = lock_replacements();
  {
    const std::lock_guard lock(name_mutex_);
    name_.swap(name);
  }
  rename_.store(rename, std::memory_order_release);
  store_shared<std::uint64_t>(header_ + offsetof(EmbeddingHeader, rename), rename,
                              std::memory_order_release);
}

void EmbeddingTable::count(const ReductionCounts& counts) const {
  reductions_.fetch_add(counts.bags, std::memory_order_relaxed);
  rows_gathered_.fetch_add(counts.rows, std::memory_order_relaxed);
  if (counts.ids != counts.rows) {
    sums_gathered_.fetch_add(counts.sums, std::memory_order_relaxed);
    rows_saved_.fetch_add(counts.ids - counts.rows, std::memory_order_relaxed);
  }
  if (counts.rereads != 0) rereads_.fetch_add(counts.rereads, std::memory_order_relaxed);
}

}  // namespace espalier::embedding
