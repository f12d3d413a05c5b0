// SPDX-License-Identifier: Apache-2.0
// Conversion of payloads between text and bytes, and their reader.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "wire/payload_reader.hpp"

namespace espalier::offload {

/// A payload as bytes: rows, schemas and pipelines are.
[[nodiscard]] inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Bytes as a payload of an answer or a request.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using wire::PayloadReader;

}  // namespace espalier::offload
