// SPDX-License-Identifier: Apache-2.0
// Implementation of the handles of the C API, and of the delivery of items.
//
// Invariant: handles that must be destroyed before their store (snapshots, pipelines) count as uses
// of it, and a store with uses is not closed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "capi/c_call.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/map.hpp"
#include "espalier/ranking_model.hpp"
#include "espalier/sequencer.hpp"

namespace espalier::client::c {

/// Frees the room of a handle that was not returned.
struct FreeRoom {
  void operator()(void* room) const { ::operator delete(room); }
};

using Uses = std::shared_ptr<std::atomic<std::uint32_t>>;

/// One use of a store.
class Use {
 public:
  explicit Use(Uses uses) : uses_(std::move(uses)) { uses_->fetch_add(1); }
  ~Use() { uses_->fetch_sub(1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Uses uses_;
};

/// Shows items by `show(entries, count)`, as many as fit at a time, until it returns that it wants
/// no more. Returns whether to continue. No exception may pass through the C callback.
template <class Show>
bool show_items(std::span<const Item> items, const Show& show) noexcept {
  std::array<espalier_entry, 64> entries;
  while (!items.empty()) {
    const std::size_t count = std::min(items.size(), entries.size());
    for (std::size_t i = 0; i < count; ++i) {
      entries[i] = {bytes_of(items[i].key), bytes_of(items[i].value), items[i].version};
    }
    if (show(entries.data(), count) != 0) return false;
    items = items.subspan(count);
  }
  return true;
}

/// The options of a scan of the C API. Requires: they were checked.
inline ScanOptions scan_options(const espalier_scan_options* given) {
  const espalier_scan_options options = taken(given, ESPALIER_SCAN_OPTIONS_INIT);
  return {.limit = options.limit,
          .reverse = options.reverse != 0,
          .from_floor = options.from_floor != 0,
          .parts = options.parts};
}
Check good_scan(const espalier_scan_options* options);

/// Scans a map or a snapshot for a callback. Errors: as scan.
template <class Reader>
Result<std::uint64_t> scan(const Reader& reader, const espalier_bytes& low,
                           const espalier_bytes& high, const espalier_scan_options* options,
                           espalier_items_fn visit, void* context, std::uint64_t* count) {
  const auto sink = [&](std::span<const Item> items) {
    return show_items(items, [&](const espalier_entry* entries, std::size_t shown) {
      return visit(context, entries, shown);
    });
  };
  const auto scanned = reader.scan(view(low), view(high), sink, scan_options(options));
  if (scanned && count != nullptr) *count = *scanned;
  return scanned;
}

/// Takes over an item that was found, or that there is none.
void take(std::optional<FoundItem>&& found, espalier_item& item, std::uint32_t& there);

}  // namespace espalier::client::c

struct espalier_item {
  std::string key;
  std::string value;
  espalier::Version version = 0;
  std::string asked;  // the next key, which may be bytes of the item itself
};

struct espalier_secret {
  const espalier::ClientSecret secret;
};

struct espalier_store {
  espalier::Store store;
  espalier::client::c::Uses uses = std::make_shared<std::atomic<std::uint32_t>>(0);
};

struct espalier_map {
  espalier::Map map;
  espalier::client::c::Uses uses;
};

struct espalier_sequencer {
  espalier::Sequencer sequencer;
};

struct espalier_embedding {
  espalier::EmbeddingTable table;
};

struct espalier_model {
  espalier::RankingModel model;
};

struct espalier_batch {
  espalier::WriteBatch batch;
};

struct espalier_snapshot {
  espalier::client::c::Use use;  // ends after the snapshot has
  espalier::Snapshot snapshot;
};
