// SPDX-License-Identifier: Apache-2.0
#include "client/remote_tables.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "espalier/kind.hpp"
#include "wire/object.hpp"

namespace espalier::client {
namespace {

std::unexpected<Refusal> refuse(Error error, std::string words = {}) {
  return std::unexpected(Refusal{error, std::move(words)});
}

constexpr std::size_t kNameBytesMax = 255;
constexpr const char* kBadName = "a table's name has 1 to 255 bytes";

bool is_name(std::string_view name) { return !name.empty() && name.size() <= kNameBytesMax; }

std::unexpected<Refusal> nonsense(std::string words) {
  return refuse({Code::corrupt, 0, 0}, std::move(words));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Facts and a schema, from any bytes.
std::optional<TableInfo> read_info(std::string_view name, std::uint64_t number,
                                   std::string_view payload) {
  wire::TableFacts facts{};
  if (payload.size() < sizeof facts) return std::nullopt;
  std::memcpy(&facts, payload.data(), sizeof facts);
  payload.remove_prefix(sizeof facts);
  if (facts.schema_bytes != payload.size()) return std::nullopt;
  auto schema = table::Schema::decode(std::as_bytes(std::span(payload.data(), payload.size())));
  if (!schema || facts.row_bytes != schema->row_bytes()) return std::nullopt;
  return TableInfo{std::string(name), static_cast<std::uint32_t>(number), std::move(*schema),
                   facts};
}

// Whole rows, at an address of their own where they do not lie well.
bool hand_rows(std::string_view payload, std::size_t row_bytes, const RemoteTables::RowSink& sink) {
  const auto* bytes = reinterpret_cast<const std::byte*>(payload.data());
  if (reinterpret_cast<std::uintptr_t>(bytes) % 8 == 0) {
    return sink({bytes, payload.size() / row_bytes * row_bytes});
  }
  const std::vector<std::byte> copy(bytes, bytes + payload.size());
  return sink(std::span(copy).first(copy.size() / row_bytes * row_bytes));
}

}  // namespace

std::string message(const Refusal& refusal) {
  return refusal.words.empty() ? espalier::message(refusal.error) : refusal.words;
}

TableResult<Reply> RemoteTables::ask(const Outgoing& request, const ChunkSink& sink) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse(session.error());
  auto reply = (*session)->requests.ask(request, sink);
  if (!reply && reply.error().error.code == Code::unsupported) {
    return refuse(reply.error().error, "this node knows no tables: it is an older one");
  }
  return reply;
}

TableResult<TableInfo> RemoteTables::ask_for_table(std::string_view name, const Outgoing& request) {
  if (!is_name(name)) return refuse({Code::invalid_argument, 0, 0}, kBadName);
  const auto reply = ask(request);
  if (!reply) return std::unexpected(reply.error());
  auto info = read_info(name, reply->header.version, reply->payload);
  if (!info) return nonsense("the node answered with what is no table");
  return std::move(*info);
}

TableResult<TableInfo> RemoteTables::create(std::string_view name, const table::Schema& schema) {
  std::vector<std::byte> bytes(schema.encoded_bytes());
  schema.encode(bytes);
  Outgoing request;
  request.offload = wire::OffloadId::table_create;
  request.key = name;
  request.payload = text_of(bytes);
  return ask_for_table(name, request);
}

TableResult<TableInfo> RemoteTables::open(std::string_view name) {
  Outgoing request;
  request.offload = wire::OffloadId::table_open;
  request.key = name;
  return ask_for_table(name, request);
}

TableResult<void> RemoteTables::drop(std::string_view name) {
  if (!is_name(name)) return refuse({Code::invalid_argument, 0, 0}, kBadName);
  Outgoing request;
  request.offload = wire::OffloadId::object_drop;
  request.key = name;
  request.argument = static_cast<std::uint32_t>(ObjectKind::table);
  const auto reply = ask(request);
  if (!reply) return std::unexpected(reply.error());
  return {};
}

TableResult<std::vector<TableInfo>> RemoteTables::list() {
  Outgoing request;
  request.offload = wire::OffloadId::object_list;
  request.argument = static_cast<std::uint32_t>(ObjectKind::table);
  const auto reply = ask(request);
  if (!reply) return std::unexpected(reply.error());
  std::vector<TableInfo> tables;
  std::string_view left = reply->payload;
  Item item;
  while (take_item(left, item)) {
    const std::string_view value = item.value;
    if (value.size() < sizeof(wire::ObjectEntry)) return nonsense("the node's list is cut off");
    auto info = read_info(item.key, item.version, value.substr(sizeof(wire::ObjectEntry)));
    if (!info) return nonsense("the node's list has what is no table");
    tables.push_back(std::move(*info));
  }
  return tables;
}

TableResult<std::uint64_t> RemoteTables::append(std::uint32_t number,
                                                std::span<const std::byte> rows) {
  if (rows.size() > wire::kMessageBytesMax - wire::kRequestHeaderBytes) {
    return refuse({Code::invalid_argument, 0, 0}, "too many rows for one append");
  }
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse(session.error());
  RemoteRequests& requests = (*session)->requests;
  auto reply = (*session)->landing.append(requests, (*session)->rings->connection(), number, rows);
  if (!reply) {
    Outgoing request;
    request.offload = wire::OffloadId::table_append;
    request.map = number;
    request.payload = text_of(rows);
    reply = requests.ask(request);
  }
  if (!*reply) return std::unexpected(reply->error());
  return (*reply)->header.version;
}

TableResult<wire::QueryNumbers> RemoteTables::query(const TableInfo& table,
                                                    std::size_t result_row_bytes,
                                                    std::span<const std::byte> pipeline,
                                                    const RowSink& sink) {
  Outgoing request;
  request.offload = wire::OffloadId::table_query;
  request.map = table.number;
  request.payload = text_of(pipeline);
  bool wanted = true;
  const auto reply = ask(request, [&](wire::ChunkKind kind, std::string_view rows) {
    if (kind == wire::ChunkKind::rows) wanted = hand_rows(rows, result_row_bytes, sink);
    return wanted;
  });
  if (!reply) return std::unexpected(reply.error());
  wire::QueryNumbers numbers{};
  std::string_view payload = reply->payload;
  if (payload.size() < sizeof numbers) return nonsense("the node's answer has no numbers");
  std::memcpy(&numbers, payload.data(), sizeof numbers);
  payload.remove_prefix(sizeof numbers);
  if (wanted && !payload.empty()) static_cast<void>(hand_rows(payload, result_row_bytes, sink));
  return numbers;
}

}  // namespace espalier::client
