// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_ends.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "bench/probe.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/exchange.hpp"
#include "fabric/roce/losing_port.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/xdp/port.hpp"

namespace espalier::bench {
namespace {

struct Named {
  FabricKind kind;
  std::string_view name;
};
constexpr std::array kKinds{Named{FabricKind::shm, "shm"},
                            Named{FabricKind::roce_memory, "roce-memory"},
                            Named{FabricKind::roce_memif, "roce-memif"},
                            Named{FabricKind::roce_udp, "roce-udp"},
                            Named{FabricKind::roce_udp6, "roce-udp6"},
                            Named{FabricKind::ofi_tcp, "ofi-tcp"},
                            Named{FabricKind::roce_xdp, "roce-xdp"},
                            Named{FabricKind::roce_udp_veth, "roce-udp-veth"}};

constexpr std::uint32_t kServerReceives = 512;
constexpr std::uint32_t kReceiveBytes = 4096;

template <class T>
T must(Result<T> result, std::string_view what) {
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, message(result.error())));
  return std::move(*result);
}

void must(const Result<void>& result, std::string_view what) {
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, message(result.error())));
}

namespace roce = fabric::roce;

/// At one end of a cable.
std::unique_ptr<roce::PacketPort> open_on_cable(FabricKind kind,
                                                const roce::NetworkNamespaces& network,
                                                bool listens) {
  const int side = listens ? 1 : 0;
  const roce::PortAddress at = roce::NetworkNamespaces::address_of(side, false);
  return network.at(side, [&]() -> std::unique_ptr<roce::PacketPort> {
    if (kind == FabricKind::roce_udp_veth) {
      return must(roce::UdpPort::open({.address = at}), "UDP port");
    }
    const std::string interface = roce::NetworkNamespaces::interface_of(side);
    return must(fabric::xdp::XdpPort::open({.interface = interface, .address = at}), "AF_XDP");
  });
}

/// `path`: of a socket, for kinds that need one.
std::unique_ptr<roce::PacketPort> open_port(FabricKind kind, const std::string& path,
                                            bool listens) {
  if (kind == FabricKind::roce_memif) {
    return must(fabric::memif::MemifPort::open({.path = path, .listens = listens}), "memif port");
  }
  if (kind == FabricKind::roce_memory) {
    // All ports of this process meet here; addresses are used once.
    static roce::PortExchange exchange;
    static std::atomic<std::uint32_t> ports{0};
    const std::uint32_t number = ports.fetch_add(1);
    const auto ip = roce::IpAddress::v4(10, static_cast<std::uint8_t>(number >> 16),
                                        static_cast<std::uint8_t>(number >> 8),
                                        static_cast<std::uint8_t>(number));
    return must(exchange.open({ip, wire::roce::kUdpPort}), "port");
  }
  constexpr std::array<std::uint8_t, 16> kLoopbackSix{0, 0, 0, 0, 0, 0, 0, 0,
                                                      0, 0, 0, 0, 0, 0, 0, 1};
  roce::UdpPortOptions options;
  options.address.ip = kind == FabricKind::roce_udp6 ? roce::IpAddress::v6(kLoopbackSix)
                                                     : roce::IpAddress::v4(127, 0, 0, 1);
  return must(roce::UdpPort::open(options), "UDP port");
}

/// `where`: receives the address at which the port is reachable; null: not wanted.
std::unique_ptr<fabric::Endpoint> open_endpoint(FabricKind kind, double loss,
                                                const std::string& path,
                                                const roce::NetworkNamespaces* network,
                                                std::shared_ptr<fabric::RegionTable> regions,
                                                std::string* where) {
  if (kind == FabricKind::shm) return must(fabric::shm::open(std::move(regions)), "shm");
  if (kind == FabricKind::ofi_tcp) {
    return must(fabric::ofi::open("tcp", std::move(regions)), "libfabric");
  }
  const bool listens = where != nullptr;
  std::unique_ptr<roce::PacketPort> port =
      network != nullptr ? open_on_cable(kind, *network, listens) : open_port(kind, path, listens);
  if (where != nullptr) *where = roce::to_text(port->address());
  // Both ends are in this process, so the numbers need not be unpredictable. The two differ.
  const std::uint64_t seed = where != nullptr ? 1 : 2;
  if (loss > 0) port = std::make_unique<roce::LosingPort>(std::move(port), loss, seed);
  return std::make_unique<roce::RoceEndpoint>(std::move(port), std::move(regions),
                                              fabric::NumberSource::of_seed(seed));
}

}  // namespace

std::string_view name(FabricKind kind) {
  for (const Named& each : kKinds) {
    if (each.kind == kind) return each.name;
  }
  return "unknown";
}

std::optional<FabricKind> parse_fabric_kind(std::string_view text) {
  for (const Named& each : kKinds) {
    if (each.name == text) return each.kind;
  }
  return std::nullopt;
}

std::string fabric_kind_names() {
  std::string names;
  for (const Named& each : kKinds) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

std::uint64_t fabric_word(std::uint64_t offset) { return base::mix64(offset + 1); }

FabricServer::FabricServer(FabricKind kind, std::uint64_t bytes, double loss)
    : kind_(kind),
      loss_(loss),
      memory_(must(memory::SharedMemory::create("espalier-bench", bytes), "memory")) {
  // memcpy and the fabric get the same pages, huge if the kernel grants them.
  ::madvise(memory_.at(0), bytes, MADV_HUGEPAGE);
  for (std::uint64_t offset = 0; offset + 8 <= bytes; offset += 8) {
    base::store_plain(memory_.at(offset), fabric_word(offset));
  }
  if (kind == FabricKind::shm) address_ = socket_path();
  if (needs_cable(kind)) {
    std::string why;
    network_ = roce::NetworkNamespaces::open(why);
    if (!network_) throw std::runtime_error(fmt::format("{}: {}", name(kind), why));
  }
  std::promise<void> ready;
  std::future<void> is_ready = ready.get_future();
  thread_ = std::thread([this, &ready] { serve(std::move(ready)); });
  try {
    is_ready.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

FabricServer::~FabricServer() {
  stop_.store(true);
  endpoint_.load()->wake();
  thread_.join();
}

double FabricServer::cpu_seconds() {
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return 0;
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void FabricServer::listen(fabric::Endpoint& endpoint) {
  if (kind_ == FabricKind::shm) return must(endpoint.listen(address_), "listen");
  if (auto* const ofi = dynamic_cast<fabric::ofi::OfiEndpoint*>(&endpoint)) {
    must(endpoint.listen("127.0.0.1:0"), "listen");
    address_ = roce::to_text(ofi->listens_at());
    return;
  }
  must(endpoint.listen("1"), "listen");
  address_ += "/1";
}

void FabricServer::serve(std::promise<void> ready) {
  std::unique_ptr<fabric::Endpoint> endpoint;
  fabric::Registration region;
  try {
    pin_worker(1);
    const auto regions = must(fabric::RegionTable::create(), "regions");
    endpoint = open_endpoint(kind_, loss_, socket_path(), network_.get(), regions, &address_);
    region = must(regions->offer({memory_.at(0), memory_.bytes(), memory_.descriptor(), 0},
                                 fabric::RemoteRights::read | fabric::RemoteRights::write |
                                     fabric::RemoteRights::atomic),
                  "region");
    region_ = region.remote();
    listen(*endpoint);
  } catch (...) {
    return ready.set_exception(std::current_exception());
  }
  endpoint_.store(endpoint.get());
  const bool spins = endpoint->properties().peer_makes_progress;
  fabric::CompletionQueue queue(*endpoint, 4 * kServerReceives);
  fabric::ReceiveQueue receives(queue, kServerReceives);
  std::vector<std::byte> room(std::size_t{kServerReceives} * kReceiveBytes);
  const auto post = [&](std::uint64_t place) {
    const fabric::Receive receive{place,
                                  std::span(room).subspan(place * kReceiveBytes, kReceiveBytes)};
    static_cast<void>(receives.post({&receive, 1}));
  };
  for (std::uint64_t i = 0; i < kServerReceives; ++i) post(i);
  std::vector<std::unique_ptr<fabric::QueuePair>> pairs;
  fabric::QueuePairOptions options;
  options.sends = &queue;
  options.shared_receives = &receives;
  ready.set_value();
  std::array<fabric::Completion, 64> some;
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::size_t count = queue.poll(some);
    for (std::size_t i = 0; i < count; ++i) post(some[i].work_id);
    while (const auto request = endpoint->next_request()) {
      if (auto pair = endpoint->accept(*request, options, {})) pairs.push_back(std::move(*pair));
    }
    if (count == 0 && !spins) endpoint->wait(100'000'000);
  }
  pairs.clear();
}

FabricClient::FabricClient(const FabricServer& server, std::uint32_t depth)
    : endpoint(open_endpoint(server.kind(), server.loss(), server.socket_path(), server.network(),
                             must(fabric::RegionTable::create(), "regions"), nullptr)),
      queue(std::make_unique<fabric::CompletionQueue>(*endpoint, depth)) {
  fabric::QueuePairOptions options;
  options.sends = queue.get();
  options.send_depth = depth;
  options.receive_depth = 1;
  if (needs_cable(server.kind())) options.mtu_bytes = 1024;  // what Ethernet has room for
  pair = must(endpoint->connect(server.address(), options, {}), "connect");
  while (pair->state() == fabric::QueuePair::State::connecting) endpoint->progress();
  if (pair->state() != fabric::QueuePair::State::connected) {
    throw std::runtime_error(fmt::format("connect: {}", fabric::name(pair->ended_by())));
  }
}

}  // namespace espalier::bench
