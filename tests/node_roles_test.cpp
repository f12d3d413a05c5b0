// SPDX-License-Identifier: Apache-2.0
// Every request by every role over every transport: refused or done, by the table of
// tests/support/role_matrix.cpp.
//
// A client by unix or shm has the role of its user, or of its secret if it has one; a client by a
// network has that of its secret.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/call.hpp"
#include "engine/registry.hpp"
#include "kinds/embedding/format.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "tests/support/child.hpp"
#include "tests/support/role_fixture.hpp"

namespace espalier::test {
namespace {

using roles::ask_all;
using roles::Objects;
using roles::On;
using roles::Right;
using wire::OffloadId;

/// The kinds of objects to which rows apply.
constexpr On kOnEach[] = {On::map,    On::table,     On::sequencer, On::hash,
                          On::region, On::embedding, On::model};

class NodeRoles : public RoleFixture {
 protected:
  NodeRoles() {
    write("node.secrets", all_lines());
    config_.clients.secrets = path("node.secrets");
    config_.node.one_sided = true;
    config_.node.fabric =
        "shm:" + (folder_ / "fabric").string() +
        " roce://127.0.0.1:0/1 ofi://tcp/127.0.0.1:0 roce+memif:" + (folder_ / "memif").string();
  }
  void begin() {
    start();
    for (const std::string prefix : {"", kPrefix}) make(prefix);
  }
};

TEST(NodeRolesTable, HasARowForEveryOffload) {
  std::set<OffloadId> found;
  for (const roles::Row& row : roles::rows()) {
    EXPECT_TRUE(found.insert(row.id).second) << static_cast<int>(row.id) << " has two rows";
  }
  for (const offload::Offload& offload : offload::all_offloads()) {
    EXPECT_TRUE(found.contains(offload.id)) << offload.name << " has no row: who may ask for it?";
  }
  EXPECT_EQ(found.size(), offload::all_offloads().size());
}

TEST_F(NodeRoles, OverNetworksEachIsRefusedOrDoneAsWritten) {
  begin();
  expect_all_as_written(node_->fabric_addresses().at(1), "roce");
  expect_all_as_written(node_->fabric_addresses().at(2), "ofi");
}

// Offloads of a program that runs the node itself, whose rows have no right.
TEST_F(NodeRoles, OwnOffloadsAreForTheNamesOfARoleToo) {
  const offload::Offload own{{.id = static_cast<OffloadId>(wire::kOwnOffloadIds),
                              .name = "own",
                              .format = "nothing",
                              .summary = "answers",
                              .limits = {.map = true}},
                             {.step = [](offload::Call& call) { return call.answer({}); },
                              .executor = &offload::kMapWalks}};
  const std::span<const offload::Offload> calls(&own, 1);
  const offload::Kind own_kind{.name = "own", .calls = {&calls, 1}};
  options_.own_kinds = {&own_kind, 1};
  begin();
  const Error other_names{Code::not_permitted, 0, 0};
  const Error takes_admin{Code::not_permitted, 0, 3};
  for (const std::string prefix : {"", kPrefix}) {
    const std::uint32_t map = objects(prefix).numbers.at(On::map);
    for (const auto& [name, client] : clients_) {
      SCOPED_TRACE(name + " asks for '" + prefix + "m'");
      const auto rings = roles::open_rings(node_->fabric_addresses().at(1), secret(name)).value();
      client::RemoteRequests requests(*rings, 1);
      wire::CallMessage ask;
      ask.offload = own.id;
      ask.map = map;
      const auto reply = requests.call(ask);
      const Error error = reply ? Error{} : reply.error();
      if (client.role != Right::admin) {
        EXPECT_EQ(error, takes_admin);
      } else if (client.prefix.empty() || client.prefix == prefix) {
        EXPECT_EQ(error, Error{}) << message(error);
      } else {
        EXPECT_EQ(error, other_names);
      }
    }
  }
  node_.reset();  // before what it knows of `own`
}

// The header names the first one, which is checked like any object.
TEST_F(NodeRoles, EachOfSeveralEmbeddingTablesIsForTheNamesOfARole) {
  begin();
  for (const auto& [name, client] : clients_) {
    for (const std::string others : {"", kPrefix}) {
      SCOPED_TRACE(name + " asks for '" + others + "e' besides");
      const auto rings = roles::open_rings(node_->fabric_addresses().at(1), secret(name)).value();
      client::RemoteRequests requests(*rings, 1);
      const embedding::TableShape first{0, 0, 1, 1, 0, 0};
      const embedding::TableShape other{objects(others).numbers.at(On::embedding), 0, 1, 1, 0, 0};
      const std::string payload = std::string(base::bytes_of(embedding::TablesShape{1, {}, 2})) +
                                  std::string(base::bytes_of(first)) +
                                  std::string(base::bytes_of(other)) + std::string(16, '\0');
      wire::CallMessage ask;
      ask.offload = OffloadId::embedding_reduce_tables;
      ask.map = objects(kPrefix).numbers.at(On::embedding);
      ask.payload = payload;
      const auto reply = requests.call(ask);
      constexpr Error kOtherNames{Code::not_permitted, 0, 0};
      constexpr Error kTakesRead{Code::not_permitted, 0, 1};
      const bool may = client.prefix.empty() || others == kPrefix;
      const Error comes = may ? Error{} : kOtherNames;
      const Error error = reply ? Error{} : reply.error();
      EXPECT_EQ(error, client.may(roles::Right::read) ? comes : kTakesRead);
    }
  }
}

// Unless it has a secret: then that determines the role.
TEST_F(NodeRoles, ItsOwnUserIsAnAdministratorOverUnixShmAndMemif) {
  begin();
  const auto fabric = [this](std::size_t i) { return node_->fabric_addresses().at(i); };
  for (const std::string& address : {"unix:" + socket(), fabric(0), fabric(3)}) {
    SCOPED_TRACE(address);
    const std::string_view by = std::string_view(address).substr(0, address.find(':'));
    restore("");
    const Objects asked = objects("");
    expect_as_written(ask_all(address, {}, asked), {.role = Right::admin, .all = true}, asked, by);
    restore("");
    const Objects asked_again = objects("");
    expect_as_written(ask_all(address, secret("reader"), asked_again), {Right::read}, asked_again,
                      by);
  }
}

// Only root can become another user; any other user is an administrator, as above.
TEST_F(NodeRoles, OtherUsersMayWriteOverUnix) {
  constexpr uid_t kNobody = 65534;
  Child other([](Line& line) {
    std::string said;
    if (!line.receive(said)) return 1;
    if (::geteuid() == 0 && ::seteuid(kNobody) != 0) return 2;
    std::istringstream in(said);
    std::string address;
    Objects asked;
    in >> address;
    for (const On on : kOnEach) in >> asked.numbers[on];
    std::ostringstream out;
    for (const Error& error : ask_all(address, {}, asked)) {
      out << static_cast<int>(error.code) << ' ' << error.detail << '\n';
    }
    return line.send(out.str()) ? 0 : 3;
  });
  config_.node.socket_mode = 0666;
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0);
  begin();
  restore("");
  const Objects asked = objects("");
  std::ostringstream said;
  said << "unix:" << socket();
  for (const On on : kOnEach) said << ' ' << asked.numbers.at(on);
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
  const bool root = ::geteuid() == 0;
  expect_as_written(came, {.role = root ? Right::write : Right::admin, .all = !root}, asked,
                    "unix");
  if (root) {
    EXPECT_EQ(names(), names_before);
  }
}

}  // namespace
}  // namespace espalier::test
