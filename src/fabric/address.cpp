// SPDX-License-Identifier: Apache-2.0
#include "fabric/address.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/number_text.hpp"
#include "base/system_error.hpp"
#include "base/unix_address.hpp"
#include "fabric/host_name.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/number_source.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/format.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/xdp/library.hpp"
#include "fabric/xdp/port.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric {
namespace {

constexpr std::string_view kShm = "shm:";
constexpr std::string_view kRoce = "roce://";
constexpr std::string_view kMemif = "roce+memif:";
constexpr std::string_view kXdp = "roce+xdp://";
constexpr std::string_view kOfi = "ofi://";
constexpr std::uint32_t kPortsEnd = 49152;  // what network cards send from begins here
constexpr std::uint32_t kAllPortsEnd = 65536;
constexpr std::size_t kProviderBytesMax = 32;
constexpr std::size_t kInterfaceBytesMax = 15;
// IP, UDP, BTH, RETH, ImmDt and ICRC around the payload of a packet.
constexpr int kAroundPayload = 40 + 8 + 12 + 16 + 4 + 4;
constexpr std::uint32_t kSmallMtu = 1024;
constexpr std::uint32_t kLargeMtu = 4096;

std::unexpected<Error> fault(AddressFault what) {
  return fail(Code::invalid_argument, static_cast<std::uint32_t>(what));
}

bool stands_for_many(const roce::IpAddress& ip) {
  const auto& bytes = ip.bytes;
  if (ip.is_v6) {
    const bool zero = std::all_of(bytes.begin(), bytes.end(), [](auto byte) { return byte == 0; });
    return zero || bytes[0] == 0xFF;
  }
  return bytes[0] == 0 || bytes[0] >= 224;
}

/// An address of IPv4 in the clothes of IPv6: packets to it are of IPv4, and their ICRC with them.
bool is_mapped(const roce::IpAddress& ip) {
  const auto& bytes = ip.bytes;
  return ip.is_v6 &&
         std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) &&
         bytes[10] == 0xFF && bytes[11] == 0xFF;
}

/// Many links have the same one, so sending to it needs an interface as well.
bool is_link_local(const roce::IpAddress& ip) {
  return ip.is_v6 && ip.bytes[0] == 0xFE && (ip.bytes[1] & 0xC0) == 0x80;
}

/// HOST[:PORT], into the address.
Result<void> parse_where(std::string_view text, std::uint16_t default_port, std::uint32_t ports_end,
                         FabricAddress& address) {
  std::string_view host = text;
  std::optional<std::string_view> port;
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (bracketed) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return fault(AddressFault::host);
    host = text.substr(1, close - 1);
    if (const auto rest = text.substr(close + 1); !rest.empty()) {
      if (rest[0] != ':') return fault(AddressFault::port);
      port = rest.substr(1);
    }
  } else if (colon != std::string_view::npos && text.find(':') == colon) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  address.where = {{}, default_port};
  if (!bracketed && is_host_name(host)) {
    address.name = host;
  } else {
    const auto ip = parse_host(host);
    if (!ip) return std::unexpected(ip.error());
    if (bracketed && !ip->is_v6) return fault(AddressFault::host);
    address.where.ip = *ip;
  }
  if (port) {
    const auto number = base::parse_digits<std::uint16_t>(*port);
    if (!number || *number >= ports_end) return fault(AddressFault::port);
    address.where.udp_port = *number;
  }
  return {};
}

/// HOST:PORT, as the address has it.
std::string where_of(const FabricAddress& address) {
  if (address.name.empty()) return roce::to_text(address.where);
  return address.name + ":" + std::to_string(address.where.udp_port);
}

/// With the number in place of the name, if it has one. Errors: as look_up().
Result<FabricAddress> with_number(FabricAddress address, std::optional<bool> is_v6 = {}) {
  if (address.name.empty()) return address;
  const auto ip = look_up(address.name, is_v6);
  if (!ip) return std::unexpected(ip.error());
  address.name.clear();
  address.where.ip = *ip;
  return address;
}

Result<FabricAddress> parse_roce(std::string_view text) {
  FabricAddress address;
  address.transport = FabricAddress::Transport::roce;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto service = base::parse_digits<std::uint16_t>(text.substr(slash + 1));
    if (!service || *service == 0) return fault(AddressFault::service);
    address.service = *service;
    text = text.substr(0, slash);
  }
  const auto where = parse_where(text, wire::roce::kUdpPort, kPortsEnd, address);
  if (!where) return std::unexpected(where.error());
  return address;
}

/// The kernel's rule for names of interfaces, but for those that would be hard to write.
bool is_interface(std::string_view name) {
  return !name.empty() && name.size() <= kInterfaceBytesMax && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != ':' && c != ','; });
}

Result<FabricAddress> parse_xdp(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view interface = text.substr(0, slash);
  if (slash == std::string_view::npos || !is_interface(interface)) {
    return fault(AddressFault::interface);
  }
  auto address = parse_roce(text.substr(slash + 1));
  if (!address) return std::unexpected(address.error());
  address->transport = FabricAddress::Transport::xdp;
  address->interface = interface;
  return address;
}

Result<FabricAddress> parse_ofi(std::string_view text) {
  FabricAddress address;
  address.transport = FabricAddress::Transport::ofi;
  address.provider = text.substr(0, text.find('/'));
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  if (address.provider.empty() || address.provider.size() == text.size() ||
      address.provider.size() > kProviderBytesMax ||
      address.provider.find_first_not_of(kLetters) != std::string::npos) {
    return fault(AddressFault::provider);
  }
  const auto where = parse_where(text.substr(address.provider.size() + 1), ofi::kDefaultPort,
                                 kAllPortsEnd, address);
  if (!where) return std::unexpected(where.error());
  return address;
}

Result<FabricAddress> parse_memif(std::string_view text) {
  FabricAddress address;
  address.transport = FabricAddress::Transport::memif;
  std::size_t comma = text.find(',');
  address.path = text.substr(0, comma);
  if (!base::UnixAddress::file(address.path)) return fault(AddressFault::path);
  while (comma != std::string_view::npos) {
    text = text.substr(comma + 1);
    comma = text.find(',');
    const std::string_view setting = text.substr(0, comma);
    const auto number = base::parse_digits<std::uint16_t>(setting.substr(setting.find('=') + 1));
    if (setting.starts_with("service=")) {
      if (!number || *number == 0) return fault(AddressFault::service);
      address.service = *number;
    } else {
      if (!setting.starts_with("link=") || !number || *number >= memif::kLinksMax) {
        return fault(AddressFault::link);
      }
      address.link = *number;
    }
  }
  return address;
}

Result<std::unique_ptr<Endpoint>> open_memif(const FabricAddress& address, bool listens,
                                             std::shared_ptr<RegionTable> regions) {
  auto numbers = NumberSource::of_system();
  if (!numbers) return std::unexpected(numbers.error());
  auto port = memif::MemifPort::open({.path = address.path,
                                      .listens = listens,
                                      .link = address.link,
                                      .server_user = address.server_user});
  if (!port) return std::unexpected(port.error());
  return std::make_unique<roce::RoceEndpoint>(std::move(*port), std::move(regions),
                                              std::move(*numbers));
}

/// Over UDP; through an interface, if one is named.
Result<std::unique_ptr<roce::PacketPort>> open_port(const std::string& interface,
                                                    const roce::PortAddress& at) {
  if (interface.empty()) return roce::UdpPort::open({.address = at});
  return xdp::XdpPort::open({.interface = interface, .address = at});
}

Result<std::pair<std::unique_ptr<Endpoint>, roce::PortAddress>> open_by_packets(
    const std::string& interface, const roce::PortAddress& at,
    std::shared_ptr<RegionTable> regions) {
  auto numbers = NumberSource::of_system();
  if (!numbers) return std::unexpected(numbers.error());
  auto port = open_port(interface, at);
  if (!port) return std::unexpected(port.error());
  const roce::PortAddress taken = (*port)->address();
  return std::pair(std::make_unique<roce::RoceEndpoint>(std::move(*port), std::move(regions),
                                                        std::move(*numbers)),
                   taken);
}

struct Route {
  roce::IpAddress from;
  std::uint32_t mtu_bytes;
};

/// Finds the route that packets would take, by a socket that is connected and never used: through
/// any interface, if none is named.
Result<Route> find_route(const roce::PortAddress& to, const std::optional<roce::IpAddress>& local,
                         const std::string& interface) {
  const bool six = to.ip.is_v6;
  const memory::Descriptor made(::socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!made) return base::refused_by_system();
  if (!interface.empty() &&
      ::setsockopt(made.number(), SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) != 0) {
    return base::refused_by_system();
  }
  if (local) {
    const roce::SocketAddress from({*local, 0});
    if (::bind(made.number(), from.get(), from.bytes) != 0) return base::refused_by_system();
  }
  const roce::SocketAddress target(to);
  if (::connect(made.number(), target.get(), target.bytes) != 0) return base::refused_by_system();
  roce::SocketAddress own;
  if (::getsockname(made.number(), own.get(), &own.bytes) != 0) return base::refused_by_system();
  int path_bytes = 0;
  socklen_t size = sizeof path_bytes;
  const int completion =
      six ? ::getsockopt(made.number(), IPPROTO_IPV6, IPV6_MTU, &path_bytes, &size)
          : ::getsockopt(made.number(), IPPROTO_IP, IP_MTU, &path_bytes, &size);
  const bool fits = completion == 0 && path_bytes >= static_cast<int>(kLargeMtu) + kAroundPayload;
  return Route{roce::to_port_address(own.storage).ip, fits ? kLargeMtu : kSmallMtu};
}

}  // namespace

Reach reach_of(const FabricAddress& address) {
  using Transport = FabricAddress::Transport;
  switch (address.transport) {
    case Transport::shm:
    case Transport::memif: return Reach::user;
    case Transport::xdp: return Reach::network;
    case Transport::roce:
    case Transport::ofi: break;
  }
  // A name may be another machine's tomorrow.
  const bool is_here = address.name.empty() && address.where.ip.is_loopback();
  return is_here ? Reach::machine : Reach::network;
}

std::string_view explain(AddressFault fault) {
  switch (fault) {
    case AddressFault::none: break;
    case AddressFault::scheme:
      return "An address is shm:PATH, roce://HOST[:PORT]/SERVICE, "
             "roce+memif:PATH[,link=LINK][,service=SERVICE], "
             "roce+xdp://INTERFACE/HOST[:PORT]/SERVICE or ofi://PROVIDER/HOST[:PORT].";
    case AddressFault::path:
      return "Behind shm: and roce+memif: stands the path of a socket, of 1 to 107 bytes.";
    case AddressFault::host:
      return "HOST is an address such as 192.0.2.1 or 2001:db8::1, in brackets if a port follows, "
             "or a name such as node-1.example.org.";
    case AddressFault::any_host: return "HOST is one address of one machine.";
    case AddressFault::port: return "PORT is a number up to 49151, or of ofi up to 65535.";
    case AddressFault::service: return "SERVICE is a number from 1 to 65535.";
    case AddressFault::free_port:
      return "Port 0 is for those who listen; give the port that they have told.";
    case AddressFault::ip_version: return "Both ends have an address of IPv4, or both one of IPv6.";
    case AddressFault::link_local:
      return "HOST is no address of a link (fe80::...): interfaces cannot be named; take another.";
    case AddressFault::provider:
      return "Behind ofi:// stands the name of a provider of libfabric's, such as tcp or verbs, "
             "and "
             "after a slash HOST[:PORT].";
    case AddressFault::link:
      return "Behind the PATH of roce+memif: stand ,link=LINK, a number from 0 to 255, and "
             ",service=SERVICE.";
    case AddressFault::interface:
      return "Behind roce+xdp:// stands the name of a network interface, such as eth0, of up to 15 "
             "bytes, and after a slash HOST[:PORT]/SERVICE.";
  }
  return "The address is good.";
}

std::string_view explain(const Error& error) {
  if (error.code == Code::unsupported) {
    const std::string_view by_xdp = xdp::explain(static_cast<xdp::Unsupported>(error.detail));
    return by_xdp.empty() ? ofi::explain(static_cast<ofi::Unsupported>(error.detail)) : by_xdp;
  }
  if (error == Error{Code::system, 0, ENXIO}) {
    return "The name has no address just now, as this machine's resolver says ('getent ahosts "
           "NAME' asks it).";
  }
  if (error.code != Code::invalid_argument) return {};
  return explain(static_cast<AddressFault>(error.detail));
}

bool is_of_one_machine(const roce::IpAddress& ip) {
  return !is_mapped(ip) && !stands_for_many(ip) && !is_link_local(ip);
}

Result<roce::IpAddress> parse_host(std::string_view text) {
  if (text.contains('%')) return fault(AddressFault::link_local);
  // The system's own reader stops at a zero byte, and that of ports takes more than a host.
  const bool plain = text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
  if (!plain || (text.contains('.') && std::count(text.begin(), text.end(), ':') == 1)) {
    return fault(AddressFault::host);
  }
  const auto parsed = roce::parse_address(text);
  if (!parsed || is_mapped(parsed->ip)) return fault(AddressFault::host);
  if (stands_for_many(parsed->ip)) return fault(AddressFault::any_host);
  if (is_link_local(parsed->ip)) return fault(AddressFault::link_local);
  return parsed->ip;
}

Result<roce::PortAddress> parse_host_port(std::string_view text, std::uint16_t default_port) {
  FabricAddress address;
  if (auto read = parse_where(text, default_port, kAllPortsEnd, address); !read) {
    return std::unexpected(read.error());
  }
  if (!address.name.empty()) return fault(AddressFault::host);
  return address.where;
}

Result<FabricAddress> parse(std::string_view text) {
  if (text.starts_with(kRoce)) return parse_roce(text.substr(kRoce.size()));
  if (text.starts_with(kOfi)) return parse_ofi(text.substr(kOfi.size()));
  if (text.starts_with(kXdp)) return parse_xdp(text.substr(kXdp.size()));
  if (text.starts_with(kMemif)) return parse_memif(text.substr(kMemif.size()));
  if (!text.starts_with(kShm)) return fault(AddressFault::scheme);
  FabricAddress address;
  address.path = text.substr(kShm.size());
  if (!base::UnixAddress::file(address.path)) return fault(AddressFault::path);
  return address;
}

std::string to_text(const FabricAddress& address) {
  if (address.transport == FabricAddress::Transport::shm) return std::string(kShm) + address.path;
  if (address.transport == FabricAddress::Transport::ofi) {
    return std::string(kOfi) + address.provider + "/" + where_of(address);
  }
  if (address.transport == FabricAddress::Transport::memif) {
    const std::string link = address.link ? ",link=" + std::to_string(*address.link) : "";
    return std::string(kMemif) + address.path + link +
           ",service=" + std::to_string(address.service);
  }
  const std::string where = where_of(address) + "/" + std::to_string(address.service);
  if (address.transport == FabricAddress::Transport::xdp) {
    return std::string(kXdp) + address.interface + "/" + where;
  }
  return std::string(kRoce) + where;
}

namespace {

Result<Listening> listen_by_ofi(Listening made, std::shared_ptr<RegionTable> regions) {
  auto opened = ofi::open(made.address.provider, std::move(regions));
  if (!opened) return std::unexpected(opened.error());
  const auto listens = (*opened)->listen(roce::to_text(made.address.where));
  if (!listens) return std::unexpected(listens.error());
  made.address.where = (*opened)->listens_at();
  made.endpoint = std::move(*opened);
  return made;
}

}  // namespace

Result<Listening> open_for_listening(const FabricAddress& written,
                                     std::shared_ptr<RegionTable> regions) {
  const auto known = with_number(written);
  if (!known) return std::unexpected(known.error());
  const FabricAddress& address = *known;
  Listening made{nullptr, address};
  std::string where = address.path;
  if (address.transport == FabricAddress::Transport::shm) {
    auto opened = shm::open(std::move(regions));
    if (!opened) return std::unexpected(opened.error());
    made.endpoint = std::move(*opened);
  } else if (address.transport == FabricAddress::Transport::ofi) {
    return listen_by_ofi(std::move(made), std::move(regions));
  } else if (address.transport == FabricAddress::Transport::memif) {
    auto opened = open_memif(address, true, std::move(regions));
    if (!opened) return std::unexpected(opened.error());
    made.endpoint = std::move(*opened);
    where = std::to_string(address.service);
  } else {
    auto opened = open_by_packets(address.interface, address.where, std::move(regions));
    if (!opened && opened.error() == Error{Code::system, 0, EADDRINUSE}) {
      return fail(Code::already_exists);
    }
    if (!opened) return std::unexpected(opened.error());
    made.endpoint = std::move(opened->first);
    made.address.where = opened->second;
    where = std::to_string(address.service);
  }
  if (const auto listens = made.endpoint->listen(where); !listens) {
    return std::unexpected(listens.error());
  }
  return made;
}

Result<Connecting> open_for_connecting(const FabricAddress& written,
                                       std::shared_ptr<RegionTable> regions,
                                       const std::optional<roce::IpAddress>& local) {
  const auto known = with_number(written, local ? std::optional(local->is_v6) : std::nullopt);
  if (!known) return std::unexpected(known.error());
  const FabricAddress& target = *known;
  if (target.transport == FabricAddress::Transport::shm) {
    auto opened = shm::open(std::move(regions), target.server_user);
    if (!opened) return std::unexpected(opened.error());
    return Connecting{std::move(*opened), target.path};
  }
  if (target.transport == FabricAddress::Transport::memif) {
    auto opened = open_memif(target, false, std::move(regions));
    if (!opened) return std::unexpected(opened.error());
    return Connecting{std::move(*opened), roce::to_text(memif::listener_address()) + "/" +
                                              std::to_string(target.service)};
  }
  if (target.where.udp_port == 0) return fault(AddressFault::free_port);
  if (target.transport == FabricAddress::Transport::ofi) {
    auto opened = ofi::open(target.provider, std::move(regions));
    if (!opened) return std::unexpected(opened.error());
    return Connecting{std::move(*opened), roce::to_text(target.where)};
  }
  if (local && local->is_v6 != target.where.ip.is_v6) return fault(AddressFault::ip_version);
  const auto route = find_route(target.where, local, target.interface);
  if (!route) return std::unexpected(route.error());
  auto opened = open_by_packets(target.interface, {route->from, 0}, std::move(regions));
  if (!opened) return std::unexpected(opened.error());
  return Connecting{std::move(opened->first),
                    roce::to_text(target.where) + "/" + std::to_string(target.service),
                    target.interface.empty() ? route->mtu_bytes : xdp::XdpPort::kMtuBytes};
}

}  // namespace espalier::fabric
