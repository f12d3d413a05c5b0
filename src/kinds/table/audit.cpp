// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/audit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/row_check.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kAuditFaultsMax = 20;

class TableAudit {
 public:
  explicit TableAudit(const Table& table)
      : table_(table), header_(table.pool().at(table.header_offset())), check_(table.schema()) {}

  std::vector<std::string> run() {
    check_header();
    std::uint64_t first_row = 0;
    for (std::uint64_t number = 0; has_rows(number) && !full(); ++number) {
      first_row = check_page(number, first_row);
    }
    want(full() || first_row == table_.rows(), "its pages have " + std::to_string(first_row) +
                                                   " rows where it has " +
                                                   std::to_string(table_.rows()));
    return std::move(wrong_);
  }

 private:
  /// Whether a page has some that are visible: there may be others behind it.
  [[nodiscard]] bool has_rows(std::uint64_t number) const {
    return number < table_.pages() && table_.page(number).first_row < table_.rows();
  }
  [[nodiscard]] bool full() const { return wrong_.size() >= kAuditFaultsMax; }
  void want(bool good, std::string what) {
    if (!good && !full()) wrong_.push_back(std::move(what));
  }
  template <class T>
  [[nodiscard]] static T word(const std::byte* at, std::size_t offset) {
    return base::load_shared<T>(at + offset);
  }

  void check_header() {
    using Header = wire::TableHeader;
    want(word<std::uint32_t>(header_, offsetof(Header, table_id)) == table_.id(),
         "the header is of another object");
    want(word<std::uint64_t>(header_, offsetof(Header, magic)) == wire::kTableMagic,
         "the header has no magic");
    want(word<std::uint32_t>(header_, offsetof(Header, row_bytes)) == table_.schema().row_bytes(),
         "the header has other bytes for a row");
    want((word<std::uint64_t>(header_, offsetof(Header, superseded)) == wire::kLive) !=
             table_.dropped(),
         "the header does not say whether the table was dropped");
  }

  /// Returns the first row behind it.
  std::uint64_t check_page(std::uint64_t number, std::uint64_t first_row) {
    using Header = wire::RowPageHeader;
    const std::string page = "page " + std::to_string(number);
    const wire::RowPageEntry entry = table_.page(number);
    const wire::Ref ref{entry.page};
    const std::uint64_t next = end_of(number, first_row);
    want(entry.first_row == first_row, page + " begins with another row in the list");
    if (!table_.pool().is_buffer_begin(ref.offset(), memory::BufferKind::relation,
                                       ref.generation())) {
      want(false, page + " is no buffer that is in use");
      return next;
    }
    const std::byte* const at = table_.pool().at(ref.offset());
    want(word<std::uint32_t>(at, offsetof(Header, table_id)) == table_.id(),
         page + " is of another object");
    want(word<std::uint64_t>(at, offsetof(Header, page)) == number, page + " has another number");
    want(word<std::uint64_t>(at, offsetof(Header, first_row)) == first_row,
         page + " begins with another row");
    want(word<std::uint32_t>(at, offsetof(Header, row_bytes)) == table_.schema().row_bytes(),
         page + " has other bytes for a row");
    const bool fits = next >= first_row && next - first_row <= table_.schema().rows_per_page();
    want(fits, page + " has more rows than go into one");
    if (fits && !table_.encrypted()) check_rows(entry, first_row, next);
    return next;
  }

  /// Where the rows of a page end: where the next begins, or all do.
  [[nodiscard]] std::uint64_t end_of(std::uint64_t number, std::uint64_t first_row) const {
    const std::uint64_t rows = table_.rows();
    if (number + 1 >= table_.pages()) return std::max(rows, first_row);
    return std::max(first_row, std::min(rows, table_.page(number + 1).first_row));
  }

  /// Rows are such as a check leaves as they are.
  void check_rows(const wire::RowPageEntry& entry, std::uint64_t first_row, std::uint64_t next) {
    const std::size_t bytes = table_.schema().row_bytes();
    const std::byte* at = table_.rows_of(entry);
    row_.resize(bytes / sizeof(std::uint64_t));  // aligned as rows are
    auto* const copy = reinterpret_cast<std::byte*>(row_.data());
    for (std::uint64_t row = first_row; row < next && !full(); ++row, at += bytes) {
      std::memcpy(copy, at, bytes);
      const bool refused = check_.apply(copy).has_value();
      want(!refused && std::memcmp(copy, at, bytes) == 0,
           "row " + std::to_string(row) + " is none that the table takes");
    }
  }

  const Table& table_;
  const std::byte* const header_;
  const RowCheck check_;
  std::vector<std::uint64_t> row_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> audit(const Table& table) { return TableAudit(table).run(); }

}  // namespace espalier::table
