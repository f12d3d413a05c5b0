// SPDX-License-Identifier: Apache-2.0
// What a host answers to what a device has posted (host_link.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/error.hpp"
#include "wire/message.hpp"

namespace espalier::device {

/// How the host's answer is taken: at once, or piece by piece as fast as the client takes it.
enum class AnswerPace : std::uint8_t { at_once, as_taken };

/// A piece of the host's answer. Its bytes are there until whoever is told returns.
struct HostAnswer {
  wire::ResponseHeader header{};  ///< as the host sent it; or no more than a code, if it did not
  std::string_view payload{};
  bool last = true;
};

/// The answer of a host that did not give one.
[[nodiscard]] inline HostAnswer failed_with(Code code) {
  HostAnswer answer;
  answer.header.code = static_cast<std::uint16_t>(code);
  return answer;
}

}  // namespace espalier::device
