// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as lines of a file of secrets: an accepted line is valid, and is read again from
// what is written of it; of a rejected line neither a secret stays nor a message holds a word of
// it.
#include <string>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "crypto/credential.hpp"

namespace espalier::crypto {
namespace {

using base::want;

void check(const Credential& credential, const SecretBytes& secret) {
  want(is_credential_name(credential.name), "a name that is none");
  want(role_of(name(credential.role)) == credential.role, "a role that is none");
  want(is_drawn(secret), "a secret that nobody drew");
  want(credential.prefix.size() <= kPrefixBytesMax, "a prefix that no name has");
  std::string line;
  write_credential(credential, secret, line);
  SecretBytes again{};
  const auto read = parse_credential(line, again);
  want(read && *read && **read == credential && again == secret, "it is written otherwise");
}

void run(std::string_view line) {
  SecretBytes secret;
  secret.fill(std::byte{7});  // of the line before
  const auto read = parse_credential(line, secret);
  if (read && *read) return check(**read, secret);
  want(secret == SecretBytes{}, "a secret stays of a line that has none");
  // No secret is in a message: no word of the line that is as long as a part of one.
  constexpr std::size_t kPart = 16;
  for (std::size_t at = 0; !read && at + kPart <= line.size(); ++at) {
    const std::string_view part = line.substr(at, kPart);
    const bool digits = part.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    want(!digits || read.error().find(part) == std::string::npos, "a message tells a secret");
  }
}

}  // namespace
}  // namespace espalier::crypto

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::crypto::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
