// SPDX-License-Identifier: Apache-2.0
// An endpoint: where one thread meets the fabric. It connects, listens, makes progress and sleeps.
//
// Several endpoints of a process may offer the same regions (region_table.hpp). Everything else of
// an endpoint, its queue pairs and completion queues included, belongs to one thread at a time, so
// nothing here takes a lock.
//
// Order of ends: queue pairs, then receive and completion queues, then the endpoint.
//
// Thread: one at a time, but for wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/queue_pair.hpp"
#include "fabric/region_table.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {

/// So much may travel with a request for a connection, and with its answer, in every transport.
inline constexpr std::size_t kConnectDataMax = 56;
inline constexpr std::size_t kAcceptDataMax = 184;
/// And with a refusal, where the transport carries any (Properties::refuses_with_data).
inline constexpr std::size_t kRejectDataMax = 148;

/// Somebody would like to be connected.
struct ConnectRequest {
  std::uint64_t id = 0;
  std::string peer;  // who, as far as the transport knows; for people
  std::vector<std::byte> data;
};

/// About packets in names that may not be their senders', where a transport has such.
struct ConnectCounts {
  std::uint64_t cookies_sent = 0;      ///< requests that were sent back with one, and forgotten
  std::uint64_t cookies_accepted = 0;  ///< that came back
  std::uint64_t cookies_refused = 0;   ///< that were not right, or too old
  std::uint64_t shed = 0;              ///< messages that were too many in a turn: as if lost
  std::uint64_t foreign = 0;           ///< packets for a pair that are not from its peer
  std::uint64_t out_of_window = 0;     ///< that its peer cannot have sent now
};

class Endpoint {
 public:
  virtual ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] const Properties& properties() const { return properties_; }
  /// The regions that peers of this endpoint may reach.
  [[nodiscard]] RegionTable& regions() const { return *regions_; }

  /// Begins to connect; the pair tells by its state how that goes. `address` is of the transport's
  /// own form, without the scheme. Errors: invalid_argument (address, options, too much data),
  /// out_of_memory (too many pairs), system.
  virtual Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                                     const QueuePairOptions& options,
                                                     std::span<const std::byte> data) = 0;
  /// Lets others connect to this address. Errors: invalid_argument, already_exists, system.
  virtual Result<void> listen(std::string_view address) = 0;
  /// The next one who would like to be connected, after progress().
  virtual std::optional<ConnectRequest> next_request() = 0;
  /// Errors: not_found (it has given up meanwhile), invalid_argument, out_of_memory, system.
  virtual Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                                    const QueuePairOptions& options,
                                                    std::span<const std::byte> data) = 0;
  /// Refuses it, and says why if the transport can: `data`, at most kRejectDataMax bytes.
  virtual void reject(const ConnectRequest& request, std::span<const std::byte> data) = 0;
  void reject(const ConnectRequest& request) { reject(request, {}); }
  [[nodiscard]] virtual ConnectCounts connect_counts() const { return {}; }

  /// Does what there is to do, without waiting: takes what has come, answers, sends again. Cost: of
  /// a transport whose peers need no progress, a few nanoseconds.
  virtual void progress() = 0;
  /// Has everything leave that waits to: what was posted, and acknowledgements held back.
  virtual void flush() { progress(); }
  /// Sleeps until progress() may have something to do, somebody calls wake(), or for so long. What
  /// has been completed and not been polled does not end it: look at all queues of the endpoint
  /// first (CompletionQueue::waiting()), for polling one of them makes progress for all.
  virtual void wait(std::uint64_t timeout_ns) = 0;
  /// Ends a wait() that is going on, or the next one. Thread: any.
  virtual void wake() = 0;

  /// For those who sleep on other things as well: returns a descriptor that can be read from, until
  /// end_sleep(), once progress() may have something to do; or -1: nothing tells that, and
  /// progress() must be called now and then. Requires: progress() has been called since the last
  /// post; nothing else is called before end_sleep().
  virtual int begin_sleep() { return -1; }
  virtual void end_sleep() {}

 protected:
  Endpoint(const Properties& properties, std::shared_ptr<RegionTable> regions);

  /// What connect() and accept() refuse in every transport. Errors: invalid_argument.
  [[nodiscard]] static Result<void> check(const QueuePairOptions& options,
                                          std::span<const std::byte> data, std::size_t data_max);

 private:
  Properties properties_;
  std::shared_ptr<RegionTable> regions_;
};

}  // namespace espalier::fabric
