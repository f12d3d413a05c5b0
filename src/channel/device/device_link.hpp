// SPDX-License-Identifier: Apache-2.0
// One worker's way to the host: rings for what is posted, a queue pair by which kinds read, which
// have a part each for that and keep their leases themselves.
//
//   down --(opened aside)--> up: rings and reads --(reads or lease lost)--> up: rings alone
//    ^                         |                                                |
//    +---(the host is gone)----+------------------------------------------------+
//
// While it is down, what is asked of the host is answered at once that it is gone. While only the
// reads are, what is read ends with an error and the host is asked in its place. A host with
// another number than the one that it must have is not asked for anything: `on_replaced` is told,
// and the link stays down, for its objects are others.
//
// What never happens
// - The worker waits: handshakes are done on a thread aside.
// - An answer that was read under a lease that is lost: the readers of kinds see to that.
// - Something is asked twice.
//
// Thread: that of the worker; `on_replaced` is called by it.
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
  std::shared_ptr<HostReads> reads_;                      // null: nothing can be read
  const std::vector<std::unique_ptr<HostPart>> parts_;
  std::vector<offload::Request*> failed_;  // posted while it was down
  std::future<Result<OpenedHost>> opening_;
  std::uint64_t again_ns_ = 0;  // when to try to open what is missing
  std::uint64_t now_ns_ = 0;    // of this turn
  std::uint64_t connections_ = 0;
  std::uint64_t counted_ns_ = 0;
  // When an answer last came while one was awaited, and whether one is asked for to see.
  std::uint64_t heard_ns_ = 0;
  std::uint64_t heard_ = 0;
  bool asked_alive_ = false;
};

}  // namespace espalier::device
