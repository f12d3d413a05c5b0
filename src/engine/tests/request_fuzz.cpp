// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the lines of a request ring, and as what else of its memory a client can
// write. Whatever they say, another client of the same scheduler gets right answers, everything in
// flight comes to an end, and the objects are sound. There are a hash map and a region as well when
// an input begins, under names and numbers that its calls mostly have.
//
// Input: a byte for each step. An even one is the number of slots of 60 input bytes to write; an
// odd one changes credits or doorbells, takes answers or runs turns, or makes a request of any
// call.
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "catalog/calls.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/region/calls.hpp"
#include "kinds/sequencer/calls.hpp"
#include "kinds/table/audit.hpp"
#include "kinds/table/calls.hpp"
#include "wire/session_calls.hpp"
#include "wire/testing/call_maker.hpp"

namespace espalier::offload {
namespace {

using base::want;

/// All calls.
constexpr auto kCalls = session_calls::All() + object_calls::All() + map_calls::All() +
                        map_calls::AllOnItems() + table_calls::All() + sequencer_calls::All() +
                        hash_calls::All() + region_calls::All() + embedding_calls::All() +
                        model_calls::All();

std::string bytes_from(base::FuzzInput& input, std::size_t count) {
  std::string taken(count, '\0');
  for (char& c : taken) c = static_cast<char>(input.byte());
  return taken;
}

/// The node, and a correct client. Made once, since there are many inputs.
struct World {
  World() : node(FixtureOptions{}, 1 << 20), good(node.connect()) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = "k" + std::to_string(i);
      want(node.call(good, request_of(wire::OffloadId::put, node.map()), key, key).applied(),
           "a put is refused");
    }
  }
  SchedulerFixture node;
  SchedulerFixture::Client& good;
};

template <class Request>
rings::Response ask_well(World& world, const Request& request) {
  const wire::RequestMessage<Request> written(request);
  const wire::CallMessage& message = written.get();
  wire::RequestHeader header = request_of(message.offload, message.map);
  header.argument = message.argument;
  return world.node.call(world.good, header, message.key,
                         std::string(message.payload) + std::string(message.more_payload));
}

/// What an input before has dropped, or what is dropped behind each.
void make_objects(World& world) {
  const catalog::Catalog& there = world.node.catalog();
  if (!there.open<hash::HashMap>("h")) {
    hash_calls::Create create;
    create.name = "h";
    create.shape = hash::shape_of({.partitions = 2});
    static_cast<void>(ask_well(world, create));
    const auto made = there.open<hash::HashMap>("h");
    want(made.has_value(), "a hash map is refused");
    for (const char* const key : {"a", "b", "hash"}) {
      hash_calls::Put put;
      put.map = (*made)->id();
      put.key = key;
      put.value = "value";
      want(ask_well(world, put).applied(), "a put of a hash map is refused");
    }
  }
  region_calls::Create create;
  create.name = "r";
  create.bytes = 4096;
  static_cast<void>(ask_well(world, create));  // or it is there
}

std::vector<std::uint32_t> ids_of(const catalog::Catalog& catalog) {
  std::vector<std::uint32_t> ids;
  for (const catalog::EntryPointer& entry : catalog.inventory().entries) ids.push_back(entry->id);
  return ids;
}

template <class T>
void audit_all(const catalog::Catalog& catalog) {
  for (const catalog::EntryPointer& entry : catalog.inventory().entries) {
    const auto object = catalog.find<T>(entry->id);
    if (object == nullptr) continue;
    if constexpr (std::is_same_v<T, hash::HashMap>) {
      object->trim();
      want(hash::audit(*object).wrong.empty(), "a hash map is not sound");
    } else {
      want(audit(*object).empty(), "an object is not sound");
    }
  }
}

// Something that a client may send, whatever it says.
void ask(World& world, SchedulerFixture::Client& client, base::FuzzInput& input) {
  const auto ids = ids_of(world.node.catalog());
  const wire::MadeCall made =
      wire::make_one(kCalls, input.byte(), input, {{"m", "t", "s", "h", "e", "r"}, ids});
  wire::RequestHeader header = request_of(made.id, made.object, input.byte());
  header.argument = made.argument;
  header.ring = static_cast<std::uint8_t>(input.byte() % 2);
  if (made.at_snapshot) header.ring |= wire::kAtSnapshot;
  client->post(message_of(header, made.key, made.payload));
  client->flush();
  client->ring();
}

void step(World& world, SchedulerFixture::Client& client, base::FuzzInput& input) {
  const std::uint8_t what = input.byte();
  if (what % 2 == 0) {
    for (int lines = what / 2 % 8 + 1; lines != 0; --lines) {
      if (client->space().ask_room(client->tail()) == 0) return;
      client->write_slot(bytes_from(input, wire::kRingSlotPayload));
    }
    client->ring();
    return;
  }
  std::byte* const memory = client->memory();
  switch (what / 2 % 5) {
    case 0: world.node.turns(what / 8 + 1); break;
    case 1: static_cast<void>(client->receive(what / 8 % 2)); break;
    case 2: {
      const std::uint64_t word = input.byte() * 8 % wire::kConnectionPageBytes;
      const std::string value = bytes_from(input, 8);
      base::store_shared(memory + word, base::load_plain<std::uint64_t>(
                                            reinterpret_cast<const std::byte*>(value.data())));
      break;
    }
    case 3: ask(world, client, input); break;
    default:
      base::store_shared(client.doorbells.at(4 * input.byte()), std::uint32_t{input.byte()});
      break;
  }
}

/// A world with room left: inputs make maps, drop this test's, and write.
World& world_for_an_input() {
  static std::unique_ptr<World> world;
  static int inputs = 0;
  if (++inputs % 1024 == 0) world.reset();
  if (world != nullptr && !world->node.catalog().open<tree::MapCore>("m")) world.reset();
  if (world == nullptr) world = std::make_unique<World>();
  return *world;
}

void run(base::FuzzInput input) {
  World& world = world_for_an_input();
  SchedulerFixture& node = world.node;
  make_objects(world);
  SchedulerFixture::Client& client = node.connect({64, 64, 2});
  while (!input.over() && !client.ended) step(world, client, input);
  client->ring();
  node.turns(20);
  if (!client.ended) node.disconnect(client);
  want(node.run_until_idle(), "something stays in flight");
  node.turn();
  want(client.ended, "the connection does not end");
  want(node.services().budget.used() == 0, "the memory of a message is lost");
  audit_all<hash::HashMap>(node.catalog());
  audit_all<table::Table>(node.catalog());
  audit_all<embedding::EmbeddingTable>(node.catalog());
  if (!node.catalog().open<tree::MapCore>("m")) return;  // it dropped the map, as any client may
  want(node.core().store.reclaimer.waiting(node.core(), false).snapshots == 0,
       "a snapshot stays held");
  // No input has a key of this length by chance.
  const std::string key = "the good client's own key";
  want(node.call(world.good, request_of(wire::OffloadId::put, node.map()), key, "its value")
           .applied(),
       "another client's put is refused");
  want(node.call(world.good, request_of(wire::OffloadId::get, node.map()), key).payload ==
           "its value",
       "another client reads something else");
  for (const std::string& name : node.catalog().names()) {
    if (name != "m") static_cast<void>(node.catalog().drop(name));
  }
  static int inputs = 0;
  if (++inputs % 64 == 0) want(node.audit().empty(), "the map is not sound");
}

}  // namespace
}  // namespace espalier::offload

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::offload::run({data, size});
  return 0;
}
