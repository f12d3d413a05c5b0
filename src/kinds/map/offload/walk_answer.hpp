// SPDX-License-Identifier: Apache-2.0
// Encodes results of walks as responses.
#pragma once

#include "engine/call.hpp"
#include "espalier/types.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

[[nodiscard]] inline wire::ResponseHeader header_of(const Completion& done) {
  wire::ResponseHeader header{};
  header.version = wire::in_register(done.version);
  header.read_version = wire::in_register(done.read_version);
  if (done.found) header.flags |= wire::kFound;
  if (done.applied) header.flags |= wire::kApplied;
  return header;
}

/// For walks whose answer is in the header: writes.
inline Next answer_walk(Call& call, const Completion& done) {
  if (!done.ok) return call.fail(done.error);
  return call.answer(header_of(done));
}

}  // namespace espalier::offload
