// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/interface.hpp"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/system_error.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/xdp/library.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::xdp {

Result<Interface> Interface::find(const std::string& name) {
  ifreq asked{};
  if (name.empty() || name.size() >= sizeof asked.ifr_name) return base::refused_by_system(ENODEV);
  std::memcpy(asked.ifr_name, name.data(), name.size());
  const memory::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any) return base::refused_by_system();
  Interface found;
  if (::ioctl(any.number(), SIOCGIFINDEX, &asked) != 0) return base::refused_by_system();
  found.number = static_cast<std::uint32_t>(asked.ifr_ifindex);
  if (::ioctl(any.number(), SIOCGIFMTU, &asked) != 0) return base::refused_by_system();
  found.mtu_bytes = static_cast<std::uint32_t>(asked.ifr_mtu);
  if (::ioctl(any.number(), SIOCGIFHWADDR, &asked) != 0) return base::refused_by_system();
  if (asked.ifr_hwaddr.sa_family != ARPHRD_ETHER) return is_unsupported(Unsupported::ethernet);
  std::memcpy(found.mac.data(), asked.ifr_hwaddr.sa_data, found.mac.size());
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  asked.ifr_data = reinterpret_cast<char*>(&channels);
  // A driver that knows of no queues has one.
  if (::ioctl(any.number(), SIOCETHTOOL, &asked) == 0) {
    found.queues = std::max<std::uint32_t>(1, channels.combined_count + channels.rx_count);
  }
  return found;
}

Result<bool> has_address(const std::string& interface, const roce::IpAddress& ip) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return base::refused_by_system();
  const int family = ip.is_v6 ? AF_INET6 : AF_INET;
  bool found = false;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, each->ifa_addr, ip.is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    found = found || (interface == each->ifa_name && roce::to_port_address(storage).ip == ip);
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace espalier::fabric::xdp
