// SPDX-License-Identifier: Apache-2.0
// A line of a secrets file: a client's name, its role, and the secret that authenticates it.
//
//     name role secret [names]
//
// with words apart by blanks. `name` is 1 to 32 letters, digits, '.', '-' and '_'; `role` is read,
// write, admin, peer or replica; `secret` is 64 hexadecimal digits, which are 32 bytes that were
// drawn; `names` is the beginning of names of objects and a star, such as orders/*, and none means
// all.
//
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::crypto {

inline constexpr std::size_t kSecretBytes = 32;
using SecretBytes = std::array<std::byte, kSecretBytes>;
inline constexpr std::size_t kCredentialNameBytesMax = 32;
inline constexpr std::size_t kPrefixBytesMax = 255;

enum class Role : std::uint8_t { read = 1, write = 2, admin = 3, peer = 8, replica = 9 };
/// Empty: of no role.
[[nodiscard]] std::string_view name(Role role);
[[nodiscard]] std::optional<Role> role_of(std::string_view text);

/// Whether this can be a client's name.
[[nodiscard]] bool is_credential_name(std::string_view name);

/// Whether a secret can have been drawn: zeros, or one byte over and over, were not.
[[nodiscard]] bool is_drawn(const SecretBytes& secret);

/// A line without its secret.
struct Credential {
  std::string name;
  Role role = Role::read;
  std::string prefix;  ///< of the names of objects; empty: all

  friend bool operator==(const Credential&, const Credential&) = default;
};

/// What is wrong with a line, for people; says nothing of the secret.
using CredentialFault = std::string;

/// Reads a line; nothing: it is blank or a comment, which begins with '#'. The secret goes to
/// `secret`, which should be secret memory, and is zeros where there is none.
[[nodiscard]] std::expected<std::optional<Credential>, CredentialFault> parse_credential(
    std::string_view line, SecretBytes& secret);
/// Writes one, without an end of line. The text holds the secret.
void write_credential(const Credential& credential, const SecretBytes& secret, std::string& text);

}  // namespace espalier::crypto
