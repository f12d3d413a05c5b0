// SPDX-License-Identifier: Apache-2.0
// The folder of a durable node that does not run, to be looked at: nothing in it is changed.
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
  /// Keeps nodes from using the folder while it lives. Errors: words, of a folder that is not
  /// there, is none of a store, is in use, of a later version, or cannot be read.
  static std::expected<std::unique_ptr<DataReader>, DataMistake> open(const std::string& path);
  DataReader(const DataReader&) = delete;
  DataReader& operator=(const DataReader&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The number of the store.
  [[nodiscard]] std::uint64_t store() const { return store_; }
  /// Calls `apply` for each record of the newest checkpoint, with sequence 0, then for those of the
  /// log behind it. Cost: reads all of them. Errors: log::recover_all()'s, and no_memory.
  [[nodiscard]] log::LogResult<log::Recovered> read(const log::ApplyRecord& apply);
  /// The same error in words, with what to do.
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

/// Whether records are missing or changed that were acknowledged, which --accept-loss-from passes.
[[nodiscard]] bool is_damage(log::LogFault fault);

/// The system's words for an errno that an error carries; the library's for others.
[[nodiscard]] std::string words_of(const Error& error);

}  // namespace espalier::node
