// SPDX-License-Identifier: Apache-2.0
// One worker's link to the host: rings for posted requests, and a queue pair through which kinds
// read the host's memory. Each kind has a part for that, which keeps its own leases.
//
//   down --(opened on another thread)--> up: rings and reads --(reads or lease lost)--> up: rings
//    ^                                     |                                              |
//    +-----------(the host is gone)--------+----------------------------------------------+
//
// While the link is down, requests to the host fail immediately with connection_lost. While only
// reads are down, reads in flight fail, and requests go to the host instead. A host with another
// number than the required one gets no requests: its objects are others. Then the link calls
// `on_replaced`, and stays down.
//
// Invariants
// - The worker never blocks: handshakes run on another thread.
// - No answer was read under a lost lease: the kinds' readers ensure that.
// - No request is sent twice.
//
// Thread: the worker's, which also calls `on_replaced`.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "channel/device/host_link.hpp"
#include "channel/device/host_opening.hpp"
#include "channel/device/host_part.hpp"
#include "channel/device/host_reads.hpp"
#include "channel/device/host_rings.hpp"
#include "channel/device/host_streams.hpp"

namespace espalier::device {

class DeviceLink final : public HostLink {
 public:
  /// Opens the link. `parts`: of the kinds that read. Errors: as open_host; not_found (the host is
  /// another node).
  static Result<std::unique_ptr<DeviceLink>> open(const HostOptions& options,
                                                  std::vector<std::unique_ptr<HostPart>> parts,
                                                  std::function<void()> on_replaced);
  ~DeviceLink() override;

  void post(offload::Request& request, const wire::CallMessage& message, AnswerPace pace) override;
  void cancel(const offload::Request& request) noexcept override;
  bool turn(PostedRequests& posted) override;
  [[nodiscard]] bool waits() const override;
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override;

  [[nodiscard]] bool forwards() override;
  [[nodiscard]] std::uint64_t connection() const override { return connections_; }
  void notify(std::uint64_t connection, const wire::CallMessage& message) override;

 private:
  DeviceLink(const HostOptions& options, std::vector<std::unique_ptr<HostPart>> parts,
             std::function<void()> on_replaced);

  void count();
  bool take_up(OpenedHost opened);
  void begin_opening();
  void take_opened();
  void stop_reading();
  void lose(PostedRequests& posted);
  void look_for_silence();

  const HostOptions options_;
  const std::function<void()> on_replaced_;
  bool replaced_ = false;
  std::shared_ptr<client::FabricConnection> connection_;  // null: down
  std::unique_ptr<HostRings> rings_;                      // null: down
  HostStreams streams_;                                   // of the same connection
  std::shared_ptr<HostReads> reads_;                      // null: reads are down
  const std::vector<std::unique_ptr<HostPart>> parts_;
  std::vector<offload::Request*> failed_;  // posted while it was down
  std::future<Result<OpenedHost>> opening_;
  std::uint64_t again_ns_ = 0;  // when to try again to open what is missing
  std::uint64_t now_ns_ = 0;    // of this turn
  std::uint64_t connections_ = 0;
  std::uint64_t counted_ns_ = 0;
  // When an answer last arrived while one was awaited, and whether a keepalive probe is in flight.
  std::uint64_t heard_ns_ = 0;
  std::uint64_t heard_ = 0;
  bool asked_alive_ = false;
};

}  // namespace espalier::device
