// SPDX-License-Identifier: Apache-2.0
// A small text file that is replaced atomically: the new text is written to PATH.new, flushed, and
// renamed, so a crash leaves the old or the new file.
//
// Thread: any; at most one at a time replaces one file.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::chain {

/// The contents of a file, at most `bytes_max` + 1 bytes; nothing: there is none. Errors: a
/// sentence.
[[nodiscard]] std::expected<std::optional<std::string>, std::string> read_text(
    const std::string& path, std::size_t bytes_max);
/// Errors: a sentence; the file then has the old or the new text.
[[nodiscard]] std::expected<void, std::string> replace_text(const std::string& path,
                                                            std::string_view text);

/// A descriptor of this process alone. If it is invalid, errno has the reason.
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

/// "cannot WHAT 'PATH': reason", from errno.
[[nodiscard]] std::unexpected<std::string> cannot(std::string_view what, const std::string& path);

}  // namespace espalier::chain
