// SPDX-License-Identifier: Apache-2.0
#include "client/remote_tables.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "espalier/kind.hpp"
#include "wire/object.hpp"
#include "wire/table.hpp"

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
  if (facts.schema_bytes > payload.size()) return std::nullopt;
  auto schema = table::Schema::decode(std::as_bytes(std::span(payload.data(), facts.schema_bytes)));
  if (!schema || facts.row_bytes != schema->row_bytes()) return std::nullopt;
  payload.remove_prefix(facts.schema_bytes);
  TableInfo info{
      std::string(name), static_cast<std::uint32_t>(number), std::move(*schema), facts, {}};
  if (payload.empty()) return info;
  wire::CipherFacts cipher{};
  if (payload.size() != sizeof cipher) return std::nullopt;
  std::memcpy(&cipher, payload.data(), sizeof cipher);
  if (cipher.cipher != static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr)) {
    return std::nullopt;
  }
  std::memcpy(info.salt.emplace().data(), cipher.salt, sizeof cipher.salt);
  return info;
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

/// What a run takes along, and what decrypts its result.
class RemoteTables::RunSecrets {
 public:
  static Result<RunSecrets> make(const UserKeys& keys) {
    auto sent = table::Secret<wire::RunKeys>::make();
    if (!sent) return std::unexpected(sent.error());
    RunSecrets made(*std::move(sent));
    wire::RunKeys& run = *made.sent_;
    if (keys.table != nullptr) {
      run.flags |= wire::kTableKey;
      std::memcpy(run.table_key, keys.table->data(), sizeof run.table_key);
    }
    if (keys.result != nullptr) {
      run.flags |= wire::kResultKey;
      std::memcpy(run.result_key, keys.result->data(), sizeof run.result_key);
      table::SaltBytes salt;
      if (auto drawn = table::draw_bytes(salt); !drawn) return std::unexpected(drawn.error());
      std::memcpy(run.result_salt, salt.data(), sizeof run.result_salt);
      auto cipher = table::CtrCipher::derived(*keys.result, salt, table::kResultKeyInfo);
      if (!cipher) return std::unexpected(cipher.error());
      made.result_.emplace(*std::move(cipher));
    }
    return made;
  }

  [[nodiscard]] std::string_view key() const {
    return {reinterpret_cast<const char*>(&*sent_), sizeof(wire::RunKeys)};
  }
  [[nodiscard]] bool decrypts() const { return result_.has_value(); }
  /// The next bytes of the result.
  std::vector<std::byte> decrypt(std::string_view rows) {
    std::vector<std::byte> plain(rows.size());
    result_->apply(0, offset_, reinterpret_cast<const std::byte*>(rows.data()), plain.data(),
                   rows.size());
    offset_ += rows.size();
    return plain;
  }

 private:
  explicit RunSecrets(table::Secret<wire::RunKeys> sent) : sent_(std::move(sent)) {}

  table::Secret<wire::RunKeys> sent_;
  std::optional<table::CtrCipher> result_;
  std::uint64_t offset_ = 0;
};

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

TableResult<TableInfo> RemoteTables::create(std::string_view name, const table::Schema& schema,
                                            bool encrypted) {
  std::vector<std::byte> bytes(schema.encoded_bytes());
  schema.encode(bytes);
  Outgoing request;
  request.offload = wire::OffloadId::table_create;
  request.argument = encrypted ? wire::kCreateEncrypted : 0;
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

namespace {

/// Encrypts rows for the slots that were reserved for them. False: the slots are not theirs.
bool encrypt_rows(std::span<std::byte> rows, std::size_t row_bytes, std::string_view slots,
                  table::CtrCipher& cipher) {
  const std::size_t most = (wire::kRowPageBytes - sizeof(wire::RowPageHeader)) / row_bytes;
  for (; !slots.empty(); slots.remove_prefix(sizeof(wire::ReservedSlots))) {
    wire::ReservedSlots some{};
    if (slots.size() < sizeof some) return false;
    std::memcpy(&some, slots.data(), sizeof some);
    const std::size_t bytes = some.slots * row_bytes;
    if (std::size_t{some.first_slot} + some.slots > most || bytes > rows.size()) return false;
    cipher.apply(some.cipher_page, sizeof(wire::RowPageHeader) + some.first_slot * row_bytes,
                 rows.data(), rows.data(), bytes);
    rows = rows.subspan(bytes);
  }
  return rows.empty();
}

}  // namespace

TableResult<std::uint64_t> RemoteTables::append_encrypted(const TableInfo& table,
                                                          std::span<std::byte> rows,
                                                          table::CtrCipher& cipher) {
  const std::size_t row_bytes = table.schema.row_bytes();
  if (rows.size() > wire::kMessageBytesMax - wire::kRequestHeaderBytes - sizeof(std::uint64_t)) {
    return refuse({Code::invalid_argument, 0, 0}, "too many rows for one append");
  }
  Outgoing request;
  request.offload = wire::OffloadId::table_reserve;
  request.map = table.number;
  request.argument = static_cast<std::uint32_t>(rows.size() / row_bytes);
  const auto reserved = ask(request);
  if (!reserved) return std::unexpected(reserved.error());
  const std::uint64_t reservation = reserved->header.version;
  if (!encrypt_rows(rows, row_bytes, reserved->payload, cipher)) {
    return nonsense("the node reserved other slots than it was asked for");
  }
  Outgoing append;
  append.offload = wire::OffloadId::table_append;
  append.map = table.number;
  append.key = {reinterpret_cast<const char*>(&reservation), sizeof reservation};
  append.payload = text_of(rows);
  const auto reply = ask(append);
  if (!reply) return std::unexpected(reply.error());
  return reply->header.version;
}

TableResult<wire::QueryNumbers> RemoteTables::query(const TableInfo& table,
                                                    std::size_t result_row_bytes,
                                                    std::span<const std::byte> pipeline,
                                                    const RowSink& sink, const UserKeys& keys) {
  Outgoing request;
  request.offload = wire::OffloadId::table_query;
  request.map = table.number;
  request.payload = text_of(pipeline);
  std::optional<RunSecrets> secrets;
  if (keys.table != nullptr || keys.result != nullptr) {
    auto made = RunSecrets::make(keys);
    if (!made) return refuse(made.error(), "keys need libcrypto, and memory that may be locked");
    secrets.emplace(*std::move(made));
    request.key = secrets->key();
  }
  const auto hand = [&](std::string_view rows) {
    if (!secrets || !secrets->decrypts()) return hand_rows(rows, result_row_bytes, sink);
    const std::vector<std::byte> plain = secrets->decrypt(rows);
    return hand_rows(text_of(plain), result_row_bytes, sink);
  };
  bool wanted = true;
  const auto reply = ask(request, [&](wire::ChunkKind kind, std::string_view rows) {
    if (kind == wire::ChunkKind::rows) wanted = hand(rows);
    return wanted;
  });
  if (!reply) return std::unexpected(reply.error());
  wire::QueryNumbers numbers{};
  std::string_view payload = reply->payload;
  if (payload.size() < sizeof numbers) return nonsense("the node's answer has no numbers");
  std::memcpy(&numbers, payload.data(), sizeof numbers);
  payload.remove_prefix(sizeof numbers);
  if (wanted && !payload.empty()) static_cast<void>(hand(payload));
  return numbers;
}

}  // namespace espalier::client
