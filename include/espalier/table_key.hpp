// SPDX-License-Identifier: Apache-2.0
// Keys of encrypted tables and results. A key lies in locked memory, appears in no core dump, and
// is overwritten when the last copy is destroyed.
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

/// An AES-128 key. A value: copies share one copy of the key in memory. The caller overwrites the
/// bytes from which it made the key. Thread: const calls from any.
class TableKey {
 public:
  static constexpr std::size_t kBytes = 16;

  /// Cost: a page of locked memory. Errors: system (no memory may be locked: RLIMIT_MEMLOCK).
  static TableResult<TableKey> make(std::span<const std::byte, kBytes> bytes);
  /// From 32 hexadecimal digits. Errors: invalid_argument, system.
  static TableResult<TableKey> parse(std::string_view digits);
  /// From a file with these digits and optionally a line end. Errors, in words: system;
  /// invalid_argument (the file belongs to another user, others may read it, or it holds something
  /// else).
  static TableResult<TableKey> read_file(const std::string& path);

 private:
  friend class client::TableKeyImpl;
  explicit TableKey(std::shared_ptr<const client::TableKeyImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const client::TableKeyImpl> impl_;
};

}  // namespace espalier
