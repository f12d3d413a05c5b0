// SPDX-License-Identifier: Apache-2.0
// Espalier from C: ordered maps in this process or on a memory node. The C form of map.hpp, which
// says what each call costs and which errors it can return.
//
// Errors. Every call that can fail returns a code: ESPALIER_OK, which is 0, or another. What
// happened in words is kept for the thread (espalier_error_message) until another call of it
// fails. No call throws, and a null pointer or a handle that is missing is an error like others.
//
// Outputs of a call that fails are left as they were.
//
// Memory. What a call is given, it copies or has done with when it returns; the bytes of pipelined
// requests are the exception, and wait for their completion. What a call makes (a handle, an
// espalier_item) belongs to the caller, who gives it back with the function named in its comment;
// giving back a null pointer does nothing. Bytes that a callback is shown belong to the library
// and are gone when it returns. A callback must return, by no exception or longjmp.
//
// Compatibility. Handles are opaque. Structs that may grow begin with struct_bytes, their size as
// the caller knows it: what an older caller does not know gets its default, and what a newer one
// asks for beyond this version is refused with ESPALIER_UNSUPPORTED unless it is 0. Take the
// macros *_INIT, which set size and defaults. Other structs never change.
//
// Threads. Stores, maps and snapshots are for any number of threads at a time; items, batches,
// transactions and pipelines for one.
//
// Processes. Handles are for the process that made them: in one that it forks, every call that
// needs the store returns ESPALIER_FORKED, and giving handles back only forgets them.
#ifndef ESPALIER_ESPALIER_H
#define ESPALIER_ESPALIER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this header; espalier_version() is that of the library.
#define ESPALIER_VERSION_MAJOR 0
#define ESPALIER_VERSION_MINOR 1
#define ESPALIER_VERSION_PATCH 0
#define ESPALIER_VERSION_NUMBER \
  (ESPALIER_VERSION_MAJOR * 1000000 + ESPALIER_VERSION_MINOR * 1000 + ESPALIER_VERSION_PATCH)

/// As ESPALIER_VERSION_NUMBER when the library was built.
uint32_t espalier_version(void);
/// The same as text, such as "0.1.0".
const char* espalier_version_text(void);

// --- errors --------------------------------------------------------------------------------------

/// What a call returns. A later version may have more of them.
typedef int32_t espalier_code;
#define ESPALIER_OK 0
#define ESPALIER_INVALID_ARGUMENT 1  ///< an argument is outside what is allowed; nothing was done
#define ESPALIER_KEY_TOO_LONG 2      ///< the key is empty, or too long for the map's node size
#define ESPALIER_VALUE_TOO_LONG 3    ///< the value is longer than 16 MiB
#define ESPALIER_OUT_OF_MEMORY 4     ///< the store or the process has none left; nothing changed
#define ESPALIER_CONDITION_FAILED 5  ///< a condition did not hold; nothing was changed
#define ESPALIER_SNAPSHOT_EXPIRED 6  ///< it held more memory than it may and was given up
#define ESPALIER_ALREADY_EXISTS 7    ///< something has this name
#define ESPALIER_NOT_FOUND 8         ///< there is no map of this name
#define ESPALIER_TOO_MANY_PARTICIPANTS 9  ///< all places for threads or clients are taken
#define ESPALIER_SYSTEM 10                ///< the operating system refused; the detail is errno
#define ESPALIER_CORRUPT 11               ///< bytes that should be ours are not
#define ESPALIER_UNSUPPORTED 12           ///< this library or machine cannot do it
/// The node is gone or said that it stops; a write without an answer may or may not be done.
#define ESPALIER_CONNECTION_LOST 13
/// A one-sided read lost its hold on the memory before it was done; ask again.
#define ESPALIER_CONTENDED 14
/// The table was dropped meanwhile: what was read of it so far is not all.
#define ESPALIER_DROPPED 15
/// There is as much of this kind to do as is taken, or no room for the record of a write; ask again
/// later.
#define ESPALIER_BUSY 16
/// The name is that of another kind of object, such as a table's; the detail is the kind.
#define ESPALIER_WRONG_KIND 17
/// The epoch of a sequencer gives no more numbers; the detail is the epoch that it has now.
#define ESPALIER_SEALED 18
#define ESPALIER_EXHAUSTED 19  ///< a sequencer has not so many numbers left, or no more epochs
/// The node does not have this part of a map over several nodes; nothing was done.
#define ESPALIER_WRONG_SHARD 20
/// The keys of a batch lie in several shards of a map; nothing was done.
#define ESPALIER_CROSSES_SHARDS 21
/// The node does not let this client do it; nothing was done. The detail: 1 it takes the role read,
/// 2 write, 3 admin; 0 the client's role is for objects of other names; 4 the node wants a secret,
/// 5 it knows another, 6 it knows none, 7 another user's process listens at a path where any user
/// could have been first (node_user).
#define ESPALIER_NOT_PERMITTED 22
/// The handle is that of the process that forked this one; nothing was done (docs/fork.md).
#define ESPALIER_FORKED 23
/// What the request was made by is not what the object has now, as groups by which ids were
/// renumbered; nothing was done. Ask for it anew. The detail: the number of what it has now, or 0.
#define ESPALIER_OUTDATED 24
#define ESPALIER_INTERNAL 1000  ///< a defect of the library: please report it with the message

/// Of the last call of this thread that failed: its code, ESPALIER_OK if none did.
espalier_code espalier_error_code(void);
/// A number whose meaning the code gives: errno, a limit, the condition that failed first (counted
/// from 0 in the order in which they were added).
uint32_t espalier_error_detail(void);
/// What was wrong and what to do about it: one line that names the call. Never null; the library's,
/// and the thread's: valid until another call of this thread fails.
const char* espalier_error_message(void);
/// The name of a code, such as "out_of_memory". Never null, never freed.
const char* espalier_code_name(espalier_code code);

// --- bytes ---------------------------------------------------------------------------------------

/// Any bytes, zeros included. `data` may be null if `size` is 0.
typedef struct espalier_bytes {
  const void* data;
  size_t size;
} espalier_bytes;

/// Those of a text that ends with a zero, which is not one of them.
static inline espalier_bytes espalier_text(const char* text) {
  espalier_bytes bytes;
  bytes.data = text;
  bytes.size = text == NULL ? 0 : strlen(text);
  return bytes;
}

/// Numbers the writes of one map in the order in which they take effect.
typedef uint64_t espalier_version_number;

/// A key and a value that were read, with room of their own that is used again: for any number of
/// reads, one after another. What it shows is valid until it is read into again or destroyed.
typedef struct espalier_item espalier_item;
espalier_code espalier_item_create(espalier_item** item);
void espalier_item_destroy(espalier_item* item);
/// Empty before the first read, and after one that found nothing. (A null item is empty too.)
espalier_bytes espalier_item_key(const espalier_item* item);
espalier_bytes espalier_item_value(const espalier_item* item);
espalier_version_number espalier_item_version(const espalier_item* item);

// --- stores --------------------------------------------------------------------------------------

/// Maps, in this process or on a node.
typedef struct espalier_store espalier_store;

/// How a client reads the maps of a node.
typedef enum espalier_access {
  ESPALIER_ACCESS_RPC = 0,        ///< it asks the node, which answers
  ESPALIER_ACCESS_ONE_SIDED = 1,  ///< it walks the maps itself, by READs of the node's memory
  ESPALIER_ACCESS_IN_NETWORK = 2,  ///< the same by READs that carry the key, for switches
  ESPALIER_ACCESS_DATAGRAM = 3     ///< it asks, and gets travel as datagrams of UDP, one each way
} espalier_access;

/// A name, and the secret that proves it to nodes (docs/security.md), in memory that
/// is locked, in no core dump, and overwritten in the end.
typedef struct espalier_secret espalier_secret;
/// Of 32 bytes that were drawn. The caller overwrites its own.
espalier_code espalier_secret_create(espalier_bytes name, espalier_bytes bytes,
                                     espalier_secret** secret);
/// Of a file with one line, as "espalier secret new" writes it, which is its owner's alone.
espalier_code espalier_secret_read(const char* path, espalier_secret** secret);
/// Stores that were opened with it go on. Null is allowed.
void espalier_secret_destroy(espalier_secret* secret);

/// Of a store in this process, but for `access`, `cache_bytes`, `secret` and `node_user`; one on a
/// node has its own.
typedef struct espalier_store_options {
  uint32_t struct_bytes;
  uint32_t participants_max;  ///< threads that may use it at a time
  uint64_t memory_bytes_max;  ///< limit on memory in use; 0: three quarters of the machine's
  uint32_t huge_pages;        ///< 1: where there are some, 0: no
  uint32_t access;            ///< of a store on a node: an espalier_access
  /// with one of the other two: what each thread and each pipeline may remember of nodes that
  /// it reads; 0: nothing
  uint64_t cache_bytes;
  /// of a store on a node; null: that of the file that ESPALIER_SECRET_FILE names
  const espalier_secret* secret;
  /// of a store on a node of this machine: as which user the node runs, where the client's own,
  /// root and the owner of the socket's folder are not meant; -1: as ESPALIER_NODE_USER says
  int64_t node_user;
} espalier_store_options;
#define ESPALIER_STORE_OPTIONS_INIT \
  {sizeof(espalier_store_options), 256, 0, 1, 0, 33554432, NULL, -1}

/// Opens the store at an address: "embedded", which is new and empty, or "unix:PATH" and the
/// addresses of fabrics ("shm:PATH", "roce://HOST[:PORT]/SERVICE"), that of the node which listens
/// there. ESPALIER_ACCESS_ONE_SIDED needs a fabric and a node that allows it,
/// ESPALIER_ACCESS_IN_NETWORK one of packets ("roce..."), ESPALIER_ACCESS_DATAGRAM a node that
/// takes datagrams, else the call answers ESPALIER_UNSUPPORTED. `options` may be null. Given back
/// by espalier_store_close.
espalier_code espalier_store_open(const char* address, const espalier_store_options* options,
                                  espalier_store** store);
/// Threads must have stopped using it. Refused with ESPALIER_INVALID_ARGUMENT while snapshots or
/// pipelines of it are open; its maps may still be closed later.
espalier_code espalier_store_close(espalier_store* store);

/// Takes `count` numbers in a row from the counter of this name (1 to 255 bytes), which begins at 0
/// and gives out every number once; `first` gets the first of them. Such a counter can neither be
/// sealed nor dropped; an espalier_sequencer can.
espalier_code espalier_sequence(espalier_store* store, espalier_bytes name, uint32_t count,
                                uint64_t* first);

/// Of a durable store, in numbers of records: what was answered before has records at or below
/// `recorded`, and all at or below `durable` are on the disk. Numbers of one run of the node alone
/// compare: after a crash those of records that were lost are of others.
/// ESPALIER_UNSUPPORTED: it is in memory alone.
espalier_code espalier_durable_state(const espalier_store* store, uint64_t* recorded,
                                     uint64_t* durable);
/// Returns once all is on the disk that was answered before. ESPALIER_SYSTEM: it never will be.
espalier_code espalier_await_durable(espalier_store* store);

// --- sequencers ----------------------------------------------------------------------------------

/// A handle of one sequencer, which gives each number once, by epochs. It takes numbers of the
/// epoch that it knows and of no other: after a seal its calls return ESPALIER_SEALED, with the
/// epoch that there is now as the detail, until it follows. See sequencer.hpp.
typedef struct espalier_sequencer espalier_sequencer;

/// Numbers that no other client gets: first, first + 1, ... first + count - 1.
typedef struct espalier_number_range {
  uint64_t first;
  uint32_t count;
  uint32_t epoch;
} espalier_number_range;

/// A sequencer as it was at one moment.
typedef struct espalier_sequencer_state {
  uint32_t struct_bytes;
  uint32_t epoch;        ///< the first one is 1
  uint32_t sealed;       ///< 1: the epoch gives no more numbers
  uint32_t overwritten;  ///< 1: sealed, by a client's write to it or a loss of the log
  uint64_t first;        ///< where the epoch began
  uint64_t next;         ///< all numbers that were given are below
  uint64_t requests;     ///< for numbers, that the node answered
  uint64_t node_adds;    ///< atomic adds that it made for them
} espalier_sequencer_state;
#define ESPALIER_SEQUENCER_STATE_INIT {sizeof(espalier_sequencer_state), 0, 0, 0, 0, 0, 0, 0}

/// Makes a sequencer whose numbers begin at `first`; names have 1 to 255 bytes. Given back by
/// espalier_sequencer_close, as is that of espalier_sequencer_open.
espalier_code espalier_sequencer_create(espalier_store* store, espalier_bytes name, uint64_t first,
                                        espalier_sequencer** sequencer);
espalier_code espalier_sequencer_open(espalier_store* store, espalier_bytes name,
                                      espalier_sequencer** sequencer);
/// Gives the handle back; the sequencer stays.
void espalier_sequencer_close(espalier_sequencer* sequencer);
espalier_code espalier_sequencer_drop(espalier_store* store, espalier_bytes name);

/// Takes `count` numbers in a row. ESPALIER_SEALED, ESPALIER_EXHAUSTED: nothing was taken.
espalier_code espalier_sequencer_take(espalier_sequencer* sequencer, uint32_t count,
                                      espalier_number_range* range);
/// Ends the handle's epoch for all clients. In this call and the next ones `state` may be null; if
/// it is not, the caller sets state->struct_bytes, as ESPALIER_SEQUENCER_STATE_INIT does.
espalier_code espalier_sequencer_seal(espalier_sequencer* sequencer,
                                      espalier_sequencer_state* state);
/// Ends the handle's epoch, and goes on with it in the next, which begins above all numbers that
/// were given and not below `at_least`. ESPALIER_INVALID_ARGUMENT with the detail 1: a client wrote
/// over the word, so `at_least` must name a number above which all are free.
espalier_code espalier_sequencer_advance(espalier_sequencer* sequencer, uint64_t at_least,
                                         espalier_sequencer_state* state);
/// Goes on in the epoch that the sequencer has now.
espalier_code espalier_sequencer_follow(espalier_sequencer* sequencer,
                                        espalier_sequencer_state* state);
espalier_code espalier_sequencer_describe(const espalier_sequencer* sequencer,
                                          espalier_sequencer_state* state);

// --- maps ----------------------------------------------------------------------------------------

/// A handle of one map. It may be closed while others use the map.
typedef struct espalier_map espalier_map;

/// What a crash may lose of a map: what its store says, all, the newest writes, nothing answered.
typedef enum espalier_durability {
  ESPALIER_DURABILITY_OF_STORE = 0, ESPALIER_DURABILITY_NONE = 1,
  ESPALIER_DURABILITY_ASYNC = 2, ESPALIER_DURABILITY_SYNC = 3
} espalier_durability;

typedef struct espalier_map_options {
  uint32_t struct_bytes;
  uint32_t node_bytes;          ///< power of two, 512 to 65536
  uint32_t log_bytes;           ///< log block of a leaf, 0 (none) to 2048; multiple of 64
  uint32_t versions;            ///< 0: faster writes, scans not linearizable, no snapshots; 1: else
  uint64_t snapshot_bytes_max;  ///< old versions that snapshots may hold
  uint32_t durability;          ///< an espalier_durability
  uint32_t reserved;            ///< 0
  /// The group that it is of, 1 to 255 bytes, whose maps share a clock; none: it names none. Of
  /// espalier_map_get_options: good as long as the handle.
  espalier_bytes group;
} espalier_map_options;
#define ESPALIER_MAP_OPTIONS_INIT \
  {sizeof(espalier_map_options), 8192, 512, 1, 268435456u, 0, 0, {0, 0}}

/// Makes an empty map; names have 1 to 255 bytes. `options` may be null. Given back by
/// espalier_map_close, as is that of espalier_map_open.
espalier_code espalier_map_create(espalier_store* store, espalier_bytes name,
                                  const espalier_map_options* options, espalier_map** map);
espalier_code espalier_map_open(espalier_store* store, espalier_bytes name, espalier_map** map);
/// Gives the handle back; the map stays.
void espalier_map_close(espalier_map* map);
/// Removes the map and gives its memory back. Its handles may only be closed from now on, and its
/// snapshots and pipelines must be gone.
espalier_code espalier_map_drop(espalier_store* store, espalier_bytes name);

/// Is shown one name after another. Returns 0 to go on, anything else to be shown no more.
typedef int32_t (*espalier_name_fn)(void* context, espalier_bytes name);
/// Where the names cannot be asked for, none is shown, and the code says why.
espalier_code espalier_map_list(espalier_store* store, espalier_name_fn visit, void* context);

/// What the map was made with. The caller sets options->struct_bytes, as ESPALIER_MAP_OPTIONS_INIT
/// does.
espalier_code espalier_map_get_options(const espalier_map* map, espalier_map_options* options);
/// The longest key that the map takes, in bytes.
espalier_code espalier_map_key_bytes_max(const espalier_map* map, uint32_t* bytes);

/// Numbers about one map, each right, but not all at one instant.
typedef struct espalier_map_stats {
  uint32_t struct_bytes;
  uint32_t height;  ///< levels, a lone leaf being 1
  uint64_t items;
  uint64_t leaves;
  uint64_t interior_nodes;
  uint64_t node_bytes;     ///< memory of nodes in the tree
  uint64_t value_bytes;    ///< memory of out-of-line values
  uint64_t retired_bytes;  ///< memory unlinked and not yet free
  uint64_t log_merges;
  uint64_t splits;           ///< of leaves
  uint64_t redistributions;  ///< splits avoided by giving items to a sibling
  uint64_t merges;           ///< of nodes
  espalier_version_number read_version;
  espalier_version_number write_version;
  uint64_t snapshots;
} espalier_map_stats;
#define ESPALIER_MAP_STATS_INIT \
  {sizeof(espalier_map_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/// The caller sets stats->struct_bytes, as ESPALIER_MAP_STATS_INIT does. Where the numbers cannot
/// be asked for, of one shard or of all, they stay as they are.
espalier_code espalier_map_get_stats(const espalier_map* map, espalier_map_stats* stats);

// --- single operations ---------------------------------------------------------------------------

/// What a write did.
typedef struct espalier_written {
  espalier_version_number version;  ///< 0 if nothing was applied, or versions are off
  uint32_t applied;  ///< 1: done. insert: the key was absent; update, erase: it was present
  uint32_t existed;  ///< 1: the key was present before; batches: at least one of them was
} espalier_written;

/// Reads the value of a key; *found gets 1 and `item` the item, or both get nothing (0, empty).
espalier_code espalier_map_get(const espalier_map* map, espalier_bytes key, espalier_item* item,
                               uint32_t* found);
/// The same for the item with the largest key not above `key`.
espalier_code espalier_map_floor(const espalier_map* map, espalier_bytes key, espalier_item* item,
                                 uint32_t* found);

/// Inserts or replaces. `written` may be null in all writes.
espalier_code espalier_map_put(espalier_map* map, espalier_bytes key, espalier_bytes value,
                               espalier_written* written);
/// Writes only if the key is absent; written->applied tells.
espalier_code espalier_map_insert(espalier_map* map, espalier_bytes key, espalier_bytes value,
                                  espalier_written* written);
/// Writes only if the key is present; written->applied tells.
espalier_code espalier_map_update(espalier_map* map, espalier_bytes key, espalier_bytes value,
                                  espalier_written* written);
/// Removes the key if it is present; written->applied tells.
espalier_code espalier_map_erase(espalier_map* map, espalier_bytes key, espalier_written* written);

/// Writes `desired` (null: erases) if the value is `expected` (null: if the key is absent); else
/// ESPALIER_CONDITION_FAILED.
espalier_code espalier_map_compare_and_set(espalier_map* map, espalier_bytes key,
                                           const espalier_bytes* expected,
                                           const espalier_bytes* desired,
                                           espalier_written* written);
/// Adds to a counter, a value of 8 bytes, little-endian, an absent one being 0. `sum` may be null.
espalier_code espalier_map_add(espalier_map* map, espalier_bytes key, uint64_t amount,
                               uint64_t* sum);

// --- embedding tables ----------------------------------------------------------------------------

/// A handle of one embedding table: rows of numbers, of which bags are reduced to one row each
/// beside the memory. See embedding_table.hpp.
typedef struct espalier_embedding espalier_embedding;

// Types of values, as they are stored.
#define ESPALIER_FP32 1
#define ESPALIER_FP16 2
#define ESPALIER_BF16 3
#define ESPALIER_INT8 4

// Reductions.
#define ESPALIER_SUM 1
#define ESPALIER_MEAN 2
#define ESPALIER_MAX 3
#define ESPALIER_MIN 4
#define ESPALIER_INNER_PRODUCT 5

/// Bags of rows: bag b is of the ids from offsets[b] on, up to those of the next bag, or to the
/// end.
typedef struct espalier_bags {
  uint32_t struct_bytes;
  uint32_t grouping;  ///< 0, or the grouping by which ids are renumbered
  const uint32_t* ids;
  size_t id_count;
  const uint32_t* offsets;
  size_t bag_count;
  const float* weights;  ///< of sum and inner product: one for each id, or none
  size_t weight_count;
  const float* vector;  ///< of inner product alone: one for each column
  size_t vector_count;
} espalier_bags;
#define ESPALIER_BAGS_INIT {sizeof(espalier_bags), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/// Makes an empty table of rows of so many values, a multiple of 8, at most 1024. Given back by
/// espalier_embedding_close, as is that of espalier_embedding_open.
espalier_code espalier_embedding_create(espalier_store* store, espalier_bytes name,
                                        uint32_t dimension, uint32_t type,
                                        espalier_embedding** table);
espalier_code espalier_embedding_open(espalier_store* store, espalier_bytes name,
                                      espalier_embedding** table);
/// Gives the handle back; the table stays.
void espalier_embedding_close(espalier_embedding* table);
espalier_code espalier_embedding_drop(espalier_store* store, espalier_bytes name);
/// Gives a table another name, in one step; handles follow their name. What becomes of the table
/// that has the name: 0 nothing is done then (already_exists), 1 it gets the other's name, 2 it is
/// dropped.
espalier_code espalier_embedding_rename(espalier_store* store, espalier_bytes name,
                                        espalier_bytes to, uint32_t displaced);
/// Values of a row; 0 of null.
uint32_t espalier_embedding_dimension(const espalier_embedding* table);
/// Appends rows, one behind the other, all or none, up to 1 MiB as they are stored. `first` gets
/// the number of the first, and may be null.
espalier_code espalier_embedding_append(espalier_embedding* table, const float* values,
                                        size_t count, uint64_t* first);
/// Replaces one row.
espalier_code espalier_embedding_replace(espalier_embedding* table, uint64_t row,
                                         const float* values, size_t count);
/// Reduces each bag to a row of floats, or of an inner product to one float; an empty bag is zeros.
/// `count`: of the floats that they come to. After an error the results are of no use.
espalier_code espalier_embedding_reduce(const espalier_embedding* table, uint32_t reduction,
                                        const espalier_bags* bags, float* results, size_t count);
/// The same of several tables, of each `bags` at its place: those results come first whose tables
/// do. Of a node they are asked for together.
espalier_code espalier_embedding_reduce_tables(const espalier_embedding* const* tables,
                                               const espalier_bags* const* bags, size_t table_count,
                                               uint32_t reduction, float* results, size_t count);
/// Keeps the sums of groups of rows, of 2 to 8 each, in place of those that there are; of none if
/// there are no sizes. `rows` has those of one group behind those of the other. `grouping` gets
/// the number of the grouping, 0 for none, and may be null. See EmbeddingTable::group.
espalier_code espalier_embedding_group(espalier_embedding* table, const uint8_t* sizes,
                                       size_t size_count, const uint32_t* rows, size_t row_count,
                                       uint32_t* grouping);
/// Numbers ids as the table's groups do, for bags with the grouping that `grouping` gets; 0: there
/// are no groups, and ids stay. After an error ids are of no use.
espalier_code espalier_embedding_renumber(const espalier_embedding* table, uint32_t* ids,
                                          size_t count, uint32_t* grouping);

/// Numbers about one table. See EmbeddingStats.
typedef struct espalier_embedding_stats {
  uint32_t struct_bytes;
  uint32_t reserved;  ///< 0
  uint64_t rows;
  uint64_t pages;  ///< of 2 MiB
  uint64_t memory_bytes;
  uint64_t reductions;     ///< bags that were reduced
  uint64_t rows_gathered;  ///< rows that were read for them
  uint64_t rows_replaced;
  uint64_t rereads;  ///< steps that met a replacement, and were done again
  uint64_t groups;
  uint64_t grouped_rows;
  uint64_t group_bytes;        ///< of the memory
  uint64_t sums_gathered;      ///< of the rows that were gathered
  uint64_t rows_saved;         ///< rows that were not read, for sums stood for them
  uint64_t grouping_groups;    ///< of a grouping that is being made; 0: none is
  uint64_t grouping_computed;  ///< of these, groups whose sums are there
} espalier_embedding_stats;
#define ESPALIER_EMBEDDING_STATS_INIT \
  {sizeof(espalier_embedding_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/// The caller sets stats->struct_bytes, as ESPALIER_EMBEDDING_STATS_INIT does. Where the numbers
/// cannot be asked for they stay as they are.
espalier_code espalier_embedding_get_stats(const espalier_embedding* table,
                                           espalier_embedding_stats* stats);

// --- ranking models ------------------------------------------------------------------------------

/// A handle of one ranking model: the networks of a recommendation model, over embedding tables of
/// the same store. See ranking_model.hpp.
typedef struct espalier_model espalier_model;

/// Makes a model of a file's bytes, as docs/formats/model.md has them, up to 30 MiB. Given back by
/// espalier_model_close, as is that of espalier_model_open.
espalier_code espalier_model_create(espalier_store* store, espalier_bytes name, espalier_bytes file,
                                    espalier_model** model);
espalier_code espalier_model_open(espalier_store* store, espalier_bytes name,
                                  espalier_model** model);
/// Gives the handle back; the model stays.
void espalier_model_close(espalier_model* model);
espalier_code espalier_model_drop(espalier_store* store, espalier_bytes name);
/// Features of a query that are numbers, embedding tables, and floats for each query; 0 of null.
uint32_t espalier_model_dense(const espalier_model* model);
uint32_t espalier_model_tables(const espalier_model* model);
uint32_t espalier_model_outputs(const espalier_model* model);
/// Ranks queries: dense features of one behind the other, and of each table a bag for each query,
/// without weights, vector and grouping. `count`: of the ranks, those of one query behind the
/// other. After an error they are of no use.
espalier_code espalier_model_infer(const espalier_model* model, const float* dense,
                                   size_t dense_count, const espalier_bags* const* tables,
                                   size_t table_count, float* ranks, size_t count);
/// The same of text, a query a line. Text that yields another count of ranks is an error.
espalier_code espalier_model_infer_text(const espalier_model* model, espalier_bytes queries,
                                        float* ranks, size_t count);

// --- ranges --------------------------------------------------------------------------------------

/// An item that a callback is shown.
typedef struct espalier_entry {
  espalier_bytes key;
  espalier_bytes value;
  espalier_version_number version;
} espalier_entry;

/// Is shown runs of items in order. Returns 0 to go on, anything else to be shown no more. It must
/// not write to the map that it is shown.
typedef int32_t (*espalier_items_fn)(void* context, const espalier_entry* items, size_t count);

typedef struct espalier_scan_options {
  uint32_t struct_bytes;
  uint32_t reverse;  ///< 1: descending
  /// 1: begins at the floor of low, high included; not together with reverse
  uint32_t from_floor;
  uint32_t parts;  ///< walks it in at most so many parts at a time, up to 64; 0: as one
  uint64_t limit;  ///< at most so many items; 0: no limit
} espalier_scan_options;
#define ESPALIER_SCAN_OPTIONS_INIT {sizeof(espalier_scan_options), 0, 0, 0, 0}

/// Shows the items of [low, high) as of one version. An empty low is below all keys, an empty high
/// above all. `options` may be null, and `count`, which gets the number of items delivered: of a
/// scan that was stopped some more than were shown.
espalier_code espalier_map_scan(const espalier_map* map, espalier_bytes low, espalier_bytes high,
                                const espalier_scan_options* options, espalier_items_fn visit,
                                void* context, uint64_t* count);
/// How many items [low, high) has: exactly, at the cost of a scan; or about, at that of two reads.
espalier_code espalier_map_count(const espalier_map* map, espalier_bytes low, espalier_bytes high,
                                 uint64_t* count);
espalier_code espalier_map_count_estimate(const espalier_map* map, espalier_bytes low,
                                          espalier_bytes high, uint64_t* count);

// --- batches -------------------------------------------------------------------------------------

/// Writes that take effect together, if conditions hold, or not at all.
typedef struct espalier_batch espalier_batch;
espalier_code espalier_batch_create(espalier_batch** batch);
void espalier_batch_destroy(espalier_batch* batch);
/// Empties it, for another use.
espalier_code espalier_batch_clear(espalier_batch* batch);
/// Each copies what it is given. Keys of more than 460 bytes and values of more than 16 MiB, which
/// no map takes, are refused here, others when the batch is written.
espalier_code espalier_batch_put(espalier_batch* batch, espalier_bytes key, espalier_bytes value);
espalier_code espalier_batch_erase(espalier_batch* batch, espalier_bytes key);
espalier_code espalier_batch_only_if_absent(espalier_batch* batch, espalier_bytes key);
espalier_code espalier_batch_only_if_present(espalier_batch* batch, espalier_bytes key);
espalier_code espalier_batch_only_if_value(espalier_batch* batch, espalier_bytes key,
                                           espalier_bytes value);
/// Holds if the item still has the version that a read returned; may fail although nothing changed
/// after a reorganisation of the map: read again and try again.
espalier_code espalier_batch_only_if_version(espalier_batch* batch, espalier_bytes key,
                                             espalier_version_number version);
/// Writes all of it under one version, or nothing: ESPALIER_CONDITION_FAILED, the detail being the
/// condition. The batch stays as it is.
espalier_code espalier_map_write(espalier_map* map, const espalier_batch* batch,
                                 espalier_written* written);

// --- transactions --------------------------------------------------------------------------------

/// Reads, conditions and writes of several maps and hash maps of one group (espalier_map_options)
/// at one moment, all of them or none.
typedef struct espalier_transaction espalier_transaction;
espalier_code espalier_transaction_create(espalier_transaction** transaction);
void espalier_transaction_destroy(espalier_transaction* transaction);
/// Empties it, for another use.
espalier_code espalier_transaction_clear(espalier_transaction* transaction);
/// Each adds a step for a key of the map of this name, and copies what it is given. Of a key reads
/// and conditions come before writes. Keys of more than 65535 bytes and values of more than 1 MiB
/// are refused here, others when the transaction is done.
espalier_code espalier_transaction_get(espalier_transaction* transaction, espalier_bytes map,
                                       espalier_bytes key);
espalier_code espalier_transaction_put(espalier_transaction* transaction, espalier_bytes map,
                                       espalier_bytes key, espalier_bytes value);
espalier_code espalier_transaction_erase(espalier_transaction* transaction, espalier_bytes map,
                                         espalier_bytes key);
espalier_code espalier_transaction_only_if_absent(espalier_transaction* transaction,
                                                  espalier_bytes map, espalier_bytes key);
espalier_code espalier_transaction_only_if_present(espalier_transaction* transaction,
                                                   espalier_bytes map, espalier_bytes key);
espalier_code espalier_transaction_only_if_value(espalier_transaction* transaction,
                                                 espalier_bytes map, espalier_bytes key,
                                                 espalier_bytes value);
/// As espalier_batch_only_if_version.
espalier_code espalier_transaction_only_if_version(espalier_transaction* transaction,
                                                   espalier_bytes map, espalier_bytes key,
                                                   espalier_version_number version);
/// Does it, under one version, which may be null; 0: it has no writes. Where a condition does not
/// hold nothing is done: ESPALIER_CONDITION_FAILED, the detail being the step, counted from 0.
/// Otherwise the detail may be which of the maps is meant, counted likewise as they were named. The
/// steps stay as they are.
espalier_code espalier_transact(espalier_store* store, espalier_transaction* transaction,
                                espalier_version_number* version);
/// What it has read the last time it was done, by its `number`th get, counted from 0. The item has
/// no key. ESPALIER_OUTDATED: it was done before, and that is not known any more.
espalier_code espalier_transaction_found(const espalier_transaction* transaction, size_t number,
                                         espalier_item* item, uint32_t* found);

/// A client whose transactions have numbers, each of which is done once. A program may keep both
/// over its restart, and asks for the same again by the same number.
typedef struct espalier_numbered_client {
  uint64_t id;    ///< as the store gave it
  uint64_t next;  ///< the number of the next transaction
} espalier_numbered_client;
espalier_code espalier_numbered_client_create(espalier_store* store,
                                              espalier_numbered_client* client);
/// From now on nothing is done for the client.
espalier_code espalier_numbered_client_forget(espalier_store* store,
                                              const espalier_numbered_client* client);
/// The same as espalier_transact, under the client's next number, of which nothing is done if it
/// was done before: the first answer comes again. The number is used up by an answer, and by what
/// refuses it for good.
espalier_code espalier_transact_once(espalier_store* store, espalier_transaction* transaction,
                                     espalier_numbered_client* client,
                                     espalier_version_number* version);

// --- snapshots -----------------------------------------------------------------------------------

/// A map as it was at one version. Given back by espalier_snapshot_close, before its store.
typedef struct espalier_snapshot espalier_snapshot;
espalier_code espalier_snapshot_open(const espalier_map* map, espalier_snapshot** snapshot);
void espalier_snapshot_close(espalier_snapshot* snapshot);
espalier_code espalier_snapshot_version(const espalier_snapshot* snapshot,
                                        espalier_version_number* version);
/// As those of maps.
espalier_code espalier_snapshot_get(const espalier_snapshot* snapshot, espalier_bytes key,
                                    espalier_item* item, uint32_t* found);
espalier_code espalier_snapshot_floor(const espalier_snapshot* snapshot, espalier_bytes key,
                                      espalier_item* item, uint32_t* found);
espalier_code espalier_snapshot_scan(const espalier_snapshot* snapshot, espalier_bytes low,
                                     espalier_bytes high, const espalier_scan_options* options,
                                     espalier_items_fn visit, void* context, uint64_t* count);

// --- pipelines -----------------------------------------------------------------------------------

/// Operations of requests.
#define ESPALIER_OP_GET 1
#define ESPALIER_OP_PUT 2
#define ESPALIER_OP_INSERT 3
#define ESPALIER_OP_UPDATE 4
#define ESPALIER_OP_ERASE 5
#define ESPALIER_OP_FLOOR 6
#define ESPALIER_OP_SCAN 7          ///< [key, high), ascending
#define ESPALIER_OP_SCAN_REVERSE 8  ///< the same items, descending
#define ESPALIER_OP_SCAN_FLOOR 9    ///< from the floor of key up to and including high

typedef struct espalier_request {
  uint32_t op;
  uint32_t limit;  ///< scans: at most so many items; 0: no limit
  uint64_t tag;    ///< handed back, not looked at
  espalier_bytes key;
  espalier_bytes high;   ///< scans
  espalier_bytes value;  ///< put, insert, update
} espalier_request;

/// The answer to one request. Its bytes are valid only while the callback runs.
typedef struct espalier_completion {
  uint64_t tag;
  uint32_t op;
  espalier_code code;  ///< ESPALIER_OK, or why the request failed
  uint32_t detail;     ///< of the code
  uint32_t found;      ///< get, floor: there is one; writes: as espalier_written.existed
  uint32_t applied;    ///< writes: as espalier_written.applied
  uint32_t reserved;
  espalier_version_number version;       ///< of the item that was read, or of the write
  espalier_version_number read_version;  ///< reads: the version at which the answer holds
  uint64_t items;                        ///< scans: items delivered
  espalier_bytes key;                    ///< floor: the key found
  espalier_bytes value;                  ///< get, floor: the value found
} espalier_completion;

/// Is called once for each request, in no particular order, by the thread that works on the
/// pipeline. Must not use the pipeline: that is refused.
typedef void (*espalier_done_fn)(void* context, const espalier_completion* completion);
/// Is shown the next items of a scan. Returns 0 to go on, anything else to be shown no more.
typedef int32_t (*espalier_more_items_fn)(void* context, uint64_t tag, const espalier_entry* items,
                                          size_t count);

typedef struct espalier_pipeline_options {
  uint32_t struct_bytes;
  uint32_t in_flight;            ///< 1 to 256 requests at a time; 24 to 32 is best for most
  espalier_done_fn done;         ///< not null
  espalier_more_items_fn items;  ///< null: scans only count
  void* context;                 ///< handed to both
} espalier_pipeline_options;
#define ESPALIER_PIPELINE_OPTIONS_INIT {sizeof(espalier_pipeline_options), 32, NULL, NULL, NULL}

/// Many requests in flight on one thread.
typedef struct espalier_pipeline espalier_pipeline;
/// Given back by espalier_pipeline_close, before its store.
espalier_code espalier_pipeline_open(const espalier_map* map,
                                     const espalier_pipeline_options* options,
                                     espalier_pipeline** pipeline);
/// Adds requests, all of them or, if one is none, nothing. The requests are copied; the bytes that
/// they point to must live until their completions. Completions may come before it returns.
espalier_code espalier_pipeline_submit(espalier_pipeline* pipeline,
                                       const espalier_request* requests, size_t count);
/// Works until at least one request has completed or nothing is left; *left, which may be null,
/// gets how many are.
espalier_code espalier_pipeline_poll(espalier_pipeline* pipeline, size_t* left);
/// Adds requests and works until nothing is left.
espalier_code espalier_pipeline_run(espalier_pipeline* pipeline, const espalier_request* requests,
                                    size_t count);
/// Works until nothing is left, and gives the pipeline back.
espalier_code espalier_pipeline_close(espalier_pipeline* pipeline);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ESPALIER_ESPALIER_H
