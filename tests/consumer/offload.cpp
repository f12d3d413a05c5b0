// SPDX-License-Identifier: Apache-2.0
// A node with the program's own call and kind, and a client of it, in one process. The argument is
// the path of a socket; returns 0 on success.
#include <espalier/node.hpp>
#include <espalier/offload.hpp>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

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

Offloads offloads() {
  const auto make = [](const ObjectForm& form) -> Result<std::unique_ptr<OwnObject>> {
    return std::make_unique<Tally>(form);
  };
  return {.calls = {{kEchoSum, echo_sum}, {kTallyAdd, tally_add}}, .kinds = {{kTally, make}}};
}

// What a client does: of a store of its own process, a node, or a device, alike.

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

int main(int count, char** arguments) {
  if (count != 2) return 2;
  auto node = Node::start({.values = {{"node.socket", arguments[1]}, {"memory.limit", "64MiB"}}},
                          offloads());
  if (!node) {
    std::fprintf(stderr, "%s\n", message(node.error()).c_str());
    return 1;
  }
  auto far = Store::connect(node->address());
  auto near = Store::open({.memory_bytes_max = 64 << 20}, offloads());
  if (!far || !near || !ask(*far) || !ask(*near)) return 1;
  std::puts("offload: ok");
  return 0;
}
