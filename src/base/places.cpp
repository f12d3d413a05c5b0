// SPDX-License-Identifier: Apache-2.0
#include "base/places.hpp"

#include <array>

namespace espalier::base {
namespace {

struct Words {
  Places places;
  std::string_view name;
  std::string_view sentence;  // {}: how many there may be
};

constexpr std::array kWords = {
    Words{Places::participants, "participants",
          "All {} places for threads and clients of this store are taken; end some, or raise "
          "participants_max."},
    Words{Places::connections, "connections",
          "The node may have {} connections, some of them kept for those who run it, and has no "
          "place for another; end some, or raise clients.connections_max."},
    Words{Places::principal_connections, "principal_connections",
          "This secret, user or address has {} connections to the node and may have no more; end "
          "some, or raise clients.principal_connections_max."},
    Words{Places::sessions, "sessions",
          "This address of the node may have {} sessions, some of them kept for those who run it, "
          "and has no place for another; end some, or connect by another address of the node."},
    Words{Places::descriptors, "descriptors",
          "The node has no file descriptor left for another connection; end some, or raise the "
          "limit of open files of its process."},
    Words{Places::hellos, "hellos",
          "The node's socket has {} places for clients that have not said what they want, and they "
          "are taken; try again after a few seconds."},
    Words{Places::user_hellos, "user_hellos",
          "This user has {} connections at the node's socket that have not said what they want, "
          "and may have no more; end some, or try again after a few seconds."},
    Words{Places::proofs, "proofs",
          "Too many clients, or too many from this place, have not yet proven who they are; try "
          "again after a few seconds."},
    Words{Places::late_refusals, "late_refusals",
          "The node has {} requests without a right proof to refuse, and this is one of them; "
          "check the secret, and try again after a few seconds."},
    Words{Places::connection_snapshots, "connection_snapshots",
          "This connection holds {} snapshots and may hold no more; close some."},
    Words{Places::principal_snapshots, "principal_snapshots",
          "This secret, user or address holds {} snapshots, by all its connections, and may hold "
          "no more; close some."},
    Words{Places::response_rings, "response_rings",
          "All {} response rings of this connection are taken; have fewer threads use it, or "
          "connect once more."},
    Words{Places::pipelines, "pipelines",
          "This session keeps {} prepared queries and may keep no more; end some."},
    Words{Places::landing_windows, "landing_windows",
          "This session has {} buffers for results and may have no more; end some."},
    Words{Places::sequencer_words, "sequencer_words",
          "This session takes numbers of {} sequencers by itself, and may of no more; have the "
          "node give those of others."},
    Words{Places::indexed_maps, "indexed_maps",
          "Switches have tables of {} maps of this node, and may of no more; end the controllers "
          "of some."},
    Words{Places::feed_followers, "feed_followers",
          "{} sessions follow the changes of this map, and no more may; end some."},
    Words{Places::region_keys, "region_keys",
          "This session reads and writes {} regions by itself, and may no more; have the node do "
          "so with others."},
    Words{
        Places::principal_region_keys, "principal_region_keys",
        "This secret, user or address reads and writes {} regions by itself, by all its sessions, "
        "and may no more; end some."},
    Words{
        Places::process_region_keys, "process_region_keys",
        "All {} keys of regions that a node's process may have are taken; have the node do so, or "
        "end some sessions."},
    Words{Places::clock_groups, "clock_groups",
          "Maps of this store are in {} groups, and it has no more; drop all maps of one, or name "
          "one "
          "of them."},
    Words{Places::links, "links", "All {} links of this memif socket are taken; end some."},
};

const Words* words_of(Places places) {
  for (const Words& words : kWords) {
    if (words.places == places) return &words;
  }
  return nullptr;
}

}  // namespace

std::string_view name(Places places) {
  const Words* const words = words_of(places);
  return words == nullptr ? std::string_view() : words->name;
}

std::string full_message(const Error& error) {
  const Words* const words = words_of(places_of(error));
  if (words == nullptr) return {};
  std::string text(words->sentence);
  constexpr std::string_view kNumber = "{}";
  const std::size_t at = text.find(kNumber);
  if (at == std::string::npos) return text;
  return text.replace(at, kNumber.size(), std::to_string(places_max_of(error)));
}

}  // namespace espalier::base
