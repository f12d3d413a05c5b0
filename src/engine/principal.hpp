// SPDX-License-Identifier: Apache-2.0
// The principal of a request: the client of a connection, or the client on whose behalf a device
// relays (wire/principal.hpp).
//
// Thread: any; no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/access.hpp"
#include "wire/principal.hpp"

namespace espalier::offload {

/// A view of a principal that is stored elsewhere.
struct PrincipalView {
  Right role = Right::none;
  std::string_view name;
  std::string_view prefix;  ///< of the names of objects; empty: all

  [[nodiscard]] std::size_t bytes() const {
    return wire::kPrincipalBytesMin + name.size() + prefix.size();
  }
};
[[nodiscard]] inline PrincipalView view_of(const Access& access) {
  return {access.role(), access.who(), access.prefix()};
}

/// Encodes it. A name over the limit is truncated.
[[nodiscard]] std::string bytes_of(const PrincipalView& principal);
/// Decodes the principal at the end of these bytes; nothing: there is none. A name has printable
/// characters only.
[[nodiscard]] std::optional<PrincipalView> read_principal(std::string_view bytes);

}  // namespace espalier::offload
