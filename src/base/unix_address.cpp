// SPDX-License-Identifier: Apache-2.0
#include "base/unix_address.hpp"

#include <cstring>

namespace espalier::base {

Result<UnixAddress> UnixAddress::make(std::string_view name, std::size_t offset) {
  if (name.empty() || offset + name.size() > kNameMax ||
      name.find('\0') != std::string_view::npos) {
    return fail(Code::invalid_argument, kNameMax);
  }
  UnixAddress made;
  made.name_.sun_family = AF_UNIX;
  std::memcpy(made.name_.sun_path + offset, name.data(), name.size());
  return made;
}

Result<UnixAddress> UnixAddress::file(std::string_view path) { return make(path, 0); }

Result<UnixAddress> UnixAddress::abstract(std::string_view name) {
  auto made = make(name, 1);
  // The name begins with a zero and ends where the address ends.
  if (made) {
    made->bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  return made;
}

}  // namespace espalier::base
