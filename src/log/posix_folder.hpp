// SPDX-License-Identifier: Apache-2.0
// A folder of the file system. Writes bypass the page cache where the file system permits
// (O_DIRECT), each with its own flush (RWF_DSYNC).
//
// Thread: as LogFolder.
#pragma once

#include <cstdint>
#include <string>

#include "log/log_file.hpp"

namespace espalier::log {

/// Access to a folder. With `read` nothing in it changes, and it may be read-only; its lock file
/// must exist then, because a writer of the folder creates it.
enum class FolderAccess : std::uint8_t { read, all };

class PosixFolder final : public LogFolder {
 public:
  /// Requires: the folder exists when a log is opened.
  explicit PosixFolder(std::string path, FolderAccess access = FolderAccess::all)
      : path_(std::move(path)), access_(access) {}

  [[nodiscard]] Result<std::unique_ptr<FolderLock>> lock() override;
  [[nodiscard]] Result<std::vector<std::string>> names() override;
  [[nodiscard]] Result<std::unique_ptr<LogFile>> create(std::string_view name) override;
  [[nodiscard]] Result<std::unique_ptr<LogFile>> open(std::string_view name) override;
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to) override;
  [[nodiscard]] Result<void> remove(std::string_view name) override;
  [[nodiscard]] Result<void> sync() override;

 private:
  [[nodiscard]] std::string in(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  [[nodiscard]] bool reads_only() const { return access_ == FolderAccess::read; }

  std::string path_;
  FolderAccess access_;
};

}  // namespace espalier::log
