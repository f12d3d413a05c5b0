// SPDX-License-Identifier: Apache-2.0
// A host's answer to a device's post (host_link.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/error.hpp"
#include "wire/message.hpp"

namespace espalier::device {

/// Flow control of an answer: at_once: as fast as the host sends it; as_taken: piece by piece, as
/// fast as the client takes it.
enum class AnswerPace : std::uint8_t { at_once, as_taken };

/// A piece of the host's answer. Its bytes are valid until the callback returns.
struct HostAnswer {
  wire::ResponseHeader header{};  ///< from the host; or only a code, if it did not answer
  std::string_view payload{};
  bool last = true;
};

/// Stands for the answer of a host that gave none.
[[nodiscard]] inline HostAnswer failed_with(Code code) {
  HostAnswer answer;
  answer.header.code = static_cast<std::uint16_t>(code);
  return answer;
}

}  // namespace espalier::device
