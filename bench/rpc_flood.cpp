// SPDX-License-Identifier: Apache-2.0
// The experiment `flood` of `bench rpc`: the effect on a session of a flood of connection requests,
// thousands in a second, that are never continued.
//
// One client sends no-ops to one worker over `roce`, one at a time, and the latency of each counts.
// A thread sends connection requests to the same UDP port of the loopback interface, each with
// numbers of its own, and reads none of the answers. A node that does its work for each of them
// delays its sessions; here a session may wait at most twice as long as alone. The same flood to an
// unread port shows how much of that is due to the sender, which takes a core.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/probe.hpp"
#include "bench/run_rpc.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/udp_port.hpp"
#include "shards/pause.hpp"

namespace espalier::bench {
namespace {

using fabric::roce::PortAddress;
using fabric::roce::RequestMessage;

constexpr std::uint64_t kFloodWarmUpOps = 1000;
constexpr std::uint64_t kPauseNs = 100'000;  // requests due in a pause leave together

/// Sends connection requests at a rate, until it is destroyed.
class RequestFlood {
 public:
  /// Errors: throws std::runtime_error. `address`: of a node, "roce://127.0.0.1:PORT/SERVICE", to
  /// whose port requests go if `to_node`; else they go to an unread port.
  RequestFlood(std::string_view address, bool to_node, std::uint64_t each_second,
               std::uint64_t seed)
      : each_second_(each_second), random_(seed) {
    if (each_second == 0) return;
    const std::size_t slash = address.rfind('/');
    const std::size_t host = address.find("//") + 2;
    const auto to = fabric::roce::parse_address(address.substr(host, slash - host));
    if (!to) throw std::runtime_error("cannot send requests for connections");
    service_ = static_cast<std::uint16_t>(std::stoul(std::string(address.substr(slash + 1))));
    port_ = open_port();
    if (!to_node) unread_ = open_port();
    to_ = to_node ? *to : unread_->address();
    thread_ = std::thread([this] { run(); });
  }
  ~RequestFlood() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  RequestFlood(const RequestFlood&) = delete;
  RequestFlood& operator=(const RequestFlood&) = delete;

  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  static std::unique_ptr<fabric::roce::UdpPort> open_port() {
    fabric::roce::UdpPortOptions options;
    options.address = *fabric::roce::parse_address("127.0.0.1");
    options.address.udp_port = 0;
    auto port = fabric::roce::UdpPort::open(options);
    if (!port) throw std::runtime_error("cannot send requests for connections");
    return std::move(*port);
  }
  void run() {
    const std::uint64_t begun = base::monotonic_ns();
    while (!stopping_.load(std::memory_order_relaxed)) {
      const std::uint64_t due = (base::monotonic_ns() - begun) * each_second_ / 1'000'000'000;
      while (sent() < due) send();
      port_->flush();
      client::pause_for(kPauseNs);  // answers fill the socket, and are then dropped
    }
  }
  void send() {
    RequestMessage asked;
    asked.ids.local = static_cast<std::uint32_t>(random_()) | 1;
    asked.service_id = fabric::roce::service_id(service_);
    asked.local_pair = static_cast<std::uint32_t>(random_.below(1u << 24));
    asked.starting_psn = static_cast<std::uint32_t>(random_.below(1u << 24));
    asked.responder_resources = 16;
    asked.mtu = fabric::roce::mtu_code(1024);
    fabric::roce::set_ip_service(asked, {port_->address().udp_port, port_->address().ip, to_.ip});
    const std::size_t bytes = fabric::roce::kMessagePacketBytes - wire::roce::kIcrcBytes;
    std::byte* at = port_->begin(to_, bytes);
    if (at == nullptr) {
      port_->flush();
      at = port_->begin(to_, bytes);
    }
    if (at != nullptr) {
      fabric::roce::write_message_packet(at, {random_(), asked}, 0);
      port_->seal();
    }
    sent_.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t each_second_;
  base::Random random_;
  PortAddress to_;
  std::uint16_t service_ = 0;
  std::unique_ptr<fabric::roce::UdpPort> port_;
  std::unique_ptr<fabric::roce::UdpPort> unread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> sent_{0};
  std::thread thread_;
};

PointSample measure_flooded(std::uint64_t each_second, bool to_node, const RpcOptions& options) {
  node::Config config = spinning_node_config();
  prepare(config, NodeTransport::roce_udp);
  const auto node = start_own_node(config);
  const std::string address = address_of(*node, NodeTransport::roce_udp);
  PointSample sample;
  // On any core, like an unrelated machine's.
  RequestFlood flood(address, to_node, each_second, options.seed);
  run_pinned([&] {
    NoopClient client(address, {});
    base::Histogram cold;
    static_cast<void>(client.one_at_a_time(std::min(options.ops, kFloodWarmUpOps), cold));
    const std::uint64_t before = flood.sent();
    const base::Stopwatch watch;
    sample.checksum = client.one_at_a_time(options.ops, sample.latencies);
    sample.took(options.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
    sample.numbers.emplace_back("requests_sent", static_cast<double>(flood.sent() - before));
  });
  return sample;
}

MeasuredPoint flood_point(std::uint64_t each_second, bool to_node, const RpcOptions& options) {
  return {.target = std::string(name(TargetKind::node)),
          .workload = "noop",
          .parameters = {{"client_threads", 1},
                         {"node_cores", 1},
                         {"transport", name(NodeTransport::roce_udp)},
                         {"connection_requests_per_second", each_second},
                         {"flood_to", to_node ? "node" : "nobody"}},
          .threads = 2 + (each_second != 0 ? 1U : 0U),
          .answers = "noop beside a flood",
          .measure = [=] { return measure_flooded(each_second, to_node, options); }};
}

}  // namespace

std::vector<MeasuredPoint> flood_points(const RpcOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint64_t each_second : options.floods) {
    points.push_back(flood_point(each_second, true, options));
    if (each_second != 0) points.push_back(flood_point(each_second, false, options));
  }
  return points;
}

}  // namespace espalier::bench
