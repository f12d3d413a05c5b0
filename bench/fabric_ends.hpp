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
/// Whether the two ends are in network stacks of their own, with a cable between: as root only.
[[nodiscard]] constexpr bool needs_cable(FabricKind kind) {
  return kind == FabricKind::roce_xdp || kind == FabricKind::roce_udp_veth;
}
/// The names of all, with commas between.
[[nodiscard]] std::string fabric_kind_names();

/// The end that is asked. It offers memory, and takes messages as they come.
class FabricServer {
 public:
  /// Offers so many bytes: in each word of 8 stands a number that follows from its place
  /// (fabric_word()). Errors: throws std::runtime_error.
  /// `loss`: the share of packets that get lost, either way (of `roce` only).
  FabricServer(FabricKind kind, std::uint64_t bytes, double loss = 0);
  FabricServer(const FabricServer&) = delete;
  FabricServer& operator=(const FabricServer&) = delete;
  ~FabricServer();

  [[nodiscard]] FabricKind kind() const { return kind_; }
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  /// Where kinds meet that need a socket's file.
  [[nodiscard]] std::string socket_path() const { return (folder_ / "fabric.sock").string(); }
  /// Where kinds meet that need a cable between two network stacks; else null.
  [[nodiscard]] const fabric::roce::NetworkNamespaces* network() const { return network_.get(); }
  [[nodiscard]] const fabric::RemoteRegion& region() const { return region_; }
  /// The same memory, for local reads.
  [[nodiscard]] const std::byte* bytes() const { return memory_.at(0); }
  [[nodiscard]] std::byte* at(std::uint64_t offset) { return memory_.at(offset); }
  /// What its thread has used of a processor, in seconds.
  [[nodiscard]] double cpu_seconds();

 private:
  void serve(std::promise<void> ready);
  void listen(fabric::Endpoint& endpoint);

  FabricKind kind_;
  double loss_;
  memory::SharedMemory memory_;
  base::TemporaryFolder folder_;                              // of the socket, where one is needed
  std::unique_ptr<fabric::roce::NetworkNamespaces> network_;  // where one is needed
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

/// What stands at a multiple of 8 in the memory that is offered.
[[nodiscard]] std::uint64_t fabric_word(std::uint64_t offset);

}  // namespace espalier::bench
