// SPDX-License-Identifier: Apache-2.0
// The messages of rings: requests, responses, and the items of scans.
//
// A message begins with a header of 32 bytes, whose first 4 are the sequence word of its first
// slot (wire/ring.hpp). The fields that switches read or write lie at fixed offsets: the map, the
// hint, and the key, whose first 8 bytes are therefore at offset 32.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "espalier/condition.hpp"

namespace espalier::wire {

static_assert(std::endian::native == std::endian::little);

/// What a request asks for. The numbers are the protocol's: never reused.
enum class OffloadId : std::uint8_t {
  invalid = 0,
  noop = 1,
  get = 2,
  put = 3,
  insert = 4,
  update = 5,
  erase = 6,
  compare_and_set = 7,  // payload: Comparison, expected value, new value
  add = 8,              // payload: 8 bytes, added to a value of 8 bytes, both little-endian
  write_batch = 9,      // payload: `argument` entries of BatchEntry
  scan = 10,            // payload: high; argument: limit
  scan_reverse = 11,
  scan_floor = 12,
  floor = 13,
  count = 14,           // payload: high
  count_estimate = 15,  // payload: high
  sequence = 16,        // key: a sequencer's name; argument: how many tokens
  map_create = 17,      // key: name; payload: MapShape
  map_open = 18,        // key: name; argument: 1 for a client that knows shards
  object_drop = 19,     // key: name; argument: its ObjectKind, 0 for any
  object_list = 20,     // argument: an ObjectKind, 0 for all; answers what wire/object.hpp draws
  map_stats = 21,
  snapshot_open = 22,
  snapshot_close = 23,     // payload: 8 bytes, the snapshot
  cancel = 24,             // argument: tag of a scan, count, table_read or table_query, same ring
  node_stats = 25,         // answers what wire/node_numbers.hpp draws
  one_sided_open = 26,     // argument: what is wanted; answers fields of wire/one_sided.hpp
  lease_renew = 27,        // payload: LeaseRenewal, LIDs of leaves of the map
  table_create = 28,       // key: name; payload: schema
  table_open = 29,         // key: name
  table_read = 30,         // map: the table's id; payload: RowsWanted
  one_sided_table = 31,    // map: the table's id; answers fields of wire/one_sided.hpp
  table_append = 32,       // map: the table's id; payload: rows; key: 8 bytes, a reservation
  table_query = 33,        // map: the table's id; payload: pipeline; key: RunKeys; argument: flags
  table_reserve = 34,      // map: the table's id; argument: rows
  landing_open = 35,       // payload: 8 bytes, how many may be written; answers a LandingGrant
  landing_close = 36,      // payload: 8 bytes, the window
  table_commit = 37,       // map: the table's id; payload: LandedRows
  index_open = 39,         // map: the map to be indexed; answers fields of wire/one_sided.hpp
  pipeline_load = 40,      // map: the table's id; payload: pipeline; answers its number
  pipeline_drop = 41,      // payload: numbers of pipelines, 8 bytes each
  index_counts = 43,       // map: the map; argument: how many; answers rows of LeafCount
  result_open = 44,        // payload: ResultOffer; of the response ring of its answer
  result_return = 45,      // payload: numbers of buffers, 4 bytes each; likewise
  sequencer_create = 46,   // key: name; payload: 8 bytes, its first number
  sequencer_open = 47,     // key: name
  sequencer_take = 48,     // map: the sequencer's id; argument: how many; payload: its epoch
  sequencer_seal = 49,     // map: the sequencer's id; payload: its epoch
  sequencer_advance = 50,  // map: the sequencer's id; payload: SequencerAdvance
  one_sided_sequencer = 51,  // map: the sequencer's id; answers a SequencerGrant
  shard_create = 56,      // key: name; payload: MapShape and what kinds/map/format/shard.hpp draws
  release_hold = 57,      // map: a map; answers a hold and the read version at which it stands
  release_confirm = 58,   // map: a map; payload: 8 bytes, a hold
  feed_open = 59,         // map: a map; answers field `feed` of wire/one_sided.hpp
  index_generation = 60,  // map: the map; argument: what is wanted; answers field `redirect`
  object_samples = 61,    // key: a name, or nothing; payload: SamplesWanted
  hash_create = 62,       // key: name; payload: HashShape
  hash_open = 63,         // key: name
  hash_stats = 64,        // map: the hash map's id; likewise of the next ones, with an item's key
  hash_get = 65,
  hash_put = 66,
  hash_insert = 67,
  hash_update = 68,
  hash_erase = 69,
  hash_compare_and_set = 70,     // payload: as of compare_and_set
  hash_add = 71,                 // payload: as of add
  region_create = 72,            // key: name; payload: 8 bytes, how many bytes it has
  region_open = 73,              // key: name
  region_read = 74,              // map: the region's id; payload: RegionRange
  region_write = 75,             // map: likewise; payload: 8 bytes, where; then bytes
  region_fetch_add = 76,         // map: likewise; payload: 8 bytes each, where and what is added
  region_compare_swap = 77,      // map: likewise; payload: RegionSwap
  one_sided_region = 78,         // map: likewise; answers a RegionGrant
  hash_walk = 79,                // key: that behind which to begin, or none
  embedding_create = 80,         // key: name; payload: EmbeddingShape
  embedding_open = 81,           // key: name
  embedding_info = 82,           // map: the embedding table's id; likewise of the next ones
  embedding_append = 83,         // payload: rows as they are stored
  embedding_replace = 84,        // payload: 8 bytes, which row; then its bytes
  embedding_reduce = 85,         // payload: ReduceShape, vector, offsets, ids, weights
  one_sided_hash = 86,           // map: the hash map's id; answers fields of wire/one_sided.hpp
  embedding_group = 87,          // payload: GroupsShape, ids, sizes
  embedding_renumber = 88,       // payload: ids
  await_durable = 89,            // argument: 1 to wait
  one_sided_embedding = 90,      // map: the embedding table's id; answers likewise
  transact = 91,                 // argument: how many objects; payload: their names, StepHead, ...
  transaction_client = 96,       // argument: what is wanted; payload: 8 bytes, a client
  transact_once = 97,            // as transact; payload: RequestNumbers before
  embedding_reduce_tables = 98,  // map: the first one; payload: TablesShape, TableShapes, the rest
  model_create = 99,             // key: name; payload: a file of a model
  model_open = 100,              // key: name
  model_infer = 101,             // map: the model's id; payload: InferShape, queries
  range_borders = 102,           // argument: how many parts; payload: high
  datagram_open = 103,           // of the response ring of its answer; answers a DatagramOffer
  object_rename = 104,           // key: name; argument: its ObjectKind; payload: Renaming, new name
};
inline constexpr std::uint32_t kOffloadIds = 105;
/// Numbers from here on are never the protocol's: the operator of a node may assign them to
/// offloads of its own.
inline constexpr std::uint8_t kOwnOffloadIds = 128;

///   0          4       8     12        13     14          16     24    28         32
///   +----------+-------+-----+---------+------+-----------+------+-----+----------+---------
///   | sequence | bytes | tag | offload | ring | key bytes | hint | map | argument | key, payload
///   +----------+-------+-----+---------+------+-----------+------+-----+----------+---------
struct RequestHeader {
  std::uint32_t sequence;
  std::uint32_t bytes;   // of the message, this header included, later sequence words not
  std::uint32_t tag;     // handed back in the answer
  std::uint8_t offload;  // OffloadId
  std::uint8_t ring;     // low bits: the response ring of the answer; kHopBits, kAtSnapshot,
                         // kOnBehalf
  std::uint16_t key_bytes;
  std::uint64_t hint;      // wire::Ref of a node to enter at; 0: none
  std::uint32_t map;       // 0: none
  std::uint32_t argument;  // what it means, the offload says
};
inline constexpr std::uint32_t kRequestHeaderBytes = 32;
static_assert(sizeof(RequestHeader) == kRequestHeaderBytes);
static_assert(offsetof(RequestHeader, hint) == 16 && offsetof(RequestHeader, map) == 24);
static_assert(std::has_unique_object_representations_v<RequestHeader>);
inline constexpr std::uint32_t kRequestKeyOffset = kRequestHeaderBytes;
inline constexpr std::uint8_t kRingBits = 0x0F;
/// Over how many nodes it has come: 0 from a client, 1 from a node that serves a client, 2 from one
/// that serves a node (docs/design/peers.md).
inline constexpr std::uint8_t kHopBits = 0x30;
inline constexpr unsigned kHopShift = 4;
inline constexpr std::uint8_t kHopsMax = 2;
/// Requests of one session with as many hops that a node executes or queues, at most. The sender
/// keeps no more in flight, so that none of them blocks one of more hops behind it.
inline constexpr std::uint32_t kHopRequestsMax = 64;
/// Reads: the payload begins with 8 bytes that name a snapshot, and that is what is read.
inline constexpr std::uint8_t kAtSnapshot = 0x80;
/// It ends with the principal on whose behalf it is relayed (wire/principal.hpp).
inline constexpr std::uint8_t kOnBehalf = 0x40;

/// A header as the four words that it is in memory. A caller passes the header that words_of()
/// takes by value only, so that it stays in registers. From memory the compiler would load these
/// words whole, and each load would stall until the narrower stores have left the store buffer for
/// the cache, behind all stores to lines that the other end holds (failed store forwarding).
using HeaderWords = std::array<std::uint64_t, 4>;
[[nodiscard]] constexpr HeaderWords words_of(const RequestHeader& header) {
  return {std::uint64_t{header.bytes} << 32 | header.sequence,
          std::uint64_t{header.key_bytes} << 48 | std::uint64_t{header.ring} << 40 |
              std::uint64_t{header.offload} << 32 | header.tag,
          header.hint, std::uint64_t{header.argument} << 32 | header.map};
}

/// Passes the value through a register. A compiler copies two adjacent words with one wide load,
/// and if they were stored separately a moment ago, that load stalls as those of words_of() would:
/// in a response, until the slots of the responses before it are the node's.
[[nodiscard]] inline std::uint64_t in_register(std::uint64_t value) {
  asm("" : "+r"(value));
  return value;
}
[[nodiscard]] inline std::string_view in_register(std::string_view text) {
  const char* data = text.data();
  asm("" : "+r"(data));
  return {data, static_cast<std::size_t>(in_register(std::uint64_t{text.size()}))};
}

/// Longest message, either way: an item of 16 MiB with room to spare, or a batch.
inline constexpr std::uint32_t kMessageBytesMax = std::uint32_t{32} << 20;

enum class ResponseKind : std::uint8_t {
  invalid = 0,
  answer = 1,  // the last message to a request
  chunk = 2,   // a part of a streamed answer, of a ChunkKind; more messages follow
};

/// What a chunk is made of: in the bits of `flags` that kChunkBits has.
enum class ChunkKind : std::uint8_t {
  items = 0,        // each an ItemHeader, its key, its value
  rows = 1 << 4,    // of a table, or of a query's result
  placed = 2 << 4,  // a ResultPlace: rows of a result, which were written into a buffer
};

///   0          4       8     12     13      14     16        24             32
///   +----------+-------+-----+------+-------+------+---------+--------------+---------
///   | sequence | bytes | tag | kind | flags | code | version | read version | payload
///   +----------+-------+-----+------+-------+------+---------+--------------+---------
struct ResponseHeader {
  std::uint32_t sequence;
  std::uint32_t bytes;
  std::uint32_t tag;
  std::uint8_t kind;      // ResponseKind
  std::uint8_t flags;     // kFound, kApplied; of chunks, their kind
  std::uint16_t code;     // 0: no error; else Code, and the payload is its detail, 4 bytes, and
                          // perhaps words for people behind it
  std::uint64_t version;  // scans and counts: items delivered in all
  std::uint64_t read_version;
};
inline constexpr std::uint32_t kResponseHeaderBytes = 32;
static_assert(sizeof(ResponseHeader) == kResponseHeaderBytes);
static_assert(offsetof(ResponseHeader, version) == 16);
static_assert(std::has_unique_object_representations_v<ResponseHeader>);

[[nodiscard]] constexpr HeaderWords words_of(const ResponseHeader& header) {
  return {std::uint64_t{header.bytes} << 32 | header.sequence,
          std::uint64_t{header.code} << 48 | std::uint64_t{header.flags} << 40 |
              std::uint64_t{header.kind} << 32 | header.tag,
          header.version, header.read_version};
}

inline constexpr std::uint8_t kFound = 1;    // there is one; writes: the key existed
inline constexpr std::uint8_t kApplied = 2;  // the write was applied
inline constexpr std::uint8_t kChunkBits = 0x30;

/// One item of a scan, floor or list of items; its key and value follow.
struct ItemHeader {
  std::uint64_t version;
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint16_t reserved;
};
static_assert(sizeof(ItemHeader) == 16 && std::has_unique_object_representations_v<ItemHeader>);
[[nodiscard]] constexpr ItemHeader item_header(std::uint64_t version, std::size_t key_bytes,
                                               std::size_t value_bytes) {
  return {version, static_cast<std::uint32_t>(value_bytes), static_cast<std::uint16_t>(key_bytes),
          0};
}

/// What compare_and_set expects, and does if it finds it; the expected and the new value follow.
struct Comparison {
  std::uint64_t version;         // kind version
  std::uint32_t expected_bytes;  // kind value
  std::uint8_t kind;             // ConditionKind
  std::uint8_t erase;            // 1: erase the item, 0: write it
  std::uint16_t reserved;
};
static_assert(sizeof(Comparison) == 16 && std::has_unique_object_representations_v<Comparison>);

/// One write or condition of a batch; its key and value follow.
struct BatchEntry {
  std::uint64_t version;      // condition on the version
  std::uint32_t value_bytes;  // to write, or expected
  std::uint16_t key_bytes;
  std::uint8_t kind;       // BatchKind
  std::uint8_t condition;  // of a check: ConditionKind, not none; else 0
};
static_assert(sizeof(BatchEntry) == 16 && std::has_unique_object_representations_v<BatchEntry>);

enum class BatchKind : std::uint8_t {
  invalid = 0,
  check = 1,  // the key's item is to be as the condition says, or nothing is written
  put = 2,
  erase = 3,
};

/// A condition's kind, of a number from elsewhere; none: there is no such kind.
[[nodiscard]] constexpr std::optional<ConditionKind> condition_kind(std::uint8_t number) {
  if (number > static_cast<std::uint8_t>(ConditionKind::version)) return std::nullopt;
  return static_cast<ConditionKind>(number);
}

/// What a map is made of: MapOptions. The name of its group follows.
struct MapShape {
  std::uint64_t snapshot_bytes_max;
  std::uint32_t node_bytes;
  std::uint32_t log_bytes;
  std::uint8_t versions;     // 1 or 0
  std::uint8_t group_bytes;  // of the group's name; 0: none is named
  std::uint16_t reserved;
  std::uint32_t key_bytes_max;  // in answers; 0 in requests
};
static_assert(sizeof(MapShape) == 24 && std::has_unique_object_representations_v<MapShape>);
static_assert(offsetof(MapShape, versions) == 16 && offsetof(MapShape, group_bytes) == 17);

/// The numbers of a map: MapStats.
struct MapNumbers {
  std::uint64_t items;
  std::uint64_t leaves;
  std::uint64_t interior_nodes;
  std::uint64_t height;
  std::uint64_t node_bytes;
  std::uint64_t value_bytes;
  std::uint64_t retired_bytes;
  std::uint64_t log_merges;
  std::uint64_t splits;
  std::uint64_t redistributions;
  std::uint64_t merges;
  std::uint64_t read_version;
  std::uint64_t write_version;
  std::uint64_t snapshots;
};
static_assert(sizeof(MapNumbers) == 112 && std::has_unique_object_representations_v<MapNumbers>);

}  // namespace espalier::wire
