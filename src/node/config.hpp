// SPDX-License-Identifier: Apache-2.0
// The configuration of a memory node: plain values, all within their limits once load() has
// returned them (node/config_load.hpp). One table has the meaning and the limits of each
// (node/config_settings.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lease_terms.hpp"
#include "espalier/kind.hpp"
#include "espalier/types.hpp"

namespace espalier::node {

/// Where walks of the node's maps run: beside their memory, or on a device in front of it.
enum class Place : std::uint8_t { host, device };

/// What a node does when its log has failed.
enum class OnLogError : std::uint8_t { serve, exit };

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error };

/// A map that the node creates at its start.
struct MapConfig {
  std::string name = "default";
  MapOptions options;

  friend bool operator==(const MapConfig& a, const MapConfig& b) {
    return a.name == b.name && a.options.node_bytes == b.options.node_bytes &&
           a.options.log_bytes == b.options.log_bytes && a.options.versions == b.options.versions &&
           a.options.snapshot_bytes_max == b.options.snapshot_bytes_max;
  }
};

/// Another node whose memory and calls this node's offloads may use.
struct PeerConfig {
  std::string name;
  std::string address;      ///< of the fabric
  std::string secret_file;  ///< for authentication there; empty: the process's

  friend bool operator==(const PeerConfig&, const PeerConfig&) = default;
};

/// The defaults are those of the table, which a test verifies; those that depend on the machine are
/// empty here.
struct Config {
  struct Node {
    std::string socket;
    std::uint32_t socket_mode = 0600;  ///< file permissions: which users may connect
    Place place = Place::host;
    std::string host;         ///< of a device: its host's address
    std::string secret_file;  ///< of a device: for its host; empty: the process's
    std::uint64_t cache = std::uint64_t{64} << 20;  ///< of a device: bytes of each worker
    std::uint32_t balance = 0;                      ///< of a device: the balancer's weight; 0: none
    std::string fabric;                             ///< fabric addresses, separated by spaces
    std::string datagrams;      ///< UDP address of gets as datagrams, HOST[:PORT]; empty: none
    bool one_sided = false;     ///< clients may read the memory of maps one-sided
    bool shared_clock = false;  ///< maps share a clock, so that transactions may write several
    std::uint32_t cores = 1;
    std::uint32_t helpers = 0;  ///< 0: as many as workers
    bool pin = false;
    std::uint32_t spin_us = 50;
    std::uint32_t sweep_ms = 10;
    std::uint32_t sweep_asleep_ms = 1000;
    base::LeaseTerms leases;  ///< no setting: for tests
    friend bool operator==(const Node&, const Node&) = default;
  };
  struct Memory {
    std::uint64_t limit = 0;  ///< in bytes
    bool huge_pages = true;
    friend bool operator==(const Memory&, const Memory&) = default;
  };
  struct Clients {
    std::string secrets;  ///< a file; empty: no authentication
    bool open = false;    ///< without secrets, a client of a network may do everything
    std::uint32_t connections_max = 10'000;
    std::uint32_t principal_connections_max = 0;  ///< 0: half of those
    std::uint64_t ring_bytes_max = 0;             ///< 0: by memory.limit
    std::uint32_t in_flight_max = 256;
    std::uint64_t response_bytes_max = std::uint64_t{4} << 20;
    std::uint64_t message_bytes_max = std::uint64_t{256} << 20;
    std::uint32_t stuck_seconds = 30;
    std::uint32_t resume_seconds = 60;
    friend bool operator==(const Clients&, const Clients&) = default;
  };
  struct Data {
    std::string dir;  ///< the data folder; empty: in memory alone
    std::uint64_t log_bytes_max = std::uint64_t{16} << 30;
    /// No setting, but for one start: accepts damage from this sequence on.
    std::optional<std::uint64_t> accept_loss_from{};
    std::uint64_t checkpoint_log_bytes = std::uint64_t{1} << 30;
    std::uint32_t waiting_max = 1024;          ///< answers of one connection that wait for the disk
    Durability durability = Durability::sync;  ///< async or sync
    std::uint32_t async_ms = 1000;             ///< of async: maximum age of data not on the disk
    OnLogError on_log_error = OnLogError::serve;
    bool persistent_memory = false;   ///< the folder is on persistent memory: log::MappedFolder
    bool persistent_regions = false;  ///< regions lie in it, too, and keep their bytes
    friend bool operator==(const Data&, const Data&) = default;
  };
  /// No setting: the member's name in a chain (docs/chains.md), and the chain's membership.
  struct Chain {
    std::string name;     ///< empty: in no chain
    std::string members;  ///< a file's path, or etcd://HOST:PORT/KEY
    friend bool operator==(const Chain&, const Chain&) = default;
  };
  struct Metrics {
    std::uint16_t port = 0;  ///< 0: off
    friend bool operator==(const Metrics&, const Metrics&) = default;
  };
  struct Log {
    LogLevel level = LogLevel::info;
    friend bool operator==(const Log&, const Log&) = default;
  };

  Node node;
  Memory memory;
  Clients clients;
  Data data;
  Chain chain;
  Metrics metrics;
  Log log;
  std::vector<MapConfig> maps = {MapConfig{}};  ///< of a host at least one; no name twice
  std::vector<PeerConfig> peers;                ///< of a host; no name twice

  friend bool operator==(const Config&, const Config&) = default;
};

/// Most maps at the start.
inline constexpr std::size_t kMapsMax = 1024;
/// Most peers: each worker has a session with each.
inline constexpr std::size_t kPeersMax = 64;

}  // namespace espalier::node
