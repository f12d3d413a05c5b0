// SPDX-License-Identifier: Apache-2.0
#include "crypto/credential.hpp"

#include <algorithm>

#include "crypto/hex.hpp"

namespace espalier::crypto {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Takes the next word off `text`; empty: there is none.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

}  // namespace

std::string_view name(Role role) {
  switch (role) {
    case Role::read: return "read";
    case Role::write: return "write";
    case Role::admin: return "admin";
    case Role::peer: return "peer";
    case Role::replica: return "replica";
  }
  return "";
}

std::optional<Role> role_of(std::string_view text) {
  for (const Role role : {Role::read, Role::write, Role::admin, Role::peer, Role::replica}) {
    if (text == name(role)) return role;
  }
  return std::nullopt;
}

bool is_credential_name(std::string_view name) {
  return !name.empty() && name.size() <= kCredentialNameBytesMax &&
         std::ranges::all_of(name, is_name_byte);
}

bool is_drawn(const SecretBytes& secret) {
  return std::ranges::count(secret, secret[0]) != static_cast<std::ptrdiff_t>(secret.size());
}

std::expected<std::optional<Credential>, CredentialFault> parse_credential(std::string_view line,
                                                                           SecretBytes& secret) {
  secret = {};
  const auto fault = [](std::string_view words) { return std::unexpected(CredentialFault(words)); };
  const std::string_view who = take_word(line);
  if (who.empty() || who.front() == '#') return std::optional<Credential>{};
  if (!is_credential_name(who)) {
    return fault("a name has 1 to 32 letters, digits, '.', '-' and '_'");
  }
  Credential read;
  read.name = who;
  const auto role = role_of(take_word(line));
  if (!role) return fault("behind the name stands a role: read, write, admin, peer or replica");
  read.role = *role;
  if (!parse_hex(take_word(line), secret)) {
    secret = {};
    return fault(
        "behind the role stands a secret of 64 hexadecimal digits, such as 'espalier "
        "secret new' writes");
  }
  if (!is_drawn(secret)) {
    secret = {};
    return fault("the secret was not drawn: 'espalier secret new' draws one");
  }
  std::string_view names = take_word(line);
  if (!names.empty()) {
    if (names.back() != '*' || names.size() > kPrefixBytesMax + 1) {
      secret = {};
      return fault("behind the secret stands the beginning of names and a star, such as orders/*");
    }
    names.remove_suffix(1);
    read.prefix = names;
  }
  if (!take_word(line).empty()) {
    secret = {};
    return fault("there is more than: name role secret [names]");
  }
  return read;
}

void write_credential(const Credential& credential, const SecretBytes& secret, std::string& text) {
  text += credential.name;
  text += ' ';
  text += name(credential.role);
  text += ' ';
  append_hex(secret, text);
  if (!credential.prefix.empty()) text += " " + credential.prefix + "*";
}

}  // namespace espalier::crypto
