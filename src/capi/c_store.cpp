// SPDX-License-Identifier: Apache-2.0
// Of the C API: stores, and the maps in them.
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "capi/c_handles.hpp"
#include "channel/public_call.hpp"
#include "wire/object.hpp"

namespace c = espalier::client::c;
using espalier::ClientSecret;
using espalier::Map;
using espalier::MapOptions;
using espalier::Result;

namespace {

// A handle of the map that `reach` makes or opens. Room for it is taken first: a map that was made
// is not left without a handle.
template <class Reach>
Result<void> hand_out_map(const espalier_store& store, espalier_map** handle, const Reach& reach) {
  std::unique_ptr<void, c::FreeRoom> room(::operator new(sizeof(espalier_map)));
  const Result<Map> map = reach();
  if (!map) return std::unexpected(map.error());
  *handle = new (room.release()) espalier_map{*map, store.uses};
  return {};
}

// Makes one, or keeps the words of what was wrong, which have nothing of it.
template <class Make>
espalier_code hand_out_secret(const char* call, std::initializer_list<c::Check> checks,
                              espalier_secret** handle, const Make& make) {
  std::string words;
  const espalier_code code = c::run(call, checks, [&]() -> Result<void> {
    auto made = make();
    if (!made) {
      words = espalier::message(made.error());
      return std::unexpected(made.error().error);
    }
    *handle = new espalier_secret{std::move(*made)};
    return {};
  });
  if (!words.empty()) c::explain(call, words.c_str());
  return code;
}

// Says which address it was that is none, and what was expected, if that is what was wrong.
void explain_address(const char* call, const char* address) noexcept {
  try {
    const std::string words = espalier::Store::explain_address(address);
    if (!words.empty()) c::explain(call, words.c_str());
  } catch (const std::exception&) {  // no memory for them: what is kept stays
  }
}

}  // namespace

espalier_code espalier_secret_create(espalier_bytes name, espalier_bytes bytes,
                                     espalier_secret** secret) {
  const bool whole = bytes.size == ClientSecret::kBytes && bytes.data != nullptr;
  return hand_out_secret(
      __func__,
      {c::good(name, "name"),
       {"bytes", whole ? nullptr : "is not 32 bytes long"},
       c::given(secret, "secret")},
      secret, [&] {
        return ClientSecret::make(
            c::view(name), std::span<const std::byte, ClientSecret::kBytes>(
                               static_cast<const std::byte*>(bytes.data), ClientSecret::kBytes));
      });
}

espalier_code espalier_secret_read(const char* path, espalier_secret** secret) {
  return hand_out_secret(__func__, {c::given(path, "path"), c::given(secret, "secret")}, secret,
                         [&] { return ClientSecret::read_file(path); });
}

void espalier_secret_destroy(espalier_secret* secret) { delete secret; }

espalier_code espalier_store_open(const char* address, const espalier_store_options* options,
                                  espalier_store** store) {
  const c::Check size = c::sized(options, sizeof *options, "options");
  const auto known = size.complaint == nullptr ? c::taken(options, ESPALIER_STORE_OPTIONS_INIT)
                                               : espalier_store_options ESPALIER_STORE_OPTIONS_INIT;
  bool refused = false;
  const auto open = [&]() -> Result<void> {
    espalier::StoreOptions reached{.memory_bytes_max = known.memory_bytes_max,
                                   .participants_max = known.participants_max,
                                   .huge_pages = known.huge_pages != 0,
                                   .access = static_cast<espalier::Access>(known.access),
                                   .cache_bytes = known.cache_bytes};
    if (known.secret != nullptr) reached.secret = known.secret->secret;
    if (known.node_user >= 0) reached.node_user = static_cast<std::uint32_t>(known.node_user);
    auto opened = espalier::Store::connect(address, reached);
    refused = !opened;
    if (!opened) return std::unexpected(opened.error());
    *store = new espalier_store{std::move(*opened)};
    return {};
  };
  const espalier_code code = c::run(
      __func__,
      {c::given(address, "address"),
       c::given(store, "store"),
       size,
       c::either(known.huge_pages, "options.huge_pages"),
       {"options.access", known.access <= ESPALIER_ACCESS_DATAGRAM ? nullptr : "is no way to read"},
       {"options.node_user",
        known.node_user >= -1 && known.node_user < UINT32_MAX ? nullptr : "is no user"}},
      open);
  if (refused && code == ESPALIER_INVALID_ARGUMENT) explain_address(__func__, address);
  return code;
}

espalier_code espalier_store_close(espalier_store* store) {
  if (store == nullptr) return ESPALIER_OK;
  const bool used = store->uses->load() != 0;
  return c::run(__func__, {{"store", used ? "has open snapshots or pipelines" : nullptr}},
                [&]() -> Result<void> {
                  delete store;
                  return {};
                });
}

espalier_code espalier_sequence(espalier_store* store, espalier_bytes name, uint32_t count,
                                uint64_t* first) {
  return c::run(__func__,
                {c::given(store, "store"), c::good(name, "name"), c::given(first, "first")}, [&] {
                  const auto taken = store->store.sequence(c::view(name), count);
                  if (taken) *first = *taken;
                  return taken;
                });
}

espalier_code espalier_durable_state(const espalier_store* store, uint64_t* recorded,
                                     uint64_t* durable) {
  return c::run(
      __func__,
      {c::given(store, "store"), c::given(recorded, "recorded"), c::given(durable, "durable")},
      [&] {
        const auto state = store->store.durable_state();
        if (state) *recorded = state->recorded;
        if (state) *durable = state->durable;
        return state;
      });
}

espalier_code espalier_await_durable(espalier_store* store) {
  return c::run(__func__, {c::given(store, "store")}, [&] { return store->store.await_durable(); });
}

espalier_code espalier_map_create(espalier_store* store, espalier_bytes name,
                                  const espalier_map_options* options, espalier_map** map) {
  const c::Check size = c::sized(options, sizeof *options, "options");
  const auto known = size.complaint == nullptr ? c::taken(options, ESPALIER_MAP_OPTIONS_INIT)
                                               : espalier_map_options ESPALIER_MAP_OPTIONS_INIT;
  const bool is_durability = known.durability <= ESPALIER_DURABILITY_SYNC;
  return c::run(
      __func__,
      {c::given(store, "store"), c::good(name, "name"), c::given(map, "map"), size,
       c::either(known.versions, "options.versions"),
       c::Check{"options.durability", is_durability ? nullptr : "is none of its kinds"},
       c::unused(known.reserved, "options.reserved"), c::good(known.group, "options.group")},
      [&] {
        const MapOptions made_of{.node_bytes = known.node_bytes,
                                 .log_bytes = known.log_bytes,
                                 .versions = known.versions != 0,
                                 .snapshot_bytes_max = known.snapshot_bytes_max,
                                 .durability = espalier::wire::durability_of(known.durability),
                                 .group = std::string(c::view(known.group))};
        return hand_out_map(*store, map,
                            [&] { return store->store.create_map(c::view(name), made_of); });
      });
}

espalier_code espalier_map_open(espalier_store* store, espalier_bytes name, espalier_map** map) {
  return c::run(
      __func__, {c::given(store, "store"), c::good(name, "name"), c::given(map, "map")}, [&] {
        return hand_out_map(*store, map, [&] { return store->store.open_map(c::view(name)); });
      });
}

void espalier_map_close(espalier_map* map) { delete map; }

espalier_code espalier_map_drop(espalier_store* store, espalier_bytes name) {
  return c::run(__func__, {c::given(store, "store"), c::good(name, "name")},
                [&] { return store->store.drop_map(c::view(name)); });
}

espalier_code espalier_map_list(espalier_store* store, espalier_name_fn visit, void* context) {
  return c::run(__func__, {c::given(store, "store"), c::given(visit, "visit")},
                [&]() -> Result<void> {
                  const auto names = store->store.map_names();
                  if (!names) return std::unexpected(names.error());
                  const auto show = [&](const std::string& name) noexcept {
                    return visit(context, c::bytes_of(name)) == 0;
                  };
                  for (const std::string& name : *names) {
                    if (!show(name)) break;
                  }
                  return {};
                });
}
