// SPDX-License-Identifier: Apache-2.0
#include "crypto/credential_file.hpp"

#include <optional>
#include <utility>

#include "crypto/secret_file.hpp"
#include "crypto/secret_memory.hpp"

namespace espalier::crypto {

std::expected<void, CredentialFileError> read_credentials(
    const std::string& path, std::string_view what,
    const std::function<std::string(Credential, const SecretBytes&)>& take) {
  const std::string name = "the " + std::string(what) + " " + path;
  const auto secret = Secret<SecretBytes>::make();
  if (!secret) {
    return std::unexpected(CredentialFileError{
        secret.error(),
        {"no memory may be locked for " + name + " (RLIMIT_MEMLOCK; ulimit -l tells it)"}});
  }
  CredentialFileError wrong{{Code::invalid_argument, 0, 0}, {}};
  const auto take_line = [&](std::uint32_t number, std::string_view line) {
    auto credential = parse_credential(line, **secret);
    if (credential && !*credential) return true;
    const std::string fault =
        credential ? take(*std::move(*credential), **secret) : std::move(credential.error());
    if (fault.empty()) return true;
    wrong.mistakes.push_back(name + ", line " + std::to_string(number) + ": " + fault);
    return wrong.mistakes.size() < kCredentialMistakesMax;
  };
  if (const auto read = read_secret_lines(path, what, take_line); !read) {
    if (wrong.mistakes.empty()) wrong.error = read.error().error;
    wrong.mistakes.push_back(read.error().words);
  }
  if (!wrong.mistakes.empty()) return std::unexpected(std::move(wrong));
  return {};
}

}  // namespace espalier::crypto
