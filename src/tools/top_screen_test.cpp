// SPDX-License-Identifier: Apache-2.0
// Pictures of `espalier top`, letter by letter.
#include "tools/top_screen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/random.hpp"
#include "base/utf8.hpp"
#include "cmdline/text_codec.hpp"
#include "node/testing/metrics_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

node::NodeNumbers screen_numbers() {
  node::NodeNumbers numbers;
  numbers.version = "0.1.0";
  numbers.uptime_ns = std::uint64_t{3723} * 1'000'000'000;
  node::set(numbers, {{"memory_taken_bytes", std::uint64_t{1} << 30},
                      {"memory_limit_bytes", std::uint64_t{8} << 30},
                      {"long_message_limit_bytes", std::uint64_t{256} << 20},
                      {"epoch_current", 1234},
                      {"epoch_oldest", 1200},
                      {"epoch_participants", 6},
                      {"epoch_participants_limit", 256},
                      {"ring_bytes", 3 << 20},
                      {"ring_limit_bytes", std::uint64_t{2} << 30},
                      {"pending_connections", 4}});
  numbers.workers = {{3, 2, 3723, 3723}, {0, 1, 0, 0}};
  numbers.sampled.count = 1;
  numbers.sampled.objects = {
      node::object_of(ObjectKind::map, 1, "pairs", {{"retired_bytes", 1 << 20}, {"snapshots", 1}})};
  return numbers;
}

/// A node that serves two maps.
TopView some_view() {
  TopView view;
  view.numbers = screen_numbers();
  view.seconds = 1;
  view.requests_per_s = 1'234'567;
  view.refused_per_s = 2;
  view.client_wakes_per_s = 12;
  view.sleeps_per_s = 1;
  view.wake_ups_per_s = 1;
  view.in_flight = 3;
  view.connections = 3;
  view.node_bytes = std::uint64_t{900} << 20;
  view.value_bytes = std::uint64_t{10} << 20;
  view.retired_bytes = std::uint64_t{1} << 20;
  view.spare_bytes = std::uint64_t{113} << 20;
  view.offloads = {{"put", 234'567, 100'000'000, 900.0, 768, 4096},
                   {"get", 1'000'000, 5'000'000, 412.0, 384, 1024},
                   {"object_list", 0, 1, {}, {}, {}},
                   {"noop", 0, 0, {}, {}, {}}};
  const MapRates words{"words",
                       node::object_of(ObjectKind::map, 1, "words",
                                       {{"items", 663'473},
                                        {"leaves", 3'800},
                                        {"interior_nodes", 12},
                                        {"height", 3},
                                        {"node_bytes", 29'000'000}}),
                       0, 44.1, 0};
  const MapRates pairs{"pairs",
                       node::object_of(ObjectKind::map, 2, "pairs",
                                       {{"items", 10'000'000},
                                        {"leaves", 56'000},
                                        {"interior_nodes", 230},
                                        {"height", 3},
                                        {"node_bytes", 440'000'000},
                                        {"retired_bytes", 1 << 20},
                                        {"snapshots", 1}}),
                       234'567, 44.1, 7};
  view.maps = {words, pairs};
  return view;
}

std::string joined_lines(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) text += line.text + "\n";
  return text;
}

std::string drawn(const TopView& view, ScreenSize size, TopSort sort = TopSort::activity,
                  std::string_view trouble = {}) {
  return joined_lines(draw_top(view, {"unix:/tmp/node.sock", sort, trouble}, size));
}

TEST(TopScreen, ShowsAccessControlWhereThereIsAny) {
  TopView view = some_view();
  EXPECT_EQ(drawn(view, {80, 24}).find("access"), std::string::npos);
  view.numbers.set("authentications", 7, "timed_out");
  view.numbers.set("pending_peers", 3);
  view.authenticated_per_s = 5;
  view.rejected_per_s = 1000;
  view.denied_per_s = 12;
  EXPECT_NE(drawn(view, {80, 24})
                .find("\naccess    5 /s authenticated, 1.00 k /s not, 3 pending; 12 /s requests "
                      "denied\nworkers "),
            std::string::npos);
}

TEST(TopScreen, FitsTheUsualTerminal) {
  EXPECT_EQ(drawn(some_view(), {80, 24}),
            R"(espalier 0.1.0 at unix:/tmp/node.sock, up 1:02:03; rates of the last 1.0 s
requests  1.23 M /s, 3 in flight; 2 /s refused, 0 /s found without a doorbell
clients   3 connected, 12 /s woken, 0 /s turned away
rings     3.0 MiB of 2.0 GiB; 0 /s clients beyond a limit, 4 pending
workers   2, 1 /s sleeps, 1 /s wake-ups
memory    1.0 GiB of 8.0 GiB (12.5 %), 0 B of 256.0 MiB in arriving messages
          900.0 MiB nodes, 10.0 MiB values, 1.0 MiB retired, 113.0 MiB spare
epochs    1234, oldest 1200, held by 1 snapshot, readers 34 behind; 6/256 places

offload           requests/s   share       p50       p99      mean     total
get                   1.00 M  81.0 %    384 ns    1.0 us    412 ns    5.00 M
put                    235 k  19.0 %    768 ns    4.1 us    900 ns     100 M
object_list                0   0.0 %         -         -         -         1

   items height   nodes  B/item  writes/s unreleased    retired snaps  map
  10.0 M      3  56.2 k    44.1     235 k          7    1.0 MiB     1  pairs
   663 k      3  3.81 k    44.1         0          0        0 B     0  words






q quits, s sorts: now by activity
)");
}

TopView view_with_tables() {
  TopView view = some_view();
  const TableRates sales{"sales",
                         node::object_of(ObjectKind::table, 3, "sales",
                                         {{"rows", 60'000'000},
                                          {"memory_bytes", std::uint64_t{4} << 30},
                                          {"queries_running", 2},
                                          {"queries_waiting", 1}}),
                         12, 3'221'225'472.0, 2048};
  const TableRates empty{
      "empty", node::object_of(ObjectKind::table, 4, "empty", {{"memory_bytes", 65'536}}), 0, 0, 0};
  view.tables = {empty, sales};
  view.table_bytes = (std::uint64_t{4} << 30) + 65'536;
  node::set(view.numbers, {{"queries_running", 2},
                           {"queries_waiting", 1},
                           {"queries_ended", 500},
                           {"queries_failed", 3},
                           {"queries_refused", 4},
                           {"helper_threads", 4},
                           {"helper_jobs", 1, "ready"}});
  view.queries_per_s = 12;
  view.queries_failed_per_s = 1;
  view.helpers_busy = 0.503;
  return view;
}

TEST(TopScreen, ShowsADeviceAndSnapshotsWhereThereAreSome) {
  TopView view = some_view();
  EXPECT_EQ(drawn(view, {80, 24}).find("snapshots "), std::string::npos);
  EXPECT_EQ(drawn(view, {80, 24}).find("device "), std::string::npos);
  node::set(view.numbers, {{"snapshots", 2},
                           {"snapshot_bytes", 1 << 20},
                           {"snapshot_limit_bytes", 16 << 20},
                           {"snapshots_expired", 5}});
  view.snapshots_expired_per_s = 3;
  view.limited_per_s = 7;
  view.numbers.set("device_round_trips", 1);
  view.device_round_trips_per_s = 12'345;
  view.device_bytes_per_s = 2 << 20;
  view.device_hits = 0.987;
  view.device_forwarded_per_s = 6;
  const std::string text = drawn(view, {80, 24});
  EXPECT_THAT(text, HasSubstr("; 7 /s clients beyond a limit, 4 pending\n"));
  EXPECT_THAT(text, HasSubstr("\nsnapshots 2 hold 1.0 MiB of 16.0 MiB, 3 /s expired\n"));
  EXPECT_THAT(text,
              HasSubstr("\ndevice    12.3 k /s round trips, 2.0 MiB /s read; knew 98.7 %; 6 /s "
                        "by its host\n"));
}

TEST(TopScreen, ShowsTablesWhereThereAreSome) {
  const std::string text = drawn(view_with_tables(), {80, 30});
  EXPECT_THAT(text, HasSubstr(R"(
queries   2 running, 1 waiting; 12 /s over, 1 /s failed, 0 /s refused
helpers   4, 50.3 % busy; 1 jobs ready, 0 waiting
memory    )"));
  EXPECT_THAT(text, HasSubstr("900.0 MiB nodes, 10.0 MiB values, 4.0 GiB tables, 1.0 MiB retired"));
  EXPECT_THAT(text, HasSubstr(R"(
    rows     memory  queries/s  running  waiting    read/s    sent/s  table
  60.0 M    4.0 GiB         12        2        1   3.0 GiB   2.0 KiB  sales
       0   64.0 KiB          0        0        0       0 B       0 B  empty
)"));
  for (std::size_t rows = 1; rows < 40; ++rows) {
    EXPECT_EQ(draw_top(view_with_tables(), {"a"}, {80, rows}).size(), rows);
  }
  // Offloads, maps and tables all have some of a small window.
  const std::string small = drawn(view_with_tables(), {80, 24});
  EXPECT_THAT(small, HasSubstr("  table\n"));
  EXPECT_THAT(small, HasSubstr("  map\n"));
  EXPECT_THAT(small, HasSubstr("offload "));
  const auto whole = draw_top(view_with_tables(), {"a"}, {4096, 0});
  EXPECT_EQ(whole.size(), 10U + 1 + 4 + 1 + 3 + 1 + 3);
}

TEST(TopScreen, ShowsSequencersAndFeedsWhereThereAreSome) {
  TopView view = view_with_tables();
  view.sequencers = {
      {"orders",
       node::object_of(ObjectKind::sequencer, 5, "orders", {{"next", 123'456}, {"epoch", 1}}), 10,
       5, 4},
      {"old",
       node::object_of(ObjectKind::sequencer, 6, "old", {{"next", 7}, {"epoch", 3}, {"sealed", 1}}),
       0, 0, 0}};
  view.feed_followers = 3;
  view.feed_moves_per_s = 1'500;
  const std::string text = drawn(view, {80, 40});
  EXPECT_THAT(text, HasSubstr("\nfeeds     3 followers, 1.50 k /s moves told\n"));
  EXPECT_THAT(text, HasSubstr(R"(
            next  epoch   numbers/s  requests/s   adds/s        state  sequencer
          123456      1          10           5        4         open  orders
               7      3           0           0        0       sealed  old
)"));
  for (std::size_t rows = 1; rows < 50; ++rows) {
    EXPECT_EQ(draw_top(view, {"a"}, {80, rows}).size(), rows);
  }
  const auto whole = draw_top(view, {"a"}, {4096, 0});
  EXPECT_EQ(whole.size(), 11U + 1 + 4 + 1 + 3 + 1 + 3 + 1 + 3);
}

TEST(TopScreen, ShowsAllOfItWhereThereIsNoScreen) {
  TopView view = some_view();
  view.since_start = true;
  for (int i = 0; i < 40; ++i) view.maps.push_back({"m" + std::to_string(i), {}, 0, 0, 0});
  const auto lines = draw_top(view, {"unix:/tmp/node.sock"}, {4096, 0});
  EXPECT_EQ(lines.front().text,
            "espalier 0.1.0 at unix:/tmp/node.sock, up 1:02:03; rates since its start");
  EXPECT_EQ(lines.size(), 8U + 1 + 4 + 1 + 43);
  EXPECT_THAT(lines.back().text, HasSubstr("  m9"));
}

TEST(TopScreen, HeadingsStandOut) {
  std::string headings;
  for (const ScreenLine& line : draw_top(some_view(), {"unix:s"}, {80, 24})) {
    if (line.heading) headings += line.text.substr(0, 8) + "|";
  }
  EXPECT_EQ(headings, "espalier|offload |   items|");
}

/// The order of the names in a table's column.
std::vector<std::string> order(TopSort sort) {
  std::vector<std::string> names;
  for (const ScreenLine& line : draw_top(some_view(), {"a", sort}, {80, 24})) {
    for (const std::string name : {"put", "get", "object_list"}) {
      if (line.text.starts_with(name + " ")) names.push_back(name);
    }
    for (const std::string name : {"words", "pairs"}) {
      if (line.text.ends_with("  " + name)) names.push_back(name);
    }
  }
  return names;
}

TEST(TopScreen, SortsByActivitySizeOrName) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(order(TopSort::activity), (Names{"get", "put", "object_list", "pairs", "words"}));
  EXPECT_EQ(order(TopSort::size), (Names{"put", "get", "object_list", "pairs", "words"}));
  EXPECT_EQ(order(TopSort::name), (Names{"get", "object_list", "put", "pairs", "words"}));
  EXPECT_EQ(next(next(next(TopSort::activity))), TopSort::activity);
}

TEST(TopScreen, TellsHowManyRowsDidNotFit) {
  TopView view = some_view();
  for (int i = 0; i < 98; ++i) view.maps.push_back({"m" + std::to_string(i), {}, 0, 0, 0});
  const auto lines = draw_top(view, {"a"}, {80, 24});
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_EQ(lines[22].text, "... 93 more");
  EXPECT_THAT(lines[9].text, HasSubstr("offload"));
  EXPECT_THAT(lines[12].text, HasSubstr("object_list")) << "what is short is shown whole";
}

/// An object of a kind that no picture knows.
ObjectRates some_object(std::string name, std::uint64_t lookups, double per_s) {
  using wire::SampleType;
  return {{static_cast<ObjectKind>(200),
           "",
           1,
           std::move(name),
           {{"lookups", "", "Asked.", SampleType::counter, {}, lookups},
            {"queued_bytes", "bytes", "Waiting.", SampleType::gauge, {{"queue", "in"}}, 3072}}},
          {per_s, std::nullopt}};
}

TEST(TopScreen, SamplesOfOtherKindsHaveALineEach) {
  TopView view = some_view();
  view.objects = {some_object("beta", 12'000, 1'500), some_object("alpha", 100, 2)};
  view.numbers.sampled.objects = {view.objects[0].object, view.objects[1].object};
  view.numbers.sampled.count = 5;
  EXPECT_THAT(drawn(view, {4096, 0}),
              HasSubstr("\n\n"
                        "       value     rise/s  object: sample (kind)\n"
                        "      12.0 k     1.50 k  beta: lookups (kind 200)\n"
                        "         100          2  alpha: lookups (kind 200)\n"
                        "     3.0 KiB          -  alpha: queued_bytes{queue=in} (kind 200)\n"
                        "     3.0 KiB          -  beta: queued_bytes{queue=in} (kind 200)\n"
                        "... and those of 3 other objects\n"));
  EXPECT_THAT(drawn(view, {4096, 0}, TopSort::name),
              HasSubstr("alpha: lookups (kind 200)\n"
                        "     3.0 KiB          -  alpha: queued_bytes{queue=in} (kind 200)\n"
                        "      12.0 k     1.50 k  beta: lookups (kind 200)\n"));
  view.objects[0].object.kind_name = "hash";
  EXPECT_THAT(drawn(view, {4096, 0}), HasSubstr("beta: lookups (hash)\n"));
}

TEST(TopScreen, TellsOfObjectsLeftOutWhereNoneOfOtherKindsIsShown) {
  TopView view = some_view();
  EXPECT_EQ(drawn(view, {4096, 0}).find("other objects"), std::string::npos);
  view.numbers.sampled.count = 5;
  view.spare_bytes.reset();
  const std::string text = drawn(view, {4096, 0});
  EXPECT_THAT(text, HasSubstr("\n\n       value     rise/s  object: sample (kind)\n"
                              "... and those of 4 other objects\n"));
  EXPECT_THAT(text, HasSubstr(" 1.0 MiB retired\n")) << "what is spare nobody knows";
  EXPECT_THAT(drawn(view, {80, 24}), HasSubstr("\n... and those of 4 other objects\n"));
}

TEST(TopScreen, WithoutSamplesThereAreNoSumsOfThem) {
  TopView view = some_view();
  EXPECT_THAT(drawn(view, {80, 24}), HasSubstr(" retired, "));
  view.has_samples = false;
  EXPECT_EQ(drawn(view, {80, 24}).find(" retired, "), std::string::npos);
}

TEST(TopScreen, TellsHowManySamplesDidNotFit) {
  TopView view = some_view();
  for (int i = 0; i < 20; ++i) {
    view.objects.push_back(some_object("o" + std::to_string(10 + i), 1, 40.0 - i));
  }
  view.numbers.sampled.count = 10;  // without samples of any
  constexpr std::size_t kAll = 40 + 1;
  std::size_t most = 0;
  for (std::size_t rows = 16; rows < 90; ++rows) {
    std::vector<std::string> shown;
    bool in_table = false;
    for (const ScreenLine& line : draw_top(view, {"a"}, {80, rows})) {
      if (in_table && !line.text.empty() && !line.text.starts_with("q quits")) {
        shown.push_back(line.text);
      }
      in_table = in_table || line.text.ends_with("object: sample (kind)");
    }
    most = std::max(most, shown.size());
    if (shown.empty()) continue;
    std::size_t left = 0;
    if (shown.back().ends_with(" more")) {
      left = std::stoul(shown.back().substr(4));
      shown.pop_back();
    } else {
      EXPECT_EQ(shown.back(), "... and those of 9 other objects");
    }
    EXPECT_EQ(shown.size() + left, kAll) << rows;
  }
  EXPECT_EQ(most, kAll);
}

TEST(TopScreen, StaysWithinAnyWindow) {
  TopView view = some_view();
  view.objects = {some_object(std::string(300, 'o'), 1, 1)};
  view.maps[0].name = std::string(300, 'n');
  for (std::size_t rows = 1; rows < 40; ++rows) {
    for (const std::size_t columns : {1, 7, 40, 79, 80, 300}) {
      const auto lines = draw_top(view, {std::string(200, 'a')}, {columns, rows});
      EXPECT_EQ(lines.size(), rows);
      for (const ScreenLine& line : lines) EXPECT_LE(line.text.size(), columns);
    }
  }
}

TEST(TopScreen, TellsOfTrouble) {
  EXPECT_THAT(drawn(some_view(), {80, 24}, TopSort::activity, "no node\x1b[2J"),
              HasSubstr("\n! no node\\x1b[2J\n"));
}

// Whatever a node calls itself and its maps, and whatever its numbers are.
TEST(TopScreen, NothingFromTheNodeSteersTheTerminal) {
  base::Random random(base::seed_from_environment(1));
  for (int i = 0; i < 2000; ++i) {
    TopView view = view_with_tables();
    const auto garbage = [&] {
      std::string text;
      for (std::uint64_t n = random.below(40); n != 0; --n) {
        text += static_cast<char>(random.below((random.below(2) == 0) ? 256 : 32));
      }
      return text +
             "\x1b]0;\x07\x9b"
             "2J\xe2\x80\xae\r\n";
    };
    view.numbers.version = garbage();
    view.maps[0].name = garbage();
    view.tables[0].name = garbage();
    view.objects = {some_object(garbage(), random(), 1e300)};
    view.objects[0].object.samples[1].labels[0].value = garbage();
    view.numbers.sampled.count = random();
    view.tables[1].read_bytes_per_s = 1e300;
    view.helpers_busy = std::numeric_limits<double>::quiet_NaN();
    view.maps[1].bytes_per_item = std::numeric_limits<double>::infinity();
    view.requests_per_s = 1e300;
    view.numbers.set("memory_limit_bytes", random());
    view.numbers.set("memory_taken_bytes", random());
    const std::string address = garbage();
    const ScreenSize size{1 + random.below(100), 1 + random.below(30)};
    for (const ScreenLine& line : draw_top(view, {address}, size)) {
      for (const char c : line.text) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
      ASSERT_TRUE(base::is_utf8(line.text)) << line.text;
      ASSERT_EQ(line.text.find("\xe2\x80\xae"), std::string::npos) << "turns the writing round";
    }
  }
}

}  // namespace
}  // namespace espalier::tools
