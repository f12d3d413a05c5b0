// SPDX-License-Identifier: Apache-2.0
// The machine's own files.
//
// A file is replaced as follows: the new content goes into a hidden temporary file beside it, is
// synced, gets the old file's permissions (and owner, where allowed), takes its name by rename, and
// the folder is synced. So a reader, or a crash at any point, sees the old content or the new one,
// never a mixture. Through a symbolic link its target is replaced, not the link. Other hard links
// keep the old content. What is not a regular file (a pipe, a terminal) is written in place.
#pragma once

#include "tools/files.hpp"

namespace espalier::tools {

class OsFiles : public Files {
 public:
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> replace(const std::string& path) override;
  Result<FileInfo> info(const std::string& path) override;
};

/// Reads from a descriptor that somebody else closes, such as standard input.
[[nodiscard]] std::unique_ptr<ByteSource> borrow_descriptor(int descriptor);

}  // namespace espalier::tools
