// SPDX-License-Identifier: Apache-2.0
#include "espalier/error.hpp"

#include <iterator>
#include <system_error>

#include "base/places.hpp"
#include "espalier/kind.hpp"
#include "espalier/table_error.hpp"

namespace espalier {

std::string_view name(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::invalid_argument: return "invalid_argument";
    case Code::key_too_long: return "key_too_long";
    case Code::value_too_long: return "value_too_long";
    case Code::out_of_memory: return "out_of_memory";
    case Code::condition_failed: return "condition_failed";
    case Code::snapshot_expired: return "snapshot_expired";
    case Code::already_exists: return "already_exists";
    case Code::not_found: return "not_found";
    case Code::too_many_participants: return "too_many_participants";
    case Code::system: return "system";
    case Code::corrupt: return "corrupt";
    case Code::unsupported: return "unsupported";
    case Code::connection_lost: return "connection_lost";
    case Code::contended: return "contended";
    case Code::dropped: return "dropped";
    case Code::busy: return "busy";
    case Code::wrong_kind: return "wrong_kind";
    case Code::sealed: return "sealed";
    case Code::exhausted: return "exhausted";
    case Code::wrong_shard: return "wrong_shard";
    case Code::crosses_shards: return "crosses_shards";
    case Code::not_permitted: return "not_permitted";
    case Code::forked: return "forked";
    case Code::outdated: return "outdated";
    case Code::no_chain: return "no_chain";
  }
  return "unknown";  // a number from elsewhere, made by a later version perhaps
}

std::string_view name(Durability durability) {
  switch (durability) {
    case Durability::none: return "none";
    case Durability::async: return "async";
    case Durability::sync: return "sync";
  }
  return "";
}

std::string_view name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::any: break;
    case ObjectKind::map: return "map";
    case ObjectKind::table: return "table";
    case ObjectKind::sequencer: return "sequencer";
    case ObjectKind::hash: return "hash";
    case ObjectKind::region: return "region";
    case ObjectKind::embedding: return "embedding";
    case ObjectKind::model: return "model";
  }
  return "";
}

namespace {

std::string_view sentence(Code code) {
  switch (code) {
    case Code::invalid: return "This error was never filled in; please report it as a defect.";
    case Code::invalid_argument:
      return "An argument is outside what the call allows; nothing was done.";
    case Code::key_too_long:
      return "The key is empty or longer than the map's node size allows; "
             "shorten it, or create the map with larger nodes.";
    case Code::value_too_long: return "The value is longer than 16 MiB; split it into several.";
    case Code::out_of_memory:
      return "The memory limit is reached and nothing was changed; erase items, or raise "
             "memory_bytes_max (of a node memory.limit, and for connections "
             "clients.ring_bytes_max).";
    case Code::condition_failed:
      return "A condition of the batch did not hold and nothing was changed; "
             "read the items again and retry.";
    case Code::snapshot_expired:
      return "The snapshot held more memory than it may, or writes needed that, and it was given "
             "up; take a new one, or raise the map's snapshot_bytes_max or memory_bytes_max (of a "
             "node memory.limit).";
    case Code::already_exists: return "This name is taken; open what exists, or choose another.";
    case Code::not_found: return "There is nothing of this name; check how it is spelled.";
    case Code::too_many_participants:
      return "All places that there may be of this kind are taken; end some of what has them.";
    case Code::system: return "The operating system refused: ";
    case Code::corrupt:
      return "The bytes are not what they should be; restore them from a good copy.";
    case Code::unsupported:
      return "This build or this machine cannot do it; the documentation says what it needs.";
    case Code::connection_lost:
      return "The connection to the node is lost, and a write without an answer may or may not be "
             "done; the next call connects again.";
    case Code::contended:
      return "A one-sided read lost its hold on the memory before it was done; ask again.";
    case Code::wrong_kind: return "This name is that of another kind of object.";
    case Code::sealed:
      return "This epoch of the sequencer is sealed and gives no more numbers; follow the epoch "
             "that it has now, or begin a new one.";
    case Code::exhausted:
      return "The sequencer has fewer numbers left, or no more epochs; ask for fewer, or make "
             "another sequencer.";
    case Code::wrong_shard:
      return "The node does not have this part of the map, and nothing was done; open the map "
             "again "
             "(espalier shard status shows which node has which keys).";
    case Code::crosses_shards:
      return "The keys of the batch lie in several shards of the map, and nothing was done; write "
             "those of each shard in a batch of their own (espalier shard status shows the "
             "borders).";
    case Code::not_permitted:
      return "The node does not let this client do it, and nothing was done; ask whoever runs the "
             "node for a role that may.";
    case Code::forked:
      return "This belongs to the process that forked this one, and nothing was done; connect, or "
             "open a store, in this process.";
    case Code::outdated:
      return "The request was made by something that the object has no more, as groups by which "
             "ids were renumbered, and nothing was done; ask for it anew.";
    case Code::no_chain:
      return "The nodes of the chain cannot be found in etcd; check the address of the chain.";
    case Code::busy:
      return "The node or the store has as much of this kind to do as it takes, or no room for the "
             "record of a write; ask again later.";
    case Code::dropped:
      return "The table was dropped meanwhile; what was read of it so far is not all.";
  }
  return "This version does not know the error; a newer one may.";
}

/// Of a kind that an error's detail names; empty: it names none.
std::string_view kind_name(std::uint32_t detail) {
  constexpr std::uint32_t kMost = 255;
  return detail > kMost ? "" : name(static_cast<ObjectKind>(detail));
}

/// Of the role that an error's detail says it takes; empty: it says something else.
std::string_view role_name(std::uint32_t detail) {
  constexpr std::uint32_t kPeer = 8;
  constexpr std::uint32_t kReplica = 9;
  constexpr std::string_view kRoles[] = {"", "read", "write", "admin"};
  if (detail == kPeer) return "peer";
  if (detail == kReplica) return "replica";
  return detail < std::size(kRoles) ? kRoles[detail] : "";
}

/// Why the nodes of a chain cannot be found, by an error's detail; empty: it names no reason.
std::string_view chain_reason(std::uint32_t detail) {
  constexpr std::string_view kReasons[] = {
      "",
      "No etcd that the chain's address names answers, and nothing was done; check that it runs "
      "and can be reached, or name the nodes themselves (chain://ADDRESS,ADDRESS).",
      "The etcd that the chain's address names refuses this client, or its certificate is not one "
      "that the client trusts; ESPALIER_ETCD_FILE names the file with user, password and CA.",
      "What answers at the address of the chain's etcd is no etcd, or the key there holds no "
      "chain; check the address.",
      "To find a chain in etcd the library libcurl is needed, which cannot be loaded; Debian's "
      "package libcurl4 has it. Or name the nodes themselves (chain://ADDRESS,ADDRESS).",
      "There is no chain under this key in etcd; check the address (espalier chain create makes "
      "one).",
      "No member of the chain has an address for clients in etcd; espalier chain clients says "
      "where they reach it. Or name the nodes themselves (chain://ADDRESS,ADDRESS).",
      "The file that ESPALIER_ETCD_FILE names cannot be used, or its password would cross a "
      "network in the clear; espalier chain status says what is wrong."};
  return detail < std::size(kReasons) ? kReasons[detail] : "";
}

}  // namespace

std::string message(const Error& error) {
  std::string text(sentence(error.code));
  if (error.code == Code::system) {
    return text + std::generic_category().message(static_cast<int>(error.detail)) + ".";
  }
  if (error.code == Code::too_many_participants) {
    if (const std::string full = base::full_message(error); !full.empty()) return full;
  }
  const std::uint32_t packet_bytes = error.detail >> 16;
  if (error.code == Code::connection_lost && packet_bytes != 0) {
    return "The connection to the node is lost: packets of " + std::to_string(packet_bytes) +
           " bytes do not get through, though shorter ones do. Some interface between here and the "
           "node has a smaller MTU, and needs one of " +
           std::to_string(packet_bytes) +
           " at least. A write without an answer may or may not be done.";
  }
  if (error.code == Code::connection_lost && error.detail != 0) {
    return "The node of shard " + std::to_string(error.detail - 1) +
           " of the map cannot be reached, and a write without an answer may or may not be done; "
           "the other shards go on (espalier shard status shows which node it is).";
  }
  if (error.code == Code::not_permitted && !role_name(error.detail).empty()) {
    return "This takes the role " + std::string(role_name(error.detail)) +
           ", which the node does not grant to this client; nothing was done. Ask whoever runs the "
           "node for a secret of that role.";
  }
  if (error.code == Code::not_permitted && error.detail == 4) {
    return "The node authenticates its clients, and this one has no secret; name a file with your "
           "name "
           "and secret (StoreOptions::secret, --secret-file or ESPALIER_SECRET_FILE).";
  }
  if (error.code == Code::not_permitted && error.detail == 5) {
    return "The node does not know this name with this secret; ask whoever runs it for a line of "
           "its secrets file.";
  }
  if (error.code == Code::not_permitted && error.detail == 6) {
    return "The node has not proven that it knows the secret, so it may be another; check the "
           "address, or come without a secret.";
  }
  if (error.code == Code::not_permitted && error.detail == 7) {
    return "The process that listens there runs as another user, and others could have put its "
           "socket there, so it may be no node; say as which user the node runs "
           "(StoreOptions::node_user, --node-user or ESPALIER_NODE_USER), or have its socket in a "
           "folder that only root and that user may write.";
  }
  if (error.code == Code::not_permitted) {
    return "The node lets this client use objects whose names begin otherwise, or none that "
           "concerns all of them; nothing was done.";
  }
  if (error.code == Code::no_chain && !chain_reason(error.detail).empty()) {
    return std::string(chain_reason(error.detail));
  }
  if (error.code == Code::wrong_kind && error.detail != 0) {
    const std::string_view kind = kind_name(error.detail);
    return "This name is not of the kind that was asked for: it is " +
           std::string(kind.empty() ? "an object of a kind that this version does not know"
                                    : std::string("a ").append(kind)) +
           ". Open it as that, or take another name.";
  }
  if (error.code == Code::already_exists && !kind_name(error.detail).empty()) {
    return "This name is taken by a " + std::string(kind_name(error.detail)) +
           "; open that, or choose another.";
  }
  if (error.detail != 0) text += " (detail " + std::to_string(error.detail) + ")";
  return text;
}

std::string message(const TableError& error) {
  return error.words.empty() ? message(error.error) : error.words;
}

}  // namespace espalier
