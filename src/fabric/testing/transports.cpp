// SPDX-License-Identifier: Apache-2.0
// The transports that tests run over (fabric_fixture.hpp).
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>

#include "base/temporary_folder.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/exchange.hpp"
#include "fabric/roce/packet_network.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/sim/world.hpp"
#include "fabric/testing/fabric_fixture.hpp"
#include "fabric/xdp/library.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"

namespace espalier::fabric {
namespace {

/// Memory of this process, or shared with others.
class LinkMemory {
 public:
  OfferedMemory take(std::uint64_t bytes) {
    memories_.push_back(*memory::SharedMemory::create("fabric-test", bytes));
    const memory::SharedMemory& memory = memories_.back();
    return {memory.at(0), bytes, memory.descriptor(), 0};
  }

 private:
  std::list<memory::SharedMemory> memories_;
};

/// Two endpoints, and what lies between them: `Between` is made first and ends last.
template <class Between>
class LinkOf final : public FabricLink {
 public:
  explicit LinkOf(std::unique_ptr<Between> between) : between_(std::move(between)) {
    near_ = between_->open(0);
    far_ = between_->open(1);
    EXPECT_TRUE(far_->listen(between_->listens()));
  }
  Endpoint& near() override { return *near_; }
  Endpoint& far() override { return *far_; }
  std::string address() override { return between_->address(); }
  std::string nobody() override { return between_->nobody(); }
  void turn() override {
    near_->progress();
    far_->progress();
    between_->go_on();
  }
  OfferedMemory memory(std::uint64_t bytes) override { return memory_.take(bytes); }

 private:
  std::unique_ptr<Between> between_;
  LinkMemory memory_;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
};

/// A simulated world.
struct SimBetween {
  SimBetween(std::uint64_t seed, const sim::Faults& faults) : world(seed, faults) {}
  std::unique_ptr<Endpoint> open(int side) { return world.add_node(side == 0 ? "near" : "far"); }
  static std::string listens() { return "far"; }
  static std::string address() { return "far"; }
  static std::string nobody() { return "nobody"; }
  void go_on() { world.run_for(1000); }
  sim::World world;
};

/// Endpoints that map each other's memory.
struct ShmBetween {
  explicit ShmBetween(std::uint64_t with_seed) : seed(with_seed) {}
  std::unique_ptr<Endpoint> open(int) { return *shm::open(*RegionTable::create(seed++)); }
  std::string listens() { return address(); }
  std::string address() { return (folder / "far").string(); }
  std::string nobody() { return (folder / "nobody").string(); }
  static void go_on() {}
  base::TemporaryFolder folder;
  std::uint64_t seed;
};

/// What those of `roce` share. A port's address is known when it is open.
struct RoceBetween {
  explicit RoceBetween(std::uint64_t with_seed) : seed(with_seed) {}
  std::unique_ptr<Endpoint> over(std::unique_ptr<roce::PacketPort> port) {
    far = port->address();
    auto regions = *RegionTable::create(seed++);
    return std::make_unique<roce::RoceEndpoint>(std::move(port), std::move(regions),
                                                NumberSource::of_seed(seed++));
  }
  static roce::PortAddress own_address(int side) {
    return {roce::IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(side + 1)), 4791};
  }
  static std::string listens() { return "7"; }
  [[nodiscard]] std::string address() const { return to_text(far) + "/7"; }
  [[nodiscard]] std::string nobody() const { return to_text(far) + "/8"; }
  std::uint64_t seed;
  roce::PortAddress far;
};

/// A network that keeps its own time.
struct NetworkBetween : RoceBetween {
  NetworkBetween(std::uint64_t with_seed, const roce::NetworkFaults& faults)
      : RoceBetween(with_seed), network(with_seed) {
    network.faults = faults;
  }
  std::unique_ptr<Endpoint> open(int side) { return over(network.open(own_address(side))); }
  /// A machine that is not there at all.
  [[nodiscard]] static std::string nobody() { return "10.0.0.3/7"; }
  void go_on() { network.advance(10'000); }
  roce::PacketNetwork network;
};

/// UDP sockets of this machine's loopback interface.
struct UdpBetween : RoceBetween {
  UdpBetween(std::uint64_t with_seed, const roce::UdpPortOptions& with_options)
      : RoceBetween(with_seed), options(with_options) {}
  std::unique_ptr<Endpoint> open(int) { return over(*roce::UdpPort::open(options)); }
  static void go_on() {}
  roce::UdpPortOptions options;
};

/// Memory, with no kernel between.
struct ExchangeBetween : RoceBetween {
  using RoceBetween::RoceBetween;
  std::unique_ptr<Endpoint> open(int side) { return over(*exchange.open(own_address(side))); }
  static void go_on() {}
  roce::PortExchange exchange;
};

/// libfabric's provider for TCP. There are no exceptions for it: what it lacks is done by messages.
struct OfiBetween {
  OfiBetween(std::uint64_t with_seed, const char* at_host) : seed(with_seed), host(at_host) {}
  std::unique_ptr<Endpoint> open(int side) {
    auto endpoint = *ofi::open("tcp", *RegionTable::create(seed++));
    if (side == 1) far = endpoint.get();
    return endpoint;
  }
  [[nodiscard]] std::string listens() const { return host + ":0"; }
  [[nodiscard]] std::string address() const { return to_text(far->listens_at()); }
  /// Port 1, where no unprivileged process can listen.
  [[nodiscard]] std::string nobody() const { return host + ":1"; }
  static void go_on() {}
  std::uint64_t seed;
  std::string host;
  ofi::OfiEndpoint* far = nullptr;
};

/// Shared memory of the form that packet programs speak. The far side listens, so it is first.
struct MemifBetween : RoceBetween {
  MemifBetween(std::uint64_t with_seed, bool with_v6) : RoceBetween(with_seed), is_v6(with_v6) {
    listening = *memif::MemifPort::open({path(), true, 0, is_v6});
  }
  std::unique_ptr<Endpoint> open(int side) {
    constexpr std::uint32_t kLink = 3;
    if (side == 1) return over(std::move(listening));
    return over(*memif::MemifPort::open({path(), false, kLink, is_v6}));
  }
  [[nodiscard]] std::string path() const { return (folder / "memif").string(); }
  static void go_on() {}
  base::TemporaryFolder folder;
  bool is_v6;
  std::unique_ptr<memif::MemifPort> listening;
};

/// A cable between two network stacks, and frames past both of them.
struct XdpBetween : RoceBetween {
  XdpBetween(std::uint64_t with_seed, bool with_v6) : RoceBetween(with_seed), is_v6(with_v6) {
    std::string why;
    network = roce::NetworkNamespaces::open(why);
    EXPECT_TRUE(network) << why;
  }
  std::unique_ptr<Endpoint> open(int side) {
    return over(*network->at(side, [&] {
      return xdp::XdpPort::open({xdp::interface_of(side), xdp::address_of(side, is_v6)});
    }));
  }
  static void go_on() {}
  bool is_v6;
  std::unique_ptr<roce::NetworkNamespaces> network;
};

/// Whether this process may do that, as far as can be checked quickly; src/fabric/xdp says why not.
bool may_use_xdp() {
  const auto library = xdp::Library::load();
  if (::geteuid() != 0 || !library) return false;
  const memory::Descriptor map(
      (*library)->create_map(BPF_MAP_TYPE_XSKMAP, "espalier_xsks", 4, 4, 1, nullptr));
  const memory::Descriptor home(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  const memory::Descriptor socket(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!map || !home || !socket || ::unshare(CLONE_NEWNET) != 0) return false;
  return ::setns(home.number(), CLONE_NEWNET) == 0;
}

template <class Between, class... Rest>
FabricTransport transport(std::string name, std::uint32_t effort, const Rest&... rest) {
  return {std::move(name),
          [rest...](std::uint64_t seed) {
            return std::make_unique<LinkOf<Between>>(std::make_unique<Between>(seed, rest...));
          },
          effort};
}

}  // namespace

std::vector<FabricTransport> fabric_transports() {
  const auto loopback = roce::IpAddress::v4(127, 0, 0, 1);
  const auto loopback_six = roce::IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  roce::NetworkFaults reordering;
  reordering.delay_max_ns = 5000;
  roce::NetworkFaults losing;
  losing.loss = 0.05;
  losing.duplicate = 0.02;
  losing.damage = 0.01;
  losing.delay_max_ns = 3000;
  std::vector<FabricTransport> all{
      transport<SimBetween>("sim", 1, sim::Faults{}),
      transport<SimBetween>("sim_harsh", 4, sim::Faults::harsh()),
      transport<ShmBetween>("shm", 1),
      transport<NetworkBetween>("roce", 1, roce::NetworkFaults{}),
      transport<NetworkBetween>("roce_reordering", 1, reordering),
      transport<NetworkBetween>("roce_losing", 2, losing),
      transport<ExchangeBetween>("roce_memory", 1),
      transport<MemifBetween>("roce_memif", 1, false),
      transport<MemifBetween>("roce_memif_ipv6", 1, true),
      transport<UdpBetween>("roce_udp", 1, roce::UdpPortOptions{{loopback, 0}, true}),
      transport<UdpBetween>("roce_udp_ipv6", 1, roce::UdpPortOptions{{loopback_six, 0}, true}),
      transport<UdpBetween>("roce_udp_plain", 1, roce::UdpPortOptions{{loopback, 0}, false}),
      transport<OfiBetween>("ofi_tcp", 1, "127.0.0.1"),
      transport<OfiBetween>("ofi_tcp_ipv6", 1, "[::1]"),
  };
  if (may_use_xdp()) {
    all.push_back(transport<XdpBetween>("roce_xdp", 4, false));
    all.push_back(transport<XdpBetween>("roce_xdp_ipv6", 4, true));
  }
  return all;
}

}  // namespace espalier::fabric
