// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/listener_timeout.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <filesystem>
#include <system_error>

#include "base/number_text.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

// What has been promised is mostly there already: it was sent with its header.
constexpr timeval kListenerTimeout{0, 1000};

bool listens_there(int number, const roce::PortAddress& where) {
  int listens = 0;
  socklen_t bytes = sizeof listens;
  if (::getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0) {
    return false;
  }
  roce::SocketAddress own;
  if (::getsockname(number, own.get(), &own.bytes) != 0) return false;
  const auto family = own.storage.ss_family;
  return (family == AF_INET || family == AF_INET6) && roce::to_port_address(own.storage) == where;
}

}  // namespace

void shorten_receive_timeout(const roce::PortAddress& listens_at) {
  std::error_code gone;
  for (std::filesystem::directory_iterator at("/proc/self/fd", gone), end; !gone && at != end;
       at.increment(gone)) {
    const auto number = base::parse_digits<std::uint16_t>(at->path().filename().string());
    if (!number || !listens_there(*number, listens_at)) continue;
    ::setsockopt(*number, SOL_SOCKET, SO_RCVTIMEO, &kListenerTimeout, sizeof kListenerTimeout);
  }
}

}  // namespace espalier::fabric::ofi
