// SPDX-License-Identifier: Apache-2.0
// The name under which a program comes to nodes over a network, and the secret that proves it: in
// memory that is never swapped and in no core dump, and that is overwritten when the last copy
// goes.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "espalier/error.hpp"

namespace espalier {

namespace client {
class KnownSecret;
}  // namespace client

/// Why a secret cannot be used, with words that say nothing of the secret.
struct [[nodiscard]] SecretError {
  SecretError() = default;
  SecretError(const Error& error_in, std::string words_in)
      : error(error_in), words(std::move(words_in)) {}

  Error error;
  std::string words;
};

template <class T>
using SecretResult = std::expected<T, SecretError>;

/// One sentence for people: what was wrong and what to do about it.
std::string message(const SecretError& error);

/// A name and its secret (docs/security.md). A value: copies share what is behind it, so a secret
/// is in memory once. Whatever it was made of, its maker overwrites. Thread: const calls from any.
class ClientSecret {
 public:
  static constexpr std::size_t kBytes = 32;

  /// None: then the file that ESPALIER_SECRET_FILE names counts, as it is when a connection is
  /// made; and without that variable a node is asked for no authentication.
  ClientSecret() = default;
  /// Cost: a page of locked memory. Errors: invalid_argument (a name is 1 to 32 letters, digits,
  /// '.', '-' and '_'; bytes that are all the same were not drawn), system (none may be locked:
  /// RLIMIT_MEMLOCK).
  static SecretResult<ClientSecret> make(std::string_view name,
                                         std::span<const std::byte, kBytes> secret);
  /// Of a file with one line, as `espalier secret new` writes it. Errors: system (no such file; no
  /// memory may be locked); invalid_argument (it is another user's, others may read it, or its
  /// lines are not one line of that form).
  static SecretResult<ClientSecret> read_file(const std::string& path);

  [[nodiscard]] bool has_secret() const { return known_ != nullptr; }
  /// Empty: there is none.
  [[nodiscard]] std::string_view name() const;

 private:
  friend class client::KnownSecret;
  explicit ClientSecret(std::shared_ptr<const client::KnownSecret> known)
      : known_(std::move(known)) {}
  std::shared_ptr<const client::KnownSecret> known_;
};

}  // namespace espalier
