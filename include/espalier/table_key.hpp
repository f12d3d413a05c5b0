// SPDX-License-Identifier: Apache-2.0
// Keys of encrypted tables and results: in memory that is never swapped and in no core dump, and
// that is overwritten when the last copy goes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "espalier/table_error.hpp"

namespace espalier {

namespace client {
class TableKeyImpl;
}  // namespace client

/// A key of AES-128. A value: copies share what is behind it, so a key is in memory once. Whoever
/// makes one overwrites what it was made of. Thread: const calls from any.
class TableKey {
 public:
  static constexpr std::size_t kBytes = 16;

  /// Cost: a page of locked memory. Errors: system (none may be locked: RLIMIT_MEMLOCK).
  static TableResult<TableKey> make(std::span<const std::byte, kBytes> bytes);
  /// Of 32 hexadecimal digits. Errors: invalid_argument, system.
  static TableResult<TableKey> parse(std::string_view digits);
  /// Of a file with these digits, and perhaps the end of the line. Errors, in words: system;
  /// invalid_argument (it is another user's, others may read it, or it has something else).
  static TableResult<TableKey> read_file(const std::string& path);

 private:
  friend class client::TableKeyImpl;
  explicit TableKey(std::shared_ptr<const client::TableKeyImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const client::TableKeyImpl> impl_;
};

}  // namespace espalier
