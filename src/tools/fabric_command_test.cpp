// SPDX-License-Identifier: Apache-2.0
// `espalier fabric`: one command serves on a thread of its own, others try it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "tools/testing/fabric_serving_fixture.hpp"
#include "tools/testing/tool_fixture.hpp"
#include "wire/fabric_greeting.hpp"

namespace espalier::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FabricCommandConcurrency : public ::testing::TestWithParam<const char*> {
 protected:
  FabricCommandConcurrency() { tool.has_fabric = true; }

  [[nodiscard]] std::string where() const {
    const std::string transport = GetParam();
    if (transport == "ofi") return "ofi://tcp/127.0.0.1:0";
    if (transport == "roce") return "roce://127.0.0.1:0/3";
    return transport + ":" + (folder / "s").string();
  }
  /// Runs "fabric", a verb, the address, and the rest.
  int run(const std::string& verb, const std::string& address,
          const std::vector<std::string>& rest = {}) {
    std::vector<std::string> words{"fabric", verb, address};
    words.insert(words.end(), rest.begin(), rest.end());
    return tool.run(words);
  }

  base::TemporaryFolder folder;
  Tool tool;
};

TEST_P(FabricCommandConcurrency, PingsByEveryVerb) {
  Serving serving({where()}, "");
  ASSERT_THAT(serving.said(), StartsWith("listening at ")) << serving.tool().err();
  EXPECT_THAT(serving.said(), HasSubstr("offering 1048576 bytes, zeroed, to read, write and add"));
  const std::string at = serving.address();
  for (const std::string verb : {"read", "write", "send", "fetch-add"}) {
    ASSERT_EQ(run("ping", at, {"--verb", verb, "--count", "50", "--in-flight", "3", "--json"}), kOk)
        << verb << tool.err();
    const auto object = nlohmann::json::parse(tool.out());
    EXPECT_EQ(object["at"], at);
    EXPECT_EQ(object["verb"], verb);
    EXPECT_EQ(object["bytes"], 8);
    EXPECT_EQ(object["in_flight"], 3);
    EXPECT_EQ(object["count"], 50);
    EXPECT_GE(object["max_us"], object["min_us"]);
  }
  EXPECT_EQ(run("ping", at, {"--count", "1", "--bytes", "100"}), kOk);
  EXPECT_EQ(tool.out(), at + ": 1 round trip, read of 100 bytes: min 1000.0 us, median 1000.0 us, "
                             "99 % 1000.0 us, max 1000.0 us\n");
  EXPECT_EQ(run("ping", at, {"--bytes", "9", "--verb", "fetch-add"}), kUsage);
  EXPECT_EQ(run("ping", at, {"--bytes", "0"}), kUsage);
  EXPECT_EQ(run("ping", at, {"--bytes", "17K", "--verb", "send"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("Give --bytes 16384 or less."));
  EXPECT_EQ(run("ping", at, {"--bytes", "1G"}), kUsage);
  EXPECT_EQ(run("ping", at, {"--bytes", "1048577"}), kFailed);
  EXPECT_THAT(tool.err(), AllOf(HasSubstr("more than the region of 1048576 has (remote_access)"),
                                HasSubstr("Give --bytes 1048576 or less.")));
  EXPECT_EQ(serving.stop(), kOk);
  EXPECT_THAT(serving.tool().out(), HasSubstr("\nstopped (SIGTERM): "));
  EXPECT_THAT(serving.tool().out(), HasSubstr("; 51 messages sent back, 408 B\n"));
}

/// The beginning of what is offered there, by a READ.
std::string first_bytes(const std::string& address, std::size_t count) {
  const auto opened =
      fabric::open_for_connecting(*fabric::parse(address), *fabric::RegionTable::create());
  EXPECT_TRUE(opened);
  fabric::CompletionQueue queue(*opened->endpoint, 16);
  fabric::QueuePairOptions options;
  options.sends = &queue;
  const auto pair = opened->endpoint->connect(opened->target, options, {});
  EXPECT_TRUE(pair);
  while ((*pair)->state() == fabric::QueuePair::State::connecting) {
    opened->endpoint->progress();
    opened->endpoint->wait(1'000'000'000);
  }
  wire::FabricGreeting greeting{};
  EXPECT_GE((*pair)->peer_data().size(), sizeof greeting);
  std::memcpy(&greeting, (*pair)->peer_data().data(), sizeof greeting);
  std::string bytes(count, '?');
  EXPECT_EQ((*pair)
                ->post(fabric::WorkRequest::read(0, std::as_writable_bytes(std::span(bytes)),
                                                 greeting.key, greeting.base))
                .taken,
            1u);
  fabric::Completion done;
  while (queue.poll({&done, 1}) == 0) opened->endpoint->wait(1'000'000'000);
  EXPECT_EQ(done.status, fabric::Status::success);
  return bytes;
}

TEST_P(FabricCommandConcurrency, AFileCanBeOfferedToBeReadOnly) {
  Serving serving({where(), "--file", "content", "--read-only", "--seconds", "7"}, "0123456789");
  EXPECT_THAT(serving.said(), HasSubstr("offering 10 bytes, those of content, to read;"));
  EXPECT_EQ(serving.waited_at_most_ns(), 7'000'000'000u);
  const std::string at = serving.address();
  EXPECT_EQ(first_bytes(at, 10), "0123456789");
  EXPECT_EQ(run("ping", at, {"--verb", "write"}), kFailed);
  EXPECT_EQ(tool.err(), "espalier: error: the region at " + at +
                            " is read-only (remote_access)\n  Start espalier fabric serve without "
                            "--read-only, if it may be changed.\n");
  EXPECT_EQ(run("ping", at, {"--verb", "fetch-add"}), kFailed);
  EXPECT_EQ(run("ping", at, {"--verb", "send", "--count", "3"}), kOk) << tool.err();
  EXPECT_EQ(serving.stop(), kOk);
  EXPECT_THAT(serving.tool().out(), HasSubstr("\nstopped (the time is over): "));
}

TEST_P(FabricCommandConcurrency, ALostPeerIsAnError) {
  Serving serving({where()});
  const std::string at = serving.address();
  tool.at_tick = [&] { serving.stop(); };
  EXPECT_EQ(run("ping", at, {"--verb", "send", "--count", "1000"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("Look whether espalier fabric serve still runs there."));
  tool.at_tick = nullptr;
  EXPECT_EQ(run("ping", at), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("Start one: espalier fabric serve " + at));
}

TEST_P(FabricCommandConcurrency, TwoCannotListenAtOnePlace) {
  Serving serving({where()});
  Serving second({serving.address()});
  EXPECT_EQ(second.stop(), kFailed);
  EXPECT_THAT(second.tool().err(), HasSubstr("somebody listens at " + serving.address()));
}

/// Connects, sends as much as it may, and goes without a look at what comes back.
void send_and_leave(const std::string& address) {
  const std::vector<std::byte> message(5000);  // outlives what sends it
  const auto opened =
      fabric::open_for_connecting(*fabric::parse(address), *fabric::RegionTable::create());
  ASSERT_TRUE(opened);
  fabric::CompletionQueue queue(*opened->endpoint, 256);
  fabric::QueuePairOptions options;
  options.sends = &queue;
  options.send_depth = 128;
  options.receive_depth = 1;
  const auto pair = opened->endpoint->connect(opened->target, options, {});
  ASSERT_TRUE(pair);
  const fabric::WorkRequest request = fabric::WorkRequest::send(0, message);
  for (int i = 0; i < 100; ++i) ASSERT_EQ((*pair)->post(request).taken, 1u);
  fabric::Completion first;
  while (queue.poll({&first, 1}) == 0) opened->endpoint->wait(1'000'000'000);
  EXPECT_EQ(first.status, fabric::Status::success);
}

TEST_P(FabricCommandConcurrency, WhoLeavesInTheMiddleTakesNothingAlong) {
  Serving serving({where()});
  for (int i = 0; i < 5; ++i) send_and_leave(serving.address());
  EXPECT_EQ(run("ping", serving.address(), {"--verb", "send", "--in-flight", "64"}), kOk)
      << tool.err();
  EXPECT_EQ(serving.stop(), kOk);
  EXPECT_THAT(serving.tool().out(), HasSubstr("6 connections, 0 turned away"));
}

/// Accepts once, with this greeting, or rejects; until the asking side has gone.
void answer(fabric::Endpoint& endpoint, std::span<const std::byte> greeting, bool accept,
            const std::atomic<bool>& over) {
  fabric::CompletionQueue queue(endpoint, 4);
  fabric::QueuePairOptions options;
  options.sends = &queue;
  options.send_depth = options.receive_depth = 1;
  std::unique_ptr<fabric::QueuePair> pair;
  while (!over.load()) {
    endpoint.progress();
    if (const auto request = endpoint.next_request()) {
      if (!accept) {
        endpoint.reject(*request);
      } else if (auto accepted = endpoint.accept(*request, options, greeting)) {
        pair = std::move(*accepted);
      }
    }
    endpoint.wait(1'000'000'000);
  }
}

TEST_P(FabricCommandConcurrency, WhoeverElseListensIsNotMistaken) {
  const auto listening =
      fabric::open_for_listening(*fabric::parse(where()), *fabric::RegionTable::create());
  ASSERT_TRUE(listening);
  const std::string at = fabric::to_text(listening->address);
  const auto ask = [&](std::span<const std::byte> greeting, bool accept) {
    std::atomic<bool> over{false};
    std::thread thread([&] { answer(*listening->endpoint, greeting, accept, over); });
    EXPECT_EQ(run("ping", at), kFailed);
    over.store(true);
    listening->endpoint->wake();
    thread.join();
    return tool.err();
  };
  EXPECT_THAT(ask({}, false), HasSubstr("lets nobody in there"));
  EXPECT_THAT(ask({}, true), HasSubstr("is no espalier fabric serve"));
  wire::FabricGreeting greeting{};
  greeting.magic = wire::kFabricGreetingMagic;
  greeting.version = wire::kFabricGreetingVersion + 1;
  const auto bytes = std::as_bytes(std::span(&greeting, 1));
  EXPECT_THAT(ask(bytes.first(7), true), HasSubstr("is no espalier fabric serve"));
  EXPECT_THAT(ask(bytes, true), HasSubstr("greets in version 2, and this command knows 1"));
  // A key that was never issued.
  greeting.version = wire::kFabricGreetingVersion;
  greeting.bytes = 1 << 20;
  greeting.rights = 7;
  greeting.key = 12345;
  EXPECT_THAT(ask(bytes, true), HasSubstr("does not offer this region any more (remote_access)"));
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricCommandConcurrency,
                         ::testing::Values("shm", "roce", "roce+memif", "ofi"),
                         [](const auto& each) {
                           const std::string name(each.param);
                           return name.substr(name.find('+') + 1);
                         });

TEST(FabricCommand, GarbageIsRefusedInWords) {
  Tool tool;
  tool.has_fabric = true;
  for (const std::string command : {"serve", "ping"}) {
    EXPECT_EQ(tool.run({"fabric", command, "10.0.0.1"}), kUsage);
    EXPECT_EQ(tool.err(),
              "espalier: error: '10.0.0.1' is no address of the fabric\n"
              "  An address is shm:PATH, roce://HOST[:PORT]/SERVICE, "
              "roce+memif:PATH[,link=LINK][,service=SERVICE], "
              "roce+xdp://INTERFACE/HOST[:PORT]/SERVICE or ofi://PROVIDER/HOST[:PORT].\n");
    EXPECT_EQ(tool.run({"fabric", command, ""}), kUsage);
    EXPECT_EQ(tool.run({"fabric", command, "{\x1b"}), kUsage);
    EXPECT_THAT(tool.err(), HasSubstr("'{\\x1b' is no address"));
    EXPECT_EQ(tool.run({"fabric", command}), kUsage);
  }
  EXPECT_EQ(tool.run({"fabric"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "png"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("Did you mean ping?"));
  EXPECT_EQ(tool.run({"fabric", "ping", "shm:/s", "--verb", "shout"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "ping", "shm:/s", "--in-flight", "65"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "ping", "roce://127.0.0.1:0/1"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("give the port that they have told"));
  EXPECT_EQ(tool.run({"fabric", "ping", "roce://127.0.0.1/1", "--local", "::1"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "ping", "roce://127.0.0.1/1", "--local", "here"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "ping", "shm:/s", "--local", "127.0.0.1"}), kUsage);
  EXPECT_EQ(tool.run({"fabric", "ping", "roce://127.0.0.1/1", "--local", "192.0.2.1"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("not of this machine"));
  EXPECT_EQ(tool.out(), "");
}

TEST(FabricCommand, SaysWhatCannotBeOffered) {
  const base::TemporaryFolder folder;
  const std::string at = "shm:" + (folder / "s").string();
  const auto wrong = [](std::vector<std::string> arguments, const std::string& content = "") {
    Serving serving(std::move(arguments), content);
    EXPECT_NE(serving.stop(), kOk);
    EXPECT_EQ(serving.said(), "");
    return serving.tool().err();
  };
  EXPECT_THAT(wrong({at, "--file", "content"}), HasSubstr("'content' is empty"));
  EXPECT_THAT(wrong({at, "--file", "none"}), HasSubstr("cannot read 'none': No such file"));
  EXPECT_THAT(wrong({at, "--file", "content", "--bytes", "2"}, "abc"),
              HasSubstr("'content' is longer than 2 bytes"));
  EXPECT_THAT(wrong({at, "--bytes", "0"}), HasSubstr("there is nothing to offer"));
  EXPECT_THAT(wrong({at, "--bytes", "8192G", "--seconds", "0"}), HasSubstr("--seconds"));
  EXPECT_THAT(wrong({"shm:" + (folder / "none/s").string()}), HasSubstr("cannot listen at shm:"));
  EXPECT_THAT(wrong({"roce://192.0.2.1/1"}), HasSubstr("is no address of this machine"));
  EXPECT_THAT(wrong({"roce+xdp://nonesuch0/192.0.2.1/1"}),
              HasSubstr("there is no such network interface"));
  EXPECT_THAT(wrong({"ofi://nonesuch/127.0.0.1:0"}), HasSubstr("no provider of this name"));
}

TEST(FabricCommand, NothingIsOpenedThatTheEnvironmentDoesNotGive) {
  Tool tool;
  EXPECT_EQ(tool.run({"fabric", "ping", "shm:/s"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("cannot connect to shm:/s"));
  EXPECT_EQ(tool.run({"fabric", "serve", "shm:/s"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("nobody could stop it"));
}

}  // namespace
}  // namespace espalier::tools
