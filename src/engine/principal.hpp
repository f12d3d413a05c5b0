// SPDX-License-Identifier: Apache-2.0
// Who asks for something: the client of a connection, or the one on whose behalf a device relays
// (wire/principal.hpp).
//
// Thread: any; no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/access.hpp"
#include "wire/principal.hpp"

namespace espalier::offload {

/// A principal as it stands somewhere else.
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

/// As it travels. A name that is longer than may be is cut.
[[nodiscard]] std::string bytes_of(const PrincipalView& principal);
/// The one at the end of these bytes; nothing: there is none. A name is of printable characters.
[[nodiscard]] std::optional<PrincipalView> read_principal(std::string_view bytes);

}  // namespace espalier::offload
