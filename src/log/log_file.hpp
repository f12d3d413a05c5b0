// SPDX-License-Identifier: Apache-2.0
// What a log needs of a file system, so that tests can put one below it that crashes and lies.
//
// Thread: a folder any; a file one at a time, but for different files at once, and for writes.
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

  /// Writes, and returns when it is durable, how many bytes of it are: fewer are no error yet.
  /// Requires: offset, length and address are multiples of kUnitBytes; no other write at the same
  /// time, unless takes_several(). Errors: system.
  [[nodiscard]] virtual Result<std::size_t> write(std::uint64_t offset,
                                                  std::span<const std::byte> bytes) = 0;
  /// Whether several writes may be under way, each of which hears what became of its own bytes.
  [[nodiscard]] virtual bool takes_several() const = 0;
  /// Reads; fewer bytes than wanted are all there are. Requires: as write. Errors: system.
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> bytes) = 0;
  /// Whether reads wait for a disk: who reads all of it gains by a thread that reads ahead.
  [[nodiscard]] virtual bool waits_for_disk() const { return false; }
  /// Makes the file so many bytes of zeros, written and durable: blocks that the file system only
  /// allocates cost a change of its own books when they are written. Errors: system.
  [[nodiscard]] virtual Result<void> fill(std::uint64_t bytes) = 0;
  /// Makes the file at least so many bytes long, the new ones zeros, in space that is its own: for
  /// one that is written once, in no hurry. Need not be durable before something is written there.
  /// Errors: system; ENOSPC too where fewer than `leave` bytes would be left on the file system.
  [[nodiscard]] virtual Result<void> extend(std::uint64_t bytes, std::uint64_t leave) = 0;
  /// Makes durable what anybody has written to the file, but for what an earlier flush has failed
  /// for; reads behind it see what the disk has. Errors: system.
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
};

/// Is held while a log is open.
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
  /// A new file. Errors: system (EEXIST: there is one).
  [[nodiscard]] virtual Result<std::unique_ptr<LogFile>> create(std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LogFile>> open(std::string_view name) = 0;
  /// Changes of names are durable after the next sync of the folder. Errors: system.
  [[nodiscard]] virtual Result<void> rename(std::string_view from, std::string_view to) = 0;
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> sync() = 0;
};

}  // namespace espalier::log
