// SPDX-License-Identifier: Apache-2.0
// A small file of text that is replaced as a whole: it is written beside as PATH.new, flushed,
// renamed, and so is there or not, whatever crashes.
//
// Thread: any; of those who replace one file one at a time.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::chain {

/// What a file has, up to so many bytes and one more; nothing: it is not there. Errors: a sentence.
[[nodiscard]] std::expected<std::optional<std::string>, std::string> read_text(
    const std::string& path, std::size_t bytes_max);
/// Errors: a sentence; the file is as before then, or as it should be.
[[nodiscard]] std::expected<void, std::string> replace_text(const std::string& path,
                                                            std::string_view text);

/// A descriptor of this process alone. Where it is none, errno says why.
class TextFile {
 public:
  TextFile(const std::string& path, int flags);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile();
  [[nodiscard]] int number() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// "cannot WHAT 'PATH': why", of errno.
[[nodiscard]] std::unexpected<std::string> cannot(std::string_view what, const std::string& path);

}  // namespace espalier::chain
