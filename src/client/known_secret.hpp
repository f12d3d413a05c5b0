// SPDX-License-Identifier: Apache-2.0
// The name under which this process comes to nodes, and the secret that proves it.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "crypto/credential.hpp"
#include "crypto/secret_file.hpp"
#include "crypto/secret_memory.hpp"

namespace espalier::client {

class KnownSecret {
 public:
  /// Errors: system (no memory may be locked).
  static Result<std::shared_ptr<const KnownSecret>> make(std::string name,
                                                         const crypto::SecretBytes& bytes);
  /// Of a file that has one line as a node's secrets file has (crypto/credential.hpp), whose role
  /// and names do not matter here. Errors, in words: those of crypto::read_secret_lines();
  /// invalid_argument (none, or several, or something else).
  static std::expected<std::shared_ptr<const KnownSecret>, crypto::SecretFileError> read_file(
      const std::string& path);

  /// That of the file which ESPALIER_SECRET_FILE names, as it is now; null: none is named.
  static std::expected<std::shared_ptr<const KnownSecret>, crypto::SecretFileError> of_process();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const crypto::SecretBytes& bytes() const { return *bytes_; }

 private:
  KnownSecret(std::string name, crypto::Secret<crypto::SecretBytes> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  const std::string name_;
  const crypto::Secret<crypto::SecretBytes> bytes_;
};

}  // namespace espalier::client
