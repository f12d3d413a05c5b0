// SPDX-License-Identifier: Apache-2.0
#include "bench/run_sequencer.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "bench/benchmark.hpp"
#include "bench/map_session.hpp"
#include "bench/own_node.hpp"
#include "bench/runner.hpp"
#include "bench/together.hpp"
#include "espalier/sequencer.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kName = "numbers";
constexpr std::uint64_t kSequencerWarmUpOps = 200;

/// What a point varies.
struct SequencerSetting {
  SequencerForm form = SequencerForm::rpc;
  NodeTransport transport = NodeTransport::shm;
  std::uint32_t clients = 1;
  std::uint32_t range = 1;
  std::uint32_t node_cores = 1;
  double slowness = 1;
};

// The other transports have no one-sided access.
bool has_one_sided(NodeTransport transport) {
  switch (transport) {
    case NodeTransport::unix_socket:
    case NodeTransport::ofi_tcp:
    case NodeTransport::ofi_tcp_send: return false;
    default: return true;
  }
}

/// One client: a store of its own, and a handle.
struct Client {
  std::optional<Store> store;
  std::optional<Sequencer> numbers;
  base::Histogram latencies;

  void connect(const std::string& address, SequencerForm form) {
    StoreOptions options;
    options.access = form == SequencerForm::one_sided ? Access::one_sided : Access::rpc;
    store.emplace(value_or_throw(Store::connect(address, options), "cannot connect"));
    numbers.emplace(value_or_throw(store->open_sequencer(kName), "cannot open the sequencer"));
  }
  void take(std::uint64_t ops, std::uint32_t range) {
    for (std::uint64_t i = 0; i < ops; ++i) {
      const base::Stopwatch watch;
      value_or_throw(numbers->take(range), "cannot take numbers");
      latencies.record(watch.elapsed_ns());
    }
  }
};

PointSample measure_sequencer(const SequencerSetting& setting, std::uint64_t ops) {
  node::Config config = spinning_node_config(setting.node_cores);
  prepare(config, setting.transport);
  config.node.one_sided = has_one_sided(setting.transport);
  node::NodeOptions place;
  place.core.slowness = setting.slowness;
  const auto node = start_own_node(config, place);
  Store store = value_or_throw(Store::connect("unix:" + config.node.socket), "cannot connect");
  const Sequencer numbers =
      value_or_throw(store.create_sequencer(kName), "cannot make a sequencer");
  std::vector<Client> clients(setting.clients);
  const double seconds = run_together(
      setting.clients,
      [&](std::uint32_t i) {
        clients[i].connect(address_of(*node, setting.transport, i), setting.form);
        clients[i].take(std::min(ops, kSequencerWarmUpOps), setting.range);
        clients[i].latencies = {};
      },
      [&](std::uint32_t i) { clients[i].take(share_of(ops, setting.clients, i), setting.range); });
  PointSample sample;
  for (const Client& client : clients) sample.latencies.merge(client.latencies);
  sample.took(ops, seconds);
  const SequencerDescription now = value_or_throw(numbers.describe(), "cannot read the sequencer");
  // All numbers, none twice, including those before the measurement.
  const std::uint64_t warm_up = std::min(ops, kSequencerWarmUpOps) * setting.clients;
  sample.checksum = now.next / setting.range - warm_up;
  sample.numbers.emplace_back("numbers_per_s", static_cast<double>(ops) * setting.range / seconds);
  if (now.requests != 0) {
    sample.numbers.emplace_back("node_adds_per_request", static_cast<double>(now.node_adds) /
                                                             static_cast<double>(now.requests));
  }
  return sample;
}

MeasuredPoint sequencer_point(const SequencerSetting& setting, std::uint64_t ops) {
  return {.target = "node",
          .workload = "take",
          .parameters = {{"form", name(setting.form)},
                         {"transport", name(setting.transport)},
                         {"clients", setting.clients},
                         {"range", setting.range},
                         {"node_cores", setting.node_cores},
                         {"slowness", setting.slowness}},
          .threads = setting.clients + setting.node_cores,
          .answers = "requests",  // as many as were made, whatever their range
          .measure = [=] { return measure_sequencer(setting, ops); }};
}

std::vector<MeasuredPoint> sequencer_points(const SequencerOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const NodeTransport transport : options.transports) {
    for (const std::uint32_t clients : options.clients) {
      for (const std::uint32_t range : options.ranges) {
        for (const SequencerForm form : options.forms) {
          if (form == SequencerForm::one_sided && !has_one_sided(transport)) continue;
          points.push_back(sequencer_point(
              {form, transport, clients, range, options.node_cores, options.slowness},
              options.ops));
        }
      }
    }
  }
  return points;
}

}  // namespace

std::string_view name(SequencerForm form) {
  return form == SequencerForm::rpc ? "rpc" : "one-sided";
}

std::optional<SequencerForm> parse_sequencer_form(std::string_view text) {
  for (const SequencerForm form : {SequencerForm::rpc, SequencerForm::one_sided}) {
    if (text == name(form)) return form;
  }
  return std::nullopt;
}

void SequencerOptions::declare(OptionRows& rows) {
  rows.choices("--form", forms, parse_sequencer_form, "rpc, one-sided; both by default");
  rows.choices("--transport", transports, parse_node_transport,
               node_transport_names() + "; to the node; shm,roce-udp by default");
  rows.numbers("--clients", clients, {1, 256}, "at a time, each a thread");
  rows.numbers("--range", ranges, {1, 1U << 20}, "numbers of one request");
  rows.number("--node-cores", node_cores, {1, 64}, "workers of the node");
  rows.number("--slow", slowness, {1, 1000},
              "how many times as slow the node's workers are as this machine: they spin after each "
              "turn");
  rows.number("--ops", ops, {1, 1'000'000'000}, "requests of all clients");
  rows.of_points(*this);
  rows.require(!sequencer_points(*this).empty(),
               "over unix and ofi nobody adds to the node's memory: take another --transport or "
               "--form");
}

std::vector<ExperimentRow> SequencerOptions::experiment_rows() const {
  return {{"take", [this](Report&) { return sequencer_points(*this); }}};
}

}  // namespace espalier::bench
