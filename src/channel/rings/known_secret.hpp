// SPDX-License-Identifier: Apache-2.0
// What stands behind a ClientSecret: a name, and the secret that proves it to nodes.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <memory>
#include <string>

#include "crypto/credential.hpp"
#include "crypto/secret_memory.hpp"
#include "espalier/client_secret.hpp"

namespace espalier::client {

class KnownSecret {
 public:
  /// As ClientSecret::make and ClientSecret::read_file; of a file, role and names do not matter.
  static SecretResult<std::shared_ptr<const KnownSecret>> make(std::string name,
                                                               const crypto::SecretBytes& bytes);
  static SecretResult<std::shared_ptr<const KnownSecret>> read_file(const std::string& path);

  /// That of the file which ESPALIER_SECRET_FILE names, as it is now; null: none is named.
  static SecretResult<std::shared_ptr<const KnownSecret>> of_process();
  /// The one that was given, or else of_process(). Errors: besides, forked (it is a copy).
  static SecretResult<std::shared_ptr<const KnownSecret>> or_of_process(
      std::shared_ptr<const KnownSecret> given);

  /// What stands behind a handle; null: nothing.
  static const std::shared_ptr<const KnownSecret>& of(const ClientSecret& secret) {
    return secret.known_;
  }
  static ClientSecret handle(std::shared_ptr<const KnownSecret> known) {
    return ClientSecret(std::move(known));
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Requires: it is no copy.
  [[nodiscard]] const crypto::SecretBytes& bytes() const { return *bytes_; }
  /// Whether another process made it, whose secrets are not there.
  [[nodiscard]] bool is_copy() const { return bytes_.is_copy(); }

 private:
  KnownSecret(std::string name, crypto::Secret<crypto::SecretBytes> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  const std::string name_;
  const crypto::Secret<crypto::SecretBytes> bytes_;
};

}  // namespace espalier::client
