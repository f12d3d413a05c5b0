// SPDX-License-Identifier: Apache-2.0
// Objects over a channel whose node returns scripted answers, and of this process.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/samples.hpp"
#include "channel/objects.hpp"
#include "channel/reached.hpp"
#include "wire/object.hpp"

namespace espalier::channel {
namespace {

std::atomic<int> living{0};

class Thing final : public catalog::Object {
 public:
  static constexpr ObjectKind kKind{kOwnKinds};

  explicit Thing(std::uint32_t id) : id_(id) { ++living; }
  ~Thing() override { --living; }

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] bool dropped() const { return dropped_; }
  void set_dropped() override { dropped_ = true; }
  [[nodiscard]] std::string description() const override { return "about it"; }
  [[nodiscard]] catalog::ObjectNumbers numbers() const override { return {3, 0}; }
  void add_samples(catalog::SampleList&) const override {}

 private:
  const std::uint32_t id_;
  std::atomic<bool> dropped_{false};
};

struct Opened {
  std::uint32_t id = 0;
  std::uint64_t entries = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.read_version(self.entries);
  }
  [[nodiscard]] static Opened of(const Thing& thing) {
    return {thing.id(), thing.numbers().entries};
  }
};

struct Create {
  static constexpr wire::CallRow kCall{.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds),
                                       .name = "create",
                                       .summary = "makes one",
                                       .object = wire::Names::by_name,
                                       .changes = true,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::uint64_t first = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the name");
    message.fixed(self.first, "a number that is not 13");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return first == 13 ? std::optional(wire::Fault{13}) : std::nullopt;
  }
};

struct Ask {
  static constexpr wire::CallRow kCall{.id = static_cast<wire::OffloadId>(wire::kOwnOffloadIds + 1),
                                       .name = "ask",
                                       .summary = "answers its number",
                                       .object = wire::Names::by_id};
  using Reply = Opened;

  std::uint32_t thing = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.thing, "the thing");
  }
};

Result<std::shared_ptr<Thing>> obtain(catalog::Catalog& catalog, const Create& asked) {
  return catalog.create<Thing>(asked.name, [](std::uint32_t id, const std::string&) {
    return Result<std::shared_ptr<Thing>>(std::make_shared<Thing>(id));
  });
}
std::expected<Opened, Refusal> execute(Thing& thing, const Ask&) {
  if (thing.dropped()) return std::unexpected(Refusal({Code::not_found, 0, 7}, "gone"));
  return Opened::of(thing);
}

/// A node that returns scripted answers, in order.
class ToldChannel final : public Channel {
 public:
  ToldChannel() : Channel(nullptr) {}

  std::expected<Answer, Refusal> ask(const wire::CallMessage& request,
                                     std::optional<NodeNumber> node) override {
    asked.emplace_back(request.offload, std::string(request.key));
    if (node && *node != number) return std::unexpected(Refusal({Code::not_found, 0, 0}));
    Reply reply = std::move(replies.front());
    replies.pop_front();
    if (reply.header.code != 0) {
      return std::unexpected(Refusal({static_cast<Code>(reply.header.code), 0, 0}));
    }
    return Answer{std::move(reply), number};
  }
  std::expected<void, Refusal> make(const wire::CallMessage& request, const wire::CallMessage& undo,
                                    const TakeAnswer& take) override {
    auto answer = ask(request, {});
    if (!answer) return std::unexpected(answer.error());
    try {
      take(*std::move(answer));
    } catch (...) {
      asked.emplace_back(undo.offload, std::string(undo.key));
      throw;
    }
    return {};
  }

  NodeNumber number = 1;
  std::deque<Reply> replies;
  std::vector<std::pair<wire::OffloadId, std::string>> asked;
};

class OwnChannel final : public Channel {
 public:
  explicit OwnChannel(catalog::Catalog& own) : Channel(&own) {}
  std::expected<Answer, Refusal> ask(const wire::CallMessage&, std::optional<NodeNumber>) override {
    ADD_FAILURE();
    return std::unexpected(Refusal());
  }
  std::expected<void, Refusal> make(const wire::CallMessage&, const wire::CallMessage&,
                                    const TakeAnswer&) override {
    ADD_FAILURE();
    return std::unexpected(Refusal());
  }
};

Reply reply_of(std::uint64_t version, std::string payload = {}) {
  Reply reply;
  reply.header.version = version;
  reply.payload = std::move(payload);
  return reply;
}
Reply refusal_of(Code code) {
  Reply reply;
  reply.header.code = static_cast<std::uint16_t>(code);
  return reply;
}

constexpr auto kKeep = [](Reached<Thing>&& thing, const Opened&) { return std::move(thing); };

/// A handle for which there is no memory.
Reached<Thing> no_memory(Reached<Thing>&&, const Opened&) { throw std::bad_alloc(); }

TEST(Channel, AnObjectOfANodeIsAskedByItsNumberThereAlone) {
  const auto node = std::make_shared<ToldChannel>();
  node->replies = {reply_of(5), reply_of(5)};
  const auto thing = reach<Thing>(std::shared_ptr<Channel>(node), Create{"t"}, kKeep);
  ASSERT_TRUE(thing);
  EXPECT_EQ(thing->number(), 5u);
  EXPECT_EQ(thing->name(), "t");
  EXPECT_EQ(thing->ask(Ask{thing->number()}).value().id, 5u);
  node->number = 2;  // another node is there now
  EXPECT_EQ(thing->ask(Ask{thing->number()}).error().code, Code::not_found);
}

TEST(Channel, WhatIsNoReplyIsCorrupt) {
  const auto node = std::make_shared<ToldChannel>();
  node->replies = {reply_of(std::uint64_t{1} << 32), reply_of(5, "more"),
                   refusal_of(Code::dropped)};
  const std::shared_ptr<Channel> channel = node;
  EXPECT_EQ(reach<Thing>(channel, Create{"t"}, kKeep).error().code, Code::corrupt);
  EXPECT_EQ(reach<Thing>(channel, Create{"t"}, kKeep).error().code, Code::corrupt);
  EXPECT_EQ(reach<Thing>(channel, Create{"t"}, kKeep).error().code, Code::dropped);
  EXPECT_EQ(node->asked.size(), 3u) << "nothing was made, so nothing is undone";
}

TEST(Channel, WhatWasMadeGoesAgainWhereAHandleFails) {
  const auto node = std::make_shared<ToldChannel>();
  node->replies = {reply_of(5)};
  EXPECT_THROW(
      static_cast<void>(reach<Thing>(std::shared_ptr<Channel>(node), Create{"t"}, no_memory)),
      std::bad_alloc);
  ASSERT_EQ(node->asked.size(), 2u);
  EXPECT_EQ(node->asked.back(), std::pair(wire::OffloadId::object_drop, std::string("t")));

  catalog::Catalog objects;
  const auto own = std::make_shared<OwnChannel>(objects);
  EXPECT_THROW(
      static_cast<void>(reach<Thing>(std::shared_ptr<Channel>(own), Create{"t"}, no_memory)),
      std::bad_alloc);
  EXPECT_TRUE(objects.names().empty());
  EXPECT_EQ(living, 0);
}

TEST(Channel, AnObjectOfThisProcessAnswersAsANodeDoes) {
  catalog::Catalog objects;
  const std::shared_ptr<Channel> own = std::make_shared<OwnChannel>(objects);
  EXPECT_EQ(reach<Thing>(own, Create{"t", 13}, kKeep).error(),
            (Error{Code::invalid_argument, 0, 13}));
  const auto thing = reach<Thing>(own, Create{"t"}, kKeep);
  ASSERT_TRUE(thing);
  EXPECT_EQ(reach<Thing>(own, Create{"t"}, kKeep).error().code, Code::already_exists);
  EXPECT_EQ(objects.names(), std::vector<std::string>{"t"}) << "what was there stays";
  EXPECT_EQ(thing->ask(Ask{thing->number()}).value().id, thing->number());
  ASSERT_TRUE(drop(*own, "t", Thing::kKind));
  EXPECT_EQ(thing->ask(Ask{thing->number()}).error(), (Error{Code::not_found, 0, 7}));
}

std::string listed(std::string_view name, std::uint64_t id) {
  wire::ObjectEntry entry{};
  entry.entries = 3;
  entry.kind = 200;
  const std::string value = std::string(base::bytes_of(entry)) + "about it";
  return std::string(base::bytes_of(wire::item_header(id, name.size(), value.size()))) +
         std::string(name) + value;
}

TEST(Channel, AListIsReadWholeOrNotAtAll) {
  ToldChannel node;
  const std::string items = listed("a", 1) + listed("b", 2);
  node.replies = {reply_of(2, items)};
  const auto objects = list(node);
  ASSERT_TRUE(objects);
  ASSERT_EQ(objects->size(), 2u);
  EXPECT_EQ((*objects)[1].name, "b");
  EXPECT_EQ((*objects)[1].id, 2u);
  EXPECT_EQ((*objects)[1].numbers.entries, 3u);
  EXPECT_EQ((*objects)[1].description, "about it");
  for (std::size_t bytes = 1; bytes < items.size(); ++bytes) {
    if (bytes == items.size() / 2) continue;  // one of them
    node.replies = {reply_of(2, items.substr(0, bytes))};
    EXPECT_EQ(list(node).error().code, Code::corrupt) << bytes;
  }
  node.replies = {refusal_of(Code::unsupported)};
  EXPECT_EQ(list(node).error().code, Code::unsupported);
}

}  // namespace
}  // namespace espalier::channel
