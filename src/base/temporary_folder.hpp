// SPDX-License-Identifier: Apache-2.0
// A folder for files and sockets that live as long as an object; removed with all that is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace espalier::base {

class TemporaryFolder {
 public:
  /// Makes a folder that only this user can read, below $TMPDIR or /tmp.
  /// Errors: throws std::runtime_error.
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  /// The same below another folder.
  explicit TemporaryFolder(const std::filesystem::path& below) {
    // mkdtemp() puts other letters for the last six, such that the name is new.
    const std::string name = "espalier-" + std::string(6, 'X');
    std::string pattern = (below / name).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a temporary folder " + pattern);
    }
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;  // what cannot be removed stays for the operating system
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string string() const { return path_.string(); }
  /// The path of something in the folder.
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace espalier::base
