// SPDX-License-Identifier: Apache-2.0
// A folder on persistent memory: its files are mapped, and written by non-temporal stores and a
// fence, so a commit makes no system call [RAMBDA §III-D, §IV-B]. On a file system with DAX, stored
// data is on the medium (MAP_SYNC). On tmpfs it is only in memory: for tests and models; it
// survives the end of a process, including a crash. Other file systems need a system call to reach
// the medium, and are refused.
//
// Names, sizes, zeros and reads are those of a PosixFolder over the same files.
//
// Thread: as LogFolder.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "log/posix_folder.hpp"

namespace espalier::log {

class MappedFolder final : public LogFolder {
 public:
  /// Requires: the folder exists. Errors: unsupported (another kind of file system), system.
  [[nodiscard]] static Result<std::unique_ptr<MappedFolder>> at(const std::string& path);

  /// Whether its contents are lost with power.
  [[nodiscard]] bool is_model() const { return is_model_; }
  /// Bytes written by non-temporal stores to all its files. Thread: any.
  [[nodiscard]] std::uint64_t stored_bytes() const {
    return stored_bytes_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] Result<std::unique_ptr<FolderLock>> lock() override { return files_.lock(); }
  [[nodiscard]] Result<std::vector<std::string>> names() override { return files_.names(); }
  [[nodiscard]] Result<std::unique_ptr<LogFile>> create(std::string_view name) override;
  [[nodiscard]] Result<std::unique_ptr<LogFile>> open(std::string_view name) override;
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to) override {
    return files_.rename(from, to);
  }
  [[nodiscard]] Result<void> remove(std::string_view name) override { return files_.remove(name); }
  [[nodiscard]] Result<void> sync() override { return files_.sync(); }

 private:
  MappedFolder(const std::string& path, bool is_model)
      : path_(path), files_(path), is_model_(is_model) {}
  [[nodiscard]] Result<std::unique_ptr<LogFile>> map(Result<std::unique_ptr<LogFile>> file,
                                                     std::string_view name);

  const std::string path_;
  PosixFolder files_;
  const bool is_model_;
  std::atomic<std::uint64_t> stored_bytes_ = 0;
};

}  // namespace espalier::log
