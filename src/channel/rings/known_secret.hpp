// SPDX-License-Identifier: Apache-2.0
// Implementation of ClientSecret: a name, and the secret that proves it to nodes.
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
  /// As ClientSecret::make and ClientSecret::read_file; ignores roles and allowed names in the
  /// file.
  static SecretResult<std::shared_ptr<const KnownSecret>> make(std::string name,
                                                               const crypto::SecretBytes& bytes);
  static SecretResult<std::shared_ptr<const KnownSecret>> read_file(const std::string& path);

  /// The secret in the file that ESPALIER_SECRET_FILE names, read now; null: the variable is not
  /// set.
  static SecretResult<std::shared_ptr<const KnownSecret>> of_process();
  /// `given`, or of_process() if it is null. Errors: besides, forked (it is a copy).
  static SecretResult<std::shared_ptr<const KnownSecret>> or_of_process(
      std::shared_ptr<const KnownSecret> given);

  /// The secret of a handle; null: none.
  static const std::shared_ptr<const KnownSecret>& of(const ClientSecret& secret) {
    return secret.known_;
  }
  static ClientSecret handle(std::shared_ptr<const KnownSecret> known) {
    return ClientSecret(std::move(known));
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Requires: it is not a copy.
  [[nodiscard]] const crypto::SecretBytes& bytes() const { return *bytes_; }
  /// Whether this is a copy in a forked process, where secrets are not readable.
  [[nodiscard]] bool is_copy() const { return bytes_.is_copy(); }

 private:
  KnownSecret(std::string name, crypto::Secret<crypto::SecretBytes> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  const std::string name_;
  const crypto::Secret<crypto::SecretBytes> bytes_;
};

}  // namespace espalier::client
