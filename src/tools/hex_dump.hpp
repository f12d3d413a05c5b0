// SPDX-License-Identifier: Apache-2.0
// Bytes for eyes: where they lie, their digits, and which of them are letters.
// Thread: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espalier::tools {

/// Lines of 16 bytes, the first of which lies at `offset`:
/// "00000010  68 65 6c 6c 6f 20 77 6f  72 6c 64 0a              |hello world.|".
[[nodiscard]] std::string hex_dump(std::string_view bytes, std::uint64_t offset);

}  // namespace espalier::tools
