// SPDX-License-Identifier: Apache-2.0
// A folder of the file system. Files are written past the page cache where it lets (O_DIRECT), each
// write with its own flush (RWF_DSYNC).
//
// Thread: as LogFolder.
#pragma once

#include <string>

#include "log/log_file.hpp"

namespace espalier::log {

class PosixFolder final : public LogFolder {
 public:
  /// Requires: the folder is there when a log is opened.
  explicit PosixFolder(std::string path) : path_(std::move(path)) {}

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

  std::string path_;
};

}  // namespace espalier::log
