// SPDX-License-Identifier: Apache-2.0
// A node with calls and a kind of the program's own, two nodes that it reaches, and a client, all
// in one process. Takes the path of a socket; returns 0 if all is as it should be.
#include <espalier/node.hpp>
#include <espalier/offload.hpp>
#include <espalier/region.hpp>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace espalier;

// What both sides know. A client in a program of its own includes this, and nothing of the rest.

constexpr OffloadRow kEchoSum{.number = 128,
                              .name = "echo_sum",
                              .summary = "answers the sum of numbers of 8 bytes",
                              .right = OffloadRight::read,
                              .idempotent = true,
                              .request_bytes_max = 8192,
                              .reply_bytes_max = 8,
                              .runs_on = RunsOn::worker};
constexpr KindRow kTally{
    .number = ObjectKind{128}, .name = "tally", .create_number = 129, .open_number = 130};
constexpr OffloadRow kTallyAdd{.number = 131,
                               .name = "tally_add",
                               .summary = "counts a word; answers how often it was counted",
                               .right = OffloadRight::write,
                               .kind = kTally.number,
                               .request_bytes_min = 1,
                               .request_bytes_max = 255,
                               .reply_bytes_max = 8};
constexpr OffloadRow kCopyWord{.number = 132,
                               .name = "copy_word",
                               .summary = "copies a word of node b to node c; answers it",
                               .right = OffloadRight::write,
                               .reply_bytes_max = 8,
                               .runs_on = RunsOn::worker};

// What the node does.

OffloadStep echo_sum(OffloadContext& call) {
  if (call.request().size() % 8 != 0) return call.fail(Code::invalid_argument, "whole numbers");
  BytesReader numbers(call.request());
  std::uint64_t sum = 0;
  while (!numbers.rest().empty()) sum += numbers.take<std::uint64_t>();
  return call.answer(plain_bytes(sum));
}

class Tally final : public OwnObject {
 public:
  explicit Tally(const ObjectForm& form) : counts_(form.memory) {}
  std::uint64_t add(std::string_view word) {
    const std::lock_guard lock(mutex_);
    auto found = counts_.find(word);
    if (found == counts_.end()) found = counts_.emplace(word, 0).first;
    return ++found->second;
  }
  std::uint64_t entries() const override {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }
  void add_samples(ObjectSamples& to) const override {
    to.gauge({"words", "", "Different words."}, entries());
  }

 private:
  mutable std::mutex mutex_;  // guards counts_
  std::pmr::map<std::pmr::string, std::uint64_t, std::less<>> counts_;
};

OffloadStep tally_add(OffloadContext& call) {
  return call.answer(plain_bytes(call.object<Tally>().add(call.request())));
}

// Posts to two other nodes, of which neither's processor has to do with it.
struct Copy {
  int step = 0;
  std::uint64_t word = 0;
};

OffloadStep copy_word(OffloadContext& call) {
  auto& copy = call.state<Copy>();
  for (const PeerEnd& end : call.peer_ends()) {
    if (end.how == PostEnd::unknown) return call.fail(end.error, "perhaps it was copied");
    if (end.how != PostEnd::done) return call.fail(Code::busy, "nothing was copied");
  }
  PeerBatch posts(call);
  switch (copy.step++) {
    case 0: posts.read("b", "words", 0, bytes_of(copy.word)); return posts.completed();
    case 1: posts.write("c", "words", 0, bytes_of(copy.word)); return posts.completed();
    default: return call.answer(plain_bytes(copy.word));
  }
}

Offloads offloads() {
  const auto make = [](const ObjectForm& form) -> Result<std::unique_ptr<OwnObject>> {
    return std::make_unique<Tally>(form);
  };
  return {.calls = {{kEchoSum, echo_sum}, {kTallyAdd, tally_add}, {kCopyWord, copy_word, true}},
          .kinds = {{kTally, make}}};
}

// The client's part, for a store of its own process, a node, or a device.

bool ask(Store& store) {
  BytesWriter numbers;
  numbers.put(std::uint64_t{40}).put(std::uint64_t{2});
  const auto sum = store.call(kEchoSum, numbers.bytes());
  if (!sum || BytesReader(*sum).take<std::uint64_t>() != 42) return false;
  const auto words = store.create_object(kTally, "words");
  if (!words || !words->call(kTallyAdd, "pear")) return false;
  const auto counted = words->call(kTallyAdd, "pear");
  return counted && BytesReader(*counted).take<std::uint64_t>() == 2;
}

// Of the node alone: it has its links to b and c some time after its start.
bool ask_for_copy(Store& store, Region& at_b, const Region& at_c) {
  std::uint64_t word = 39;
  if (!at_b.write(0, bytes_of(word))) return false;
  auto copied = store.call(kCopyWord);
  while (!copied && copied.error().error.code == Code::busy) {
    std::this_thread::yield();
    copied = store.call(kCopyWord);
  }
  if (!copied || BytesReader(*copied).take<std::uint64_t>() != 39) return false;
  word = 0;
  return at_c.read(0, bytes_of(word)) && word == 39;
}

TableResult<Node> start(const std::string& socket, const std::string& fabric,
                        std::vector<std::pair<std::string, std::string>> peers = {}) {
  NodeSettings settings{.values = std::move(peers)};
  settings.values.insert(
      settings.values.end(),
      {{"node.socket", socket}, {"node.fabric", "shm:" + fabric}, {"memory.limit", "64MiB"}});
  return Node::start(settings, offloads());
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string path = arguments[1];
  auto b = start(path + ".b", path + ".bf");
  auto c = start(path + ".c", path + ".cf");
  auto node = start(path, path + ".f",
                    {{"peer", "b=shm:" + path + ".bf"}, {"peer", "c=shm:" + path + ".cf"}});
  for (const auto* const each : {&b, &c, &node}) {
    if (*each) continue;
    std::fprintf(stderr, "%s\n", message(each->error()).c_str());
    return 1;
  }
  auto far = Store::connect(node->address());
  auto near = Store::open({.memory_bytes_max = 64 << 20}, offloads());
  if (!far || !near || !ask(*far) || !ask(*near)) return 1;
  auto store_of_b = Store::connect(b->address());
  auto store_of_c = Store::connect(c->address());
  if (!store_of_b || !store_of_c) return 1;
  auto at_b = store_of_b->create_region("words", 8);
  auto at_c = store_of_c->create_region("words", 8);
  if (!at_b || !at_c || !ask_for_copy(*far, *at_b, *at_c)) return 1;
  std::puts("offload: ok");
  return 0;
}
