// SPDX-License-Identifier: Apache-2.0
#include "tools/data_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <sstream>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class DataPlace : public ::testing::Test {
 protected:
  /// What is wrong with these options, in one text.
  std::string wrong(const SourceOptions& options) {
    const auto checked = check_source(environment, options);
    return checked ? "" : checked.error().what + " / " + checked.error().hint;
  }

  MemorySource input{""};
  MemoryFiles files;
  std::ostringstream out;
  std::ostringstream err;
  Environment environment{
      .input = input, .out = out, .err = err, .files = files, .now_ns = [] { return 0; }};
};

TEST_F(DataPlace, IsInFilesOrOnANode) {
  SourceOptions options;
  EXPECT_THAT(wrong(options), HasSubstr("no data to work on"));
  options.at = "unix:/n";
  EXPECT_EQ(wrong(options), "");
  EXPECT_EQ(data_address(environment, options), "unix:/n");
  options.files = {"a"};
  EXPECT_EQ(wrong(options),
            "the data is either in files or on a node / Give --file or --at, not both; "
            "ESPALIER_AT counts only without --file.");
  options.at.reset();
  EXPECT_EQ(wrong(options), "");
  EXPECT_EQ(data_address(environment, options), std::nullopt);
  options.map_name = "m";
  EXPECT_THAT(wrong(options), HasSubstr("--map names a map of a node"));
}

TEST_F(DataPlace, TheVariableCountsWithoutFilesOnly) {
  environment.variables = {{"ESPALIER_AT", "unix:/v"}};
  SourceOptions options;
  options.map_name = "m";
  EXPECT_EQ(wrong(options), "");
  EXPECT_EQ(data_address(environment, options), "unix:/v");
  options.at = "unix:/n";
  EXPECT_EQ(data_address(environment, options), "unix:/n");
  options = {};
  options.files = {"a"};
  EXPECT_EQ(wrong(options), "");
  EXPECT_EQ(data_address(environment, options), std::nullopt);
  EXPECT_EQ(load_address(environment, options), "unix:/v");
  environment.variables = {{"ESPALIER_AT", ""}};
  options.files.clear();
  EXPECT_THAT(wrong(options), HasSubstr("no data to work on"));
}

TEST_F(DataPlace, AnAddressIsThePathOfASocket) {
  SourceOptions options;
  for (const std::string bad : {"", "unix:", "/run/x", "embedded", "tcp:host:1"}) {
    options.at = bad;
    EXPECT_THAT(wrong(options), HasSubstr("is no address of a node")) << bad;
    const auto refused = required_address(environment, bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_THAT(refused.error().hint, HasSubstr("Give unix:PATH, shm:PATH, roce://HOST")) << bad;
  }
  EXPECT_EQ(required_address(environment, "unix:/n").value(), "unix:/n");
  EXPECT_EQ(required_address(environment, std::nullopt).error().exit_code, kUsage);
  environment.variables = {{"ESPALIER_AT", "unix:/v"}};
  EXPECT_EQ(required_address(environment, std::nullopt).value(), "unix:/v");
}

TEST_F(DataPlace, StandardInputIsReadOnce) {
  SourceOptions options;
  options.files = {"a", "-"};
  EXPECT_EQ(wrong(options), "");
  options.files = {"-", "-"};
  EXPECT_NE(wrong(options), "");
  EXPECT_FALSE(check_load_source(environment, options));
}

TEST_F(DataPlace, SaysWhyANodeCannotBeReached) {
  const auto why = [&](Error error) {
    environment.connect = [error](const std::string&, const StoreOptions&) {
      return std::unexpected(error);
    };
    const Failure failure = connect(environment, "unix:/n").error();
    return failure.what + " / " + failure.hint;
  };
  EXPECT_EQ(why({Code::system, 0, ENOENT}),
            "no node listens at unix:/n / Start one: espalier serve --node-socket /n");
  EXPECT_EQ(why({Code::system, 0, ECONNREFUSED}), why({Code::system, 0, ENOENT}));
  EXPECT_THAT(why({Code::system, 0, EACCES}), HasSubstr("not allowed to connect to unix:/n"));
  EXPECT_THAT(why({Code::invalid_argument, 0, 107}), HasSubstr("a path may have 107"));
  EXPECT_THAT(why({Code::unsupported, 0, 1}), HasSubstr("cannot connect to unix:/n: "));
}

TEST(DataPlaceOfCommands, OptionsWithoutMeaningAreRefused) {
  Tool tool;
  tool.files.contents["a.csv"] = "a,1\n";
  const auto refused = [&](std::vector<std::string> words, const std::string& what) {
    words.insert(words.end(), {"--at", "unix:/n"});
    EXPECT_EQ(tool.run(words), kUsage) << words.front();
    EXPECT_THAT(tool.err(), HasSubstr(what));
  };
  refused({"get", "k", "--format", "csv"}, "--format says how files are read");
  refused({"scan", "--memory-max", "1G"}, "--memory-max says how files are read");
  refused({"put", "k", "v", "--dry-run"}, "--dry-run is for files");
  refused({"put", "k", "v", "--create"}, "--create is for files");
  refused({"erase", "k", "--drop-bad-lines"}, "--drop-bad-lines is for files");
  refused({"load", "a.csv", "--node-bytes", "512"}, "--node-bytes says what a new map is like");
  refused({"load"}, "no data to work on");
  // Output options apply to a node's map as well; only the node is missing.
  EXPECT_EQ(tool.run({"export", "--at", "unix:/n", "--to", "csv", "--separator", ";"}), kFailed);
  EXPECT_EQ(tool.run({"load", "a.csv", "--format", "csv", "--at", "unix:/n"}), kFailed);
}

// What can carry a key is said, whatever listens there.
TEST(DataPlaceOfCommands, ReadsByKeyNeedAWayOfPackets) {
  Tool tool;
  tool.connect = [](const std::string& where, const StoreOptions& options) {
    EXPECT_EQ(options.access, Access::in_network);
    return Store::connect(where, options);
  };
  for (const std::string address : {"shm:/n", "unix:/n", "ofi://tcp/127.0.0.1:7"}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"get", "k"}, std::vector<std::string>{"scan"}}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--at", address, "--in-network"});
      EXPECT_EQ(tool.run(all), kFailed) << address;
      EXPECT_THAT(tool.err(), HasSubstr("no READ to " + address + " can carry a key"));
      EXPECT_THAT(tool.err(), HasSubstr("--node-fabric roce+memif:PATH --node-one-sided on"));
      EXPECT_THAT(tool.err(), HasSubstr("give --at roce+memif:PATH, the node's or a switch's"));
    }
  }
  EXPECT_EQ(tool.run({"get", "k", "--at", "unix:/n", "--in-network", "--one-sided"}), kUsage);
}

TEST(DataPlaceOfCommands, DatagramsNeedANodeThatTakesThem) {
  Tool tool;
  tool.connect = [](const std::string&, const StoreOptions& options) -> Result<Store> {
    EXPECT_EQ(options.access, Access::datagram);
    return fail(Code::unsupported);
  };
  EXPECT_EQ(tool.run({"get", "k", "--at", "unix:/n", "--datagram"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("the node at unix:/n takes no datagrams"));
  EXPECT_THAT(tool.err(), HasSubstr("--node-datagrams HOST:PORT"));
  tool.files.contents["a.csv"] = "a,1\n";
  EXPECT_EQ(tool.run({"get", "k", "--file", "a.csv", "--datagram"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--datagram asks a node, and no node is given"));
  for (const char* other : {"--one-sided", "--in-network"}) {
    EXPECT_EQ(tool.run({"get", "k", "--at", "unix:/n", "--datagram", other}), kUsage);
    EXPECT_THAT(tool.err(), HasSubstr(std::string("--datagram excludes ") + other));
  }
}

}  // namespace
}  // namespace espalier::tools
