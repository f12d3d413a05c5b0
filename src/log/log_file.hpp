// SPDX-License-Identifier: Apache-2.0
// The interface of a log to the file system, so that tests can substitute one that crashes and
// lies.
//
// Thread: a folder any; a file one at a time, except for writes; different files concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"

namespace espalier::log {

class LogFile {
 public:
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  virtual ~LogFile() = default;

  /// Writes durably; returns the number of bytes that are durable. Fewer than given are not an
  /// error yet. Requires: offset, length and address are multiples of kUnitBytes; no concurrent
  /// write, unless takes_several(). Errors: system.
  [[nodiscard]] virtual Result<std::size_t> write(std::uint64_t offset,
                                                  std::span<const std::byte> bytes) = 0;
  /// Whether several writes may be under way, each of which gets the result of its own bytes.
  [[nodiscard]] virtual bool takes_several() const = 0;
  /// Reads; returns fewer bytes than wanted only at the end. Requires: as write. Errors: system.
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> bytes) = 0;
  /// Whether reads wait for a disk: a reader of the whole file gains by a thread that reads ahead.
  [[nodiscard]] virtual bool waits_for_disk() const { return false; }
  /// Makes the file so many bytes of zeros, written and durable. Blocks that are only allocated
  /// would cost a change of the file system's metadata at each later write. Errors: system.
  [[nodiscard]] virtual Result<void> fill(std::uint64_t bytes) = 0;
  /// Extends the file with zeros to at least so many bytes, with space allocated: for a file
  /// written once, without time pressure. Need not be durable before data is written there. Errors:
  /// system; ENOSPC also if less than `leave` bytes would remain on the file system.
  [[nodiscard]] virtual Result<void> extend(std::uint64_t bytes, std::uint64_t leave) = 0;
  /// Makes all writes of the file durable, by any process, except those for which an earlier flush
  /// has failed; later reads see what the disk has. Errors: system.
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
};

/// Held while a log is open.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  virtual ~FolderLock() = default;
};

class LogFolder {
 public:
  LogFolder() = default;
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  virtual ~LogFolder() = default;

  /// Errors: busy (it is locked), system.
  [[nodiscard]] virtual Result<std::unique_ptr<FolderLock>> lock() = 0;
  /// The names in it, in any order. Errors: system.
  [[nodiscard]] virtual Result<std::vector<std::string>> names() = 0;
  /// Creates a file. Errors: system (EEXIST: there is one).
  [[nodiscard]] virtual Result<std::unique_ptr<LogFile>> create(std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LogFile>> open(std::string_view name) = 0;
  /// Renames are durable after the next sync of the folder. Errors: system.
  [[nodiscard]] virtual Result<void> rename(std::string_view from, std::string_view to) = 0;
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> sync() = 0;
};

}  // namespace espalier::log
