// SPDX-License-Identifier: Apache-2.0
// Arena of a table of groups: pieces live as long as the arena, up to a limit of bytes.
//
// A small table allocates each piece separately. A large one allocates pages of 2 MiB and cuts
// them: with small pages, a lookup among a million groups costs an additional page walk for each
// line.
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

  /// A piece, aligned to 64 and uninitialized; null if it would exceed the limit. Cost: from time
  /// to time a page of 2 MiB, which the kernel zeroes.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  /// Whether a piece would require such a page.
  [[nodiscard]] bool wants_page(std::size_t bytes) const;
  /// Allocates a page, zeroed now. Requires: a piece requires one.
  void take_page();
  /// Frees a piece; pieces cut from a page stay until the end.
  void free(std::byte* piece, std::size_t bytes);

  /// Bytes allocated from the system.
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
