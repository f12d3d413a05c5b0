// SPDX-License-Identifier: Apache-2.0
// For tests: the data folder of a stopped node of this process, and a log of any bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "log/log.hpp"
#include "log/posix_folder.hpp"
#include "log/store_file.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {

class DataTool : public NodeTool {
 protected:
  static constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 18;

  DataTool() {
    config.data.dir = (folder / "data").string();
    options_.segment_bytes = kSegmentBytes;
    options_.data_mistake = &mistake_;
    tool.has_data = true;
  }
  void SetUp() override { start(); }

  void start() {
    node.reset();
    mistake_.clear();
    auto started = node::Node::start(config, options_);
    ASSERT_TRUE(started) << message(started.error()) << mistake_;
    node = std::move(*started);
    address = "unix:" + config.node.socket;
  }
  void stop() { node.reset(); }
  /// Why a node does not start with the folder.
  std::string refusal() {
    mistake_.clear();
    EXPECT_FALSE(node::Node::start(config, options_));
    return mistake_;
  }
  Store connect() { return *Store::connect(address); }

  /// Some records of each kind that makes some.
  void fill() {
    Store store = connect();
    auto map = *store.open_map("default");
    ASSERT_TRUE(map.put("greeting", "hello"));
    ASSERT_TRUE(map.put("gone", ""));
    ASSERT_TRUE(map.erase("gone"));
    auto hash = *store.create_hash_map("hashed\n\x1b[31m");
    ASSERT_TRUE(hash.put(std::string_view("k\0\xff", 3), "12345"));
    auto numbers = *store.create_sequencer("numbers", 100);
    ASSERT_TRUE(numbers.take(7));
    ASSERT_TRUE(store.sequence("counter", 5));
    auto table = *store.create_table("rows", *Schema::parse("a i64 not null, t text(8)"));
    RowWriter writer = table.writer();
    ASSERT_TRUE(writer.add(std::int64_t{41}, "x"));
    ASSERT_TRUE(writer.add(std::int64_t{42}, "y"));
    ASSERT_TRUE(writer.commit());
    ASSERT_TRUE(store.create_map("dropped"));
    ASSERT_TRUE(store.drop_map("dropped"));
  }

  [[nodiscard]] std::string dir() const { return config.data.dir; }
  /// The segments, by ascending numbers.
  [[nodiscard]] std::vector<std::string> segments() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir() + "/log")) {
      if (entry.path().extension() == log::kInUse) found.push_back(entry.path().string());
    }
    std::ranges::sort(found);
    return found;
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  /// Appends records of any bytes to the log.
  void append(const std::vector<std::string>& records) {
    stop();
    log::PosixFolder folder_of_store(dir());
    log::PosixFolder folder_of_log(dir() + "/log");
    log::LogOptions options;
    options.recovery.node = *log::open_store_file(folder_of_store, 1);
    options.writer.segment_bytes = kSegmentBytes;
    options.threads = false;
    const auto ignore = [](std::uint64_t, std::span<const std::byte>) { return Result<void>(); };
    const auto log = log::Log::open(folder_of_log, options, ignore);
    ASSERT_TRUE(log) << log::message(log.error());
    for (const std::string& record : records) {
      const auto room = (*log)->writer().reserve(record.size());
      ASSERT_TRUE(room);
      if (!record.empty()) std::memcpy(room->data(), record.data(), record.size());
      (*log)->writer().append(*room);
    }
    ASSERT_TRUE((*log)->close());
  }

  node::NodeOptions options_;
  std::string mistake_;
};

}  // namespace espalier::tools
