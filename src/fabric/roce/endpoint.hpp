// SPDX-License-Identifier: Apache-2.0
// The transport `roce`: RoCEv2 in user space, over any packet port.
//
// One turn, progress(): receives packets, lets their pairs process them, checks timers now and
// then, and sends what may be sent. All packets of a turn leave together, which makes packets
// cheap. Connection messages come last, when the packets of pairs have left, and no more than
// kMessagesPerTurn of them: an attacker can send as many as the network carries, so the rest is
// dropped, and an honest sender retransmits.
//
// Thread: one at a time, but for wake().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/endpoint.hpp"
#include "fabric/number_source.hpp"
#include "fabric/roce/connector.hpp"
#include "fabric/roce/endpoint_counters.hpp"
#include "fabric/roce/pair.hpp"
#include "fabric/roce/pair_table.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class RoceEndpoint final : public Endpoint {
 public:
  static constexpr std::size_t kMessagesPerTurn = 16;

  /// `numbers`: those of pairs, packets and connections, unpredictable for others.
  RoceEndpoint(std::unique_ptr<PacketPort> port, std::shared_ptr<RegionTable> regions,
               NumberSource numbers);
  ~RoceEndpoint() override;

  Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                             const QueuePairOptions& options,
                                             std::span<const std::byte> data) override;
  /// `address` is the number of a service: "1" to "65535". Peers name it behind ours, as in
  /// "10.0.0.1/7".
  Result<void> listen(std::string_view address) override;
  std::optional<ConnectRequest> next_request() override;
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                            const QueuePairOptions& options,
                                            std::span<const std::byte> data) override;
  using Endpoint::reject;
  void reject(const ConnectRequest& request, std::span<const std::byte> data) override;
  [[nodiscard]] ConnectCounts connect_counts() const override {
    return {counters_.cookies_sent,  counters_.cookies_accepted, counters_.cookies_refused,
            counters_.messages_shed, counters_.foreign,          counters_.out_of_window};
  }
  void progress() override;
  void flush() override;
  void wait(std::uint64_t timeout_ns) override;
  void wake() override { port_->wake(); }
  int begin_sleep() override;
  void end_sleep() override { port_->end_sleep(); }

  [[nodiscard]] const EndpointCounters& counters() const { return counters_; }
  /// Connections that are remembered, those that are asked for and those that end counted.
  [[nodiscard]] std::size_t connections() const { return connector_.size(); }
  /// Of those the ones whose peer has not proved its address.
  [[nodiscard]] std::size_t unproven() const { return connector_.unproven(); }

  // For pairs and the connector.

  [[nodiscard]] PacketPort& port() { return *port_; }
  [[nodiscard]] EndpointCounters& counting() { return counters_; }
  [[nodiscard]] RegionTable::Reader& reader() { return reader_; }
  /// Time as of the last turn, or post.
  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  void has_work(Pair& pair);
  /// Makes packets of the pair's requests. They leave with the next turn, at the latest.
  void prepare(Pair& pair);
  /// Checks the pair's timers now and then, until it is idle.
  void watch(Pair& pair);
  /// Sets a deadline for the next check.
  void look_again_at(std::uint64_t when_ns);
  /// The pair delays an acknowledgement.
  void delays_ack(Pair& pair) { delaying_ack_.push_back(&pair); }
  /// The same for the connector's deadlines; 0: none.
  void connector_again_at(std::uint64_t when_ns);
  void send_terminate(Pair& pair, bool peer_knows);
  /// The peer has sent something, which shows that it knows of the connection.
  void heard_from(Pair& pair) { connector_.heard_from(pair); }
  void forget(Pair& pair);
  [[nodiscard]] Pair* find(std::uint32_t number) const { return pairs_.find(number); }
  [[nodiscard]] std::uint64_t draw() { return numbers_.draw(); }

 private:
  Result<std::unique_ptr<Pair>> make_pair(const QueuePairOptions& options);
  void take(const Arrived& arrived);
  void take_messages();
  [[nodiscard]] std::uint64_t look_due_ns() const;
  void expire();
  void transmit();
  void send_delayed_acks(bool all);

  std::unique_ptr<PacketPort> port_;
  RegionTable::Reader reader_;
  NumberSource numbers_;
  PairTable pairs_;
  Connector connector_;
  EndpointCounters counters_;
  std::uint64_t now_ns_;
  std::uint32_t quiet_turns_ = 0;
  std::uint64_t look_again_ns_ = 0;  // the next check of timers
  std::uint64_t looked_ns_ = 0;
  std::uint64_t connector_due_ns_ = 0;  // the same, of connections that are made or ended
  std::vector<Pair*> working_;          // with something to send
  std::vector<Pair*> busy_;             // that wait for answers
  std::vector<Pair*> delaying_ack_;     // that delay an acknowledgement
  std::vector<Arrived> messages_;       // of this turn's burst, for connections
};

}  // namespace espalier::fabric::roce
