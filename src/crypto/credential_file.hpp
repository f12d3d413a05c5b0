// SPDX-License-Identifier: Apache-2.0
// Files of credentials (crypto/credential.hpp), as nodes and clients read them: those of a node, or
// the one of a client.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/credential.hpp"
#include "espalier/error.hpp"

namespace espalier::crypto {

/// Why a file of credentials cannot be used.
struct CredentialFileError {
  Error error;                        ///< of the first mistake
  std::vector<std::string> mistakes;  ///< at least one, each with the file's name
};

/// Mistakes reported of one file, at most.
inline constexpr std::size_t kCredentialMistakesMax = 10;

/// Calls `take` with each credential and its secret, which lies in secret memory until `take`
/// returns. `take` returns what is wrong with the line; empty: nothing. `what` is how messages call
/// the file, such as "secrets file". Reads on after mistakes, to report several.
/// Errors: invalid_argument (a line is wrong, or the file is not its owner's alone), system (no
/// such file; no memory may be locked).
[[nodiscard]] std::expected<void, CredentialFileError> read_credentials(
    const std::string& path, std::string_view what,
    const std::function<std::string(Credential credential, const SecretBytes& secret)>& take);

}  // namespace espalier::crypto
