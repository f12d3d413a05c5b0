// SPDX-License-Identifier: Apache-2.0
// Payloads as texts and as bytes, and what reads them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "wire/payload_reader.hpp"

namespace espalier::offload {

/// A payload as bytes, which rows, schemas and pipelines are.
[[nodiscard]] inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Bytes as a payload, which answers and requests carry.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using wire::PayloadReader;

}  // namespace espalier::offload
