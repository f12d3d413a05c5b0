// SPDX-License-Identifier: Apache-2.0
// Every request by every role over every transport: refused or done, as the table below has it. An
// offload without a row in the table fails the test.
//
// What comes by unix and shm has the role of its user; what comes by a network that of its secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "client/impl.hpp"
#include "client/known_secret.hpp"
#include "client/node_address.hpp"
#include "client/remote_pipeline.hpp"
#include "client/thread_rings.hpp"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "offload/registry.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_fixture.hpp"
#include "tree/map_forms.hpp"
#include "wire/sequencer.hpp"

namespace espalier::test {
namespace {

using offload::Names;
using offload::Right;
using wire::OffloadId;

/// What comes of a request that is allowed.
enum class Then : std::uint8_t {
  done,
  other,  // another error: what it says besides is not right, or its transport cannot
};
enum class On : std::uint8_t { nothing, map, table, sequencer };

struct Row {
  OffloadId id;
  Right right;
  Names names;  // how it says which object it concerns
  Then then;
  On on = On::nothing;  // whose number it says
  std::string key{};    // behind the prefix of names, where it is a name
  std::string payload{};
  std::uint32_t argument = 0;
};

std::string number(std::uint64_t value) { return std::string(base::bytes_of(value)); }
std::string epoch(std::uint32_t value) { return std::string(base::bytes_of(value)); }

// In the order in which they are asked.
const std::vector<Row>& rows() {
  using enum Right;
  using enum Then;
  const std::string shape(base::bytes_of(tree::shape_of(MapOptions{})));
  const wire::SequencerAdvance advance{};
  static const std::vector<Row> all = {
      {OffloadId::noop, none, Names::nothing, done},
      {OffloadId::cancel, none, Names::nothing, done},
      {OffloadId::get, read, Names::by_id, done, On::map, "k"},
      {OffloadId::floor, read, Names::by_id, done, On::map, "k"},
      {OffloadId::scan, read, Names::by_id, done, On::map, "a"},
      {OffloadId::scan_reverse, read, Names::by_id, done, On::map, "a"},
      {OffloadId::scan_floor, read, Names::by_id, done, On::map, "a"},
      {OffloadId::count, read, Names::by_id, done, On::map, "a"},
      {OffloadId::count_estimate, read, Names::by_id, done, On::map, "a"},
      {OffloadId::put, write, Names::by_id, done, On::map, "k", "v"},
      {OffloadId::insert, write, Names::by_id, done, On::map, "i", "v"},
      {OffloadId::update, write, Names::by_id, done, On::map, "k", "w"},
      {OffloadId::erase, write, Names::by_id, done, On::map, "i"},
      {OffloadId::add, write, Names::by_id, done, On::map, "n", number(1)},
      {OffloadId::compare_and_set, write, Names::by_id, other, On::map, "k"},
      {OffloadId::write_batch, write, Names::by_id, other, On::map},
      {OffloadId::map_stats, read, Names::by_id, done, On::map},
      {OffloadId::snapshot_open, read, Names::by_id, done, On::map},
      {OffloadId::snapshot_close, read, Names::nothing, other, On::nothing, "", number(77)},
      {OffloadId::release_hold, read, Names::by_id, other, On::map},
      {OffloadId::release_confirm, read, Names::by_id, other, On::map, "", number(77)},
      {OffloadId::feed_open, read, Names::by_id, other, On::map},
      {OffloadId::index_counts, read, Names::by_id, other, On::map},
      {OffloadId::lease_renew, read, Names::nothing, other},
      {OffloadId::one_sided_open, read, Names::all, other, On::map},
      {OffloadId::index_open, admin, Names::all, other, On::map},
      {OffloadId::map_open, read, Names::by_name, done, On::nothing, "m"},
      {OffloadId::map_create, admin, Names::by_name, done, On::nothing, "made", shape},
      {OffloadId::shard_create, admin, Names::by_name, other, On::nothing, "made"},
      {OffloadId::object_list, read, Names::nothing, done},
      {OffloadId::object_drop, admin, Names::by_name, done, On::nothing, "dropped"},
      {OffloadId::node_stats, read, Names::all, done},
      {OffloadId::sequence, write, Names::by_name, done, On::nothing, "counter", "", 1},
      {OffloadId::sequencer_create, admin, Names::by_name, done, On::nothing, "made_s", number(5)},
      {OffloadId::sequencer_open, read, Names::by_name, done, On::nothing, "s"},
      {OffloadId::sequencer_take, write, Names::by_id, done, On::sequencer, "", epoch(0), 1},
      {OffloadId::one_sided_sequencer, write, Names::by_id, other, On::sequencer},
      {OffloadId::sequencer_seal, admin, Names::by_id, done, On::sequencer, "", epoch(0)},
      {OffloadId::sequencer_advance, admin, Names::by_id, done, On::sequencer, "",
       std::string(base::bytes_of(advance))},
      {OffloadId::table_create, admin, Names::by_name, other, On::nothing, "made_t"},
      {OffloadId::table_open, read, Names::by_name, done, On::nothing, "t"},
      {OffloadId::table_read, read, Names::by_id, other, On::table},
      {OffloadId::one_sided_table, read, Names::all, other, On::table},
      {OffloadId::table_query, read, Names::by_id, other, On::table},
      {OffloadId::pipeline_load, read, Names::by_id, other, On::table},
      {OffloadId::pipeline_drop, read, Names::nothing, other, On::nothing, "", number(77)},
      {OffloadId::table_append, write, Names::by_id, other, On::table, "", "no whole row"},
      {OffloadId::table_reserve, write, Names::by_id, other, On::table},
      {OffloadId::table_commit, write, Names::by_id, other, On::table},
      {OffloadId::landing_open, write, Names::nothing, other, On::nothing, "", "short"},
      {OffloadId::landing_close, write, Names::nothing, other, On::nothing, "", number(77)},
      {OffloadId::result_open, read, Names::nothing, other},
      {OffloadId::result_return, read, Names::nothing, other},
  };
  return all;
}

/// Objects whose names begin alike, and their numbers.
struct Objects {
  std::string prefix;
  std::map<On, std::uint32_t> numbers;
};

/// Asks for everything, one after the other. Returns the codes and details that came.
std::vector<Error> ask_all(const std::string& address, const ClientSecret& secret,
                           const Objects& objects) {
  auto connection = client::connect_to(client::parse_node_address(address).value(),
                                       client::KnownSecret::of(secret));
  if (!connection) return {connection.error()};
  const auto rings = client::ThreadRings::open(std::move(*connection)).value();
  client::RemoteRequests requests(*rings, 1);
  std::vector<Error> came;
  for (const Row& row : rows()) {
    const std::string key = (row.names == Names::by_name ? objects.prefix : "") + row.key;
    client::Outgoing ask;
    ask.offload = row.id;
    ask.map = row.on == On::nothing ? 0 : objects.numbers.at(row.on);
    ask.argument = row.argument;
    ask.key = key;
    ask.payload = row.payload;
    const auto reply = requests.call(ask);
    came.push_back(reply ? Error{} : reply.error());
  }
  return came;
}

/// Who comes: a role, and the beginning of names that it is for.
struct Client {
  Right role = Right::none;
  std::string prefix{};
};

/// What is to come of a row; nothing: it is allowed.
std::optional<Error> refusal_of(const Row& row, const Client& client, const Objects& objects) {
  if (row.right > client.role) {
    return Error{Code::not_permitted, 0, static_cast<std::uint32_t>(row.right)};
  }
  const Error other_names{Code::not_permitted, 0, 0};
  if (client.prefix.empty() || row.names == Names::nothing) return std::nullopt;
  if (row.names == Names::all) return other_names;
  return objects.prefix == client.prefix ? std::nullopt : std::optional(other_names);
}

void expect_as_written(const std::vector<Error>& came, const Client& client,
                       const Objects& objects) {
  ASSERT_EQ(came.size(), rows().size()) << message(came.front());
  for (std::size_t i = 0; i < came.size(); ++i) {
    const Row& row = rows()[i];
    SCOPED_TRACE(offload::find_offload(static_cast<std::uint8_t>(row.id))->name);
    const auto refusal = refusal_of(row, client, objects);
    if (refusal) {
      EXPECT_EQ(came[i], *refusal);
    } else if (row.then == Then::done) {
      EXPECT_EQ(came[i], Error{}) << message(came[i]);
    } else {
      EXPECT_NE(came[i].code, Code::not_permitted);
      EXPECT_NE(came[i].code, Code::connection_lost);
    }
  }
}

constexpr const char* kPrefix = "orders/";

class NodeRoles : public NodeFixture {
 protected:
  NodeRoles() {
    std::string all;
    for (const auto& [name, text] : lines_) all += text;
    for (const auto& [name, text] : lines_) write(name, text);
    write("node.secrets", all);
    config_.clients.secrets = (folder_ / "node.secrets").string();
    config_.node.one_sided = true;
    config_.node.fabric =
        "shm:" + (folder_ / "fabric").string() + " roce://127.0.0.1:0/1 ofi://tcp/127.0.0.1:0";
  }
  void begin() {
    start();
    for (const std::string prefix : {"", kPrefix}) make(prefix);
  }
  void write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  static std::string line(const std::string& name, const std::string& role, char digit,
                          const std::string& names = "") {
    return name + " " + role + " 0" + std::string(62, digit) + "0" +
           (names.empty() ? "" : " " + names) + "\n";
  }
  [[nodiscard]] ClientSecret secret(const std::string& name) const {
    return ClientSecret::read_file((folder_ / name).string()).value();
  }
  [[nodiscard]] Store admin() const { return *Store::connect("unix:" + socket()); }

  void make(const std::string& prefix) {
    Store store = admin();
    ASSERT_TRUE(store.create_map(prefix + "m")->put("k", "v"));
    ASSERT_TRUE(store.create_sequencer(prefix + "s", 100));
    ASSERT_TRUE(store.create_table(prefix + "t", *Schema::parse("id i64 not null")));
  }
  /// What is to be there when a client begins, of what those before it made or dropped.
  void restore(const std::string& prefix) {
    Store store = admin();
    static_cast<void>(store.create_map(prefix + "dropped"));
    static_cast<void>(store.drop_map(prefix + "made"));
    static_cast<void>(store.drop_sequencer(prefix + "made_s"));
    static_cast<void>(store.open_map(prefix + "m")->erase("i"));
    static_cast<void>(store.open_map(prefix + "m")->put("k", "v"));
  }
  [[nodiscard]] Objects objects(const std::string& prefix) const {
    Objects found{prefix, {}};
    const Store store = admin();
    for (const auto& [on, kind, name] :
         {std::tuple{On::map, ObjectKind::map, "m"}, std::tuple{On::table, ObjectKind::table, "t"},
          std::tuple{On::sequencer, ObjectKind::sequencer, "s"}}) {
      const auto all = client::StoreImpl::of(store).objects(kind);
      for (const client::ObjectInfo& object : all.value()) {
        if (object.name == prefix + name) found.numbers[on] = object.id;
      }
    }
    return found;
  }
  /// All that can be changed, as text: of objects whose names do not begin so.
  [[nodiscard]] std::string state(const std::string& but = "-") const {
    std::ostringstream text;
    Store store = admin();
    const auto all = client::StoreImpl::of(store).objects(ObjectKind::any);
    for (const client::ObjectInfo& object : all.value()) {
      if (object.name.starts_with(but)) continue;
      text << static_cast<int>(object.kind) << ' ' << object.name << ' ' << object.entries << '\n';
      if (object.kind != ObjectKind::map) continue;
      const auto scanned = store.open_map(object.name)->scan("", "", [&](auto items) {
        for (const Item& item : items) text << item.key << '=' << item.value << '\n';
        return true;
      });
      text << scanned.value() << '\n';
    }
    const auto sequencers = store.sequencers();
    for (const SequencerDescription& each : sequencers.value()) {
      if (each.name.starts_with(but)) continue;
      text << each.name << ' ' << each.epoch << ' ' << each.sealed << ' ' << each.next << '\n';
    }
    return text.str();
  }
  /// The names of all objects.
  [[nodiscard]] std::string names() const {
    std::string text;
    const auto all = client::StoreImpl::of(admin()).objects(ObjectKind::any);
    for (const client::ObjectInfo& object : all.value()) text += object.name + "\n";
    return text;
  }

  const std::map<std::string, std::string> lines_{
      {"reader", line("reader", "read", 'a')},
      {"writer", line("writer", "write", 'b')},
      {"admin", line("admin", "admin", 'c')},
      {"shop", line("shop", "admin", 'd', std::string(kPrefix) + "*")},
      {"clerk", line("clerk", "read", 'e', std::string(kPrefix) + "*")}};
  const std::map<std::string, Client> clients_{{"reader", {Right::read}},
                                               {"writer", {Right::write}},
                                               {"admin", {Right::admin}},
                                               {"shop", {Right::admin, kPrefix}},
                                               {"clerk", {Right::read, kPrefix}}};
};

TEST(NodeRolesTable, HasARowForEveryOffload) {
  std::set<OffloadId> found;
  for (const Row& row : rows()) {
    EXPECT_TRUE(found.insert(row.id).second) << static_cast<int>(row.id) << " has two rows";
  }
  for (const offload::Offload& offload : offload::all_offloads()) {
    EXPECT_TRUE(found.contains(offload.id)) << offload.name << " has no row: who may ask for it?";
  }
  EXPECT_EQ(found.size(), offload::all_offloads().size());
}

TEST_F(NodeRoles, OverNetworksEachIsRefusedOrDoneAsWritten) {
  begin();
  for (std::size_t way = 1; way < 3; ++way) {  // roce, ofi
    const std::string& address = node_->fabric_addresses().at(way);
    for (const auto& [name, client] : clients_) {
      for (const std::string prefix : {"", kPrefix}) {
        SCOPED_TRACE(name + " at " + address + " asks for '" + prefix + "*'");
        restore(prefix);
        const Objects asked = objects(prefix);
        const std::string before = state();
        const std::string of_others = state(kPrefix);
        const std::string names_before = names();
        expect_as_written(ask_all(address, secret(name), asked), client, asked);
        // What was refused was not done.
        if (client.role == Right::read) {
          EXPECT_EQ(state(), before);
        }
        if (client.role != Right::admin) {
          EXPECT_EQ(names(), names_before);
        }
        if (!client.prefix.empty()) {
          EXPECT_EQ(state(kPrefix), of_others);
        }
      }
    }
    // Without a secret there is no session to ask by.
    const auto came = ask_all(address, {}, objects(""));
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0], (Error{Code::not_permitted, 0, 4}));
  }
}

// Whatever secret the client has.
TEST_F(NodeRoles, ItsOwnUserIsAnAdministratorOverUnixAndShm) {
  begin();
  for (const std::string& address : {"unix:" + socket(), node_->fabric_addresses().at(0)}) {
    SCOPED_TRACE(address);
    restore("");
    const Objects asked = objects("");
    expect_as_written(ask_all(address, secret("reader"), asked), {Right::admin}, asked);
  }
}

// Only root can be somebody else; any other user is an administrator, as above.
TEST_F(NodeRoles, OtherUsersMayWriteOverUnix) {
  constexpr uid_t kNobody = 65534;
  Child other([](Line& line) {
    std::string said;
    if (!line.receive(said)) return 1;
    if (geteuid() == 0 && seteuid(kNobody) != 0) return 2;
    std::istringstream in(said);
    std::string address;
    Objects asked;
    in >> address;
    for (const On on : {On::map, On::table, On::sequencer}) in >> asked.numbers[on];
    std::ostringstream out;
    for (const Error& error : ask_all(address, {}, asked)) {
      out << static_cast<int>(error.code) << ' ' << error.detail << '\n';
    }
    return line.send(out.str()) ? 0 : 3;
  });
  config_.node.socket_mode = 0666;
  ASSERT_EQ(chmod(folder_.path().c_str(), 0711), 0);
  begin();
  restore("");
  const Objects asked = objects("");
  std::ostringstream said;
  said << "unix:" << socket();
  for (const On on : {On::map, On::table, On::sequencer}) said << ' ' << asked.numbers.at(on);
  const std::string names_before = names();
  ASSERT_TRUE(other.line().send(said.str()));
  std::string answer;
  ASSERT_TRUE(other.line().receive(answer));
  EXPECT_EQ(other.wait(), 0);
  std::istringstream in(answer);
  std::vector<Error> came;
  int code = 0;
  std::uint32_t detail = 0;
  while (in >> code >> detail) came.push_back({static_cast<Code>(code), 0, detail});
  const bool root = geteuid() == 0;
  expect_as_written(came, {root ? Right::write : Right::admin}, asked);
  if (root) {
    EXPECT_EQ(names(), names_before);
  }
}

}  // namespace
}  // namespace espalier::test
