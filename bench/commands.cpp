// SPDX-License-Identifier: Apache-2.0
#include "bench/commands.hpp"

#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/run_memory.hpp"
#include "bench/run_tree.hpp"
#include "bench/run_ycsb.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kWorkloadHelp =
    "a b c d e f (YCSB), cloud, get, scan, load, load-ascending, erase";

std::optional<KeySource> parse_key_source(std::string_view text) {
  if (text == "random") return KeySource::random;
  if (text == "words") return KeySource::words;
  if (text == "file") return KeySource::file;
  return std::nullopt;
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

CLI::ValidationError not_one_of(const std::string& flag, const std::string& text,
                                const std::string& names) {
  return CLI::ValidationError(flag, fmt::format("'{}' is not one of: {}", text, names));
}

// An option whose value is one of some names. `to` may be an optional.
template <class To, class Parse>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, To& to, Parse parse,
                        const std::string& help) {
  return command.add_option_function<std::string>(
      flag,
      [flag, &to, parse, help](const std::string& text) {
        const auto value = parse(text);
        if (!value) throw not_one_of(flag, text, help);
        to = *value;
      },
      help);
}

// The same for a list with commas; `to` is a vector.
template <class To, class Parse>
CLI::Option* add_choices(CLI::App& command, const std::string& flag, std::vector<To>& to,
                         Parse parse, const std::string& help) {
  return command
      .add_option_function<std::vector<std::string>>(
          flag,
          [flag, &to, parse, help](const std::vector<std::string>& texts) {
            to.clear();
            for (const std::string& text : texts) {
              const auto value = parse(text);
              if (!value) throw not_one_of(flag, text, help);
              to.push_back(*value);
            }
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false);
}

// What all of them share.
template <class Options>
void add_output_options(CLI::App& command, Options& options) {
  command
      .add_option("--probe-rounds", options.probe_rounds,
                  "of the ping-pong between cores before and after; 0: none")
      ->capture_default_str();
  command.add_flag("--json", options.json, "JSON lines instead of a table");
}

// What ycsb and tree share.
void add_common_options(CLI::App& command, YcsbOptions& options) {
  add_choices(command, "--target", options.targets, parse_target,
              "embedded, absl, rocksdb, lmdb; several with commas take turns");
  add_choice(command, "--key-set", options.key_source, parse_key_source, "random, words, file");
  command.add_option("--key-file", options.key_file, "file with a key on each line");
  command.add_option("--keys", options.keys, "keys to load; from files at most so many, 0: all")
      ->capture_default_str();
  command.add_option("--key-bytes", options.key_bytes, "length of random keys")
      ->capture_default_str();
  command.add_option("--value-bytes", options.value_bytes, "length of values")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "thread t runs on the t-th core")
      ->capture_default_str();
  command.add_flag("--peers-on-one-thread", options.peers_on_one_thread,
                   "peers run all threads' requests on one thread, without a lock");
  command
      .add_option("--in-flight", options.in_flight,
                  "requests in flight on each thread; 1: one call at a time")
      ->capture_default_str();
  command
      .add_option("--ops", options.ops, "operations of all threads; 0: as the workload suggests")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "same seed, same requests")->capture_default_str();
  command.add_option("--seconds", options.seconds, "stop measuring after so long; 0: never")
      ->capture_default_str();
  command.add_option("--repeats", options.repeats, "rounds; medians are printed")
      ->capture_default_str();
  add_choice(command, "--versions", options.versions, parse_switch, "on, off (embedded only)");
  command.add_option("--node-bytes", options.node_bytes, "node size (embedded only)")
      ->capture_default_str();
  command.add_option("--log-bytes", options.log_bytes, "log block of a leaf (embedded only)")
      ->capture_default_str();
  add_output_options(command, options);
}

// Puts the run of `options` into `chosen` when the command is met.
template <class Options, class Run>
void choose(CLI::App& command, const std::shared_ptr<Options>& options, const Output& output,
            std::function<int()>& chosen, Run run) {
  command.callback([options, output, &chosen, run] {
    chosen = [options, output, run] {
      if (const auto problem = problem_of(*options)) {
        fmt::print(output.err, "espalier: error: {}\n", *problem);
        return 2;
      }
      return run(*options, output);
    };
  });
}

void add_ycsb(CLI::App& bench, const Output& output, std::function<int()>& chosen) {
  CLI::App& command = *bench.add_subcommand("ycsb", "YCSB and other workloads, beside peers");
  const auto options = std::make_shared<YcsbOptions>();
  add_choice(command, "--workload", options->workload, parse_workload, kWorkloadHelp);
  add_choice(command, "--distribution", options->distribution, parse_distribution,
             "uniform, zipfian, latest; by default the workload's own");
  command.add_option("--scan-items", options->scan_items, "items of each scan (workload scan)")
      ->capture_default_str();
  command.add_option("--scan-share", options->scan_share, "share of scans (workload cloud)")
      ->capture_default_str();
  add_common_options(command, *options);
  choose(command, options, output, chosen, run_ycsb);
}

void add_tree(CLI::App& bench, const Output& output, std::function<int()>& chosen) {
  CLI::App& command = *bench.add_subcommand("tree", "the map's speed, one parameter at a time");
  const auto options = std::make_shared<TreeOptions>();
  std::string names;
  for (const Experiment experiment : all_experiments()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(experiment));
  }
  add_choices(command, "--experiment", options->experiments, parse_experiment,
              names + "; by default all");
  add_common_options(command, options->base);
  choose(command, options, output, chosen, run_tree);
}

void add_memory(CLI::App& bench, const Output& output, std::function<int()>& chosen) {
  CLI::App& command = *bench.add_subcommand("memory", "latency and bandwidth of this machine");
  const auto options = std::make_shared<MemoryOptions>();
  command.add_option("--bytes", options->bytes_max, "the largest block")->capture_default_str();
  command.add_option("--seconds", options->seconds, "for each measurement")->capture_default_str();
  command.add_option("--seed", options->seed, "of the random chains")->capture_default_str();
  add_output_options(command, *options);
  choose(command, options, output, chosen, run_memory);
}

}  // namespace

void add_bench_commands(CLI::App& app, const Output& output, std::function<int()>& chosen) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure the map, its peers and the machine");
  bench.require_subcommand(1);
  add_ycsb(bench, output, chosen);
  add_tree(bench, output, chosen);
  add_memory(bench, output, chosen);
}

}  // namespace espalier::bench
