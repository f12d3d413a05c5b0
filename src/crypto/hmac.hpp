// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 [RFC 2104], by libcrypto.
//
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "espalier/error.hpp"

namespace espalier::crypto {

using Digest = std::array<std::byte, 32>;

/// Of the concatenated parts, 2 KiB in all at most. Intermediate results are overwritten.
/// Errors: unsupported (no libcrypto). Cost: about a microsecond.
[[nodiscard]] Result<Digest> hmac_sha256(std::span<const std::byte> key,
                                         std::initializer_list<std::span<const std::byte>> parts);

/// Compares in constant time: the time does not depend on where they differ.
/// Requires: as many bytes.
[[nodiscard]] bool equal_in_secret(std::span<const std::byte> a,
                                   std::span<const std::byte> b) noexcept;

}  // namespace espalier::crypto
