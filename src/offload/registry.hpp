// SPDX-License-Identifier: Apache-2.0
// Offloads: the named operations that run beside the memory. All that is known of one stands in one
// place, its row of the table in registry.cpp; docs/offloads.md says how to add one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/types.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

class Call;
class Next;

/// What a client must be allowed to do to ask for an offload.
enum class Right : std::uint8_t {
  none = 0,  ///< whoever is connected
  read = 1,
  write = 2,
  admin = 3,  ///< what concerns all clients: making and dropping
};

/// Which keys a request names, of which a node that has a shard of a map asks whether it has them.
enum class Keys : std::uint8_t {
  none = 0,   ///< none, or its offload asks
  one = 1,    ///< its key
  range = 2,  ///< all from its key up to what ends its payload
};

/// How a request says which object it concerns, of which a node asks whether the client may use it.
enum class Names : std::uint8_t {
  nothing = 0,  ///< it concerns none, or only what the client has been given before
  by_id = 1,    ///< its header has the object's number
  by_name = 2,  ///< its key is the object's name
  all = 3,      ///< it concerns the whole store
};

/// What a request of an offload must look like before its handler sees it.
struct Limits {
  bool map = false;  // names a map that is there
  std::uint32_t key_bytes_min = 0;
  std::uint32_t key_bytes_max = 0;  // of offloads on maps, the map itself says
  std::uint32_t payload_bytes_min = 0;
  std::uint32_t payload_bytes_max = 0;
  bool at_snapshot = false;  // may read at a snapshot, which then begins its payload
  Keys keys = Keys::none;    // of its map
};

struct Offload {
  wire::OffloadId id = wire::OffloadId::invalid;
  std::string_view name;
  std::string_view format;   ///< of the request, beyond its header
  std::string_view summary;  ///< what it does and answers
  /// Of one that names an object never `none`, which would let roles for other names have it.
  Right right = Right::admin;
  Limits limits;
  /// Of offloads on maps `nothing` means by_id.
  Names object = Names::nothing;
  /// Of those that take an administrator: it is done again and again in the course of what another
  /// one has begun, so the audit log has only what of it fails.
  bool routine = false;
  /// Its key is a secret: the message's copy is overwritten whatever becomes of the request.
  bool secret_key = false;

  /// Does what can be done now: see call.hpp. Must neither wait nor run for more than some
  /// microseconds. After a walk it runs inside the walk's epoch.
  Next (*step)(Call&) = nullptr;
  /// A walk of it delivers items; false ends the walk.
  bool (*items)(Call&, std::span<const Item>) = nullptr;
  /// The client wants no more of it. Null: it cannot be ended early.
  void (*cancel)(Call&) = nullptr;
  /// The host's last answer to what it posted has come, and its client is gone: to give back what
  /// the host keeps for it. Null: there is nothing.
  void (*client_gone)(Call&) = nullptr;
  /// Whether the client has room for another piece of the host's long answer. Null: always.
  bool (*wants_more)(Call&) = nullptr;
  /// What its functions want to know besides; of those below, nothing.
  const void* context = nullptr;
};

/// The offloads by their number; null: there is none of this number.
using OffloadTable = std::array<const Offload*, 256>;
[[nodiscard]] const OffloadTable& offload_table();
[[nodiscard]] inline const Offload* find_offload(std::uint8_t id) { return offload_table()[id]; }
/// All of them, by number.
[[nodiscard]] std::span<const Offload> all_offloads();

/// The table with a program's own beside them, which must live as long as it. Requires: their
/// numbers are from wire::kOwnOffloadIds on, and each another; those that name an object take a
/// right.
[[nodiscard]] OffloadTable offload_table_with(std::span<const Offload> own);

// One group of offloads per file.
std::span<const Offload> point_offloads();
std::span<const Offload> range_offloads();
std::span<const Offload> modify_offloads();
std::span<const Offload> batch_offloads();
std::span<const Offload> object_offloads();
std::span<const Offload> map_offloads();
std::span<const Offload> shard_offloads();
std::span<const Offload> counter_offloads();
std::span<const Offload> node_offloads();
std::span<const Offload> one_sided_offloads();
std::span<const Offload> table_offloads();
std::span<const Offload> query_offloads();
std::span<const Offload> table_read_offloads();
std::span<const Offload> pipeline_offloads();
std::span<const Offload> landing_offloads();
std::span<const Offload> result_offloads();
std::span<const Offload> sequencer_offloads();

}  // namespace espalier::offload
