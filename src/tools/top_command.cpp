// SPDX-License-Identifier: Apache-2.0
// espalier top: a node while it works. On a terminal one picture takes the place of the one before;
// elsewhere reports follow each other, as tables or JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cmdline/number_option.hpp"
#include "node/numbers_format.hpp"
#include "tools/asked_numbers.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/json_stats.hpp"
#include "tools/shown_samples.hpp"
#include "tools/top_screen.hpp"
#include "tools/top_view.hpp"

namespace espalier::tools {
namespace {

constexpr double kIntervalMin = 0.05;
constexpr double kIntervalMax = 3600;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 32;
constexpr double kNsPerSecond = 1e9;

struct TopOptions {
  std::optional<std::string> at;
  double interval = 1;      // seconds
  std::uint64_t count = 0;  // 0: until it is ended
  bool once = false;
  std::string sort{name(TopSort::activity)};
  bool json = false;

  [[nodiscard]] std::uint64_t reports() const { return once ? 1 : count; }
  [[nodiscard]] TopSort sorted_by() const {
    for (const TopSort each : {TopSort::size, TopSort::name}) {
      if (sort == name(each)) return each;
    }
    return TopSort::activity;
  }
  [[nodiscard]] std::uint64_t interval_ns() const {
    return static_cast<std::uint64_t>(interval * kNsPerSecond);
  }
};

/// Reads a node's numbers time and again, and keeps the last for comparison.
class Readings {
 public:
  Readings(const Store& store, std::string address) : store_(store), address_(std::move(address)) {}

  Outcome<TopView> next() {
    auto numbers = needed_numbers_of(store_, address_);
    if (!numbers) return std::unexpected(numbers.error());
    auto sampled = samples_beside(*numbers, store_, address_);
    if (!sampled) return std::unexpected(sampled.error());
    const bool has_samples = sampled->has_value();
    if (has_samples) numbers->sampled = **std::move(sampled);
    TopView view = view_of(last_ ? &*last_ : nullptr, std::move(*numbers), has_samples);
    last_ = view.numbers;
    // All were left out: the next reading has nothing to compare its samples with.
    if (!has_samples) last_->sampled.count = 1;
    return view;
  }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  const Store& store_;
  std::string address_;
  std::optional<node::NodeNumbers> last_;
};

// --- JSON ----------------------------------------------------------------------------------------

using OrderedJson = nlohmann::ordered_json;

/// JSON has no number for what was not measured.
OrderedJson or_null(const auto& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

double rounded(double rate) { return std::round(rate * 1000) / 1000; }

OrderedJson offload_json(const OffloadRates& offload) {
  OrderedJson object;
  object["offload"] = offload.name;
  object["requests_per_s"] = rounded(offload.per_s);
  object["requests"] = offload.requests;
  object["ns_p50"] = or_null(offload.p50_ns);
  object["ns_p99"] = or_null(offload.p99_ns);
  object["ns_mean"] =
      offload.mean_ns ? OrderedJson(rounded(*offload.mean_ns)) : OrderedJson(nullptr);
  return object;
}

OrderedJson map_json(const MapRates& map) {
  OrderedJson object = members_json(map.object);
  object["bytes_per_item"] = rounded(map.bytes_per_item);
  object["writes_per_s"] = rounded(map.writes_per_s);
  object["feed"]["moves_per_s"] = rounded(map.moves_per_s);
  return object;
}

OrderedJson sequencer_json(const SequencerRates& sequencer) {
  OrderedJson object = members_json(sequencer.object);
  object["numbers_per_s"] = rounded(sequencer.numbers_per_s);
  object["requests_per_s"] = rounded(sequencer.requests_per_s);
  object["node_adds_per_s"] = rounded(sequencer.adds_per_s);
  return object;
}

OrderedJson table_json(const TableRates& table) {
  OrderedJson object = members_json(table.object);
  object["queries_per_s"] = rounded(table.queries_per_s);
  object["read_bytes_per_s"] = rounded(table.read_bytes_per_s);
  object["sent_bytes_per_s"] = rounded(table.sent_bytes_per_s);
  return object;
}

OrderedJson rates_json(const ObjectRates& rates) {
  OrderedJson object = object_json(rates.object);
  for (std::size_t i = 0; i < rates.per_s.size(); ++i) {
    if (rates.per_s[i]) object["samples"][i]["per_s"] = rounded(*rates.per_s[i]);
  }
  return object;
}

OrderedJson worker_json(const node::WorkerNumbers& worker) {
  OrderedJson object;
  object["in_flight"] = worker.in_flight;
  object["connections"] = worker.connections;
  object["sleeps"] = worker.sleeps;
  object["wake_ups"] = worker.wake_ups;
  return object;
}

OrderedJson view_memory_json(const TopView& view) {
  OrderedJson object;
  const node::NodeNumbers& numbers = view.numbers;
  const auto sum = [&view](std::uint64_t bytes) {
    return view.has_samples ? OrderedJson(bytes) : OrderedJson(nullptr);
  };
  object["taken_bytes"] = numbers.value("memory_taken_bytes");
  object["limit_bytes"] = numbers.value("memory_limit_bytes");
  object["node_bytes"] = sum(view.node_bytes);
  object["value_bytes"] = sum(view.value_bytes);
  object["table_bytes"] = sum(view.table_bytes);
  object["retired_bytes"] = sum(view.retired_bytes);
  object["spare_bytes"] = or_null(view.spare_bytes);
  object["held_bytes"] = numbers.value("memory_held_bytes");
  object["free_bytes"] = numbers.value("memory_free_bytes");
  object["leased_bytes"] = numbers.value("memory_leased_bytes");
  object["dropped_bytes"] = numbers.value("memory_dropped_bytes");
  object["message_bytes"] = numbers.value("long_message_bytes");
  object["message_limit_bytes"] = numbers.value("long_message_limit_bytes");
  return object;
}

template <class T>
OrderedJson array_of(const std::vector<T>& all, OrderedJson (*to_json)(const T&)) {
  OrderedJson array = OrderedJson::array();
  for (const T& one : all) array.push_back(to_json(one));
  return array;
}

void print_top_json(std::ostream& out, const TopView& view, const std::string& address) {
  OrderedJson object;
  set_bytes(object, "at", address);
  set_bytes(object, "version", view.numbers.version);
  object["uptime_s"] = rounded(static_cast<double>(view.numbers.uptime_ns) / kNsPerSecond);
  object["interval_s"] = view.seconds;
  object["since_start"] = view.since_start;
  object["requests_per_s"] = rounded(view.requests_per_s);
  object["refused_per_s"] = rounded(view.refused_per_s);
  object["unannounced_per_s"] = rounded(view.unannounced_per_s);
  object["in_flight"] = view.in_flight;
  object["connections"] = view.connections;
  object["connections_refused_per_s"] = rounded(view.connections_refused_per_s);
  object["client_wakes_per_s"] = rounded(view.client_wakes_per_s);
  object["sleeps_per_s"] = rounded(view.sleeps_per_s);
  object["wake_ups_per_s"] = rounded(view.wake_ups_per_s);
  object["memory"] = view_memory_json(view);
  object["epochs"] = group_json(view.numbers, "epochs");
  object["epochs"]["held_by"] = holders(view);
  object["workers"] = array_of(view.numbers.workers, worker_json);
  object["offloads"] = array_of(view.offloads, offload_json);
  object["maps"] = array_of(view.maps, map_json);
  object["tables"] = array_of(view.tables, table_json);
  object["sequencers"] = array_of(view.sequencers, sequencer_json);
  object["objects"] = array_of(view.objects, rates_json);
  const std::uint64_t left_out = view.numbers.sampled.left_out();
  object["objects_left_out"] = view.has_samples ? OrderedJson(left_out) : OrderedJson(nullptr);
  object["queries"] = group_json(view.numbers, "queries");
  object["queries_per_s"] = rounded(view.queries_per_s);
  object["helpers"] = group_json(view.numbers, "helpers");
  object["snapshots"] = group_json(view.numbers, "snapshots");
  object["connection_limits"] = group_json(view.numbers, "connections");
  object["principals"] = array_of(view.numbers.principals, principal_json);
  object["roce"] = group_json(view.numbers, "roce");
  if (is_device(view.numbers)) object["device"] = group_json(view.numbers, "device");
  object["access"] = group_json(view.numbers, "access");
  object["holders"] = array_of(view.numbers.holders, holder_json);
  out << object.dump() << '\n';
}

// --- the two ways to show it ---------------------------------------------------------------------

void print_top_text(std::ostream& out, const TopView& view, const TopPicture& picture) {
  constexpr std::size_t kAny = 4096;
  for (const ScreenLine& line : draw_top(view, picture, {kAny, 0})) out << line.text << '\n';
}

Outcome<int> print_reports(Environment& environment, const TopOptions& options,
                           Readings& readings) {
  for (std::uint64_t done = 0; options.reports() == 0 || done < options.reports(); ++done) {
    if (done != 0) {
      environment.pause(options.interval_ns());
      if (!options.json) environment.out << '\n';
    }
    const auto view = readings.next();
    if (!view) return std::unexpected(view.error());
    if (options.json) {
      print_top_json(environment.out, *view, readings.address());
    } else {
      print_top_text(environment.out, *view, {readings.address(), options.sorted_by()});
    }
    environment.out.flush();
    if (!environment.out) break;  // the reader has gone
  }
  return kOk;
}

/// One node on the whole terminal, until the user ends it.
class Show {
 public:
  Show(Screen& screen, const TopOptions& options, Readings& readings)
      : screen_(screen), options_(options), readings_(readings), sort_(options.sorted_by()) {}

  Outcome<int> run(Environment& environment) {
    for (std::uint64_t done = 1;; ++done) {
      if (auto view = readings_.next()) {
        view_ = std::move(*view);
        trouble_.clear();
      } else if (done == 1) {
        return std::unexpected(view.error());
      } else {
        trouble_ = view.error().what;  // it may come back
      }
      draw();
      if (done == options_.reports() || !watch(environment)) return kOk;
    }
  }

 private:
  void draw() {
    screen_.show(draw_top(view_, {readings_.address(), sort_, trouble_}, screen_.size()));
  }

  /// Serves the keys until it is time for the next picture. Returns false if there is to be none.
  bool watch(Environment& environment) {
    const std::uint64_t until_ns = environment.now_ns() + options_.interval_ns();
    for (;;) {
      const std::uint64_t now_ns = environment.now_ns();
      if (now_ns >= until_ns) return true;
      const ScreenEvent event = screen_.wait(until_ns - now_ns);
      switch (event.kind) {
        case ScreenEvent::Kind::time: return true;
        case ScreenEvent::Kind::end: return false;
        case ScreenEvent::Kind::resized: draw(); break;
        case ScreenEvent::Kind::key:
          if (event.key == 'q' || event.key == 'Q') return false;
          if (event.key != 's' && event.key != 'S') break;
          sort_ = next(sort_);
          draw();
          break;
      }
    }
  }

  Screen& screen_;
  const TopOptions& options_;
  Readings& readings_;
  TopSort sort_;
  TopView view_;
  std::string trouble_;
};

Outcome<int> top(Environment& environment, const TopOptions& options) {
  const auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  Readings readings(*store, *address);
  if (!options.json && !options.once) {
    if (const auto screen = environment.open_screen()) {
      return Show(*screen, options, readings).run(environment);
    }
  }
  return print_reports(environment, options, readings);
}

}  // namespace

void add_top_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App& command = *app.add_subcommand("top", "Show a node while it works");
  cmdline::add_number(command, "-i,--interval", options->interval, "Seconds between two reports",
                      {kIntervalMin, kIntervalMax})
      ->type_name("SECONDS");
  CLI::Option* const count = cmdline::add_number_function<std::uint64_t>(
      command, "-c,--count", [options](std::uint64_t reports) { options->count = reports; },
      "End after N reports (default: never)", {1, kCountMax});
  command.add_flag("--once", options->once, "Print one report, of all since the node's start")
      ->excludes(count);
  command
      .add_option("-s,--sort", options->sort,
                  "What offloads, maps, tables, sequencers and samples are sorted by")
      ->check(CLI::IsMember({"activity", "size", "name"}).description(""))
      ->type_name("activity|size|name")
      ->capture_default_str();
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.footer(
      "On a terminal it takes the whole of it: q quits, s changes the sort. Elsewhere, with "
      "--once\n"
      "or --json reports are printed one after the other. Rates of the first report are those "
      "since\n"
      "the node's start, of later ones those of the interval before them. Latencies are of about "
      "one\n"
      "request in 64, on the node; a percentile is the bound of a bucket.\n"
      "Examples:\n"
      "  espalier top --at unix:/run/espalier/espalier.sock\n"
      "  espalier top --at unix:/run/espalier/espalier.sock --once\n"
      "  espalier top --at unix:/run/espalier/espalier.sock --json --interval 5 --count 12\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment, [options, &environment] { return top(environment, *options); });
  });
}

}  // namespace espalier::tools
