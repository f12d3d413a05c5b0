// SPDX-License-Identifier: Apache-2.0
#include "client/known_secret.hpp"

#include <cstdlib>
#include <utility>

namespace espalier::client {

Result<std::shared_ptr<const KnownSecret>> KnownSecret::make(std::string name,
                                                             const crypto::SecretBytes& bytes) {
  auto kept = crypto::Secret<crypto::SecretBytes>::make();
  if (!kept) return std::unexpected(kept.error());
  **kept = bytes;
  return std::shared_ptr<const KnownSecret>(new KnownSecret(std::move(name), std::move(*kept)));
}

std::expected<std::shared_ptr<const KnownSecret>, crypto::SecretFileError> KnownSecret::read_file(
    const std::string& path) {
  const auto refuse = [&path](const Error& error, std::string_view words) {
    return std::unexpected(
        crypto::SecretFileError{error, "the secret file " + path + std::string(words)});
  };
  const Error wrong{Code::invalid_argument, 0, 0};
  auto bytes = crypto::Secret<crypto::SecretBytes>::make();
  auto of_line = crypto::Secret<crypto::SecretBytes>::make();
  if (!bytes || !of_line) {
    return refuse(bytes ? of_line.error() : bytes.error(),
                  ": no memory may be locked for it (RLIMIT_MEMLOCK; ulimit -l tells it)");
  }
  std::string name;
  std::string fault;
  const auto read = crypto::read_secret_lines(
      path, "secret file", [&](std::uint32_t number, std::string_view line) {
        const auto credential = crypto::parse_credential(line, **of_line);
        if (credential && !*credential) return true;
        if (!credential) {
          fault = ", line " + std::to_string(number) + ": " + credential.error();
        } else if (!name.empty()) {
          fault = " has several names, and only one can come";
        } else {
          name = (*credential)->name;
          **bytes = **of_line;
        }
        return fault.empty();
      });
  if (!read) return std::unexpected(read.error());
  if (!fault.empty()) return refuse(wrong, fault);
  if (name.empty()) return refuse(wrong, " has no line: name role secret");
  return std::shared_ptr<const KnownSecret>(new KnownSecret(std::move(name), std::move(*bytes)));
}

std::expected<std::shared_ptr<const KnownSecret>, crypto::SecretFileError>
KnownSecret::of_process() {
  const char* const path = std::getenv("ESPALIER_SECRET_FILE");
  if (path == nullptr || *path == '\0') return nullptr;
  return read_file(path);
}

}  // namespace espalier::client
