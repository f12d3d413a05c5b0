// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/known_secret.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "crypto/credential_file.hpp"

namespace espalier::client {
namespace {

std::unexpected<SecretError> refuse_secret(const Error& error, std::string words) {
  return std::unexpected(SecretError{error, std::move(words)});
}

}  // namespace

SecretResult<std::shared_ptr<const KnownSecret>> KnownSecret::make(
    std::string name, const crypto::SecretBytes& bytes) {
  const Error wrong{Code::invalid_argument, 0, 0};
  if (!crypto::is_credential_name(name)) {
    return refuse_secret(wrong,
                         "the name of a client has 1 to 32 letters, digits, '.', '-' and '_'");
  }
  if (!crypto::is_drawn(bytes)) {
    return refuse_secret(wrong, "the secret of a client is 32 bytes that were drawn");
  }
  auto kept = crypto::Secret<crypto::SecretBytes>::make();
  if (!kept) {
    return refuse_secret(
        kept.error(),
        "no memory may be locked for the secret (RLIMIT_MEMLOCK; ulimit -l tells it)");
  }
  **kept = bytes;
  return std::shared_ptr<const KnownSecret>(new KnownSecret(std::move(name), std::move(*kept)));
}

SecretResult<std::shared_ptr<const KnownSecret>> KnownSecret::read_file(const std::string& path) {
  std::shared_ptr<const KnownSecret> known;
  SecretError failure;
  const auto take = [&](const crypto::Credential& credential,
                        const crypto::SecretBytes& secret) -> std::string {
    if (known != nullptr) return "a client has one name, and this is a second one";
    auto made = make(credential.name, secret);
    if (!made) {
      failure = std::move(made.error());
      return failure.words;
    }
    known = std::move(*made);
    return {};
  };
  const auto read = crypto::read_credentials(path, "secret file", take);
  if (!read) {
    const bool of_line = failure.error.code != Code::invalid;
    return refuse_secret(of_line ? failure.error : read.error().error,
                         read.error().mistakes.front());
  }
  if (known == nullptr) {
    return refuse_secret({Code::invalid_argument, 0, 0},
                         "the secret file " + path + " has no line: name role secret");
  }
  return known;
}

SecretResult<std::shared_ptr<const KnownSecret>> KnownSecret::of_process() {
  const char* const path = std::getenv("ESPALIER_SECRET_FILE");
  if (path == nullptr || *path == '\0') return nullptr;
  return read_file(path);
}

SecretResult<std::shared_ptr<const KnownSecret>> KnownSecret::or_of_process(
    std::shared_ptr<const KnownSecret> given) {
  if (given == nullptr) return of_process();
  if (given->is_copy()) {
    return refuse_secret({Code::forked, 0, 0},
                         "the secret is that of the process that forked this one: read it anew");
  }
  return given;
}

}  // namespace espalier::client

namespace espalier {

std::string message(const SecretError& error) {
  return error.words.empty() ? message(error.error) : error.words + ".";
}

SecretResult<ClientSecret> ClientSecret::make(std::string_view name,
                                              std::span<const std::byte, kBytes> secret) {
  static_assert(kBytes == crypto::kSecretBytes);
  const auto room = crypto::Secret<crypto::SecretBytes>::make();
  if (!room) {
    return std::unexpected(
        SecretError{room.error(),
                    "no memory may be locked for the secret (RLIMIT_MEMLOCK; ulimit -l tells it)"});
  }
  std::ranges::copy(secret, (*room)->begin());
  auto known = client::KnownSecret::make(std::string(name), **room);
  if (!known) return std::unexpected(std::move(known.error()));
  return client::KnownSecret::handle(std::move(*known));
}

SecretResult<ClientSecret> ClientSecret::read_file(const std::string& path) {
  auto known = client::KnownSecret::read_file(path);
  if (!known) return std::unexpected(std::move(known.error()));
  return client::KnownSecret::handle(std::move(*known));
}

std::string_view ClientSecret::name() const {
  return known_ == nullptr ? std::string_view() : std::string_view(known_->name());
}

}  // namespace espalier
