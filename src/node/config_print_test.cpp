// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "node/config_settings.hpp"
#include "node/testing/config_fixture.hpp"

namespace espalier::node {
namespace {

/// What the printed configuration is when it is read back on the same machine.
Config read_back(const Machine& machine, const std::string& text) {
  Machine again;
  again.user_id = machine.user_id;
  again.memory_bytes = machine.memory_bytes;
  again.flags = {{"config", "/printed"}};
  again.files["/printed"] = text;
  EXPECT_EQ(again.problems(), "") << text;
  const auto loaded = again.load();
  if (!loaded) return {};
  return loaded->config;
}

TEST(ConfigPrint, ShowsEveryValueWithItsOrigin) {
  Machine machine;
  machine.files["/etc/espalier/espalier.toml"] =
      "[metrics]\nport = 9100\n[[map]]\nname = \"a\"\nlog_bytes = 0\n";
  machine.environment = {{"ESPALIER_NODE_SPIN_US", "0"}};
  machine.flags = {{"node.cores", "4"}};
  const auto loaded = machine.load();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(print(*loaded),
            R"([node]
socket = "/tmp/espalier-1000/espalier.sock"  # default
socket_mode = "0600"                  # default
place = "host"                        # default
host = ""                             # default
secret_file = ""                      # default
cache = "64MiB"                       # default
balance = 0                           # default
fabric = ""                           # default
datagrams = ""                        # default
one_sided = false                     # default
shared_clock = false                  # default
cores = 4                             # flag --node-cores
helpers = 0                           # default
pin = false                           # default
spin_us = 0                           # environment ESPALIER_NODE_SPIN_US
sweep_ms = 10                         # default
sweep_asleep_ms = 1000                # default

[memory]
limit = "6GiB"                        # default, 75% of this machine
huge_pages = true                     # default

[clients]
secrets = ""                          # default
open = false                          # default
connections_max = 10000               # default
principal_connections_max = 0         # default
ring_bytes_max = "0B"                 # default
in_flight_max = 256                   # default
response_bytes_max = "4MiB"           # default
message_bytes_max = "256MiB"          # default
stuck_seconds = 30                    # default
resume_seconds = 60                   # default

[data]
dir = ""                              # default
log_bytes_max = "16GiB"               # default
checkpoint_log_bytes = "1GiB"         # default
waiting_max = 1024                    # default
durability = "sync"                   # default
async_ms = 1000                       # default
on_log_error = "serve"                # default
persistent_memory = false             # default
persistent_regions = false            # default

[metrics]
port = 9100                           # file /etc/espalier/espalier.toml:2

[log]
level = "info"                        # default

[[map]]
name = "a"                            # file /etc/espalier/espalier.toml:4
node_bytes = "8KiB"                   # default
log_bytes = "0B"                      # file /etc/espalier/espalier.toml:5
versions = true                       # default
snapshot_bytes_max = "256MiB"         # default
)");
  EXPECT_EQ(read_back(machine, print(*loaded)), loaded->config);
}

TEST(ConfigPrint, WhatWasPrintedReadsBackTheSame) {
  Machine machine;
  machine.memory_bytes = (std::uint64_t{16} << 30) + 12'345;  // shares of it are no round sizes
  machine.flags = {{"config", "/with\nnewline\xff"},
                   {"node.socket", "/k\u00e4se \"quoted\" \\ #.sock"},
                   {"memory.limit", "33%"},
                   {"log.level", "error"},
                   {"memory.huge_pages", "no"},
                   {"clients.response_bytes_max", "65537"},
                   {"map", "a"},
                   {"map", "b"}};
  machine.files["/with\nnewline\xff"] =
      "node.pin = true\n[[map]]\nname = 'b'\nnode_bytes = 512\nversions = false\n"
      "snapshot_bytes_max = 1\n";
  const auto loaded = machine.load();
  ASSERT_TRUE(loaded.has_value()) << machine.problems();
  EXPECT_EQ(read_back(machine, print(*loaded)), loaded->config);
}

/// The cells of a row of a table in Markdown, in one text.
std::string row_of(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\n| `" + key + "` |");
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(ConfigDocument, HasEverySettingAsTheTableHasIt) {
  std::ifstream in(std::string(ESPALIER_SOURCE_DIR) + "/docs/configuration.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto expect_row = [&](const auto& setting) {
    const std::string key(setting.key);
    const std::string what(setting.what);
    EXPECT_EQ(row_of(text, key), "| `" + key + "` | `" + std::string(setting.fallback) + "` | " +
                                     allowed(setting.rule) + " | " + what + " |");
  };
  for (const Setting& setting : settings()) expect_row(setting);
  for (const MapSetting& setting : map_settings()) expect_row(setting);
}

}  // namespace
}  // namespace espalier::node
