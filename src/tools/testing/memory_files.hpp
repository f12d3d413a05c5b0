// SPDX-License-Identifier: Apache-2.0
// Files in a std::map, which tests and fuzzers give to the command instead of a disk. No real file
// can be opened through them. Reads return pieces of a chosen size, so that records are cut in two
// somewhere; any file can be made to fail.
#pragma once

#include <cerrno>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/testing/memory_source.hpp"
#include "tools/files.hpp"

namespace espalier::tools {

using base::MemorySource;

/// A folder of named strings.
class MemoryFiles : public Files {
 public:
  std::map<std::string, std::string> contents;
  std::set<std::string> fifos;                  ///< info() says that these are such
  std::set<std::string> unwritable;             ///< replace() of these fails with EACCES
  std::function<void()> before_commit = [] {};  ///< a concurrent action of another program
  std::size_t piece_bytes = std::numeric_limits<std::size_t>::max();

  Result<std::unique_ptr<ByteSource>> open(const std::string& path) override {
    const auto found = contents.find(path);
    if (found == contents.end()) return fail(Code::system, ENOENT);
    return std::make_unique<MemorySource>(found->second, piece_bytes);
  }
  Result<std::unique_ptr<FileWriter>> replace(const std::string& path) override {
    if (path.empty()) return fail(Code::system, ENOENT);
    if (unwritable.contains(path)) return fail(Code::system, EACCES);
    before_commit();
    return std::make_unique<Writer>(*this, path);
  }
  Result<FileInfo> info(const std::string& path) override {
    if (fifos.contains(path)) return FileInfo{.exists = true, .is_fifo = true};
    const auto found = contents.find(path);
    if (found == contents.end()) return FileInfo{};
    return FileInfo{
        .exists = true, .size_bytes = found->second.size(), .stamp = "=" + found->second};
  }

 private:
  class Writer : public FileWriter {
   public:
    Writer(MemoryFiles& files, std::string path) : files_(files), path_(std::move(path)) {}
    Result<void> write(std::string_view bytes) override {
      bytes_ += bytes;
      return {};
    }
    Result<void> commit() override {
      files_.contents[path_] = std::move(bytes_);
      return {};
    }

   private:
    MemoryFiles& files_;
    std::string path_;
    std::string bytes_;
  };
};

}  // namespace espalier::tools
