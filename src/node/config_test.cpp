// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>

#include "node/config_settings.hpp"
#include "node/testing/config_fixture.hpp"

namespace espalier::node {
namespace {

const std::string kFile(kDefaultFile);

std::string origin_of(const Loaded& loaded, std::string_view key) {
  for (std::size_t i = 0; i < settings().size(); ++i) {
    if (settings()[i].key == key) return loaded.origins[i];
  }
  return "no such key";
}

/// The load, which must be good.
Loaded load_good(const Machine& machine) {
  EXPECT_EQ(machine.problems(), "");
  auto loaded = machine.load();
  if (!loaded) return {};
  return std::move(*loaded);
}

TEST(Config, DefaultsAreThoseOfTheStruct) {
  const Loaded loaded = load_good(Machine{});
  Config expected;
  expected.node.socket = "/tmp/espalier-1000/espalier.sock";
  expected.memory.limit = std::uint64_t{6} << 30;
  EXPECT_EQ(loaded.config, expected);
  for (const std::string& origin : loaded.origins) EXPECT_EQ(origin, "default");
  EXPECT_EQ(loaded.map_origins,
            std::vector(1, std::vector<std::string>(map_settings().size(), "default")));
}

TEST(Config, TheSocketFollowsTheUser) {
  Machine machine;
  machine.environment = {{"XDG_RUNTIME_DIR", "/run/user/1000"}};
  EXPECT_EQ(load_good(machine).config.node.socket, "/run/user/1000/espalier.sock");
  machine.environment = {{"XDG_RUNTIME_DIR", "relative"}};
  EXPECT_EQ(load_good(machine).config.node.socket, "/tmp/espalier-1000/espalier.sock");
  machine.user_id = 0;
  machine.environment = {{"XDG_RUNTIME_DIR", "/run/user/0"}};
  EXPECT_EQ(load_good(machine).config.node.socket, "/run/espalier/espalier.sock");
  for (const std::uint64_t user : {0U, 1000U}) {
    machine.user_id = user;
    machine.environment = {{"XDG_RUNTIME_DIR", "/run/user/0"}, {"RUNTIME_DIRECTORY", "/run/a:/b"}};
    EXPECT_EQ(load_good(machine).config.node.socket, "/run/a/espalier.sock");
  }
}

TEST(Config, FlagsBeatVariablesBeatTheFileBeatsDefaults) {
  Machine machine;
  machine.files[kFile] = "[node]\nspin_us = 1\ncores = 2\npin = true\n";
  machine.environment = {{"ESPALIER_NODE_CORES", "3"}, {"ESPALIER_NODE_PIN", "off"}};
  machine.flags = {{"node.cores", "4"}};
  const Loaded loaded = load_good(machine);
  EXPECT_EQ(loaded.config.node.cores, 4u);
  EXPECT_EQ(loaded.config.node.pin, false);
  EXPECT_EQ(loaded.config.node.spin_us, 1u);
  EXPECT_EQ(loaded.config.node.sweep_ms, 10u);
  EXPECT_EQ(origin_of(loaded, "node.cores"), "flag --node-cores");
  EXPECT_EQ(origin_of(loaded, "node.pin"), "environment ESPALIER_NODE_PIN");
  EXPECT_EQ(origin_of(loaded, "node.spin_us"), "file /etc/espalier/espalier.toml:2");
  EXPECT_EQ(origin_of(loaded, "node.sweep_ms"), "default");
}

TEST(Config, EverySettingCanBeGivenInEveryWay) {
  for (const Setting& setting : settings()) {
    std::string value(setting.fallback);
    if (setting.rule.kind == Kind::path) value = "/x.sock";
    if (setting.rule.kind == Kind::fabric) value = "shm:/x roce://127.0.0.1/1";
    const auto parsed = parse_value(setting.rule, Text{value}, std::uint64_t{8} << 30);
    ASSERT_TRUE(parsed.has_value()) << setting.key;
    Machine by_file;
    by_file.files[kFile] = std::string(setting.key) + " = " + to_toml(setting.rule, *parsed);
    Machine by_variable;
    by_variable.environment = {{variable_name(setting.key), value}};
    Machine by_flag;
    by_flag.flags = {{std::string(setting.key), value}};
    for (const Machine* machine : {&by_file, &by_variable, &by_flag}) {
      const Loaded loaded = load_good(*machine);
      EXPECT_EQ(setting.get(loaded.config), *parsed) << setting.key;
      EXPECT_NE(origin_of(loaded, setting.key), "default") << setting.key;
    }
  }
}

TEST(Config, ADeviceHasAHostAndNoMaps) {
  Machine machine;
  machine.flags = {{"node.place", "device"}, {"node.host", "shm:/host"}};
  const Loaded loaded = load_good(machine);
  EXPECT_EQ(loaded.config.node.place, Place::device);
  EXPECT_EQ(loaded.config.node.host, "shm:/host");
  EXPECT_EQ(print(loaded).find("[[map]]"), std::string::npos);
  const auto refusal_with = [&](const FlagValue& flag) {
    Machine other = machine;
    std::erase_if(other.flags, [&](const FlagValue& each) { return each.key == flag.key; });
    other.flags.push_back(flag);
    const auto refused = other.load();
    return refused ? std::string() : describe(refused.error().at(0));
  };
  EXPECT_NE(refusal_with({"node.host", "none"}).find("a device needs one host"), std::string::npos);
  EXPECT_NE(refusal_with({"node.host", "shm:/a shm:/b"}).find("one host"), std::string::npos);
  EXPECT_NE(refusal_with({"map", "words"}).find("a device makes no maps"), std::string::npos);
  EXPECT_NE(refusal_with({"node.datagrams", "127.0.0.1"}).find("takes no datagrams"),
            std::string::npos);
  EXPECT_NE(refusal_with({"node.one_sided", "on"}).find("no memory of maps"), std::string::npos);
  EXPECT_NE(refusal_with({"node.shared_clock", "on"}).find("has no maps"), std::string::npos);
}

TEST(Config, TheFileIsTheOneThatIsNamed) {
  Machine machine;
  machine.files = {{kFile, "node.cores = 2"}, {"/a", "node.cores = 3"}, {"/b", "node.cores = 4"}};
  EXPECT_EQ(load_good(machine).config.node.cores, 2u);
  machine.environment = {{"ESPALIER_CONFIG", "/a"}};
  EXPECT_EQ(load_good(machine).config.node.cores, 3u);
  machine.flags = {{"config", "/b"}};
  EXPECT_EQ(load_good(machine).config.node.cores, 4u);
}

TEST(Config, AFileThatIsNamedMustBeThere) {
  Machine machine;
  machine.flags = {{"config", "/gone"}};
  EXPECT_EQ(machine.problems(),
            "flag --config: cannot read the file '/gone': there is none; "
            "name a file that exists and may be read, or none\n");
  machine.flags = {{"config", ""}};
  EXPECT_NE(machine.problems(), "");
  machine.flags.clear();
  machine.environment = {{"ESPALIER_CONFIG", ""}};
  EXPECT_TRUE(machine.problems().starts_with("environment ESPALIER_CONFIG: "));
  machine.environment.clear();
  machine.broken_files = {{kFile, Error{Code::system, 0, 13}}};
  EXPECT_NE(machine.problems().find("Permission denied"), std::string::npos);
}

TEST(Config, ProblemsSayWhereWhatAndWhatToDo) {
  Machine machine;
  machine.files[kFile] = "[node]\ncores = 65\n";
  EXPECT_EQ(machine.problems(),
            "file /etc/espalier/espalier.toml:2: node.cores cannot be 65; "
            "give a whole number from 1 to 64\n");
  machine.files.clear();
  machine.environment = {{"ESPALIER_MEMORY_LIMIT", "12X"}};
  EXPECT_EQ(machine.problems(),
            "environment ESPALIER_MEMORY_LIMIT: memory.limit cannot be '12X'; "
            "give a size from 64MiB to the machine's memory, or a percentage of that\n");
  machine.environment.clear();
  machine.flags = {{"node.socket", "/" + std::string(107, 'x')}};
  EXPECT_NE(machine.problems().find("which has 108 bytes"), std::string::npos);
  machine.flags = {{"node.socket", "/" + std::string(106, 'x')}};
  EXPECT_EQ(machine.problems(), "");
}

TEST(Config, AllProblemsAreTold) {
  Machine machine;
  machine.files[kFile] =
      "[node]\ncores = 0\npin = 1\n[metric]\nport = 1\n[log]\nlevel = \"loud\"\n"
      "[[map]]\n[[map]]\nname = \"a\"\nlog_bytes = 1\n[[map]]\nname = \"a\"\n";
  machine.environment = {{"ESPALIER_NODE_CORES", "x"}, {"ESPALIER_SOCKET", "/x"}};
  machine.flags = {{"node.cores", "4"}, {"node.cores", "5"}, {"nodes", ""}, {"map", "?"}};
  const auto loaded = machine.load();
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().size(), 12u) << machine.problems();
}

TEST(Config, UnknownNamesAreRefusedWithTheNearest) {
  const auto hint = [](Machine machine) {
    const auto loaded = machine.load();
    return loaded || loaded.error().size() != 1 ? "" : loaded.error().front().hint;
  };
  const auto of_file = [&](const std::string& text) {
    Machine machine;
    machine.files[kFile] = text;
    return hint(machine);
  };
  EXPECT_EQ(of_file("[node]\ncoers = 1"), "did you mean node.cores?");
  EXPECT_EQ(of_file("[node]\nlimit = 1"), "did you mean memory.limit?");
  EXPECT_EQ(of_file("cores = 1"), "did you mean node.cores?");
  EXPECT_EQ(of_file("[client]\nx = 1\ny = 1"), "did you mean [clients]?");
  EXPECT_EQ(of_file("[[maps]]\nname = 'a'"), "did you mean [[map]]?");
  EXPECT_EQ(of_file("[[map]]\nname = 'a'\nnode_byte = 1"), "did you mean node_bytes?");
  EXPECT_EQ(of_file("zebra = 1"), "take it away, or correct it; docs/configuration.md lists all");
  const auto of_variable = [&](const std::string& name) {
    Machine machine;
    machine.environment = {{name, "1"}};
    return hint(machine);
  };
  EXPECT_EQ(of_variable("ESPALIER_NODE_CORE"), "did you mean ESPALIER_NODE_CORES?");
  EXPECT_EQ(of_variable("ESPALIER_CORES"), "did you mean ESPALIER_NODE_CORES?");
  EXPECT_EQ(of_variable("ESPALIER_node_cores"), "did you mean ESPALIER_NODE_CORES?");
  EXPECT_EQ(of_variable("ESPALIER_MAP"), "did you mean ESPALIER_MAPS?");
  EXPECT_EQ(of_variable("ESPALIER_COMFIG"), "did you mean ESPALIER_CONFIG?");
  const auto of_flag = [&](const std::string& key) {
    Machine machine;
    machine.flags = {{key, "1"}};
    return hint(machine);
  };
  EXPECT_EQ(of_flag("node.coers"), "did you mean --node-cores?");
  EXPECT_EQ(of_flag("maps"), "did you mean --map?");
}

TEST(Config, HostileNamesAreShownHarmlessly) {
  Machine machine;
  machine.environment = {{"ESPALIER_\x1b[2J\n", "\x1b"}};
  machine.flags = {{"config", "/a\nb"}};
  machine.files["/a\nb"] = "\"\\u001b\" = 1\n[\"\\n\"]\n";
  for (const char c : machine.problems()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  EXPECT_EQ(machine.load().error().size(), 3u);
}

TEST(Config, MapsAreChosenByNameAndKeepTheirOptions) {
  Machine machine;
  machine.files[kFile] =
      "[[map]]\nname = 'a'\nnode_bytes = '4K'\nversions = false\n[[map]]\nname = 'b'\n";
  Loaded loaded = load_good(machine);
  ASSERT_EQ(loaded.config.maps.size(), 2u);
  EXPECT_EQ(loaded.config.maps[0].options.node_bytes, 4096u);
  EXPECT_EQ(loaded.config.maps[1], (MapConfig{"b", {}}));

  machine.environment = {{"ESPALIER_MAPS", "c,a"}};
  loaded = load_good(machine);
  ASSERT_EQ(loaded.config.maps.size(), 2u);
  EXPECT_EQ(loaded.config.maps[0], (MapConfig{"c", {}}));
  EXPECT_EQ(loaded.config.maps[1].name, "a");
  EXPECT_FALSE(loaded.config.maps[1].options.versions);
  EXPECT_EQ(loaded.map_origins[1][0], "environment ESPALIER_MAPS");
  EXPECT_EQ(loaded.map_origins[1][1], "file /etc/espalier/espalier.toml:3");
  EXPECT_EQ(loaded.map_origins[1][2], "default");

  machine.flags = {{"map", "d"}, {"map", "e"}};
  loaded = load_good(machine);
  ASSERT_EQ(loaded.config.maps.size(), 2u);
  EXPECT_EQ(loaded.config.maps[1].name, "e");
}

TEST(Config, PeersHaveAnAddressAndPerhapsAFile) {
  Machine machine;
  machine.files[kFile] =
      "[peers]\nb = 'shm:/run/b'\n'c.d' = 'roce://192.0.2.1/1  /etc/my secret'\ne='shm:/e none'\n";
  Loaded loaded = load_good(machine);
  EXPECT_EQ(loaded.config.peers,
            (std::vector<PeerConfig>{{"b", "shm:/run/b", ""},
                                     {"c.d", "roce://192.0.2.1/1", "/etc/my secret"},
                                     {"e", "shm:/e", ""}}));
  EXPECT_EQ(loaded.peer_origins[1], "file /etc/espalier/espalier.toml:3");
  machine.files[kFile] = print(loaded);
  EXPECT_EQ(load_good(machine).config, loaded.config);

  machine.environment = {{"ESPALIER_PEERS", "x=shm:/x /s,y=shm:/y"}};
  loaded = load_good(machine);
  EXPECT_EQ(loaded.config.peers,
            (std::vector<PeerConfig>{{"x", "shm:/x", "/s"}, {"y", "shm:/y", ""}}));
  EXPECT_EQ(loaded.peer_origins[1], "environment ESPALIER_PEERS");

  machine.flags = {{"peer", "z=shm:/z"}};
  loaded = load_good(machine);
  EXPECT_EQ(loaded.config.peers, (std::vector<PeerConfig>{{"z", "shm:/z", ""}}));
  EXPECT_EQ(loaded.peer_origins[0], "flag --peer");
}

TEST(Config, WhatIsWrongWithAPeerIsSaid) {
  const std::string hint =
      "; give an address of the fabric, such as roce://192.0.2.1/1, and behind a space the file "
      "with the name and secret by which this node comes there\n";
  const auto of_flag = [](const std::string& text) {
    Machine machine;
    machine.flags = {{"peer", text}};
    return machine.problems();
  };
  EXPECT_EQ(of_flag("b=nowhere"), "flag --peer: peers.b cannot have 'nowhere' in it" + hint);
  EXPECT_EQ(of_flag("b="), "flag --peer: peers.b cannot be ''" + hint);
  EXPECT_EQ(of_flag("b"),
            "flag --peer: 'b' names no address; give NAME=ADDRESS, and behind a "
            "space the file of the secret\n");
  EXPECT_NE(of_flag("b c=shm:/x"), "");
  EXPECT_NE(of_flag("=shm:/x"), "");
  Machine machine;
  machine.flags = {{"peer", "b=shm:/x"}, {"peer", "b=shm:/y"}};
  EXPECT_EQ(machine.problems(),
            "flag --peer: there are two peers 'b'; take one away, or give it another name\n");
  machine.flags.clear();
  machine.files[kFile] = "[peers]\nb = 7\n[peers.c]\naddress = 'shm:/x'\n[peer]\n";
  EXPECT_EQ(machine.problems(),
            "file /etc/espalier/espalier.toml:2: peers.b cannot be 7" + hint +
                "file /etc/espalier/espalier.toml:3: peers.c cannot be a table" + hint +
                "file /etc/espalier/espalier.toml:5: there is no section 'peer'; did you mean "
                "[peers]?\n");
  machine.files.clear();
  for (std::size_t i = 0; i <= kPeersMax; ++i) {
    EXPECT_EQ(machine.problems(), "");
    machine.flags.push_back({"peer", std::to_string(i) + "=shm:/x"});
  }
  EXPECT_EQ(machine.problems(), "flag --peer: there are more than 64 peers; name fewer\n");
  machine.flags = {{"peer", "b=shm:/x"}, {"node.place", "device"}, {"node.host", "shm:/h"}};
  EXPECT_EQ(machine.problems(),
            "flag --peer: a device has no peers but its host; name them at the host\n");
}

TEST(Config, MapsHaveGoodNamesOnce) {
  for (const char* wrong : {"", "a,", ",a", "a,,b", "a,a", "a b", "k\u00e4se"}) {
    Machine machine;
    machine.environment = {{"ESPALIER_MAPS", wrong}};
    EXPECT_NE(machine.problems(), "") << wrong;
  }
  Machine machine;
  machine.flags = {{"map", "a"}, {"map", "a"}};
  EXPECT_EQ(machine.problems(),
            "flag --map: there are two maps 'a'; take one away, or give it another name\n");
  machine.flags.clear();
  for (std::size_t i = 0; i < kMapsMax; ++i) machine.flags.push_back({"map", std::to_string(i)});
  EXPECT_EQ(machine.problems(), "");
  machine.flags.push_back({"map", "one-more"});
  EXPECT_NE(machine.problems(), "");
}

TEST(Config, AMachineOfUnknownMemoryNeedsASize) {
  Machine machine;
  machine.memory_bytes = 0;
  EXPECT_TRUE(machine.problems().starts_with("default: memory.limit cannot be '75%'"));
  machine.flags = {{"memory.limit", "2G"}};
  EXPECT_EQ(load_good(machine).config.memory.limit, std::uint64_t{2} << 30);
}

/// Holds that a node minds none of the variables that a file reads. Returns how many those are.
std::size_t expect_unminded(const std::filesystem::path& path, const std::regex& read) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::size_t found = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), read), end; at != end; ++at, ++found) {
    Machine machine;
    machine.environment = {{(*at)[1].str(), "1"}};
    EXPECT_EQ(machine.problems(), "") << path;
  }
  return found;
}

// Every variable that other parts of the project read: a node in their company must start.
TEST(Config, VariablesOfOthersAreNoMistakes) {
  const std::filesystem::path root = ESPALIER_SOURCE_DIR;
  const std::regex read("getenv\\(\"(ESPALIER_[A-Z_]+)\"\\)");
  std::size_t found = 0;
  for (const char* folder : {"src", "bench", "tests", "example"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      found += expect_unminded(entry.path(), read);
    }
  }
  EXPECT_GT(found, 0u);
  // Variables set for ./test or ./run reach the nodes that those start.
  const std::regex expanded("\\$\\{(ESPALIER_[A-Z_]+):?-");
  found = expect_unminded(root / "test", expanded);
  for (const auto& entry : std::filesystem::directory_iterator(root / "scripts")) {
    found += expect_unminded(entry.path(), expanded);
  }
  EXPECT_GT(found, 5u);
  Machine machine;
  machine.environment = {{"ESPALIER_AT", "unix:/run/espalier/espalier.sock"}};
  EXPECT_EQ(machine.problems(), "");
}

}  // namespace
}  // namespace espalier::node
