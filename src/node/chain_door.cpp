// SPDX-License-Identifier: Apache-2.0
#include "node/chain_door.hpp"

#include <utility>

#include "base/barrier.hpp"
#include "engine/typed_call.hpp"
#include "node/chain_calls.hpp"
#include "node/node_page.hpp"

namespace espalier::node {
namespace {

using offload::Call;
using offload::Next;

constexpr std::uint64_t kDoorBytesMax = std::uint64_t{64} << 20;  // of a store without objects

struct ChainPart final : offload::NodePart {
  explicit ChainPart(ChainListener& to) : listener(to) {}
  ChainListener& listener;
};

Next hear(Call& call, const chain_calls::Say& asked) {
  const auto said = call.services().part<ChainPart>().listener.hear(asked.said, asked.records);
  if (!said) return call.fail(said.error());
  return answer(call, chain_calls::Said{*said});
}

Next tell_status(Call& call, const chain_calls::Status&) {
  const std::string text = call.services().part<ChainPart>().listener.status();
  return answer(call, chain_calls::Told{text});
}

Next give_piece(Call& call, const chain_calls::Fetch& asked) {
  if (!call.response_fits(sizeof(chain_calls::Piece) + chain_calls::kPieceBytes)) {
    return call.writable();
  }
  std::string data;
  const auto piece = call.services().part<ChainPart>().listener.fetch(asked.wanted, data);
  if (!piece) return call.fail(piece.error());
  return answer(call, chain_calls::Fetched{*piece, data});
}

const offload::Offload kChainCalls[] = {offload::serve<chain_calls::Say, hear>(),
                                        offload::serve<chain_calls::Status, tell_status>(),
                                        offload::serve<chain_calls::Fetch, give_piece>()};

/// The calls of chains, and those that every link makes.
offload::OffloadTable table_of_door() {
  offload::OffloadTable table{};
  for (const auto id : {wire::OffloadId::noop, wire::OffloadId::cancel}) {
    table[static_cast<std::uint8_t>(id)] = offload::find_offload(static_cast<std::uint8_t>(id));
  }
  for (const offload::Offload& call : kChainCalls)
    table[static_cast<std::uint8_t>(call.id)] = &call;
  return table;
}

Config config_of_door(const Config& config) {
  Config own = config;
  own.node.one_sided = false;
  own.node.cores = 1;
  own.node.pin = false;
  return own;
}

}  // namespace

ChainDoor::ChainDoor(const Config& config, memory::Region region, ChainListener& listener)
    : config_(config_of_door(config)),
      store_(std::move(region), 256),
      calls_(table_of_door()),
      services_(store_, config.clients.message_bytes_max, {}, {.threads = 1}, &calls_) {
  services_.parts.make<ChainPart>(listener);
}

ChainDoor::~ChainDoor() { worker_.reset(); }

Result<std::unique_ptr<ChainDoor>> ChainDoor::open(const Config& config, const std::string& address,
                                                   const offload::Secrets* secrets,
                                                   ChainListener& listener) {
  auto region = memory::Region::reserve({.bytes_max = kDoorBytesMax, .huge_pages = false});
  if (!region) return std::unexpected(region.error());
  std::unique_ptr<ChainDoor> door(new ChainDoor(config, std::move(*region), listener));
  if (auto begun = door->begin(address, secrets); !begun) return std::unexpected(begun.error());
  return door;
}

Result<void> ChainDoor::begin(const std::string& address, const offload::Secrets* secrets) {
  services_.asymmetric = base::register_asymmetric_barriers();
  auto page = make_node_page(services_.asymmetric);
  if (!page) return std::unexpected(page.error());
  page_ = std::move(*page);
  worker_ = std::make_unique<Worker>(services_, config_, page_, 0);
  Worker::Fabric fabric;
  fabric.node_id = node_id_of(page_);
  fabric.silence_ns = offload::FabricClientsOptions{}.silence_ns;
  fabric.secrets = secrets;
  auto listening = worker_->listen(address, fabric);
  if (!listening) return std::unexpected(listening.error());
  address_ = std::move(*listening);
  return worker_->start();
}

}  // namespace espalier::node
