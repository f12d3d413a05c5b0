// SPDX-License-Identifier: Apache-2.0
// Two endpoints of a transport on this machine, for benchmarks: a client on the calling thread, and
// a server on a thread and a core of its own.
//
// Thread: the client end belongs to the thread that made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/temporary_folder.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {

enum class FabricKind : std::uint8_t {
  shm,
  roce_memory,
  roce_memif,
  roce_udp,
  roce_udp6,
  ofi_tcp,
  roce_xdp,
  roce_udp_veth,
};
[[nodiscard]] std::string_view name(FabricKind kind);
[[nodiscard]] std::optional<FabricKind> parse_fabric_kind(std::string_view text);
/// Whether the two ends are in network stacks of their own, connected by a cable: requires root.
[[nodiscard]] constexpr bool needs_cable(FabricKind kind) {
  return kind == FabricKind::roce_xdp || kind == FabricKind::roce_udp_veth;
}
/// All names, comma-separated.
[[nodiscard]] std::string fabric_kind_names();

/// The server end. It offers memory, and receives messages.
class FabricServer {
 public:
  /// Offers so many bytes: each word of 8 bytes has a number that follows from its offset
  /// (fabric_word()). Errors: throws std::runtime_error. `loss`: the share of packets that get
  /// lost, in either direction (of `roce` only).
  FabricServer(FabricKind kind, std::uint64_t bytes, double loss = 0);
  FabricServer(const FabricServer&) = delete;
  FabricServer& operator=(const FabricServer&) = delete;
  ~FabricServer();

  [[nodiscard]] FabricKind kind() const { return kind_; }
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  /// The path of a socket, for kinds that need one.
  [[nodiscard]] std::string socket_path() const { return (folder_ / "fabric.sock").string(); }
  /// The network stacks and their cable, for kinds that need one; else null.
  [[nodiscard]] const fabric::roce::NetworkNamespaces* network() const { return network_.get(); }
  [[nodiscard]] const fabric::RemoteRegion& region() const { return region_; }
  /// The same memory, for local reads.
  [[nodiscard]] const std::byte* bytes() const { return memory_.at(0); }
  [[nodiscard]] std::byte* at(std::uint64_t offset) { return memory_.at(offset); }
  /// Processor time of its thread, in seconds.
  [[nodiscard]] double cpu_seconds();

 private:
  void serve(std::promise<void> ready);
  void listen(fabric::Endpoint& endpoint);

  FabricKind kind_;
  double loss_;
  memory::SharedMemory memory_;
  base::TemporaryFolder folder_;                              // for the socket, if one is needed
  std::unique_ptr<fabric::roce::NetworkNamespaces> network_;  // null: not needed
  std::string address_;
  fabric::RemoteRegion region_;
  std::atomic<fabric::Endpoint*> endpoint_{nullptr};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The client end. Connects immediately. Errors: throws std::runtime_error.
struct FabricClient {
  explicit FabricClient(const FabricServer& server, std::uint32_t depth);

  std::unique_ptr<fabric::Endpoint> endpoint;
  std::unique_ptr<fabric::CompletionQueue> queue;
  std::unique_ptr<fabric::QueuePair> pair;
};

/// The word at this offset of the offered memory; `offset` is a multiple of 8.
[[nodiscard]] std::uint64_t fabric_word(std::uint64_t offset);

}  // namespace espalier::bench
