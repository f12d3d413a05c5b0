// SPDX-License-Identifier: Apache-2.0
// A node that authenticates its clients: by roles, over the transports that other users can reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "base/places.hpp"
#include "base/unix_address.hpp"
#include "espalier/espalier.h"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "memory/seqpacket.hpp"
#include "node/metrics.hpp"
#include "tests/support/node_fixture.hpp"
#include "wire/link_proof.hpp"

namespace espalier::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kVariable = "ESPALIER_SECRET_FILE";

class NodeSecrets : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    for (const auto& [name, line] : lines_) write(name, line);
    config_.clients.secrets = (folder_ / "node.secrets").string();
    write_node({"reader", "writer", "admin", "shop"});
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    const std::string way = GetParam();
    if (way == "shm:") {
      config_.node.fabric = way + (folder_ / "fabric.sock").string();
    } else if (!is_unix()) {
      config_.node.fabric = way;
    }
    options_.audit = [this](const offload::AuditRecord& record) {
      const std::lock_guard lock(audit_mutex_);
      audit_.push_back(record);
      audited_.notify_all();
    };
    start();
  }
  void TearDown() override {
    ::unsetenv(kVariable);
    node_.reset();  // which still has records for us
  }

  void write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text << '\n';
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  }
  void write_node(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += lines_.at(name) + "\n";
    write("node.secrets", all);
  }
  [[nodiscard]] bool is_unix() const { return GetParam() == std::string_view("unix:"); }
  /// Whether the transport itself authenticates clients as this user.
  [[nodiscard]] bool is_local() const {
    return is_unix() || GetParam() == std::string_view("shm:");
  }
  [[nodiscard]] std::string address() const {
    return is_unix() ? "unix:" + socket() : node_->fabric_addresses().front();
  }
  /// A store with the secret of this file; empty: without a secret.
  Result<Store> come_as(const std::string& name, const StoreOptions& options = {}) {
    if (name.empty()) {
      ::unsetenv(kVariable);
    } else {
      ::setenv(kVariable, (folder_ / name).c_str(), 1);
    }
    return Store::connect(address(), options);
  }

  /// Waits for the record of an act of this name with this outcome, and returns it.
  offload::AuditRecord audited(const std::string& act, const std::string& name, Code outcome) {
    std::unique_lock lock(audit_mutex_);
    std::size_t seen = 0;
    for (;;) {
      for (; seen < audit_.size(); ++seen) {
        const offload::AuditRecord& record = audit_[seen];
        if (record.act == act && record.name == name && record.outcome.code == outcome) {
          return record;
        }
      }
      audited_.wait(lock);
    }
  }

  static std::string line(const std::string& name, const std::string& role, char digit,
                          const std::string& names = "") {
    return name + " " + role + " 0" + std::string(62, digit) + "0" +
           (names.empty() ? "" : " " + names);
  }
  const std::map<std::string, std::string> lines_{
      {"reader", line("reader", "read", 'a')}, {"writer", line("writer", "write", 'b')},
      {"admin", line("admin", "admin", 'c')},  {"shop", line("shop", "admin", 'd', "orders/*")},
      {"false", line("admin", "admin", 'e')},  {"stranger", line("stranger", "admin", 'f')}};

  std::mutex audit_mutex_;  // guards the next two
  std::condition_variable audited_;
  std::vector<offload::AuditRecord> audit_;
};

INSTANTIATE_TEST_SUITE_P(Over, NodeSecrets,
                         ::testing::Values("roce://127.0.0.1:0/1", "ofi://tcp/127.0.0.1:0",
                                           "shm:", "unix:"),
                         [](const auto& way) {
                           return std::string(way.param).substr(0,
                                                                std::string(way.param).find(':'));
                         });

template <class T>
Error error_of(const Result<T>& result) {
  return result ? Error{} : result.error();
}
std::string value_of(const Map& map) {
  std::string value;
  const auto got = map.get("k", value);
  return got ? value : message(got.error());
}
constexpr Error secret_refusal(std::uint32_t detail) { return {Code::not_permitted, 0, detail}; }

TEST_P(NodeSecrets, GiveEachWhatHisRoleMay) {
  auto admin = come_as("admin");
  ASSERT_TRUE(admin) << message(admin.error());
  auto made = admin->create_map("m");
  ASSERT_TRUE(made) << message(made.error());
  ASSERT_TRUE(made->put("k", "v"));

  auto writer = come_as("writer");
  ASSERT_TRUE(writer) << message(writer.error());
  auto written = writer->open_map("m");
  ASSERT_TRUE(written);
  EXPECT_TRUE(written->put("k", "w"));
  EXPECT_EQ(error_of(writer->create_map("n")), secret_refusal(3));
  EXPECT_EQ(error_of(writer->drop_map("m")), secret_refusal(3));

  auto reader = come_as("reader");
  ASSERT_TRUE(reader) << message(reader.error());
  auto read = reader->open_map("m");
  ASSERT_TRUE(read);
  EXPECT_EQ(value_of(*read), "w");
  EXPECT_TRUE(read->snapshot());
  EXPECT_EQ(error_of(read->put("k", "x")), secret_refusal(2));
  EXPECT_EQ(error_of(read->erase("k")), secret_refusal(2));
  EXPECT_EQ(value_of(*read), "w");

  auto shop = come_as("shop");
  ASSERT_TRUE(shop) << message(shop.error());
  EXPECT_EQ(error_of(shop->open_map("m")), secret_refusal(0));
  EXPECT_EQ(error_of(shop->create_map("other")), secret_refusal(0));
  auto orders = shop->create_map("orders/new");
  ASSERT_TRUE(orders) << message(orders.error());
  EXPECT_TRUE(orders->put("k", "v"));
  EXPECT_THAT(*shop->map_names(), ElementsAre("orders/new"));
}

TEST_P(NodeSecrets, RefuseWhoKnowsNone) {
  if (is_local()) {
    EXPECT_TRUE(come_as("")->create_map("own")) << "its user is known, who may do all";
  } else {
    EXPECT_EQ(error_of(come_as("")), secret_refusal(4));
  }
  EXPECT_EQ(error_of(come_as("false")), secret_refusal(5));
  EXPECT_EQ(error_of(come_as("stranger")), secret_refusal(5));
  // A malformed file is refused before any connection is made.
  write("nonsense", "nonsense");
  EXPECT_EQ(error_of(come_as("nonsense")).code, Code::invalid_argument);
  EXPECT_EQ(error_of(come_as("not there")).code, Code::system);
}

TEST_P(NodeSecrets, MayBeGivenByTheProgram) {
  const auto writer = ClientSecret::read_file((folder_ / "writer").string());
  ASSERT_TRUE(writer) << message(writer.error());
  auto store = come_as("stranger", {.secret = *writer});
  ASSERT_TRUE(store) << message(store.error()) << ": the variable counts for less";
  auto map = store->open_map("default");
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->put("k", "v"));
  EXPECT_EQ(error_of(store->create_map("n")), secret_refusal(3));
  // Further connections of the store have it too: of another thread, for one.
  std::thread([&] { EXPECT_EQ(value_of(*map), "v"); }).join();
  std::array<std::byte, ClientSecret::kBytes> bytes{};
  bytes[0] = std::byte{1};
  EXPECT_EQ(error_of(come_as("writer", {.secret = *ClientSecret::make("writer", bytes)})),
            secret_refusal(5));
}

TEST_P(NodeSecrets, MayBeGivenByAProgramInC) {
  ::setenv(kVariable, (folder_ / "stranger").c_str(), 1);
  espalier_secret* secret = nullptr;
  ASSERT_EQ(espalier_secret_read((folder_ / "writer").c_str(), &secret), ESPALIER_OK)
      << espalier_error_message();
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.secret = secret;
  espalier_store* store = nullptr;
  ASSERT_EQ(espalier_store_open(address().c_str(), &options, &store), ESPALIER_OK)
      << espalier_error_message();
  espalier_secret_destroy(secret);
  espalier_map* map = nullptr;
  ASSERT_EQ(espalier_map_open(store, espalier_text("default"), &map), ESPALIER_OK);
  EXPECT_EQ(espalier_map_put(map, espalier_text("k"), espalier_text("v"), nullptr), ESPALIER_OK);
  EXPECT_EQ(espalier_map_drop(store, espalier_text("default")), ESPALIER_NOT_PERMITTED);
  espalier_map_close(map);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
  options.secret = nullptr;  // then it is that of the variable
  EXPECT_EQ(espalier_store_open(address().c_str(), &options, &store), ESPALIER_NOT_PERMITTED);
}

TEST_P(NodeSecrets, AreReadAgain) {
  auto reader = come_as("reader");
  ASSERT_TRUE(reader);
  auto map = reader->open_map("default");
  ASSERT_TRUE(map);
  ASSERT_TRUE(map->get("k"));
  EXPECT_EQ(error_of(come_as("stranger")), secret_refusal(5));
  write_node({"stranger", "writer"});
  EXPECT_TRUE(node_->change(config_).empty());
  EXPECT_TRUE(come_as("stranger"));
  // The reader's session has ended, and the client is unknown now.
  ::setenv(kVariable, (folder_ / "reader").c_str(), 1);
  Error last{};
  for (int i = 0; i < 10'000 && last.code != Code::not_permitted; ++i)
    last = error_of(map->get("k"));
  EXPECT_EQ(last, secret_refusal(5));
  write("node.secrets", "wrong");
  const auto not_changed = node_->change(config_);
  ASSERT_EQ(not_changed.size(), 1u);
  EXPECT_EQ(not_changed[0].key, "clients.secrets");
  EXPECT_THAT(not_changed[0].words, ElementsAre(HasSubstr("line 1")));
  EXPECT_TRUE(come_as("writer"));
}

// With the client's name, role and address, the object, and the result.
TEST_P(NodeSecrets, AreInTheAuditLogWithWhatTheirClientsDo) {
  const std::string way = GetParam();
  const std::string transport = way.substr(0, way.find(':'));
  const std::string from = transport + (is_local() ? " process " : " 127.0.0.1:");
  auto admin = come_as("admin");
  ASSERT_TRUE(admin);
  auto map = admin->create_map("m");
  ASSERT_TRUE(map);
  auto reader = come_as("reader");
  ASSERT_TRUE(reader);
  EXPECT_EQ(error_of(reader->open_map("m")->put("k", "v")), secret_refusal(2));
  EXPECT_EQ(error_of(reader->drop_map("m")), secret_refusal(3));
  EXPECT_EQ(error_of(come_as("false")), secret_refusal(5));
  if (!is_local()) {
    EXPECT_EQ(error_of(come_as("")), secret_refusal(4));
  }

  const auto made = audited("map_create", "admin", Code::invalid);
  EXPECT_FALSE(made.refusal);
  EXPECT_EQ(made.role, offload::Right::admin);
  EXPECT_EQ(made.object, "m");
  EXPECT_THAT(made.address, StartsWith(from));
  const auto put = audited("put", "reader", Code::not_permitted);
  EXPECT_TRUE(put.refusal);
  EXPECT_EQ(put.outcome.detail, 2u);
  EXPECT_EQ(put.object, "m") << "the name of the map whose number was said";
  EXPECT_EQ(audited("object_drop", "reader", Code::not_permitted).object, "m");
  const auto wrong = audited("authenticate", "admin", Code::not_permitted);
  EXPECT_EQ(wrong.role, offload::Right::none) << "it was not authenticated as that";
  EXPECT_EQ(wrong.outcome.detail, 5u);
  EXPECT_THAT(wrong.address, StartsWith(from));
  if (!is_local()) {
    EXPECT_EQ(audited("connect", "", Code::not_permitted).outcome.detail, 4u);
  }

  const node::NodeNumbers numbers = node::numbers_of(*node_);
  EXPECT_EQ(numbers.value("authentications", "accepted"), 2u);
  EXPECT_EQ(numbers.value("authentications", "wrong_proof"), 1u);
  EXPECT_EQ(numbers.value("requests_denied"), 2u);
  EXPECT_EQ(numbers.value("audit_left_out"), 0u);
  const std::string text = node::metrics_text(numbers);
  EXPECT_THAT(text, HasSubstr("espalier_authentications_total{result=\"accepted\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("espalier_authentications_total{result=\"wrong_proof\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("espalier_requests_denied_total 2\n"));
}

// One-sided reads, through a pair beside that of the rings, which is authenticated too.
TEST_P(NodeSecrets, LetReadersReadAloneWhereRolesAreForAll) {
  const std::string_view way = GetParam();
  if (way.starts_with("ofi") || is_unix()) return;  // clients do not read by themselves
  auto reader = come_as("reader", {.access = Access::one_sided});
  ASSERT_TRUE(reader) << message(reader.error());
  auto map = reader->open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  ASSERT_TRUE(come_as("writer")->open_map("default")->put("k", "v"));
  EXPECT_EQ(value_of(*map), "v");
  auto shop = come_as("shop", {.access = Access::one_sided});
  ASSERT_TRUE(shop) << message(shop.error());
  ASSERT_TRUE(come_as("admin")->create_map("orders/x"));
  const auto alone = shop->open_map("orders/x");
  ASSERT_TRUE(alone);
  EXPECT_EQ(error_of(alone->get("k")), secret_refusal(0));
}

// One place in 16 is reserved for administrators of all, once they have proven their role.
TEST_P(NodeSecrets, KeepAPlaceForTheAdministrator) {
  constexpr std::uint32_t kMost = 16;
  config_.clients.connections_max = kMost;
  start();
  std::vector<Store> stores;
  const auto come = [&](const std::string& name, std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      auto store = come_as(name);
      ASSERT_TRUE(store) << name << ", " << i << ": " << message(store.error());
      stores.push_back(std::move(*store));
    }
  };
  come("writer", kMost / 2);
  come("reader", kMost / 2 - 1);
  ASSERT_EQ(node_->services().connections.numbers().connections, kMost - 1);
  if (is_unix()) {  // elsewhere a client that is refused tries again
    const Error full = base::full_error(base::Places::connections, kMost);
    EXPECT_EQ(error_of(come_as("reader")), full);
    EXPECT_EQ(error_of(come_as("shop")), full) << "it may do all to orders alone";
  }
  come("admin", 1);
  ASSERT_EQ(stores.size(), kMost);
  EXPECT_TRUE(stores.back().create_map("m"));
}

constexpr std::uint32_t kStranger = 65534;
enum Relayed : int { no_proof = 10, a_proof = 11, no_relay = 12 };

/// Another user's process between a client and the node: it passes each packet on, both ways.
int relay_as_stranger(const std::string& from, const std::string& to, int ready) {
  if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) return no_relay;
  const auto address = base::UnixAddress::file(from);
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool listens = address && ::bind(listening, address->get(), address->bytes()) == 0 &&
                       ::listen(listening, 1) == 0;
  const auto node = memory::connect_packets(to);
  const char said = listens && node ? 'y' : 'n';
  if (::write(ready, &said, 1) != 1 || said == 'n') return no_relay;
  const int client = ::accept(listening, nullptr, nullptr);
  bool proof = false;
  for (;;) {
    pollfd ends[2] = {{client, POLLIN, 0}, {node->number(), POLLIN, 0}};
    if (::poll(ends, 2, -1) < 0) return no_relay;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      char packet[256];
      const ssize_t got = ::recv(ends[i].fd, packet, sizeof packet, 0);
      if (got <= 0) return proof ? a_proof : no_proof;
      proof = proof || got == sizeof(wire::LinkProof);
      if (::send(ends[1 - i].fd, packet, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) {
        return proof ? a_proof : no_proof;
      }
    }
  }
}

// The client even expects that user: the user in the node's challenge reveals the relay.
TEST(NodeSecretsRelay, TellsTheNodeNothingInTheClientsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a relay as another user";
  const base::TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  node::Config config = node_config(folder);
  config.node.socket_mode = 0666;
  config.clients.secrets = (folder / "secrets").string();
  std::ofstream(config.clients.secrets) << "writer write 0" << std::string(63, 'b') << '\n';
  ASSERT_EQ(::chmod(config.clients.secrets.c_str(), 0600), 0);
  const auto node = node::Node::start(config);
  ASSERT_TRUE(node);
  const std::string between = (folder / "between").string();
  int ready[2] = {-1, -1};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(relay_as_stranger(between, config.node.socket, ready[1]));
  ::close(ready[1]);
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ::close(ready[0]);
  ASSERT_EQ(said, 'y');
  StoreOptions options{.secret = *ClientSecret::read_file(config.clients.secrets)};
  options.node_user = kStranger;
  EXPECT_EQ(error_of(Store::connect("unix:" + between, options)), secret_refusal(6));
  EXPECT_EQ(base::wait_for_child(child), no_proof);
  EXPECT_EQ(node::numbers_of(**node).value("authentications", "accepted"), 0u);
}

/// A client with a secret at a node without secrets: that could be any process.
TEST(NodeWithoutSecrets, IsNotTakenForOneThatKnowsThem) {
  const base::TemporaryFolder folder;
  node::Config config = node_config(folder);
  config.node.fabric = "shm:" + (folder / "fabric.sock").string();
  const auto node = node::Node::start(config);
  ASSERT_TRUE(node);
  std::array<std::byte, ClientSecret::kBytes> bytes{};
  bytes[0] = std::byte{1};
  const StoreOptions options{.secret = *ClientSecret::make("writer", bytes)};
  for (const std::string& address : {"unix:" + config.node.socket, config.node.fabric}) {
    EXPECT_EQ(error_of(Store::connect(address, options)), secret_refusal(6)) << address;
    EXPECT_TRUE(Store::connect(address)) << address;
  }
}

TEST(NodeSecretsAtStart, ANetworkIsNotForEverybody) {
  const base::TemporaryFolder folder;
  node::Config config = node_config(folder);
  config.node.fabric = "roce://192.0.2.1/1";
  std::string address;
  node::NodeOptions options;
  options.failed_address = &address;
  const auto started = node::Node::start(config, options);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), secret_refusal(4));
  EXPECT_EQ(address, "roce://192.0.2.1/1");
}

TEST(NodeSecretsAtStart, AFileThatIsWrongIsTold) {
  const base::TemporaryFolder folder;
  node::Config config = node_config(folder);
  config.clients.secrets = (folder / "none").string();
  std::vector<std::string> mistakes;
  node::NodeOptions options;
  options.secret_mistakes = &mistakes;
  const auto started = node::Node::start(config, options);
  ASSERT_FALSE(started);
  EXPECT_THAT(mistakes, ElementsAre(HasSubstr("No such file")));
}

}  // namespace
}  // namespace espalier::test
