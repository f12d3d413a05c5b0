// SPDX-License-Identifier: Apache-2.0
// Addresses of the fabric as people write them, and the endpoints that they stand for:
//
//     shm:PATH                      processes of this machine; PATH is that of a UNIX socket
//     roce://HOST[:PORT]/SERVICE    RoCEv2 over UDP, in user space
//     roce+memif:PATH[,link=LINK][,service=SERVICE]
//                                   RoCEv2 over memif: frames through shared memory
//     roce+xdp://INTERFACE/HOST[:PORT]/SERVICE
//                                   RoCEv2 over AF_XDP: frames through a network interface
//     ofi://PROVIDER/HOST[:PORT]    connections of libfabric's
//
// HOST is an address of IPv4 or IPv6, in brackets if a PORT stands behind it, or a name, which is
// looked up each time that an endpoint is opened (fabric/host_name.hpp). PORT is 4791, or of `ofi`
// 7471, unless given; to listen, 0 takes one that is free. SERVICE, 1 to 65535, is 1 unless given.
// PROVIDER is a name that libfabric knows: tcp, verbs. LINK, 0 to 255, is a free one unless given:
// each client of a PATH has a link of its own, and the server has them all.
// INTERFACE is one of the machine on which the address is used, with HOST as its own address to
// listen; to connect, it is the interface that leads to HOST. So, if interfaces are named alike, a
// server and its clients can use the same text. memif/port.hpp defines the IP addresses of the ends
// of a link.
//
// Thread: any; no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric {

struct FabricAddress {
  enum class Transport : std::uint8_t { shm, roce, memif, ofi, xdp };
  Transport transport = Transport::shm;
  std::string path;  // shm, memif
  /// shm, memif: the user that the server may run as beside this user and root
  /// (base/trusted_server.hpp). Not part of the text.
  std::optional<std::uint32_t> server_user{};
  roce::PortAddress where;            // roce, xdp, ofi; port 0: any that is free
  std::string name{};                 // of the machine, in place of where.ip; empty: none
  std::optional<std::uint32_t> link;  // memif; nothing: any that is free
  std::uint16_t service = 1;
  std::string provider;   // ofi
  std::string interface;  // xdp
  friend bool operator==(const FabricAddress&, const FabricAddress&) = default;
};

/// The reach of an address.
enum class Reach : std::uint8_t {
  user = 0,     // this user, and root: the socket's mode admits no other
  machine = 1,  // every user of this machine
  network = 2,  // others too
};
[[nodiscard]] Reach reach_of(const FabricAddress& address);

/// What is wrong with an address: the detail of the error.
enum class AddressFault : std::uint32_t {
  none = 0,
  scheme = 1,      // none of the forms
  path = 2,        // empty, longer than that of a socket, or with a zero byte
  host = 3,        // no address of IPv4 or IPv6, and no name
  any_host = 4,    // stands for all addresses of a machine, or for many machines
  port = 5,        // no port; of roce no number below 49152: those above are what cards send from
  service = 6,     // no number from 1 to 65535
  free_port = 7,   // port 0, where an address to connect to is needed
  ip_version = 8,  // the address to send from is of the other version
  link_local = 9,  // means nothing without an interface, which cannot be named
  provider = 10,   // no name as libfabric's providers have
  link = 11,       // behind the path of memif: no number up to 255, or something else
  interface = 12,  // no name as interfaces have
};
/// A sentence that says what was expected; of an error of parse() or of the calls below.
[[nodiscard]] std::string_view explain(AddressFault fault);
/// The same of an error of theirs, whatever it is; empty where there is nothing to say.
[[nodiscard]] std::string_view explain(const Error& error);

/// Errors: invalid_argument (detail: an AddressFault).
Result<FabricAddress> parse(std::string_view text);
/// The text that parse() reads as this address, with all that may be left out.
[[nodiscard]] std::string to_text(const FabricAddress& address);

struct Listening {
  std::unique_ptr<Endpoint> endpoint;
  FabricAddress address;  // with the port that was taken
};
/// Opens an endpoint that listens; waits for the resolver if the address has a name, as
/// open_for_connecting() does. Errors: already_exists (a process listens there), invalid_argument
/// (no path of a socket), unsupported (detail: an ofi::Unsupported or an xdp::Unsupported), system
/// (ENODEV: there is no such interface; EADDRNOTAVAIL: that is no address of it; ENXIO: as
/// look_up()).
Result<Listening> open_for_listening(const FabricAddress& address,
                                     std::shared_ptr<RegionTable> regions);

struct Connecting {
  std::unique_ptr<Endpoint> endpoint;
  std::string target;              // what its connect() takes
  std::uint32_t mtu_bytes = 4096;  // QueuePairOptions::mtu_bytes that fit the way there
};
/// Opens an endpoint from which `target` can be reached: through `local`, else through the address
/// from which the system would send. Errors: invalid_argument (detail: an AddressFault),
/// unsupported (detail: an ofi::Unsupported, connect() too; or an xdp::Unsupported),
/// connection_lost (no process listens at the path of memif, or it does not answer),
/// not_permitted (detail 7: another user's process listens at a path of memif or shm that any user
/// could have made; of shm, connect()),
/// too_many_participants (no link of memif is free), system (ENETUNREACH: no way there; ENODEV: no
/// such interface; EADDRNOTAVAIL: `local` is not of this machine; ENXIO: as look_up()).
Result<Connecting> open_for_connecting(const FabricAddress& target,
                                       std::shared_ptr<RegionTable> regions,
                                       const std::optional<roce::IpAddress>& local = {});

/// An address of IPv4 or IPv6 that one machine can have. Errors: as parse().
Result<roce::IpAddress> parse_host(std::string_view text);
/// Whether it is one: it does not stand for many, nor mean nothing without an interface.
[[nodiscard]] bool is_of_one_machine(const roce::IpAddress& ip);
/// HOST or HOST:PORT, the host of IPv6 in brackets where a port follows; no name. Errors: as
/// parse().
Result<roce::PortAddress> parse_host_port(std::string_view text, std::uint16_t default_port);

}  // namespace espalier::fabric
