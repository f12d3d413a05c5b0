// SPDX-License-Identifier: Apache-2.0
// Commands on a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/unix_address.hpp"
#include "catalog/testing/some_objects.hpp"
#include "memory/shared_memory.hpp"
#include "tools/asked_numbers.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using NodeCommands = NodeTool;

TEST_F(NodeCommands, PutGetScanAndEraseOnTheNode) {
  EXPECT_EQ(run({"put", "pear", "0.80"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "inserted 1, 1 item in all\n");
  EXPECT_EQ(run({"put", "pear", "0.95"}), kOk);
  EXPECT_EQ(tool.out(), "replaced 1, 1 item in all\n");
  EXPECT_EQ(run({"put", "--json", "plum", ""}), kOk);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["inserted"], 1);
  EXPECT_EQ(run({"get", "pear"}), kOk);
  EXPECT_EQ(tool.out(), "0.95\n");
  EXPECT_EQ(run({"get", "--floor", "pease"}), kOk);
  EXPECT_EQ(tool.out(), "pear\t0.95\n");
  EXPECT_EQ(run({"scan"}), kOk);
  EXPECT_EQ(tool.out(), "pear\t0.95\nplum\t\n");
  EXPECT_EQ(run({"scan", "--reverse", "--limit", "1", "--keys-only"}), kOk);
  EXPECT_EQ(tool.out(), "plum\n");
  EXPECT_EQ(run({"erase", "pear", "quince"}), kFailed);
  EXPECT_EQ(tool.out(), "erased 1, 1 item in all\n");
  EXPECT_EQ(tool.err(), "espalier: not found: quince\n");
  EXPECT_EQ(run({"get", "pear"}), kFailed);
  EXPECT_EQ(run({"get", std::string(461, 'k')}), kUsage);
  EXPECT_TRUE(tool.files.contents.empty());
}

TEST_F(NodeCommands, TheVariableSaysWhichNode) {
  tool.variables = {{"ESPALIER_AT", address}};
  EXPECT_EQ(tool.run({"put", "a", "1"}), kOk) << tool.err();
  EXPECT_EQ(tool.run({"get", "a"}), kOk);
  EXPECT_EQ(tool.out(), "1\n");
  tool.files.contents["f.csv"] = "a,2\n";
  EXPECT_EQ(tool.run({"get", "--file", "f.csv", "a"}), kOk);
  EXPECT_EQ(tool.out(), "2\n");
}

TEST_F(NodeCommands, ExportsWhatWasLoaded) {
  std::string sorted;
  std::string shuffled;
  for (int i = 0; i < 5000; ++i) {
    sorted += "k" + std::to_string(10'000 + i) + "\tv" + std::to_string(i) + "\n";
    const int j = i * 7919 % 5000;
    shuffled += "k" + std::to_string(10'000 + j) + "\tv" + std::to_string(j) + "\n";
  }
  tool.files.contents["in.tsv"] = shuffled;
  EXPECT_EQ(run({"load", "in.tsv"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("records     5,000 in "));
  EXPECT_THAT(tool.out(), HasSubstr("items       5,000 in map 'default' at " + address + "\n"));
  EXPECT_EQ(run({"export"}), kOk);
  EXPECT_EQ(tool.out(), sorted);
  EXPECT_EQ(run({"export", "--output", "out.csv"}), kOk);
  EXPECT_THAT(tool.files.contents["out.csv"], StartsWith("k10000,v0\nk10001,v1\n"));
  EXPECT_EQ(run({"load", "in.tsv", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["duplicates"], 5000);
  EXPECT_EQ(object["items"], 5000);
  EXPECT_EQ(object["map"], "default");
  EXPECT_EQ(object["at"], address);
}

// Requests in flight together have no order, so this is what a careless pipeline breaks.
TEST_F(NodeCommands, OfRepeatedKeysTheLastOneStays) {
  std::string& file = tool.files.contents["in.tsv"];
  for (int i = 0; i < 20'000; ++i) {
    file += "k" + std::to_string(i * i % 97 % 7) + "\t" + std::to_string(i) + "\n";
    if (i % 100 == 0) file += "other" + std::to_string(i) + "\t0\n";
  }
  EXPECT_EQ(run({"load", "in.tsv"}), kOk) << tool.err();
  EXPECT_EQ(run({"export"}), kOk);
  const std::string on_node = tool.out();
  EXPECT_EQ(tool.run({"export", "in.tsv"}), kOk);
  EXPECT_EQ(on_node, tool.out());
}

TEST_F(NodeCommands, LoadTellsBadRecordsAndCarriesLargeOnes) {
  std::string& file = tool.files.contents["in.tsv"];
  for (const std::size_t bytes : {10UL, 100'000UL, 2'000'000UL, 3'000'000UL}) {
    file += "k" + std::to_string(bytes) + "\t" + std::string(bytes, 'x') + "\n";
  }
  file += std::string(461, 'k') + "\tv\n\tv\na\n";
  EXPECT_EQ(run({"load", "in.tsv"}), kOk) << tool.err();
  EXPECT_EQ(tool.err(),
            "in.tsv:5: bad line: the key has 461 bytes; the limit is 460\n"
            "in.tsv:6: bad line: the key is empty\n"
            "in.tsv:7: bad line: has 1 column where the first record has 2\n");
  EXPECT_EQ(run({"scan", "--count"}), kOk);
  EXPECT_EQ(tool.out(), "4\n");
  EXPECT_EQ(run({"get", "k3000000"}), kOk);
  EXPECT_EQ(tool.out().size(), 3'000'001U);
}

TEST_F(NodeCommands, LoadSaysWhereTheNodeWasFull) {
  std::string& file = tool.files.contents["in.tsv"];
  for (int i = 0; i < 90; ++i)
    file += std::to_string(i) + "\t" + std::string(1'000'000, 'x') + "\n";
  EXPECT_EQ(run({"load", "in.tsv"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("the map's memory limit is reached after "));
  EXPECT_THAT(tool.err(), HasSubstr("(memory.limit)"));
}

TEST_F(NodeCommands, MapsAreMadeListedAndDropped) {
  EXPECT_EQ(run_map({"create", "small", "--node-bytes", "512", "--log-bytes", "64",
                     "--snapshot-bytes-max", "1M", "--no-versions"}),
            kOk)
      << tool.err();
  EXPECT_EQ(tool.out(), "made map 'small'\n");
  EXPECT_EQ(run_map({"list"}), kOk);
  EXPECT_EQ(tool.out(), "default\nsmall\n");
  EXPECT_EQ(run_map({"list", "--json"}), kOk);
  EXPECT_THAT(tool.out(),
              HasSubstr(R"({"map":"small","node_bytes":512,"log_bytes":64,"versions":false,)"
                        R"("snapshot_bytes_max":1048576})"));
  EXPECT_EQ(run_map({"create", "account", "--in-group", "bank"}), kOk) << tool.err();
  EXPECT_EQ(run_map({"create", "ledger", "--kind", "hash", "--in-group", "bank", "--json"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr(R"("group":"bank")"));
  EXPECT_EQ(run_map({"list", "--json"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr(R"("group":"bank")"));
  EXPECT_EQ(run_map({"list", "--json", "--kind", "hash"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr(R"("group":"bank")"));
  EXPECT_EQ(run_map({"create", "odd", "--in-group", "bank", "--no-versions"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("without versions a map is in no group"));
  EXPECT_EQ(run({"put", "--map", "small", "a", "1"}), kOk);
  EXPECT_EQ(run({"get", "a"}), kFailed);
  EXPECT_EQ(run_map({"create", "small"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a map 'small' already"));
  EXPECT_EQ(run_map({"create", "odd", "--node-bytes", "1000"}), kUsage);
  EXPECT_EQ(run_map({"create", "odd", "--durability", "maybe"}), kUsage);
  EXPECT_EQ(run_map({"create", "odd", "--durability", "sync"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("makes no map 'odd' of this durability"));
  EXPECT_EQ(tool.run({"list", "--at", address, "--json"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr(R"("durability":"none")"));
  EXPECT_EQ(run_map({"drop", "small"}), kOk);
  EXPECT_EQ(run_map({"drop", "small"}), kFailed);
  EXPECT_EQ(run({"get", "--map", "small", "a"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: error: the node at " + address +
                            " has no map 'small'\n  espalier map list shows those that it has; "
                            "espalier map create makes one.\n");
  EXPECT_EQ(tool.run({"map"}), kUsage);
  EXPECT_EQ(tool.run({"map", "list"}), kUsage);
  EXPECT_THAT(tool.err(), StartsWith("espalier: error: which node?\n"));
}

TEST_F(NodeCommands, HashMapsAreMadeUsedAndDropped) {
  EXPECT_EQ(run_map({"create", "h", "--kind", "hash", "--partitions", "4"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "made hash map 'h'\n");
  EXPECT_EQ(run_map({"list"}), kOk);
  EXPECT_EQ(tool.out(), "default\n");
  EXPECT_EQ(run_map({"list", "--kind", "hash"}), kOk);
  EXPECT_EQ(tool.out(), "h\n");
  EXPECT_EQ(run_map({"list", "--kind", "hash", "--json"}), kOk);
  EXPECT_EQ(tool.out(), R"({"map":"h","kind":"hash","partitions":4,"versions":true,)"
                        R"("snapshot_bytes_max":268435456})"
                        "\n");
  EXPECT_EQ(run({"put", "--map", "h", "a", "1"}), kOk);
  EXPECT_EQ(tool.out(), "inserted 1, 1 item in all\n");
  EXPECT_EQ(run({"get", "--map", "h", "a"}), kOk);
  EXPECT_EQ(tool.out(), "1\n");
  EXPECT_EQ(run({"get", "--map", "h", "b"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: not found: b\n");
  EXPECT_EQ(run({"get", "--map", "h", "--floor", "b"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'h' is a hash map, whose keys have no order"));
  EXPECT_EQ(run({"put", "--map", "h", std::string(65536, 'k'), "v"}), kUsage);
  EXPECT_EQ(run({"erase", "--map", "h", "a", "b"}), kFailed);
  EXPECT_EQ(tool.out(), "erased 1, 0 items in all\n");
  EXPECT_EQ(run({"scan", "--map", "h"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr(" is a hash map\n"));
  EXPECT_EQ(tool.out(), "");
  EXPECT_EQ(run_map({"create", "x", "--kind", "hash", "--node-bytes", "512"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--node-bytes says what an ordered map is like"));
  EXPECT_EQ(run_map({"create", "x", "--partitions", "4"}), kUsage);
  EXPECT_EQ(run_map({"create", "x", "--kind", "hash", "--partitions", "3"}), kUsage);
  EXPECT_EQ(run_map({"create", "h"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a hash map 'h' already"));
  EXPECT_EQ(run_map({"drop", "h"}), kOk);
  EXPECT_EQ(tool.out(), "dropped hash map 'h'\n");
  EXPECT_EQ(run_map({"drop", "h"}), kFailed);
}

TEST_F(NodeCommands, HashMapsAreLoadedAndExported) {
  ASSERT_EQ(run_map({"create", "h", "--kind", "hash"}), kOk) << tool.err();
  std::string& file = tool.files.contents["in.tsv"];
  for (int i = 0; i < 3000; ++i) {
    file += "key" + std::to_string(i % 2500) + "\tvalue" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(run({"load", "--map", "h", "in.tsv"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("items       2,500 in map 'h'"));
  EXPECT_THAT(tool.out(), HasSubstr("; 500 replaced one\n"));
  EXPECT_EQ(run({"load", "--map", "h", "--kind", "hash", "in.tsv"}), kUsage);
  EXPECT_EQ(run({"export", "--map", "h", "--output", "out.tsv"}), kOk) << tool.err();
  // Sorted by a map of this process, it is what a map of the file itself would be.
  EXPECT_EQ(tool.run({"export", "out.tsv"}), kOk);
  const std::string by_hash = tool.out();
  EXPECT_EQ(tool.run({"export", "in.tsv"}), kOk);
  EXPECT_TRUE(by_hash == tool.out());
  EXPECT_EQ(run({"stats", "--map", "h", "--json"}), kOk) << tool.err();
  EXPECT_EQ(nlohmann::json::parse(tool.out())["kind"], "hash");
  EXPECT_THAT(tool.out(), HasSubstr("\"value\":2500"));
  EXPECT_EQ(run({"stats", "--map", "h"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("2,500"));
}

TEST_F(NodeCommands, StatsTellsOfEveryMap) {
  EXPECT_EQ(run_map({"create", "small"}), kOk);
  EXPECT_EQ(run({"put", "a", "1"}), kOk);
  EXPECT_EQ(run({"stats"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("map         default\nitems       1\nheight      1 "));
  EXPECT_THAT(tool.out(), HasSubstr("\n\nmap         small\nitems       0\n"));
  EXPECT_EQ(run({"stats", "--map", "default", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["map"], "default");
  EXPECT_EQ(object["items"], 1);
  EXPECT_GT(object["node_bytes"], 0);
  EXPECT_EQ(object["feed"]["followers"], 0);
}

// Of a busy node: the principals with the largest shares of limits, and the limits.
TEST_F(NodeCommands, StatsTellsOfLimitsAndOfWhoIsNearThem) {
  const auto silent = base::UnixAddress::file(config.node.socket);
  ASSERT_TRUE(silent);
  const memory::Descriptor pending(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(pending.number(), silent->get(), silent->bytes()), 0);
  const Store store = *Store::connect(address);
  const Snapshot held = *store.open_map("default")->snapshot();
  while (node->connections_pending() != 1) std::this_thread::yield();
  ASSERT_EQ(run({"stats", "--json"}), kOk);
  const std::string out = tool.out();
  const auto last = out.rfind('\n', out.size() - 2);
  const auto numbers = nlohmann::json::parse(out.substr(last == std::string::npos ? 0 : last + 1));
  const auto& connections = numbers["connections"];
  EXPECT_EQ(connections["limit"], 10'000);
  EXPECT_EQ(connections["principal_limit"], 5'000);
  EXPECT_EQ(connections["kept"], 64);
  EXPECT_EQ(connections["pending"], 1);
  EXPECT_EQ(connections["pending_limit"], 1024);
  EXPECT_EQ(connections["user_pending_limit"], 256);
  EXPECT_EQ(connections["principal_ring_limit_bytes"],
            connections["ring_limit_bytes"].get<std::uint64_t>() / 2);
  EXPECT_EQ(numbers["snapshots"]["count"], 1);
  EXPECT_EQ(numbers["snapshots"]["principal_limit"], 1024);
  EXPECT_EQ(numbers["snapshots"]["connection_limit"], 64);
  EXPECT_EQ(numbers["roce"]["cookies_sent"], 0);
  EXPECT_EQ(numbers["roce"]["foreign"], 0);
  EXPECT_EQ(numbers["roce"]["out_of_window"], 0);
  const auto& principals = numbers["principals"];
  ASSERT_EQ(principals.size(), 1u);
  EXPECT_EQ(principals[0]["principal"], "user " + std::to_string(::geteuid()));
  EXPECT_GE(principals[0]["connections"], 2) << "this store's, and that which asks";
  EXPECT_EQ(principals[0]["ring_bytes"], connections["ring_bytes"]);
  EXPECT_EQ(principals[0]["snapshots"], 1);
  ASSERT_EQ(run({"stats"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr(" expired; 1,024 of one principal at most\n"));
  EXPECT_THAT(tool.out(), HasSubstr(" of 10,000, 5,000 of one principal at most, 64 kept for who "
                                    "runs the node; 0 beyond a limit\n"
                                    "pending     1 of 1,024 at the socket, 256 of one user"));
  EXPECT_THAT(tool.out(), HasSubstr("\nprincipal   user " + std::to_string(::geteuid()) + ": "));
  ASSERT_EQ(run({"top", "--once"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("; 0 /s clients beyond a limit, 1 pending\n"));
  EXPECT_THAT(tool.out(), HasSubstr("\nsnapshots 1 hold "));
  ASSERT_EQ(run({"top", "--once", "--json"}), kOk);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["principals"][0]["snapshots"], 1);
}

// An accepted client does not count as a pending connection.
TEST_F(NodeCommands, WhoIsConnectedIsNotPending) {
  for (int i = 0; i < 200; ++i) {
    const Store store = *Store::connect(address);
    ASSERT_EQ(node->connections_pending(), 0u) << i;
  }
}

TEST_F(NodeCommands, StatsAndTopTellOfSequencers) {
  ASSERT_EQ(tool.run({"seq", "create", "--at", address, "orders"}), kOk) << tool.err();
  ASSERT_EQ(tool.run({"seq", "take", "--at", address, "orders", "16"}), kOk) << tool.err();
  ASSERT_EQ(run({"stats"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("\n\nsequencer   orders\nepoch       1, from 0, next 16\n"
                                    "asked       1 times, answered by 1 adds\n"));
  ASSERT_EQ(run({"top", "--once"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("state  sequencer\n"));
  EXPECT_THAT(tool.out(), HasSubstr("open  orders\n"));
  ASSERT_EQ(run({"top", "--once", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["sequencers"][0]["sequencer"], "orders");
  EXPECT_EQ(object["sequencers"][0]["next"], 16);
  EXPECT_EQ(object["maps"][0]["feed"]["entries"], 0);
}

class NodeSamples : public NodeTool {
 protected:
  using Later = catalog::SomeLater;
  /// An object of a kind that neither the node nor the command knows.
  std::shared_ptr<Later> make(const std::string& name) {
    static std::atomic<int> living{0};  // outlives the node
    return catalog::create_some<Later>(node->catalog(), name, living).value();
  }
  /// The last line of JSON that has this member.
  [[nodiscard]] nlohmann::json line_with(const std::string& member) const {
    std::istringstream lines(tool.out());
    nlohmann::json found;
    for (std::string line; std::getline(lines, line);) {
      auto object = nlohmann::json::parse(line);
      if (object.contains(member)) found = std::move(object);
    }
    return found;
  }
};

TEST_F(NodeSamples, StatsTellsOfKindsThatItDoesNotKnow) {
  make("odd\x1b\n")->lookups = 1234;
  ASSERT_EQ(run({"stats"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("map         default\n"));
  EXPECT_THAT(tool.out(), HasSubstr("odd\\x1b\\n\nitems "));
  EXPECT_THAT(tool.out(), HasSubstr("Bytes that wait.\nlookups "));
  EXPECT_THAT(tool.out(), HasSubstr("1,234    Times that it was asked.\n\nall         "));
  EXPECT_EQ(tool.out().find('\x1b'), std::string::npos);
  ASSERT_EQ(run({"stats", "--json"}), kOk) << tool.err();
  const auto object = line_with("samples");
  EXPECT_EQ(object["kind"], "kind 200");
  EXPECT_EQ(object["name"], "odd\x1b\n");
  ASSERT_EQ(object["samples"].size(), 4u);
  EXPECT_EQ(object["samples"][0]["name"], "items");
  EXPECT_EQ(object["samples"][1]["labels"]["queue"], "in");
  EXPECT_EQ(object["samples"][1]["unit"], "bytes");
  EXPECT_EQ(object["samples"][2]["labels"]["queue_hex"], "6f64641b225c0aff");
  EXPECT_EQ(object["samples"][3]["type"], "counter");
  EXPECT_EQ(object["samples"][3]["value"], 1234);
  EXPECT_TRUE(line_with("objects_left_out").is_null());
  EXPECT_EQ(line_with("memory")["memory"]["limit_bytes"], 64 << 20) << "as it was";
}

TEST_F(NodeSamples, StatsTellsOfOneObjectWhateverItsKind) {
  make("later");
  ASSERT_EQ(tool.run({"seq", "create", "--at", address, "orders"}), kOk) << tool.err();
  ASSERT_EQ(run({"put", "a", "1"}), kOk);
  ASSERT_EQ(run({"stats", "--object", "default"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("map         default\nitems       1\n"));
  EXPECT_THAT(tool.out(), HasSubstr("\nversions    "));
  ASSERT_EQ(run({"stats", "--object", "orders", "--json"}), kOk) << tool.err();
  EXPECT_EQ(line_with("sequencer")["sequencer"], "orders");
  EXPECT_EQ(line_with("sequencer")["next"], 0);
  EXPECT_EQ(line_with("sequencer")["sealed"], false);
  ASSERT_EQ(run({"stats", "--object", "later"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("kind 200"));
  EXPECT_EQ(run({"stats", "--object", "none"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: error: the node at " + address +
                            " has no object 'none'\n  espalier list shows all that it has, with "
                            "kinds.\n");
  EXPECT_EQ(run({"stats", "--object", "a", "--map", "b"}), kUsage);
  EXPECT_EQ(run({"stats", "--object", "a", "--table", "b"}), kUsage);
  EXPECT_EQ(run({"stats", "--map", "a", "--table", "b"}), kUsage);
  EXPECT_EQ(run({"stats", "--object", ""}), kUsage);
  EXPECT_EQ(run({"stats", "--table", ""}), kUsage);
}

TEST_F(NodeSamples, TopGoesWithoutThoseOfADeviceAndOfANodeThatIsGone) {
  make("later");
  const Store store = *Store::connect(address);
  auto numbers = *needed_numbers_of(store, address);
  const auto of_node = samples_beside(numbers, store, address);
  ASSERT_TRUE(of_node && *of_node);
  EXPECT_EQ((*of_node)->objects.size(), 2u);
  numbers.set("device_round_trips", 1);
  const auto of_device = samples_beside(numbers, store, address);
  ASSERT_TRUE(of_device);
  EXPECT_FALSE(of_device->has_value()) << "its host's, and of its host's uptime";
  numbers.samples.clear();
  node.reset();
  const auto of_none = samples_beside(numbers, store, address);
  ASSERT_TRUE(of_none) << of_none.error().what;
  EXPECT_FALSE(of_none->has_value());
}

// node_stats is refused to such a client; each object is shown once all the same.
TEST_F(NodeSamples, StatsOfARoleForAPrefixTellsOfItsOwnObjects) {
  const std::string secrets = (folder / "secrets").string();
  std::ofstream(secrets) << "clerk read 0" << std::string(63, 'c') << " orders/*\n";
  ASSERT_EQ(::chmod(secrets.c_str(), 0600), 0);
  config.clients.secrets = secrets;
  node.reset();
  NodeTool::SetUp();
  for (const std::string prefix : {"", "orders/"}) {
    make(prefix + "later");
    ASSERT_EQ(run_map({"create", prefix + "map"}), kOk) << tool.err();
    ASSERT_EQ(tool.run({"seq", "create", "--at", address, prefix + "seq"}), kOk) << tool.err();
  }
  ASSERT_EQ(run({"stats", "--json", "--secret-file", secrets}), kOk) << tool.err();
  std::vector<std::string> shown;
  std::istringstream lines(tool.out());
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    for (const char* const member : {"map", "sequencer", "name"}) {
      if (object.contains(member)) shown.push_back(object[member]);
    }
  }
  EXPECT_EQ(shown, (std::vector<std::string>{"orders/map", "orders/seq", "orders/later"}));
}

TEST_F(NodeSamples, OfMoreObjectsThanFitTheLargestAreShown) {
  for (int i = 0; i < 300; ++i) make("o" + std::string(1 + i % 7, 'x') + std::to_string(i));
  ASSERT_EQ(run({"stats"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("\n\nleft out    45 objects that take less memory; --object "
                                    "NAME shows one\n\nall         "));
  ASSERT_EQ(run({"stats", "--json"}), kOk);
  EXPECT_EQ(line_with("objects_left_out")["objects_left_out"], 45);
  ASSERT_EQ(run({"top", "--once"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("\n... and those of 45 other objects\n"));
  ASSERT_EQ(run({"top", "--once", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["objects"].size(), 255u) << "and a map";
  EXPECT_EQ(object["objects_left_out"], 45);
  EXPECT_GT(object["memory"]["node_bytes"], 0);
  EXPECT_TRUE(object["memory"]["spare_bytes"].is_null()) << object["memory"];
}

TEST_F(NodeSamples, TopTellsOfKindsThatItDoesNotKnow) {
  make("odd\x1b\n")->lookups = 1234;
  ASSERT_EQ(run({"top", "--once"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("  odd\\x1b\\n: lookups (kind 200)\n"));
  EXPECT_THAT(tool.out(),
              HasSubstr("     3.0 KiB          -  odd\\x1b\\n: queued_bytes{queue=in} "));
  EXPECT_EQ(tool.out().find('\x1b'), std::string::npos);
  ASSERT_EQ(run({"top", "--once", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  ASSERT_EQ(object["objects"].size(), 1u);
  EXPECT_EQ(object["objects"][0]["name"], "odd\x1b\n");
  EXPECT_EQ(object["objects"][0]["samples"][3]["value"], 1234);
  EXPECT_GT(object["objects"][0]["samples"][3]["per_s"], 0);
  EXPECT_FALSE(object["objects"][0]["samples"][0].contains("per_s")) << "it rises and falls";
  EXPECT_EQ(object["objects_left_out"], 0);
  EXPECT_TRUE(object["memory"]["spare_bytes"].is_number()) << object["memory"];
}

TEST_F(NodeCommands, PingMeasuresRoundTrips) {
  tool.tick_ns = 2'500;  // each round trip takes one tick of this clock
  EXPECT_EQ(run({"ping", "--count", "200"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), address +
                            ": 200 round trips: min 2.5 us, median 2.5 us, 99 % 2.5 us, "
                            "max 2.5 us\n");
  EXPECT_EQ(run({"ping", "--count", "1", "--json"}), kOk);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["median_us"], 2.5);
  EXPECT_EQ(run({"ping", "--count", "0"}), kUsage);
  node.reset();
  EXPECT_EQ(run({"ping"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("no node listens at " + address));
}

TEST_F(NodeCommands, WhereNobodyListensThatIsSaid) {
  const std::string missing = "shm:" + (folder / "missing").string();
  for (const bool alone : {false, true}) {
    std::vector<std::string> arguments = {"get", "apple", "--at", missing};
    if (alone) arguments.emplace_back("--one-sided");
    EXPECT_EQ(tool.run(arguments), kFailed);
    EXPECT_THAT(tool.err(), HasSubstr("no node listens at " + missing));
    EXPECT_THAT(tool.err(), HasSubstr("Start one: espalier serve --node-fabric " + missing));
  }
}

}  // namespace
}  // namespace espalier::tools
