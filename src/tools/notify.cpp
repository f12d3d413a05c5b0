// SPDX-License-Identifier: Apache-2.0
#include "tools/notify.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "base/system_error.hpp"
#include "base/unix_address.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::tools {

Result<void> notify(const std::string& path, std::string_view state) {
  const bool in_a_file = path.starts_with('/');
  if ((!in_a_file && !path.starts_with('@')) || path.size() < 2) {
    return fail(Code::invalid_argument);
  }
  const auto address = in_a_file ? base::UnixAddress::file(path)
                                 : base::UnixAddress::abstract(std::string_view(path).substr(1));
  if (!address) return std::unexpected(address.error());
  const memory::Descriptor made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!made) return base::refused_by_system();
  while (::sendto(made.number(), state.data(), state.size(), MSG_NOSIGNAL, address->get(),
                  address->bytes()) < 0) {
    if (errno != EINTR) return base::refused_by_system();
  }
  return {};
}

}  // namespace espalier::tools
