// SPDX-License-Identifier: Apache-2.0
// An endpoint: one thread's access to the fabric. It connects, listens, makes progress and sleeps.
//
// Several endpoints of a process may offer the same regions (region_table.hpp). Everything else of
// an endpoint, its queue pairs and completion queues included, belongs to one thread at a time, so
// nothing here takes a lock.
//
// Order of destruction: queue pairs, then receive and completion queues, then the endpoint.
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

/// The most private data of a request for a connection, and of its accept, in every transport.
inline constexpr std::size_t kConnectDataMax = 56;
inline constexpr std::size_t kAcceptDataMax = 184;
/// And of a reject, where the transport carries any (Properties::refuses_with_data).
inline constexpr std::size_t kRejectDataMax = 148;

/// A peer's request for a connection.
struct ConnectRequest {
  std::uint64_t id = 0;
  std::string peer;  // its address, as far as the transport knows it; for people
  std::vector<std::byte> data;
};

/// Counts of packets with spoofed source addresses, of transports that can have such.
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

  /// Begins to connect; the pair's state shows the outcome. `address` is of the transport's own
  /// form, without the scheme. Errors: invalid_argument (address, options, too much data),
  /// out_of_memory (too many pairs), system.
  virtual Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                                     const QueuePairOptions& options,
                                                     std::span<const std::byte> data) = 0;
  /// Accepts connections at this address. Errors: invalid_argument, already_exists, system.
  virtual Result<void> listen(std::string_view address) = 0;
  /// The next request for a connection, after progress().
  virtual std::optional<ConnectRequest> next_request() = 0;
  /// Errors: not_found (the peer has given up), invalid_argument, out_of_memory, system.
  virtual Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                                    const QueuePairOptions& options,
                                                    std::span<const std::byte> data) = 0;
  /// Rejects a request, with `data` if the transport can carry it: at most kRejectDataMax bytes.
  virtual void reject(const ConnectRequest& request, std::span<const std::byte> data) = 0;
  void reject(const ConnectRequest& request) { reject(request, {}); }
  [[nodiscard]] virtual ConnectCounts connect_counts() const { return {}; }

  /// Makes progress without blocking: receives, answers, retransmits. Cost: of a transport whose
  /// peers need no progress, a few nanoseconds.
  virtual void progress() = 0;
  /// Sends all that is held back: posted requests, and delayed acknowledgements.
  virtual void flush() { progress(); }
  /// Sleeps until progress() may have something to do, until wake(), or for so long. Completions
  /// that are not polled do not end it: check all queues of the endpoint first
  /// (CompletionQueue::waiting()), for polling one of them makes progress for all.
  virtual void wait(std::uint64_t timeout_ns) = 0;
  /// Ends the current wait(), or the next one. Thread: any.
  virtual void wake() = 0;

  /// For callers that sleep on other things as well: returns a descriptor that becomes readable,
  /// until end_sleep(), once progress() may have something to do; or -1: there is no such
  /// descriptor, and progress() must be called now and then. Requires: progress() has been called
  /// since the last post; nothing else is called before end_sleep().
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
