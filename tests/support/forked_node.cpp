// SPDX-License-Identifier: Apache-2.0
#include "tests/support/forked_node.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "kinds/map/write/audit.hpp"
#include "node/metrics.hpp"
#include "node/node.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

const std::string kServes = "serves";
const std::string kNumbers = "numbers";
const std::string kStop = "stop";

bool quiet(const node::Node& node) {
  if (node.connections() != 0) return false;
  for (const auto& worker : node.workers()) {
    if (worker->scheduler_counts().in_flight != 0) return false;
    if (worker->client_counts().connections != 0) return false;
  }
  return node.services().budget.used() == 0;
}

IdleNumbers numbers_when_quiet(const node::Node& node) {
  while (!quiet(node)) std::this_thread::yield();
  const node::NodeNumbers now = node::numbers_and_samples_of(node);
  IdleNumbers idle_numbers;
  idle_numbers.taken_bytes = now.value("memory_taken_bytes");
  idle_numbers.long_message_bytes = now.value("long_message_bytes");
  idle_numbers.epoch_participants = now.value("epoch_participants");
  for (const node::OffloadNumbers& offload : now.offloads)
    idle_numbers.requests += offload.requests;
  for (const wire::SampledObject& map : now.sampled.objects) {
    if (map.kind != ObjectKind::map) continue;
    idle_numbers.node_bytes += wire::sample_value(map, "node_bytes");
    idle_numbers.value_bytes += wire::sample_value(map, "value_bytes");
    idle_numbers.retired_bytes += wire::sample_value(map, "retired_bytes");
    idle_numbers.snapshots += wire::sample_value(map, "snapshots");
    idle_numbers.items += wire::sample_value(map, "items");
  }
  idle_numbers.resident_bytes = resident_bytes();
  idle_numbers.heap_bytes = heap_bytes();
  idle_numbers.descriptors = open_descriptors();
  return idle_numbers;
}

int serve(Line& line, const node::Config& config, const node::NodeOptions& options) {
  std::string mistake;
  node::NodeOptions with_words = options;
  with_words.data_mistake = &mistake;
  auto node = node::Node::start(config, with_words);
  if (!node) {
    line.send("the node cannot start: " + message(node.error()) + ": " + mistake);
    return 1;
  }
  line.send(kServes);
  for (const std::string& address : (*node)->fabric_addresses()) line.send(address);
  line.send(kServes);
  std::string question;
  while (line.receive(question) && question != kStop) {
    const IdleNumbers numbers = numbers_when_quiet(**node);
    line.send({reinterpret_cast<const char*>(&numbers), sizeof numbers});
  }
  // A thread that sees the end of a connection sees its effects.
  while (!quiet(**node)) std::this_thread::yield();
  std::string wrong;
  for (const std::string& complaint : tree::audit_store((*node)->store()))
    wrong += complaint + '\n';
  node->reset();
  line.send(wrong);
  return 0;
}

}  // namespace

ForkedNode::ForkedNode(const node::Config& config, const node::NodeOptions& options)
    : child_([&](Line& line) { return serve(line, config, options); }) {
  std::string said;
  if (!child_.line().receive(said)) throw std::runtime_error("the node died at its start");
  if (said != kServes) throw std::runtime_error(said);
  while (child_.line().receive(said) && said != kServes) addresses_.push_back(said);
}

std::string ForkedNode::ask(const std::string& question) {
  std::string answer;
  if (!child_.line().send(question) || !child_.line().receive(answer)) {
    throw std::runtime_error("the node is gone");
  }
  return answer;
}

IdleNumbers ForkedNode::idle_numbers() {
  const std::string answer = ask(kNumbers);
  IdleNumbers numbers;
  if (answer.size() != sizeof numbers) throw std::runtime_error("the node said: " + answer);
  std::memcpy(&numbers, answer.data(), sizeof numbers);
  return numbers;
}

std::string ForkedNode::stop() {
  std::string wrong = ask(kStop);
  const int code = child_.wait();
  if (code != 0) wrong += "the node ended with " + std::to_string(code) + '\n';
  return wrong;
}

}  // namespace espalier::test
