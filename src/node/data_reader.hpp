// SPDX-License-Identifier: Apache-2.0
// Read-only access to the folder of a durable node that does not run.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "log/log_error.hpp"
#include "log/posix_folder.hpp"
#include "log/recovery.hpp"

namespace espalier::node {

/// What is wrong with a data folder, in words for people, and what to do about it.
struct DataMistake {
  std::string what;
  std::string hint;
};

class DataReader {
 public:
  /// Locks the folder against nodes while it lives. Errors: words, if the folder is missing, has no
  /// store, is in use, has a later version, or cannot be read.
  static std::expected<std::unique_ptr<DataReader>, DataMistake> open(const std::string& path);
  DataReader(const DataReader&) = delete;
  DataReader& operator=(const DataReader&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The number of the store.
  [[nodiscard]] std::uint64_t store() const { return store_; }
  /// Calls `apply` for each record of the newest checkpoint, with sequence 0, then for those of the
  /// log after it. Cost: reads all of them. Errors: log::recover_all()'s, and no_memory.
  [[nodiscard]] log::LogResult<log::Recovered> read(const log::ApplyRecord& apply);
  /// Describes the error in words, with what to do.
  [[nodiscard]] DataMistake mistake_of(const log::LogError& error) const;

 private:
  explicit DataReader(const std::string& path)
      : path_(path),
        folder_(path, log::FolderAccess::read),
        log_folder_(path + "/log", log::FolderAccess::read) {}
  std::expected<void, DataMistake> begin();

  std::string path_;
  log::PosixFolder folder_;
  log::PosixFolder log_folder_;
  std::unique_ptr<log::FolderLock> lock_;
  std::uint64_t store_ = 0;
};

/// Whether acknowledged records are missing or changed, which --accept-loss-from skips.
[[nodiscard]] bool is_damage(log::LogFault fault);

/// The system's text for an errno in an error; the library's for others.
[[nodiscard]] std::string words_of(const Error& error);

}  // namespace espalier::node
