// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/audit.hpp"

#include <cstring>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::embedding {
namespace {

using base::load_shared;

class EmbeddingAudit {
 public:
  explicit EmbeddingAudit(const EmbeddingTable& table)
      : table_(table), header_(table.pool().at(table.header_offset())) {}

  std::vector<std::string> run() {
    check_header();
    check_list();
    for (std::uint64_t page = 0; page < table_.pages(); ++page) check_page(page);
    for (std::string& fault : table_.faults_of_groups()) wrong_.push_back(std::move(fault));
    return std::move(wrong_);
  }

 private:
  void want(bool good, std::string what) {
    if (!good) wrong_.push_back(std::move(what));
  }
  [[nodiscard]] std::uint64_t word(std::size_t at) const {
    return load_shared<std::uint64_t>(header_ + at);
  }
  [[nodiscard]] bool is_in_use(std::uint64_t ref) const {
    return table_.pool().is_buffer_begin(wire::Ref{ref}.offset(), memory::BufferKind::relation,
                                         wire::Ref{ref}.generation());
  }

  void check_header() {
    const auto id = load_shared<std::uint32_t>(header_);
    want(id == table_.id(), "the header is of another object");
    want(word(offsetof(EmbeddingHeader, magic)) == kEmbeddingMagic, "the header has no magic");
    want((word(offsetof(EmbeddingHeader, superseded)) == wire::kLive) != table_.dropped(),
         "the header does not say whether the table was dropped");
    const auto row_bytes =
        load_shared<std::uint32_t>(header_ + offsetof(EmbeddingHeader, row_bytes));
    want(row_bytes == table_.row_bytes(), "the header has other bytes for a row");
    const EmbeddingShape shape = table_.shape();
    want(std::memcmp(header_ + offsetof(EmbeddingHeader, shape), &shape, sizeof shape) == 0,
         "the header has another shape");
    const std::uint64_t rows_per = table_.divider().rows();
    const std::uint64_t rows = table_.all_rows();  // including those that wait for their records
    want(table_.pages() == base::divide_up(rows, rows_per) && table_.rows() <= rows,
         std::to_string(table_.pages()) + " pages for " + std::to_string(rows) + " rows");
  }

  void check_list() {
    const std::uint64_t list = word(offsetof(EmbeddingHeader, list));
    const std::uint64_t buffer = word(offsetof(EmbeddingHeader, list_buffer));
    want(table_.pool().at(list) == table_.page_list().entries(),
         "the header names another page list than readers here follow");
    const bool own = wire::Ref{buffer}.offset() != table_.header_offset();
    // The header of a dropped table is no buffer in use: check_header() checks it.
    want(is_in_use(buffer) || (!own && table_.dropped()),
         "the page list lies in no buffer that is in use");
    want(list - wire::Ref{buffer}.offset() == (own ? kListOffset : kFirstListOffset),
         "the page list does not lie where it must in its buffer");
    want(own || table_.pages() <= kFirstListEntries, "the page list is too long for its buffer");
  }

  void check_page(std::uint64_t number) {
    const std::byte* const entry = table_.page_list().entries() + number * sizeof(PageEntry);
    const std::string page = "page " + std::to_string(number);
    const auto ref = load_shared<std::uint64_t>(entry);
    if (!is_in_use(ref)) {
      wrong_.push_back(page + " is no buffer that is in use");
      return;
    }
    {
      const auto stores = table_.hold_stores();
      want(load_shared<std::uint64_t>(entry + offsetof(PageEntry, sequence)) % 2 == 0,
           page + " has an odd sequence, and none of its rows is being replaced");
    }
    const std::byte* const at = table_.pool().at(wire::Ref{ref}.offset());
    want(load_shared<std::uint32_t>(at) == table_.id(), page + " is of another object");
    want(load_shared<std::uint64_t>(at + offsetof(PageHeader, page)) == number,
         page + " has another number");
    want(load_shared<std::uint64_t>(at + offsetof(PageHeader, first_row)) ==
             number * table_.divider().rows(),
         page + " begins with another row");
    want(load_shared<std::uint32_t>(at + offsetof(PageHeader, row_bytes)) == table_.row_bytes(),
         page + " has other bytes for a row");
  }

  const EmbeddingTable& table_;
  const std::byte* const header_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> audit(const EmbeddingTable& table) {
  const auto writes = table.hold_writes();
  return EmbeddingAudit(table).run();
}

}  // namespace espalier::embedding
