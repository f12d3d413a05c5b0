// SPDX-License-Identifier: Apache-2.0
#include "shards/sharding.hpp"

#include <memory>
#include <utility>

#include "base/until_fork.hpp"
#include "catalog/calls.hpp"
#include "channel/draw_seed.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/map_forms.hpp"

namespace espalier::client {
namespace {

/// A node that is asked a few things.
class Asked {
 public:
  ~Asked() {
    if (sessions_ != nullptr) sessions_->close();
  }
  Asked() = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  Result<void> connect(const std::string& address, const ConnectOptions& connecting) {
    const auto parsed = parse_node_address(address);
    if (!parsed) return std::unexpected(parsed.error());
    sessions_ = base::make_shared_until_fork<RemoteSessions>(
        *parsed, StoreOptions{.secret = KnownSecret::handle(connecting.secret),
                              .node_user = connecting.node_user});
    auto session = sessions_->acquire();
    if (!session) return std::unexpected(session.error());
    session_ = std::move(*session);
    return {};
  }
  [[nodiscard]] RemoteRequests& requests() { return session_->requests; }

 private:
  std::shared_ptr<RemoteSessions> sessions_;
  std::shared_ptr<RemoteSession> session_;
};

std::expected<void, Refusal> create(Asked& node, std::string_view name, const MapOptions& options,
                                    const wire::ShardMap& map) {
  const std::string bytes = wire::bytes_of(map);
  Reply answer;
  auto made = ask_in_words(node.requests(),
                           map_calls::CreateShard{name, tree::shape_of(options), bytes,
                                                  wire::number_of(options.durability)},
                           answer);
  if (!made) return std::unexpected(std::move(made.error()));
  return {};
}

bool drop(Asked& node, std::string_view name) {
  return ask(node.requests(), object_calls::drop(name, ObjectKind::map)).has_value();
}

Result<MapStats> stats(Asked& node, std::uint32_t id) {
  const auto reply = ask(node.requests(), map_calls::Stats{id});
  if (!reply) return std::unexpected(reply.error());
  return tree::stats_of(reply->numbers);
}

void look_at(ShardReport& report, const std::string& name, const wire::ShardMap& map,
             std::size_t number, const ConnectOptions& connecting) {
  Asked node;
  if (const auto connected = node.connect(report.shard.address, connecting); !connected) {
    report.stats = std::unexpected(connected.error());
    return;
  }
  const auto opened = open_map_by(node.requests(), name, true);
  if (!opened) {
    report.stats = std::unexpected(opened.error());
    return;
  }
  report.agrees = opened->shard && opened->shard->same(map) && opened->shard->own == number;
  report.stats = stats(node, opened->id);
}

}  // namespace

std::expected<void, ShardFailure> create_shards(std::string_view name, const MapOptions& options,
                                                const std::vector<wire::Shard>& shards,
                                                const ConnectOptions& connecting) {
  wire::ShardMap map;
  map.uid = draw_seed();
  map.shards = shards;
  constexpr std::uint32_t kAnyKey = 65535;  // the nodes know how long keys may be
  if (const auto fault = wire::fault_of(map, kAnyKey); fault != wire::ShardFault::invalid) {
    return std::unexpected(
        ShardFailure{0,
                     {Code::invalid_argument, 0, static_cast<std::uint32_t>(fault)},
                     std::string(wire::text_of(fault)),
                     {}});
  }
  // All are reached before any is asked to make something.
  std::vector<Asked> nodes(shards.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto connected = nodes[i].connect(shards[i].address, connecting);
    if (!connected) return std::unexpected(ShardFailure{i, connected.error(), {}, {}});
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    map.own = static_cast<std::uint32_t>(i);
    auto made = create(nodes[i], name, options, map);
    if (made) continue;
    ShardFailure failure{i, made.error().error, std::move(made.error().words), {}};
    for (std::size_t before = 0; before < i; ++before) {
      if (!drop(nodes[before], name)) failure.left.push_back(before);
    }
    // Without an answer it may be there or not.
    if (failure.error.code == Code::connection_lost) failure.left.push_back(i);
    return std::unexpected(std::move(failure));
  }
  return {};
}

Result<ShardingReport> report_shards(const std::string& address, std::string_view name,
                                     const ConnectOptions& connecting) {
  ShardingReport report;
  {
    Asked first;
    if (const auto connected = first.connect(address, connecting); !connected) {
      return std::unexpected(connected.error());
    }
    auto opened = open_map_by(first.requests(), name, true);
    if (!opened) return std::unexpected(opened.error());
    if (!opened->shard) return fail(Code::wrong_kind);
    report.map = std::move(*opened->shard);
    report.options = opened->options();
  }
  for (std::size_t i = 0; i < report.map.size(); ++i) {
    ShardReport& shard = report.shards.emplace_back();
    shard.shard = report.map.shards[i];
    shard.high = report.map.high(i);
    look_at(shard, std::string(name), report.map, i, connecting);
  }
  return report;
}

}  // namespace espalier::client
