// SPDX-License-Identifier: Apache-2.0
// The name and the secret with which a client authenticates to nodes over a network. The secret
// lies in locked memory, appears in no core dump, and is overwritten when the last copy is
// destroyed.
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

/// Why a secret cannot be used. The words disclose nothing of the secret.
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

/// A name and its secret (docs/security.md). A value: copies share one copy of the secret in
/// memory. The caller overwrites the bytes or text from which it made the secret.
/// Thread: const calls from any.
class ClientSecret {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Without a secret, a connection reads the file named by ESPALIER_SECRET_FILE when it is made.
  /// If that variable is not set either, the client does not ask the node to authenticate.
  ClientSecret() = default;
  /// Cost: a page of locked memory.
  /// Errors: invalid_argument (a name is 1 to 32 letters, digits, '.', '-' and '_'; all bytes of
  /// the secret are equal), system (no memory may be locked: RLIMIT_MEMLOCK).
  static SecretResult<ClientSecret> make(std::string_view name,
                                         std::span<const std::byte, kBytes> secret);
  /// Reads a file of one line, as `espalier secret new` writes it.
  /// Errors: system (no such file; no memory may be locked), invalid_argument (the file belongs to
  /// another user, others may read it, or it does not hold exactly one line of that form).
  static SecretResult<ClientSecret> read_file(const std::string& path);

  [[nodiscard]] bool has_secret() const { return known_ != nullptr; }
  /// Empty if there is no secret.
  [[nodiscard]] std::string_view name() const;

 private:
  friend class client::KnownSecret;
  explicit ClientSecret(std::shared_ptr<const client::KnownSecret> known)
      : known_(std::move(known)) {}
  std::shared_ptr<const client::KnownSecret> known_;
};

}  // namespace espalier
