// SPDX-License-Identifier: Apache-2.0
// The interface between the command and the file system, so that tests and fuzzers run the whole
// command without touching a disk (tools/memory_files.hpp) and the program runs it on real files
// (tools/os_files.hpp).
//
// Invariant: a FileWriter makes nothing visible before commit(); destroying it before leaves the
// old file as it was.
// Thread: each object by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_source.hpp"
#include "espalier/error.hpp"

namespace espalier::tools {

using base::ByteSource;

/// The file name that means standard input.
inline constexpr std::string_view kStandardInput = "-";

/// New contents of a file, which replace the old ones atomically.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  /// Errors: system (detail: errno).
  virtual Result<void> write(std::string_view bytes) = 0;
  /// Makes the content durable, then visible under the file's name. Errors: system.
  virtual Result<void> commit() = 0;
};

/// Facts about a file, without opening it.
struct FileInfo {
  bool exists = false;
  std::optional<std::uint64_t> size_bytes{};  ///< regular files only
  bool is_fifo = false;                       ///< opening it waits for a writer
  std::string stamp{};  ///< changes when the file changes; empty if it does not exist
};

/// Opens files by name. All errors are Code::system with errno as detail.
class Files {
 public:
  virtual ~Files() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<ByteSource>> open(const std::string& path) = 0;
  /// Begins new contents of `path`, which need not exist.
  [[nodiscard]] virtual Result<std::unique_ptr<FileWriter>> replace(const std::string& path) = 0;
  [[nodiscard]] virtual Result<FileInfo> info(const std::string& path) = 0;
};

}  // namespace espalier::tools
