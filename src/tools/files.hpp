// SPDX-License-Identifier: Apache-2.0
// The one seam between the command and the world's files, so that tests and fuzzers run the whole
// command without touching a disk (tools/memory_files.hpp) and the program runs it on real ones
// (tools/os_files.hpp).
//
// Invariant: a FileWriter makes nothing visible before commit(); a writer that goes away without it
// leaves the old file as it was. Thread: each object by one thread at a time.
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

/// The name of a file by which commands mean standard input.
inline constexpr std::string_view kStandardInput = "-";

/// A new content for a file, which takes the place of the old one all at once.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  /// Errors: system (detail: errno).
  virtual Result<void> write(std::string_view bytes) = 0;
  /// Makes the content durable, then visible under the file's name. Errors: system.
  virtual Result<void> commit() = 0;
};

/// What is known about a file without opening it.
struct FileInfo {
  bool exists = false;
  std::optional<std::uint64_t> size_bytes{};  ///< regular files only
  bool is_fifo = false;                       ///< to open it waits for a writer
  std::string stamp{};  ///< changes when the file changes; empty if it is not there
};

/// Opens files by name. All errors are Code::system with errno as detail.
class Files {
 public:
  virtual ~Files() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<ByteSource>> open(const std::string& path) = 0;
  /// Begins a new content of `path`, which need not exist.
  [[nodiscard]] virtual Result<std::unique_ptr<FileWriter>> replace(const std::string& path) = 0;
  [[nodiscard]] virtual Result<FileInfo> info(const std::string& path) = 0;
};

}  // namespace espalier::tools
