// SPDX-License-Identifier: Apache-2.0
// Files that hold secrets: only their owner may read them, and what is read lies in secret memory.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "crypto/secret_memory.hpp"

namespace espalier::crypto {

/// Why a file cannot be used.
struct SecretFileError {
  Error error;
  std::string words;  ///< with the file's name, and never with anything that stands in it
};

/// A file's bytes, as far as they fit, in a secret page.
struct SecretText {
  static constexpr std::size_t kBytesMax = kSecretPageBytes - sizeof(std::uint64_t);
  std::uint64_t bytes;
  char text[kBytesMax];

  [[nodiscard]] std::string_view view() const { return {text, bytes}; }
};

/// Opens a file that may hold secrets: a regular file, of this user, that no other user may read.
/// `what` is how messages call it, such as "key file". Errors: invalid_argument (it is not so),
/// system. Returns a descriptor, which is the caller's.
[[nodiscard]] std::expected<int, SecretFileError> open_secret_file(const std::string& path,
                                                                   std::string_view what);

/// Reads a short one whole. Errors: those of open_secret_file(), and of Secret::make();
/// invalid_argument (it is longer than a page).
[[nodiscard]] std::expected<Secret<SecretText>, SecretFileError> read_secret_file(
    const std::string& path, std::string_view what);

/// Calls `take` with each line of one, without its end, and its number from 1 on, until that
/// returns false. Errors: as read_secret_file(), but that a line may not be longer than a page.
[[nodiscard]] std::expected<void, SecretFileError> read_secret_lines(
    const std::string& path, std::string_view what,
    const std::function<bool(std::uint32_t number, std::string_view line)>& take);

}  // namespace espalier::crypto
