// SPDX-License-Identifier: Apache-2.0
// Memory of a table of groups: pieces that live as long as it, at most so many bytes of them.
//
// A small table takes each piece by itself. A great one takes pages of 2 MiB and cuts them: with
// small pages, finding a group among a million costs a walk of the page tables more for each line.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace espalier::table {

class GroupMemory {
 public:
  explicit GroupMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ~GroupMemory();
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

  /// A piece, aligned to 64 and not filled; null if that were more than there may be. Cost: from
  /// time to time a page of 2 MiB, which the kernel fills with zeros.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  /// Whether a piece would cost such a page.
  [[nodiscard]] bool wants_page(std::size_t bytes) const;
  /// Takes a page, and has it filled with zeros now. Requires: a piece wants one.
  void take_page();
  /// Takes a piece back; what was cut from a page stays until the end.
  void free(std::byte* piece, std::size_t bytes);

  /// What was taken of the system.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t bytes_max() const { return bytes_max_; }

 private:
  [[nodiscard]] bool has_room(std::size_t bytes) const { return bytes <= bytes_max_ - bytes_; }
  [[nodiscard]] bool fits_page(std::size_t bytes) const;
  void add_page();

  struct Free {
    void operator()(std::byte* piece) const;
  };
  using Piece = std::unique_ptr<std::byte, Free>;

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::byte*> pages_;
  std::size_t page_used_ = 0;  // of the last one
};

}  // namespace espalier::table
