// SPDX-License-Identifier: Apache-2.0
// The file system of the machine.
//
// Atomic replacement: the new contents go into a hidden temporary file in the same folder, which is
// synced, gets the old file's permissions (and owner, where allowed), is renamed to the name, and
// the folder is synced. So a reader, or a crash at any point, sees the old contents or the new
// ones, never a mixture. Through a symbolic link its target is replaced, not the link. Other hard
// links keep the old contents. Files that are not regular (a pipe, a terminal) are written in
// place.
#pragma once

#include "tools/files.hpp"

namespace espalier::tools {

class OsFiles : public Files {
 public:
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> replace(const std::string& path) override;
  Result<FileInfo> info(const std::string& path) override;
};

/// Reads from a descriptor that the caller closes, such as standard input.
[[nodiscard]] std::unique_ptr<ByteSource> borrow_descriptor(int descriptor);

}  // namespace espalier::tools
