// SPDX-License-Identifier: Apache-2.0
// Keys and tags of datagrams (wire/datagram.hpp).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "crypto/credential.hpp"
#include "espalier/error.hpp"
#include "wire/datagram.hpp"

namespace espalier::crypto {

/// The key of a session of datagrams, out of that of the connection; zeros: it has none. The nonce
/// is secret then. Errors: unsupported (no libcrypto).
[[nodiscard]] Result<void> datagram_key(const SecretBytes& connection,
                                        const wire::DatagramOffer& of, SecretBytes& key);

/// Writes the tag into a datagram of either header, which both have at one place.
/// Requires: at least a header, at most kDatagramBytesMax. Errors: unsupported. Cost: 1 us.
[[nodiscard]] Result<void> sign_request(const SecretBytes& key, std::span<std::byte> datagram);
[[nodiscard]] Result<void> sign_reply(const SecretBytes& key, std::span<std::byte> datagram);
/// Whether its tag is right. Requires: as above.
[[nodiscard]] bool is_signed_request(const SecretBytes& key, std::span<const std::byte> datagram);
[[nodiscard]] bool is_signed_reply(const SecretBytes& key, std::span<const std::byte> datagram);

}  // namespace espalier::crypto
