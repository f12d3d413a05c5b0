// SPDX-License-Identifier: Apache-2.0
// How a request is refused: the code stands in the header of the answer, its payload is the detail,
// 4 bytes, and then words for people, if there are any.
#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include "espalier/error.hpp"
#include "wire/message.hpp"

namespace espalier::wire {

/// The detail, as a payload begins with it.
[[nodiscard]] inline std::array<char, sizeof(Error::detail)> detail_bytes(const Error& error) {
  std::array<char, sizeof(Error::detail)> bytes;
  std::memcpy(bytes.data(), &error.detail, bytes.size());
  return bytes;
}

/// What is refused, of any bytes; one without a detail has 0.
[[nodiscard]] inline Error error_in(std::uint16_t code, std::string_view payload) {
  Error error{static_cast<Code>(code), 0, 0};
  if (payload.size() >= sizeof error.detail) {
    std::memcpy(&error.detail, payload.data(), sizeof error.detail);
  }
  return error;
}

/// The words; they lie in the payload.
[[nodiscard]] inline std::string_view words_in(std::string_view payload) {
  return payload.substr(payload.size() < sizeof(Error::detail) ? payload.size()
                                                               : sizeof(Error::detail));
}

}  // namespace espalier::wire
