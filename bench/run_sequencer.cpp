// SPDX-License-Identifier: Apache-2.0
#include "bench/run_sequencer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
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

// Over the others nobody reaches the node's memory by himself.
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
  // All numbers, none twice: those before the measurement were taken alike.
  const std::uint64_t warm_up = std::min(ops, kSequencerWarmUpOps) * setting.clients;
  sample.checksum = now.next / setting.range - warm_up;
  sample.numbers.emplace_back("numbers_per_s", static_cast<double>(ops) * setting.range / seconds);
  if (now.requests != 0) {
    sample.numbers.emplace_back("node_adds_per_request", static_cast<double>(now.node_adds) /
                                                             static_cast<double>(now.requests));
  }
  return sample;
}

std::vector<MeasuredPoint> points_of(const SequencerOptions& options) {
  std::vector<MeasuredPoint> points;
  const auto add = [&](const SequencerSetting& setting) {
    MeasuredPoint point;
    point.target = "node";
    point.workload = "take";
    point.parameters["form"] = name(setting.form);
    point.parameters["transport"] = name(setting.transport);
    point.parameters["clients"] = setting.clients;
    point.parameters["range"] = setting.range;
    point.parameters["node_cores"] = options.node_cores;
    point.parameters["slowness"] = options.slowness;
    point.threads = setting.clients + options.node_cores;
    point.answers = "requests";  // as many as were made, whatever their range
    point.measure = [setting, ops = options.ops] { return measure_sequencer(setting, ops); };
    points.push_back(std::move(point));
  };
  for (const NodeTransport transport : options.transports) {
    for (const std::uint32_t clients : options.clients) {
      for (const std::uint32_t range : options.ranges) {
        for (const SequencerForm form : options.forms) {
          if (form == SequencerForm::one_sided && !has_one_sided(transport)) continue;
          add({form, transport, clients, range, options.node_cores, options.slowness});
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

std::optional<std::string> problem_of(const SequencerOptions& options) {
  const auto outside = [](const std::vector<std::uint32_t>& values, std::uint32_t most) {
    return values.empty() || std::ranges::any_of(values, [most](std::uint32_t value) {
             return value == 0 || value > most;
           });
  };
  if (options.forms.empty()) return "--form: rpc, one-sided";
  if (options.transports.empty()) return "--transport: " + node_transport_names();
  if (outside(options.clients, 256)) return "--clients must be 1 to 256";
  if (outside(options.ranges, 1u << 20)) return "--range must be 1 to 1048576";
  if (options.node_cores < 1 || options.node_cores > 64) return "--node-cores must be 1 to 64";
  if (!(options.slowness >= 1) || options.slowness > 1000) return "--slow must be 1 to 1000";
  if (options.ops < 1 || options.ops > 1'000'000'000) return "--ops must be 1 to 1000000000";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  if (points_of(options).empty()) {
    return "over unix and ofi nobody adds to the node's memory: take another --transport or --form";
  }
  return std::nullopt;
}

int run_sequencer(const SequencerOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("sequencer", options, output);
  run.run("take", points_of(options));
  return run.finish();
}

}  // namespace espalier::bench
