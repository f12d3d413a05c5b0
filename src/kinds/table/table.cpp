// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/table.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/durable_mark.hpp"
#include "base/try_reserve.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/table/append_run.hpp"
#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/table_growth.hpp"

namespace espalier::table {
namespace {

using base::load_shared;
using base::store_shared;

constexpr memory::SizeClass kHeaderClass = memory::relation_class_of(wire::kTableHeaderBytes);
constexpr memory::SizeClass kListClass = memory::relation_class_of(wire::kRowPageListBytes);
constexpr memory::SizeClass kPageClass = memory::relation_class_of(wire::kRowPageBytes);
static_assert(memory::class_bytes(kHeaderClass) == wire::kTableHeaderBytes);
static_assert(memory::class_bytes(kListClass) == wire::kRowPageListBytes);
static_assert(memory::class_bytes(kPageClass) == memory::kExtentBytes);
static_assert(wire::kRowPageBytes == memory::kExtentBytes);

constexpr std::size_t kRowsAt = offsetof(wire::TableHeader, rows);
constexpr std::size_t kPagesAt = offsetof(wire::TableHeader, pages);
constexpr std::size_t kCipherPageAt = offsetof(wire::RowPageHeader, cipher_page);

std::uint32_t generation_of(const std::byte* buffer) {
  return load_shared<std::uint32_t>(buffer + offsetof(wire::BufferHeader, generation));
}

/// Fills a buffer with zeros behind its header, and says whose it is. Readers from elsewhere may
/// look at it with an old reference.
void open_buffer(std::byte* buffer, std::size_t bytes, std::uint32_t table_id) {
  for (std::size_t at = sizeof(wire::BufferHeader); at < bytes; at += 8) {
    store_shared<std::uint64_t>(buffer + at, 0);
  }
  store_shared(buffer + offsetof(wire::BufferHeader, map_id), table_id);
  store_shared(buffer + offsetof(wire::BufferHeader, created), wire::kNoNode);
}

/// From now on the buffer is one in use, with all that lies in it.
void go_live(std::byte* buffer) {
  store_shared(buffer + offsetof(wire::BufferHeader, superseded), wire::kLive,
               std::memory_order_release);
}

}  // namespace

void copy_words_once(std::byte* to, const std::byte* from, std::size_t bytes) {
#pragma GCC unroll 8
  for (std::size_t at = 0; at < bytes; at += 8) {
    base::store_plain(to + at, load_shared<std::uint64_t>(from + at));
  }
}

Table::Table(memory::BufferPool& pool, std::uint32_t id, std::string name, Schema schema,
             TableOptions options)
    : pool_(pool),
      id_(id),
      name_(std::move(name)),
      schema_(std::move(schema)),
      check_(schema_),
      encrypted_(options.encrypted),
      salt_(options.salt.value_or(SaltBytes{})) {}

Result<std::unique_ptr<Table>> Table::create(memory::BufferPool& pool, std::uint32_t id,
                                             std::string name, Schema schema,
                                             TableOptions options) {
  ESPALIER_ASSERT(options.encrypted == options.salt.has_value());
  std::unique_ptr<Table> table(new Table(pool, id, std::move(name), std::move(schema), options));
  if (auto opened = table->open(); !opened) return std::unexpected(opened.error());
  return table;
}

Result<void> Table::open() {
  const auto offset = pool_.allocate_or_reclaim(kHeaderClass);
  if (!offset) return std::unexpected(offset.error());
  header_offset_ = *offset;
  header_ = pool_.at(*offset);
  open_buffer(header_, wire::kTableHeaderBytes, id_);

  std::vector<std::byte> encoded(schema_.encoded_bytes());
  schema_.encode(encoded);
  wire::TableHeader header{};
  header.magic = wire::kTableMagic;
  header.format = wire::kTableFormat;
  header.row_bytes = schema_.row_bytes();
  header.schema_bytes = static_cast<std::uint32_t>(encoded.size());
  if (encrypted_) {
    header.cipher = static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr);
    std::memcpy(header.salt, salt_.data(), salt_.size());
  }
  constexpr std::size_t kBegin = sizeof(wire::BufferHeader);
  base::copy_shared(header_ + kBegin, reinterpret_cast<const std::byte*>(&header) + kBegin,
                    sizeof header - kBegin);
  base::copy_shared(header_ + wire::kTableSchemaOffset, encoded.data(), encoded.size());
  go_live(header_);
  return {};
}

void Table::record_to(catalog::RedoSink* sink) {
  if (mark_ != nullptr) mark_->leave(*this);
  const bool early = !encrypted_ && promises_async(sink);
  const bool waits = sink != nullptr && sink->mark().is_of_records() && !early;
  mark_ = waits ? &sink->mark() : nullptr;
  Object::record_to(sink);
  if (early) answer_early();
}

Table::~Table() {
  if (mark_ != nullptr) mark_->leave(*this);
  if (header_ == nullptr) return;
  if (reserved_) give_back(*reserved_);
  const std::uint64_t count = pages();
  for (std::uint64_t i = 0; i < count; ++i) {
    pool_.release(wire::Ref{page(i).page}.offset(), kPageClass);
  }
  for (std::uint64_t part = 0; part * wire::kRowPageListEntries < count; ++part) {
    pool_.release(static_cast<std::uint64_t>(list_part(part) - pool_.at(0)), kListClass);
  }
  pool_.release(header_offset_, kHeaderClass);
}

std::expected<std::uint64_t, AppendError> Table::append(std::span<const std::byte> rows) {
  ESPALIER_ASSERT(rows.size() % schema_.row_bytes() == 0);
  ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(rows.data()) % wire::kRowAlignment == 0);
  return append(SpanSource(rows), rows.size() / schema_.row_bytes());
}

std::expected<std::uint64_t, AppendError> Table::append(const AppendSource& source,
                                                        std::uint64_t count) {
  AppendRun run(*this, source, count);
  run.wait_for_turn();
  while (run.step() != AppendRun::Step::done) {
  }
  return run.result();
}

Result<void> Table::reserve(std::uint64_t count, Growth& growth) {
  growth.rows_before = all_rows_;
  growth.pages_before = pages();
  const std::uint64_t page_rows = schema_.rows_per_page();
  if (growth.pages_before > 0) {
    const wire::RowPageEntry last = page(growth.pages_before - 1);
    const std::uint64_t used = growth.rows_before - last.first_row;
    ESPALIER_ASSERT(used > 0 && used <= page_rows);
    growth.tail = pool_.at(wire::Ref{last.page}.offset()) + sizeof(wire::RowPageHeader) +
                  used * schema_.row_bytes();
    growth.tail_rooms = tail_closed_ ? 0 : page_rows - used;
  }
  if (count <= growth.tail_rooms) return {};
  const std::uint64_t pages = base::divide_up(count - growth.tail_rooms, page_rows);
  if (pages > wire::kRowPagesMax - growth.pages_before) return pool_.region().out_of_memory();
  const auto parts = [](std::uint64_t n) {
    return base::divide_up(n, std::uint64_t{wire::kRowPageListEntries});
  };
  while (growth.list_parts.size() <
         parts(growth.pages_before + pages) - parts(growth.pages_before)) {
    const auto offset = pool_.allocate_or_reclaim(kListClass);
    if (!offset) return std::unexpected(offset.error());
    growth.list_parts.push_back(*offset);
  }
  while (growth.pages.size() < pages) {
    const auto offset = pool_.allocate_or_reclaim(kPageClass);
    if (!offset) return std::unexpected(offset.error());
    growth.pages.push_back(*offset);
  }
  return {};
}

void Table::give_back(const Growth& growth) {
  for (const std::uint64_t offset : growth.pages) pool_.release(offset, kPageClass);
  for (const std::uint64_t offset : growth.list_parts) pool_.release(offset, kListClass);
}

void Table::publish(std::uint64_t rows, const Growth& growth, std::uint64_t sequence) {
  std::uint64_t number = growth.pages_before;
  std::uint64_t first_row = growth.rows_before + growth.tail_rooms;
  std::size_t next_part = 0;
  for (const std::uint64_t offset : growth.pages) {
    const std::uint64_t part = number / wire::kRowPageListEntries;
    if (number % wire::kRowPageListEntries == 0) {
      const std::uint64_t list = growth.list_parts[next_part++];
      open_buffer(pool_.at(list), wire::kRowPageListBytes, id_);
      go_live(pool_.at(list));
      store_shared(header_ + wire::kTableDirectoryOffset + 8 * part, list,
                   std::memory_order_release);
    }
    const std::uint64_t cipher_page = growth.cipher_page + (number - growth.pages_before);
    const wire::RowPageEntry entry{new_page(offset, number, first_row, cipher_page), first_row};
    base::copy_shared(list_part(part) + wire::kRowPageListOffset +
                          number % wire::kRowPageListEntries * sizeof entry,
                      reinterpret_cast<const std::byte*>(&entry), sizeof entry);
    ++number;
    first_row += schema_.rows_per_page();
  }
  ESPALIER_ASSERT(next_part == growth.list_parts.size());
  if (!growth.pages.empty()) tail_closed_ = false;
  store_shared(header_ + kPagesAt, number, std::memory_order_release);
  all_rows_ = rows;
  if (mark_ == nullptr || planted(Bug::rows_before_durable)) {
    // The one store that makes the append visible.
    store_shared(header_ + kRowsAt, rows, std::memory_order_release);
    return;
  }
  if (sequence == 0) return;  // no row came, and those before may wait
  {
    const std::lock_guard lock(waiting_mutex_);
    waiting_.push_back({rows, sequence});  // there is room
  }
  mark_->wait_for_rise(*this);  // before the mark is looked at
  release_rows();
}

// Room for the rows of one append that wait for its record.
bool Table::reserve_waiting() noexcept {
  const std::lock_guard lock(waiting_mutex_);
  return mark_ == nullptr || base::try_reserve(waiting_, 1);
}

// Makes the rows visible whose records are durable.
void Table::release_rows() noexcept {
  const std::lock_guard lock(waiting_mutex_);
  const std::uint64_t durable = mark_->durable();
  const auto end = std::ranges::find_if(
      waiting_, [&](const WaitingRows& each) { return each.sequence > durable; });
  if (end == waiting_.begin()) return;
  store_shared(header_ + kRowsAt, std::prev(end)->rows, std::memory_order_release);
  waiting_.erase(waiting_.begin(), end);
}

bool Table::release_durable() noexcept {
  release_rows();
  const std::lock_guard lock(waiting_mutex_);
  return !waiting_.empty();
}

std::uint64_t Table::new_page(std::uint64_t offset, std::uint64_t page, std::uint64_t first_row,
                              std::uint64_t cipher_page) const {
  std::byte* const buffer = pool_.at(offset);
  open_buffer(buffer, sizeof(wire::RowPageHeader), id_);
  store_shared(buffer + offsetof(wire::RowPageHeader, page), page);
  store_shared(buffer + offsetof(wire::RowPageHeader, first_row), first_row);
  store_shared(buffer + offsetof(wire::RowPageHeader, row_bytes), schema_.row_bytes());
  if (encrypted_) store_shared(buffer + kCipherPageAt, cipher_page);
  go_live(buffer);
  return wire::Ref::make(offset, generation_of(buffer)).bits;
}

void Table::set_dropped() {
  dropped_.store(true, std::memory_order_release);
  store_shared<std::uint64_t>(header_ + offsetof(wire::BufferHeader, superseded), 0,
                              std::memory_order_release);
}

std::uint64_t Table::rows() const {
  return load_shared<std::uint64_t>(header_ + kRowsAt, std::memory_order_acquire);
}

std::uint64_t Table::pages() const {
  return load_shared<std::uint64_t>(header_ + kPagesAt, std::memory_order_acquire);
}

std::byte* Table::list_part(std::uint64_t part) const {
  return pool_.at(load_shared<std::uint64_t>(header_ + wire::kTableDirectoryOffset + 8 * part));
}

wire::RowPageEntry Table::page(std::uint64_t page) const {
  const std::byte* const at = list_part(page / wire::kRowPageListEntries) +
                              wire::kRowPageListOffset +
                              page % wire::kRowPageListEntries * sizeof(wire::RowPageEntry);
  return {load_shared<std::uint64_t>(at), load_shared<std::uint64_t>(at + 8)};
}

std::uint64_t Table::cipher_page(const wire::RowPageEntry& entry) const {
  return load_shared<std::uint64_t>(pool_.at(wire::Ref{entry.page}.offset()) + kCipherPageAt);
}

const std::byte* Table::rows_of(const wire::RowPageEntry& entry) const {
  const std::byte* const buffer = pool_.at(wire::Ref{entry.page}.offset());
  ESPALIER_DEBUG_ASSERT(
      ((generation_of(buffer) ^ wire::Ref{entry.page}.generation()) & wire::kGenerationMask) == 0);
  return buffer + sizeof(wire::RowPageHeader);
}

TableStats Table::stats() const {
  TableStats stats;
  stats.rows = rows();
  stats.pages = pages();
  stats.row_bytes = schema_.row_bytes();
  const std::uint64_t parts =
      base::divide_up(stats.pages, std::uint64_t{wire::kRowPageListEntries});
  stats.memory_bytes =
      wire::kTableHeaderBytes + parts * wire::kRowPageListBytes + stats.pages * wire::kRowPageBytes;
  return stats;
}

std::string describe(const AppendError& error, const Schema& schema) {
  constexpr std::size_t kNamed = 10;
  if (error.error.code == Code::unsupported) {
    return "the table is encrypted: slots are reserved for its rows first";
  }
  if (error.error.code == Code::not_found) {
    return "the reservation has ended, or is another session's: nothing was appended";
  }
  if (error.wrong_rows == 0) {
    if (error.error.code != Code::invalid_argument) return {};
    return "the reservation was for another number of rows, and has ended: nothing was appended";
  }
  std::string words = std::to_string(error.wrong_rows) + " wrong rows, nothing was appended";
  for (std::size_t i = 0; i < std::min(kNamed, error.wrong.size()); ++i) {
    words += "; " + describe(error.wrong[i], schema);
  }
  return words;
}

}  // namespace espalier::table
