// SPDX-License-Identifier: Apache-2.0
// A program's calls that post to other nodes (espalier::PeerBatch): each verb, several peers in one
// batch, and everything that keeps posts from leaving.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/node.hpp"
#include "espalier/region.hpp"

namespace espalier::example {
namespace {

constexpr std::uint64_t kLinksComeNs = 120'000'000'000;  // only a machine that hangs takes so long

constexpr OffloadRow kWork{.number = 140,
                           .name = "work",
                           .summary = "posts to b and c as its request says; answers what came",
                           .right = OffloadRight::write,
                           .request_bytes_min = 1,
                           .request_bytes_max = 1,
                           .reply_bytes_max = 4096,
                           .runs_on = RunsOn::worker};
constexpr OffloadRow kWorkOfHelper{.number = 141,
                                   .name = "work_of_helper",
                                   .summary = "the same by a helper",
                                   .right = OffloadRight::write,
                                   .request_bytes_min = 1,
                                   .request_bytes_max = 1,
                                   .reply_bytes_max = 4096};
constexpr OffloadRow kDouble{.number = 142,
                             .name = "double",
                             .summary = "doubles a number",
                             .right = OffloadRight::read,
                             .request_bytes_min = 8,
                             .request_bytes_max = 8,
                             .reply_bytes_max = 8};
constexpr OffloadRow kUndeclared{.number = 143,
                                 .name = "undeclared",
                                 .summary = "posts, and does not say so beforehand",
                                 .right = OffloadRight::write,
                                 .request_bytes_max = 1};

enum class Task : char {
  copy,          // a word of b to c
  mix,           // each verb, at both peers, and a call
  no_peer,       // of this name
  no_region,     // of this name
  beyond,        // the region's end
  misaligned,    // an atomic
  no_such_call,  // at the peer
  nothing,       // no post at all
  too_much,
};

struct Work {
  int step = 0;
  std::array<std::uint64_t, 4> words{};
  std::string reply;
};

void mix(PeerBatch& posts, Work& work) {
  posts.write("c", "words", 16, bytes_of(work.words[0]));
  posts.fetch_add("c", "words", 8, 5, &work.words[1]);
  posts.compare_swap("b", "words", 8, 3, 4, &work.words[2]);
  posts.read("b", "words", 0, bytes_of(work.words[3]));
  posts.call("c", kDouble, plain_bytes(std::uint64_t{21}), &work.reply);
}

OffloadStep post_first(OffloadContext& call, Task task, Work& work) {
  PeerBatch posts(call);
  switch (task) {
    case Task::copy: posts.read("b", "words", 0, bytes_of(work.words[0])); break;
    case Task::mix:
      work.words[0] = 77;
      mix(posts, work);
      break;
    case Task::no_peer:
      posts.write("c", "words", 24, bytes_of(work.words[0]));
      posts.read("d", "words", 0, bytes_of(work.words[0]));
      break;
    case Task::no_region: posts.read("b", "none", 0, bytes_of(work.words[0])); break;
    case Task::beyond:
      posts.fetch_add("c", "words", 24, 1);
      posts.read("b", "words", 28, bytes_of(work.words[0]));
      break;
    case Task::misaligned: posts.fetch_add("b", "words", 4, 1); break;
    case Task::no_such_call:
      posts.call("b", OffloadRow{.number = 200, .reply_bytes_max = 8}, {}, &work.reply);
      break;
    case Task::nothing: break;
    case Task::too_much:
      for (std::size_t i = 0; i <= PeerBatch::kMost; ++i) posts.fetch_add("c", "words", 24, 1);
      break;
  }
  return posts.completed();
}

/// A letter for each end, and the code of its error.
std::string ends_of(const OffloadContext& call) {
  std::string text;
  for (const PeerEnd& end : call.peer_ends()) {
    text += "drun"[static_cast<std::size_t>(end.how)];
    text += std::to_string(static_cast<int>(end.error.code)) + " ";
  }
  return text;
}

OffloadStep work(OffloadContext& call) {
  auto& state = call.state<Work>();
  const auto task = static_cast<Task>(call.request().front());
  if (state.step++ == 0) return post_first(call, task, state);
  if (state.step == 2 && task == Task::copy && call.peer_ends().front().how == PostEnd::done) {
    PeerBatch posts(call);
    posts.write("c", "words", 0, bytes_of(state.words[0]));
    return posts.completed();
  }
  BytesWriter reply;
  reply.text(ends_of(call)).text(state.reply);
  for (const std::uint64_t word : state.words) reply.put(word);
  return call.answer(reply.bytes());
}

OffloadStep double_it(OffloadContext& call) {
  return call.answer(plain_bytes(2 * BytesReader(call.request()).take<std::uint64_t>()));
}

Offloads offloads() {
  return {.calls = {{kWork, work, true},
                    {kWorkOfHelper, work, true},
                    {kDouble, double_it},
                    {kUndeclared, [](OffloadContext& call) {
                       PeerBatch posts(call);
                       posts.fetch_add("b", "words", 0, 1);
                       return posts.completed();
                     }}}};
}

struct Worked {
  std::string ends;
  std::string reply;
  std::array<std::uint64_t, 4> words{};
};

class OwnPosts : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    b_ = start("b", {});
    c_ = start("c", {});
    ASSERT_TRUE(b_ && c_);
    a_ = start("a", {{"peer", "b=" + b_->fabric_addresses().front()},
                     {"peer", "c=" + c_->fabric_addresses().front()}});
    ASSERT_TRUE(a_);
    auto store = Store::connect(a_->address());
    ASSERT_TRUE(store) << message(store.error());
    store_.emplace(std::move(*store));
    words_of_b_ = make_words(*b_);
    words_of_c_ = make_words(*c_);
    ASSERT_TRUE(words_of_b_ && words_of_c_);
    set(*words_of_b_, 0, 41);
    set(*words_of_b_, 8, 3);
  }

  std::optional<Node> start(const std::string& name,
                            std::vector<std::pair<std::string, std::string>> more) {
    const std::string fabric = GetParam() == "roce" ? std::string("roce://127.0.0.1:0/1")
                                                    : "shm:" + (folder_ / (name + ".f")).string();
    more.emplace_back("node.socket", (folder_ / name).string());
    if (name != "a") more.emplace_back("node.fabric", fabric);
    auto node = Node::start(
        {.toml = "[memory]\nlimit = \"64MiB\"\nhuge_pages = false\n", .values = std::move(more)},
        offloads());
    EXPECT_TRUE(node) << message(node.error());
    if (!node) return std::nullopt;
    return std::move(*node);
  }
  std::optional<Region> make_words(const Node& node) {
    stores_.push_back(*Store::connect(node.address()));
    auto made = stores_.back().create_region("words", 32);
    EXPECT_TRUE(made) << message(made.error());
    return made ? std::optional(*made) : std::nullopt;
  }
  static void set(Region& region, std::uint64_t offset, std::uint64_t word) {
    EXPECT_TRUE(region.write(offset, std::as_bytes(std::span(&word, 1))));
  }
  static std::uint64_t get(const Region& region, std::uint64_t offset) {
    std::uint64_t word = 0;
    EXPECT_TRUE(region.read(offset, std::as_writable_bytes(std::span(&word, 1))));
    return word;
  }
  TableResult<std::string> ask(Task task, const OffloadRow& row = kWork) {
    const char byte = static_cast<char>(task);
    return store_->call(row, {&byte, 1});
  }
  /// Until the links are there: what is not sent may be posted again.
  Worked work_at_last(Task task, const OffloadRow& row = kWork) {
    const base::Stopwatch watch;
    for (;;) {
      const auto reply = ask(task, row);
      EXPECT_TRUE(reply) << message(reply.error());
      if (!reply) return {};
      BytesReader reader(*reply);
      Worked worked{std::string(reader.text()), std::string(reader.text()), {}};
      for (std::uint64_t& word : worked.words) word = reader.take<std::uint64_t>();
      const std::string lost = "n" + std::to_string(static_cast<int>(Code::connection_lost));
      if (!worked.ends.starts_with(lost) || watch.elapsed_ns() > kLinksComeNs) return worked;
      std::this_thread::yield();
    }
  }
  static std::string not_sent(Code code, int times) {
    std::string all;
    for (; times != 0; --times) all += "n" + std::to_string(static_cast<int>(code)) + " ";
    return all;
  }

  const base::TemporaryFolder folder_;
  std::vector<Store> stores_;
  std::optional<Node> b_;
  std::optional<Node> c_;
  std::optional<Node> a_;  // ends first
  std::optional<Store> store_;
  std::optional<Region> words_of_b_;
  std::optional<Region> words_of_c_;
};

TEST_P(OwnPosts, AWordIsReadAtOneNodeAndWrittenToAnother) {
  for (const OffloadRow& row : {kWork, kWorkOfHelper}) {
    set(*words_of_b_, 0, 1000 + row.number);
    const Worked worked = work_at_last(Task::copy, row);
    EXPECT_EQ(worked.ends, "d0 ");
    EXPECT_EQ(worked.words[0], 1000u + row.number);
    EXPECT_EQ(get(*words_of_c_, 0), 1000u + row.number);
  }
}

TEST_P(OwnPosts, EachVerbDoesWhatItSaysAndPeersMayBeMixed) {
  ASSERT_EQ(work_at_last(Task::copy).ends, "d0 ");
  set(*words_of_c_, 8, 9);
  const Worked worked = work_at_last(Task::mix);
  EXPECT_EQ(worked.ends, "d0 d0 d0 d0 d0 ");
  EXPECT_EQ(get(*words_of_c_, 16), 77u);
  EXPECT_EQ(worked.words[1], 9u);
  EXPECT_EQ(get(*words_of_c_, 8), 14u);
  EXPECT_EQ(worked.words[2], 3u);
  EXPECT_EQ(get(*words_of_b_, 8), 4u);
  EXPECT_EQ(worked.words[3], 41u);
  EXPECT_EQ(BytesReader(worked.reply).take<std::uint64_t>(), 42u);
}

// None leaves, and the links stay.
TEST_P(OwnPosts, WhatIsWrongIsFoundBeforeAnythingLeaves) {
  ASSERT_EQ(work_at_last(Task::copy).ends, "d0 ");
  EXPECT_EQ(work_at_last(Task::no_peer).ends, not_sent(Code::unsupported, 2));
  EXPECT_EQ(work_at_last(Task::no_region).ends, not_sent(Code::not_found, 1));
  EXPECT_EQ(work_at_last(Task::beyond).ends, not_sent(Code::invalid_argument, 2));
  EXPECT_EQ(work_at_last(Task::misaligned).ends, not_sent(Code::invalid_argument, 1));
  EXPECT_EQ(get(*words_of_c_, 24), 0u);
  for (const Task task : {Task::nothing, Task::too_much}) {
    const auto refused = ask(task);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().error.code, Code::corrupt);
  }
  const auto undeclared = store_->call(kUndeclared);
  ASSERT_FALSE(undeclared);
  EXPECT_EQ(undeclared.error().error.code, Code::corrupt);
  const Worked unknown = work_at_last(Task::no_such_call);
  EXPECT_EQ(unknown.ends, "d" + std::to_string(static_cast<int>(Code::unsupported)) + " ");
  EXPECT_EQ(unknown.reply, "");
  const auto copied = ask(Task::copy);  // at the first try: no link has ended
  ASSERT_TRUE(copied);
  EXPECT_EQ(BytesReader(*copied).text(), "d0 ");
}

TEST_P(OwnPosts, APeerThatIsGoneIsSaid) {
  ASSERT_EQ(work_at_last(Task::copy).ends, "d0 ");
  words_of_b_.reset();
  b_->stop();
  const auto gone = ask(Task::copy);
  ASSERT_TRUE(gone);
  const std::string ends(BytesReader(*gone).text());
  EXPECT_NE(ends.front(), 'd');
  EXPECT_TRUE(ends.ends_with(std::to_string(static_cast<int>(Code::connection_lost)) + " "));
}

TEST_P(OwnPosts, AStoreOfItsOwnProcessHasNoPeers) {
  auto near = Store::open({.memory_bytes_max = 64 << 20}, offloads());
  ASSERT_TRUE(near);
  const char task = static_cast<char>(Task::copy);
  const auto reply = near->call(kWork, {&task, 1});
  ASSERT_TRUE(reply) << message(reply.error());
  EXPECT_EQ(BytesReader(*reply).text(), not_sent(Code::unsupported, 1));
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnPosts, ::testing::Values("shm", "roce"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace espalier::example
