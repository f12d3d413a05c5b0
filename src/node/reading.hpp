// SPDX-License-Identifier: Apache-2.0
// The sources of the node's counters, for their table (node_number_table.cpp).
//
// Invariant: the oldest epoch is read before the epoch, so it is never above it.
// Thread: any, while the node runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/datagram_sessions.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/link_authenticator.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "node/chain_node.hpp"
#include "node/metrics.hpp"
#include "node/node.hpp"
#include "node/node_number.hpp"

namespace espalier::node {

struct Reading {
  explicit Reading(const Node& of);

  /// The principals that use shared resources now, and the largest use by one.
  struct Principals {
    std::uint64_t count = 0;
    std::uint64_t connections_most = 0;
    std::uint64_t ring_bytes_most = 0;
    std::uint64_t snapshots_most = 0;
  };

  const Node& node;
  const tree::StoreCore& store;
  const offload::TableServices& tables;
  const offload::IndexReadCounts& index_reads;
  std::uint64_t epoch_oldest;
  std::uint64_t epoch;
  offload::ConnectionLimits::Numbers places;
  offload::HelperNumbers helpers;
  memory::Reclaimer::Snapshots snapshots;
  std::string log_failure;                           ///< empty: no failure, or no log
  std::optional<ChainNumbers> chain;                 ///< none: in no chain
  std::array<std::uint64_t, 256> objects_of_kind{};  ///< by kind; of `any`: all
  Principals principals;
  std::vector<PrincipalNumbers> all_principals;

  /// The number of objects of this kind.
  [[nodiscard]] std::uint64_t count_of(ObjectKind kind) const {
    return objects_of_kind[static_cast<std::uint8_t>(kind)];
  }

  // Sums of one counter over all its sources.
  template <class T>
  [[nodiscard]] std::uint64_t of_schedulers(
      std::atomic<T> offload::SchedulerCounts::* count) const {
    std::uint64_t sum = 0;
    for (const auto& worker : node.workers()) sum += value(worker->scheduler_counts().*count);
    return sum;
  }
  template <class T>
  [[nodiscard]] std::uint64_t of_clients(std::atomic<T> offload::ClientCounts::* count) const {
    std::uint64_t sum = 0;
    for (const auto& worker : node.workers()) sum += value(worker->client_counts().*count);
    return sum;
  }
  template <class T>
  [[nodiscard]] std::uint64_t of_fabrics(std::atomic<T> offload::FabricCounts::* count) const {
    std::uint64_t sum = 0;
    for (const auto& worker : node.workers()) {
      for (const auto& fabric : worker->fabrics()) sum += value(fabric->counts().*count);
    }
    return sum;
  }
  /// Of peers over fabrics, and of clients of the socket with a secret.
  template <class T>
  [[nodiscard]] std::uint64_t of_proofs(
      std::atomic<T> offload::AuthenticationCounts::* count) const {
    std::uint64_t sum = value(node.authentication_counts().*count);
    for (const auto& worker : node.workers()) {
      for (const auto& fabric : worker->fabrics()) {
        const auto* const counts = fabric->authentication_counts();
        if (counts != nullptr) sum += value(counts->*count);
      }
    }
    return sum;
  }
  // Nothing if it has no datagram port.
  [[nodiscard]] Told datagram_sessions() const {
    const auto* const sessions = node.services().parts.find<offload::DatagramSessions>();
    return sessions == nullptr ? Told() : Told(sessions->size());
  }
  [[nodiscard]] Told of_datagrams(std::atomic<std::uint64_t> offload::DatagramCounts::* of) const {
    const auto* const sessions = node.services().parts.find<offload::DatagramSessions>();
    return sessions == nullptr ? Told() : Told(value(sessions->counts.*of));
  }
  /// Nothing if it is no device.
  template <class T>
  [[nodiscard]] Told of_device(std::atomic<T> offload::ElsewhereCounts::* count) const {
    const auto* const elsewhere = node.services().parts.find<offload::NodeMapsElsewhere>();
    if (elsewhere == nullptr) return std::nullopt;
    std::uint64_t sum = 0;
    for (const auto* const maps : elsewhere->of_scheduler) sum += value(maps->counts().*count);
    return sum;
  }

  // Nothing if it has no data folder.
  template <class Read>
  [[nodiscard]] Told of_data(Read read) const {
    return node.data() == nullptr ? Told() : Told(read(*node.data()));
  }
  template <class Read>
  [[nodiscard]] Told of_log(Read read) const {
    return of_data([&](const DataFolder& data) { return read(data.writer()); });
  }
  template <class T>
  [[nodiscard]] Told of_checkpoints(std::atomic<T> CheckpointCounts::* count) const {
    return node.checkpoints() == nullptr ? Told()
                                         : Told(value(node.checkpoints()->counts().*count));
  }
  /// Nothing if no checkpoint was finished yet.
  template <class T>
  [[nodiscard]] Told of_last_checkpoint(std::atomic<T> CheckpointCounts::* count) const {
    if (of_checkpoints(&CheckpointCounts::finished).value_or(0) == 0) return std::nullopt;
    return of_checkpoints(count);
  }
  /// Nothing if it is in no chain.
  [[nodiscard]] Told of_chain(std::uint64_t ChainNumbers::* number) const {
    return chain ? Told((*chain).*number) : std::nullopt;
  }

 private:
  template <class T>
  static std::uint64_t value(const std::atomic<T>& count) {
    return count.load(std::memory_order_relaxed);
  }
};

}  // namespace espalier::node
